/*
 * Acknowledged broadcasts of several sources in one order:
 * core/coll/sequenced_broadcast.h with credit. The sources are the nodes 0 ..
 * sources - 1, the root among them or not.
 *
 *     latency                          throughput
 *     source  submit --> root          all sources submit as the window allows;
 *     root    broadcast --> all        the last message of each says so
 *     all     acknowledge
 *     root    ended --> source: time
 *
 * In the latency part a source has RUN operations in a row. All nodes know from
 * the number of messages whose turn it is. The first and the last of a run are
 * not counted, since they overlap with those of another source; nor is the
 * first round.
 *
 * Each message carries its source and a number there. Each node checks that the
 * numbers of each source come once and in order, and keeps a hash of the
 * sources and numbers in the order in which they came: at the end of the run it
 * must be the same at all nodes.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/operation/operation_internal.h"

#define RUN    8u    /* operations of a source in a row */
#define ROUNDS 2u    /* minimum of rounds over all sources */
#define MOST   4096u /* operations of the latency part that `least` asks for */

/* A message begins with a word: number, source, kind. */
enum kind { PLAIN, LATENCY_ENDS, SOURCE_ENDS, KIND_BITS = 2, SOURCE_BITS = 10 };

_Static_assert(QN_MEMBERS_MAX <= 1u << SOURCE_BITS, "all can be sources");

#define ORDER_PRIME UINT64_C(0x100000001b3) /* FNV-1a */

struct node {
    struct qn_operation_self *s;
    struct qn_operation *p;
    const struct qn_operation_opts *o;
    qn_node_t self;
    uint64_t submitted;
    uint64_t got;      /* messages */
    uint64_t *seen;    /* [sources] number of the last message of each */
    uint64_t order;    /* hash */
    bool latency_ends; /* that message has come */
    uint32_t over;     /* sources that have sent their last message */
    uint8_t message[QN_OPERATION_SIZE_MAX];
};

static bool given_up(const struct node *n)
{
    return qn_operation_given_up(n->s);
}

static void deliver(void *ctx, uint32_t number, const void *msg, size_t len)
{
    struct node *n = ctx;
    const uint8_t *byte = msg;
    uint64_t word = 0;
    memcpy(&word, msg, QN_MIN(len, sizeof word));
    const enum kind kind = (enum kind)(word & ((1u << KIND_BITS) - 1));
    const uint64_t source = word >> KIND_BITS & ((1u << SOURCE_BITS) - 1);
    const uint64_t own = word >> (KIND_BITS + SOURCE_BITS);
    n->got++;
    n->order = (n->order ^ word) * ORDER_PRIME;
    if (len != n->o->size || number != (uint32_t)n->got ||
        source >= n->o->sources || own != n->seen[source] + 1 ||
        (len > sizeof word && byte[len - 1] != (uint8_t)own)) {
        n->s->wrong++;
        return;
    }
    n->seen[source] = own;
    n->latency_ends |= kind == LATENCY_ENDS;
    n->over += kind == SOURCE_ENDS;
}

/* @return false: no credit. */
static bool submit(struct node *n, enum kind kind)
{
    const uint64_t own = n->submitted + 1;
    const uint64_t word =
        (own << SOURCE_BITS | n->self) << KIND_BITS | (uint64_t)kind;
    n->message[n->o->size - 1] = (uint8_t)own;
    memcpy(n->message, &word, sizeof word);
    int rc = qn_sequenced_broadcast_submit(n->s->sequenced, n->message,
                                           n->o->size, NULL);
    n->s->wrong += rc != QN_OK && rc != QN_EAGAIN;
    n->submitted += rc == QN_OK;
    return rc == QN_OK;
}

static void turn(struct node *n)
{
    const bool found = qn_sequenced_broadcast_poll(n->s->sequenced);
    (void)qn_sequenced_broadcast_flush(n->s->sequenced);
    if (found) {
        n->s->moved = 0;
    } else {
        qn_operation_idle(n->s);
    }
}

static void turn_of(void *ctx)
{
    turn(ctx);
}

static bool all_ended(const struct node *n)
{
    return qn_sequenced_broadcast_ended(n->s->sequenced) == n->submitted;
}

/* ---- latency ---- */

static bool is_turn(const struct node *n)
{
    return n->got / RUN % n->o->sources == n->self;
}

/* One at a time they take long: of a long run there are not as many. */
static bool latency_over(const struct node *n, qn_time_t deadline)
{
    const uint64_t rounds = (uint64_t)ROUNDS * RUN * n->o->sources;
    const uint64_t asked = QN_MIN(n->o->least, (uint64_t)MOST);
    return qn_operation_interrupted(n->s) ||
           (n->got >= QN_MAX(rounds, asked) && qn_clock_now() >= deadline);
}

static void submit_one(struct node *n, qn_time_t deadline)
{
    const uint32_t of_run = (uint32_t)(n->got % RUN);
    const bool counts = of_run > 0 && of_run < RUN - 1 &&
                        n->got >= (uint64_t)RUN * n->o->sources;
    const bool over = of_run == 0 && latency_over(n, deadline);
    const qn_time_t start = qn_clock_now();
    while (!submit(n, over ? LATENCY_ENDS : PLAIN) && !given_up(n)) {
        turn(n);
    }
    while (!all_ended(n) && !given_up(n)) {
        turn(n);
    }
    if (counts && !given_up(n)) {
        qn_histogram_record(&n->p->r->latency[n->self], qn_clock_now() - start);
    }
}

static void latency(struct node *n, qn_time_t deadline)
{
    while (!n->latency_ends && !given_up(n)) {
        if (is_turn(n)) {
            submit_one(n, deadline);
        } else {
            turn(n);
        }
    }
}

/* ---- throughput ---- */

static void submit_all(struct node *n, uint64_t least, qn_time_t deadline)
{
    const uint64_t before = n->submitted;
    bool last = false;
    while (!last && !given_up(n)) {
        last = qn_operation_over(n->s, n->submitted - before, least, deadline);
        while (!submit(n, last ? SOURCE_ENDS : PLAIN) && !given_up(n)) {
            turn(n);
        }
        if (n->submitted % QN_MAX(n->o->window / 2, 1u) == 0) {
            turn(n);
        }
    }
}

static void throughput(struct node *n, double seconds)
{
    const uint32_t sources = n->o->sources;
    const uint64_t before = n->got;
    const uint64_t least = n->p->o.least / sources + n->o->window;
    const qn_time_t start = qn_clock_now();
    const qn_time_t deadline = start + (qn_time_t)(seconds * (double)QN_S);
    if (n->self < sources) {
        submit_all(n, least, deadline);
    }
    while ((n->over < sources || !all_ended(n)) && !given_up(n)) {
        turn(n);
    }
    if (n->self == n->o->tree->root && !given_up(n)) {
        n->p->r->stream += n->got - before;
        n->p->r->stream_s += (double)(qn_clock_now() - start) / (double)QN_S;
    }
}

/* ---- a node ---- */

static int open_sequenced(struct node *n)
{
    struct qn_operation_tally *mine = &n->p->tally[n->self];
    const uint32_t members = n->o->tree->n;
    struct qn_sequenced_views_opts v = {
        .self = n->self,
        .members = members,
        .incarnation = 1,
        .credit = n->o->window,
        .view = {.number = 1, .root = n->o->tree->root},
        .request = n->s->end->direct_qp};
    for (qn_node_t i = 0; i < members; i++) {
        v.view.member[i / 64] |= UINT64_C(1) << i % 64;
    }
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
                                                  .views = &v,
                                                  .deliver = deliver,
                                                  .ctx = n};
    rc = qn_sequenced_broadcast_create(&n->s->sequenced, &o);
    mine->sequenced = rc == QN_OK ? n->s->sequenced : NULL;
    return rc;
}

static void perform(struct node *n)
{
    struct qn_operation_tally *mine = &n->p->tally[n->self];
    const double half = n->o->seconds / 2;
    qn_operation_meet(n->s, &n->p->ready, turn_of, n);
    latency(n, qn_clock_now() + (qn_time_t)(half * (double)QN_S));
    throughput(n, half);
    /* A node that has everything may still have to forward it, or to
     * acknowledge it. */
    qn_operation_meet(n->s, &n->p->finished, turn_of, n);
    mine->wrong = n->s->wrong;
    mine->order = n->order;
    qn_store(&mine->delivered, n->got, QN_RELEASE); /* -> qn_operation_sum */
}

int qn_operation_sources(struct qn_operation_self *self)
{
    struct qn_operation *p = self->p;
    struct node n = {.s = self, .p = p, .o = &p->o, .self = self->end->self};
    n.seen = calloc(p->o.sources, sizeof *n.seen);
    int rc = n.seen != NULL ? open_sequenced(&n) : QN_ENOMEM;
    if (rc == QN_OK) {
        perform(&n);
    }
    free(n.seen);
    return rc;
}
