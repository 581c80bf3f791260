/*
 * Broadcasts: plain ones of core/group, acknowledged ones of
 * core/coll/sequenced_broadcast.h. What is different between them is in the
 * first part.
 *
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
 */
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/operation/operation_internal.h"

#define RUN       8u  /* operations of a leaf in a row */
#define ROUNDS    2u  /* minimum of rounds over all leaves */
#define ACKED_MIN 32u /* minimum of operations of the latency part */
#define BUDGET    64u /* frames per poll of a context */

/* Kind of a message, in the low bits of its number. */
enum kind { PLAIN, LATENCY_ENDS, ALL_ENDS, KIND_BITS = 2 };

struct node {
    struct qn_operation_self *s;
    struct qn_operation *p;
    const struct qn_operation_opts *o;
    qn_node_t self;
    bool acked;
    uint64_t got;   /* number of the last message received; at the root: sent */
    uint64_t told;  /* number that was written to tally */
    enum kind kind; /* the last message that was not PLAIN */
    uint8_t message[QN_OPERATION_SIZE_MAX];
};

static bool given_up(const struct node *n)
{
    return qn_operation_given_up(n->s);
}

static bool interrupted(const struct node *n)
{
    return qn_operation_interrupted(n->s);
}

static void idle(struct node *n)
{
    qn_operation_idle(n->s);
}

/* Leaf that requests a message of the latency part. */
static qn_node_t requester(const struct qn_operation *p, uint64_t number)
{
    return p->leaf[(number - 1) / RUN % p->leaves];
}

/* ---- a context, or a sequenced broadcast ---- */

/* @return QN_EAGAIN without room. */
static int start_message(struct node *n, uint64_t number)
{
    const struct qn_slice part = {n->message, n->o->size};
    uint32_t given = 0;
    if (!n->acked) {
        return qn_context_bcast(n->s->context, &part, 1, NULL);
    }
    int rc = qn_sequenced_broadcast_send(n->s->sequenced, n->message,
                                         n->o->size, &given);
    n->s->wrong += rc == QN_OK && given != (uint32_t)number;
    return rc;
}

static bool poll_once(struct node *n)
{
    return n->acked ? qn_sequenced_broadcast_poll(n->s->sequenced)
                    : qn_context_poll(n->s->context, BUDGET) > 0;
}

static bool flush(struct node *n)
{
    return n->acked ? qn_sequenced_broadcast_flush(n->s->sequenced)
                    : qn_context_flush(n->s->context);
}

/* All nodes have acknowledged what this one, the root, has sent. */
static bool all_acked(const struct node *n)
{
    return qn_sequenced_broadcast_acked(n->s->sequenced) == (uint32_t)n->got;
}

/* ---- messages ---- */

static void publish(struct node *n)
{
    const struct qn_operation_opts *o = n->o;
    n->told = n->got;
    /* release -> acquire in least: a node that reads it knows that this node is
     * past these messages. */
    qn_store(&n->p->tally[n->self].delivered, n->got, QN_RELEASE);
    qn_node_t next =
        n->kind == PLAIN ? requester(n->p, n->got + 1) : o->tree->root;
    if (o->shared && !n->acked && next != n->self) {
        (void)qn_doorbell_ring(&n->s->end->ringer[next]); /* it may be parked */
    }
}

static void deliver_plain(void *ctx, const void *msg, size_t len)
{
    struct node *n = ctx;
    const struct qn_operation_opts *o = n->o;
    const uint8_t *byte = msg;
    uint64_t word = 0;
    memcpy(&word, msg, QN_MIN(len, sizeof word));
    uint64_t number = word >> KIND_BITS;
    enum kind kind = (enum kind)(word & ((1u << KIND_BITS) - 1));
    n->s->wrong += len != o->size || number != n->got + 1 ||
                   (len > sizeof word && byte[len - 1] != (uint8_t)number);
    n->got = number;
    bool streaming = n->kind == LATENCY_ENDS;
    n->kind = kind != PLAIN ? kind : n->kind;
    uint64_t step = streaming ? QN_MAX(o->window / 4, 1u) : 1;
    if (kind != PLAIN || n->got - n->told >= step) {
        publish(n);
    }
}

/* The root has noted what it sends itself. */
static void deliver_sequenced(void *ctx, uint32_t number, const void *msg,
                              size_t len)
{
    struct node *n = ctx;
    if (n->self != n->o->tree->root) {
        n->s->wrong += number != (uint32_t)(n->got + 1);
        deliver_plain(ctx, msg, len);
    }
}

/* Send the next message from the root. Returns QN_EAGAIN without room. */
static int send_next(struct node *n, enum kind kind)
{
    const struct qn_operation_opts *o = n->o;
    uint64_t number = n->got + 1, word = number << KIND_BITS | kind;
    n->message[o->size - 1] = (uint8_t)number;
    memcpy(n->message, &word, sizeof word);
    int rc = start_message(n, number);
    if (rc == QN_OK) {
        n->got = number;
        n->kind = kind != PLAIN ? kind : n->kind;
        publish(n);
    }
    return rc;
}

/* Receive, forward, acknowledge; idle if there was nothing to do. */
static void turn(struct node *n)
{
    const bool found = poll_once(n);
    (void)flush(n);
    if (found) {
        n->s->moved = 0;
    } else {
        idle(n);
    }
}

static void turn_of(void *ctx)
{
    turn(ctx);
}

static void meet(struct node *n, qn_a32 *count)
{
    qn_operation_meet(n->s, count, turn_of, n);
}

/* Number of messages that the slowest node has delivered. */
static uint64_t least(const struct qn_operation *p)
{
    uint64_t least = UINT64_MAX;
    for (qn_node_t v = 0; v < p->o.tree->n; v++) {
        /* acquire: pairs with publish. */
        uint64_t x = qn_load(&p->tally[v].delivered, QN_ACQUIRE);
        least = QN_MIN(least, x);
    }
    return least;
}

/* ---- latency ---- */

/* At the leaf whose turn it is: request the next message, wait, record the
 * time. */
static void ask(struct node *n, qn_time_t deadline)
{
    struct qn_operation *p = n->p;
    struct qn_qp *root = n->s->end->direct_qp[n->o->tree->root];
    uint64_t number = n->got + 1, turns = ROUNDS * RUN * p->leaves;
    bool first = (number - 1) % RUN == 0;
    bool over = (first || interrupted(n)) &&
                qn_operation_over(n->s, number - 1, turns, deadline);
    uint8_t kind = over ? LATENCY_ENDS : PLAIN;
    qn_time_t start = qn_clock_now();
    while (qn_qp_try_send(root, &kind, 1) == QN_EAGAIN && !given_up(n)) {
        idle(n);
    }
    (void)qn_qp_flush(root);
    while (n->got < number && !given_up(n)) {
        turn(n);
    }
    qn_time_t took = qn_clock_now() - start;
    if (kind == PLAIN && !first && number > RUN * p->leaves && !given_up(n)) {
        uint32_t i = 0;
        while (p->leaf[i] != n->self) {
            i++;
        }
        qn_histogram_record(&p->r->latency[i], took);
    }
}

static void latency_below(struct node *n, qn_time_t deadline)
{
    while (n->kind == PLAIN && !given_up(n)) {
        bool mine = !n->acked && requester(n->p, n->got + 1) == n->self;
        if (mine && least(n->p) == n->got) {
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
    qn_node_t leaf = requester(n->p, n->got + 1);
    struct qn_qp *qp = n->s->end->direct_qp[leaf];
    int rc = qn_qp_try_recv(qp, &kind, 1, &len);
    if (rc == QN_OK) {
        n->s->moved = 0;
        n->s->wrong += send_next(n, (enum kind)kind) != QN_OK;
        while (flush(n) && !given_up(n)) {
            idle(n); /* a long message, as the children make room */
        }
        (void)qn_qp_flush(qp); /* returns the cell of the request */
    } else {
        idle(n);
    }
}

static void send_acked(struct node *n, qn_time_t deadline)
{
    bool over = qn_operation_over(n->s, n->got, ACKED_MIN, deadline);
    enum kind kind = over ? LATENCY_ENDS : PLAIN;
    qn_time_t start = qn_clock_now();
    while (send_next(n, kind) == QN_EAGAIN && !given_up(n)) {
        turn(n);
    }
    (void)flush(n);
    while (!all_acked(n) && !given_up(n)) {
        turn(n);
    }
    if (kind == PLAIN && n->got > ACKED_MIN / 4 && !given_up(n)) {
        qn_histogram_record(&n->p->r->latency[0], qn_clock_now() - start);
    }
}

static void latency_root(struct node *n, qn_time_t deadline)
{
    while (n->kind == PLAIN && !given_up(n)) {
        if (n->acked) {
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
    if (!n->acked) {
        return least(n->p);
    }
    const uint32_t acked = qn_sequenced_broadcast_acked(n->s->sequenced);
    return n->got - ((uint32_t)n->got - acked);
}

static void stream_root(struct node *n, double seconds)
{
    const uint32_t window = n->o->window;
    const uint64_t before = n->got;
    qn_time_t start = qn_clock_now();
    qn_time_t deadline = start + (qn_time_t)(seconds * (double)QN_S);
    uint64_t known = n->got;
    while (n->kind != ALL_ENDS && !given_up(n)) {
        uint64_t sent = n->got - before;
        bool over = qn_operation_over(n->s, sent, window, deadline);
        enum kind kind = over && sent >= window ? ALL_ENDS : PLAIN;
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
        n->p->r->stream += n->got - before;
        n->p->r->stream_s += (double)(qn_clock_now() - start) / (double)QN_S;
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
    const struct qn_tree *t = n->o->tree;
    qn_node_t self = n->self;
    uint64_t sum = 0;
    for (uint32_t i = 0; !n->acked && i < t->child_count[self]; i++) {
        sum += qn_context_drops(n->s->context, t->child[t->child_at[self] + i]);
    }
    return sum;
}

static void perform(struct node *n)
{
    const struct qn_operation_opts *o = n->o;
    const double half = o->seconds / 2;
    bool root = n->self == o->tree->root;
    meet(n, &n->p->ready);
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
    meet(n, &n->p->finished);
    n->p->tally[n->self].wrong = n->s->wrong + drops(n);
}

static int open_context(struct node *n)
{
    const struct qn_context_opts o = {.self = n->self,
                                      .members = n->o->tree->n,
                                      .tree = n->o->tree,
                                      .qp = n->s->end->tree_qp,
                                      .deliver = deliver_plain,
                                      .ctx = n};
    return qn_context_create(&n->s->context, &o);
}

static int open_sequenced(struct node *n)
{
    struct qn_operation_tally *mine = &n->p->tally[n->self];
    int rc =
        qn_operation_wiring(&mine->wiring, n->o->tree, n->o->ring, n->self);
    if (rc != QN_OK) {
        return rc;
    }
    const struct qn_sequenced_broadcast_opts o = {.wiring = mine->wiring,
                                                  .qp = n->s->end->tree_qp,
                                                  .window =
                                                      qn_operation_window(n->o),
                                                  .bytes_max = n->o->size,
                                                  .view = 1,
                                                  .deliver = deliver_sequenced,
                                                  .ctx = n};
    return qn_sequenced_broadcast_create(&n->s->sequenced, &o);
}

int qn_operation_broadcasts(struct qn_operation_self *self)
{
    struct qn_operation *p = self->p;
    struct node n = {.s = self,
                     .p = p,
                     .o = &p->o,
                     .self = self->end->self,
                     .acked = p->o.op == QN_COLLECTIVE_ACK};
    struct qn_operation_tally *mine = &p->tally[n.self];
    int rc = n.acked ? open_sequenced(&n) : open_context(&n);
    if (rc == QN_OK) {
        mine->context = self->context;
        mine->sequenced = self->sequenced;
        perform(&n);
    }
    return rc;
}
