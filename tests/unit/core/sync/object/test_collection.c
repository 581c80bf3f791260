/* Queues and stacks, one thread at a time: order, bounds, places, memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/test.h"
#include "tests/unit/core/sync/object/collection_kinds.h"

#define CLIENTS 3u

/* Run a check on each kind, with one client. */
static void for_each_kind(void (*check)(const struct collection *t,
                                        struct qn_collection_client *c))
{
    for (uint32_t i = 0; i < COLLECTION_KINDS; i++) {
        struct collection t;
        struct qn_collection_client c;
        collection_make(&t, &collection_kinds[i], CLIENTS);
        cr_assert_eq(qn_collection_join(&t.q, &c, NULL), QN_OK);
        check(&t, &c);
        qn_collection_leave(&c);
        collection_free(&t);
    }
}

/* Put 0, 1, ... until it is full. @return how many. */
static uint32_t fill(struct qn_collection_client *c)
{
    uint32_t count = 0;
    int err;
    while ((err = qn_collection_put(c, count)) == QN_OK) {
        count++;
    }
    cr_assert_eq(err, QN_EAGAIN);
    return count;
}

/* Take `count` values, which are 0, 1, ..., in the order of the type; then it
 * is empty. */
static void drain(const struct collection *t, struct qn_collection_client *c,
                  uint32_t count)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool fifo = t->q.type->order == QN_FIFO;
        cr_assert_eq(qn_collection_take(c, &value), QN_OK);
        cr_assert_eq(value, fifo ? i : count - 1 - i, "%s: %u, got %lu",
                     collection_text(&t->kind), i, (unsigned long)value);
    }
    cr_assert_eq(qn_collection_take(c, &value), QN_EAGAIN);
    cr_assert_eq(qn_collection_take(c, &value), QN_EAGAIN);
}

static void full_and_empty(const struct collection *t,
                           struct qn_collection_client *c)
{
    drain(t, c, 0);
    uint32_t first = fill(c);
    cr_assert_geq(first, t->kind.capacity, "%s: %u", collection_text(&t->kind),
                  first);
    drain(t, c, first);
    first = fill(c); /* lcrq: the first ring is closed by now */
    drain(t, c, first);
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t again = fill(c);
        cr_assert_eq(again, first, "%s: %u, then %u", collection_text(&t->kind),
                     first, again);
        drain(t, c, again);
    }
}

Test(collection, holds_its_capacity_in_order_and_gives_all_back, .timeout = 60)
{
    for_each_kind(full_and_empty);
}

static void bounds(const struct collection *t, struct qn_collection_client *c)
{
    const uint64_t most = t->q.type->value_max;
    uint64_t value = 5;
    cr_assert_eq(qn_collection_put(c, most + 1), QN_EINVAL);
    cr_assert_eq(qn_collection_take(c, &value), QN_EAGAIN);
    cr_assert_eq(value, 5, "untouched");
    cr_assert_eq(qn_collection_put(c, most), QN_OK);
    cr_assert_eq(qn_collection_take(c, &value), QN_OK);
    cr_assert_eq(value, most, "%s", collection_text(&t->kind));
}

Test(collection, values_have_63_bits_or_32)
{
    for_each_kind(bounds);
}

/* lcrq: a put that fails leaves no index for a take to draw. */
static void asked_often(const struct collection *t,
                        struct qn_collection_client *c)
{
    const uint32_t count = fill(c);
    const uint64_t before = qn_collection_stats_of(c).cas;
    for (uint32_t i = 0; i < 1000; i++) {
        cr_assert_eq(qn_collection_put(c, i), QN_EAGAIN);
    }
    drain(t, c, count);
    const uint64_t cas = qn_collection_stats_of(c).cas - before;
    cr_assert(cas <= 4 * count + 8 || !t->q.type->lock_free, "%s: %lu",
              collection_text(&t->kind), (unsigned long)cas);
}

Test(collection, a_full_one_may_be_asked_any_number_of_times)
{
    for_each_kind(asked_often);
}

/* Between few values and none, many times round rings and nodes. */
static void goes_round(const struct collection *t,
                       struct qn_collection_client *c)
{
    uint64_t value;
    for (uint32_t i = 0; i < 3000; i++) {
        uint32_t count = i % (t->kind.capacity + 1);
        for (uint32_t k = 0; k < count; k++) {
            cr_assert_eq(qn_collection_put(c, k), QN_OK, "%s, turn %u",
                         collection_text(&t->kind), i);
        }
        drain(t, c, count);
        cr_assert_eq(qn_collection_take(c, &value), QN_EAGAIN);
    }
}

Test(collection, goes_round_many_times, .timeout = 60)
{
    for_each_kind(goes_round);
}

/* Of one client: a lock-free operation is one compare-and-swap or two (a
 * node's batch, a cell that a take has passed), and none fails. */
static void statistics(const struct collection *t,
                       struct qn_collection_client *c)
{
    uint64_t value;
    for (uint32_t i = 0; i < 100; i++) {
        cr_assert_eq(qn_collection_put(c, i), QN_OK);
        cr_assert_eq(qn_collection_take(c, &value), QN_OK);
    }
    const struct qn_delegate_stats s = qn_collection_stats_of(c);
    if (t->q.type->lock_free) {
        cr_assert_geq(s.cas, 199, "%s", collection_text(&t->kind));
        cr_assert_leq(s.cas, 400, "%s", collection_text(&t->kind));
        cr_assert_eq(s.cas_failed, 0);
    } else {
        cr_assert_eq(s.operations, 200, "%s", collection_text(&t->kind));
    }
}

Test(collection, counts_what_a_client_does)
{
    for_each_kind(statistics);
}

/* Clients that come and go keep what they keep at their places. */
static void places(const struct collection *t, struct qn_collection_client *c)
{
    struct qn_collection_client other[CLIENTS];
    uint32_t first = fill(c);
    drain(t, c, first);
    for (uint32_t turn = 0; turn < 50; turn++) {
        for (uint32_t i = 0; i < CLIENTS - 1; i++) {
            cr_assert_eq(qn_collection_join(&t->q, &other[i], NULL), QN_OK);
        }
        cr_assert_eq(qn_collection_join(&t->q, &other[CLIENTS - 1], NULL),
                     QN_EAGAIN);
        for (uint32_t i = 0; i < CLIENTS - 1; i++) {
            uint32_t count = fill(&other[i]);
            cr_assert_geq(count, t->kind.capacity, "%s",
                          collection_text(&t->kind));
            drain(t, &other[i], count);
        }
        for (uint32_t i = 0; i < CLIENTS - 1; i++) {
            qn_collection_leave(&other[i]);
        }
    }
    cr_assert_geq(fill(c), t->kind.capacity);
}

Test(collection, a_client_that_leaves_gives_back_what_it_keeps, .timeout = 60)
{
    for_each_kind(places);
}

Test(collection, options_out_of_range_are_refused)
{
    const struct qn_collection_opts good = {
        .type = qn_collection_find("lcrq"), .clients = 2, .capacity = 5};
    struct qn_collection_opts o = good;
    struct qn_collection q;
    alignas(QN_CACHELINE) uint64_t memory[8] = {0};
    cr_assert_eq(qn_collection_find("lcqr"), NULL);
    cr_assert_neq(qn_collection_bytes(&o), 0);
    o.clients = 0;
    cr_assert_eq(qn_collection_bytes(&o), 0);
    o.clients = QN_SYNC_CLIENTS_MAX + 1;
    cr_assert_eq(qn_collection_bytes(&o), 0);
    o = good;
    o.capacity = 0;
    cr_assert_eq(qn_collection_format(memory, &o), QN_EINVAL);
    o = good;
    o.ring = 3;
    cr_assert_eq(qn_collection_bytes(&o), 0);
    o.ring = 1;
    cr_assert_eq(qn_collection_bytes(&o), 0);
    o = good;
    o.type = NULL;
    cr_assert_eq(qn_collection_bytes(&o), 0);
    cr_assert_eq(qn_collection_open(&q, memory), QN_EINVAL);
}

/* The version is the upper half of the first word. */
static void another_version(const struct collection *t,
                            struct qn_collection_client *c)
{
    struct qn_collection q;
    uint32_t *says = t->memory;
    (void)c;
    *says += 1u << 16;
    cr_expect_eq(qn_collection_open(&q, t->memory), QN_EINVAL);
    *says -= 1u << 16;
    cr_expect_eq(qn_collection_open(&q, t->memory), QN_OK);
}

Test(collection, one_of_another_version_is_not_opened)
{
    for_each_kind(another_version);
}

Test(collection, types_have_names_of_their_own)
{
    for (uint32_t i = 0; qn_collection_types[i] != NULL; i++) {
        cr_assert_eq(qn_collection_find(qn_collection_types[i]->name),
                     qn_collection_types[i]);
    }
}

/* The memory of one collection at two addresses. */
static void map_twice(size_t bytes, void *at[2])
{
    int fd = memfd_create("collection", 0);
    cr_assert_geq(fd, 0);
    cr_assert_eq(ftruncate(fd, (off_t)bytes), 0);
    for (int i = 0; i < 2; i++) {
        at[i] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        cr_assert_neq(at[i], MAP_FAILED);
    }
    close(fd);
}

Test(collection, works_at_two_addresses)
{
    for (uint32_t k = 0; qn_collection_types[k] != NULL; k++) {
        const struct qn_collection_opts o = {.type = qn_collection_types[k],
                                             .clients = 2,
                                             .capacity = 9,
                                             .ring = 2};
        struct qn_collection q[2];
        struct qn_collection_client c[2];
        void *at[2];
        map_twice(qn_collection_bytes(&o), at);
        cr_assert_eq(qn_collection_format(at[0], &o), QN_OK);
        for (int i = 0; i < 2; i++) {
            cr_assert_eq(qn_collection_open(&q[i], at[i]), QN_OK);
            cr_assert_eq(qn_collection_join(&q[i], &c[i], NULL), QN_OK);
        }
        for (uint64_t i = 0; i < 100; i++) {
            uint64_t value = 0;
            cr_assert_eq(qn_collection_put(&c[i & 1], i), QN_OK);
            cr_assert_eq(qn_collection_take(&c[~i & 1], &value), QN_OK);
            cr_assert_eq(value, i, "%s", o.type->name);
        }
        qn_collection_leave(&c[0]);
        qn_collection_leave(&c[1]);
        munmap(at[0], qn_collection_bytes(&o));
        munmap(at[1], qn_collection_bytes(&o));
    }
}
