/*
 * A flag that u raises takes u send(u, v); v has it receive(u, v) after that,
 * or after it has begun to wait, if that is later.
 */
#include "core/barrier/selection/predict_forms.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/plan/search/objective.h"

/* The next reader of a line is served after this share of a transfer, as on the
 * simulated machine (core/sim/timed/coherent.h, `serve`). */
#define SERVE (1.0 / 8)

/* Arrivals follow each other: each takes the line from the one before, and its
 * copies from those that have arrived. Then all read what the last one wrote.
 */
double qn_barrier_predict_central(const struct qn_machine *m)
{
    const uint32_t last = m->n - 1;
    double at = 0, slowest = 0;
    for (uint32_t i = 1; i < m->n; i++) {
        double dearest = 0;
        for (uint32_t k = 0; k < i; k++) {
            dearest = QN_MAX(dearest, qn_send_cost(m, i, k));
        }
        at += qn_receive_cost(m, i - 1, i) + dearest;
    }
    for (uint32_t i = 0; i < last; i++) {
        const double r = qn_receive_cost(m, last, i);
        slowest = QN_MAX(slowest, r);
        at += i > 0 ? r * SERVE : 0;
    }
    return at + slowest;
}

double qn_barrier_predict_dissemination(const struct qn_machine *m)
{
    const uint32_t n = m->n;
    double at[QN_CORES_MAX] = {0}, raised[QN_CORES_MAX];
    double last = 0;
    for (uint32_t far = 1; far < n; far *= 2) {
        for (uint32_t i = 0; i < n; i++) {
            raised[i] = at[i] + qn_send_cost(m, i, (i + far) % n);
        }
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t from = (i + n - far) % n;
            at[i] =
                QN_MAX(raised[i], raised[from]) + qn_receive_cost(m, from, i);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        last = QN_MAX(last, at[i]);
    }
    return last;
}

/* As core/barrier/mcs.c numbers them. */
static void heap(struct qn_shape *out, uint32_t n, uint32_t fan)
{
    struct qn_edges e;
    qn_edges_init(&e, n);
    for (uint32_t i = 1; i < n; i++) {
        qn_edges_add(&e, (i - 1) / fan, i);
    }
    const int rc = qn_shape_from_edges(out, &e, 0);
    QN_ASSERT(rc == QN_OK);
}

double qn_barrier_predict_mcs(const struct qn_machine *m)
{
    struct qn_shape up, down;
    heap(&up, m->n, 4);
    heap(&down, m->n, 2);
    return qn_plan_cost(m, &down, &up, QN_GOAL_BARRIER, 1);
}
