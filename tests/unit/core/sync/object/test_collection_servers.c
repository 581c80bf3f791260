/* Collections whose operations a server runs: one thread for all ends. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sync/delegate/server.h"
#include "core/sync/object/collection.h"
#include "core/wait/park.h"
#include "tests/support/test.h"

#define THREADS 4u
#define VALUES  300u /* of each thread */

struct world {
    void *memory; /* allocated */
    struct qn_collection q;
    qn_a32 stop;
    qn_a32 taken[THREADS * VALUES]; /* how often */
};

static void make(struct world *w, const char *name)
{
    const struct qn_delegate_opts d = {.type = qn_delegate_find("shm_server")};
    const struct qn_collection_opts o = {.type = qn_collection_find(name),
                                         .clients = THREADS,
                                         .capacity = 16,
                                         .delegate = &d};
    size_t bytes = qn_collection_bytes(&o);
    cr_assert_neq(bytes, 0);
    w->memory = aligned_alloc(QN_CACHELINE, bytes);
    cr_assert_neq(w->memory, NULL);
    memset(w->memory, 0, bytes);
    cr_assert_eq(qn_collection_format(w->memory, &o), QN_OK);
    cr_assert_eq(qn_collection_open(&w->q, w->memory), QN_OK);
}

static void *serve(void *arg)
{
    struct world *w = arg;
    struct qn_delegate_server server[2] = {{.domain = 0}, {.domain = 0}};
    const struct qn_delegate *d;
    while (qn_load(&w->stop, QN_SEQ_CST) == 0) {
        for (uint32_t i = 0; (d = qn_collection_delegate_at(&w->q, i)) != NULL;
             i++) {
            cr_assert_geq(qn_delegate_poll(d, &server[i]), 0);
        }
        qn_park_yield();
    }
    return NULL;
}

/* Put a value, take one, until all of both are done. */
static void work(struct world *w, uint32_t me)
{
    struct qn_collection_client c;
    uint32_t takes = 0;
    cr_assert_eq(qn_collection_join(&w->q, &c, NULL), QN_OK);
    for (uint32_t puts = 0; puts < VALUES || takes < VALUES;) {
        uint64_t value;
        if (puts < VALUES &&
            qn_collection_put(&c, me * VALUES + puts) == QN_OK) {
            puts++;
        }
        if (takes < VALUES && qn_collection_take(&c, &value) == QN_OK) {
            cr_assert_lt(value, THREADS * VALUES);
            cr_assert_eq(qn_fetch_add(&w->taken[value], 1, QN_SEQ_CST), 0);
            takes++;
        }
    }
    cr_assert_geq(qn_collection_stats_of(&c).operations, 2 * VALUES);
    qn_collection_leave(&c);
}

struct worker {
    struct world *w;
    uint32_t me;
};

static void *worker(void *arg)
{
    const struct worker *k = arg;
    work(k->w, k->me);
    return NULL;
}

static void run(const char *name)
{
    struct world *w = calloc(1, sizeof *w);
    struct worker k[THREADS];
    pthread_t server;
    pthread_t thread[THREADS];
    cr_assert_neq(w, NULL);
    make(w, name);
    cr_assert_eq(pthread_create(&server, NULL, serve, w), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        k[i] = (struct worker){.w = w, .me = i};
        cr_assert_eq(pthread_create(&thread[i], NULL, worker, &k[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_join(thread[i], NULL), 0);
    }
    qn_store(&w->stop, 1, QN_SEQ_CST);
    cr_assert_eq(pthread_join(server, NULL), 0);
    for (uint32_t i = 0; i < THREADS * VALUES; i++) {
        cr_assert_eq(qn_load(&w->taken[i], QN_SEQ_CST), 1, "%s: value %u", name,
                     i);
    }
    free(w->memory);
    free(w);
}

Test(collection_servers, run_all_operations, .timeout = 100)
{
    run("ms1");
    run("ms2");
    run("list");
}

Test(collection_servers, a_queue_with_two_ends_wants_results_that_order)
{
    const struct qn_delegate_opts all[] = {
        {.type = qn_delegate_find("shm_server"),
         .server = {.only_server_uses_data = true}},
        {.type = qn_delegate_find("cc_synch"),
         .own_cores = true,
         .only_operations_use_data = true}};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(all); i++) {
        struct qn_collection_opts o = {.type = qn_collection_find("ms2"),
                                       .clients = 2,
                                       .capacity = 4,
                                       .delegate = &all[i]};
        cr_assert_eq(qn_collection_bytes(&o), 0, "%u", i);
        o.type = qn_collection_find("ms1");
        cr_assert_neq(qn_collection_bytes(&o), 0);
        o.type = qn_collection_find("lcrq");
        cr_assert_neq(qn_collection_bytes(&o), 0);
    }
}

Test(collection_servers, delegates_are_as_many_as_ends)
{
    static const char *const names[] = {"list", "ms2", "lcrq"};
    for (uint32_t k = 0; k < 3; k++) {
        const struct qn_collection q = {.type = qn_collection_find(names[k])};
        uint32_t n = 0;
        while (qn_collection_delegate_at(&q, n) != NULL) {
            n++;
        }
        cr_assert_eq(n, (k + 1) % 3, "%s", names[k]);
    }
}
