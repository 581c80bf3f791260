/*
 * A plain hash table that threads share by delegation: it has no lock and no
 * atomic variable in it. Each operation is a number; one function runs all of
 * them, one at a time, on whichever thread the backend chooses.
 *
 *     table [BACKEND]     auto (default), cc_synch, h_synch, lock
 *
 * Four threads count the words of a text that each of them makes up; the sums
 * are checked at the end.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/atomic.h"
#include "core/base/err.h"
#include "core/sync/delegate/delegate.h"

enum { THREADS = 4, WORDS = 1000, PER_THREAD = 100000, SLOTS = 4096 };

/* ---- the table, as one thread would have it ------------------------------ */

struct slot {
    uint64_t key, value; /* key 0: empty */
};

/* Open addressing. @return the slot of the key, or the empty one for it. */
static struct slot *find(struct slot *table, uint64_t key)
{
    uint64_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    while (table[at % SLOTS].key != key && table[at % SLOTS].key != 0) {
        at++;
    }
    return &table[at % SLOTS];
}

/* ---- its operations ------------------------------------------------------ */

enum { COUNT, READ };

static uint64_t run(void *table, uint32_t op, uint64_t key)
{
    struct slot *s = find(table, key);
    if (op == COUNT) {
        s->key = key;
        s->value++;
    }
    return s->value;
}

/* ---- threads ------------------------------------------------------------- */

static struct qn_delegate shared;

static void *count_words(void *seed)
{
    unsigned random = *(const unsigned *)seed;
    struct qn_delegate_client me;
    uint64_t result;
    if (qn_delegate_join(&shared, &me, NULL) != QN_OK) {
        return "no place at the table";
    }
    for (int i = 0; i < PER_THREAD; i++) {
        const uint64_t word = 1 + (uint64_t)rand_r(&random) % WORDS;
        (void)qn_delegate(&shared, &me, COUNT, word, &result);
    }
    qn_delegate_leave(&shared, &me);
    return NULL;
}

static uint64_t sum(void)
{
    struct qn_delegate_client me;
    uint64_t all = 0, one = 0;
    if (qn_delegate_join(&shared, &me, NULL) == QN_OK) {
        for (uint64_t word = 1; word <= WORDS; word++) {
            (void)qn_delegate(&shared, &me, READ, word, &one);
            all += one;
        }
        qn_delegate_leave(&shared, &me);
    }
    return all;
}

int main(int argc, char **argv)
{
    static struct slot table[SLOTS];
    static unsigned seed[THREADS] = {1, 2, 3, 4};
    const char *name = argc > 1 ? argv[1] : "auto";
    const struct qn_delegate_opts opts = {.type = qn_delegate_find(name),
                                          .clients = THREADS + 1};
    const size_t bytes = opts.type != NULL ? qn_delegate_bytes(&opts) : 0;
    void *memory = bytes != 0 ? aligned_alloc(QN_CACHELINE, bytes) : NULL;
    pthread_t thread[THREADS];
    if (memory == NULL || opts.type->server != NULL) {
        fprintf(stderr, "table: %s: no backend without a server\n", name);
        return 2;
    }
    memset(memory, 0, bytes);
    if (qn_delegate_format(memory, &opts) != QN_OK ||
        qn_delegate_open(&shared, memory, run, table) != QN_OK) {
        fprintf(stderr, "table: %s: needs more than a place\n", name);
        return 2;
    }
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&thread[i], NULL, count_words, &seed[i]) != 0) {
            perror("table");
            return 1;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    printf("%llu words counted\n", (unsigned long long)sum());
    free(memory);
    return 0;
}
