/*
 * A program that loads a plugin which embeds a group, and unloads it: nothing
 * of it is called afterwards, by a thread that ends or otherwise.
 *
 *     unload PLUGIN PLUGIN_THAT_STAYS
 *
 * The second one is linked with -z nodelete, as a plugin has to be that may be
 * unloaded before it has left its groups.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "tests/process/host/plugin.h"

static const char *file; /* of the plugin */
static char folder[] = "/tmp/quoin-plugin-XXXXXX";
static char name[sizeof folder + 8]; /* of its group */

static const struct plugin *load(void **handle)
{
    *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (*handle == NULL) {
        fprintf(stderr, "unload: %s\n", dlerror());
        exit(1);
    }
    const struct plugin *p = dlsym(*handle, PLUGIN_SYMBOL);
    QN_ASSERT(p != NULL);
    return p;
}

static bool mapped(void)
{
    char line[512];
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "re");
    QN_ASSERT(f != NULL);
    while (fgets(line, sizeof line, f) != NULL) {
        found = found || strstr(line, file) != NULL;
    }
    fclose(f);
    return found;
}

/* ---- it leaves ----------------------------------------------------------- */

static void must(int err, const char *what)
{
    if (err != QN_OK) {
        fprintf(stderr, "unload: %s: %s\n", what, qn_strerror(err));
        exit(1);
    }
}

static void *load_and_leave(void *in_thread)
{
    void *handle;
    const struct plugin *p = load(&handle);
    int err = in_thread != NULL ? p->join_in_thread(name) : p->join(name);
    must(err, "join");
    p->leave();
    err = dlclose(handle);
    QN_ASSERT(err == 0);
    QN_ASSERT(!mapped());
    return NULL; /* the thread ends */
}

/* It may be loaded any number of times: here of these keys one is left. */
static void take_all_keys_but_one(void)
{
    pthread_key_t key;
    int err = pthread_key_create(&key, NULL);
    while (err == 0) {
        pthread_key_t next;
        err = pthread_key_create(&next, NULL);
        key = err == 0 ? next : key;
    }
    err = pthread_key_delete(key);
    QN_ASSERT(err == 0);
}

/* ---- it does not leave --------------------------------------------------- */

static void *load_and_close(void *arg)
{
    void *handle;
    const struct plugin *p = load(&handle);
    (void)arg;
    int err = p->join(name);
    must(err, "join");
    err = dlclose(handle);
    QN_ASSERT(err == 0);
    QN_ASSERT(mapped());
    return NULL; /* the thread ends, and it is the member */
}

static void in_a_thread(void *(*run)(void *), void *arg)
{
    pthread_t t;
    int err = pthread_create(&t, NULL, run, arg);
    QN_ASSERT(err == 0);
    (void)pthread_join(t, NULL);
}

int main(int argc, char **argv)
{
    void *handle;
    if (argc != 3) {
        fprintf(stderr, "usage: unload PLUGIN PLUGIN_THAT_STAYS\n");
        return 2;
    }
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    snprintf(name, sizeof name, "%s/name", folder);
    file = argv[1];
    take_all_keys_but_one();
    for (int i = 0; i < 3; i++) {
        in_a_thread(load_and_leave, NULL);
        in_a_thread(load_and_leave, &i);
    }
    file = argv[2];
    in_a_thread(load_and_close, NULL);
    const struct plugin *p = load(&handle);
    int err = p->turn();
    QN_ASSERT(err == QN_EABORTED); /* seen by the key's destructor */
    p->leave();
    unlink(name);
    rmdir(folder);
    printf("all well\n");
    return 0;
}
