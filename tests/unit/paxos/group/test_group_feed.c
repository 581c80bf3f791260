/*
 * The change feed of a group: what a program is told, and subscribers in
 * processes that are killed and come back with the positions that they have
 * stored.
 *
 * QN_FEED_SEEDS=100 runs as many.
 */
#include "paxos/group/group_feed.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/group/group_world.h"

enum { MEMBERS = 3, KILLS = 4, BURST = 60 };

#define LONG ((uint64_t)60 * 1000000000)

static struct group_world w;

static void init(void)
{
    group_world_begin(&w, MEMBERS);
}

static void fini(void)
{
    group_world_end(&w);
}

#define CASE(name)                                                             \
    Test(group_feed, name, .init = init, .fini = fini, .timeout = 300)

/* ---- one member ---------------------------------------------------------- */

static const struct qn_feed_opts few = {
    .bytes = 4096, .records = 4, .subscribers = 1, .retain = true};

struct alone {
    struct qn_group *group;
    uint64_t sum;
    uint32_t left;
    int inside; /* what a read inside of apply returns */
};

static int add(void *ctx, const struct qn_group_command *c, uint64_t *result)
{
    struct alone *a = ctx;
    struct qn_feed_record r;
    a->inside = qn_group_feed_read(a->group, 0, &r);
    *result = a->sum += c->len;
    return QN_OK;
}

static void done(void *ctx, int err, uint64_t result)
{
    (void)result;
    cr_assert_eq(err, QN_OK);
    ((struct alone *)ctx)->left--;
}

static void until_serving(struct alone *a)
{
    struct qn_group_status st = {.phase = QN_GROUP_MEETING};
    while (st.phase != QN_GROUP_SERVING) {
        cr_assert_geq(qn_group_turn(a->group), 0);
        qn_group_status(a->group, &st);
    }
}

static void join_alone(struct alone *a, const struct qn_feed_opts *o)
{
    w.opts.members = w.opts.capacity = 1;
    w.opts.feed = o;
    w.opts.service = (struct qn_group_service){.apply = add, .ctx = a};
    cr_assert_eq(qn_group_join(&a->group, &w.opts), QN_OK);
}

static void propose(struct alone *a, const char *text)
{
    cr_assert_eq(qn_group_propose(a->group, text, strlen(text), LONG, done, a),
                 QN_OK);
    a->left++;
    while (a->left > 0) {
        cr_assert_geq(qn_group_turn(a->group), 0);
    }
}

CASE(what_is_applied_comes_in_order_with_its_origin)
{
    struct alone a = {.sum = 0};
    struct qn_feed_record r;
    struct qn_feed_position at;
    uint32_t id = 7;
    join_alone(&a, &few);
    cr_expect_eq(qn_group_feed_subscribe(a.group, NULL, &id), QN_EAGAIN);
    until_serving(&a);
    cr_assert_eq(qn_group_feed_subscribe(a.group, NULL, &id), QN_OK);
    cr_expect_eq(qn_group_feed_read(a.group, id, &r), QN_EAGAIN);
    propose(&a, "one");
    cr_expect_eq(a.inside, QN_EBUSY);
    propose(&a, "three");
    const char *text[] = {"one", "three"};
    for (uint64_t k = 0; k < 2; k++) {
        cr_assert_eq(qn_group_feed_read(a.group, id, &r), QN_OK);
        cr_assert_eq(r.kind, QN_FEED_COMMAND);
        cr_assert_eq(r.bytes.len, strlen(text[k]));
        cr_assert_arr_eq(r.bytes.data, text[k], strlen(text[k]));
        cr_assert_eq(r.seq, k + 1);
        cr_assert_eq(r.origin, 0u);
        cr_assert_neq(r.stamp_ms, 0u);
    }
    cr_assert_eq(qn_group_feed_position(a.group, id, &at), QN_OK);
    cr_assert_geq(qn_feed_compare(at, r.to), 0);
    cr_assert_eq(qn_group_feed_unsubscribe(a.group, id), QN_OK);
    cr_assert_eq(qn_group_feed_subscribe(a.group, &at, &id), QN_OK);
    cr_expect_eq(qn_group_feed_read(a.group, id, &r), QN_EAGAIN);
    qn_group_leave(a.group);
}

CASE(what_is_cut_is_told_with_the_first_that_can_be_had)
{
    struct alone a = {.sum = 0};
    struct qn_feed_record r;
    struct qn_feed_status st;
    struct qn_group_needs needs;
    uint32_t id;
    join_alone(&a, &few);
    cr_assert_eq(qn_group_needs(&w.opts, &needs), QN_OK);
    cr_expect_eq(needs.feed, qn_feed_bytes(&few));
    until_serving(&a);
    cr_assert_eq(qn_group_feed_subscribe(a.group, NULL, &id), QN_OK);
    for (uint32_t k = 0; k < few.records + 2; k++) {
        propose(&a, "x");
    }
    cr_expect_eq(qn_group_feed_read(a.group, id, &r), QN_EGONE);
    cr_assert_eq(qn_group_feed_status(a.group, &st), QN_OK);
    cr_expect_eq(st.gone, 1u);
    cr_assert_eq(qn_group_feed_seek(a.group, id, &st.first), QN_OK);
    for (uint32_t k = 0; k < few.records; k++) {
        cr_assert_eq(qn_group_feed_read(a.group, id, &r), QN_OK);
        cr_assert_eq(r.seq, (uint64_t)k + 3);
    }
    cr_expect_eq(qn_group_feed_read(a.group, id, &r), QN_EAGAIN);
    uint32_t other;
    cr_expect_eq(qn_group_feed_subscribe(a.group, NULL, &other), QN_EDQUOT);
    qn_group_leave(a.group);
}

CASE(a_group_without_a_feed_says_so)
{
    struct alone a = {.sum = 0};
    struct qn_feed_status st;
    const struct qn_feed_opts none = {.bytes = 1, .records = 0};
    w.opts.members = w.opts.capacity = 1;
    w.opts.feed = &none;
    w.opts.service = (struct qn_group_service){.apply = add, .ctx = &a};
    cr_expect_eq(qn_group_join(&a.group, &w.opts), QN_EINVAL);
    join_alone(&a, NULL);
    cr_expect_eq(qn_group_feed_status(a.group, &st), QN_ENOSYS);
    qn_group_leave(a.group);
}

/* ---- processes ----------------------------------------------------------- */

static bool serves(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.phase == QN_GROUP_SERVING;
}

static bool has_ended(const struct group_world_report *r, uint64_t n)
{
    return r->applied + r->unknown >= n;
}

static bool has_commands(const struct group_world_report *r, uint64_t n)
{
    return r->state.commands >= n;
}

static uint64_t draw(uint64_t *seed, uint64_t n)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (*seed >> 33) % n;
}

/* All that the process's subscriber has not seen lies in a gap that it was
 * told. */
static void expect_all_seen(uint32_t i)
{
    const struct group_world_kept *k = &w.shared->kept[i];
    cr_expect_eq(k->disorder, 0);
    cr_expect_gt(k->seen, 0);
    for (uint32_t c = 0; c < GROUP_WORLD_COMMANDS; c++) {
        const uint64_t slot = w.shared->slot[c];
        bool told = slot == 0 || k->has[c] != 0;
        for (uint32_t n = 0; n < k->gaps && !told; n++) {
            told = slot >= k->gap[n].at.slot && slot < k->gap[n].to.slot + 1;
        }
        cr_assert(told, "process %u: command %u in slot %lu", i, c,
                  (unsigned long)slot);
    }
}

/* One is killed while all propose, and comes back; some after much that it
 * missed. @return gaps that were told. */
static uint64_t run(uint64_t seed)
{
    uint64_t gaps = 0;
    const struct qn_feed_opts o = {.bytes = 1 << 16,
                                   .records = seed % 2 != 0 ? 20 : 4000,
                                   .subscribers = 1,
                                   .retain = true};
    uint64_t asked[MEMBERS] = {0};
    group_world_follow(&w, &o);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        w.shared->kept[i].at.slot = 1;
        group_world_start(&w, i);
    }
    for (uint32_t n = 0; n <= KILLS; n++) {
        const uint32_t i = (uint32_t)draw(&seed, MEMBERS);
        for (uint32_t k = 0; k < MEMBERS; k++) {
            group_world_wait(&w, k, serves, 0);
            group_world_propose(&w, k, BURST, LONG);
            asked[k] += BURST;
        }
        if (n == KILLS) {
            break;
        }
        group_world_wait(&w, i, has_ended, asked[i] - draw(&seed, BURST));
        group_world_kill(&w, i);
        asked[i] = 0;
        for (uint32_t k = 0; k < MEMBERS; k++) {
            if (k != i) {
                group_world_wait(&w, k, has_ended, asked[k]);
            }
        }
        group_world_start(&w, i);
    }
    uint64_t most = 0;
    for (uint32_t k = 0; k < MEMBERS; k++) {
        group_world_wait(&w, k, has_ended, asked[k]);
        const uint64_t has = group_world_report(&w, k).state.commands;
        most = has > most ? has : most;
    }
    for (uint32_t k = 0; k < MEMBERS; k++) {
        group_world_wait(&w, k, has_commands, most);
        (void)group_world_report(&w, k); /* its turn is over: it has read */
        (void)group_world_report(&w, k);
        expect_all_seen(k);
        gaps += w.shared->kept[k].gaps;
    }
    return gaps;
}

CASE(a_process_that_comes_back_misses_nothing_that_is_not_said)
{
    const char *many = getenv("QN_FEED_SEEDS");
    const uint64_t n = many != NULL ? strtoull(many, NULL, 10) : 4;
    uint64_t gaps = 0;
    for (uint64_t seed = 1; seed <= n; seed++) {
        if (seed != 1) {
            fini();
            init();
        }
        gaps += run(seed);
    }
    cr_expect_gt(gaps, 0);
}
