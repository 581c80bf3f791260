/*
 * The schedule explorer: a scheduler of the simulated machine
 * (core/sim/machine.h), with the memory of tso.c or c11.c. choices.c counts
 * through the runs.
 *
 * The decision is taken inside the running node (`point`), so a coroutine
 * switch happens only where the schedule switches. A killed node's coroutine is
 * simply never resumed; its store buffer lives on, as that of a processor does
 * whose process was killed.
 *
 * The bounds count what bugs need: most lost wake-ups need one or two switches
 * at the wrong place, not many. Switching because a node parks or ends is free,
 * or else the bound would grow with the length of the program.
 *
 * Reduction by sleep sets (Godefroid), of the form that keeps the bounds. A
 * node that is preempted in front of access a gets the choice to go on first,
 * and with it all that follows. So the runs in which others are preempted
 * instead need not be run again in which a follows after all, and nothing that
 * depends on it came in between:
 *
 *     P   i: a   switch to j   j: b c   switch to i   i: ...
 *     Q          switch to j   j: b c   switch to i   i: a ...
 *
 * P has the end of Q and no more deviations, so i is not chosen again (it is in
 * the sleep set) until an access that depends on a was done. The full method
 * also puts the first access of a switch that was explored into the set of the
 * later ones (i to k after i to j); its witness needs a switch more, so within
 * a bound that would lose ends. A choice between nodes because one has ended
 * or sleeps is treated likewise: all are run.
 *
 * And runs end at a state that was visited before (visited.h). What such a run
 * relies on was complete before it began: the first run that came there is no
 * beginning of it, as a trace grows with each choice, and all that goes on from
 * there came before this one, depth first. So both reductions go together, as
 * long as the sleep set was no larger then.
 */
#include "core/sim/explore/explore.h"

#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sim/explore/c11.h"
#include "core/sim/explore/choices.h"
#include "core/sim/explore/explore_internal.h"
#include "core/sim/explore/independent.h"
#include "core/sim/explore/tso.h"
#include "core/sim/explore/visited.h"

#define OPTIONS_MAX ((QN_TSO_LEAVERS + 1) * QN_EXPLORE_NODES + 2)
#define OLD_MAX     16u
#define STEPS_USUAL 10000u
#define STEPS_MAX   30000u

/* What happens to a node beside accesses; below: the age of what it loads. */
enum { PAUSED = OLD_MAX, KILLED };

static struct {
    struct qn_explore_opts opts;
    uint32_t steps;
    qn_time_t now;              /* ns: the latest deadline that has passed */
    uint32_t deviations, kills; /* used by this run */
    const char *fault;
    bool pruned;
    /* In a pause since each other node that can run has run or paused. */
    bool paused[QN_EXPLORE_NODES];
    bool checked; /* there are checked copies */
    bool again;   /* that was found only now: all from the beginning */
    /* The sleep set: what a node was about to do when it was preempted. */
    bool set[QN_EXPLORE_NODES];
    struct qn_sim_access before[QN_EXPLORE_NODES];
} run;

static bool is_tso(void)
{
    return run.opts.memory == QN_EXPLORE_TSO;
}

/* ---- the sleep set ---- */

/* An access was performed by the running node, or a store of any node has left
 * its buffer. NULL: anything may have happened. */
static void performed(const struct qn_sim_access *a, bool drain)
{
    for (uint32_t i = 0; i < qn_sim.nodes; i++) {
        run.set[i] =
            run.set[i] && a != NULL &&
            qn_access_independent(run.opts.memory, &run.before[i], a, drain);
    }
}

static void performed_by_self(const struct qn_sim_access *a)
{
    performed(a, false);
    qn_visited_access(a, run.checked);
}

static void all_performed(void)
{
    performed(NULL, true);
    qn_visited_all();
}

static void preempted(const struct qn_sim_access *a)
{
    if (!run.opts.all && a != NULL) {
        run.set[qn_sim.self] = true;
        run.before[qn_sim.self] = *a;
    }
}

static bool ready(uint32_t i)
{
    return qn_sim.node[i].state == QN_SIM_READY;
}

/* ---- switching ---- */

_Noreturn void qn_sim_fail(const char *what)
{
    run.fault = what;
    qn_sim_end_run();
}

static void drain_all(void)
{
    if (is_tso()) {
        qn_tso_drain_all();
        all_performed();
    }
}

/* No node can run: let time pass. @return true if a sleeper timed out. */
static bool time_passes(void)
{
    if (is_tso()) {
        drain_all();
    } else {
        qn_c11_time_passes();
        all_performed();
    }
    for (uint32_t i = 0; i < qn_sim.nodes; i++) {
        struct qn_sim_node *n = &qn_sim.node[i];
        if (n->state == QN_SIM_SLEEPS && n->deadline != QN_TIME_NEVER) {
            n->state = QN_SIM_READY;
            n->timed_out = true;
            run.now = QN_MAX(run.now, n->deadline);
            return true;
        }
    }
    return false;
}

/* A node in a pause comes last, or two that wait for a third could go on
 * without end. */
static bool all_paused(void)
{
    for (uint32_t i = 0; i < qn_sim.nodes; i++) {
        if (ready(i) && !run.paused[i]) {
            return false;
        }
    }
    return true;
}

/* Which others can run. The order goes round, so that the default starves no
 * node. @return how many; more than are listed if some are in the sleep set. */
static uint32_t list_others(struct qn_choice *o, uint32_t *count)
{
    uint32_t can_run = 0;
    if (all_paused()) {
        memset(run.paused, 0, sizeof run.paused);
    }
    for (uint32_t d = 1; d <= qn_sim.nodes; d++) {
        uint32_t i = (qn_sim.self + d) % qn_sim.nodes;
        bool alone = i == qn_sim.self && can_run == 0;
        if (ready(i) && !run.paused[i] && (i != qn_sim.self || alone)) {
            can_run++;
            if (!run.set[i]) {
                o[(*count)++] = (struct qn_choice){QN_SWITCH, i};
            }
        }
    }
    return can_run;
}

static void list_drains(struct qn_choice *o, uint32_t *count)
{
    bool may = qn_choices_scripted() || run.deviations < run.opts.deviations;
    for (uint32_t i = 0; may && is_tso() && i < qn_sim.nodes; i++) {
        uint32_t place[QN_TSO_LEAVERS];
        uint32_t leavers = qn_tso_leavers(i, place);
        for (uint32_t k = 0; k < leavers; k++) {
            o[(*count)++] =
                (struct qn_choice){QN_DRAIN, i + QN_EXPLORE_NODES * place[k]};
        }
    }
}

static void drain_one(uint32_t number)
{
    uint32_t node = number % QN_EXPLORE_NODES;
    uint32_t place = number / QN_EXPLORE_NODES;
    struct qn_sim_access store;
    run.deviations++;
    qn_tso_at(node, place, &store);
    qn_tso_drain_one(node, place);
    performed(&store, true);
    qn_visited_drain(node, place, &store);
}

static uint32_t bits(const bool *of)
{
    uint32_t b = 0;
    for (uint32_t i = 0; i < qn_sim.nodes; i++) {
        b |= (uint32_t)of[i] << i;
    }
    return b;
}

static _Noreturn void give_up(void)
{
    run.pruned = true;
    qn_sim_end_run();
}

/* What follows was run before, by other choices. */
static void end_if_visited(bool leaves)
{
    const struct qn_visited_at at = {.paused = bits(run.paused),
                                     .set = bits(run.set),
                                     .kills = run.kills,
                                     .leaves = leaves};
    if (!run.opts.all && qn_choices_fresh() &&
        qn_visited(&at, run.deviations)) {
        give_up();
    }
}

/* No node may be chosen: time passes, or the run ends. */
static void none_runs(bool can_run)
{
    if (can_run) {
        give_up(); /* all that can run is in the sleep set */
    }
    if (!time_passes()) {
        qn_sim_end_run();
    }
}

static void let_others_run(void)
{
    for (;;) {
        struct qn_choice o[OPTIONS_MAX];
        uint32_t count = 0;
        uint32_t can_run = list_others(o, &count);
        if (count == 0) {
            o[count++] = (struct qn_choice){QN_GO_ON, 0};
        }
        list_drains(o, &count);
        end_if_visited(true);
        struct qn_choice chosen = qn_choose(run.steps, o, count);
        if (chosen.action == QN_DRAIN) {
            drain_one(chosen.number);
        } else if (chosen.action == QN_GO_ON) {
            none_runs(can_run > 0);
        } else {
            run.paused[chosen.number] = false;
            if (chosen.number != qn_sim.self) {
                qn_sim_switch(chosen.number);
            }
            return;
        }
    }
}

static void leave(void)
{
    const bool sleeps = qn_sim.node[qn_sim.self].state == QN_SIM_SLEEPS;
    let_others_run();
    if (sleeps) { /* the return of a call is a fence as its beginning */
        performed_by_self(&(struct qn_sim_access){
            .kind = QN_SIM_PARK, .order = memory_order_seq_cst});
    }
}

static void list_switches(struct qn_choice *o, uint32_t *count)
{
    bool may = qn_choices_scripted() || run.deviations < run.opts.deviations;
    for (uint32_t i = 0; may && i < qn_sim.nodes; i++) {
        if (i != qn_sim.self && ready(i) && !run.set[i]) {
            o[(*count)++] = (struct qn_choice){QN_SWITCH, i};
        }
    }
}

/* In front of access `a`; NULL: of a pause. */
static uint32_t list_options(const struct qn_sim_access *a, struct qn_choice *o)
{
    uint32_t count = 0;
    bool all = run.opts.all || a == NULL;
    bool kill = qn_choices_scripted() || run.kills < run.opts.kills;
    o[count++] = (struct qn_choice){QN_GO_ON, 0};
    if (all || !qn_access_local(run.opts.memory, a, run.checked)) {
        list_switches(o, &count);
    }
    list_drains(o, &count);
    if (kill && (all || qn_access_seen(a))) {
        o[count++] = (struct qn_choice){QN_KILL, qn_sim.self};
    }
    return count;
}

static void step(void)
{
    if (++run.steps > run.opts.steps_max) {
        qn_sim_fail("more steps than allowed");
    }
}

static void point(const struct qn_sim_access *a)
{
    step();
    if (a != NULL && a->checked && !run.checked) {
        run.checked = run.again = true;
        qn_sim_end_run();
    }
    for (;;) {
        struct qn_choice o[OPTIONS_MAX];
        const uint32_t count = list_options(a, o);
        if (count > 1) {
            end_if_visited(false);
        }
        struct qn_choice chosen = qn_choose(run.steps, o, count);
        switch (chosen.action) {
        case QN_DRAIN:
            drain_one(chosen.number);
            continue;
        case QN_KILL:
            run.kills++;
            qn_visited_note(KILLED);
            qn_sim.node[qn_sim.self].state = QN_SIM_GONE;
            leave();
            continue;
        case QN_SWITCH:
            run.deviations++;
            run.paused[chosen.number] = false;
            preempted(a);
            qn_sim_switch(chosen.number);
            break;
        default:
            break;
        }
        if (a != NULL) {
            performed_by_self(a);
        }
        return;
    }
}

void qn_explore_overflow(void)
{
    all_performed();
}

void qn_explore_piece(const struct qn_sim_access *piece)
{
    point(piece);
}

uint32_t qn_explore_old(uint32_t count)
{
    struct qn_choice o[OLD_MAX];
    QN_DASSERT(count >= 1 && count <= OLD_MAX);
    step();
    if (!qn_choices_scripted() && run.deviations == run.opts.deviations) {
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        o[i] = (struct qn_choice){i == 0 ? QN_GO_ON : QN_OLD, i};
    }
    uint32_t old = qn_choose(run.steps, o, count).number;
    run.deviations += old != 0;
    return old;
}

/* A pause lets time pass: buffers drain and other nodes run. */
static void pause_node(void)
{
    point(NULL);
    qn_visited_note(PAUSED);
    drain_all();
    run.paused[qn_sim.self] = true;
    leave();
}

static void woken(uint32_t node)
{
    (void)node; /* it is READY: one of the options from now on */
}

static qn_time_t now(void)
{
    return run.now;
}

static const struct qn_sim_scheduler explorer = {
    .point = point,
    .leave = leave,
    .pause = pause_node,
    .woken = woken,
    .now = now,
    .parks_at_once = true,
};

/* ---- runs ---- */

static void run_node(uint32_t node)
{
    /* What it stored may still wait in its buffer when it ends. */
    run.opts.node[node](run.opts.ctx);
}

/* Run the nodes until none can run. */
static void run_nodes(void)
{
    struct qn_choice o[QN_EXPLORE_NODES] = {0};
    for (uint32_t i = 0; i < qn_sim.nodes; i++) {
        o[i] = (struct qn_choice){QN_SWITCH, i};
    }
    qn_sim_run(qn_choose(run.steps, o, qn_sim.nodes).number);
}

static void begin_run(void)
{
    const struct qn_explore_opts *o = &run.opts;
    run.steps = 0;
    run.now = 0;
    run.deviations = 0;
    run.kills = 0;
    run.fault = NULL;
    run.pruned = false;
    memset(run.set, 0, sizeof run.set);
    memset(run.paused, 0, sizeof run.paused);
    qn_choices_begin();
    qn_visited_begin(o->memory);
    const struct qn_sim_memory *m = is_tso() ? &qn_tso : &qn_c11;
    int err = qn_sim_reset(o->nodes, &explorer, m, run_node);
    QN_ASSERT(err == QN_OK); /* memory for the stacks of four nodes */
    if (is_tso()) {
        qn_tso_reset();
    } else {
        qn_c11_reset();
    }
}

static const char *judge(void)
{
    const struct qn_explore_opts *o = &run.opts;
    for (uint32_t i = 0; o->pending != NULL && i < o->nodes; i++) {
        if (qn_sim_end_of(i) == QN_SIM_ASLEEP && o->pending(o->ctx, i)) {
            return "a node sleeps while work waits for it";
        }
    }
    return o->check(o->ctx);
}

static void run_once(struct qn_explored *out)
{
    const struct qn_explore_opts *o = &run.opts;
    begin_run();
    if (o->setup != NULL) {
        o->setup(o->ctx);
    }
    run_nodes();
    if (is_tso()) {
        qn_tso_drain_all();
    }
    if (run.fault == NULL && !run.pruned && !run.again) {
        run.fault = judge();
    }
    if (o->teardown != NULL) {
        o->teardown(o->ctx);
    }
    out->runs++;
    out->pruned += run.pruned;
    out->steps += run.steps;
    out->fault = run.fault;
    if (run.fault != NULL) {
        qn_choices_write(out->choices, sizeof out->choices);
    }
}

static void start(const struct qn_explore_opts *opts, const char *script,
                  struct qn_explored *out)
{
    QN_ASSERT(opts->nodes >= 1 && opts->nodes <= QN_EXPLORE_NODES);
    QN_ASSERT(opts->steps_max <= STEPS_MAX);
    memset(out, 0, sizeof *out);
    run.opts = *opts;
    run.opts.steps_max = opts->steps_max == 0 ? STEPS_USUAL : opts->steps_max;
    run.checked = script != NULL;
    run.again = false;
    qn_choices_start(script);
    qn_visited_start();
}

bool qn_explore(const struct qn_explore_opts *opts, struct qn_explored *out)
{
    start(opts, NULL, out);
    do {
        run_once(out);
        if (out->fault != NULL) {
            return false;
        }
        if (run.again) {
            run.again = false;
            qn_choices_start(NULL);
            qn_visited_start();
            memset(out, 0, sizeof *out);
        } else if (!qn_choices_next()) {
            out->complete = true;
            return true;
        }
    } while (opts->runs_max == 0 || out->runs < opts->runs_max);
    return true;
}

bool qn_explore_replay(const struct qn_explore_opts *opts, const char *choices,
                       struct qn_explored *out)
{
    char script[QN_SIM_CHOICES_MAX]; /* choices may lie in *out */
    snprintf(script, sizeof script, "%s", choices);
    start(opts, script, out);
    run_once(out);
    qn_choices_start(NULL);
    return out->fault == NULL;
}

enum qn_sim_end qn_sim_end_of(uint32_t i)
{
    QN_ASSERT(i < qn_sim.nodes);
    enum qn_sim_state s = qn_sim.node[i].state;
    return s == QN_SIM_FINISHED ? QN_SIM_DONE
           : s == QN_SIM_GONE   ? QN_SIM_KILLED
                                : QN_SIM_ASLEEP;
}
