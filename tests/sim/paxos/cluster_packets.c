/*
 * Packets of the cluster: what a node sends lies in a lane, cut in fragments,
 * until it is delivered or dropped.
 *
 * What a node has no room for is parked: it stays decoded at the head of its
 * lane, and is given again.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/paxos/cluster_internal.h"

static void post_fragment(struct cluster *c, qn_node_t from, qn_node_t to,
                          const struct qn_msg *m, bool tree)
{
    uint8_t head[QN_HEAD_MAX];
    size_t n = qn_msg_head(m, head);
    if (c->member[to].p == NULL) {
        return;
    }
    struct packet *k = malloc(sizeof *k + n + m->body.len);
    *k = (struct packet){
        .from = from, .to = to, .due = c->now, .len = n + m->body.len};
    memcpy(k->bytes, head, n);
    if (m->body.len != 0) {
        memcpy(k->bytes + n, m->body.data, m->body.len);
    }
    if (c->on_send != NULL && !c->on_send(c, k, tree)) {
        free(k);
        return;
    }
    struct lane *l = tree ? &c->tree[from][to] : &c->direct[from][to];
    *l->tail = k;
    l->tail = &k->next;
}

void cluster_post(struct cluster *c, qn_node_t from, qn_node_t to,
                  const struct qn_msg *m, bool tree)
{
    struct qn_msg fragment;
    uint32_t at = 0;
    size_t max = tree || c->fragment_bytes == 0 ? SIZE_MAX : c->fragment_bytes;
    while (qn_msg_cut(m, max, &at, &fragment)) {
        post_fragment(c, from, to, &fragment, tree);
    }
}

void cluster_drop(struct cluster *c, struct lane *l)
{
    (void)c;
    struct packet *k = l->head;
    l->head = k->next;
    if (l->head == NULL) {
        l->tail = &l->head;
    }
    free(k);
}

/** @return false: refused for now. */
static bool give(struct cluster *c, qn_node_t from, qn_node_t to,
                 const struct qn_msg *m)
{
    const struct qn_input in = {.kind = QN_IN_RECV, .recv = {from, m}};
    int err = cluster_step(c, to, &in);
    CHECK(c, err == QN_OK || err == QN_EAGAIN || err == QN_ENOMEM,
          "%u answers %d to %s from %u", to, err, qn_msg_name(m->kind), from);
    return err == QN_OK;
}

bool cluster_deliver(struct cluster *c, struct lane *l, bool tree)
{
    struct packet *k = l->head;
    if (k == NULL || c->member[k->to].p == NULL) {
        return false;
    }
    const qn_node_t to = k->to;
    if (!l->is_parked) {
        int err = qn_msg_decode(&l->parked, k->bytes, k->len);
        CHECK(c, err == QN_OK, "malformed packet %u->%u", k->from, k->to);
        err = tree ? QN_OK : qn_joiner_take(&l->joiner, &c->alloc, &l->parked);
        if (err == QN_ENOMEM) {
            return false;
        }
        CHECK(c, err == QN_OK || err == QN_EAGAIN, "fragments do not join");
        if (err == QN_EAGAIN) {
            const struct qn_input in = {
                .kind = QN_IN_FRAGMENT,
                .fragment = {k->from, l->parked.kind, l->parked.slot}};
            cluster_step(c, to, &in);
            if (c->member[to].p != NULL) {
                cluster_drop(c, l);
            }
            return true;
        }
    }
    bool taken = give(c, k->from, to, &l->parked);
    if (c->member[to].p == NULL) {
        return true; /* it died of it, and its lanes are empty */
    }
    l->is_parked = !taken;
    if (taken) {
        cluster_drop(c, l);
    }
    return taken;
}

void cluster_cut(struct lane *l, uint64_t keep)
{
    struct packet **at = &l->head;
    while (*at != NULL && keep-- > 0) {
        at = &(*at)->next;
    }
    struct packet *rest = *at;
    *at = NULL;
    l->tail = at;
    while (rest != NULL) {
        struct packet *next = rest->next;
        free(rest);
        rest = next;
    }
}

void cluster_reset_lane(struct lane *l)
{
    cluster_cut(l, 0);
    qn_joiner_reset(&l->joiner);
    l->is_parked = false;
}
