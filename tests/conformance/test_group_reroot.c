/*
 * Roots that take turns, between real threads and real processes: each epoch
 * has another root, which sends TENURE messages and then tells all on the
 * direct lanes that the next epoch has begun. So nodes change the tree one
 * after the other, with the old root's messages in their lanes, through rings
 * so small that long messages are always under way. Roots wait for room and all
 * sleep when they have nothing to do: a lost wake-up is a hang.
 *
 * The root of the last epoch repeats one message until all have it; inner nodes
 * may have dropped it.
 */
#include <stdio.h>

#include "core/base/clock.h"
#include "core/group/group.h"
#include "tests/conformance/mesh_of.h"
#include "tests/support/sanitized.h"

#define LAPS QN_UNSANITIZED(3u, 2u) /* epochs of each root */

enum {
    TENURE = QN_UNSANITIZED(30, 10), /* messages of an epoch */
    GOT_LAST = 0x10000000,           /* on the direct lanes, besides epochs */
    ALL_DONE = 0x20000000,
};

struct head {
    uint32_t epoch, number;
};

struct work {
    const char *shape;
    struct qn_mesh_end *end;
    struct qn_context *context;
    struct qn_qp *qp[QN_NODES_MAX];
    struct qn_tree tree;
    uint32_t epoch, last_epoch;
    uint32_t sent;                   /* root: in this epoch */
    struct head heard[QN_NODES_MAX]; /* by sender; number from 1 */
    uint64_t missing;                /* last root: nodes that lack it */
    qn_time_t repeat_at;
    bool told_last, done, wrong;
};

static bool is_flat(const struct work *w)
{
    return strcmp(w->shape, "sequential") == 0;
}

static uint32_t size_of(struct head h)
{
    static const uint32_t sizes[] = {8, 48, 57, 200, 8, 56, 3000, 1500};
    return h.number == TENURE / 2 ? QN_MSG_MAX : sizes[h.number % 8];
}

static void fill(uint8_t *buf, struct head h)
{
    pattern(buf, size_of(h), h.epoch * 1000 + h.number);
    memcpy(buf, &h, sizeof h);
}

/* ---- what comes --------------------------------------------------------- */

static void tell(struct work *w, qn_node_t to, uint32_t what)
{
    struct qn_qp *qp = w->end->qp[to][QN_LANE_DIRECT];
    w->wrong |= qn_qp_try_send(qp, &what, sizeof what) != QN_OK;
    qn_qp_flush(qp);
}

static void tell_all(struct work *w, uint32_t what)
{
    for (qn_node_t v = 0; v < w->end->nodes; v++) {
        if (v != w->end->self) {
            tell(w, v, what);
        }
    }
}

static void deliver(void *ctx, const void *msg, size_t len)
{
    static _Thread_local uint8_t copy[QN_MSG_MAX];
    static _Thread_local uint8_t want[QN_MSG_MAX];
    struct work *w = ctx;
    struct head h;
    memcpy(copy, msg, len);
    memcpy(&h, copy, sizeof h);
    fill(want, h);
    struct head *before = &w->heard[qn_context_sender(w->context)];
    /* Who sends to all itself sends nothing twice and nothing late. */
    bool later = h.epoch > before->epoch ||
                 (h.epoch == before->epoch && h.number > before->number) ||
                 h.epoch == w->last_epoch;
    if (len != size_of(h) || memcmp(copy, want, len) != 0 ||
        (is_flat(w) && !later)) {
        fprintf(stderr, "node %u: got %u.%u (%zu bytes) after %u.%u\n",
                w->end->self, h.epoch, h.number, len, before->epoch,
                before->number);
        w->wrong = true;
    }
    *before = h;
    if (h.epoch == w->last_epoch && !w->told_last) {
        w->told_last = true;
        tell(w, h.epoch % w->end->nodes, GOT_LAST);
    }
}

static void reroot(struct work *w, uint32_t epoch)
{
    qn_node_t order[QN_NODES_MAX];
    uint32_t n = 0;
    order[n++] = epoch % w->end->nodes;
    for (qn_node_t v = 0; v < w->end->nodes; v++) {
        if (v != order[0]) {
            order[n++] = v;
        }
    }
    w->epoch = epoch;
    w->sent = 0;
    w->wrong |= qn_tree_build(&w->tree, w->shape, order, n) != QN_OK;
    if (w->context != NULL) {
        w->wrong |= qn_context_reroot(w->context, &w->tree) != QN_OK;
    }
}

static void told(struct work *w, qn_node_t from, uint32_t what)
{
    if (what == GOT_LAST) {
        w->missing &= ~(UINT64_C(1) << from);
    } else if (what == ALL_DONE) {
        w->done = true;
    } else if (what > w->epoch) {
        reroot(w, what);
    }
}

static bool listen_direct(struct work *w)
{
    bool did = false;
    for (qn_node_t v = 0; v < w->end->nodes; v++) {
        struct qn_qp *qp = w->end->qp[v][QN_LANE_DIRECT];
        uint32_t what;
        size_t len;
        while (qp != NULL &&
               qn_qp_try_recv(qp, &what, sizeof what, &len) == QN_OK) {
            told(w, v, what);
            did = true;
        }
    }
    return did;
}

/* ---- the root ----------------------------------------------------------- */

static qn_node_t child_at(const struct work *w, uint32_t i)
{
    return w->tree.child[w->tree.child_at[w->end->self] + i];
}

static bool children_have_room(struct work *w)
{
    bool room = true;
    for (uint32_t i = 0; i < w->tree.child_count[w->end->self]; i++) {
        room &= qn_qp_room(w->qp[child_at(w, i)]) > 0;
    }
    return room;
}

static void send_next(struct work *w)
{
    static _Thread_local uint8_t buf[QN_MSG_MAX];
    struct head h = {w->epoch, ++w->sent};
    fill(buf, h);
    const struct qn_slice m = {buf, size_of(h)};
    w->wrong |= qn_context_bcast(w->context, &m, 1, NULL) != QN_OK;
}

static bool send_last(struct work *w)
{
    if (w->missing == 0) {
        tell_all(w, ALL_DONE);
        w->done = true;
    } else if (qn_clock_now() >= w->repeat_at) {
        w->sent = 0;
        send_next(w);
        w->repeat_at = qn_clock_now() + QN_MS;
    }
    return w->done;
}

static bool root_step(struct work *w)
{
    if (w->tree.root != w->end->self) {
        return false;
    }
    if (w->epoch == w->last_epoch) {
        return send_last(w);
    }
    if (w->sent == TENURE) {
        tell_all(w, w->epoch + 1);
        reroot(w, w->epoch + 1);
        return true;
    }
    if (!children_have_room(w)) {
        return false;
    }
    send_next(w);
    return true;
}

/* ---- a node ------------------------------------------------------------- */

static bool turn(struct work *w)
{
    bool did = qn_context_poll(w->context, 64) > 0;
    did |= listen_direct(w);
    did |= root_step(w);
    return did;
}

/* Only a flush asks to be rung for room, also where nothing was sent. */
static void flush(struct work *w)
{
    qn_context_flush(w->context);
    for (qn_node_t v = 0; v < w->end->nodes; v++) {
        if (v != w->end->self) {
            qn_qp_flush(w->qp[v]);
        }
    }
}

static int serve(struct work *w)
{
    int rc = QN_OK;
    while (!w->done && !w->wrong && (rc == QN_OK || rc == QN_ETIMEDOUT)) {
        if (turn(w)) {
            continue;
        }
        bool repeats =
            w->tree.root == w->end->self && w->epoch == w->last_epoch;
        qn_doorbell_arm(&w->end->doorbell);
        flush(w);
        if (!qn_context_pending(w->context) && !turn(w)) {
            rc = qn_doorbell_wait(&w->end->doorbell,
                                  repeats ? w->repeat_at : QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&w->end->doorbell);
    }
    flush(w);
    return w->done ? QN_OK : rc;
}

static int node(struct qn_mesh_end *end, void *arg)
{
    struct work w = {.shape = arg,
                     .end = end,
                     .last_epoch = LAPS * end->nodes + 1,
                     .missing = ((UINT64_C(1) << end->nodes) - 1) &
                                ~(UINT64_C(1) << end->self)};
    for (qn_node_t v = 0; v < end->nodes; v++) {
        w.qp[v] = end->qp[v][QN_LANE_TREE];
    }
    reroot(&w, 0);
    const struct qn_context_opts o = {.self = end->self,
                                      .tree = &w.tree,
                                      .qp = w.qp,
                                      .deliver = deliver,
                                      .ctx = &w};
    if (w.wrong || qn_context_create(&w.context, &o) != QN_OK) {
        return 1;
    }
    int rc = serve(&w);
    qn_context_destroy(w.context);
    return rc != QN_OK || w.wrong || w.epoch != w.last_epoch;
}

static void run(const char *shape, uint32_t n, uint32_t cells, bool processes)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct qn_mesh m;
        char name[16];
        strcpy(name, shape);
        if (!make_mesh(&m, t, n, cells, processes)) {
            continue;
        }
        uint32_t failed = qn_mesh_run(&m, node, name);
        qn_mesh_destroy(&m);
        cr_assert_eq(failed, 0, "%s: %u of %u nodes", t->name, failed, n);
    }
}

Test(group_reroot_threads, two_take_turns_on_the_smallest_ring, .timeout = 60)
{
    run("sequential", 2, 16, false);
}

Test(group_reroot_threads, five_take_turns_to_send_to_all, .timeout = 60)
{
    run("sequential", 5, 16, false);
}

Test(group_reroot_threads, seven_take_turns_above_each_other, .timeout = 60)
{
    run("binary", 7, 16, false);
}

Test(group_reroot_threads, nine_take_turns_on_the_usual_ring, .timeout = 60)
{
    run("binary", 9, QN_CELLS_DEFAULT, false);
}

Test(group_reroot_processes, five_take_turns_above_each_other, .timeout = 60)
{
    run("binary", 5, 64, true);
}
