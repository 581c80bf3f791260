/* See peers.h. */
#include "paxos/member/peers.h"

#include <fcntl.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"

/* ---- one peer ------------------------------------------------------------ */

int qn_peer_create(struct qn_mapped_peer **out,
                   const struct qn_mapped_peer *like, struct qn_outbox *outbox,
                   int fd)
{
    const struct qn_alloc *a = qn_alloc_or_malloc(like->alloc);
    struct qn_mapped_peer *p = qn_alloc_zeroed(a, sizeof *p);
    int own = p == NULL ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) {
        int err = p == NULL ? QN_ENOMEM : QN_EMFILE;
        qn_outbox_destroy(outbox);
        qn_alloc_free(a, p);
        return err;
    }
    p->alloc = a;
    p->node = like->node;
    p->incarnation = like->incarnation;
    p->pid = like->pid;
    p->fd = own;
    p->outbox = outbox;
    *out = p;
    return QN_OK;
}

void qn_peer_destroy(struct qn_mapped_peer *p)
{
    if (p != NULL) {
        qn_outbox_destroy(p->outbox);
        close(p->fd);
        qn_alloc_free(p->alloc, p);
    }
}

/* ---- all of them --------------------------------------------------------- */

void qn_peers_add(struct qn_peers *p, struct qn_mapped_peer *peer)
{
    QN_ASSERT(peer->node < QN_NODES_MAX);
    QN_ASSERT(p->present[peer->node] == NULL);
    QN_ASSERT(p->direct[peer->node] == NULL);
    QN_ASSERT(p->tree[peer->node] == NULL);
    p->present[peer->node] = peer;
    p->mask |= UINT64_C(1) << peer->node;
    p->incarnation[peer->node] = peer->incarnation;
}

static void count(struct qn_qp_traffic *sum, struct qn_qp_traffic t)
{
    sum->sent += t.sent;
    sum->received += t.received;
}

static void count_if(struct qn_qp_traffic *sum, const struct qn_qp *qp,
                     const struct qn_qp_ops *ops)
{
    if (qp != NULL && qp->ops == ops) {
        count(sum, qn_qp_traffic(qp));
    }
}

struct qn_qp_traffic qn_peers_traffic(const struct qn_peers *p,
                                      const struct qn_qp_ops *ops)
{
    struct qn_qp_traffic sum = {0};
    for (uint32_t i = 0; i < QN_PEERS_BACKENDS; i++) {
        if (p->past[i].ops == ops) {
            count(&sum, p->past[i].traffic);
        }
    }
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        count_if(&sum, p->direct[i], ops);
        count_if(&sum, p->tree[i], ops);
    }
    return sum;
}

static void keep_count(struct qn_peers *p, const struct qn_qp *qp)
{
    uint32_t i = 0;
    if (qp == NULL) {
        return;
    }
    while (p->past[i].ops != NULL && p->past[i].ops != qp->ops) {
        i++;
        QN_ASSERT(i < QN_PEERS_BACKENDS);
    }
    p->past[i].ops = qp->ops;
    count(&p->past[i].traffic, qn_qp_traffic(qp));
}

void qn_peers_close_queuepairs(struct qn_peers *p, qn_node_t node)
{
    keep_count(p, p->direct[node]);
    keep_count(p, p->tree[node]);
    qn_qp_close(p->direct[node]);
    qn_qp_close(p->tree[node]);
    p->direct[node] = p->tree[node] = NULL;
}

void qn_peers_retain(struct qn_peers *p, struct qn_mapped_peer *peer)
{
    QN_ASSERT(p->present[peer->node] != peer);
    QN_ASSERT(peer->next == NULL);
    peer->next = p->retained;
    p->retained = peer;
}

/* Out of the map, with its queuepairs closed. */
static struct qn_mapped_peer *remove_present(struct qn_peers *p, qn_node_t node)
{
    struct qn_mapped_peer *peer = p->present[node];
    QN_ASSERT(peer->node == node);
    QN_ASSERT(peer->incarnation == p->incarnation[node]);
    qn_peers_close_queuepairs(p, node);
    p->present[node] = NULL;
    p->mask &= ~(UINT64_C(1) << node);
    return peer;
}

struct qn_mapped_peer *qn_peers_retire(struct qn_peers *p, qn_node_t node)
{
    struct qn_mapped_peer *peer = remove_present(p, node);
    qn_peers_retain(p, peer);
    return peer;
}

void qn_peers_drop(struct qn_peers *p, qn_node_t node)
{
    qn_peer_destroy(remove_present(p, node));
}

void qn_peers_sweep(struct qn_peers *p,
                    bool (*needed)(const void *ctx,
                                   const struct qn_mapped_peer *peer),
                    const void *ctx)
{
    struct qn_mapped_peer **at = &p->retained;
    while (*at != NULL) {
        struct qn_mapped_peer *peer = *at;
        if (needed(ctx, peer)) {
            at = &peer->next;
        } else {
            *at = peer->next;
            qn_peer_destroy(peer);
        }
    }
}

void qn_peers_fini(struct qn_peers *p)
{
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        qn_peers_close_queuepairs(p, i);
        qn_peer_destroy(p->present[i]);
        p->present[i] = NULL;
    }
    p->mask = 0;
    while (p->retained != NULL) {
        struct qn_mapped_peer *peer = p->retained;
        p->retained = peer->next;
        qn_peer_destroy(peer);
    }
}
