/*
 * HybLock and HybComb with threads, each on a node of a device of words, of
 * either kind.
 */
#include <pthread.h>
#include <sched.h>

#include "core/base/err.h"
#include "core/sync/delegate/delegate.h"
#include "core/sync/delegate/server.h"
#include "tests/unit/core/sync/port_world.h"

#ifdef __SANITIZE_THREAD__
#define ROUNDS 300u
#else
#define ROUNDS 1000u
#endif
#define MOST PORTS_MAX

struct worker {
    pthread_t thread;
    struct world *w;
    uint32_t number;
    bool ordered; /* its results were distinct, and in order */
};

struct world {
    struct port_world words;
    uint32_t threads;
    void (*work)(struct worker *me);
    uint64_t counter[2]; /* plain */
    void *lock[2];
    struct qn_delegate d;
    void *object;
    uint64_t batches, served;
    qn_a32 ended; /* clients of a server */
    qn_a32 servers_ended;
    pthread_mutex_t sums;
    struct worker worker[MOST];
};

static struct world world;

static void *main_of(void *arg)
{
    struct worker *me = arg;
    me->w->work(me);
    return NULL;
}

static void run_all(struct world *w)
{
    pthread_mutex_init(&w->sums, NULL);
    for (uint32_t i = 0; i < w->threads; i++) {
        struct worker *me = &w->worker[i];
        *me = (struct worker){.w = w, .number = i, .ordered = true};
        cr_assert_eq(pthread_create(&me->thread, NULL, main_of, me), 0);
    }
    for (uint32_t i = 0; i < w->threads; i++) {
        pthread_join(w->worker[i].thread, NULL);
        cr_expect(w->worker[i].ordered);
    }
}

static void make(struct world *w, const struct qn_device_type *type,
                 uint32_t threads, void (*work)(struct worker *me))
{
    memset(w, 0, sizeof *w);
    port_world_make(&w->words, type, threads, true);
    w->threads = threads;
    w->work = work;
}

static const struct qn_device_type *const types[] = {&qn_words_shared,
                                                     &qn_words_split};

/* ---- HybLock ---- */

static void *make_lock(uint32_t clients)
{
    const struct qn_lock_type *type = qn_lock_find("hyblock");
    const struct qn_lock_opts o = {.clients = clients};
    void *memory = lines_of(qn_lock_bytes(type, &o));
    cr_assert_eq(qn_lock_format(type, memory, &o), QN_OK);
    return memory;
}

static void join_lock(struct worker *me, uint32_t which,
                      struct qn_lock_client *c)
{
    while (qn_lock_join(qn_lock_find("hyblock"), me->w->lock[which],
                        &me->w->words.port[me->number], c) == QN_EAGAIN) {
        sched_yield();
    }
}

static void count_under_lock(struct worker *me)
{
    struct qn_lock_client c;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        if (i % 16 == 0) {
            join_lock(me, 0, &c);
        }
        if (i % 8 != 7 || !qn_lock_try_acquire(&c)) {
            qn_lock_acquire(&c);
        }
        me->w->counter[0]++;
        qn_lock_release(&c);
        if (i % 16 == 15 || i == ROUNDS - 1) {
            qn_lock_leave(&c);
        }
    }
}

static void locks_count(uint32_t threads, uint32_t clients)
{
    for (uint32_t t = 0; t < 2; t++) {
        make(&world, types[t], threads, count_under_lock);
        world.lock[0] = make_lock(clients);
        run_all(&world);
        cr_expect_eq(world.counter[0], threads * ROUNDS, "%lu",
                     world.counter[0]);
        free(world.lock[0]);
        port_world_free(&world.words);
    }
}

Test(words_users, hyblock_has_one_holder, .timeout = 100)
{
    locks_count(16, 16);
}

Test(words_users, clients_of_hyblock_come_and_go, .timeout = 100)
{
    locks_count(6, 3);
}

/* Even threads hold the first lock only; odd ones the second inside of it, or
 * alone. */
static void count_nested(struct worker *me)
{
    struct qn_lock_client c[2];
    join_lock(me, 0, &c[0]);
    join_lock(me, 1, &c[1]);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const bool outer = i % 3 != 0;
        const bool inner = i % 2 != 0 || !outer;
        if (outer) {
            qn_lock_acquire(&c[0]);
            me->w->counter[0]++;
        }
        if (inner) {
            qn_lock_acquire(&c[1]);
            me->w->counter[1]++;
            qn_lock_release(&c[1]);
        }
        if (outer) {
            qn_lock_release(&c[0]);
        }
    }
    qn_lock_leave(&c[0]);
    qn_lock_leave(&c[1]);
}

Test(words_users, nested_hyblocks_on_one_port_have_one_holder_each,
     .timeout = 100)
{
    for (uint32_t t = 0; t < 2; t++) {
        make(&world, types[t], 6, count_nested);
        world.lock[0] = make_lock(6);
        world.lock[1] = make_lock(6);
        run_all(&world);
        uint64_t outer = 0;
        uint64_t inner = 0;
        for (uint32_t i = 0; i < ROUNDS; i++) {
            outer += i % 3 != 0;
            inner += i % 2 != 0 || i % 3 == 0;
        }
        cr_expect_eq(world.counter[0], 6 * outer);
        cr_expect_eq(world.counter[1], 6 * inner);
        free(world.lock[0]);
        free(world.lock[1]);
        port_world_free(&world.words);
    }
}

Test(words_users, a_lock_over_words_needs_a_port_with_room)
{
    struct qn_lock_client c;
    make(&world, &qn_words_shared, 2, NULL);
    struct qn_sync_port *p = &world.words.port[0];
    void *memory = make_lock(2);
    const struct qn_lock_type *type = qn_lock_find("hyblock");
    cr_expect_eq(qn_lock_join(type, memory, NULL, &c), QN_EINVAL);
    cr_assert_eq(qn_sync_promise(p, 117), QN_OK);
    cr_expect_eq(qn_lock_join(type, memory, p, &c), QN_EDQUOT);
    qn_sync_promise_back(p, 117);
    cr_assert_eq(qn_lock_join(type, memory, p, &c), QN_OK);
    cr_expect_eq(qn_lock_acquire_until(&c, 0), QN_ENOSYS);
    cr_expect(qn_lock_try_acquire(&c));
    qn_lock_release(&c);
    qn_lock_leave(&c);
    free(memory);
    port_world_free(&world.words);
}

/* ---- HybComb ---- */

#define ADD 7u

static uint64_t operate(void *ctx, uint32_t op, uint64_t arg)
{
    cr_assert_eq(op, ADD);
    struct world *w = ctx;
    w->counter[0] += arg;
    return w->counter[0];
}

static void make_object(struct world *w, const char *name,
                        struct qn_delegate_opts o, qn_delegate_fn *run)
{
    o.type = qn_delegate_find(name);
    w->object = lines_of(qn_delegate_bytes(&o));
    cr_assert_eq(qn_delegate_format(w->object, &o), QN_OK);
    cr_assert_eq(qn_delegate_open(&w->d, w->object, run, w), QN_OK);
}

static void join_object(struct worker *me, struct qn_delegate_client *c)
{
    const struct qn_delegate_join_opts o = {.port =
                                                &me->w->words.port[me->number]};
    int rc;
    while ((rc = qn_delegate_join(&me->w->d, c, &o)) == QN_EAGAIN) {
        sched_yield();
    }
    cr_assert_eq(rc, QN_OK, "%s", qn_strerror(rc));
}

static void leave_object(struct worker *me, struct qn_delegate_client *c)
{
    const struct qn_delegate_stats s = qn_delegate_stats_of(&me->w->d, c);
    qn_delegate_leave(&me->w->d, c);
    pthread_mutex_lock(&me->w->sums);
    me->w->batches += s.batches;
    me->w->served += s.served;
    pthread_mutex_unlock(&me->w->sums);
}

static void add(struct worker *me)
{
    struct qn_delegate_client c;
    uint64_t before = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint64_t now = 0;
        if (i % 64 == 0) {
            join_object(me, &c);
        }
        cr_assert_eq(qn_delegate(&me->w->d, &c, ADD, 1, &now), QN_OK);
        me->ordered &= now > before;
        before = now;
        if (i % 64 == 63 || i == ROUNDS - 1) {
            leave_object(me, &c);
        }
    }
}

static void adds(uint32_t threads, uint32_t clients, uint32_t batch)
{
    for (uint32_t t = 0; t < 2; t++) {
        make(&world, types[t], threads, add);
        make_object(
            &world, "hyb_comb",
            (struct qn_delegate_opts){.clients = clients, .batch = batch},
            operate);
        run_all(&world);
        cr_expect_eq(world.counter[0], threads * ROUNDS, "%lu",
                     world.counter[0]);
        cr_expect_eq(world.served, threads * ROUNDS, "%lu", world.served);
        cr_expect(world.batches > 0 && world.batches <= world.served);
        free(world.object);
        port_world_free(&world.words);
    }
}

Test(words_users, hyb_comb_runs_each_operation_once, .timeout = 100)
{
    adds(16, 16, 0);
}

Test(words_users, hyb_comb_with_a_batch_of_1, .timeout = 100)
{
    adds(5, 5, 1);
}

/* A node is closed by this number, which is the largest there is. */
Test(words_users, hyb_comb_with_the_longest_batch, .timeout = 100)
{
    adds(16, 16, UINT32_MAX);
}

Test(words_users, clients_of_hyb_comb_come_and_go, .timeout = 100)
{
    adds(6, 3, 2);
}

Test(words_users, hyb_comb_alone_costs_no_message)
{
    struct qn_delegate_client c;
    uint64_t result = 0;
    make(&world, &qn_words_shared, 2, NULL);
    make_object(&world, "hyb_comb", (struct qn_delegate_opts){.clients = 1},
                operate);
    struct worker me = {.w = &world};
    join_object(&me, &c);
    for (uint32_t i = 1; i <= 1000; i++) {
        cr_assert_eq(qn_delegate(&world.d, &c, ADD, 1, &result), QN_OK);
        cr_assert_eq(result, i);
    }
    const struct qn_delegate_stats s = qn_delegate_stats_of(&world.d, &c);
    cr_expect_eq(s.cas, 1000);
    cr_expect_eq(s.cas_failed, 0);
    cr_expect_eq(s.batches, 1000);
    qn_delegate_leave(&world.d, &c);
    free(world.object);
    port_world_free(&world.words);
}

/* 3 words of each of min(clients - 1, batch) others. */
Test(words_users, hyb_comb_refuses_what_may_block_on_a_shared_device)
{
    static const struct {
        uint32_t clients, batch;
        int shared;
    } row[] = {{40, 0, QN_OK},      {41, 0, QN_EDQUOT}, {41, 39, QN_OK},
               {41, 40, QN_EDQUOT}, {1024, 1, QN_OK},   {1024, 0, QN_EDQUOT}};
    for (uint32_t t = 0; t < 2; t++) {
        make(&world, types[t], 42, NULL);
        for (uint32_t i = 0; i < sizeof row / sizeof *row; i++) {
            struct qn_delegate_client c;
            const struct qn_delegate_join_opts o = {.port =
                                                        &world.words.port[0]};
            make_object(&world, "hyb_comb",
                        (struct qn_delegate_opts){.clients = row[i].clients,
                                                  .batch = row[i].batch},
                        operate);
            cr_expect_eq(qn_delegate_join(&world.d, &c, NULL), QN_EINVAL);
            const int rc = qn_delegate_join(&world.d, &c, &o);
            cr_expect_eq(rc, t == 0 ? row[i].shared : QN_OK, "row %u: %s", i,
                         qn_strerror(rc));
            if (rc == QN_OK) {
                qn_delegate_leave(&world.d, &c);
            }
            free(world.object);
        }
        port_world_free(&world.words);
    }
}

/* ---- MP-Server ---- */

#define SERVERS 2u

/* The first threads serve in turn, as often as a move is asked for, until all
 * clients have ended. */
static void serve_in_turn(struct worker *me)
{
    struct qn_delegate_server s = {.port = &me->w->words.port[me->number]};
    while (qn_load(&me->w->ended, QN_ACQUIRE) + SERVERS < me->w->threads) {
        const int rc = qn_delegate_serve(&me->w->d, &s);
        if (rc == QN_EBUSY) {
            sched_yield();
        } else {
            cr_assert_eq(rc, QN_OK, "%s", qn_strerror(rc));
        }
    }
    pthread_mutex_lock(&me->w->sums);
    me->w->served += s.stats.served;
    pthread_mutex_unlock(&me->w->sums);
    qn_fetch_add(&me->w->servers_ended, 1, QN_ACQ_REL);
}

static void submit_all(struct worker *me, struct qn_delegate_client *c)
{
    uint64_t before = 0;
    for (uint32_t i = 0; i < ROUNDS / 8; i++) {
        uint64_t now;
        for (uint32_t k = 0; k < QN_SERVER_OPEN; k++) {
            cr_assert_eq(qn_delegate_submit(&me->w->d, c, ADD, 1), QN_OK);
        }
        cr_assert_eq(qn_delegate_submit(&me->w->d, c, ADD, 1), QN_EAGAIN);
        for (uint32_t k = 0; k < QN_SERVER_OPEN; k++) {
            cr_assert_eq(qn_delegate_collect(&me->w->d, c, &now), QN_OK);
            me->ordered &= now > before;
            before = now;
        }
        cr_assert_eq(qn_delegate_collect(&me->w->d, c, &now), QN_ENOENT);
    }
}

static void call_all(struct worker *me, struct qn_delegate_client *c)
{
    uint64_t before = 0;
    for (uint32_t i = 0; i < ROUNDS / 8 * 8; i++) {
        uint64_t now = 0;
        cr_assert_eq(qn_delegate(&me->w->d, c, ADD, 1, &now), QN_OK);
        me->ordered &= now > before;
        before = now;
        if (i % 100 == 99) {
            (void)qn_delegate_stop(&me->w->d); /* the next one serves */
        }
    }
}

static void serve_or_ask(struct worker *me)
{
    if (me->number < SERVERS) {
        serve_in_turn(me);
        return;
    }
    struct qn_delegate_client c;
    join_object(me, &c);
    if (me->number % 2 == 0) {
        submit_all(me, &c);
    } else {
        call_all(me, &c);
    }
    qn_delegate_leave(&me->w->d, &c);
    /* release -> serve_in_turn. */
    const uint32_t last = me->w->threads - SERVERS - 1;
    if (qn_fetch_add(&me->w->ended, 1, QN_ACQ_REL) == last) {
        /* One may take the endpoint just behind a stop. */
        while (qn_load(&me->w->servers_ended, QN_ACQUIRE) < SERVERS) {
            (void)qn_delegate_stop(&me->w->d);
            sched_yield();
        }
    }
}

static void served_by_words(uint32_t threads)
{
    for (uint32_t t = 0; t < 2; t++) {
        const uint64_t all = (threads - SERVERS) * (ROUNDS / 8 * 8);
        make(&world, types[t], threads, serve_or_ask);
        make_object(&world, "mp_server",
                    (struct qn_delegate_opts){.clients = threads - SERVERS},
                    operate);
        run_all(&world);
        cr_expect_eq(world.counter[0], all, "%lu", world.counter[0]);
        cr_expect_eq(world.served, all, "%lu", world.served);
        free(world.object);
        port_world_free(&world.words);
    }
}

Test(words_users, mp_servers_that_move_answer_every_request, .timeout = 100)
{
    served_by_words(6);
}

/* 3 words of each: more than a core has room for. */
Test(words_users, mp_server_of_41_clients_on_one_queue, .timeout = 100)
{
    struct qn_delegate_server s;
    uint64_t result = 0;
    make(&world, &qn_words_shared, 42, NULL);
    make_object(&world, "mp_server", (struct qn_delegate_opts){.clients = 41},
                operate);
    static struct qn_delegate_client c[41];
    s = (struct qn_delegate_server){.port = &world.words.port[41]};
    cr_assert_eq(qn_delegate_poll(&world.d, &s), 0);
    for (uint32_t i = 0; i < 41; i++) {
        struct worker me = {.w = &world, .number = i};
        join_object(&me, &c[i]);
    }
    for (uint32_t i = 0; i < 39; i++) {
        cr_assert_eq(qn_delegate_submit(&world.d, &c[i], ADD, 1), QN_OK);
    }
    const struct qn_words_target to = {41, world.words.port[41].queue};
    cr_expect_lt(qn_words_room(world.words.device[0], to), QN_SYNC_WORDS);
    cr_expect_eq(qn_delegate_poll(&world.d, &s), 39);
    for (uint32_t i = 0; i < 39; i++) {
        cr_assert_eq(qn_delegate_collect(&world.d, &c[i], &result), QN_OK);
        cr_expect_eq(result, i + 1);
    }
    for (uint32_t i = 0; i < 41; i++) {
        qn_delegate_leave(&world.d, &c[i]);
    }
    cr_assert_eq(qn_delegate_stop(&world.d), QN_OK);
    cr_assert_eq(qn_delegate_poll(&world.d, &s), QN_EGONE);
    free(world.object);
    port_world_free(&world.words);
}

Test(words_users, mp_server_of_41_threads_on_one_queue, .timeout = 100)
{
    served_by_words(PORTS_MAX);
}

Test(words_users, a_server_with_another_use_of_its_core_promises_its_room)
{
    struct qn_delegate_server s = {0};
    make(&world, &qn_words_shared, 42, NULL);
    make_object(&world, "mp_server", (struct qn_delegate_opts){.clients = 41},
                operate);
    cr_expect_eq(qn_delegate_poll(&world.d, &s), QN_EINVAL);
    s.port = &world.words.port[0];
    cr_assert_eq(qn_sync_promise(s.port, 1), QN_OK);
    cr_expect_eq(qn_delegate_poll(&world.d, &s), QN_EDQUOT);
    qn_sync_promise_back(s.port, 1);
    cr_assert_eq(qn_delegate_poll(&world.d, &s), 0);
    cr_expect_eq(qn_sync_promise(s.port, 1), QN_EDQUOT);
    cr_assert_eq(qn_delegate_stop(&world.d), QN_OK);
    cr_assert_eq(qn_delegate_poll(&world.d, &s), QN_EGONE);
    free(world.object);
    port_world_free(&world.words);
}
