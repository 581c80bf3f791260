/*
 * A run: its nodes, their faults, its end; and the clock and the work of nodes.
 * turn.c and access.c have the ideas.
 */
#include "core/sim/timed/timed.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/sim/timed/timed_internal.h"

#define UNTIL_NS (3600 * QN_S)

struct qn_timed_machine qn_timed;

/* ---- clock, work, library ---- */

static qn_time_t now(void)
{
    struct qn_actor *a = qn_timed_self();
    qn_timed_close_run(a);
    qn_timed_spend(qn_timed.prices->clock, &a->out->library);
    a->read_clock = true;
    return QN_TIMED_ORIGIN_NS + a->out->clock / QN_PS_PER_NS;
}

void qn_timed_work(qn_ps_t ps)
{
    struct qn_actor *a = qn_timed_self();
    qn_ps_t from = a->out->clock;
    qn_timed_close_run(a);
    qn_timed_spend(ps, &a->out->worked);
    qn_timed_tell((struct qn_timed_event){.kind = QN_TIMED_WORK,
                                          .from = from,
                                          .until = a->out->clock,
                                          .peer = QN_SIM_NO_NODE});
}

static void work(uint64_t ns)
{
    qn_timed_work(ns * QN_PS_PER_NS);
}

static void mark(enum qn_mark m)
{
    struct qn_actor *a = qn_timed_self();
    qn_ps_t from = a->out->clock;
    if (qn_timed.prices->mark[m] > 0) {
        qn_timed_close_run(a);
        qn_timed_spend(qn_timed.prices->mark[m], &a->out->library);
    }
    qn_timed_tell((struct qn_timed_event){.kind = QN_TIMED_MARK,
                                          .from = from,
                                          .until = a->out->clock,
                                          .peer = QN_SIM_NO_NODE,
                                          .mark = m});
}

static void looks_until(qn_time_t deadline)
{
    qn_timed_self()->looks_until =
        deadline > QN_TIMED_ORIGIN_NS
            ? (deadline - QN_TIMED_ORIGIN_NS) * QN_PS_PER_NS
            : 0;
}

static bool may_park(void)
{
    return !qn_timed.o->looks_on;
}

static const struct qn_sim_scheduler scheduler = {
    .point = qn_timed_point,
    .leave = qn_timed_leave,
    .pause = qn_timed_pause,
    .woken = qn_timed_woken,
    .now = now,
    .work = work,
    .mark = mark,
    .bulk = qn_timed_bulk,
    .queue = qn_timed_queue,
    .looks_until = looks_until,
    .may_park = may_park,
};

/* ---- a run ---- */

static void apply_fault(const struct qn_sim_fault *f)
{
    struct qn_actor *a = &qn_timed.actor[f->node];
    qn_ps_t from = f->from_ns * QN_PS_PER_NS;
    qn_ps_t until = f->until_ns == 0 ? QN_PS_NEVER : f->until_ns * QN_PS_PER_NS;
    switch (f->kind) {
    case QN_SIM_FAULT_KILL:
        a->kill_access = f->access;
        a->kill_from = f->access == 0 ? from : QN_PS_NEVER;
        break;
    case QN_SIM_FAULT_STOP:
        a->stop_from = from;
        a->stop_until = until;
        break;
    case QN_SIM_FAULT_SLOW:
        a->slow = f->factor;
        a->slow_from = from;
        a->slow_until = until;
        break;
    case QN_SIM_FAULT_LINES:
        a->far = f->factor;
        a->far_from = from;
        a->far_until = until;
        break;
    }
}

static bool opts_good(const struct qn_timed_opts *o)
{
    bool good = o->nodes >= 1 && o->nodes <= QN_SIM_NODES_MAX &&
                o->prices != NULL && o->prices->nodes == o->nodes &&
                o->main != NULL && o->jitter >= 0 && o->jitter <= 10;
    for (uint32_t i = 0; i < o->faults && good; i++) {
        const struct qn_sim_fault *f = &o->fault[i];
        bool scales =
            f->kind == QN_SIM_FAULT_SLOW || f->kind == QN_SIM_FAULT_LINES;
        good = f->node < o->nodes && (!scales || f->factor >= 1) &&
               (f->until_ns == 0 || f->until_ns > f->from_ns);
    }
    return good;
}

static void run_node(uint32_t node)
{
    qn_timed.o->main(qn_timed.o->ctx, node);
}

static int make_actors(void)
{
    uint32_t n = qn_timed.o->nodes;
    qn_timed.actor = calloc(n, sizeof *qn_timed.actor);
    qn_timed.out->node = calloc(n, sizeof *qn_timed.out->node);
    if (qn_timed.actor == NULL || qn_timed.out->node == NULL) {
        return QN_ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        qn_timed.actor[i] = (struct qn_actor){
            .out = &qn_timed.out->node[i],
            .stop_from = QN_PS_NEVER,
            .kill_from = QN_PS_NEVER,
            .slow = 1,
            .far = 1,
            .slow_from = QN_PS_NEVER,
            .far_from = QN_PS_NEVER,
            .watch = calloc(QN_TIMED_WATCHES, sizeof(struct qn_line_watch)),
        };
        if (qn_timed.actor[i].watch == NULL) {
            return QN_ENOMEM;
        }
    }
    return QN_OK;
}

static int prepare(const struct qn_timed_opts *o, struct qn_timed_result *out)
{
    static struct qn_sim_memory hashed;
    hashed = qn_timed_memory();
    memset(&qn_timed, 0, sizeof qn_timed);
    *out = (struct qn_timed_result){.nodes = o->nodes};
    qn_timed.o = o;
    qn_timed.out = out;
    qn_timed.prices = o->prices;
    qn_timed.until = (o->until_ns == 0 ? UNTIL_NS : o->until_ns) * QN_PS_PER_NS;
    int err = make_actors();
    if (err == QN_OK) {
        err = qn_lines_create(&qn_timed.lines, o->prices,
                              o->lines_bytes != 0 ? o->lines_bytes
                                                  : QN_TIMED_LINES_BYTES);
    }
    if (err == QN_OK) {
        err = qn_time_queue_init(&qn_timed.queue, o->nodes, o->seed);
    }
    if (err == QN_OK && o->prices->begin != NULL) {
        o->prices->begin(o->prices);
    }
    if (err == QN_OK) {
        err = qn_sim_reset(o->nodes, &scheduler, &hashed, run_node);
    }
    return err;
}

static void release(void)
{
    for (uint32_t i = 0; qn_timed.actor != NULL && i < qn_timed.o->nodes; i++) {
        free(qn_timed.actor[i].watch);
        free(qn_timed.actor[i].transit);
    }
    free(qn_timed.actor);
    qn_lines_destroy(qn_timed.lines);
    qn_time_queue_fini(&qn_timed.queue);
}

static void start(void)
{
    uint32_t first;
    for (uint32_t i = 0; i < qn_timed.o->faults; i++) {
        apply_fault(&qn_timed.o->fault[i]);
    }
    for (uint32_t i = 0; i < qn_timed.o->nodes; i++) {
        qn_time_queue_set(&qn_timed.queue, i, 0);
    }
    do {
        first = qn_time_queue_pop(&qn_timed.queue);
    } while (!qn_timed_begins(first, qn_timed.queue.time[first]));
    qn_sim_run(first);
}

static void finish(struct qn_timed_result *out)
{
    out->lines = qn_lines_count(qn_timed.lines);
    for (uint32_t i = 0; i < out->nodes; i++) {
        out->node[i].state = qn_sim.node[i].state;
        out->accesses += out->node[i].accesses;
        out->clock = QN_MAX(out->clock, out->node[i].clock);
    }
}

int qn_timed_run(const struct qn_timed_opts *o, struct qn_timed_result *out)
{
    if (!opts_good(o)) {
        return QN_EINVAL;
    }
    int err = prepare(o, out);
    if (err == QN_OK) {
        start();
        finish(out);
    } else {
        qn_timed_result_free(out);
    }
    release();
    return err;
}

void qn_timed_result_free(struct qn_timed_result *r)
{
    free(r->node);
    *r = (struct qn_timed_result){0};
}

qn_ps_t qn_timed_clock(void)
{
    return qn_timed_self()->out->clock;
}

void qn_timed_sleep_until(qn_ps_t time)
{
    struct qn_actor *a = qn_timed_self();
    qn_timed_close_run(a);
    if (time > a->out->clock) {
        a->out->paused += time - a->out->clock;
        a->out->clock = time;
    }
}

_Noreturn void qn_timed_fail(const char *what)
{
    qn_timed.out->fault = what;
    qn_sim_end_run();
}

_Noreturn void qn_timed_stop(void)
{
    qn_sim_end_run();
}

qn_ps_t qn_timed_clock_of(uint32_t node)
{
    QN_ASSERT(node < qn_timed.out->nodes);
    return qn_timed.out->node[node].clock;
}
