/*
 * From the peers that were heard of to a member that runs.
 *
 * What a guest hears of before it starts is collected, for it may hear of one
 * incarnation twice, of a later one before an earlier one, and of the end of
 * either. Incarnations are numbered over all seats, so in their order those of
 * one seat are right: each but the last has ended.
 *
 * The members with which a group begins all name the same incarnations, those
 * of BEGIN: they are its first voters. One that is not heard of and has ended
 * is named all the same; for each of them the process that founds writes the
 * vote record with which it begins, so that the next process of its seat has
 * one. Any other process comes later, also one that was there before BEGIN; and
 * one that cannot meet each that BEGIN names, with that record.
 */
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/place/liveness.h"
#include "paxos/group/group_internal.h"

/* ---- the member ---------------------------------------------------------- */

/* Never returns: another process is this seat, and may write what is this
 * one's. It happens if this process has closed a descriptor of the commons
 * behind our back. */
static void on_superseded(void *ctx, uint64_t incarnation)
{
    (void)ctx;
    (void)incarnation;
    qn_assert_fail("another process is this member: this one has closed a "
                   "descriptor of the group",
                   __FILE__, __LINE__, __func__);
}

static void on_ended(void *ctx, qn_node_t node, uint64_t incarnation,
                     qn_time_t now)
{
    qn_group_ends_forget(ctx, node);
    (void)incarnation;
    (void)now;
}

static void on_recorded(void *ctx, qn_node_t node, uint64_t incarnation,
                        const void *flight)
{
    (void)ctx;
    (void)node;
    (void)incarnation;
    (void)flight;
}

static void on_resumed(void *ctx, qn_node_t node, qn_time_t timeout)
{
    (void)ctx;
    (void)node;
    (void)timeout;
}

/* Larger than that of any seat, whatever a process may have done to the
 * counter. */
static uint64_t next_incarnation(struct qn_group *g)
{
    uint64_t next = qn_commons_next_incarnation(g->commons);
    for (qn_node_t i = 0; i < g->layout.nodes; i++) {
        uint64_t inc;
        pid_t tid;
        (void)qn_liveness_incarnation(g->commons, i, &inc, &tid);
        next = QN_MAX(next, inc + 1);
    }
    return next;
}

int qn_group_member_make(struct qn_group *g)
{
    int anywhere[QN_NODES_MAX];
    const struct qn_dialogue_layout *l = &g->layout;
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        anywhere[i] = -1;
    }
    g->incarnation = next_incarnation(g);
    const struct qn_member_opts o = {
        .self = g->self,
        .nodes = l->nodes,
        .seats = UINT64_C(1) << g->self, /* lanes, as others come */
        .voters = 1,                     /* until it is known */
        .incarnation = g->incarnation,
        .held = !g->o.robust_list,
        .alloc = &g->alloc.alloc,
        .log = g->o.log,
        .seed = g->incarnation ^ qn_clock_now(),
        .born_ms = qn_clock_wall_ms(),
        .commons_fd = g->commons_fd,
        .hold_fd = qn_rendezvous_locks(g->rendezvous),
        .record_fd = -1,
        .doorbell_fd = g->doorbell_fd,
        .transport = g->o.transport,
        .cells = l->cells,
        .device = qn_group_device(l),
        .shares = true,
        .memory_acceptor = qn_group_by_memory(l),
        .ring_bytes = qn_group_ring_bytes(l),
        .arena_bytes = qn_group_arena_bytes(l),
        .backlog_bytes = l->log_bytes,
        .lag_timeout = QN_S,
        .min_awaited = QN_FLOW_MINORITY,
        .numa_node = anywhere,
        .topology = "sequential",
        .feed = g->o.feed,
        .callbacks = {.superseded = on_superseded,
                      .ended = on_ended,
                      .recorded = on_recorded,
                      .resumed = on_resumed,
                      .ctx = g},
    };
    return qn_member_create(&g->member, &o);
}

/* ---- what was heard of -------------------------------------------------- */

static bool is_dead(const struct qn_group *g, qn_node_t node, uint64_t inc)
{
    const int hold_fd = qn_rendezvous_locks(g->rendezvous);
    return qn_liveness_look(g->commons, hold_fd, node, inc) == QN_LIVENESS_DEAD;
}

static struct qn_group_known *known(struct qn_group *g, qn_node_t node,
                                    uint64_t incarnation)
{
    for (uint32_t i = 0; i < g->known_count; i++) {
        struct qn_group_known *k = &g->known[i];
        if (k->peer.node == node && k->peer.incarnation == incarnation) {
            return k;
        }
    }
    return NULL;
}

bool qn_group_founder_ended(const struct qn_group *g)
{
    return is_dead(g, 0, QN_GROUP_FOUNDER);
}

void qn_group_forget_known(struct qn_group *g)
{
    for (uint32_t i = 0; i < g->known_count; i++) {
        close(g->known[i].peer.fd);
    }
    g->known_count = 0;
}

/* As long as the group has not begun, nothing is needed of those that came and
 * ended. */
static void forget_dead(struct qn_group *g)
{
    uint32_t n = 0;
    if (g->step != QN_STEP_ASSEMBLE || g->first != 0) {
        return;
    }
    for (uint32_t i = 0; i < g->known_count; i++) {
        const struct qn_member_peer *p = &g->known[i].peer;
        if (is_dead(g, p->node, p->incarnation)) {
            close(p->fd);
        } else {
            g->known[n++] = g->known[i];
        }
    }
    g->known_count = n;
}

/* In the order of incarnations. */
static int remember(struct qn_group *g, const struct qn_group_known *like)
{
    if (g->known_count == QN_GROUP_KNOWN_MAX) {
        forget_dead(g);
    }
    uint32_t at = g->known_count;
    if (at == QN_GROUP_KNOWN_MAX) {
        return QN_EDQUOT;
    }
    while (at > 0 &&
           g->known[at - 1].peer.incarnation > like->peer.incarnation) {
        g->known[at] = g->known[at - 1];
        at--;
    }
    g->known[at] = *like;
    g->known_count++;
    return QN_OK;
}

static int peer_up(struct qn_group *g, const struct qn_member_peer *p)
{
    int err = p->node == g->self ? QN_OK : qn_member_peer_up(g->member, p);
    if (err == QN_OK && p->node != g->self) {
        qn_group_ends_watch(g, p->node);
    }
    return err == QN_ESTALE ? QN_OK : err; /* it was told twice */
}

int qn_group_acquaint(struct qn_group *g, const struct qn_group_known *like)
{
    const struct qn_member_peer *p = &like->peer;
    int err = QN_OK;
    QN_ASSERT(p->node < g->layout.nodes);
    if (g->driver != NULL) {
        err = like->ended ? QN_OK : peer_up(g, p);
        close(p->fd);
        return err;
    }
    struct qn_group_known *k = known(g, p->node, p->incarnation);
    if (p->node == g->self && p->incarnation >= g->incarnation) {
        err = QN_ECORRUPT;
    } else if (k != NULL) {
        k->ended = k->ended || like->ended;
        k->seated = k->seated || like->seated;
    } else {
        err = remember(g, like);
        if (err == QN_OK) {
            return QN_OK;
        }
    }
    close(p->fd);
    return err;
}

/* ---- starting ------------------------------------------------------------ */

/* One that has no lanes for this seat, or whose outbox is none, is a peer that
 * is not there: it introduces itself later, or was damaged.
 * @return QN_OK; QN_ENOMEM, QN_EMFILE: the group has ended for this process. */
static int meet_one(struct qn_group *g, const struct qn_group_known *k)
{
    const struct qn_member_peer *p = &k->peer;
    struct qn_member_peer former;
    if (p->node != g->self && qn_member_peer(g->member, p->node, &former)) {
        qn_member_meet_ended(g->member, p->node, former.incarnation);
    }
    int err = qn_member_meet(g->member, p);
    if (err == QN_ENOMEM || err == QN_EMFILE) {
        return qn_group_fail(g, err,
                             "this process cannot map what a member shares");
    }
    if (err != QN_OK || p->node == g->self) {
        return QN_OK;
    }
    if (k->ended || is_dead(g, p->node, p->incarnation)) {
        qn_member_meet_ended(g->member, p->node, p->incarnation);
    } else {
        qn_member_meet_unless_seated(g->member, p->node);
    }
    return QN_OK;
}

static int run(struct qn_group *g, bool first)
{
    const struct qn_service service = qn_group_driver_service(g);
    const struct qn_member_state state = qn_group_member_state(g);
    QN_ASSERT(g->driver == NULL);
    QN_ASSERT(g->first != 0);
    qn_member_set_voters(g->member, g->first);
    int err = qn_member_start(g->member, &service, &state);
    if (err == QN_OK) {
        err = qn_group_watch(g, g->doorbell_fd[g->self], QN_WATCH_DOORBELL);
    }
    if (err != QN_OK) {
        return qn_group_fail(g, err, "the member cannot start");
    }
    g->driver = qn_member_driver(g->member);
    g->failure = qn_driver_apply_failure(g->driver);
    g->complete = first;
    g->step = QN_STEP_RUN;
    for (uint64_t s = qn_member_peers(g->member); s != 0; s &= s - 1) {
        qn_group_ends_watch(g, (qn_node_t)__builtin_ctzll(s));
    }
    return QN_OK;
}

/* The others: those that came after BEGIN. */
static void meet_rest(struct qn_group *g)
{
    for (uint32_t i = 0; i < g->known_count; i++) {
        if (!g->known[i].ended) {
            (void)peer_up(g, &g->known[i].peer);
        }
    }
    qn_group_forget_known(g);
}

int qn_group_start_later(struct qn_group *g)
{
    for (uint32_t i = 0; i < g->known_count; i++) {
        int err = meet_one(g, &g->known[i]);
        if (err != QN_OK) {
            return err;
        }
    }
    for (qn_node_t i = 0; i < g->layout.nodes; i++) {
        uint64_t inc;
        pid_t tid;
        if (i != g->self && qn_liveness_incarnation(g->commons, i, &inc,
                                                    &tid) == QN_LIVENESS_DEAD) {
            qn_member_meet_ended(g->member, i, inc);
        }
    }
    qn_group_forget_known(g);
    qn_group_links_close_ours(g);
    return run(g, false);
}

static int start_first(struct qn_group *g)
{
    for (qn_node_t i = 0; i < g->layout.nodes; i++) {
        if (i == g->self || g->begin[i] == 0) {
            continue;
        }
        const struct qn_group_known *k = known(g, i, g->begin[i]);
        int err = k != NULL ? meet_one(g, k) : QN_OK;
        if (err != QN_OK) {
            return err;
        }
        if (k == NULL || is_dead(g, i, g->begin[i])) {
            qn_member_meet_ended(g->member, i, g->begin[i]);
        }
    }
    qn_member_set_first(g->member);
    int err = run(g, true);
    if (err == QN_OK && g->founds) {
        const uint64_t others = g->first & ~(UINT64_C(1) << g->self);
        err = qn_member_begin_records(g->member, others);
        if (err != QN_OK) {
            return qn_group_fail(g, err, "no memory for the first records");
        }
    }
    if (err == QN_OK) {
        meet_rest(g);
        qn_group_links_begin(g);
        qn_group_links_close_ours(g);
    }
    return err;
}

/* ---- all have come ------------------------------------------------------- */

uint64_t qn_group_first(const struct qn_group *g)
{
    uint64_t mask = 0;
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        mask |= (uint64_t)(g->begin[i] != 0) << i;
    }
    return mask;
}

/* The present incarnation of each seat, the last one known that lives; as many
 * as the group begins with, this one among them. */
static bool all_live(struct qn_group *g)
{
    uint32_t n = 0;
    for (qn_node_t i = 0; i < g->layout.nodes; i++) {
        g->begin[i] = 0;
    }
    for (uint32_t i = 0; i < g->known_count; i++) {
        const struct qn_member_peer *p = &g->known[i].peer;
        if (p->node != g->self && !g->known[i].observer &&
            !is_dead(g, p->node, p->incarnation)) {
            g->begin[p->node] = p->incarnation;
        }
    }
    g->begin[g->self] = g->incarnation;
    for (qn_node_t i = 0; i < g->layout.nodes; i++) {
        n += g->begin[i] != 0;
        g->begin[i] = n <= g->o.members ? g->begin[i] : 0; /* it comes later */
    }
    return n >= g->o.members;
}

/* Each that BEGIN names was heard of, or has ended. @param seated  Filled: and
 * has lanes for this one. One that was stalled has none. */
static bool all_heard(struct qn_group *g, bool *seated)
{
    *seated = true;
    for (qn_node_t i = 0; i < g->layout.nodes; i++) {
        if (i == g->self || g->begin[i] == 0 || is_dead(g, i, g->begin[i])) {
            continue;
        }
        const struct qn_group_known *k = known(g, i, g->begin[i]);
        *seated = *seated && k != NULL && k->seated;
        if (k == NULL) {
            return false;
        }
    }
    return true;
}

int qn_group_assemble_turn(struct qn_group *g)
{
    if (g->founds && all_live(g)) {
        g->has_begin = true;
        g->first = qn_group_first(g);
        return start_first(g);
    }
    bool seated;
    if (!g->has_begin || !all_heard(g, &seated)) {
        return QN_OK;
    }
    return seated && g->begin[g->self] == g->incarnation
               ? start_first(g)
               : qn_group_start_later(g);
}
