/*
 * The root decides and tells the others before each turn how many operations of
 * each form it has, or that there is none. The first turn warms up: few
 * operations, whose times only say how many the next one may have.
 */
#include "loadgen/collective/collective_run.h"

#include <assert.h>
#include <stdio.h>

#include "core/base/bits.h"
#include "core/base/err.h"

#define COUNT_FIRST 16u /* operations of the first turn */
#define COUNT_LEAST 8u
#define COUNT_MOST  20000u
#define COUNT_QUICK 12u

struct job {
    const struct qn_collective_run_opts *o;
    struct qn_collective_result *r;
};

/* What the root tells. */
struct orders {
    uint32_t over;
    uint32_t count[QN_COLLECTIVE_FORMS_MAX]; /* by form; 0: it is not run */
};

static_assert(sizeof(struct orders) <= QN_COLLECTIVE_TOLD_MAX, "it is told");

/* Operations of a form that took `ns` each. */
static uint32_t enough(const struct qn_collective_run_opts *o, double ns)
{
    const double count = (double)QN_COLLECTIVE_FORM_NS / QN_MAX(ns, 1.0);
    return o->quick              ? COUNT_QUICK
           : count < COUNT_LEAST ? COUNT_LEAST
                                 : (uint32_t)QN_MIN(count, (double)COUNT_MOST);
}

/* Each form once. @param ns [forms] filled for those that have run. */
static int one_turn(struct qn_collective_node *n, const struct orders *orders,
                    double *ns)
{
    const struct qn_collective_form *f;
    int rc = qn_collective_meet(n);
    qn_time_t before = qn_clock_now();
    for (uint32_t i = 0; rc == QN_OK && (f = qn_collective_form(i)) != NULL;
         i++) {
        if (orders->count[i] == 0) {
            continue;
        }
        rc = f->run(n, orders->count[i]);
        rc = rc == QN_OK ? qn_collective_meet(n) : rc;
        const qn_time_t now = qn_clock_now();
        ns[i] = (double)(now - before) / orders->count[i];
        before = now;
    }
    return rc;
}

static void begin(const struct qn_collective_run_opts *o, struct orders *orders)
{
    *orders = (struct orders){0};
    for (uint32_t i = 0; qn_collective_form(i) != NULL; i++) {
        if ((o->forms >> i & 1) != 0) {
            orders->count[i] = COUNT_FIRST;
        }
    }
}

static int run_turns(struct qn_collective_node *n, const struct job *job)
{
    const struct qn_collective_run_opts *o = job->o;
    struct qn_collective_result *r = job->r;
    const bool root = n->end->self == o->collective.tree->root;
    const qn_time_t stop = qn_clock_now() + (qn_time_t)(o->seconds * 1e9);
    double warm_up[QN_COLLECTIVE_FORMS_MAX];
    struct orders orders;
    begin(o, &orders);
    int rc = one_turn(n, &orders, warm_up);
    const double *last = warm_up;
    for (uint32_t turn = 0; rc == QN_OK; turn++) {
        double own[QN_COLLECTIVE_FORMS_MAX];
        double *ns = root && turn < o->turns ? r->ns[turn] : own;
        for (uint32_t i = 0; root && i < QN_COLLECTIVE_FORMS_MAX; i++) {
            orders.count[i] = orders.count[i] == 0 ? 0 : enough(o, last[i]);
        }
        orders.over = turn == o->turns || (turn > 0 && qn_clock_now() > stop);
        rc = qn_collective_tell(n, &orders, sizeof orders);
        if (rc != QN_OK || orders.over != 0) {
            break;
        }
        rc = one_turn(n, &orders, ns);
        if (root) {
            r->turns = turn + 1;
            last = ns;
        }
    }
    rc = rc == QN_OK ? qn_collective_meet(n) : rc;
    return rc;
}

static int run_node(struct qn_mesh_end *end, void *arg)
{
    const struct job *job = arg;
    struct qn_collective_node n;
    int rc = qn_collective_node_init(&n, end, &job->o->collective);
    if (rc == QN_OK) {
        rc = run_turns(&n, job);
        while (rc == QN_OK && qn_mesh_flush(end)) { /* the last message */
            qn_pause();
        }
        job->r->wrong[end->self] = n.wrong;
    }
    if (rc != QN_OK) {
        fprintf(stderr, "quoin bench collectives: node %u: %s\n", end->self,
                qn_strerror(rc));
    }
    qn_collective_node_fini(&n);
    return rc;
}

int qn_collective_run(struct qn_collective_result *r,
                      const struct qn_collective_run_opts *o)
{
    struct qn_mesh m;
    struct job job = {o, r};
    const struct qn_mesh_opts mesh = {.transport = o->transport,
                                      .nodes = o->nodes,
                                      .cells = QN_COLLECTIVE_CELLS,
                                      .processes = o->processes,
                                      .read_only = true,
                                      .core = o->core};
    int rc = qn_mesh_create(&m, &mesh);
    if (rc == QN_OK) {
        rc = qn_mesh_run(&m, run_node, &job) == 0 ? QN_OK : QN_EIO;
        qn_mesh_destroy(&m);
    }
    return rc;
}
