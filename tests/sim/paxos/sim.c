/*
 * The message-level simulator: one seed, one schedule.
 *
 * Virtual time goes on in small random steps. In each, every node that is not
 * paused may take a turn: deliver some packets of its channels in random
 * order, submit, TICK, serve transfers, look at its peers' positions. The seed
 * also says which classes of faults exist in its run, so that a seed without
 * loss tests the path that loss hides.
 *
 * After the faults the network heals. Then every command that was given a
 * sequence must be applied by every node within HEAL_NS of virtual time, and
 * all logs must be empty again.
 */
#include "tests/sim/paxos/sim_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paxos/machine/onepaxos_internal.h"
#include "tests/support/replay.h"

#define FAULTY_STEPS 1000u
#define HEAL_NS      (60 * QN_S)

bool sim_has(const struct sim *s, enum fault f)
{
    return !s->healed && (s->faults >> f & 1) != 0;
}

bool sim_chance(struct sim *s, uint32_t percent)
{
    return cluster_random(&s->c, 100) < percent;
}

bool sim_may_strand(const struct sim *s)
{
    return s->c.in_memory && sim_has(s, FAULT_LOST) && sim_has(s, FAULT_KILL);
}

uint64_t sim_aside(uint64_t *sequence)
{
    *sequence = *sequence * UINT64_C(6364136223846793005) +
                UINT64_C(1442695040888963407);
    return *sequence >> 60;
}

static bool on_send(struct cluster *c, struct packet *k, bool tree)
{
    struct sim *s = c->ctx;
    if (tree && sim_has(s, FAULT_LOSS) && sim_chance(s, 20)) {
        return false;
    }
    k->due = c->now + cluster_random(c, s->delay[k->from][k->to] + 1);
    k->due = QN_MAX(k->due, s->cut_until[k->from][k->to]);
    return true;
}

/** A slow member takes one of so many turns. */
static bool skips(struct sim *s, qn_node_t i)
{
    return i == s->slow && !s->healed && s->skipped++ % s->slow_turns != 0;
}

static void advance(struct sim *s)
{
    struct cluster *c = &s->c;
    c->now += cluster_random(c, 100 * QN_US);
    c->wall_ms += cluster_random(c, 2);
    if (sim_has(s, FAULT_CLOCK) && sim_chance(s, 5)) {
        c->wall_ms -= cluster_random(c, 50);
        c->wall_ms += sim_chance(s, 10) ? cluster_random(c, 5000) : 0;
        c->wall_ms -= sim_chance(s, 10) ? cluster_random(c, 5000) : 0;
    }
    if (sim_has(s, FAULT_JUMP) && sim_chance(s, 1)) {
        c->now += cluster_random(c, 50 * QN_MS);
    }
    if (sim_has(s, FAULT_CUT) && sim_chance(s, 2)) {
        qn_node_t from = (qn_node_t)cluster_random(c, c->nodes);
        qn_node_t to = (qn_node_t)cluster_random(c, c->nodes);
        s->cut_until[from][to] = c->now + cluster_random(c, 20 * QN_MS);
    }
    sim_deaths(s);
    sim_seats(s);
    sim_suspicions(s);
    sim_snapshots(s);
    for (qn_node_t i = 0; i < c->nodes; i++) {
        if (c->member[i].p == NULL) {
            continue;
        }
        if (sim_has(s, FAULT_PAUSE) && cluster_random(c, 400) == 0) {
            s->paused_until[i] = c->now + cluster_random(c, 20 * QN_MS);
        }
        if (s->healed || s->paused_until[i] <= c->now) {
            bool due = c->member[i].deadline <= c->now;
            bool takes = due || sim_chance(s, 50);
            if (takes && !skips(s, i)) {
                sim_turn(s, i);
            }
        }
    }
}

static bool complete(const struct sim *s)
{
    for (qn_node_t i = 0; i < s->c.nodes; i++) {
        const struct member *m = &s->c.member[i];
        struct qn_onepaxos_status st;
        bool votes = cluster_votes(&s->c, i);
        if (m->p == NULL && !votes) {
            continue; /* a vacant seat */
        }
        if (m->p == NULL || (votes && m->p->ul.non_voting) ||
            m->p->ul.removed || qn_onepaxos_read_waits(m->p)) {
            return false;
        }
        qn_onepaxos_status(m->p, &st);
        for (qn_node_t o = 0; o < s->c.nodes; o++) {
            bool this_life = m->seq[o].inc == s->c.member[o].inc;
            if (s->c.member[o].p != NULL &&
                (this_life ? m->seq[o].last : 0) != s->submitted[o]) {
                return false;
            }
        }
        /* A node that needs a snapshot holds everybody's log. */
        if (st.log_lo != st.applied + 1 &&
            (s->faults >> FAULT_SMALL & 1) == 0) {
            return false;
        }
    }
    return true;
}

/** Where a group that may have to stop has not gone on by then, it never
 *  will: longer than a few failovers take. */
#define STOP_NS (100 * QN_MS)

static bool anybody(const struct sim *s)
{
    for (qn_node_t i = 0; i < s->c.nodes; i++) {
        if (s->c.member[i].p != NULL) {
            return true;
        }
    }
    return false;
}

/** Who has most. */
static qn_node_t survivor(const struct cluster *c)
{
    qn_node_t from = QN_NODES_MAX;
    if (c->in_memory) {
        return cluster_verdict(c).longest;
    }
    for (qn_node_t i = 0; i < c->nodes; i++) {
        const struct qn_onepaxos *p = c->member[i].p;
        if (p != NULL && (from == QN_NODES_MAX ||
                          p->learned_hi > c->member[from].p->learned_hi)) {
            from = i;
        }
    }
    return from;
}

/** The member with the longest log is asked first whether it could go on. One
 *  that has not heard of the newest epoch, and leads an older one, says no: it
 *  hears of it when the others say where they are. */
static bool may_recover(struct sim *s, qn_node_t from)
{
    struct cluster *c = &s->c;
    if (c->in_memory || qn_onepaxos_needs_force(c->member[from].p)) {
        return true;
    }
    for (qn_node_t i = 0; i < c->nodes; i++) {
        if (c->member[i].p != NULL) {
            cluster_say_beat(c, i);
        }
    }
    return false;
}

/** By force, from the longest log. Then it must go on like any other. */
static void recover(struct sim *s, qn_node_t from)
{
    struct cluster *c = &s->c;
    cluster_recover(c, from);
    for (qn_node_t i = 0; i < c->nodes; i++) {
        if (i != from) {
            sim_bury(s, i);
            s->untold[i] = 0;
        }
    }
    s->lost = false;
    if (c->cover != NULL) {
        c->cover->row[COVERAGE_RECOVERED]++;
    }
}

static void heal(struct sim *s)
{
    struct cluster *c = &s->c;
    s->healed = true;
    c->out_of_memory = 0;
    c->doomed = 0;
    memset(s->paused_until, 0, sizeof s->paused_until);
    qn_time_t until = c->now + (s->lost ? STOP_NS : HEAL_NS);
    const qn_time_t end = until + HEAL_NS; /* for one that may recover */
    while (!complete(s)) {
        advance(s);
        bool silent = s->lost && c->stopped == 0 && anybody(s);
        /* An order to go on may come at any time after the verdict. */
        bool ordered =
            c->in_memory && c->stopped != 0 && sim_aside(&c->luck) == 0;
        if (!ordered &&
            (c->now < until || (silent && c->now < until + HEAL_NS))) {
            continue;
        }
        if (!s->lost) {
            cluster_fail(c, "no progress after healing; faults 0x%x",
                         s->faults);
        }
        if (silent) {
            cluster_fail(c, "it has stopped, and nobody says so");
        }
        if (c->cover != NULL && s->stop != COVERAGE_NO_ROW) {
            c->cover->row[s->stop]++;
        }
        if (!anybody(s)) {
            return;
        }
        qn_node_t from = survivor(c);
        if (may_recover(s, from)) {
            recover(s, from);
            until = c->now + HEAL_NS;
        } else if (c->now < end) {
            until = c->now + STOP_NS;
        } else {
            cluster_fail(c, "node %u refuses to go on", from);
        }
    }
}

static void params(struct sim *s)
{
    struct cluster *c = &s->c;
    c->params = qn_params_default(true);
    c->params.ring = 32768;
    c->params.batch_commands = 1 + (uint32_t)cluster_random(c, 64);
    c->params.window = 1 + (uint32_t)cluster_random(c, 16);
    if (sim_has(s, FAULT_SMALL)) {
        c->params.ring = 64;
        c->params.log_bytes = 1u << 14;
        c->params.window_bytes = 1u << 11;
        c->params.queue = QN_MAX(c->params.batch_commands, 8 * c->nodes);
        c->params.queue_bytes = 1u << 14;
    }
    c->in_memory = sim_chance(s, 50);
    c->ring_slots = sim_has(s, FAULT_SMALL) ? 16 : 8192;
    c->ring_bytes = sim_has(s, FAULT_SMALL) ? 1u << 16 : 1u << 22;
    c->ring_span =
        sim_has(s, FAULT_SMALL) ? 64u << cluster_random(c, 8) : 1u << 14;
    c->ring_keep = sim_has(s, FAULT_SMALL) ? c->ring_bytes / 4 : c->ring_bytes;
    c->params.copy_bytes = sim_chance(s, 50) ? 100 : 0;
    c->fragment_bytes = sim_has(s, FAULT_FRAGMENTS) ? 128 : 0;
    c->out_of_memory =
        sim_has(s, FAULT_MEMORY) ? 50u << cluster_random(c, 4) : 0;
    s->load = (uint32_t)cluster_random(c, 12);
    s->size = sim_chance(s, 30) ? 3000 : 30;
}

/** Half of the schedules have a gate that is shut now and then, and of these
 *  some a member that takes few turns. */
static void flow(struct sim *s, uint64_t seed)
{
    struct cluster *c = &s->c;
    struct qn_flow_limits *l = &c->params.flow;
    uint64_t x = seed;
    s->slow = QN_NODES_MAX;
    if (sim_aside(&x) < 8) {
        return;
    }
    l->lag_bytes = UINT64_C(128) << sim_aside(&x) / 2;
    l->stop_bytes = l->lag_bytes * (1 + sim_aside(&x));
    l->lag_slots = 1 + sim_aside(&x);
    l->stop_slots = l->lag_slots * (1 + sim_aside(&x));
    l->timeout = (1 + sim_aside(&x)) * QN_MS;
    l->min_awaited = (uint32_t)(sim_aside(&x) % c->nodes);
    c->params.ahead_bytes = sim_aside(&x) < 8 ? 500 : c->params.ahead_bytes;
    c->params.learn_bytes = sim_aside(&x) < 8 ? 64 : c->params.learn_bytes;
    if (sim_aside(&x) < 8) {
        s->slow = (qn_node_t)(sim_aside(&x) % c->nodes);
        s->slow_turns = 1 + (uint32_t)sim_aside(&x);
    }
}

/** A ring that soon goes on over what others lack. */
static void short_ring(struct sim *s)
{
    struct cluster *c = &s->c;
    c->ring_slots = 16;
    c->params.flow.timeout = QN_MS;
    c->params.flow.min_awaited = 0;
}

/** In half of the schedules long commands stay in their origin's arena, as long
 *  as it has place. */
static void uploads(struct sim *s, uint64_t seed)
{
    uint64_t x = ~seed;
    if (sim_aside(&x) < 8) {
        s->c.arena_bytes = (size_t)256 << sim_aside(&x) / 2;
        s->c.params.upload_bytes = 8 + (uint32_t)sim_aside(&x) * 2;
    }
}

/** In some of the schedules with the memory acceptor members come and go, in 1
 *  to 7 seats. */
static void seats(struct sim *s, uint64_t seed)
{
    struct cluster *c = &s->c;
    uint64_t x = s->seater = seed + 7;
    if (!c->in_memory || seed % 5 != 3) {
        return;
    }
    c->nodes = 1 + (uint32_t)(sim_aside(&x) % 7);
    c->voters = 1 | (sim_aside(&x) & (QN_BIT(c->nodes) - 1));
    s->faults &= ~(1u << FAULT_LOST);
    if (c->nodes > 1) {
        s->faults |= 1u << FAULT_KILL;
    } else { /* the only one stays, and no other tells it anything */
        s->faults &= ~(1u << FAULT_KILL | 1u << FAULT_REPEAT);
    }
    c->params.queue = QN_MAX(c->params.queue, 8 * c->nodes);
}

static void topology(struct sim *s)
{
    struct cluster *c = &s->c;
    for (qn_node_t i = 0; i < c->nodes; i++) {
        for (qn_node_t k = 0; k < c->nodes; k++) {
            qn_time_t most = sim_has(s, FAULT_DELAY) ? 2 * QN_MS : 20 * QN_US;
            s->delay[i][k] = cluster_random(c, most);
        }
    }
}

static void set_up(struct sim *s, uint64_t seed, const char *program)
{
    struct cluster *c = &s->c;
    c->rng = c->luck = s->tempo = seed;
    s->slows = sim_aside(&s->tempo) < 4;
    c->ctx = s;
    c->on_send = on_send;
    c->on_doom = sim_on_doom;
    c->now = QN_S;
    c->wall_ms = 100000000;
    replay_by("QN_SIM_SEED=%" PRIu64 " %s", seed, program);
    s->faults = (uint32_t)(cluster_random(c, 1u << FAULTS) &
                           cluster_random(c, 1u << FAULTS));
    c->nodes = 3 + (uint32_t)cluster_random(c, 5);
    params(s);
    seats(s, seed);
    flow(s, seed);
    if (sim_may_strand(s)) {
        short_ring(s);
    }
    uploads(s, seed);
    topology(s);
    s->readers = seed + 1;
    /* Half of the seeds: a read tells an old leader of newer epochs, and so
     * hides what happens to one that hears of none. */
    s->reads = !c->in_memory && seed / 2 % 2 == 1;
}

bool sim_in_memory(uint64_t seed)
{
    struct sim *s = calloc(1, sizeof *s);
    set_up(s, seed, "");
    bool memory = s->c.in_memory;
    free(s);
    return memory;
}

bool sim_has_seats(uint64_t seed)
{
    struct sim *s = calloc(1, sizeof *s);
    set_up(s, seed, "");
    bool seats = s->c.voters != 0;
    free(s);
    return seats;
}

bool sim_fits_model(uint64_t seed, bool memory)
{
    struct sim *s = calloc(1, sizeof *s);
    set_up(s, seed, "");
    bool changes = sim_has(s, FAULT_KILL) || sim_has(s, FAULT_SUSPECT);
    bool fits = changes && s->c.in_memory == memory && s->c.nodes == 3 &&
                s->c.voters == 0 && !sim_has(s, FAULT_LOST);
    free(s);
    return fits;
}

/** A ring grows for a node that lags behind, while it may and can. */
static void check_snapshots(const struct sim *s)
{
    const struct cluster *c = &s->c;
    for (qn_node_t i = 0; i < c->nodes; i++) {
        uint32_t may = 1u << FAULT_SMALL | 1u << FAULT_KILL;
        bool lost = c->full || c->refused != 0 || (s->faults & may) != 0;
        if (c->member[i].need_snapshot && !lost) {
            cluster_fail(c, "node %u needs a snapshot; faults 0x%x", i,
                         s->faults);
        }
    }
}

static void run(struct sim *s)
{
    cluster_start(&s->c);
    for (uint32_t n = 0; n < FAULTY_STEPS; n++) {
        advance(s);
    }
    heal(s);
    check_snapshots(s);
}

uint64_t sim_run(uint64_t seed, const char *program, struct coverage *cover)
{
    struct sim *s = calloc(1, sizeof *s);
    struct cluster *c = &s->c;
    set_up(s, seed, program);
    c->cover = cover;
    if (cover != NULL) {
        cover->runs[c->in_memory][c->nodes]++;
        cover->seats[c->nodes] += c->voters != 0;
    }
    run(s);
    uint64_t trace = c->trace;
    cluster_end(c);
    free(s);
    return trace;
}

void sim_record(uint64_t seed, const char *program, FILE *f)
{
    struct sim *s = calloc(1, sizeof *s);
    struct cluster *c = &s->c;
    set_up(s, seed, program);
    c->record = run_trace_open(f);
    run(s);
    run_trace_close(c->record);
    c->record = NULL;
    cluster_end(c);
    free(s);
}
