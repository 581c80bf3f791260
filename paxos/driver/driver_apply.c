/*
 * Decided commands reach the service here, and what it cannot apply is kept or
 * given up (paxos/apply).
 *
 * To the machine a slot is applied as soon as it is put out. While the service
 * lacks memory the machine is suspended, and what the same step has put out
 * behind that command waits in order. So what this node publishes
 * (qn_positions) is the truth, and the machine's count is ahead of it by one
 * step at most.
 *
 * If the state is lost, that waiting part is dropped: a snapshot that replaces
 * the state contains it, since its least position is the machine's.
 */
#include "core/base/assert.h"
#include "paxos/driver/driver_internal.h"
#include "paxos/feed/feed.h"

/* ---- one command after the other ----------------------------------------- */

static int service_apply(const struct qn_service *s,
                         const struct qn_applied *one, uint32_t *work)
{
    if (s->try_apply != NULL) {
        return s->try_apply(s->ctx, one, work);
    }
    *work = s->apply(s->ctx, one);
    return QN_OK;
}

/* The answer to the last command, if that was not simply applied. */
static enum qn_apply_verdict judge(struct qn_driver *d, qn_slot_t slot, int err)
{
    struct qn_apply_failure *f = &d->apply.failure;
    return err == QN_OK && f->phase == QN_APPLY_OK
               ? QN_APPLY_GO_ON
               : qn_apply_failure_result(f, slot, err, d->now);
}

static void feed_command(struct qn_feed *f, const struct qn_applied *a)
{
    const struct qn_feed_record r = {.at = {.slot = a->slot},
                                     .stamp_ms = a->stamp_ms,
                                     .origin = a->origin,
                                     .origin_inc = a->origin_inc,
                                     .seq = a->seq,
                                     .bytes = a->bytes};
    qn_feed_command(f, &r);
}

/* A batch's commands from number `*done` on, in order; the service fetches what
 * the next ones touch. The driver's count of work bounds the turn, not this
 * call. *done: how many are applied. */
static enum qn_apply_verdict run_apply(struct qn_driver *d,
                                       const struct qn_apply *a, uint32_t *done)
{
    const struct qn_service *s = &d->o.service;
    struct qn_slice list = a->run.commands;
    struct qn_slice next[QN_PREFETCH_MAX];
    struct qn_applied one = {
        .slot = a->slot,
        .stamp_ms = a->stamp_ms,
        .origin = a->run.origin,
        .origin_inc = a->run.inc,
        .seq = a->run.first + *done,
        .mine = a->mine,
        .keep = a->refbuf->cap >= d->keep_from ? a->refbuf : NULL,
    };
    uint32_t n = 0;
    for (uint32_t i = 0; i < *done; i++) {
        bool more = qn_commands_next(&list, &next[0]);
        QN_ASSERT(more);
    }
    do {
        for (n = 0; n < QN_PREFETCH_MAX && qn_commands_next(&list, &next[n]);
             n++) {
        }
        if (s->prefetch != NULL && n > 1) {
            s->prefetch(s->ctx, next, n);
        }
        for (uint32_t i = 0; i < n; i++, one.seq++) {
            uint32_t work = 1;
            one.bytes = next[i];
            int err = service_apply(s, &one, &work);
            enum qn_apply_verdict v = judge(d, a->slot, err);
            if (v != QN_APPLY_GO_ON) {
                return v;
            }
            QN_DASSERT(work >= 1);
            if (d->o.feed != NULL) {
                feed_command(d->o.feed, &one);
            }
            d->left -= work;
            ++*done;
        }
        d->commands += n;
    } while (n == QN_PREFETCH_MAX);
    return QN_APPLY_GO_ON;
}

/* ---- what cannot be applied ---------------------------------------------- */

static bool is_whole(const struct qn_driver *d)
{
    return qn_apply_failure_whole(&d->apply.failure);
}

/* relaxed: only this thread writes it, and nothing is read through it. */
static void lack_say(const struct qn_driver *d)
{
    enum qn_state_lack lack = !is_whole(d)    ? QN_STATE_LOST
                              : d->apply.none ? QN_STATE_NONE
                                              : QN_STATE_WHOLE;
    qn_store(&d->o.state->lack, lack, QN_RELAXED);
}

static uint64_t lack_of(const struct qn_driver *d, qn_node_t i)
{
    const struct qn_outbox_state *s =
        i == d->o.self ? d->o.state : d->peer[i].state;
    return s != NULL ? qn_load(&s->lack, QN_RELAXED) : QN_STATE_WHOLE;
}

uint64_t qn_driver_lost_states(const struct qn_driver *d)
{
    uint64_t mask = 0;
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        if (qn_driver_lives(d, i) && lack_of(d, i) == QN_STATE_LOST) {
            mask |= qn_driver_bit(i);
        }
    }
    return mask;
}

/* The machine puts out no more while anything waits. */
static void gate(struct qn_driver *d)
{
    const struct qn_driver_apply *w = &d->apply;
    bool shut = w->suspended || w->count != 0 || !is_whole(d);
    d->more = d->more && !shut;
    qn_onepaxos_suspend_apply(d->machine, shut);
}

/* It waits behind those that wait. */
static void hold(struct qn_driver *d, const struct qn_apply *a)
{
    struct qn_driver_apply *w = &d->apply;
    QN_ASSERT(w->count < QN_OUTS_MAX);
    w->held[w->count] = *a;
    (void)qn_refbuf_ref(a->refbuf);
    w->count++;
}

static void release(struct qn_driver *d)
{
    struct qn_driver_apply *w = &d->apply;
    for (uint32_t i = w->next; i < w->count; i++) {
        qn_refbuf_unref(w->held[i].refbuf);
    }
    w->count = w->next = w->done = 0;
}

static void need_state(struct qn_driver *d)
{
    if (!is_whole(d) && d->apply.failure.phase != QN_APPLY_ENDED) {
        qn_driver_ask_snapshot(d, qn_onepaxos_lose_state(d->machine));
    }
}

static void lose(struct qn_driver *d)
{
    release(d);
    (void)qn_onepaxos_lose_state(d->machine);
    lack_say(d);
    gate(d);
    need_state(d);
}

static void slot_end(struct qn_driver *d, const struct qn_apply *a)
{
    const struct qn_service *s = &d->o.service;
    qn_positions_slot_end(&d->positions, a->slot);
    qn_apply_failure_slot_end(&d->apply.failure);
    d->batches++;
    if (d->o.feed != NULL) {
        qn_feed_slot_end(d->o.feed, a->slot);
    }
    s->applied(s->ctx, a->slot, a->stamp_ms);
}

void qn_driver_apply(struct qn_driver *d, const struct qn_apply *a)
{
    QN_DASSERT(!a->mine || a->run.origin == d->o.self);
    uint32_t done = 0;
    if (!is_whole(d)) {
        return;
    }
    if (d->apply.count != 0) {
        hold(d, a);
        return;
    }
    qn_positions_slot_begin(&d->positions, a->slot);
    switch (run_apply(d, a, &done)) {
    case QN_APPLY_GO_ON:
        if (a->last) {
            slot_end(d, a);
        }
        break;
    case QN_APPLY_REPEAT:
        hold(d, a);
        d->apply.done = done;
        gate(d);
        break;
    case QN_APPLY_DROP:
        lose(d);
    }
}

/* ---- and is tried again -------------------------------------------------- */

/* @return false: the rest waits on, or was dropped. */
static bool held_next(struct qn_driver *d)
{
    struct qn_driver_apply *w = &d->apply;
    const struct qn_apply *a = &w->held[w->next];
    qn_positions_slot_begin(&d->positions, a->slot);
    enum qn_apply_verdict v = run_apply(d, a, &w->done);
    if (v == QN_APPLY_DROP) {
        lose(d);
    }
    if (v != QN_APPLY_GO_ON) {
        return false;
    }
    if (a->last) {
        slot_end(d, a);
    }
    qn_refbuf_unref(a->refbuf);
    w->next++;
    w->done = 0;
    return true;
}

/* Where can a state come from? */
static void donors_look(struct qn_driver *d)
{
    qn_slot_t applied[QN_NODES_MAX] = {0};
    struct qn_apply_members m = {.applied = applied};
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        struct qn_position said;
        if (i != d->o.self && qn_driver_peer_says(d, i, &said)) {
            m.living |= qn_driver_bit(i);
            m.incomplete |=
                lack_of(d, i) != QN_STATE_WHOLE ? qn_driver_bit(i) : 0;
            applied[i] = said.applied;
        }
    }
    qn_apply_failure_look(&d->apply.failure, &m);
}

/* A leader that applies nothing decides more only up to a bound: another one is
 * to lead. */
static void wait_for_state(struct qn_driver *d)
{
    if (d->apply.failure.phase == QN_APPLY_ENDED) {
        return;
    }
    donors_look(d);
    need_state(d);
    if (d->memory && qn_driver_leads(d)) {
        qn_driver_hand_over(d);
    }
    d->apply.check_at = d->now + QN_DRIVER_LEAD_AGAIN;
}

void qn_driver_apply_again(struct qn_driver *d)
{
    struct qn_driver_apply *w = &d->apply;
    if (w->count == 0) {
        wait_for_state(d);
        return;
    }
    if (d->now < w->failure.again_at) {
        return;
    }
    while (w->next < w->count && held_next(d)) {
    }
    if (w->count != 0 && w->next == w->count) {
        release(d);
        gate(d);
        d->more = !w->suspended;
    }
}

qn_time_t qn_driver_apply_deadline(const struct qn_driver *d)
{
    const struct qn_driver_apply *w = &d->apply;
    bool lost = !is_whole(d) && w->failure.phase != QN_APPLY_ENDED;
    return w->count != 0 ? w->failure.again_at
           : lost        ? w->check_at
                         : QN_TIME_NEVER;
}

bool qn_driver_apply_waits(const struct qn_driver *d)
{
    return d->apply.count != 0 || !is_whole(d);
}

void qn_driver_apply_installed(struct qn_driver *d)
{
    QN_ASSERT(d->apply.count == 0);
    qn_apply_failure_installed(&d->apply.failure);
    lack_say(d);
    gate(d);
}

void qn_driver_apply_release(struct qn_driver *d)
{
    release(d);
}

/* ---- for the program ----------------------------------------------------- */

const struct qn_apply_failure *qn_driver_apply_failure(
    const struct qn_driver *d)
{
    return &d->apply.failure;
}

void qn_driver_has_state(struct qn_driver *d, bool has)
{
    if (d->apply.none == has) {
        d->apply.none = !has;
        lack_say(d);
    }
}

void qn_driver_apply_gave_up(struct qn_driver *d, int err)
{
    qn_apply_failure_gave_up(&d->apply.failure, err);
}

void qn_driver_suspend_apply(struct qn_driver *d, bool suspended)
{
    d->apply.suspended = suspended;
    gate(d);
}
