/*
 * The lives of a replica's peers, as this replica sees them.
 *
 * Each node has one present life at most: its outbox is mapped, and two
 * queuepairs (direct and tree) lead to it. When it ends the queuepairs are
 * closed.
 */
#include "core/base/log.h"
#include "core/place/life.h"
#include "kvs/server.h"
#include "transports/registry.h"

static int qps_open(struct qn_server *s, qn_node_t i)
{
    const struct qn_boot *b = s->boot;
    struct qn_qp **qp[QN_LANES] = {&s->direct[i], &s->tree[i]};
    qn_ringer_init(&s->ringer[i], qn_outbox_bell(s->peer[i]), b->bell_fd[i]);
    for (enum qn_lane lane = 0; lane < QN_LANES; lane++) {
        const struct qn_qp_opts o = {
            .tx = qn_outbox_lane(s->outbox, i, lane),
            .rx = qn_outbox_lane(s->peer[i], b->self, lane),
            .cells = b->config->cells,
            .self = b->self,
            .peer = i,
            .self_inc = b->incarnation,
            .peer_inc = qn_outbox_incarnation(s->peer[i]),
            .bell = &s->bell,
            .ringer = &s->ringer[i],
        };
        int err = s->transport->open(qp[lane], &o);
        if (err != QN_OK) {
            return err;
        }
    }
    return QN_OK;
}

/* During the exchange: who is there, and who is not. */
static int on_heard(void *ctx, const struct qn_boot_event *e,
                    struct qn_outbox *peer)
{
    struct qn_server *s = ctx;
    if (peer == NULL) {
        return QN_EPEERDEAD;
    }
    if (s->peer[e->node] != NULL) {
        qn_outbox_destroy(peer);
        return QN_ECORRUPT;
    }
    s->peer[e->node] = peer;
    return QN_OK;
}

int qn_server_peers_meet(struct qn_server *s)
{
    const struct qn_boot *b = s->boot;
    const struct qn_outbox_opts o = {
        .node = b->self,
        .nodes = b->nodes,
        .incarnation = b->incarnation,
        .lane_bytes = s->transport->lane_bytes(b->config->cells),
        .numa_node = b->numa_node[b->self],
        .reader_numa_node = b->numa_node,
        .shared = true,
    };
    int err = qn_outbox_create(&s->outbox, &o);
    if (err == QN_OK) {
        err = qn_commons_map(&s->commons, b->commons_fd, b->nodes);
    }
    if (err == QN_OK) {
        err = qn_commons_own(s->commons, b->self);
    }
    if (err == QN_OK) {
        err = qn_life_begin(s->commons, b->self, b->incarnation);
    }
    if (err == QN_OK) {
        err = qn_boot_exchange(b, s->outbox, &o, on_heard, s);
    }
    if (err == QN_OK) {
        qn_bell_init(&s->bell, qn_outbox_bell(s->outbox), b->bell_fd[b->self]);
    }
    for (qn_node_t i = 0; err == QN_OK && i < b->nodes; i++) {
        err = s->peer[i] == NULL ? QN_OK : qps_open(s, i);
    }
    return err;
}

void qn_server_peer_down(struct qn_server *s, const struct qn_boot_event *e)
{
    qn_node_t peer = e->node;
    if (peer >= s->boot->nodes || s->direct[peer] == NULL) {
        return;
    }
    qn_driver_down(qn_replica_driver(s->replica), peer, qn_clock_now());
    qn_qp_close(s->direct[peer]);
    qn_qp_close(s->tree[peer]);
    s->direct[peer] = s->tree[peer] = NULL;
    qn_ask_down(s->ask, peer);
    qn_server_events_ended(s, peer, qn_outbox_incarnation(s->peer[peer]),
                           qn_clock_now());
    s->turn_wanted = true;
}

void qn_server_peers_fini(struct qn_server *s)
{
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        qn_qp_close(s->tree[i]);
        qn_qp_close(s->direct[i]);
        qn_outbox_destroy(s->peer[i]);
    }
    if (s->commons != NULL) {
        qn_life_end(s->commons, s->boot->self, s->boot->incarnation);
    }
    qn_commons_destroy(s->commons);
    qn_outbox_destroy(s->outbox);
}
