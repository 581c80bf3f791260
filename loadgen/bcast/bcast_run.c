/*
 * Every node runs the same program and derives from the number of an operation
 * whose turn it is, so only the messages themselves control the run: the last
 * message of each part says so. Beside the queuepairs, nodes share only the
 * number of messages that each has delivered, one line per node. It is read
 * only while no time is measured, and in the throughput part when the window is
 * full.
 *
 *     latency, plain                    latency, acked
 *     leaf   request --> root           root  broadcast --> all
 *     root   broadcast --> all          all   acknowledge
 *     leaf   has it: time               root  knows it: time
 *     leaf   all have it? next
 *
 * A leaf has RUN operations in a row. The first of them is not counted, since
 * the lines of its request are cold; nor is the first round over all leaves.
 * The throughput part flushes when the window is full, as a busy node would.
 *
 * Waiting is polling: parking a node would add the time of waking it to what
 * the model predicts. Nodes that share a core park: a polling node would keep
 * the core from those it waits for.
 */
#include "loadgen/bcast/bcast_run.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/group/group.h"
#include "loadgen/bench/mesh.h"

#define RUN        8u   /* operations of a leaf in a row */
#define ROUNDS     2u   /* minimum of rounds over all leaves */
#define ACKED_MIN  32u  /* minimum of operations of the latency part */
#define BUDGET     64u  /* frames per poll */
#define CELL_BYTES 48u  /* minimum of message bytes in a cell */
#define CELLS_MIN  128u /* of a lane */
#define NAP        (200 * QN_US)
#define LOOKS      1024u /* idle polls between two readings of the clock */

/* Kind of a message, in the low bits of its number. */
enum kind { PLAIN, LATENCY_ENDS, ALL_ENDS, KIND_BITS = 2 };

struct tally {
    alignas(QN_CACHELINE) qn_a64 delivered; /* written by its node only */
};

struct run_state {
    const struct qn_bcast_run_opts *o;
    struct qn_bcast_run
        *d; /* each histogram is written by its leaf, stream by the root; the
               rest is added after all have ended */
    uint32_t leaves;
    qn_node_t leaf[QN_NODES_MAX]; /* [leaves] ascending */
    struct tally tally[QN_NODES_MAX];
    uint64_t wrong[QN_NODES_MAX]; /* by node, written when it ends */
    alignas(QN_CACHELINE) qn_a32 ready;
    qn_a32 finished;
    qn_a32 stuck; /* a node gave up */
};

struct node {
    struct run_state *f;
    struct qn_mesh_end *end;
    struct qn_context *c;
    uint64_t got;  /* number of the last message received; at the root: sent */
    uint64_t told; /* number that was written to tally */
    uint64_t wrong;
    enum kind kind; /* the last message that was not PLAIN */
    uint64_t idle;
    uint64_t moved; /* when a message was found last: ns, or naps; 0: now */
    uint8_t message[QN_BCAST_RUN_SIZE_MAX];
};

static uint32_t find_leaves(const struct qn_tree *t, qn_node_t *leaf)
{
    uint32_t count = 0;
    for (qn_node_t v = 0; v < t->n; v++) {
        if (t->child_count[v] == 0 && v != t->root) {
            leaf[count++] = v;
        }
    }
    return count;
}

/* Leaf that requests a message of the latency part. */
static qn_node_t requester(const struct run_state *f, uint64_t number)
{
    return f->leaf[(number - 1) / RUN % f->leaves];
}

/* ---- messages ---- */

static void publish(struct node *n)
{
    const struct qn_bcast_run_opts *o = n->f->o;
    n->told = n->got;
    /* release -> acquire in least: a node that reads it knows that this node is
     * past these messages. */
    qn_store(&n->f->tally[n->end->self].delivered, n->got, QN_RELEASE);
    qn_node_t next =
        n->kind == PLAIN ? requester(n->f, n->got + 1) : o->tree->root;
    if (o->shared && !o->acked && next != n->end->self) {
        (void)qn_doorbell_ring(&n->end->ringer[next]); /* it may be parked */
    }
}

static void deliver(void *ctx, const void *msg, size_t len)
{
    struct node *n = ctx;
    const struct qn_bcast_run_opts *o = n->f->o;
    const uint8_t *byte = msg;
    uint64_t word = 0;
    memcpy(&word, msg, QN_MIN(len, sizeof word));
    uint64_t number = word >> KIND_BITS;
    enum kind kind = (enum kind)(word & ((1u << KIND_BITS) - 1));
    n->wrong += len != o->size || number != n->got + 1 ||
                (len > sizeof word && byte[len - 1] != (uint8_t)number);
    n->got = number;
    bool streaming = n->kind == LATENCY_ENDS;
    n->kind = kind != PLAIN ? kind : n->kind;
    uint64_t step = streaming ? QN_MAX(o->window / 4, 1u) : 1;
    if (kind != PLAIN || n->got - n->told >= step) {
        publish(n);
    }
}

/* Send the next message from the root. Returns QN_EAGAIN without room. */
static int send_next(struct node *n, enum kind kind)
{
    const struct qn_bcast_run_opts *o = n->f->o;
    const struct qn_slice part = {n->message, o->size};
    uint64_t number = n->got + 1, word = number << KIND_BITS | kind;
    uint64_t given = number;
    n->message[o->size - 1] = (uint8_t)number;
    memcpy(n->message, &word, sizeof word);
    int rc = o->acked ? qn_context_bcast_acked(n->c, &part, 1, &given)
                      : qn_context_bcast(n->c, &part, 1, NULL);
    if (rc == QN_OK) {
        n->got = number;
        n->kind = kind != PLAIN ? kind : n->kind;
        n->wrong += given != number;
        publish(n);
    }
    return rc;
}

/* ---- waiting ---- */

static bool given_up(const struct node *n)
{
    /* relaxed: a hint to stop; no other data depends on it. */
    return qn_load(&n->f->stuck, QN_RELAXED) != 0;
}

static bool interrupted(const struct node *n)
{
    const struct qn_bcast_run_opts *o = n->f->o;
    /* relaxed: as above. */
    return o->stop != NULL && qn_load(o->stop, QN_RELAXED) != 0;
}

/* Sleep until a message arrives or another node reports progress; an event just
 * before the sleep costs at most a NAP. */
static void park(struct node *n)
{
    qn_doorbell_arm(&n->end->doorbell);
    (void)qn_context_flush(n->c);
    if (!qn_context_pending(n->c)) {
        (void)qn_doorbell_wait(&n->end->doorbell, qn_clock_now() + NAP);
    }
    qn_doorbell_disarm(&n->end->doorbell);
}

static void patience_ends(struct node *n, qn_time_t waited)
{
    if (waited > QN_BCAST_RUN_PATIENCE) {
        qn_store(&n->f->stuck, 1, QN_RELAXED); /* as in given_up */
    }
}

static void idle_once(struct node *n)
{
    if (n->f->o->shared) {
        park(n);
    } else {
        qn_pause();
    }
    /* On shared cores naps are counted instead of time: another process may
     * have had the core for a long time, which is not an error. */
    n->idle++;
    if (n->f->o->shared) {
        n->moved = n->moved == 0 ? n->idle : n->moved;
        patience_ends(n, (n->idle - n->moved) * NAP);
    } else if (n->idle % LOOKS == 0) {
        qn_time_t now = qn_clock_now();
        n->moved = n->moved == 0 ? now : n->moved;
        patience_ends(n, now - n->moved);
    }
}

/* Receive, forward, acknowledge; idle if there was nothing to do. */
static void turn(struct node *n)
{
    uint32_t found = qn_context_poll(n->c, BUDGET);
    (void)qn_context_flush(n->c);
    if (found > 0) {
        n->moved = 0;
    } else {
        idle_once(n);
    }
}

/* Barrier of all nodes; `count` must be 0 before. */
static void meet(struct node *n, qn_a32 *count)
{
    /* Sequentially consistent: everything done before the barrier is visible
     * after it. */
    qn_fetch_add(count, 1, QN_SEQ_CST);
    while (qn_load(count, QN_SEQ_CST) < n->end->nodes && !given_up(n)) {
        turn(n);
    }
}

/* Number of messages that the slowest node has delivered. */
static uint64_t least(const struct run_state *f)
{
    uint64_t least = UINT64_MAX;
    for (qn_node_t v = 0; v < f->o->tree->n; v++) {
        /* acquire: pairs with publish. */
        uint64_t x = qn_load(&f->tally[v].delivered, QN_ACQUIRE);
        least = QN_MIN(least, x);
    }
    return least;
}

/* ---- latency ---- */

/* At the leaf whose turn it is: request the next message, wait, record the
 * time. */
static void ask(struct node *n, qn_time_t deadline)
{
    struct run_state *f = n->f;
    struct qn_qp *root = n->end->qp[f->o->tree->root][QN_LANE_DIRECT];
    uint64_t number = n->got + 1, round = (number - 1) / RUN / f->leaves;
    bool first = (number - 1) % RUN == 0;
    qn_time_t start = qn_clock_now();
    bool over = first && round >= ROUNDS && start >= deadline;
    uint8_t kind = over || interrupted(n) ? LATENCY_ENDS : PLAIN;
    while (qn_qp_try_send(root, &kind, 1) == QN_EAGAIN && !given_up(n)) {
        idle_once(n);
    }
    (void)qn_qp_flush(root);
    while (n->got < number && !given_up(n)) {
        turn(n);
    }
    qn_time_t took = qn_clock_now() - start;
    if (kind == PLAIN && !first && round > 0 && !given_up(n)) {
        uint32_t i = 0;
        while (f->leaf[i] != n->end->self) {
            i++;
        }
        qn_histogram_record(&f->d->latency[i], took);
    }
}

static void latency_below(struct node *n, qn_time_t deadline)
{
    const struct run_state *f = n->f;
    while (n->kind == PLAIN && !given_up(n)) {
        bool mine = !f->o->acked && requester(f, n->got + 1) == n->end->self;
        if (mine && least(f) == n->got) {
            ask(n, deadline);
        } else {
            turn(n);
        }
    }
}

/* At the root of a plain context: serve the request of the leaf. */
static void answer(struct node *n)
{
    size_t len;
    uint8_t kind = PLAIN;
    qn_node_t leaf = requester(n->f, n->got + 1);
    struct qn_qp *qp = n->end->qp[leaf][QN_LANE_DIRECT];
    int rc = qn_qp_try_recv(qp, &kind, 1, &len);
    if (rc == QN_OK) {
        n->moved = 0;
        n->wrong += send_next(n, (enum kind)kind) != QN_OK;
        while (qn_context_flush(n->c) && !given_up(n)) {
            idle_once(n); /* a long message, as the children make room */
        }
        (void)qn_qp_flush(qp); /* returns the cell of the request */
    } else {
        idle_once(n);
    }
}

static void send_acked(struct node *n, qn_time_t deadline)
{
    qn_time_t start = qn_clock_now();
    bool over = n->got >= ACKED_MIN && start >= deadline;
    enum kind kind = over || interrupted(n) ? LATENCY_ENDS : PLAIN;
    while (send_next(n, kind) == QN_EAGAIN && !given_up(n)) {
        turn(n);
    }
    (void)qn_context_flush(n->c);
    while (qn_context_acked(n->c) < n->got && !given_up(n)) {
        turn(n);
    }
    if (kind == PLAIN && n->got > ACKED_MIN / 4 && !given_up(n)) {
        qn_histogram_record(&n->f->d->latency[0], qn_clock_now() - start);
    }
}

static void latency_root(struct node *n, qn_time_t deadline)
{
    while (n->kind == PLAIN && !given_up(n)) {
        if (n->f->o->acked) {
            send_acked(n, deadline);
        } else {
            answer(n);
        }
    }
}

/* ---- throughput ---- */

/* Number up to which all nodes have delivered, as known to the root. */
static uint64_t complete(const struct node *n)
{
    return n->f->o->acked ? qn_context_acked(n->c) : least(n->f);
}

static void stream_root(struct node *n, double seconds)
{
    const uint32_t window = n->f->o->window;
    const uint64_t before = n->got;
    qn_time_t start = qn_clock_now();
    qn_time_t deadline = start + (qn_time_t)(seconds * (double)QN_S);
    uint64_t known = n->got;
    while (n->kind != ALL_ENDS && !given_up(n)) {
        bool over = interrupted(n) || qn_clock_now() >= deadline;
        enum kind kind = over && n->got - before >= window ? ALL_ENDS : PLAIN;
        int rc = QN_OK;
        while (n->got - known < window && rc == QN_OK && n->kind != ALL_ENDS) {
            rc = send_next(n, kind);
        }
        turn(n);
        known = complete(n);
    }
    while (complete(n) < n->got && !given_up(n)) {
        turn(n);
    }
    if (!given_up(n)) {
        n->f->d->stream += n->got - before;
        n->f->d->stream_s += (double)(qn_clock_now() - start) / (double)QN_S;
    }
}

static void stream_below(struct node *n)
{
    while (n->kind != ALL_ENDS && !given_up(n)) {
        turn(n);
    }
}

/* ---- a node ---- */

static uint64_t drops(const struct node *n)
{
    const struct qn_tree *t = n->f->o->tree;
    qn_node_t self = n->end->self;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < t->child_count[self]; i++) {
        sum += qn_context_drops(n->c, t->child[t->child_at[self] + i]);
    }
    return sum;
}

static void perform(struct node *n)
{
    const struct qn_bcast_run_opts *o = n->f->o;
    const double half = o->seconds / 2;
    bool root = n->end->self == o->tree->root;
    meet(n, &n->f->ready);
    qn_time_t deadline = qn_clock_now() + (qn_time_t)(half * (double)QN_S);
    if (root) {
        latency_root(n, deadline);
        stream_root(n, half);
    } else {
        latency_below(n, deadline);
        stream_below(n);
    }
    /* A node that has everything may still have to forward it, or to
     * acknowledge it. */
    meet(n, &n->f->finished);
    n->f->wrong[n->end->self] = n->wrong + drops(n);
}

static int run_node(struct qn_mesh_end *end, void *arg)
{
    struct run_state *f = arg;
    struct qn_qp *qp[QN_NODES_MAX] = {NULL};
    struct node n = {.f = f, .end = end};
    for (qn_node_t i = 0; i < end->nodes; i++) {
        qp[i] = end->qp[i][QN_LANE_TREE];
    }
    const struct qn_context_opts o = {.self = end->self,
                                      .members = QN_NODES_MAX,
                                      .tree = f->o->tree,
                                      .qp = qp,
                                      .deliver = deliver,
                                      .ctx = &n,
                                      .acked = f->o->acked};
    int rc = qn_context_create(&n.c, &o);
    if (rc != QN_OK) {
        qn_store(&f->stuck, 1, QN_RELAXED); /* as in given_up */
        return rc;
    }
    perform(&n);
    qn_context_destroy(n.c);
    return given_up(&n) ? QN_ETIMEDOUT : QN_OK;
}

/* ---- the interface ---- */

int qn_bcast_run_init(struct qn_bcast_run *d, const struct qn_tree *tree,
                      bool acked)
{
    qn_node_t leaf[QN_NODES_MAX];
    *d = (struct qn_bcast_run){.histograms =
                                   acked ? 1 : find_leaves(tree, leaf)};
    d->latency = calloc(d->histograms, sizeof *d->latency);
    return d->latency != NULL ? QN_OK : QN_ENOMEM;
}

void qn_bcast_run_fini(struct qn_bcast_run *d)
{
    free(d->latency);
    d->latency = NULL;
}

static bool opts_ok(const struct qn_bcast_run_opts *o)
{
    return o->tree->n >= 2 && o->size >= QN_BCAST_RUN_SIZE_MIN &&
           o->size <= QN_BCAST_RUN_SIZE_MAX && o->window >= 1 &&
           o->window <= QN_BCAST_RUN_WINDOW_MAX &&
           o->window * (o->size + QN_ACKED_EXTRA) <= QN_BCAST_RUN_LANE_BYTES;
}

/* Room for four windows: a receiver returns cells late, and no message may be
 * dropped. */
static uint32_t cells_for(const struct qn_bcast_run_opts *o)
{
    uint32_t each = (o->size + QN_ACKED_EXTRA) / CELL_BYTES + 1;
    uint32_t cells = CELLS_MIN;
    while (cells < 4 * each * o->window) {
        cells *= 2;
    }
    return cells;
}

static void sum_up(struct qn_bcast_run *d, const struct run_state *f)
{
    uint64_t sent = qn_load(&f->tally[f->o->tree->root].delivered, QN_ACQUIRE);
    d->sent += sent;
    for (qn_node_t v = 0; v < f->o->tree->n; v++) {
        uint64_t got = qn_load(&f->tally[v].delivered, QN_ACQUIRE);
        d->wrong += f->wrong[v] + (got != sent);
    }
}

int qn_bcast_run_measure(struct qn_bcast_run *d,
                         const struct qn_bcast_run_opts *o)
{
    struct qn_mesh m;
    if (!opts_ok(o)) {
        return QN_EINVAL;
    }
    struct run_state *f = aligned_alloc(QN_CACHELINE, sizeof *f);
    if (f == NULL) {
        return QN_ENOMEM;
    }
    memset(f, 0, sizeof *f);
    f->o = o;
    f->d = d;
    f->leaves = find_leaves(o->tree, f->leaf);
    const struct qn_mesh_opts mesh = {.transport = o->transport,
                                      .nodes = o->tree->n,
                                      .cells = cells_for(o),
                                      .core = o->core};
    int rc = qn_mesh_create(&m, &mesh);
    if (rc == QN_OK) {
        rc = qn_mesh_run(&m, run_node, f) == 0 ? QN_OK : QN_EIO;
        qn_mesh_destroy(&m);
    }
    if (rc == QN_OK) {
        sum_up(d, f);
    }
    free(f);
    return rc;
}

uint64_t qn_bcast_run_latency(const struct qn_bcast_run *d, double q)
{
    uint32_t slowest = 0;
    uint64_t most = 0;
    for (uint32_t i = 0; i < d->histograms; i++) {
        uint64_t median = qn_histogram_quantile(&d->latency[i], 0.5);
        if (median == 0) {
            return 0;
        }
        slowest = median > most ? i : slowest;
        most = QN_MAX(most, median);
    }
    return qn_histogram_quantile(&d->latency[slowest], q);
}

double qn_bcast_run_rate(const struct qn_bcast_run *d)
{
    return d->stream_s > 0 ? (double)d->stream / d->stream_s : 0;
}
