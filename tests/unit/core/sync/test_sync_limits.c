/*
 * Locks, delegates and collections at the largest numbers that they take:
 * clients, the length of a batch, cells of a ring, values. With QN_SYNC_LIMITS
 * set, collections of 2^26 values are filled (up to 4 GiB, and a minute).
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sync/delegate/server.h"
#include "core/sync/lock/lock.h"
#include "core/sync/object/collection.h"
#include "tests/support/test.h"

#define CLIENTS QN_SYNC_CLIENTS_MAX

/* Zeroed pages, of which only those that are touched cost memory. */
static void *pages(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert_neq(bytes, 0);
    cr_assert_neq(p, MAP_FAILED);
    return p;
}

static void *array(size_t size)
{
    void *p = calloc(CLIENTS + 1, size);
    cr_assert_not_null(p);
    return p;
}

/* ---- clients ---- */

static void fill_lock(const struct qn_lock_type *type)
{
    const struct qn_lock_opts o = {.clients = CLIENTS};
    const size_t bytes = qn_lock_bytes(type, &o);
    struct qn_lock_client *c = array(sizeof *c);
    void *memory = pages(bytes);
    cr_assert_eq(qn_lock_format(type, memory, &o), QN_OK);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        cr_assert_eq(qn_lock_join(type, memory, NULL, &c[i]), QN_OK);
        qn_lock_acquire(&c[i]);
        cr_assert(i == 0 || !qn_lock_try_acquire(&c[0]));
        qn_lock_release(&c[i]);
    }
    cr_assert_eq(qn_lock_join(type, memory, NULL, &c[CLIENTS]), QN_EAGAIN);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        qn_lock_leave(&c[i]);
    }
    cr_assert_eq(munmap(memory, bytes), 0);
    free(c);
}

Test(sync_limits, a_lock_has_1024_clients)
{
    for (uint32_t i = 0; qn_lock_types[i] != NULL; i++) {
        if (!qn_lock_types[i]->words) {
            fill_lock(qn_lock_types[i]);
        }
    }
}

static uint64_t add(void *ctx, uint32_t op, uint64_t arg)
{
    uint64_t *sum = ctx;
    (void)op;
    return *sum += arg;
}

struct served {
    struct qn_delegate d;
    struct qn_delegate_client *c; /* [CLIENTS] */
};

/* Each client in turn, or all at once at a server. */
static void call_all(const struct served *w)
{
    struct qn_delegate_server server = {.domain = 0};
    const bool serves = w->d.at[0].type->server != NULL;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        uint64_t result;
        cr_assert_eq(serves ? qn_delegate_submit(&w->d, &w->c[i], 0, 1)
                            : qn_delegate(&w->d, &w->c[i], 0, 1, &result),
                     QN_OK);
    }
    if (serves) {
        cr_assert_eq(qn_delegate_poll(&w->d, &server), CLIENTS);
    }
    for (uint32_t i = 0; serves && i < CLIENTS; i++) {
        uint64_t result;
        cr_assert_eq(qn_delegate_collect(&w->d, &w->c[i], &result), QN_OK);
        cr_assert_eq(result, i + 1);
    }
}

/* With the longest batch. */
static void fill_delegate(const struct qn_delegate_type *type)
{
    const struct qn_delegate_opts o = {
        .type = type,
        .clients = CLIENTS,
        .batch = UINT32_MAX,
        .domains = type->domains ? QN_DELEGATE_DOMAINS : 0};
    const size_t bytes = qn_delegate_bytes(&o);
    struct served w = {.c = array(sizeof *w.c)};
    void *memory = pages(bytes);
    uint64_t sum = 0;
    cr_assert_eq(qn_delegate_format(memory, &o), QN_OK);
    cr_assert_eq(qn_delegate_open(&w.d, memory, add, &sum), QN_OK);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        const struct qn_delegate_join_opts j = {.domain =
                                                    i % QN_MAX(o.domains, 1u)};
        cr_assert_eq(qn_delegate_join(&w.d, &w.c[i], &j), QN_OK);
    }
    cr_assert_eq(qn_delegate_join(&w.d, &w.c[CLIENTS], NULL), QN_EAGAIN);
    call_all(&w);
    cr_assert_eq(sum, CLIENTS);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        qn_delegate_leave(&w.d, &w.c[i]);
    }
    cr_assert_eq(munmap(memory, bytes), 0);
    free(w.c);
}

Test(sync_limits, a_delegate_has_1024_clients_in_64_domains)
{
    for (uint32_t i = 0; qn_delegate_types[i] != NULL; i++) {
        fill_delegate(qn_delegate_types[i]);
    }
    for (uint32_t i = 0; qn_delegate_served_types[i] != NULL; i++) {
        fill_delegate(qn_delegate_served_types[i]);
    }
}

/* ---- values ---- */

struct filled {
    struct qn_collection_opts o;
    struct qn_collection q;
    struct qn_collection_client *c; /* [o.clients] */
    void *memory;
    size_t bytes;
};

static void make(struct filled *f)
{
    f->bytes = qn_collection_bytes(&f->o);
    f->memory = pages(f->bytes);
    f->c = array(sizeof *f->c);
    cr_assert_eq(qn_collection_format(f->memory, &f->o), QN_OK);
    cr_assert_eq(qn_collection_open(&f->q, f->memory), QN_OK);
    for (uint32_t i = 0; i < f->o.clients; i++) {
        cr_assert_eq(qn_collection_join(&f->q, &f->c[i], NULL), QN_OK);
    }
}

static void end(struct filled *f)
{
    for (uint32_t i = 0; i < f->o.clients; i++) {
        qn_collection_leave(&f->c[i]);
    }
    cr_assert_eq(munmap(f->memory, f->bytes), 0);
    free(f->c);
}

/* Put that many values, take them in order. */
static void fill(struct filled *f, uint32_t values)
{
    const bool fifo = f->o.type->order == QN_FIFO;
    for (uint32_t i = 0; i < values; i++) {
        cr_assert_eq(qn_collection_put(&f->c[i % f->o.clients], i), QN_OK);
    }
    for (uint32_t i = 0; i < values; i++) {
        uint64_t value;
        cr_assert_eq(qn_collection_take(&f->c[i % f->o.clients], &value),
                     QN_OK);
        cr_assert_eq(value, fifo ? i : values - 1 - i);
    }
}

Test(sync_limits, a_collection_has_1024_clients)
{
    for (uint32_t i = 0; qn_collection_types[i] != NULL; i++) {
        struct filled f = {.o = {.type = qn_collection_types[i],
                                 .clients = CLIENTS,
                                 .capacity = CLIENTS,
                                 .ring = 2}};
        struct qn_collection_client more;
        make(&f);
        fill(&f, CLIENTS);
        cr_assert_eq(qn_collection_join(&f.q, &more, NULL), QN_EAGAIN);
        end(&f);
    }
}

Test(sync_limits, a_ring_has_1048576_cells_and_no_more)
{
    struct filled f = {.o = {.type = qn_collection_find("lcrq"),
                             .clients = 1,
                             .capacity = QN_RING_MAX,
                             .ring = QN_RING_MAX}};
    make(&f);
    fill(&f, QN_RING_MAX);
    end(&f);
    f.o.ring = 2 * QN_RING_MAX;
    cr_assert_eq(qn_collection_bytes(&f.o), 0);
}

/* They go round whole, and each client keeps two of them. */
Test(sync_limits, a_batch_of_free_nodes_has_4096_at_most)
{
    struct filled f = {.o = {.type = qn_collection_find("treiber"),
                             .clients = 2,
                             .capacity = 3 * 4096,
                             .batch = 4096}};
    make(&f);
    fill(&f, 3 * 4096);
    fill(&f, 3 * 4096);
    end(&f);
    f.o.batch++;
    cr_assert_eq(qn_collection_bytes(&f.o), 0);
}

Test(sync_limits, a_collection_has_2_to_the_26th_values_and_no_more,
     .timeout = 600)
{
    const bool all = getenv("QN_SYNC_LIMITS") != NULL;
    for (uint32_t i = 0; qn_collection_types[i] != NULL; i++) {
        struct filled f = {.o = {.type = qn_collection_types[i],
                                 .clients = 1,
                                 .capacity = QN_CAPACITY_MAX}};
        const bool rings = qn_collection_types[i]->delegates == 0 &&
                           qn_collection_types[i]->order == QN_FIFO;
        if (all || rings) { /* others write to each node at once */
            make(&f);
            fill(&f, all ? QN_CAPACITY_MAX : CLIENTS);
            end(&f);
        }
        cr_assert_neq(qn_collection_bytes(&f.o), 0);
        f.o.capacity++;
        cr_assert_eq(qn_collection_bytes(&f.o), 0);
    }
}
