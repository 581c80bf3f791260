/*
 * The planner's part of the front: its fastest plan, its least busy one, and
 * between them the fastest plans under bounds on the busiest core, in equal
 * factors.
 */
#include "loadgen/topo/model/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/topo/pipeline_sim.h"

#define STEPS         6u /* plans between the two ends */
/* For each ring's map, of which there are up to 256: about 15 ms at 256
 * cores. */
#define MOVES_LATENCY 4000u
#define MOVES_BUSY    20000u

const char *qn_compare_kind_name(uint32_t kind)
{
    static const char *const names[QN_COMPARE_KINDS] = {
        "planned", "diamond rings", "rings with companion", "balanced trees",
        "static and adaptive trees"};
    QN_ASSERT(kind < QN_COMPARE_KINDS);
    return names[kind];
}

static int push(struct qn_compare *c, const struct qn_compare_point *p)
{
    if (c->count == c->room) {
        uint32_t room = 2 * c->room + 64;
        struct qn_compare_point *more = realloc(c->point, room * sizeof *more);
        if (more == NULL) {
            return QN_ENOMEM;
        }
        c->point = more;
        c->room = room;
    }
    c->point[c->count++] = *p;
    return QN_OK;
}

/* Add a topology; `shown` is its name in the picture. */
static int add(struct qn_compare *c, const struct qn_topology_spec_opts *o,
               const char *name, const char *shown, enum qn_compare_kind kind,
               uint32_t arity)
{
    struct qn_compare_point p = {.kind = kind, .arity = arity};
    struct qn_topology_spec *x = malloc(sizeof *x);
    if (x == NULL) {
        return QN_ENOMEM;
    }
    (void)snprintf(p.name, sizeof p.name, "%s", shown);
    if (c->live) {
        fprintf(stderr, "\r%u topologies ", c->count);
    }
    int err = qn_topology_spec_make(x, c->m, name, o, NULL);
    if (err == QN_OK) {
        p.latency = qn_topology_spec_cost(x, c->m, QN_GOAL_ACK, o->q);
        err = qn_topology_spec_burst(x, c->m, o->q, &p.each);
        qn_topology_spec_fini(x);
    }
    free(x);
    return err == QN_OK ? push(c, &p) : err;
}

static int add_arities(struct qn_compare *c,
                       const struct qn_topology_spec_opts *o,
                       const char *format, enum qn_compare_kind kind)
{
    uint32_t last = QN_MIN(QN_MAX(c->m->n, 2u) - 1, QN_RING_ARITY_MAX);
    int err = QN_OK;
    for (uint32_t k = 1; k <= last && err == QN_OK; k++) {
        char name[QN_TOPOLOGY_SPEC_NAME];
        (void)snprintf(name, sizeof name, format, k);
        err = add(c, o, name, name, kind, k);
    }
    return err;
}

/* Each ring twice: with a map for one operation and one for many. */
static int add_rings(struct qn_compare *c,
                     const struct qn_topology_spec_opts *o)
{
    struct qn_topology_spec_opts fast = *o, many = *o;
    fast.goal = QN_GOAL_ACK;
    fast.moves = o->moves > 0 ? o->moves : MOVES_LATENCY;
    many.goal = QN_GOAL_THROUGHPUT;
    many.moves = o->moves > 0 ? o->moves : MOVES_BUSY;
    int err = add_arities(c, &fast, "ring:k=%u", QN_COMPARE_RING);
    if (err == QN_OK) {
        err = add_arities(c, &many, "ring:k=%u,map=busy", QN_COMPARE_RING);
    }
    if (err == QN_OK && c->m->n >= 3) {
        err =
            add_arities(c, &fast, "ring:k=%u,companion", QN_COMPARE_COMPANION);
        err = err == QN_OK
                  ? add_arities(c, &many, "ring:k=%u,companion,map=busy",
                                QN_COMPARE_COMPANION)
                  : err;
    }
    return err;
}

static int busy(const struct qn_compare *c,
                const struct qn_topology_spec_opts *o, double *cycles)
{
    struct qn_topology_spec *x = malloc(sizeof *x);
    int err =
        x != NULL ? qn_topology_spec_make(x, c->m, "auto", o, NULL) : QN_ENOMEM;
    if (err == QN_OK) {
        *cycles = qn_topology_spec_cost(x, c->m, QN_GOAL_THROUGHPUT, o->q);
        qn_topology_spec_fini(x);
    }
    free(x);
    return err;
}

static int add_planned(struct qn_compare *c,
                       const struct qn_topology_spec_opts *o)
{
    struct qn_topology_spec_opts plan = *o;
    double most = 0, least = 0;
    plan.one_tree = true;
    plan.goal = QN_GOAL_ACK;
    int err = add(c, &plan, "auto", "auto", QN_COMPARE_PLANNED, 0);
    err = err == QN_OK ? busy(c, &plan, &most) : err;
    plan.goal = QN_GOAL_THROUGHPUT;
    err = err == QN_OK ? busy(c, &plan, &least) : err;
    for (uint32_t i = 1; i <= STEPS && err == QN_OK && least < most; i++) {
        char shown[QN_TOPOLOGY_SPEC_NAME];
        plan.goal = QN_GOAL_ACK;
        plan.busy_most = most * pow(least / most, i / (STEPS + 1.0));
        (void)snprintf(shown, sizeof shown, "auto, busy at most %.0f",
                       plan.busy_most);
        err = add(c, &plan, "auto", shown, QN_COMPARE_PLANNED, 0);
    }
    plan.busy_most = 0;
    plan.goal = QN_GOAL_THROUGHPUT;
    return err == QN_OK ? add(c, &plan, "auto", "auto for throughput",
                              QN_COMPARE_PLANNED, 0)
                        : err;
}

static int add_known(struct qn_compare *c,
                     const struct qn_topology_spec_opts *o)
{
    int err = QN_OK;
    for (uint32_t i = 0; err == QN_OK; i++) {
        const char *name = qn_topology_spec_name_at(i);
        if (name == NULL) {
            break;
        }
        if (strncmp(name, "ring:", 5) != 0) {
            err = add(c, o, name, name, QN_COMPARE_KNOWN, 0);
        }
    }
    return err;
}

void qn_compare_mark_front(struct qn_compare_point *point, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct qn_compare_point *p = &point[i];
        p->front = true;
        for (uint32_t j = 0; j < count; j++) {
            const struct qn_compare_point *q = &point[j];
            bool as_good = q->latency <= p->latency && q->each <= p->each;
            bool better = q->latency < p->latency || q->each < p->each;
            /* Of equal points the first one is on the front. */
            p->front = p->front && !(as_good && (better || j < i));
        }
    }
}

double qn_compare_cycles(const struct qn_compare_point *p, uint32_t window)
{
    QN_ASSERT(window > 0);
    return QN_MAX(p->latency / window, p->each);
}

/* Of equal points the one with the smaller latency. */
const struct qn_compare_point *qn_compare_best(const struct qn_compare *c,
                                               uint32_t window)
{
    QN_ASSERT(c->count > 0);
    const struct qn_compare_point *best = &c->point[0];
    for (uint32_t i = 1; i < c->count; i++) {
        const struct qn_compare_point *p = &c->point[i];
        double d =
            qn_compare_cycles(p, window) - qn_compare_cycles(best, window);
        if (d < 0 || (!(d > 0) && p->latency < best->latency)) {
            best = p;
        }
    }
    return best;
}

int qn_compare_run(struct qn_compare **out, const struct qn_machine *m,
                   const struct qn_topology_spec_opts *o, bool live)
{
    struct qn_compare *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return QN_ENOMEM;
    }
    c->m = m;
    c->live = live;
    int err = add_planned(c, o);
    err = err == QN_OK ? add_rings(c, o) : err;
    err = err == QN_OK ? add_arities(c, o, "tree:k=%u", QN_COMPARE_TREE) : err;
    err = err == QN_OK ? add_known(c, o) : err;
    if (live) {
        fputs("\r                              \r", stderr);
    }
    if (err != QN_OK) {
        qn_compare_destroy(c);
        return err;
    }
    qn_compare_mark_front(c->point, c->count);
    *out = c;
    return QN_OK;
}

void qn_compare_destroy(struct qn_compare *c)
{
    if (c != NULL) {
        free(c->point);
        free(c);
    }
}

/* ---- text ---- */

static int by_latency(const void *a, const void *b)
{
    const struct qn_compare_point *const *x = a, *const *y = b;
    if ((*x)->latency != (*y)->latency) {
        return (*x)->latency < (*y)->latency ? -1 : 1;
    }
    return (*x > *y) - (*x < *y);
}

/* Windows with the same result share a line. */
static void write_windows(const struct qn_compare *c, FILE *to)
{
    fprintf(to, "\n  %-8s %-32s %12s\n", "window", "best topology",
            "cycles each");
    for (uint32_t w = 1, end; w <= QN_PIPELINE_SIM_DEFAULT; w = end + 1) {
        const struct qn_compare_point *best = qn_compare_best(c, w);
        char text[24];
        end = w;
        while (end < QN_PIPELINE_SIM_DEFAULT &&
               qn_compare_best(c, end + 1) == best) {
            end++;
        }
        (void)snprintf(text, sizeof text, "%u-%u", w, end);
        text[end > w ? strlen(text) : strcspn(text, "-")] = '\0';
        fprintf(to, "  %-8s %-32s %12.0f\n", text, best->name,
                qn_compare_cycles(best, end));
    }
}

void qn_compare_write_text(const struct qn_compare *c, FILE *to)
{
    const struct qn_compare_point **order =
        calloc(c->count + 1, sizeof(const struct qn_compare_point *));
    fprintf(to,
            "%s: %u cores, acknowledged broadcasts, cycles as predicted\n\n"
            "  %-32s %12s %12s\n",
            c->m->name, c->m->n, "topology", "single", "each of 128");
    for (uint32_t i = 0; order != NULL && i < c->count; i++) {
        order[i] = &c->point[i];
    }
    if (order != NULL) {
        qsort(order, c->count, sizeof(const struct qn_compare_point *),
              by_latency);
    }
    for (uint32_t i = 0; i < c->count; i++) {
        const struct qn_compare_point *p =
            order != NULL ? order[i] : &c->point[i];
        fprintf(to, "%c %-32s %12.0f %12.0f\n", p->front ? '*' : ' ', p->name,
                p->latency, p->each);
    }
    fputs("\n* on the Pareto front: no other topology is better at one and not "
          "worse at the other.\n",
          to);
    if (c->count > 0) {
        write_windows(c, to);
    }
    free(order);
}

void qn_compare_write_csv(const struct qn_compare *c, FILE *to)
{
    fputs("topology,kind,arity,latency,pipeline_cycles,front\n", to);
    for (uint32_t i = 0; i < c->count; i++) {
        const struct qn_compare_point *p = &c->point[i];
        fprintf(to, "\"%s\",%s,%u,%.15g,%.15g,%u\n", p->name,
                qn_compare_kind_name(p->kind), p->arity, p->latency, p->each,
                p->front);
    }
}
