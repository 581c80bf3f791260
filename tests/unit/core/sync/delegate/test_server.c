/*
 * Servers, one thread: requests are submitted, a poll runs them. Then every
 * step is known.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/sync/clients.h"
#include "core/sync/delegate/shm_server_internal.h"
#include "tests/support/test.h"
#include "tests/unit/core/sync/delegate/delegate_world.h"

static const struct qn_server_opts forms[] = {
    {.pause = QN_SERVER_ADAPTIVE},
    {.pause = QN_SERVER_NONE, .stride = 2, .group_replies = true},
    {.pause = QN_SERVER_FIXED, .pause_ns = 100, .only_server_uses_data = true},
    {.stride = 1, .group_replies = true, .only_server_uses_data = true},
    {.stride = 2, .scattered = true},
};

static struct qn_delegate_opts served(uint32_t clients, uint32_t domains,
                                      const struct qn_server_opts *s)
{
    return (struct qn_delegate_opts){.type = qn_delegate_find("shm_server"),
                                     .clients = clients,
                                     .domains = domains,
                                     .server = *s};
}

static void submits(struct world *w, struct qn_delegate_client *c, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_eq(qn_delegate_submit(&w->d, c, ADD, 1), QN_OK);
    }
}

static void collects(struct world *w, struct qn_delegate_client *c,
                     uint64_t first, uint32_t n)
{
    uint64_t result;
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_eq(qn_delegate_collect(&w->d, c, &result), QN_OK);
        cr_assert_eq(result, first + i);
    }
    cr_assert_eq(qn_delegate_collect(&w->d, c, &result), QN_ENOENT);
}

/* One client and one server of an object. */
struct pair {
    struct world w;
    struct qn_delegate_client c;
    struct qn_delegate_server s;
};

static void pair_make(struct pair *p, const struct qn_server_opts *form)
{
    const struct qn_delegate_opts o = served(1, 1, form);
    *p = (struct pair){.s = {0}};
    world_make(&p->w, &o);
    cr_assert_eq(qn_delegate_join(&p->w.d, &p->c, NULL), QN_OK);
}

static void pair_free(struct pair *p)
{
    qn_delegate_leave(&p->w.d, &p->c);
    world_free(&p->w);
}

Test(server, results_come_in_the_order_of_submission)
{
    for (uint32_t f = 0; f < QN_ARRAY_COUNT(forms); f++) {
        struct world w;
        struct qn_delegate_client c;
        struct qn_delegate_server s = {0};
        uint64_t first = 0;
        const struct qn_delegate_opts o = served(3, 1, &forms[f]);
        world_make(&w, &o);
        cr_assert_eq(qn_delegate_join(&w.d, &c, NULL), QN_OK);
        for (uint32_t n = 1; n <= QN_SERVER_OPEN; first += n++) {
            submits(&w, &c, n);
            cr_assert_eq(qn_delegate_poll(&w.d, &s), (int)n);
            collects(&w, &c, first, n);
            cr_assert_eq(qn_delegate_poll(&w.d, &s), 0);
        }
        cr_assert_eq(s.stats.served, first);
        qn_delegate_leave(&w.d, &c);
        world_free(&w);
    }
}

Test(server, more_than_eight_on_their_way_are_refused)
{
    struct pair p;
    pair_make(&p, &forms[0]);
    submits(&p.w, &p.c, QN_SERVER_OPEN);
    cr_assert_eq(qn_delegate_submit(&p.w.d, &p.c, ADD, 1), QN_EAGAIN);
    cr_assert_eq(qn_delegate_poll(&p.w.d, &p.s), (int)QN_SERVER_OPEN);
    collects(&p.w, &p.c, 0, QN_SERVER_OPEN);
    pair_free(&p);
}

Test(server, an_operation_without_a_number_is_refused)
{
    struct pair p;
    pair_make(&p, &forms[0]);
    cr_assert_eq(qn_delegate_submit(&p.w.d, &p.c, QN_DELEGATE_OPS, 1),
                 QN_EINVAL);
    submits(&p.w, &p.c, 1);
    cr_assert_eq(qn_delegate_poll(&p.w.d, &p.s), 1);
    collects(&p.w, &p.c, 0, 1);
    pair_free(&p);
}

/* The results of a client come in the order in which it has asked. */
Test(server, a_call_is_refused_while_requests_are_on_their_way)
{
    struct pair p;
    uint64_t result;
    pair_make(&p, &forms[0]);
    submits(&p.w, &p.c, 2);
    cr_assert_eq(qn_delegate(&p.w.d, &p.c, ADD, 1, &result), QN_EBUSY);
    cr_assert_eq(qn_delegate_poll(&p.w.d, &p.s), 2);
    cr_assert_eq(qn_delegate_collect(&p.w.d, &p.c, &result), QN_OK);
    cr_assert_eq(qn_delegate(&p.w.d, &p.c, ADD, 1, &result), QN_EBUSY);
    collects(&p.w, &p.c, 1, 1);
    cr_assert_eq(qn_delegate_stats_of(&p.w.d, &p.c).operations, 2);
    pair_free(&p);
}

/* All entries in turn, with none of them ever the only one on its way. */
Test(server, entries_are_used_again_while_others_are_on_their_way)
{
    struct pair p;
    uint64_t result;
    pair_make(&p, &forms[1]);
    submits(&p.w, &p.c, 3);
    for (uint64_t i = 0; i < 100; i++) {
        cr_assert_geq(qn_delegate_poll(&p.w.d, &p.s), 0);
        cr_assert_eq(qn_delegate_collect(&p.w.d, &p.c, &result), QN_OK);
        cr_assert_eq(result, i);
        submits(&p.w, &p.c, 1);
    }
    cr_assert_eq(qn_delegate_poll(&p.w.d, &p.s), 1);
    collects(&p.w, &p.c, 100, 3);
    pair_free(&p);
}

/* Without its endpoint it would be a second executor there. */
Test(server, of_one_object_is_refused_at_another)
{
    struct world w[2];
    struct qn_delegate_server a = {0}, b = {0};
    const struct qn_delegate_opts o = served(1, 1, &forms[0]);
    world_make(&w[0], &o);
    world_make(&w[1], &o);
    cr_assert_eq(qn_delegate_poll(&w[0].d, &a), 0);
    cr_assert_eq(qn_delegate_poll(&w[1].d, &b), 0);
    cr_assert_eq(qn_delegate_poll(&w[1].d, &a), QN_EINVAL);
    cr_assert_eq(qn_delegate_serve(&w[1].d, &a), QN_EINVAL);
    cr_assert_eq(qn_delegate_stop(&w[0].d), QN_OK);
    cr_assert_eq(qn_delegate_poll(&w[0].d, &a), QN_EGONE);
    cr_assert_eq(qn_delegate_poll(&w[1].d, &a), QN_EBUSY);
    world_free(&w[0]);
    world_free(&w[1]);
}

Test(server, a_second_one_is_refused_until_the_first_has_left)
{
    struct world w;
    struct qn_delegate_server a = {0}, b = {0}, wrong = {.domain = 1};
    const struct qn_delegate_opts o = served(1, 1, &forms[0]);
    world_make(&w, &o);
    cr_assert_eq(qn_delegate_stop(&w.d), QN_ENOENT);
    cr_assert_eq(qn_delegate_poll(&w.d, &wrong), QN_EINVAL);
    cr_assert_eq(qn_delegate_poll(&w.d, &a), 0);
    cr_assert_eq(qn_delegate_serve(&w.d, &b), QN_EBUSY);
    cr_assert_eq(qn_delegate_stop(&w.d), QN_OK);
    cr_assert_eq(qn_delegate_poll(&w.d, &b), QN_EBUSY);
    cr_assert_eq(qn_delegate_poll(&w.d, &a), QN_EGONE);
    cr_assert_eq(qn_delegate_poll(&w.d, &b), 0);
    world_free(&w);
}

/* The client sends to where the former server was, and follows then. */
Test(server, a_request_that_is_late_is_run_by_the_next_server)
{
    struct world w;
    struct qn_delegate_client c;
    const struct qn_delegate_opts o = served(2, 3, &forms[0]);
    world_make(&w, &o);
    cr_assert_eq(qn_delegate_join(&w.d, &c, NULL), QN_OK);
    uint64_t first = 0;
    for (uint32_t move = 0; move < 10; move++) {
        struct qn_delegate_server s = {.domain = move % 3};
        submits(&w, &c, 2);
        cr_assert_eq(qn_delegate_poll(&w.d, &s), 2);
        collects(&w, &c, first, 2);
        submits(&w, &c, 3);
        cr_assert_eq(qn_delegate_poll(&w.d, &s), 3);
        collects(&w, &c, first + 2, 3);
        cr_assert_eq(qn_delegate_stop(&w.d), QN_OK);
        cr_assert_eq(qn_delegate_poll(&w.d, &s), QN_EGONE);
        first += 5;
    }
    qn_delegate_leave(&w.d, &c);
    world_free(&w);
}

/* A place goes on where its former client ended, in whichever entry. */
Test(server, places_are_given_again)
{
    struct world w;
    struct qn_delegate_client c[2], more;
    struct qn_delegate_server s = {0};
    const struct qn_delegate_opts o = served(2, 1, &forms[3]);
    world_make(&w, &o);
    uint64_t first = 0;
    for (uint32_t i = 0; i < 20; i++) {
        cr_assert_eq(qn_delegate_join(&w.d, &c[0], NULL), QN_OK);
        cr_assert_eq(qn_delegate_join(&w.d, &c[1], NULL), QN_OK);
        cr_assert_eq(qn_delegate_join(&w.d, &more, NULL), QN_EAGAIN);
        submits(&w, &c[i % 2], 1 + i % 5);
        cr_assert_eq(qn_delegate_poll(&w.d, &s), (int)(1 + i % 5));
        collects(&w, &c[i % 2], first, 1 + i % 5);
        first += 1 + i % 5;
        qn_delegate_leave(&w.d, &c[1]);
        qn_delegate_leave(&w.d, &c[0]);
    }
    world_free(&w);
}

/* Counts of requests run freely; here they begin near their end. */
Test(server, requests_are_counted_beyond_32_bits)
{
    struct world w;
    struct qn_delegate_client c;
    struct qn_delegate_server s = {0};
    const struct qn_delegate_opts o = served(1, 1, &forms[0]);
    const uint32_t late = UINT32_MAX - 10;
    world_make(&w, &o);
    const struct qn_backend *b = &w.d.at[0];
    const struct qn_shm_layout l = qn_shm_layout_of(&b->o);
    qn_store(&qn_shm_lines_of(b, &l, 0, 0).slot->request,
             (uint64_t)late << 32 | late, QN_RELAXED);
    qn_store(&qn_shm_served(b, &l)[0], late, QN_RELAXED);
    cr_assert_eq(qn_delegate_join(&w.d, &c, NULL), QN_OK);
    for (uint64_t first = 0; first < 30; first += 3) {
        submits(&w, &c, 3);
        cr_assert_eq(qn_delegate_poll(&w.d, &s), 3);
        collects(&w, &c, first, 3);
    }
    qn_delegate_leave(&w.d, &c);
    world_free(&w);
}

/* Those of one domain share lines, so each domain has its places. */
Test(server, grouped_replies_give_each_domain_its_share)
{
    struct world w;
    struct qn_delegate_client c[4];
    struct qn_delegate_server s = {0};
    const struct qn_delegate_join_opts second = {.domain = 1};
    const struct qn_delegate_opts o = served(3, 2, &forms[1]);
    world_make(&w, &o);
    cr_assert_eq(qn_delegate_join(&w.d, &c[0], NULL), QN_OK);
    cr_assert_eq(qn_delegate_join(&w.d, &c[1], NULL), QN_EAGAIN);
    cr_assert_eq(qn_delegate_join(&w.d, &c[1], &second), QN_OK);
    cr_assert_eq(qn_delegate_join(&w.d, &c[2], &second), QN_OK);
    cr_assert_eq(qn_delegate_join(&w.d, &c[3], &second), QN_EAGAIN);
    for (uint32_t i = 0; i < 3; i++) { /* each has a slot of its own */
        submits(&w, &c[i], 1);
    }
    cr_assert_eq(qn_delegate_poll(&w.d, &s), 3);
    for (uint32_t i = 0; i < 3; i++) {
        collects(&w, &c[i], i, 1);
    }
    world_free(&w);
}

Test(server, a_result_has_63_bits)
{
    struct world w;
    struct qn_delegate_client c;
    struct qn_delegate_server s = {0};
    uint64_t result;
    const struct qn_delegate_opts o = served(1, 1, &forms[0]);
    world_make(&w, &o);
    cr_assert_eq(qn_delegate_join(&w.d, &c, NULL), QN_OK);
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(qn_delegate_submit(&w.d, &c, TOP, 0), QN_OK);
        cr_assert_eq(qn_delegate_poll(&w.d, &s), 1);
        cr_assert_eq(qn_delegate_collect(&w.d, &c, &result), QN_OK);
        cr_assert_eq(result, QN_DELEGATE_VALUE);
    }
    world_free(&w);
}

Test(server, options_out_of_range_are_refused)
{
    const struct qn_server_opts bad[] = {
        {.stride = 3},
        {.pause = QN_SERVER_NONE + 1},
        {.pause = QN_SERVER_FIXED},
        {.group_replies = true}, /* a domain without a place */
    };
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(bad); i++) {
        const struct qn_delegate_opts o = served(1, 2, &bad[i]);
        cr_assert_eq(qn_delegate_bytes(&o), 0, "%u", i);
    }
}

/* Each client has a slot of its own; neighbours lie far apart. */
Test(server, scattered_slots_are_far_apart_and_all_different)
{
    enum { CLIENTS = 158, FAR = 32 * QN_CACHELINE };
    const struct qn_server_opts form = {.stride = 2, .scattered = true};
    struct qn_backend b = {.o = served(CLIENTS, 1, &form), .memory = NULL};
    const struct qn_shm_layout l = qn_shm_layout_of(&b.o);
    char *memory = aligned_alloc(QN_CACHELINE, l.bytes);
    b.memory = memory;
    cr_assert_not_null(memory);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        const char *at = (char *)qn_shm_lines_of(&b, &l, 0, i).slot;
        cr_assert_leq(at + sizeof(struct qn_shm_slot),
                      memory + l.copies + l.grouped);
        for (uint32_t j = 0; j < i; j++) {
            const char *other = (char *)qn_shm_lines_of(&b, &l, 0, j).slot;
            const ptrdiff_t apart = at > other ? at - other : other - at;
            cr_assert_geq(apart, j + 1 == i ? FAR : 2 * QN_CACHELINE,
                          "%u and %u", j, i);
        }
    }
    free(memory);
}

Test(server, backends_without_one_refuse)
{
    struct world w;
    struct qn_delegate_client c;
    struct qn_delegate_server s = {0};
    uint64_t result;
    const struct qn_delegate_opts o = {.type = qn_delegate_find("cc_synch"),
                                       .clients = 1};
    world_make(&w, &o);
    cr_assert_eq(qn_delegate_join(&w.d, &c, NULL), QN_OK);
    cr_assert_eq(qn_delegate_serve(&w.d, &s), QN_ENOSYS);
    cr_assert_eq(qn_delegate_poll(&w.d, &s), QN_ENOSYS);
    cr_assert_eq(qn_delegate_stop(&w.d), QN_ENOSYS);
    cr_assert_eq(qn_delegate_submit(&w.d, &c, ADD, 1), QN_ENOSYS);
    cr_assert_eq(qn_delegate_collect(&w.d, &c, &result), QN_ENOSYS);
    qn_delegate_leave(&w.d, &c);
    world_free(&w);
}

/* The thread has a client of its own at the object that it serves. */
Test(server, that_asks_its_own_object_is_refused)
{
    struct world w;
    struct qn_delegate_client c, own;
    struct qn_delegate_server s = {.client = &own};
    uint64_t result;
    const struct qn_delegate_opts o = served(2, 1, &forms[0]);
    world_make(&w, &o);
    w.nested = &own;
    cr_assert_eq(qn_delegate_join(&w.d, &c, NULL), QN_OK);
    cr_assert_eq(qn_delegate_join(&w.d, &own, NULL), QN_OK);
    cr_assert_eq(qn_delegate_submit(&w.d, &c, NEST, 0), QN_OK);
    cr_assert_eq(qn_delegate_poll(&w.d, &s), 1);
    cr_assert_eq(qn_delegate_collect(&w.d, &c, &result), QN_OK);
    cr_expect_eq((int)-result, QN_EDEADLK);
    cr_expect_eq(qn_delegate(&w.d, &own, ADD, 1, &result), QN_EDEADLK);
    cr_expect_eq(qn_delegate_submit(&w.d, &own, ADD, 1), QN_EDEADLK);
    cr_expect_eq(qn_delegate_collect(&w.d, &own, &result), QN_EDEADLK);
    struct qn_delegate_server nested = {.client = &own};
    cr_expect_eq(qn_delegate_poll(&w.d, &nested), QN_EDEADLK);
    cr_assert_eq(qn_delegate_stop(&w.d), QN_OK);
    cr_assert_eq(qn_delegate_poll(&w.d, &s), QN_EGONE);
    s.client = NULL;
    submits(&w, &own, 1);
    cr_assert_eq(qn_delegate_poll(&w.d, &s), 1);
    collects(&w, &own, 0, 1);
    qn_delegate_leave(&w.d, &c);
    qn_delegate_leave(&w.d, &own);
    world_free(&w);
}
