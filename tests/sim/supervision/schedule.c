/*
 * One seed: a group starts, faults happen for some seconds, then all heals, and
 * within a bound every replica serves and knows every other one, unless the
 * data is lost. Then the server drains.
 *
 * Time jumps from event to event.
 */
#include "tests/sim/supervision/world.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"

#define FAULTS_MS     4000
#define HEALED_WITHIN (120 * QN_S) /* an upgrade may have to time out */
#define DRAIN_BOUND   (30 * QN_S)
#define STEPS_MAX     2000000u

static void draw(struct world *w)
{
    w->opts = (struct qn_supervision_opts){
        .replicas = (uint32_t)(2 + world_random(w, WORLD_NODES - 1)),
        .restart = true,
        .memory_acceptor = world_chance(w, 70),
        .shutdown_timeout_s = 1 + (uint32_t)world_random(w, 3),
        .upgrade_timeout_s = 5};
    w->f = (struct faults){.kill = world_chance(w, 70),
                           .weak = world_chance(w, 25),
                           .stop = world_chance(w, 40),
                           .spawn = world_chance(w, 25),
                           .crash = world_chance(w, 50),
                           .tight = world_chance(w, 30),
                           .busy = world_chance(w, 30),
                           .upgrade = world_chance(w, 30),
                           .members =
                               w->opts.memory_acceptor && world_chance(w, 50),
                           .recover = world_chance(w, 25),
                           .leave = world_chance(w, 15),
                           .lose = world_chance(w, 15),
                           .stubborn = world_chance(w, 20)};
    w->room = w->f.tight ? CHANNEL_TIGHT : CHANNEL_WIDE;
    w->opts.taken = qn_low_bits(
        w->f.members ? 1 + (uint32_t)world_random(w, w->opts.replicas)
                     : w->opts.replicas);
    w->ring = w->opts.memory_acceptor && world_chance(w, 50);
}

/* ---- faults -------------------------------------------------------------- */

/* The data stays: another complete replica runs, or it may be lost. */
static bool may_end(struct world *w, qn_node_t i)
{
    const struct process *p = &w->process[i];
    const uint32_t least = runs(w, p) && p->complete ? 2 : 1;
    return p->alive && (w->f.lose || complete_count(w, true) >= least);
}

static void stop(struct world *w, qn_node_t i)
{
    struct process *p = &w->process[i];
    p->stopped_until =
        world_chance(w, 30) ? world_ms(w, 500, 3000) : world_ms(w, 1, 200);
}

static void ask_to_recover(struct world *w, qn_node_t i)
{
    struct process *p = &w->process[i];
    const struct letter l = {
        .m = {.kind = QN_CTL_RECOVER,
              .u.recover = {.node =
                                (qn_node_t)world_random(w, w->opts.replicas)}}};
    if (runs(w, p) && p->linked && p->complete && !p->to_tell) {
        channel_push(w, &p->out, &l);
    }
}

static void leave(struct world *w, qn_node_t i)
{
    struct process *p = &w->process[i];
    if (runs(w, p) && p->complete && !p->draining &&
        complete_count(w, true) > 2) {
        p->asked_to_leave = p->draining = true;
        p->stubborn = false;
        p->drained_at = world_ms(w, 0, 300);
    }
}

static void fault(struct world *w)
{
    const qn_node_t i = (qn_node_t)world_random(w, w->opts.replicas);
    struct supervisor *s = &w->sup;
    w->fault_at = world_ms(w, 1, 150);
    switch (world_random(w, 11)) {
    case 0:
    case 1:
        if (w->f.kill && may_end(w, i)) {
            process_end(w, i, world_chance(w, 70) ? 9 : 3 << 8);
        }
        break;
    case 2:
        if (w->f.stop && may_end(w, i)) {
            stop(w, i);
        }
        break;
    case 3:
        if (w->f.crash && s->alive && world_chance(w, 50)) {
            s->crash_after = 1 + (uint32_t)world_random(w, 30);
        }
        break;
    case 4:
        w->process[i].busy = w->f.busy && world_chance(w, 50);
        break;
    case 5:
        s->successor_step =
            s->alive && !s->adopting && w->f.upgrade && world_chance(w, 30);
        break;
    case 6:
        if (w->f.recover && world_chance(w, 60)) {
            ask_to_recover(w, i);
        }
        break;
    case 7:
        if (w->f.leave && world_chance(w, 30)) {
            leave(w, i);
        }
        break;
    case 8:
    case 9:
        if (w->f.members) {
            members_ask(w, i);
        }
        break;
    default:
        s->slow_until = world_ms(w, 0, 300);
        break;
    }
}

static void heal(struct world *w)
{
    w->faulty = false;
    w->fault_at = QN_TIME_NEVER;
    w->sup.crash_after = 0;
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        struct process *p = &w->process[i];
        p->stopped_until = 0;
        p->busy = false;
        p->dies_at = p->killed ? p->dies_at : QN_TIME_NEVER;
    }
}

/* ---- time ---------------------------------------------------------------- */

static qn_time_t next_time(const struct world *w)
{
    const struct supervisor *s = &w->sup;
    qn_time_t at = QN_MIN(w->fault_at, w->owner_at);
    at = QN_MIN(at, w->start_at);
    at = QN_MIN(at, members_deadline(w));
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        at = QN_MIN(at, process_deadline(w, i));
    }
    if (s->alive && s->adopting) {
        at = QN_MIN(at, s->machine.orphans.until);
    } else if (s->alive) {
        const qn_time_t own = shell_has_work(w) ? w->now
                              : s->machine.orphans.unreached != 0
                                  ? QN_MIN(s->actions.deadline, s->ask_at)
                                  : s->actions.deadline;
        at = QN_MIN(at, QN_MAX(own, s->slow_until));
    }
    return at;
}

static void turn(struct world *w)
{
    struct supervisor *s = &w->sup;
    w->now = QN_MAX(w->now + 20 * QN_US, next_time(w));
    if (w->now >= w->fault_at) {
        fault(w);
    }
    group_turn(w);
    members_turn(w);
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        process_turn(w, i);
    }
    if (!s->alive && w->now >= w->start_at) {
        adopt_begin(w);
    }
    if (s->alive && s->adopting) {
        adopt_turn(w);
    } else if (s->alive && w->now >= s->slow_until && shell_has_work(w)) {
        shell_turn(w);
    }
}

/* ---- a run --------------------------------------------------------------- */

static void start(struct world *w)
{
    struct supervisor *s = &w->sup;
    s->alive = true;
    qn_supervision_init(&s->machine, &w->opts);
    shell_node_event(w, QN_ON_START, 0);
    while (!s->machine.served) {
        turn(w);
    }
}

static void until_healed(struct world *w)
{
    const qn_time_t bound = w->now + HEALED_WITHIN;
    const char *lacks;
    qn_node_t which;
    while (!w->over && (lacks = check_unhealed(w, &which)) != NULL) {
        if (w->now > bound) {
            world_fail(w, "all is well for long, and replica %u %s", which,
                       lacks);
        }
        turn(w);
    }
}

static void drain(struct world *w)
{
    const qn_time_t bound = w->now + DRAIN_BOUND;
    w->drained = true;
    w->sup.signals = world_chance(w, 10) ? 2 : 1;
    while (!w->over) {
        if (w->now > bound) {
            world_fail(w, "the server does not end");
        }
        turn(w);
    }
}

uint64_t world_run(uint64_t seed, struct coverage *cover)
{
    struct world *w = calloc(1, sizeof *w);
    w->seed = w->random = seed;
    w->trace = getenv("QN_SIM_TRACE") != NULL;
    w->cover = cover;
    w->now = 1000 * QN_S;
    w->fault_at = w->start_at = QN_TIME_NEVER;
    w->build = 1;
    w->sup.build = 1;
    draw(w);
    members_begin(w);
    start(w);
    w->faulty = true;
    w->fault_at = w->now;
    const qn_time_t end = w->now + FAULTS_MS * QN_MS;
    while (!w->over && w->now < end) {
        turn(w);
    }
    if (!w->over) {
        heal(w);
        until_healed(w);
    }
    if (!w->over) {
        drain(w);
    }
    cover->seeds++;
    const uint64_t hash = w->hash;
    free(w);
    return hash;
}
