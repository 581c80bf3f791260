/*
 * What follows from the newest entry of the utility log (PROTOCOL.md 3.4, Tree
 * repair; 11).
 *
 * The tree is a function of who leads, who accepts and who lives:
 *
 *     memory acceptor     the leader is the root, all others are members
 *     process acceptor    the acceptor is the root; the leader is no member, he
 *                         has the batches and gets ACCEPTED
 *
 * Everybody builds it when it learns an epoch, and when it hears that a life
 * has ended or begun. These are not the same moments everywhere, so the root
 * says in each LEARN which nodes its tree has (the field `alive`), and who gets
 * one with other members follows it. Meanwhile a node may hang below one that
 * does not know of it: it gets LEARNs twice, or has to fetch some. The root
 * also leaves out who stands still while others hang below it (driver_bound.c).
 */
#include "core/base/assert.h"
#include "core/plan/mixable_trees.h"
#include "paxos/driver/driver_internal.h"
#include "paxos/mutant.h"

/* ---- who ----------------------------------------------------------------- */

uint64_t qn_driver_living(const struct qn_driver *d)
{
    uint64_t mask = 0;
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        mask |= qn_driver_lives(d, i) ? qn_driver_bit(i) : 0;
    }
    return mask;
}

/** This life is the newest known of its id, and has not ended. */
static bool life_lives(const struct qn_driver *d, qn_node_t node, uint64_t inc)
{
    return qn_driver_lives(d, node) && d->peer[node].life.inc == inc;
}

bool qn_driver_acceptor_lives(const struct qn_driver *d)
{
    return life_lives(d, d->cfg.acceptor, d->cfg.acceptor_inc);
}

/* ---- the tree ------------------------------------------------------------ */

/* The root first, then ascending: so trees of different moments can be mixed
 * (core/group/group.h). */
static uint32_t order_make(const struct qn_driver *d, uint64_t members,
                           qn_node_t *order)
{
    bool leader_too = d->cfg.leader == d->cfg.acceptor;
    uint32_t n = 0;
    order[n++] = d->cfg.acceptor;
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        bool in = (members & qn_driver_bit(i)) != 0;
        if (in && i != d->cfg.acceptor && (leader_too || i != d->cfg.leader)) {
            order[n++] = i;
        }
    }
    return n;
}

static void children_find(struct qn_driver *d, const struct qn_tree *t)
{
    d->children = 0;
    for (uint32_t i = 0; t->root == d->o.self && i < t->child_count[t->root];
         i++) {
        d->children |= qn_driver_bit(t->child[t->child_at[t->root] + i]);
    }
    d->children &= qn_driver_living(d);
    d->parent[1] = d->parent[0];
    d->parent[0] = t->parent[d->o.self];
    d->inner = t->child_count[t->root] + 1 < t->n;
}

static int tree_build(struct qn_driver *d, struct qn_tree *t)
{
    qn_node_t order[QN_NODES_MAX];
    uint32_t n = order_make(d, d->members, order);
    int err = d->o.plan != NULL ? qn_mixable_tree_from(t, d->o.plan, order, n)
              : d->o.costs != NULL
                  ? qn_mixable_tree_build(t, d->o.costs, order, n)
                  : qn_tree_build(t, d->o.topology, order, n);
    if (err == QN_OK) {
        d->topology = *t;
        d->reach_slot = 0;
        d->reach = 0;
        children_find(d, t);
    }
    return err;
}

int qn_driver_tree_make(struct qn_driver *d)
{
    struct qn_tree t;
    if (d->o.nodes == 1) {
        return QN_OK;
    }
    d->members = qn_driver_living(d);
    int err = tree_build(d, &t);
    if (err != QN_OK) {
        return QN_EINVAL; /* no such topology */
    }
    const struct qn_context_opts o = {.self = d->o.self,
                                      .tree = &t,
                                      .qp = d->tree,
                                      .deliver = qn_driver_deliver,
                                      .ctx = d};
    return qn_context_create(&d->context, &o);
}

/* What was queued for the children of another tree is forgotten: they fetch it.
 * A child that has got a part of it drops that. */
void qn_driver_tree(struct qn_driver *d, uint64_t members)
{
    struct qn_tree t;
    d->announced = 0; /* of another tree */
    if (d->context == NULL) {
        return;
    }
    if (d->delivering) {
        d->announced = members; /* when the context may be called again */
        d->children = 0;
        return;
    }
    d->members = members;
    int err = tree_build(d, &t);
    if (err == QN_OK) {
        err = qn_context_reroot(d->context, &t);
    }
    QN_ASSERT(err == QN_OK);
    if (t.root != d->o.self) {
        qn_sendq_free(&d->bcast);
        d->stalled_since = 0;
    }
    d->left_behind &= d->children;
}

/* ---- a new epoch --------------------------------------------------------- */

/* Who has lost his role, and why, as far as it is known here. */
static void reason_find(struct qn_driver *d, const struct qn_ul_entry *old,
                        const struct qn_ul_entry *e)
{
    bool accepts = e->kind == QN_UL_ACCEPTOR;
    d->lost = accepts ? old->acceptor : old->leader;
    d->lost_inc = accepts ? old->acceptor_inc : old->leader_inc;
    bool ordered = !accepts && d->ordered == (uint64_t)old->index + 1;
    d->reason = !life_lives(d, d->lost, d->lost_inc) ? QN_REASON_DEATH
                : ordered                            ? QN_REASON_ORDER
                                                     : QN_REASON_SUSPECTED;
    d->changed_at = d->now;
    d->failovers++;
}

static const struct qn_ul_entry *newest(const struct qn_utility *u)
{
    for (uint32_t i = qn_utility_len(u); i-- > 0;) {
        const struct qn_ul_entry *e = qn_utility_entry(u, i);
        if (e == NULL || e->kind != QN_UL_VOTER) {
            return e;
        }
    }
    return NULL;
}

void qn_driver_roles(struct qn_driver *d)
{
    const struct qn_utility *u = qn_onepaxos_utility(d->machine);
    const struct qn_ul_entry *e = newest(u);
    struct qn_ul_entry old = d->cfg;
    bool begin = d->ul_len == 0;
    d->ul_len = qn_utility_len(u);
    if (e == NULL || (!begin && e->index == old.index)) {
        return;
    }
    d->cfg = *e;
    qn_driver_note_epoch(d);
    if (!begin) {
        reason_find(d, &old, e);
        d->beat_at = d->now;
    }
    qn_driver_learned(d, qn_onepaxos_learned(d->machine));
    /* release -> acquire in qn_driver_bound: who is appointed has learned all
     * that its predecessors have accepted. */
    qn_store(&d->o.state->epoch, e->index, QN_RELEASE);
    d->left_behind = d->lagging = 0;
    qn_driver_tree(d, qn_driver_living(d));
}

/* ---- who is waited for --------------------------------------------------- */

/* Process acceptor: the own leader role needs its acceptor. */
static bool acceptor_needed(const struct qn_driver *d,
                            const struct qn_onepaxos_status *st)
{
    return !d->memory && st->role != QN_FOLLOWER &&
           (st->role != QN_ACTIVE || st->next - 1 > st->learned_hi);
}

uint64_t qn_driver_waits_for(const struct qn_driver *d)
{
    struct qn_onepaxos_status st;
    uint64_t mask = 0;
    if (d->o.nodes == 1) {
        return 0;
    }
    qn_onepaxos_status(d->machine, &st);
    if (st.unapplied != 0) {
        mask |= qn_driver_bit(d->cfg.leader);
    }
    if (acceptor_needed(d, &st)) {
        mask |= qn_driver_bit(d->cfg.acceptor);
    }
    return mask & qn_driver_living(d) & ~qn_driver_bit(d->o.self);
}

void qn_driver_suspect(struct qn_driver *d, uint64_t peers, qn_time_t now)
{
    if (peers == d->suspected) {
        return;
    }
    uint64_t before = d->suspected;
    d->now = now;
    d->suspected = peers;
    qn_driver_note_suspects(d, before);
    const struct qn_input in = {.kind = QN_IN_SUSPECT, .suspect = {peers}};
    qn_driver_step(d, &in);
    qn_driver_publish(d);
}

void qn_driver_lead(struct qn_driver *d, qn_node_t heir, qn_time_t now)
{
    const struct qn_input in = {.kind = QN_IN_LEAD};
    d->now = now;
    d->ordered = (uint64_t)d->cfg.index + 1;
    if (heir == d->o.self && d->o.nodes > 1) {
        qn_driver_step(d, &in);
        qn_driver_publish(d);
    }
}

/* ---- status -------------------------------------------------------------- */

/* Who could go on alone from the ring of the word's owner. */
static uint64_t in_sync_memory(const struct qn_driver *d)
{
    struct qn_word w = qn_shared_word(&d->shared);
    qn_node_t owner;
    uint64_t inc;
    const struct qn_ring *r =
        qn_driver_owner(d, w, &owner, &inc)
            ? qn_driver_ring((void *)(uintptr_t)d, owner, inc)
            : NULL;
    uint64_t mask = 0;
    for (qn_node_t i = 0; i < d->o.nodes && r != NULL; i++) {
        const struct qn_outbox_state *s =
            i == d->o.self ? d->o.state : d->peer[i].state;
        /* acquire <- release in the peer's driver. */
        if (qn_driver_lives(d, i) && s != NULL &&
            qn_load(&s->mapped, QN_ACQUIRE) >= w.epoch &&
            (qn_load(&s->applied, QN_ACQUIRE) + 1 >= qn_ring_lo(r) ||
             QN_MUTANT(FALSE_SYNC))) {
            mask |= qn_driver_bit(i);
        }
    }
    return mask;
}

static uint64_t in_sync(const struct qn_driver *d)
{
    if (d->memory) {
        return in_sync_memory(d);
    }
    return (life_lives(d, d->cfg.leader, d->cfg.leader_inc)
                ? qn_driver_bit(d->cfg.leader)
                : 0) |
           (qn_driver_acceptor_lives(d) ? qn_driver_bit(d->cfg.acceptor) : 0);
}

void qn_driver_status(const struct qn_driver *d, struct qn_driver_status *out)
{
    struct qn_onepaxos_status st;
    qn_onepaxos_status(d->machine, &st);
    *out = (struct qn_driver_status){
        .role = st.role,
        .epoch = st.epoch,
        .leader = st.leader,
        .acceptor = st.acceptor,
        .alive = qn_driver_living(d),
        .in_sync = in_sync(d),
        .failovers = d->failovers,
        .reason = d->reason,
        .lost = d->lost,
        .need_snapshot = st.need_snapshot,
        .served = qn_onepaxos_served(d->machine),
        .stopped = qn_driver_stopped(d),
        .incomplete = qn_driver_incomplete(d),
        .waiting = qn_driver_waiting(d),
        .verdict = d->verdict,
        .said = qn_driver_said(d),
        .mute = d->mute,
        .applied = d->applied,
        .learned = st.learned_hi,
        .decided_hi = st.decided_hi,
        .batches = d->batches,
        .commands = d->commands,
        .unapplied = st.unapplied,
        .fetches = st.fetches,
        .log_bytes = st.log_bytes,
        .reach = d->reach,
        .pause = d->tempo.gap,
        .slow = qn_tempo_slow(&d->tempo),
    };
}

const struct qn_tree *qn_driver_topology(const struct qn_driver *d)
{
    return d->context != NULL ? &d->topology : NULL;
}
