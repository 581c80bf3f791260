/*
 * Feeds of members that are killed, come back, lose their states and get
 * snapshots, and a subscriber that dies and comes back with its stored
 * position, at the same member or another one: it sees each decided command in
 * order and at least once, or a gap that says so.
 *
 * The world's history is what all members have applied; a command's position
 * there is what the feed must say.
 *
 * QN_FEED_SEEDS=100 runs as many; QN_FEED_SEED one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "paxos/driver/driver_internal.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

enum { NODES = 3, STEPS = 150, DONE = 40000 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 4u /* have seen all code in few of them */
#else
#define SEEDS 12u
#endif

struct subscriber {
    struct world *w;
    qn_node_t at; /* the member that it reads of */
    uint64_t inc; /* its incarnation */
    bool lives;
    uint32_t id;
    struct qn_feed_position read;   /* all before it was read, in this life */
    struct qn_feed_position stored; /* survives it */
    uint64_t seen, gaps, gone, lives_count; /* what has come up */
};

static struct qn_feed_position position_of(const struct world *w, uint32_t k)
{
    struct qn_feed_position p = {.slot = w->history[k].slot};
    while (k > 0 && w->history[k - 1].slot == p.slot) {
        k--;
        p.number++;
    }
    return p;
}

/* The first command of the history at or behind a position. */
static uint32_t first_from(const struct world *w, struct qn_feed_position p)
{
    uint32_t lo = 0;
    uint32_t hi = w->history_count;
    while (lo < hi) {
        uint32_t middle = lo + (hi - lo) / 2;
        if (qn_feed_compare(position_of(w, middle), p) < 0) {
            lo = middle + 1;
        } else {
            hi = middle;
        }
    }
    return lo;
}

static struct qn_feed *feed_of(const struct subscriber *s)
{
    return s->w->member[s->at].feed;
}

static bool member_lives(const struct subscriber *s)
{
    return s->w->member[s->at].driver != NULL &&
           s->w->member[s->at].inc == s->inc;
}

/* What was cut is a gap, and it says where it ends. */
static void passes_gone(struct subscriber *s)
{
    const struct qn_feed_position first = qn_feed_first(feed_of(s));
    cr_assert_gt(qn_feed_compare(first, s->read), 0, "nothing is missing");
    s->read = first;
    s->gone++;
}

/* It comes back at some living member, with the position that it has stored. */
static void comes(struct subscriber *s)
{
    s->at = (qn_node_t)world_random(s->w, NODES);
    if (s->w->member[s->at].driver == NULL) {
        return;
    }
    s->inc = s->w->member[s->at].inc;
    s->read = s->stored;
    int err = qn_feed_subscribe(feed_of(s), &s->read, &s->id);
    if (err == QN_EGONE) {
        passes_gone(s);
        err = qn_feed_subscribe(feed_of(s), &s->read, &s->id);
    }
    cr_assert_eq(err, QN_OK);
    s->lives = true;
    s->lives_count++;
}

static void dies(struct subscriber *s)
{
    if (s->lives && member_lives(s)) {
        qn_feed_unsubscribe(feed_of(s), s->id);
    }
    s->lives = false;
}

static void reads_command(struct subscriber *s, const struct qn_feed_record *r)
{
    const struct world *w = s->w;
    const uint32_t k = first_from(w, s->read);
    cr_assert_lt(k, w->history_count);
    const struct qn_feed_position is = position_of(w, k);
    cr_assert_eq(qn_feed_compare(r->at, is), 0,
                 "member %u says %lu/%lu, and %lu/%lu comes next", s->at,
                 (unsigned long)r->at.slot, (unsigned long)r->at.number,
                 (unsigned long)is.slot, (unsigned long)is.number);
    cr_assert_eq(r->seq, w->history[k].seq);
    cr_assert_eq(r->origin, w->history[k].origin);
    cr_assert_eq(r->origin_inc, w->history[k].inc);
    s->seen++;
}

/* @return false: there is nothing more. */
static bool reads_one(struct subscriber *s)
{
    struct qn_feed_record r;
    int err = qn_feed_read(feed_of(s), s->id, &r);
    if (err == QN_EGONE) {
        passes_gone(s);
        cr_assert_eq(qn_feed_seek(feed_of(s), s->id, &s->read), QN_OK);
        return true;
    }
    if (err == QN_EAGAIN) {
        return false;
    }
    cr_assert_eq(err, QN_OK);
    if (r.kind == QN_FEED_GAP) {
        cr_assert_geq(qn_feed_compare(r.at, s->read), 0);
        s->gaps++;
    } else {
        reads_command(s, &r);
    }
    s->read = r.to;
    return true;
}

static void acts(struct subscriber *s)
{
    if (s->lives && !member_lives(s)) {
        s->lives = false;
    }
    if (!s->lives) {
        comes(s);
        return;
    }
    switch (world_random(s->w, 8)) {
    case 0:
        dies(s);
        break;
    case 1:
        s->stored = qn_feed_position(feed_of(s), s->id);
        cr_assert_geq(qn_feed_compare(s->stored, s->read), 0);
        cr_assert_eq(first_from(s->w, s->stored), first_from(s->w, s->read),
                     "it passes nothing over");
        break;
    default:
        for (uint64_t n = world_random(s->w, 60); n > 0 && reads_one(s); n--) {
        }
    }
}

/* It has failed twice, and is of no use any more. */
static bool has_ended(const struct world *w, qn_node_t i)
{
    const struct qn_driver *d = w->member[i].driver;
    return d != NULL && qn_driver_apply_failure(d)->phase == QN_APPLY_ENDED;
}

/* One member ends or comes back, stalls, or cannot apply. */
static void something_happens(struct world *w)
{
    qn_node_t i = (qn_node_t)world_random(w, NODES);
    struct world_member *m = &w->member[i];
    uint32_t dead = 0;
    bool wait = false;
    for (qn_node_t k = 0; k < NODES; k++) {
        dead += w->member[k].driver == NULL;
        wait |= w->member[k].need_snapshot || w->member[k].stopped ||
                (w->member[k].driver != NULL &&
                 !qn_apply_failure_whole(
                     qn_driver_apply_failure(w->member[k].driver)));
    }
    if (m->driver == NULL) {
        world_restart(w, i);
    } else if (dead == 0 && has_ended(w, i)) {
        world_lose(w, i);
    } else if (m->stopped) {
        m->stopped = false;
    } else if (dead == 0 && !wait) {
        switch (world_random(w, 4)) {
        case 0:
            if (world_settled(w)) {
                world_lose(w, i);
            }
            break;
        case 1:
            m->stopped = true;
            break;
        case 2:
            m->fails.err = QN_ENOMEM;
            m->fails.left = 1 + (uint32_t)world_random(w, 30);
            m->fails.from = 0;
            m->fails.inside = world_random(w, 2) == 0;
            break;
        default:
            m->fails.err = QN_EIO;
            m->fails.left = 1;
            m->fails.from = 0;
            m->fails.inside = world_random(w, 2) == 0;
        }
    }
}

static struct world *begin(uint64_t seed)
{
    struct world *w = world_make(NODES, seed % 2 == 0);
    w->seed = seed;
    w->may_fail = true;
    w->ring_slots = seed % 3 == 0 ? 16 : 0;
    w->feed = (struct qn_feed_opts){.bytes = 1 << 12,
                                    .records = 16u << seed % 4,
                                    .subscribers = 2,
                                    .retain = seed % 5 != 0};
    world_start(w);
    return w;
}

static void ends(struct subscriber *s)
{
    struct world *w = s->w;
    for (qn_node_t i = 0; i < NODES; i++) {
        w->member[i].stopped = false;
        w->member[i].fails.left = 0;
        if (has_ended(w, i)) {
            world_lose(w, i);
        }
        if (w->member[i].driver == NULL) {
            world_restart(w, i);
        }
    }
    world_settle(w, DONE);
    if (s->lives && !member_lives(s)) {
        s->lives = false;
    }
    while (!s->lives) {
        comes(s);
    }
    while (reads_one(s)) {
    }
    cr_assert_eq(first_from(w, s->read), w->history_count, "all was read");
    dies(s);
}

/* @return what has come up. */
static struct subscriber run(uint64_t seed)
{
    struct world *w = begin(seed);
    struct subscriber s = {.w = w, .stored = {.slot = 1}};
    for (int k = 0; k < STEPS; k++) {
        world_load(w, (uint32_t)world_random(w, 12));
        world_rounds(w, (uint32_t)world_random(w, 60));
        if (world_random(w, 3) == 0) {
            something_happens(w);
        }
        acts(&s);
    }
    ends(&s);
    struct subscriber out = s;
    out.w = NULL;
    if (getenv("QN_FEED_SEED") != NULL) {
        fprintf(
            stderr, "%lu seen, %lu gaps, %lu gone, %lu lives, %u installs\n",
            (unsigned long)s.seen, (unsigned long)s.gaps, (unsigned long)s.gone,
            (unsigned long)s.lives_count, w->installs);
    }
    world_end(w);
    return out;
}

Test(driver_feed, a_subscriber_misses_nothing_that_is_not_said, .timeout = 300)
{
    const char *one = getenv("QN_FEED_SEED");
    const char *many = getenv("QN_FEED_SEEDS");
    const uint64_t from = one != NULL ? strtoull(one, NULL, 10) : 1;
    const uint64_t n = one != NULL    ? 1
                       : many != NULL ? strtoull(many, NULL, 10)
                                      : SEEDS;
    struct subscriber all = {.w = NULL};
    for (uint64_t seed = from; seed < from + n; seed++) {
        const struct subscriber s = run(seed);
        all.seen += s.seen;
        all.gaps += s.gaps;
        all.gone += s.gone;
        all.lives_count += s.lives_count;
    }
    if (one == NULL) {
        cr_expect_gt(all.seen, 100 * n);
        cr_expect_gt(all.gaps, n / 2);
        cr_expect_gt(all.gone, n);
        cr_expect_gt(all.lives_count, 5 * n);
    }
}
