/*
 * The event rules of the model, each as one pass over the tree: broadcasts
 * from the root down, reductions from the leaves up. An acknowledged broadcast
 * is one combined run: each core is ready for acknowledgements when it has
 * sent its last message, so early subtrees acknowledge while others are still
 * being informed.
 *
 * Sums are formed in the order in which events happen (first the send, then
 * the receive), so that equal trees give equal doubles everywhere.
 */
#include "core/topo/predict.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/topo/arrival.h"

const char *qn_collective_name(uint32_t op)
{
    static const char *const names[QN_COLLECTIVES] = {"broadcast", "reduce",
                                                      "barrier", "ack", "2pc"};
    return op < QN_COLLECTIVES ? names[op] : NULL;
}

double qn_predict_broadcast(const struct qn_machine *m,
                            const struct qn_shape *s, double *at, double *idle)
{
    uint16_t order[QN_CORES_MAX];
    double a[QN_CORES_MAX], last = 0;
    QN_ASSERT(s->n == m->n);
    uint32_t n = qn_shape_order(s, order);
    QN_ASSERT(n == s->n);
    a[s->root] = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = order[i];
        const uint16_t *child = qn_shape_children(s, v);
        double sent = a[v];
        for (uint32_t k = 0; k < s->count[v]; k++) {
            sent += qn_send_cost(m, v, child[k]);
            a[child[k]] = sent + qn_receive_cost(m, v, child[k]);
        }
        last = QN_MAX(last, a[v]);
        if (at != NULL) {
            at[v] = a[v];
        }
        if (idle != NULL) {
            idle[v] = sent;
        }
    }
    return last;
}

/* Until when v receives messages. @param in  [count] they are sorted. */
static double receive_all(const struct qn_machine *m, uint32_t v, double start,
                          double q, struct qn_arrival *in, uint32_t count)
{
    double x = start;
    if (count > 1) {
        qsort(in, count, sizeof *in, qn_arrival_order);
    }
    for (uint32_t k = 0; k < count; k++) {
        double r = qn_receive_cost(m, in[k].from, v);
        x = in[k].visible < x ? x + q * r : in[k].visible + r;
    }
    return x;
}

/* The messages of its children. */
static double receive_up(const struct qn_machine *m, const struct qn_shape *s,
                         uint32_t v, double start, double q, const double *done)
{
    struct qn_arrival in[QN_CORES_MAX];
    const uint32_t count = s->count[v];
    for (uint32_t k = 0; k < count; k++) {
        uint32_t c = qn_shape_children(s, v)[k];
        in[k] = (struct qn_arrival){done[c] + qn_send_cost(m, c, v), c};
    }
    return receive_all(m, v, start, q, in, count);
}

double qn_predict_reduce(const struct qn_machine *m, const struct qn_shape *s,
                         double q, const double *start, double *done)
{
    uint16_t order[QN_CORES_MAX];
    double d[QN_CORES_MAX];
    QN_ASSERT(s->n == m->n);
    uint32_t n = qn_shape_order(s, order);
    QN_ASSERT(n == s->n);
    for (uint32_t i = n; i-- > 0;) {
        uint32_t v = order[i];
        d[v] = receive_up(m, s, v, start != NULL ? start[v] : 0, q, d);
        if (done != NULL) {
            done[v] = d[v];
        }
    }
    return d[s->root];
}

/* When the message of core u is visible to v; v == u: when u has sent all. */
static double exchange_visible(const struct qn_machine *m, uint32_t u,
                               uint32_t v)
{
    double t = 0;
    uint32_t to = u;
    do {
        to = (to + 1) % m->n;
        t += to != u ? qn_send_cost(m, u, to) : 0;
    } while (to != v);
    return t;
}

double qn_predict_exchange(const struct qn_machine *m, double q)
{
    struct qn_arrival in[QN_CORES_MAX];
    double last = 0;
    for (uint32_t v = 0; v < m->n; v++) {
        uint32_t count = 0;
        for (uint32_t u = 0; u < m->n; u++) {
            if (u != v) {
                in[count++] = (struct qn_arrival){exchange_visible(m, u, v), u};
            }
        }
        const double start = exchange_visible(m, v, v);
        last = QN_MAX(last, receive_all(m, v, start, q, in, count));
    }
    return last;
}

double qn_predict(const struct qn_machine *m, const struct qn_shape *s,
                  enum qn_collective op, double q)
{
    double idle[QN_CORES_MAX];
    QN_ASSERT(op < QN_COLLECTIVES);
    double down = qn_predict_broadcast(m, s, NULL, idle);
    if (op == QN_COLLECTIVE_BROADCAST) {
        return down;
    }
    if (op == QN_COLLECTIVE_REDUCE || op == QN_COLLECTIVE_BARRIER) {
        double up = qn_predict_reduce(m, s, q, NULL, NULL);
        return op == QN_COLLECTIVE_REDUCE ? up : up + down;
    }
    double acked = qn_predict_reduce(m, s, q, idle, NULL);
    return op == QN_COLLECTIVE_ACK ? acked : acked + down;
}

double qn_predict_published(const struct qn_machine *m,
                            const struct qn_shape *s, enum qn_collective op,
                            double q)
{
    double extra = 0;
    for (uint32_t v = 0; v < s->n && op != QN_COLLECTIVE_BARRIER; v++) {
        if (s->count[v] > 0 || v == s->root) {
            continue;
        }
        uint32_t from = op == QN_COLLECTIVE_REDUCE ? s->root : v;
        uint32_t to = op == QN_COLLECTIVE_REDUCE ? v : s->root;
        extra = QN_MAX(extra, qn_send_cost(m, from, to) +
                                  qn_receive_cost(m, from, to));
    }
    return qn_predict(m, s, op, q) + extra;
}

double qn_predict_occupancy(const struct qn_machine *m,
                            const struct qn_shape *s, bool acks, double *busy)
{
    double most = 0;
    for (uint32_t v = 0; v < s->n; v++) {
        uint32_t p = s->parent[v];
        double x = 0;
        if (v != s->root) {
            x += qn_receive_cost(m, p, v) + (acks ? qn_send_cost(m, v, p) : 0);
        }
        for (uint32_t k = 0; k < s->count[v]; k++) {
            uint32_t c = qn_shape_children(s, v)[k];
            x += qn_send_cost(m, v, c) + (acks ? qn_receive_cost(m, c, v) : 0);
        }
        most = QN_MAX(most, x);
        if (busy != NULL) {
            busy[v] = x;
        }
    }
    return most;
}

double qn_predict_bound(const struct qn_machine *m)
{
    double s = QN_COST_MAX, r = QN_COST_MAX, last = 0;
    for (size_t i = 0; i < (size_t)m->n * m->n; i++) {
        if (i / m->n != i % m->n) {
            s = QN_MIN(s, m->send[i]);
            r = QN_MIN(r, m->receive[i]);
        }
    }
    /* The first free core sends next. Cores that have sent and cores that
     * were informed become free in the order in which that happened. */
    double again[QN_CORES_MAX], fresh[QN_CORES_MAX];
    uint32_t sent = 0, told = 1, a = 0, f = 0;
    fresh[0] = 0;
    while (told < m->n) {
        bool old = a < sent && (f == told || again[a] <= fresh[f]);
        double t = old ? again[a++] : fresh[f++];
        again[sent++] = t + s;
        last = fresh[told++] = t + s + r;
    }
    return last;
}
