/*
 * Which replica is told of which incarnation of its peers.
 *
 *     EXIT(i)        others: PEER_DOWN(i, old)
 *     SPAWNED(i)     i: STARTING
 *     HELLO(i)       others: PEER_UP(i, new)
 *                    i: PEER_UP for each living peer, PEER_DOWN for each dead
 *                    one, START; a newcomer hears START when all others have
 *                    met it (member_change.c)
 *
 * One that was stopped by a signal is not waited for: it has no lanes for the
 * newcomer. For that one it is absent from its start on, also for its next
 * incarnations, until it goes on and meets them. A replica that has no memory
 * or descriptors to meet a peer is told of it again, too.
 *
 *     PEER_MET(j, why not) of i                     j is absent for i
 *     PEER_MET(i) of j, or after UNMET_AGAIN_MS     i: PEER_UP(j)
 *
 * The initial members of a group hear of each other as each one says HELLO, and
 * are started when all have.
 *
 * A stalled replica hears the rest when it resumes. Of a node that had many
 * incarnations meanwhile it hears three things: the end of the one it knows,
 * the retained one (below), and the newest one.
 *
 * Outboxes are kept while their incarnation lives, so that a new incarnation of
 * a peer can map them. One dead incarnation's may be needed as well: that of
 * the owner of the accept register, in whose ring the last decided slots lie
 * until another replica has taken over. There is one owner at most, so one
 * outbox is retained at most. It is dropped when the register has moved on, at
 * the next event.
 */
#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "kvs/supervision/supervision_internal.h"

enum { UNMET_AGAIN_MS = 1000 };

static bool is_present(const struct qn_replica_slot *r)
{
    return r->state != QN_REPLICA_ENDED && r->has_outbox;
}

/* The incarnation of `about` that is dead and still needed; 0: none. */
static uint64_t retained_of(const struct qn_supervision *s, qn_node_t about)
{
    return s->retained.node == about ? s->retained.incarnation : 0;
}

/* ---- announcements ------------------------------------------------------- */

static void skip_obsolete(const struct qn_sv_step *x, qn_node_t to,
                          qn_node_t about)
{
    if (x->s->replica[to].reachable) {
        const struct qn_supervision_action a = {
            .kind = QN_DO_SKIP_OBSOLETE,
            .node = to,
            .outbox = {.node = about, .incarnation = retained_of(x->s, about)}};
        qn_supervision_do(x->out, &a);
    }
}

static void broadcast_up(const struct qn_sv_step *x, qn_node_t about)
{
    const uint64_t incarnation = x->s->replica[about].incarnation;
    for (qn_node_t i = 0; i < x->s->opts.replicas; i++) {
        const struct qn_replica_slot *r = &x->s->replica[i];
        /* Of an adopted one a former supervisor may have told it. */
        if (i != about && r->informed && r->knows[about] < incarnation) {
            skip_obsolete(x, i, about);
            qn_sv_say_peer_up(x, i, about, incarnation);
        }
    }
}

void qn_sv_broadcast_down(const struct qn_sv_step *x, qn_node_t about,
                          uint64_t incarnation)
{
    for (qn_node_t i = 0; i < x->s->opts.replicas; i++) {
        if (i != about && x->s->replica[i].informed) {
            qn_sv_say_peer_down(x, i, about, incarnation);
        }
    }
}

static void announce_retained(const struct qn_sv_step *x, qn_node_t to)
{
    const struct qn_outbox_name *k = &x->s->retained;
    qn_sv_say_peer_up(x, to, k->node, k->incarnation);
    qn_sv_say_peer_down(x, to, k->node, k->incarnation);
}

/* What a later incarnation is told of `about`. Of its own predecessor, too. */
static void announce_peer(const struct qn_sv_step *x, qn_node_t to,
                          qn_node_t about)
{
    const struct qn_replica_slot *r = &x->s->replica[about];
    if (retained_of(x->s, about) != 0) {
        announce_retained(x, to);
    }
    if (about == to) {
        return;
    }
    if (is_present(r)) {
        qn_sv_say_peer_up(x, to, about, r->incarnation);
    } else {
        qn_sv_say_peer_down(x, to, about, r->ended);
    }
}

static void announce_peers(const struct qn_sv_step *x, qn_node_t to)
{
    struct qn_replica_slot *r = &x->s->replica[to];
    for (qn_node_t i = 0; i < x->s->opts.replicas; i++) {
        announce_peer(x, to, i);
    }
    r->informed = true;
    if (qn_sv_is_newcomer(x->s, to)) {
        qn_sv_member_introduced(x);
    } else if (qn_sv_votes(x->s, to)) { /* else it is about to end */
        qn_sv_say(x, to, QN_CTL_START);
    }
}

static bool all_present(const struct qn_supervision *s)
{
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        if (qn_sv_taken(s, i) && !is_present(&s->replica[i])) {
            return false;
        }
    }
    return true;
}

void qn_sv_present(const struct qn_sv_step *x, qn_node_t i)
{
    struct qn_replica_slot *r = &x->s->replica[i];
    const struct qn_supervision_action keep = {
        .kind = QN_DO_KEEP_OUTBOX,
        .node = i,
        .outbox = {.node = i, .incarnation = r->incarnation}};
    QN_ASSERT(x->e->with_outbox);
    QN_ASSERT(!r->has_outbox);
    QN_ASSERT(r->state != QN_REPLICA_ENDED);
    r->has_outbox = true;
    qn_supervision_do(x->out, &keep);
    broadcast_up(x, i);
}

void qn_sv_on_hello(const struct qn_sv_step *x, qn_node_t from)
{
    struct qn_replica_slot *r = &x->s->replica[from];
    if (!x->e->with_outbox || r->has_outbox) {
        return; /* a process that says it twice, or without its memory */
    }
    qn_sv_present(x, from);
    if (!r->informed) {
        announce_peers(x, from);
    } else if (all_present(x->s)) {
        qn_sv_say_all(x, QN_CTL_START);
    }
}

void qn_sv_catch_up(const struct qn_sv_step *x, qn_node_t to)
{
    const struct qn_supervision *s = x->s;
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        const struct qn_replica_slot *r = &s->replica[i];
        const uint64_t known = s->replica[to].knows[i];
        const bool lives = r->state != QN_REPLICA_ENDED;
        if (i == to || r->incarnation < known ||
            (r->incarnation == known && lives)) {
            continue;
        }
        if (known != 0) {
            qn_sv_say_peer_down(x, to, i, known);
        }
        if (retained_of(s, i) > known) {
            announce_retained(x, to);
        }
        if (is_present(r)) {
            qn_sv_say_peer_up(x, to, i, r->incarnation);
        }
    }
}

/* ---- peers that could not be met ----------------------------------------- */

static bool may_pass(int64_t error)
{
    return error == QN_EAGAIN || error == QN_ENOMEM || error == QN_EMFILE;
}

static void tell_again(const struct qn_sv_step *x, qn_node_t to,
                       qn_node_t about)
{
    const struct qn_replica_slot *r = &x->s->replica[about];
    x->s->replica[to].lacks &= ~qn_sv_bit(about);
    if (is_present(r)) {
        qn_sv_say_peer_up(x, to, about, r->incarnation);
    }
}

void qn_sv_on_peer_met(const struct qn_sv_step *x, qn_node_t from,
                       const struct qn_ctl_peer_met *m)
{
    struct qn_supervision *s = x->s;
    struct qn_replica_slot *r = &s->replica[from];
    if (m->node >= s->opts.replicas ||
        m->incarnation != s->replica[m->node].incarnation) {
        return;
    }
    r->lacks &= ~qn_sv_bit(m->node);
    if (may_pass(m->error)) {
        r->lacks |= qn_sv_bit(m->node);
        r->again_at = x->now + UNMET_AGAIN_MS * QN_MS;
    } else if (m->error == QN_OK &&
               (s->replica[m->node].lacks & qn_sv_bit(from)) != 0) {
        tell_again(x, m->node, from);
    }
    qn_sv_member_met(x, from, m);
}

void qn_sv_forget_unmet(struct qn_supervision *s, qn_node_t i)
{
    for (qn_node_t k = 0; k < s->opts.replicas; k++) {
        s->replica[k].lacks &= ~qn_sv_bit(i);
    }
    s->replica[i].lacks = 0;
}

/* One replica in each step, so that the actions have room. */
void qn_sv_meet_turn(const struct qn_sv_step *x)
{
    for (qn_node_t i = 0; i < x->s->opts.replicas; i++) {
        struct qn_replica_slot *r = &x->s->replica[i];
        if (r->lacks != 0 && r->again_at <= x->now) {
            for (uint64_t left = r->lacks; left != 0; left &= left - 1) {
                tell_again(x, i, qn_sv_lowest(left));
            }
            return;
        }
    }
}

qn_time_t qn_sv_meet_deadline(const struct qn_supervision *s)
{
    qn_time_t at = QN_TIME_NEVER;
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        const struct qn_replica_slot *r = &s->replica[i];
        at = r->lacks != 0 ? QN_MIN(at, r->again_at) : at;
    }
    return at;
}

/* ---- the owner of the accept register ------------------------------------ */

bool qn_sv_owns_register(const struct qn_supervision_facts *f, qn_node_t node,
                         uint64_t incarnation)
{
    return f->group_known && f->owned && f->owner == node &&
           f->owner_incarnation == incarnation;
}

void qn_sv_retained_review(const struct qn_sv_step *x)
{
    struct qn_outbox_name *k = &x->s->retained;
    if (k->incarnation != 0 && x->e->facts.group_known &&
        !qn_sv_owns_register(&x->e->facts, k->node, k->incarnation)) {
        qn_sv_drop_outbox(x, k->node, k->incarnation);
        *k = (struct qn_outbox_name){0};
    }
}

void qn_sv_outbox_ended(const struct qn_sv_step *x, qn_node_t i)
{
    struct qn_supervision *s = x->s;
    struct qn_replica_slot *r = &s->replica[i];
    QN_ASSERT(r->has_outbox);
    r->has_outbox = false;
    if (qn_sv_owns_register(&x->e->facts, i, r->incarnation)) {
        /* There is one owner, so none is retained after the review. */
        QN_ASSERT(s->retained.incarnation == 0);
        s->retained =
            (struct qn_outbox_name){.node = i, .incarnation = r->incarnation};
    } else {
        qn_sv_drop_outbox(x, i, r->incarnation);
    }
}
