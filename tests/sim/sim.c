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
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paxos/onepaxos_internal.h"
#include "tests/sim/cluster.h"
#include "tests/sim/fate.h"

#define FAULTY_STEPS 1000u
#define HEAL_NS      (60 * QN_S)

enum fault {
    FAULT_LOSS,    /* LEARNs, any subset of the receivers */
    FAULT_REORDER, /* LEARNs overtake each other and come twice */
    FAULT_DELAY,   /* channels of very different speed */
    FAULT_PAUSE,   /* nodes stand still, for long */
    FAULT_ROOM,    /* transfers find room rarely */
    FAULT_MEMORY,  /* allocations fail */
    FAULT_CLOCK,   /* the wall clock jumps, forward and back */
    FAULT_JUMP,    /* all stand still: time goes on by itself */
    FAULT_BOUND,   /* a turn applies a few commands only */
    FAULT_REPEAT,  /* origins are told to send everything again */
    FAULT_PIECES,  /* messages are cut small */
    FAULT_SMALL,   /* bounds so small that they are reached */
    FAULT_SUSPECT, /* nodes are suspected, rightly or not */
    FAULT_CUT,     /* one direction between two nodes stands still for long */
    FAULT_KILL,    /* nodes die at any output and come back, some without
                      their record, also while a failover is under way; never so
                      many that the group    has to stop ... */
    FAULT_LOST,    /* ... but once */
    FAULTS
};

struct sim {
    struct cluster c;
    uint32_t faults; /* mask */
    bool healed;
    bool slows;     /* leaders are told to leave pauses */
    uint64_t tempo; /* of that: a sequence of its own */
    qn_time_t delay[QN_NODES_MAX][QN_NODES_MAX]; /* ns, most */
    qn_time_t paused_until[QN_NODES_MAX];
    qn_time_t cut_until[QN_NODES_MAX][QN_NODES_MAX];
    uint64_t submitted[QN_NODES_MAX]; /* by this life */
    uint64_t untold[QN_NODES_MAX];    /* mask: who does not know of its death */
    qn_time_t back_at[QN_NODES_MAX];  /* of the dead */
    bool lost;                        /* it may have to stop ... */
    enum coverage_row stop;           /* ... for this reason */
    uint32_t load;                    /* commands per turn, at most */
    uint32_t size;                    /* bytes of a command, at most */
};

static bool has(const struct sim *s, enum fault f)
{
    return !s->healed && (s->faults >> f & 1) != 0;
}

static bool chance(struct sim *s, uint32_t percent)
{
    return cluster_random(&s->c, 100) < percent;
}

static bool on_send(struct cluster *c, struct packet *k, bool tree)
{
    struct sim *s = c->ctx;
    if (tree && has(s, FAULT_LOSS) && chance(s, 20)) {
        return false;
    }
    k->due = c->now + cluster_random(c, s->delay[k->from][k->to] + 1);
    k->due = QN_MAX(k->due, s->cut_until[k->from][k->to]);
    return true;
}

/* ------------------------------------------------------------ one turn -- */

/** Move a random LEARN to the front, or copy one there. */
static void shuffle(struct sim *s, struct lane *l)
{
    struct packet **at = &l->head;
    uint64_t n = cluster_random(&s->c, 4);
    while (n-- > 0 && *at != NULL && (*at)->next != NULL) {
        at = &(*at)->next;
    }
    if (at == &l->head || *at == NULL) {
        return;
    }
    struct packet *k = *at;
    if (chance(s, 30)) {
        struct packet *copy = malloc(sizeof *k + k->len);
        memcpy(copy, k, sizeof *k + k->len);
        k = copy;
    } else {
        *at = k->next;
        if (k->next == NULL) {
            l->tail = at;
        }
    }
    k->next = l->head;
    l->head = k;
}

static void receive(struct sim *s, qn_node_t i)
{
    struct cluster *c = &s->c;
    uint64_t budget = 1 + cluster_random(c, 8 * c->nodes);
    for (uint64_t n = 0; n < budget; n++) {
        qn_node_t from = (qn_node_t)cluster_random(c, c->nodes);
        bool tree = chance(s, 50);
        struct lane *l = tree ? &c->tree[from][i] : &c->direct[from][i];
        if (tree && has(s, FAULT_REORDER)) {
            shuffle(s, l);
        }
        if (l->head != NULL && l->head->due <= c->now) {
            cluster_deliver(c, l, tree);
        }
    }
}

static void submit(struct sim *s, qn_node_t i)
{
    struct cluster *c = &s->c;
    static char text[8192]; /* behind its head all the same */
    if (text[sizeof text - 1] == 0) {
        memset(text, 'x', sizeof text);
    }
    uint64_t n = cluster_random(c, s->load + 1);
    for (uint64_t k = 0; k < n; k++) {
        int head =
            snprintf(text, 32, "%u:%" PRIu64 ":", i, s->submitted[i] + 1);
        memset(text + head, 'x', 32 - (size_t)head);
        size_t len = (size_t)head + cluster_random(c, s->size + 1);
        int err = cluster_submit(c, i, text, len);
        if (err != QN_OK || c->member[i].p == NULL) {
            return;
        }
        s->submitted[i]++;
        if (c->member[i].out.seq != s->submitted[i]) {
            cluster_fail(c, "node %u got another sequence", i);
        }
    }
}

/** As if the leader had missed something of node i; not while what was sent
 *  before is still on its way, for a real channel is bounded. */
static void repeat(struct sim *s, qn_node_t i)
{
    const struct qn_onepaxos *p = s->c.member[i].p;
    if (p == NULL || s->c.direct[i][p->cfg.leader].head != NULL) {
        return;
    }
    struct qn_msg m = {.kind = QN_MSG_REDIRECT, .epoch = p->origin.ready};
    const struct qn_input in = {.kind = QN_IN_RECV,
                                .recv = {i == 0 ? 1 : 0, &m}};
    cluster_step(&s->c, i, &in);
}

static void transfers(struct sim *s, qn_node_t i)
{
    struct cluster *c = &s->c;
    uint32_t tries = s->healed ? 64 : 4;
    uint64_t room = 0; /* channels are bounded */
    for (qn_node_t k = 0; k < c->nodes; k++) {
        uint32_t n = 0;
        for (const struct packet *x = c->direct[i][k].head; x != NULL && n < 64;
             x = x->next) {
            n++;
        }
        room |= n < 64 ? QN_BIT(k) : 0;
    }
    for (uint32_t k = 0; k < tries && (c->member[i].transfers & room) != 0;
         k++) {
        uint64_t peers = room;
        if (has(s, FAULT_ROOM)) {
            peers = cluster_random(c, UINT64_MAX) &
                    cluster_random(c, UINT64_MAX) &
                    cluster_random(c, UINT64_MAX) & room;
        }
        cluster_room(c, i, peers);
    }
}

/** What a turn does beside its channels, now and then. */
static void extras(struct sim *s, qn_node_t i)
{
    struct cluster *c = &s->c;
    submit(s, i);
    if (chance(s, 3)) {
        const struct qn_input in = {.kind = QN_IN_STAMP};
        cluster_step(c, i, &in);
    }
    if (has(s, FAULT_REPEAT) && chance(s, 10)) {
        repeat(s, i);
    }
    if (c->member[i].p != NULL && chance(s, 1)) {
        cluster_say_beat(c, i);
    }
}

/** Next number below 16 of a sequence of its own, so that a schedule that needs
 *  none stays as it was. */
static uint64_t aside(uint64_t *sequence)
{
    *sequence = *sequence * UINT64_C(6364136223846793005) +
                UINT64_C(1442695040888963407);
    return *sequence >> 60;
}

/** From 1 us to 4 ms, or none any more; while it leads or before it does. */
static void tempo(struct sim *s, qn_node_t i)
{
    if (s->slows && s->healed) {
        cluster_slow(&s->c, i, 0);
    } else if (s->slows && aside(&s->tempo) == 0) {
        uint64_t gap = aside(&s->tempo);
        cluster_slow(&s->c, i, gap < 13 ? QN_US << gap : 0);
    }
}

static void turn(struct sim *s, qn_node_t i)
{
    struct cluster *c = &s->c;
    tempo(s, i);
    if ((s->faults >> FAULT_BOUND & 1) != 0) {
        uint64_t some = cluster_random(c, 20);
        cluster_allow(c, i, s->healed ? UINT64_MAX : some);
    }
    receive(s, i);
    if (!s->healed && c->member[i].p != NULL) {
        extras(s, i);
    }
    if (chance(s, 30)) {
        qn_node_t peer = (qn_node_t)cluster_random(c, c->nodes);
        if (peer != i) {
            cluster_beat(c, i, peer);
        }
    }
    cluster_tick(c, i);
    transfers(s, i);
}

/* --------------------------------------------------------------- deaths -- */

/** The memory acceptor: any of them may die at once, if one that is in sync
 *  stays. */
static bool one_stays(const struct sim *s, qn_node_t dying)
{
    for (qn_node_t i = 0; i < s->c.nodes; i++) {
        if (i != dying && cluster_in_sync(&s->c, i)) {
            return true;
        }
    }
    return false;
}

static bool may_die(const struct sim *s, qn_node_t i)
{
    return s->c.in_memory ? one_stays(s, i) : fate_survives(&s->c, i);
}

static void bury(struct sim *s, qn_node_t i)
{
    s->submitted[i] = 0;
    s->untold[i] = QN_BIT(s->c.nodes) - 1;
    s->back_at[i] = s->c.now + cluster_random(&s->c, 30 * QN_MS);
}

static bool on_doom(struct cluster *c, qn_node_t i)
{
    struct sim *s = c->ctx;
    if (s->healed || s->lost || !may_die(s, i)) {
        return false;
    }
    bury(s, i);
    return true;
}

/** Somebody dies, at once or in the middle of its next step. */
static void kill_one(struct sim *s)
{
    struct cluster *c = &s->c;
    qn_node_t i = (qn_node_t)cluster_random(c, c->nodes);
    if (chance(s, 60) && c->entries > 0) { /* one that matters */
        const struct qn_ul_entry *e = &c->entry[c->entries - 1];
        i = chance(s, 50) ? e->leader : e->acceptor;
    }
    if (c->member[i].p == NULL || s->lost) {
        return;
    }
    if (!may_die(s, i)) {
        s->lost = !c->in_memory && has(s, FAULT_LOST);
        if (!s->lost) {
            return;
        }
        s->stop = fate_stop(c, i);
    } else if (chance(s, 50)) {
        c->doomed |= QN_BIT(i);
        return;
    }
    cluster_kill(c, i, 8);
    bury(s, i);
}

static void bring_back(struct sim *s, qn_node_t i)
{
    struct cluster *c = &s->c;
    qn_node_t donor = (qn_node_t)cluster_random(c, c->nodes);
    if (!s->healed && aside(&s->c.luck) == 0) { /* one of 16 */
        cluster_lose_record(c, i);
    }
    if (c->member[donor].p != NULL && cluster_restart(c, i, donor)) {
        s->untold[i] = 0;
    }
}

static void deaths(struct sim *s)
{
    struct cluster *c = &s->c;
    for (qn_node_t i = 0; i < c->nodes; i++) {
        if (c->member[i].p != NULL) {
            continue;
        }
        for (qn_node_t k = 0; k < c->nodes; k++) {
            if ((s->untold[i] & QN_BIT(k)) != 0 && chance(s, 10)) {
                s->untold[i] &= ~QN_BIT(k);
                if (k != i) {
                    cluster_down(c, k, i);
                }
            }
        }
        if (c->now >= s->back_at[i] || s->healed) {
            bring_back(s, i);
        }
    }
    /* More often while a failover is under way. */
    uint64_t pause = c->led[c->entries - 1] ? 100 : 25;
    if (has(s, FAULT_KILL) && cluster_random(c, pause) == 0) {
        uint64_t n = 1 + cluster_random(c, c->nodes - 1); /* at once */
        while (n-- > 0) {
            kill_one(s);
        }
    }
}

/** With kills snapshots are part of normal life; without, of the healing. */
static void snapshots(struct sim *s)
{
    struct cluster *c = &s->c;
    qn_node_t i = (qn_node_t)cluster_random(c, c->nodes);
    qn_node_t donor = (qn_node_t)cluster_random(c, c->nodes);
    if (c->member[i].need_snapshot && (has(s, FAULT_KILL) || s->healed)) {
        cluster_install(c, i, donor);
    }
}

/** Most take the leader, the acceptor or both for dead at the same time. */
static void suspect_roles(struct sim *s)
{
    struct cluster *c = &s->c;
    const struct qn_ul_entry *e = &c->entry[c->entries - 1];
    uint64_t who = chance(s, 60) ? QN_BIT(e->leader) : 0;
    who |= chance(s, 60) ? QN_BIT(e->acceptor) : 0;
    if (who == 0) { /* nobody is; but the leader is to be ended */
        cluster_lead(c, (e->leader + 1 + c->entries) % c->nodes);
    }
    for (qn_node_t n = 0; n < c->nodes; n++) {
        if (chance(s, 70)) {
            cluster_suspect(c, n, who);
        }
    }
}

/** Anybody may take anybody for dead for a while. */
static void suspicions(struct sim *s)
{
    struct cluster *c = &s->c;
    qn_node_t i = (qn_node_t)cluster_random(c, c->nodes);
    uint64_t peers = 0;
    if (has(s, FAULT_SUSPECT) && chance(s, 20)) {
        peers = QN_BIT(cluster_random(c, c->nodes));
    }
    if (has(s, FAULT_SUSPECT) ? chance(s, 10) : s->healed) {
        cluster_suspect(c, i, peers);
    }
    if (has(s, FAULT_SUSPECT) && chance(s, 1)) {
        suspect_roles(s);
    }
}

/* ---------------------------------------------------------------- runs -- */

static void advance(struct sim *s)
{
    struct cluster *c = &s->c;
    c->now += cluster_random(c, 100 * QN_US);
    c->wall_ms += cluster_random(c, 2);
    if (has(s, FAULT_CLOCK) && chance(s, 5)) {
        c->wall_ms -= cluster_random(c, 50);
        c->wall_ms += chance(s, 10) ? cluster_random(c, 5000) : 0;
        c->wall_ms -= chance(s, 10) ? cluster_random(c, 5000) : 0;
    }
    if (has(s, FAULT_JUMP) && chance(s, 1)) {
        c->now += cluster_random(c, 50 * QN_MS);
    }
    if (has(s, FAULT_CUT) && chance(s, 2)) {
        qn_node_t from = (qn_node_t)cluster_random(c, c->nodes);
        qn_node_t to = (qn_node_t)cluster_random(c, c->nodes);
        s->cut_until[from][to] = c->now + cluster_random(c, 20 * QN_MS);
    }
    deaths(s);
    suspicions(s);
    snapshots(s);
    for (qn_node_t i = 0; i < c->nodes; i++) {
        if (c->member[i].p == NULL) {
            continue;
        }
        if (has(s, FAULT_PAUSE) && cluster_random(c, 400) == 0) {
            s->paused_until[i] = c->now + cluster_random(c, 20 * QN_MS);
        }
        if (s->healed || s->paused_until[i] <= c->now) {
            bool due = c->member[i].deadline <= c->now;
            if (due || chance(s, 50)) {
                turn(s, i);
            }
        }
    }
}

static bool complete(const struct sim *s)
{
    for (qn_node_t i = 0; i < s->c.nodes; i++) {
        const struct member *m = &s->c.member[i];
        struct qn_onepaxos_status st;
        if (m->p == NULL || m->p->ul.mute) {
            return false;
        }
        qn_onepaxos_status(m->p, &st);
        for (qn_node_t o = 0; o < s->c.nodes; o++) {
            bool this_life = m->seq[o].inc == s->c.member[o].inc;
            if ((this_life ? m->seq[o].last : 0) != s->submitted[o]) {
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

/** By force, from the longest log. Then it must go on like any other. */
static void recover(struct sim *s)
{
    struct cluster *c = &s->c;
    qn_node_t from = QN_NODES_MAX;
    for (qn_node_t i = 0; i < c->nodes; i++) {
        const struct qn_onepaxos *p = c->member[i].p;
        if (p != NULL && (from == QN_NODES_MAX ||
                          p->learned_hi > c->member[from].p->learned_hi)) {
            from = i;
        }
    }
    cluster_recover(c, from);
    for (qn_node_t i = 0; i < c->nodes; i++) {
        if (i != from) {
            bury(s, i);
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
    while (!complete(s)) {
        advance(s);
        bool silent = s->lost && c->stopped == 0 && anybody(s);
        if (c->now < until || (silent && c->now < until + HEAL_NS)) {
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
        recover(s);
        until = c->now + HEAL_NS;
    }
}

static void params(struct sim *s)
{
    struct cluster *c = &s->c;
    c->params = qn_params_default(true);
    c->params.ring = 32768;
    c->params.batch_commands = 1 + (uint32_t)cluster_random(c, 64);
    c->params.window = 1 + (uint32_t)cluster_random(c, 16);
    if (has(s, FAULT_SMALL)) {
        c->params.ring = 64;
        c->params.log_bytes = 1u << 14;
        c->params.window_bytes = 1u << 11;
        c->params.queue = QN_MAX(c->params.batch_commands, 8 * c->nodes);
        c->params.queue_bytes = 1u << 14;
    }
    c->in_memory = chance(s, 50);
    c->ring_slots = has(s, FAULT_SMALL) ? 16 : 8192;
    c->ring_bytes = has(s, FAULT_SMALL) ? 1u << 16 : 1u << 22;
    c->ring_span = has(s, FAULT_SMALL) ? 64u << cluster_random(c, 8) : 1u << 14;
    c->ring_keep = has(s, FAULT_SMALL) ? c->ring_bytes / 4 : c->ring_bytes;
    c->params.copy_bytes = chance(s, 50) ? 100 : 0;
    c->piece_bytes = has(s, FAULT_PIECES) ? 128 : 0;
    c->out_of_memory = has(s, FAULT_MEMORY) ? 50u << cluster_random(c, 4) : 0;
    s->load = (uint32_t)cluster_random(c, 12);
    s->size = chance(s, 30) ? 3000 : 30;
}

static void topology(struct sim *s)
{
    struct cluster *c = &s->c;
    for (qn_node_t i = 0; i < c->nodes; i++) {
        for (qn_node_t k = 0; k < c->nodes; k++) {
            qn_time_t most = has(s, FAULT_DELAY) ? 2 * QN_MS : 20 * QN_US;
            s->delay[i][k] = cluster_random(c, most);
        }
    }
}

static void set_up(struct sim *s, uint64_t seed, const char *program)
{
    struct cluster *c = &s->c;
    c->rng = c->luck = s->tempo = seed;
    s->slows = aside(&s->tempo) < 4;
    c->ctx = s;
    c->on_send = on_send;
    c->on_doom = on_doom;
    c->now = QN_S;
    c->wall_ms = 100000000;
    snprintf(c->replay, sizeof c->replay, "QN_SIM_SEED=%" PRIu64 " %s", seed,
             program);
    s->faults = (uint32_t)(cluster_random(c, 1u << FAULTS) &
                           cluster_random(c, 1u << FAULTS));
    c->nodes = 3 + (uint32_t)cluster_random(c, 5);
    params(s);
    topology(s);
}

bool sim_in_memory(uint64_t seed)
{
    struct sim *s = calloc(1, sizeof *s);
    set_up(s, seed, "");
    bool memory = s->c.in_memory;
    free(s);
    return memory;
}

uint64_t sim_run(uint64_t seed, const char *program, struct coverage *cover)
{
    struct sim *s = calloc(1, sizeof *s);
    struct cluster *c = &s->c;
    set_up(s, seed, program);
    c->cover = cover;
    if (cover != NULL) {
        cover->runs[c->in_memory][c->nodes]++;
    }
    cluster_start(c);
    for (uint32_t n = 0; n < FAULTY_STEPS; n++) {
        advance(s);
    }
    heal(s);
    for (qn_node_t i = 0; i < c->nodes; i++) {
        /* A ring grows for who lags behind, while it may and can. */
        uint32_t may = 1u << FAULT_SMALL | 1u << FAULT_KILL;
        bool lost = c->full || c->refused != 0 || (s->faults & may) != 0;
        if (c->member[i].need_snapshot && !lost) {
            cluster_fail(c, "node %u needs a snapshot; faults 0x%x", i,
                         s->faults);
        }
    }
    uint64_t trace = c->trace;
    cluster_end(c);
    free(s);
    return trace;
}
