/*
 * Orders to change the voters: the host's, one at a time, and the own one of a
 * member that is to vote as soon as it serves.
 *
 * The driver has one order at a time, brings it to whichever member leads, and
 * gives up after 5 s. It is given again here until the host's timeout: a
 * refusal that may pass (not in sync yet, no leader) ends nothing before. Once
 * an outcome was unknown no later refusal says that the change has not begun.
 *
 * The own order waits while the host's is under way, and the other way round.
 */
#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "paxos/group/group_internal.h"

#define CHANGE_AGAIN (10 * QN_MS)  /* after a refusal that may pass */
#define VOTE_AGAIN   (100 * QN_MS) /* likewise; no host waits for it */

/* ---- the driver's order -------------------------------------------------- */

static bool pending(const struct qn_group *g)
{
    return qn_driver_change_state(g->driver, NULL) == QN_CHANGE_PENDING;
}

static bool told(const struct qn_group *g)
{
    return g->ordered != QN_ORDERED_NOTHING && !pending(g);
}

bool qn_group_change_due(const struct qn_group *g, qn_time_t now)
{
    const bool asked = g->ordered == QN_ORDERED_NOTHING && g->order.open;
    return asked ? now >= g->order.again_at : told(g);
}

static void order_end(struct qn_group *g, int err)
{
    const struct qn_group_order o = g->order;
    QN_ASSERT(o.open);
    g->order.open = false; /* `done` may ask for the next one */
    o.done(o.ctx, err, 0);
}

static bool may_pass(int err)
{
    return err == QN_EAGAIN || err == QN_EBUSY || err == QN_ENOTLEADER ||
           err == QN_ETIMEDOUT;
}

/* The last one's outcome. */
static void take(struct qn_group *g, qn_time_t now)
{
    struct qn_group_order *o = &g->order;
    int err;
    const enum qn_change_state st = qn_driver_change_state(g->driver, &err);
    const enum qn_group_ordered was = g->ordered;
    g->ordered = QN_ORDERED_NOTHING;
    if (was == QN_ORDERED_VOTE) {
        g->vote_at = now + VOTE_AGAIN;
        return;
    }
    o->begun = o->begun || st == QN_CHANGE_UNKNOWN;
    o->again_at = now + CHANGE_AGAIN;
    if (st == QN_CHANGE_DONE) {
        order_end(g, QN_OK);
    } else if (o->again_at >= o->deadline || !may_pass(err)) {
        order_end(g, o->begun ? QN_EUNKNOWN : err);
    }
}

/* ---- giving one ---------------------------------------------------------- */

static bool wants_vote(const struct qn_group *g)
{
    return g->serving && !g->o.observer && !g->layout.process_acceptor &&
           (qn_driver_voters(g->driver) >> g->self & 1) == 0;
}

static void give(struct qn_group *g, enum qn_group_ordered which,
                 const struct qn_driver_change *c, qn_time_t now)
{
    int err = qn_driver_change(g->driver, c, now);
    QN_ASSERT(err == QN_OK || err == QN_EREMOVED); /* none is pending */
    g->ordered = err == QN_OK ? which : QN_ORDERED_NOTHING;
}

static qn_time_t give_next(struct qn_group *g, qn_time_t now)
{
    const struct qn_driver_change vote = {
        .node = g->self, .inc = g->incarnation, .votes = true};
    const struct qn_group_order *o = &g->order;
    if (o->open && now >= o->again_at) {
        give(g, QN_ORDERED_CHANGE, &o->change, now);
    } else if (!o->open && wants_vote(g) && now >= g->vote_at) {
        give(g, QN_ORDERED_VOTE, &vote, now);
    }
    return o->open ? o->again_at : wants_vote(g) ? g->vote_at : QN_TIME_NEVER;
}

qn_time_t qn_group_change_turn(struct qn_group *g, qn_time_t now)
{
    if (g->ordered == QN_ORDERED_NOTHING && !g->order.open && !wants_vote(g)) {
        return QN_TIME_NEVER; /* as a rule */
    }
    if (told(g)) {
        take(g, now);
    }
    qn_time_t at = g->ordered == QN_ORDERED_NOTHING ? give_next(g, now) : 0;
    return g->ordered == QN_ORDERED_NOTHING ? at : QN_TIME_NEVER;
}

/* Its own removal is what it may have asked for. */
void qn_group_change_end(struct qn_group *g, bool removed)
{
    const struct qn_group_order *o = &g->order;
    const bool own = o->change.node == g->self && !o->change.votes;
    const bool asked = o->begun || g->ordered == QN_ORDERED_CHANGE;
    g->ordered = QN_ORDERED_NOTHING;
    if (!o->open) {
        return;
    }
    order_end(g, removed && own ? QN_OK
                 : asked        ? QN_EUNKNOWN
                 : removed      ? QN_EREMOVED
                                : QN_EABORTED);
}

/* ---- what the host asks -------------------------------------------------- */

int qn_group_change(struct qn_group *g, const struct qn_group_change *c,
                    uint64_t timeout, qn_group_done *done, void *ctx)
{
    struct qn_group_seat seat;
    int err = qn_group_may_ask(g);
    if (err != QN_OK) {
        return err;
    }
    if (g->driver == NULL) {
        g->reason = QN_GROUP_JOINS;
        return QN_EAGAIN;
    }
    qn_group_seat(g, c->seat, &seat);
    if (c->seat >= g->layout.nodes || seat.incarnation == 0) {
        return QN_EINVAL;
    }
    if (!qn_group_by_memory(&g->layout)) {
        return QN_ENOSYS;
    }
    if (g->order.open) {
        return QN_EBUSY;
    }
    g->order = (struct qn_group_order){
        .open = true,
        .change = {.node = c->seat,
                   .inc =
                       c->incarnation != 0 ? c->incarnation : seat.incarnation,
                   .votes = c->votes,
                   .forced = c->forced},
        .deadline = qn_group_deadline(g, timeout),
        .done = done,
        .ctx = ctx};
    qn_group_kick(g);
    return QN_OK;
}
