/*
 * A broadcast that has client, request and reply at its root as 1Paxos has them
 * at its acceptor: what consensus could cost at best, on the same cores and
 * down the same tree.
 *
 *     client (replica 0)   request, as long as an ACCEPT -> root (replica 1)
 *     root                 broadcast, as long as a LEARN, to all but the
 * client; reply, as long as an ACCEPTED -> client
 *
 * The client keeps a window of requests. The root broadcasts each for itself.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/group/group.h"
#include "core/plan/mixable_trees.h"
#include "loadgen/simulate/commit/commit_internal.h"

#define CLIENT        0u
#define ROOT          1u
#define REQUEST_EXTRA 30u /* bytes of an ACCEPT besides its command */
#define LEARN_EXTRA   32u /* and of a LEARN */
#define REPLY         16u
#define WINDOW        16u /* as 1Paxos has slots in flight (PROTOCOL.md 10) */
#define FRAMES        64u /* of one turn */

struct broadcast {
    struct qn_sim_group g;
    struct qn_tree tree; /* over all but the client */
    struct member {
        struct broadcast *b;
        struct qn_context *context;
        uint64_t last; /* number that it got last */
    } member[QN_NODES_MAX];
};

/* Each message carries its number. A node that is too slow misses some. */
static void on_deliver(void *ctx, const void *msg, size_t len)
{
    struct member *m = ctx;
    uint64_t number;
    QN_ASSERT(len >= sizeof number);
    memcpy(&number, msg, sizeof number);
    QN_ASSERT(number > m->last);
    m->b->g.out->missed += number - m->last - 1;
    m->last = number;
}

/* ---- turns --------------------------------------------------------------- */

static void send(struct qn_qp *qp, uint64_t number, size_t len)
{
    uint8_t bytes[QN_SIM_COMMAND_MAX + LEARN_EXTRA] = {0};
    memcpy(bytes, &number, sizeof number);
    int err = qn_qp_try_send(qp, bytes, len);
    QN_ASSERT(err == QN_OK); /* the window is less than a lane */
}

/* @return false: there is no message. */
static bool receive(struct qn_qp *qp, uint64_t *number)
{
    const void *msg;
    size_t len;
    if (qn_qp_peek(qp, &msg, &len) != QN_OK) {
        return false;
    }
    qn_copy_in(number, msg, sizeof *number);
    qn_qp_release(qp);
    return true;
}

static uint32_t window(const struct qn_sim_group *g)
{
    return QN_MIN(g->o.clients, WINDOW);
}

static void answered(struct qn_sim_replica *r, uint64_t number)
{
    struct qn_sim_client *c = &r->client[number % window(r->group)];
    c->applied_at = qn_timed_clock();
    c->position = number;
    qn_sim_history_observe(r, c);
    r->under_way--;
}

static bool client_turn(struct qn_sim_replica *r)
{
    struct qn_qp *qp = r->direct[ROOT];
    uint64_t number;
    bool did = false;
    while (receive(qp, &number)) {
        answered(r, number);
        did = true;
    }
    for (; r->under_way < window(r->group); r->under_way++) {
        uint64_t next = ++r->submitted;
        struct qn_sim_client *c = &r->client[next % window(r->group)];
        c->does = QN_SIM_WRITES;
        c->since = qn_timed_clock();
        send(qp, next, r->group->o.command_bytes + REQUEST_EXTRA);
        did = true;
    }
    (void)qn_qp_flush(qp);
    return did;
}

/* A broadcast that finds no room is dropped, so the root waits for it. */
static bool has_room(const struct broadcast *b)
{
    const struct qn_tree *t = &b->tree;
    bool room = true;
    for (uint32_t k = 0; k < t->child_count[ROOT]; k++) {
        qn_node_t child = t->child[t->child_at[ROOT] + k];
        room &= qn_qp_room(b->g.replica[ROOT].tree[child]) > 0;
    }
    return room;
}

static bool root_turn(struct broadcast *b)
{
    struct qn_qp *qp = b->g.replica[ROOT].direct[CLIENT];
    uint8_t bytes[QN_SIM_COMMAND_MAX + LEARN_EXTRA] = {0};
    const struct qn_slice part = {bytes, b->g.o.command_bytes + LEARN_EXTRA};
    uint64_t number;
    bool did = false;
    while (has_room(b) && receive(qp, &number)) {
        memcpy(bytes, &number, sizeof number);
        int err = qn_context_bcast(b->member[ROOT].context, &part, 1, NULL);
        QN_ASSERT(err == QN_OK);
        send(qp, number, REPLY);
        did = true;
    }
    (void)qn_qp_flush(qp);
    return did;
}

static void node_main(void *ctx, uint32_t node)
{
    struct broadcast *b = ctx;
    while (qn_timed_clock() < b->g.load_until) {
        qn_mark(QN_MARK_POLL);
        bool did = node == CLIENT ? client_turn(&b->g.replica[CLIENT])
                   : node == ROOT
                       ? root_turn(b)
                       : qn_context_poll(b->member[node].context, FRAMES) > 0;
        if (node != CLIENT) {
            (void)qn_context_flush(b->member[node].context);
        }
        if (!did) {
            qn_pause();
        }
    }
}

/* ---- a run --------------------------------------------------------------- */

/* As the driver builds it (paxos/dissemination/dissemination.c). */
static int make_tree(struct broadcast *b)
{
    const struct qn_sim_group *g = &b->g;
    qn_node_t order[QN_NODES_MAX];
    uint32_t n = g->o.replicas - 1;
    for (uint32_t i = 0; i < n; i++) {
        order[i] = ROOT + i;
    }
    return g->plan.n > 0 ? qn_mixable_tree_from(&b->tree, &g->plan, order, n)
           : g->o.tree == QN_SIM_TREE_COSTS
               ? qn_mixable_tree_build(&b->tree, g->costs, order, n)
               : qn_tree_build(&b->tree, g->o.topology, order, n);
}

static int make_contexts(struct broadcast *b)
{
    int err = make_tree(b);
    for (qn_node_t i = ROOT; i < b->g.o.replicas && err == QN_OK; i++) {
        b->member[i].b = b;
        const struct qn_context_opts o = {.self = i,
                                          .tree = &b->tree,
                                          .qp = b->g.replica[i].tree,
                                          .deliver = on_deliver,
                                          .ctx = &b->member[i]};
        err = qn_context_create(&b->member[i].context, &o);
    }
    return err;
}

static int run(struct broadcast *b)
{
    int err = qn_sim_group_plan(&b->g);
    if (err == QN_OK) {
        err = qn_sim_group_open(&b->g);
    }
    if (err == QN_OK) {
        err = make_contexts(b);
    }
    if (err == QN_OK) {
        err = qn_sim_group_run(&b->g, node_main, b, NULL);
    }
    for (qn_node_t i = 0; i < b->g.o.replicas; i++) {
        qn_context_destroy(b->member[i].context);
    }
    if (err == QN_OK) {
        b->g.out->commands = b->g.out->slots = b->member[ROOT + 1].last;
    }
    return err;
}

int qn_sim_broadcast_run(struct qn_sim_commit_result *out,
                         const struct qn_sim_commit_opts *o)
{
    struct broadcast *b = calloc(1, sizeof *b);
    if (b == NULL) {
        return QN_ENOMEM;
    }
    int err = o->replicas < 3 || o->faults > 0
                  ? QN_EINVAL
                  : qn_sim_group_begin(&b->g, out, o);
    if (err == QN_OK) {
        b->g.o.memory = false;
        b->g.o.load = UINT64_C(1) << CLIENT;
        err = run(b);
        qn_sim_group_end(&b->g);
        if (err != QN_OK) {
            qn_sim_commit_free(out);
        }
    }
    free(b);
    return err;
}
