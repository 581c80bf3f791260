/*
 * A plain hash table that threads share by delegation: it has no lock and no
 * atomic variable in it. Each operation is a number; one function runs all of
 * them, one at a time, on whichever thread the backend chooses. Here four
 * threads count words.
 *
 *     table [BACKEND]     auto (default), cc_synch, h_synch, lock
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/sync/delegate/delegate.h"

enum { THREADS = 4, WORDS = 1000, PER_THREAD = 100000, SLOTS = 4096 };
enum { COUNT, READ }; /* the operations */

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

static uint64_t run(void *table, uint32_t op, uint64_t key)
{
    struct slot *s = find(table, key);
    if (op == COUNT) {
        s->key = key;
        s->value++;
    }
    return s->value;
}

static struct qn_delegate shared; /* from here on: threads that call it */

static void *count_words(void *seed)
{
    unsigned random = *(const unsigned *)seed;
    struct qn_delegate_client me;
    uint64_t result;
    if (qn_delegate_join(&shared, &me, NULL) == QN_OK) {
        for (int i = 0; i < PER_THREAD; i++) {
            const uint64_t word = 1 + (uint64_t)rand_r(&random) % WORDS;
            (void)qn_delegate(&shared, &me, COUNT, word, &result);
        }
        qn_delegate_leave(&shared, &me);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct slot table[SLOTS];
    static unsigned seed[THREADS] = {1, 2, 3, 4};
    const struct qn_delegate_opts opts = {
        .type = qn_delegate_find(argc > 1 ? argv[1] : "auto"),
        .clients = THREADS};
    const size_t bytes = qn_delegate_bytes(&opts);
    void *memory = bytes != 0 ? aligned_alloc(QN_CACHELINE, bytes) : NULL;
    if (memory == NULL || opts.type->server != NULL || opts.type->words) {
        fprintf(stderr, "table: no backend that needs its callers only\n");
        return 2;
    }
    memset(memory, 0, bytes);
    if (qn_delegate_format(memory, &opts) != QN_OK ||
        qn_delegate_open(&shared, memory, run, table) != QN_OK) {
        return 2;
    }
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&thread[i], NULL, count_words, &seed[i]) != 0) {
            perror("table");
            return 1;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    struct qn_delegate_client me;
    uint64_t sum = 0, one = 0;
    (void)qn_delegate_join(&shared, &me, NULL); /* the others have left */
    for (uint64_t word = 1; word <= WORDS; word++) {
        (void)qn_delegate(&shared, &me, READ, word, &one);
        sum += one;
    }
    qn_delegate_leave(&shared, &me);
    printf("%llu words counted\n", (unsigned long long)sum);
    free(memory);
    return 0;
}
