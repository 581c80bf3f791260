/*
 * The schedule explorer: choices and runs. It is a scheduler of the simulated
 * machine (core/sim/machine.h), with the memory of tso.c.
 *
 * A run is a list of choices; where the list ends, every further choice is the
 * default (index 0). So exploring is counting: after a run, the last choice
 * that has an alternative left is advanced, what came after it is forgotten,
 * and the program runs again from `setup`. No state is saved or compared; runs
 * take some microseconds, and programs under test some dozens of steps.
 *
 * The decision is taken inside the running node (qn_sim_point), so a coroutine
 * switch happens only where the schedule switches. A killed node's coroutine is
 * simply never resumed; its store buffer lives on, as that of a processor does
 * whose process was killed.
 *
 * The bounds count what bugs need: most lost wake-ups need one or two switches
 * at the wrong place, not many. Switching because a node parks or ends is free,
 * or else the bound would grow with the length of the program.
 */
#include "core/sim/explore/explore.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sim/explore/tso.h"
#include "core/sim/machine.h"

#define DEPTH_MAX   16384u /* choices with an alternative in one run */
#define OPTIONS_MAX (2 * QN_EXPLORE_NODES + 2)
#define STEPS_USUAL 10000u

enum action { GO_ON, SWITCH, DRAIN, KILL };

static const char letter[] = {'-', 's', 'd', 'k'}; /* by action */

struct option {
    enum action action;
    uint32_t node; /* SWITCH, DRAIN; KILL: the running one */
};

struct choice {
    uint32_t step;
    struct option option; /* the chosen one */
    uint32_t index;       /* of it */
    uint32_t count;       /* how many there were */
};

static struct {
    struct qn_explore_opts opts;
    const char *script; /* replay: choices still to come; NULL: explore */
    uint32_t steps;
    qn_time_t now;              /* ns: the latest deadline that has passed */
    uint32_t deviations, kills; /* used by this run */
    const char *fault;
    struct choice path[DEPTH_MAX];
    uint32_t depth; /* choices taken by this run */
    uint32_t given; /* choices it must repeat */
} run;

/* ---- choices ---- */

static uint32_t scripted(const struct option *o, uint32_t count)
{
    unsigned step;
    char action;
    unsigned node = 0;
    if (sscanf(run.script, " %u:%c%u", &step, &action, &node) < 2 ||
        step != run.steps) {
        return 0;
    }
    for (uint32_t i = 1; i < count; i++) {
        if (action == letter[o[i].action] &&
            (o[i].action == KILL || node == o[i].node)) {
            run.script += strspn(run.script, " ");
            run.script += strcspn(run.script, " ");
            return i;
        }
    }
    return 0;
}

/* Take one of the options; the first is the default. */
static struct option choose(const struct option *o, uint32_t count)
{
    if (count == 1) {
        return o[0];
    }
    QN_ASSERT(run.depth < DEPTH_MAX);
    struct choice *c = &run.path[run.depth];
    uint32_t index = 0;
    if (run.script != NULL) {
        index = scripted(o, count);
    } else if (run.depth < run.given) {
        QN_ASSERT(c->count == count); /* the nodes are deterministic */
        index = c->index;
    }
    *c = (struct choice){
        .step = run.steps, .option = o[index], .index = index, .count = count};
    run.depth++;
    return o[index];
}

static void write_choices(char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < run.depth && used < size; i++) {
        const struct choice *c = &run.path[i];
        char node[12] = "";
        if (c->index == 0) {
            continue;
        }
        if (c->option.action != KILL) {
            snprintf(node, sizeof node, "%" PRIu32, c->option.node);
        }
        used += (size_t)snprintf(out + used, size - used, "%s%" PRIu32 ":%c%s",
                                 used == 0 ? "" : " ", c->step,
                                 letter[c->option.action], node);
    }
}

/* Advance to the next run. False: all were run. */
static bool next_path(void)
{
    while (run.depth > 0) {
        struct choice *c = &run.path[run.depth - 1];
        if (c->index + 1 < c->count) {
            c->index++;
            run.given = run.depth;
            return true;
        }
        run.depth--;
    }
    return false;
}

/* ---- switching ---- */

_Noreturn void qn_sim_fail(const char *what)
{
    run.fault = what;
    qn_sim_end_run();
}

/* No node can run: let time pass. @return true if a sleeper timed out. */
static bool time_passes(void)
{
    qn_tso_drain_all();
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

/* The order of the options goes round, so that the default starves no node. */
static void leave(void)
{
    struct option o[QN_EXPLORE_NODES];
    uint32_t count = 0;
    do {
        for (uint32_t d = 1; d <= qn_sim.nodes; d++) {
            uint32_t i = (qn_sim.self + d) % qn_sim.nodes;
            bool alone = i == qn_sim.self && count == 0;
            if (qn_sim.node[i].state == QN_SIM_READY &&
                (i != qn_sim.self || alone)) {
                o[count++] = (struct option){SWITCH, i};
            }
        }
    } while (count == 0 && time_passes());
    if (count == 0) {
        qn_sim_end_run();
    }
    uint32_t next = choose(o, count).node;
    if (next != qn_sim.self) {
        qn_sim_switch(next);
    }
}

static uint32_t list_options(struct option *o)
{
    uint32_t count = 0;
    bool replay = run.script != NULL;
    o[count++] = (struct option){GO_ON, 0};
    if (replay || run.deviations < run.opts.deviations) {
        for (uint32_t i = 0; i < qn_sim.nodes; i++) {
            if (i != qn_sim.self && qn_sim.node[i].state == QN_SIM_READY) {
                o[count++] = (struct option){SWITCH, i};
            }
        }
        for (uint32_t i = 0; i < qn_sim.nodes; i++) {
            if (qn_tso_waiting(i) > 0) {
                o[count++] = (struct option){DRAIN, i};
            }
        }
    }
    if (replay || run.kills < run.opts.kills) {
        o[count++] = (struct option){KILL, qn_sim.self};
    }
    return count;
}

static void point(const struct qn_sim_access *a)
{
    (void)a;
    if (++run.steps > run.opts.steps_max) {
        qn_sim_fail("more steps than allowed");
    }
    for (;;) {
        struct option o[OPTIONS_MAX];
        struct option chosen = choose(o, list_options(o));
        switch (chosen.action) {
        case GO_ON:
            return;
        case SWITCH:
            run.deviations++;
            qn_sim_switch(chosen.node);
            return;
        case DRAIN:
            run.deviations++;
            qn_tso_drain_one(chosen.node);
            break;
        case KILL:
            run.kills++;
            qn_sim.node[qn_sim.self].state = QN_SIM_GONE;
            leave();
            break;
        }
    }
}

/* A pause lets time pass: buffers drain and other nodes run. */
static void pause_node(void)
{
    point(NULL);
    qn_tso_drain_all();
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
    struct option o[QN_EXPLORE_NODES] = {0};
    for (uint32_t i = 0; i < qn_sim.nodes; i++) {
        o[i] = (struct option){SWITCH, i};
    }
    qn_sim_run(choose(o, qn_sim.nodes).node);
}

static void run_once(struct qn_explored *out)
{
    const struct qn_explore_opts *o = &run.opts;
    run.steps = 0;
    run.now = 0;
    run.depth = 0;
    run.deviations = 0;
    run.kills = 0;
    run.fault = NULL;
    int err = qn_sim_reset(o->nodes, &explorer, &qn_tso, run_node);
    QN_ASSERT(err == QN_OK); /* memory for the stacks of four nodes */
    qn_tso_reset();
    if (o->setup != NULL) {
        o->setup(o->ctx);
    }
    run_nodes();
    qn_tso_drain_all();
    if (run.fault == NULL) {
        run.fault = o->check(o->ctx);
    }
    if (o->teardown != NULL) {
        o->teardown(o->ctx);
    }
    out->runs++;
    out->steps += run.steps;
    out->fault = run.fault;
    if (run.fault != NULL) {
        write_choices(out->choices, sizeof out->choices);
    }
}

static void start(const struct qn_explore_opts *opts, const char *script,
                  struct qn_explored *out)
{
    QN_ASSERT(opts->nodes >= 1 && opts->nodes <= QN_EXPLORE_NODES);
    memset(out, 0, sizeof *out);
    run.opts = *opts;
    run.opts.steps_max = opts->steps_max == 0 ? STEPS_USUAL : opts->steps_max;
    run.script = script;
    run.depth = 0;
    run.given = 0;
}

bool qn_explore(const struct qn_explore_opts *opts, struct qn_explored *out)
{
    start(opts, NULL, out);
    do {
        run_once(out);
        if (out->fault != NULL) {
            return false;
        }
        if (!next_path()) {
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
    run.script = NULL;
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
