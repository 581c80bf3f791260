/*
 * A group whose supervisor has ended is taken over (kvs/control/adopt.h).
 *
 * Replicas that answer say which incarnations they know, with their outboxes,
 * and then that this is all. Nothing of the group is touched until each has
 * said all, or has ended, or ANSWER_MS have passed since the first one was
 * done. So a supervisor that is refused, or ends, leaves orphans as they were.
 *
 *     met --START--> adopted               its state by READY
 *      |  \--ended-> vacant                started again
 *      \---late----> late                  counts as serving; the others have
 *                                          said which incarnation it is; heard
 *                                          when it resumes, and told of its
 *                                          peers only then: messages of the
 *                                          dead supervisor may wait before
 *     not met -----> unreached or vacant   as the group's memory says
 *                                          (vacancy.h)
 *
 * What one replica knows of others fills the gaps: the last incarnation of a
 * replica that has died meanwhile, and the outbox of a dead owner of the accept
 * register. The dead are made known to all, since an idle replica looks for
 * none. An incarnation that the dead supervisor was still introducing ends with
 * it. One that a stalled replica has not heard of is told to it now.
 *
 * Messages are of processes that may have overwritten their own memory, so what
 * decoding cannot judge is checked here and not asserted.
 */
#include "core/base/assert.h"
#include "core/base/bits.h"
#include "kvs/supervision/supervision_internal.h"

enum { ANSWER_MS = 500 };

/* No supervisor has given as many: a higher number is damaged. Half of what the
 * commons can hold (QN_COMMONS_LIVES_MAX). */
#define INCARNATION_MAX ((uint64_t)1 << 55)

static bool has(uint64_t mask, qn_node_t i)
{
    return (mask & qn_sv_bit(i)) != 0;
}

/* ---- what orphans know --------------------------------------------------- */

static bool is_owner(const struct qn_orphans *o, qn_node_t node,
                     uint64_t incarnation)
{
    return o->owner.incarnation == incarnation && o->owner.node == node &&
           incarnation != 0;
}

static bool is_held(const struct qn_orphans *o, qn_node_t node,
                    uint64_t incarnation)
{
    return is_owner(o, node, incarnation) ||
           (has(o->held, node) && o->newest[node] == incarnation);
}

/* The outbox of the newest incarnation of `node` is not needed any more. */
static void release(const struct qn_sv_step *x, qn_node_t node)
{
    struct qn_orphans *o = &x->s->orphans;
    if (has(o->held, node)) {
        o->held &= ~qn_sv_bit(node);
        if (!is_owner(o, node, o->newest[node])) {
            qn_sv_drop_outbox(x, node, o->newest[node]);
        }
    }
}

static void note_incarnation(const struct qn_sv_step *x, qn_node_t node,
                             uint64_t incarnation, bool with_outbox)
{
    struct qn_orphans *o = &x->s->orphans;
    if (o->taken_over || incarnation == 0) {
        return;
    }
    const bool was_held = is_held(o, node, incarnation);
    if (incarnation > o->newest[node]) {
        release(x, node);
        o->newest[node] = incarnation;
    }
    if (with_outbox && o->owner.incarnation == 0 &&
        qn_sv_owns_register(&x->e->facts, node, incarnation)) {
        o->owner =
            (struct qn_outbox_name){.node = node, .incarnation = incarnation};
    }
    if (with_outbox && incarnation == o->newest[node]) {
        o->held |= qn_sv_bit(node);
    }
    if (!was_held && is_held(o, node, incarnation)) {
        const struct qn_supervision_action keep = {
            .kind = QN_DO_KEEP_OUTBOX,
            .node = node,
            .outbox = {.node = node, .incarnation = incarnation}};
        QN_ASSERT(x->e->with_outbox);
        qn_supervision_do(x->out, &keep);
    }
}

/* What its former supervisor has told it. */
static void note_known(const struct qn_sv_step *x, qn_node_t from,
                       qn_node_t node, uint64_t incarnation)
{
    uint64_t *known = &x->s->replica[from].knows[node];
    *known = QN_MAX(*known, incarnation);
}

/* A late replica was told of an incarnation that no other one knew, and there
 * is no process: it hears of its end in catch_up. */
static void note_ended(const struct qn_sv_step *x, qn_node_t node,
                       uint64_t incarnation)
{
    struct qn_supervision *s = x->s;
    struct qn_replica_slot *r = &s->replica[node];
    if (s->orphans.taken_over && r->state == QN_REPLICA_ENDED && !r->spawning &&
        incarnation > r->incarnation) {
        r->incarnation = r->ended = incarnation;
        s->incarnations = QN_MAX(s->incarnations, incarnation);
    }
}

static void note(const struct qn_sv_step *x, qn_node_t from, qn_node_t node,
                 uint64_t incarnation)
{
    if (incarnation <= INCARNATION_MAX) {
        note_known(x, from, node, incarnation);
        note_ended(x, node, incarnation);
        note_incarnation(x, node, incarnation, x->e->with_outbox);
    }
}

/* A late replica says which incarnation it is. The others may have known an
 * earlier one at most, or its outbox not. */
static void note_late(const struct qn_sv_step *x, qn_node_t from,
                      const struct qn_ctl_hello *m)
{
    struct qn_supervision *s = x->s;
    struct qn_replica_slot *r = &s->replica[from];
    const bool present = m->incarnation == r->incarnation && r->has_outbox;
    if (!s->orphans.taken_over || m->node != from || present ||
        m->incarnation < r->incarnation || m->incarnation > INCARNATION_MAX ||
        !x->e->with_outbox) {
        return;
    }
    if (r->has_outbox) {
        r->ended = r->incarnation;
        qn_sv_outbox_ended(x, from);
        qn_sv_broadcast_down(x, from, r->ended);
    }
    r->incarnation = m->incarnation;
    s->incarnations = QN_MAX(s->incarnations, m->incarnation);
    qn_sv_present(x, from);
}

static void said_all(const struct qn_sv_step *x, qn_node_t from)
{
    struct qn_supervision *s = x->s;
    struct qn_orphans *o = &s->orphans;
    struct qn_replica_slot *r = &s->replica[from];
    o->awaited &= ~qn_sv_bit(from);
    if (!o->taken_over) {
        o->until = QN_MIN(o->until, x->now + ANSWER_MS * QN_MS);
        return;
    }
    if (!has(o->ready, from)) {
        r->state = QN_REPLICA_STARTING;
        s->verdict_due = true; /* it was taken for a complete one */
    }
    qn_sv_catch_up(x, from);
    r->informed = true;
    qn_sv_say(x, from, QN_CTL_START);
    qn_supervision_log(x->out, QN_LOG_INFO,
                       "replica %u (process %d) is adopted now", from,
                       (int)r->pid);
}

bool qn_sv_on_orphan_message(const struct qn_sv_step *x, qn_node_t from,
                             const struct qn_control_msg *m)
{
    struct qn_orphans *o = &x->s->orphans;
    if (!has(o->awaited, from)) {
        return false;
    }
    switch (m->kind) {
    case QN_CTL_PEER_UP:
        note(x, from, m->u.peer_up.node, m->u.peer_up.incarnation);
        return true;
    case QN_CTL_HELLO:
        note(x, from, m->u.hello.node, m->u.hello.incarnation);
        note_late(x, from, &m->u.hello);
        return true;
    case QN_CTL_PEER_DOWN:
        note(x, from, m->u.peer_down.node, m->u.peer_down.incarnation);
        return true;
    case QN_CTL_READY:
        o->ready |= qn_sv_bit(from);
        return true;
    case QN_CTL_VOTERS:
        qn_sv_on_voters(x, from, &m->u.voters);
        return true;
    case QN_CTL_START:
        said_all(x, from);
        return true;
    default:
        return false;
    }
}

/* ---- connections --------------------------------------------------------- */

void qn_sv_on_orphan_met(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    struct qn_orphans *o = &s->orphans;
    const qn_node_t i = x->e->node;
    struct qn_replica_slot *r = &s->replica[i];
    QN_ASSERT(!has(o->awaited, i));
    QN_ASSERT(!r->reachable);
    r->pid = x->e->pid;
    r->reachable = true;
    o->awaited |= qn_sv_bit(i);
    if (!o->taken_over) {
        o->connected |= qn_sv_bit(i);
        return;
    }
    QN_ASSERT(has(o->unreached, i));
    o->unreached &= ~qn_sv_bit(i);
    if (s->draining) { /* the other replicas were told before */
        qn_sv_say(x, i, QN_CTL_DRAIN);
    }
}

void qn_sv_on_orphan_ended(const struct qn_sv_step *x)
{
    struct qn_orphans *o = &x->s->orphans;
    const uint64_t bit = qn_sv_bit(x->e->node);
    QN_ASSERT(!o->taken_over);
    o->connected &= ~bit;
    o->awaited &= ~bit;
    o->ready &= ~bit;
    x->s->replica[x->e->node].reachable = false;
}

bool qn_supervision_awaits_orphans(const struct qn_supervision *s,
                                   qn_time_t now)
{
    const struct qn_orphans *o = &s->orphans;
    return !o->taken_over && o->awaited != 0 && now < o->until;
}

bool qn_supervision_adoption_is_over(const struct qn_supervision *s)
{
    const struct qn_orphans *o = &s->orphans;
    return o->taken_over && o->awaited == 0 && o->unreached == 0;
}

/* ---- the group is ours --------------------------------------------------- */

static void adopt(const struct qn_sv_step *x, qn_node_t i)
{
    struct qn_supervision *s = x->s;
    struct qn_orphans *o = &s->orphans;
    struct qn_replica_slot *r = &s->replica[i];
    const bool late = has(o->awaited, i);
    QN_ASSERT(r->state == QN_REPLICA_ENDED);
    r->incarnation = o->newest[i];
    r->has_outbox = has(o->held, i);
    o->held &= ~qn_sv_bit(i);
    r->state =
        late || has(o->ready, i) ? QN_REPLICA_SERVING : QN_REPLICA_STARTING;
    r->adopted = true;
    r->informed = !late; /* what a late one knows is not known yet */
    r->started_at = x->now;
    s->adopted++;
    if (!late) {
        qn_sv_say(x, i, QN_CTL_START);
    } else {
        qn_supervision_log(x->out, QN_LOG_WARN,
                           "replica %u (process %d) is stalled; it is adopted "
                           "when it resumes",
                           i, (int)r->pid);
    }
}

void qn_sv_on_take_over(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    struct qn_orphans *o = &s->orphans;
    QN_ASSERT(!o->taken_over);
    QN_ASSERT(s->incarnations == 0);
    QN_ASSERT(x->e->opts->replicas <= QN_NODES_MAX);
    s->opts = *x->e->opts;
    qn_sv_voters_begin(s);
    o->taken_over = true;
    o->until = QN_TIME_NEVER;
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        if (i >= s->opts.replicas) { /* none of the group's */
            o->connected &= ~qn_sv_bit(i);
            o->awaited &= ~qn_sv_bit(i);
            release(x, i);
            continue;
        }
        s->incarnations = QN_MAX(s->incarnations, o->newest[i]);
        if (has(o->connected, i)) {
            adopt(x, i);
        }
    }
}

void qn_sv_on_unreached(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    struct qn_orphans *o = &s->orphans;
    const qn_node_t i = x->e->node;
    struct qn_replica_slot *r = &s->replica[i];
    QN_ASSERT(o->taken_over);
    r->pid = x->e->pid;
    if (has(o->unreached, i)) {
        return; /* asked once more */
    }
    QN_ASSERT(!has(o->connected, i));
    QN_ASSERT(r->state == QN_REPLICA_ENDED);
    o->unreached |= qn_sv_bit(i);
    r->incarnation =
        QN_MIN(QN_MAX(o->newest[i], x->e->incarnation), INCARNATION_MAX);
    s->incarnations = QN_MAX(s->incarnations, r->incarnation);
    if (r->incarnation == o->newest[i]) {
        r->has_outbox = has(o->held, i);
        o->held &= ~qn_sv_bit(i);
    }
    r->state = QN_REPLICA_SERVING;
    r->adopted = true;
    r->informed = false; /* until it has said what it knows */
    r->started_at = x->now;
    s->adopted++;
    qn_supervision_log(x->out, QN_LOG_WARN,
                       "replica %u (process %d) runs and takes no connection; "
                       "it is asked again until it does (if it is stalled: "
                       "kill -CONT %d, or kill -9 %d for a new one)",
                       i, (int)r->pid, (int)r->pid, (int)r->pid);
}

void qn_sv_on_vacant(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    const qn_node_t i = x->e->node;
    struct qn_replica_slot *r = &s->replica[i];
    QN_ASSERT(s->orphans.taken_over);
    QN_ASSERT(r->state == QN_REPLICA_ENDED);
    r->incarnation = r->ended = s->orphans.newest[i];
    if (!qn_sv_votes(s, i)) {
        return;
    }
    r->restart_at =
        s->opts.restart && !x->e->shut_down ? x->now : QN_TIME_NEVER;
    if (x->e->shut_down) { /* its peers hear of its end in CATCH_UP */
        qn_supervision_log(
            x->out, QN_LOG_INFO,
            "replica %u was asked to shut down; it is not started again", i);
    }
}

/* A living replica holds that outbox as its own. */
static bool is_living(const struct qn_supervision *s, struct qn_outbox_name n)
{
    const struct qn_replica_slot *r = &s->replica[n.node];
    return r->state != QN_REPLICA_ENDED && r->incarnation == n.incarnation &&
           r->has_outbox;
}

/* The register may have another owner than when the orphans spoke. */
static void review_owner(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    struct qn_orphans *o = &s->orphans;
    const struct qn_outbox_name w = o->owner;
    if (w.incarnation != 0 &&
        !qn_sv_owns_register(&x->e->facts, w.node, w.incarnation)) {
        o->owner = (struct qn_outbox_name){0};
        if (!is_held(o, w.node, w.incarnation) && !is_living(s, w)) {
            qn_sv_drop_outbox(x, w.node, w.incarnation);
        }
    }
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        if (has(o->held, i) &&
            qn_sv_owns_register(&x->e->facts, i, o->newest[i])) {
            o->owner =
                (struct qn_outbox_name){.node = i, .incarnation = o->newest[i]};
        }
    }
}

/* The incarnation that owns the register is retained if it is dead. What else
 * is held of the dead is not needed. */
static void retain_owner(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    struct qn_orphans *o = &s->orphans;
    review_owner(x);
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        release(x, i);
    }
    if (o->owner.incarnation != 0 && !is_living(s, o->owner)) {
        QN_ASSERT(s->retained.incarnation == 0);
        s->retained = o->owner;
    }
    o->owner = (struct qn_outbox_name){0};
}

void qn_sv_on_catch_up(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    const qn_node_t i = x->e->node;
    QN_ASSERT(s->orphans.taken_over);
    retain_owner(x);
    if (has(s->orphans.connected, i) && !has(s->orphans.awaited, i)) {
        qn_sv_catch_up(x, i);
    }
}

void qn_sv_on_taken_over(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    QN_ASSERT(s->orphans.taken_over);
    QN_ASSERT(s->adopted > 0);
    s->orphans.connected = 0;
    s->served = true;
    s->verdict_due = true;
    qn_supervision_do(x->out,
                      &(struct qn_supervision_action){.kind = QN_DO_ANNOUNCE});
}
