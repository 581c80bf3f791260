/*
 * A thread calls a plugin that is linked with libquoin-gomp.so, and ends when
 * the plugin was unloaded: what the library does then must still be there.
 *
 *     PROGRAM PLUGIN
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_barrier_t turn;

static void *run(void *arg)
{
    int (*plugin)(void);
    memcpy(&plugin, arg, sizeof plugin);
    const int wrong = plugin();
    (void)pthread_barrier_wait(&turn); /* it may go */
    (void)pthread_barrier_wait(&turn); /* it is gone */
    return wrong == 0 ? NULL : arg;
}

int main(int argc, char **argv)
{
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    const void *address =
        library == NULL ? NULL : dlsym(library, "openmp_plugin");
    pthread_t thread;
    void *wrong;
    if (address == NULL || pthread_barrier_init(&turn, NULL, 2) != 0 ||
        pthread_create(&thread, NULL, run, &address) != 0) {
        fprintf(stderr, "plugin_host: %s\n", argc == 2 ? dlerror() : "PLUGIN");
        return 2;
    }
    (void)pthread_barrier_wait(&turn);
    (void)dlclose(library);
    const int left = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) != NULL;
    (void)pthread_barrier_wait(&turn);
    (void)pthread_join(thread, &wrong);
    printf("plugin: %d wrong, %d left\n", wrong != NULL, left);
    return wrong == NULL && left == 0 ? 0 : 1;
}
