/*
 * The proposer decides when it is over: it says how many commands there were,
 * and each node that has applied them all counts itself. A node goes on until
 * all have, so that the others find what they lack. Nodes that sleep are rung.
 */
#include "loadgen/commit/commit_node.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "core/base/bits.h"
#include "core/base/err.h"

#define SLEEP_MOST (100 * QN_MS) /* then it looks whether a node has failed */

/* ---- the service --------------------------------------------------------- */

/* Its number, and a pattern that follows from it. */
static void command_of(uint64_t seq, uint64_t *words)
{
    words[0] = seq;
    words[1] = ~seq * 0x9e3779b97f4a7c15u;
}

static void note(struct qn_commit_node *n)
{
    struct qn_commit_shared *s = n->t->shared;
    const qn_time_t now = qn_clock_now();
    const uint64_t done = n->so_far.applied;
    if (done > n->t->warm) {
        s->ns[s->count++] = (uint32_t)QN_MIN(now - n->since, UINT32_MAX);
        s->elapsed_ns = now - n->measured;
    }
    if (done == n->t->warm) {
        n->measured = now;
    }
    n->under_way = false;
}

void qn_commit_node_apply(struct qn_commit_node *n, qn_node_t origin,
                          uint64_t seq, bool mine, struct qn_slice bytes)
{
    struct qn_commit_said *s = &n->so_far;
    uint64_t words[2];
    s->applied++;
    s->digest = (s->digest ^ (seq << 8 | origin)) * 1099511628211u;
    command_of(s->applied, words);
    s->wrong += origin != n->t->proposer || seq != s->applied ||
                mine != (n->self == n->t->proposer) ||
                bytes.len != sizeof words ||
                memcmp(bytes.data, words, sizeof words) != 0;
    if (mine) {
        note(n);
    }
}

static uint32_t on_apply(void *ctx, const struct qn_applied *a)
{
    qn_commit_node_apply(ctx, a->origin, a->seq, a->mine, a->bytes);
    return 1;
}

static void on_applied(void *ctx, qn_slot_t slot, uint64_t stamp_ms)
{
    (void)ctx;
    (void)slot;
    (void)stamp_ms;
}

static void on_peer_message(void *ctx, qn_node_t from, struct qn_slice bytes)
{
    struct qn_commit_node *n = ctx;
    (void)from;
    (void)bytes;
    n->so_far.wrong++; /* no node sends one */
}

struct qn_service qn_commit_node_service(struct qn_commit_node *n)
{
    return (struct qn_service){.apply = on_apply,
                               .applied = on_applied,
                               .on_peer_message = on_peer_message,
                               .ctx = n};
}

/* ---- turns --------------------------------------------------------------- */

void qn_commit_node_init(struct qn_commit_node *n,
                         const struct qn_commit_turn *t, qn_node_t self)
{
    *n = (struct qn_commit_node){.t = t, .self = self};
    qn_backoff_init(&n->backoff, &t->backoff);
}

static void ring_all(const struct qn_commit_node *n,
                     void (*ring)(void *ctx, qn_node_t peer), void *ctx)
{
    for (qn_node_t i = 0; i < n->t->nodes; i++) {
        if (i != n->self) {
            ring(ctx, i);
        }
    }
}

bool qn_commit_node_due(struct qn_commit_node *n, uint64_t *words)
{
    const uint64_t all = (uint64_t)n->t->warm + n->t->operations;
    if (n->self != n->t->proposer || n->under_way || n->proposed == all) {
        return false;
    }
    command_of(n->proposed + 1, words);
    n->since = qn_clock_now();
    return true;
}

bool qn_commit_node_proposed(struct qn_commit_node *n, int rc)
{
    n->under_way = rc == QN_OK;
    n->proposed += n->under_way;
    return n->under_way;
}

/* @return true if it has proposed. */
static bool propose(struct qn_commit_node *n)
{
    uint64_t words[2], seq;
    const struct qn_slice command = {(const uint8_t *)words, sizeof words};
    static_assert(sizeof words == QN_COMMIT_COMMAND_BYTES, "as is said");
    return qn_commit_node_due(n, words) &&
           qn_commit_node_proposed(
               n, qn_driver_submit(n->driver, &command, 1, &seq));
}

/* All is applied here, which is not counted yet. */
bool qn_commit_node_restless(const struct qn_commit_node *n)
{
    return !n->ended && n->so_far.applied > 0 &&
           n->so_far.applied == qn_load(&n->t->shared->total, QN_SEQ_CST);
}

void qn_commit_node_look(struct qn_commit_node *n,
                         void (*ring)(void *ctx, qn_node_t peer), void *ctx)
{
    struct qn_commit_shared *s = n->t->shared;
    const uint64_t all = (uint64_t)n->t->warm + n->t->operations;
    if (n->self == n->t->proposer && n->so_far.applied == all &&
        qn_load(&s->total, QN_SEQ_CST) == 0) {
        qn_store(&s->total, all, QN_SEQ_CST);
        ring_all(n, ring, ctx);
    }
    if (qn_commit_node_restless(n)) {
        n->ended = true;
        if (qn_fetch_add(&s->ended, 1, QN_SEQ_CST) + 1 == n->t->nodes) {
            ring_all(n, ring, ctx);
        }
    }
}

/* Is there more to do for this node, or for one that waits for it? */
bool qn_commit_node_over(const struct qn_commit_node *n)
{
    const struct qn_commit_shared *s = n->t->shared;
    return qn_load(&s->ended, QN_SEQ_CST) == n->t->nodes ||
           qn_load(&s->failed, QN_SEQ_CST) > 0 || qn_clock_now() >= n->deadline;
}

static void wait_for_work(struct qn_commit_node *n,
                          const struct qn_commit_ways *ways, void *ctx,
                          qn_time_t now, qn_time_t until)
{
    if (qn_backoff_again_at(&n->backoff, now)) {
        return;
    }
    ways->arm(ctx);
    if (!ways->again(ctx) && !qn_commit_node_over(n) &&
        !qn_commit_node_restless(n)) {
        ways->sleep(ctx, until);
    }
    ways->wake(ctx);
    qn_backoff_reset(&n->backoff);
}

static void turn(struct qn_commit_node *n, const struct qn_commit_ways *ways,
                 void *ctx)
{
    const qn_time_t now = qn_clock_now();
    qn_time_t at = QN_MIN(ways->begin(ctx, now), now + SLEEP_MOST);
    bool did = qn_driver_turn(n->driver, now, qn_clock_wall_ms());
    did |= propose(n);
    (void)qn_driver_flush(n->driver, now);
    qn_commit_node_look(n, ways->ring, ctx);
    at = QN_MIN(at, ways->end(ctx, now));
    at = QN_MIN(at, qn_driver_deadline(n->driver));
    if (did) {
        qn_backoff_reset(&n->backoff);
    } else {
        wait_for_work(n, ways, ctx, now, at);
    }
}

static uint64_t sleeps(void)
{
    struct rusage u;
    return getrusage(RUSAGE_THREAD, &u) == 0 ? (uint64_t)u.ru_nvcsw : 0;
}

void qn_commit_node_begin(struct qn_commit_node *n)
{
    n->deadline = qn_clock_now() + QN_COMMIT_DEADLINE_NS;
    n->slept = sleeps();
    n->ran = qn_clock_cpu();
}

int qn_commit_node_end(struct qn_commit_node *n, uint64_t failovers)
{
    const struct qn_commit_shared *s = n->t->shared;
    n->so_far.failovers = failovers;
    n->so_far.sleeps = sleeps() - n->slept;
    n->so_far.cpu_ns = qn_clock_cpu() - n->ran;
    n->t->shared->said[n->self] = n->so_far;
    return qn_load(&s->ended, QN_SEQ_CST) == n->t->nodes ? QN_OK
           : qn_load(&s->failed, QN_SEQ_CST) > 0         ? QN_EIO
                                                         : QN_ETIMEDOUT;
}

int qn_commit_node_run(struct qn_commit_node *n, struct qn_driver *driver,
                       const struct qn_commit_ways *ways, void *ctx)
{
    struct qn_driver_status st;
    n->driver = driver;
    qn_commit_node_begin(n);
    while (!qn_commit_node_over(n)) {
        turn(n, ways, ctx);
    }
    qn_driver_status(driver, &st);
    return qn_commit_node_end(n, st.failovers);
}

void qn_commit_node_failed(const struct qn_commit_turn *t, qn_node_t self,
                           int rc)
{
    if (qn_fetch_add(&t->shared->failed, 1, QN_SEQ_CST) == 0) {
        fprintf(stderr, "quoin bench commit: node %u: %s\n", self,
                qn_strerror(rc));
    }
}
