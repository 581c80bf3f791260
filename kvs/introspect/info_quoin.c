/*
 * INFO's section Quoin: the leader, the tree, and for each replica its position
 * and the time of its turns.
 */
#include <inttypes.h>
#include <stdio.h>

#include "core/base/bits.h"
#include "kvs/introspect/info_internal.h"

static void replica_line(struct qn_buf *b, const struct qn_info_part *p,
                         qn_slot_t newest)
{
    qn_info_line(b,
                 "replica%" PRIu32 ":state=%s,pid=%" PRIu32 ",commit=%" PRIu64
                 ",applied=%" PRIu64 ",learned=%" PRIu64 ",lag=%" PRIu64
                 ",clients=%" PRIu64 ",used_memory=%" PRIu64
                 ",batch_size=%.2f,commit_usec_p50=%" PRIu64
                 ",commit_usec_p99=%" PRIu64 ",commit_usec_p999=%" PRIu64,
                 p->replica, p->state, p->pid, p->commit, p->applied,
                 p->learned, newest > p->applied ? newest - p->applied : 0,
                 p->connected_clients, p->used_memory,
                 p->batches == 0 ? 0.0 : (double)p->writes / (double)p->batches,
                 p->commit_usec_p50, p->commit_usec_p99, p->commit_usec_p999);
}

static void turns_line(struct qn_buf *b, const struct qn_info_part *p)
{
    qn_info_line(
        b,
        "turns%" PRIu32 ":turn_usec_p99=%" PRIu64 ",turn_usec_p999=%" PRIu64
        ",turn_usec_p9999=%" PRIu64 ",turn_usec_max=%" PRIu64
        ",turn_max_sockets_usec=%" PRIu64 ",turn_max_apply_usec=%" PRIu64
        ",turn_max_answers_usec=%" PRIu64 ",turn_growth_usec_max=%" PRIu64
        ",turn_wall_usec_max=%" PRIu64,
        p->replica, p->turn_usec_p99, p->turn_usec_p999, p->turn_usec_p9999,
        p->turn_usec_max, p->turn_max_sockets_usec, p->turn_max_apply_usec,
        p->turn_max_answers_usec, p->turn_growth_usec_max,
        p->turn_wall_usec_max);
}

static void snapshots_line(struct qn_buf *b, const struct qn_info_part *p)
{
    qn_info_line(
        b,
        "snapshots%" PRIu32 ":joined=%" PRIu64 ",given=%" PRIu64
        ",asked=%" PRIu64 ",cut_bytes=%" PRIu64 ",cut_bytes_max=%" PRIu64
        ",cut_bytes_most=%" PRIu64 ",cuts_anew=%" PRIu64,
        p->replica, p->snapshots_joined, p->snapshots_given, p->snapshots_asked,
        p->cut_bytes, p->cut_bytes_max, p->cut_bytes_most, p->cuts_anew);
}

/* What its queuepairs have moved, in units of each backend: those that are not
 * its transport's stay 0. */
static void transport_line(struct qn_buf *b, const struct qn_info_part *p)
{
    char text[QN_INFO_UNITS * 96] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < QN_INFO_UNITS; i++) {
        const struct qn_info_traffic *t = &p->traffic[i];
        if (t->unit[0] != '\0') {
            n += (size_t)snprintf(text + n, sizeof text - n,
                                  ",%s_sent=%" PRIu64 ",%s_received=%" PRIu64,
                                  t->unit, t->sent, t->unit, t->received);
        }
    }
    qn_info_line(b, "transport%" PRIu32 ":name=%s%s", p->replica, p->transport,
                 text);
}

/* Bytes now, the most ever, and the bound (docs/limits.md). */
static void queues_line(struct qn_buf *b, const struct qn_info_part *p)
{
    const struct qn_driver_kept *l = &p->kept;
    qn_info_line(b,
                 "queues%" PRIu32 ":log_bytes=%" PRIu64
                 ",log_bytes_most=%" PRIu64 ",log_bytes_max=%" PRIu64
                 ",request_bytes=%" PRIu64 ",request_bytes_most=%" PRIu64
                 ",request_bytes_max=%" PRIu64 ",arena_bytes=%" PRIu64
                 ",arena_bytes_most=%" PRIu64 ",arena_bytes_max=%" PRIu64
                 ",ring_bytes=%" PRIu64 ",ring_bytes_max=%" PRIu64
                 ",learn_bytes=%" PRIu64 ",learn_bytes_most=%" PRIu64
                 ",learn_bytes_max=%" PRIu64 ",learns_dropped=%" PRIu64
                 ",lane_bytes=%" PRIu64 ",lane_bytes_most=%" PRIu64,
                 p->replica, l->log.now, l->log.most, l->log.max,
                 l->requests.now, l->requests.most, l->requests.max,
                 l->arena.now, l->arena.most, l->arena.max, l->ring.now,
                 l->ring.max, l->bcast.now, l->bcast.most, l->bcast.max,
                 l->bcast_dropped, l->lanes.now, l->lanes.most);
}

/* "name:0,2", the nodes of a mask. */
static void mask_line(struct qn_buf *b, const char *name, uint64_t mask)
{
    char text[4 * QN_NODES_MAX] = "";
    size_t n = 0;
    for (uint32_t node = 0; node < QN_NODES_MAX; node++) {
        if (mask >> node & 1) {
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%" PRIu32,
                                  n == 0 ? "" : ",", node);
        }
    }
    qn_info_line(b, "%s:%s", name, text);
}

static void role_line(struct qn_buf *b, const char *name, qn_node_t node)
{
    if (node < QN_NODES_MAX) {
        qn_info_line(b, "%s:%" PRIu32, name, node);
    } else {
        qn_info_line(b, "%s:none", name);
    }
}

static void agreement(struct qn_buf *b, const struct qn_info *i)
{
    uint64_t failovers = 0;
    uint64_t pause_usec = 0;
    uint64_t slow = 0;
    uint64_t suspicion_timeout_usec = 0;
    for (uint32_t p = 0; p < i->parts; p++) {
        failovers = QN_MAX(failovers, i->part[p]->failovers);
        suspicion_timeout_usec =
            QN_MAX(suspicion_timeout_usec, i->part[p]->suspicion_timeout_usec);
        pause_usec = QN_MAX(pause_usec, i->part[p]->pause_usec);
        slow |= i->part[p]->slow; /* only the leader's part has both */
    }
    qn_info_count(b, "epoch", i->epoch);
    role_line(b, "leader", i->leader);
    role_line(b, "acceptor", i->acceptor);
    qn_info_line(b, "acceptor_kind:%s", qn_info_text_of(i->acceptor_kind));
    qn_info_line(b, "shared_state:%s", i->shared_state ? "yes" : "no");
    qn_info_line(b, "group:%s", qn_info_text_of(i->group));
    qn_info_line(b, "group_reason:%s", qn_info_text_of(i->group_reason));
    mask_line(b, "group_waits_for", i->waits_for);
    mask_line(b, "in_sync", i->in_sync);
    qn_info_count(b, "failovers", failovers);
    qn_info_line(b, "last_failover:%s", qn_info_text_of(i->last_failover));
    qn_info_count(b, "suspicion_timeout_usec", suspicion_timeout_usec);
    qn_info_count(b, "flow_control_delay_usec", pause_usec);
    mask_line(b, "flow_control_for", slow);
    qn_info_count(b, "lag_timeout_msec", i->lag_timeout_ms);
    qn_info_count(b, "min_replicas_to_write", i->min_replicas_to_write);
}

/* The leader's figures of flow control (paxos/flow/flow.h). */
static void flow(struct qn_buf *b, const struct qn_info *i)
{
    const struct qn_info_part *l = NULL;
    for (uint32_t p = 0; p < i->parts; p++) {
        l = i->part[p]->leads && i->part[p]->replica == i->leader ? i->part[p]
                                                                  : l;
    }
    if (l == NULL) {
        return; /* it does not answer */
    }
    mask_line(b, "awaited", l->awaited);
    qn_info_line(b, "writes_held:%d", l->writes_held);
    qn_info_count(b, "gate_shut_usec", l->gate_shut_usec);
    qn_info_count(b, "replicas_given_up", l->given_up);
    qn_info_count(b, "holds_given_up", l->holds_given_up);
    for (uint32_t n = 0; n < i->seats; n++) {
        if (n != l->replica && (i->members >> n & 1) != 0) {
            qn_info_line(b,
                         "flow%" PRIu32 ":awaited=%d,lag_bytes=%" PRIu64
                         ",lag_slots=%" PRIu64 ",gate_shut_usec=%" PRIu64
                         ",pace_bytes=%" PRIu64,
                         n, (int)(l->awaited >> n & 1), l->lag_bytes[n],
                         l->lag_slots[n], l->shut_usec[n], l->pace[n]);
        }
    }
}

/* Writes that were answered without their execution's reply. */
static void writes_lines(struct qn_buf *b, const struct qn_info *i)
{
    uint64_t timeout = 0;
    uint64_t snapshot = 0;
    uint64_t covered = 0;
    for (uint32_t p = 0; p < i->parts; p++) {
        timeout += i->part[p]->unknown_timeout;
        snapshot += i->part[p]->unknown_snapshot;
        covered += i->part[p]->covered_ok;
    }
    qn_info_count(b, "writes_unknown_timeout", timeout);
    qn_info_count(b, "writes_unknown_snapshot", snapshot);
    qn_info_count(b, "writes_covered_ok", covered);
}

/* "0>2,0>1,1>3": senders and receivers, from the root down, in order of
 * sending. */
static void tree_line(struct qn_buf *b, const struct qn_tree *t)
{
    char text[8 * QN_NODES_MAX] = "";
    qn_node_t queue[QN_NODES_MAX] = {t->root};
    uint32_t count = 1;
    size_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < t->child_count[queue[i]]; k++) {
            qn_node_t child = t->child[t->child_at[queue[i]] + k];
            n += (size_t)snprintf(text + n, sizeof text - n,
                                  "%s%" PRIu32 ">%" PRIu32, n == 0 ? "" : ",",
                                  queue[i], child);
            queue[count++] = child;
        }
    }
    qn_info_line(b, "tree:%s", text);
}

/* As the root says; NULL: it has not answered. Of two that say that they are
 * one has not heard of its successor yet. */
static const struct qn_info_part *root_of(const struct qn_info *i)
{
    const struct qn_info_part *root = NULL;
    for (uint32_t p = 0; p < i->parts; p++) {
        const struct qn_info_part *x = i->part[p];
        bool newer = root == NULL || x->root_epoch > root->root_epoch;
        root = x->is_root != 0 && newer ? x : root;
    }
    return root;
}

static void ring_or_tree(struct qn_buf *b, const struct qn_info_part *root)
{
    if (root == NULL) {
        qn_info_line(b, "topology_now:unknown");
        qn_info_line(b, "topology_reason:the root of the tree is silent");
        return;
    }
    if (root->ring != 0) {
        qn_info_line(b, "topology_now:ring:k=%" PRIu32, root->ring);
    } else {
        qn_info_line(b, "topology_now:tree");
    }
    qn_info_line(b, "topology_reason:%.*s", (int)QN_INFO_WHY_MAX - 1,
                 root->topology_reason);
    qn_info_count(b, "topology_changes", root->topology_changes);
}

static void topology(struct qn_buf *b, const struct qn_info *i)
{
    uint64_t reach = 0;
    for (uint32_t p = 0; p < i->parts; p++) {
        reach = QN_MAX(reach, i->part[p]->reach_nsec); /* the root's */
    }
    qn_info_line(b, "topology:%s", qn_info_text_of(i->topology));
    ring_or_tree(b, root_of(i));
    if (i->ring_order != NULL) {
        qn_info_line(b, "topology_ring_order:%s", i->ring_order);
    }
    if (i->tree != NULL) {
        tree_line(b, i->tree);
    }
    if (i->predicted_cycles > 0) {
        qn_info_line(b, "tree_predicted_cycles:%.0f", i->predicted_cycles);
    }
    if (i->predicted_nsec > 0) {
        qn_info_count(b, "tree_predicted_nsec", i->predicted_nsec);
    }
    qn_info_count(b, "tree_measured_nsec", reach);
}

void qn_info_quoin(struct qn_buf *b, const struct qn_info *i)
{
    qn_slot_t newest = 0;
    for (uint32_t p = 0; p < i->parts; p++) {
        newest = QN_MAX(newest, i->part[p]->commit);
        newest = QN_MAX(newest, i->part[p]->applied);
    }
    qn_info_line(b, "consistency:%s", qn_info_text_of(i->consistency));
    agreement(b, i);
    flow(b, i);
    topology(b, i);
    qn_info_line(b, "supervisor:%s", i->supervised ? "up" : "down");
    qn_info_line(b, "replicas:%d", __builtin_popcountll(i->members));
    mask_line(b, "voters", i->voters);
    mask_line(b, "non_voting", i->members & ~i->voters);
    qn_info_line(b, "seats:%" PRIu32, i->seats);
    mask_line(b, "vacant_seats", qn_low_bits(i->seats) & ~i->members);
    mask_line(b, "replicas_missing", i->missing);
    qn_info_count(b, "commit", newest);
    writes_lines(b, i);
    for (uint32_t p = 0; p < i->parts; p++) {
        replica_line(b, i->part[p], newest);
    }
    for (uint32_t p = 0; p < i->parts; p++) {
        turns_line(b, i->part[p]);
    }
    for (uint32_t p = 0; p < i->parts; p++) {
        snapshots_line(b, i->part[p]);
        transport_line(b, i->part[p]);
        queues_line(b, i->part[p]);
    }
}
