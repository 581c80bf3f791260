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

#define FAULTY_STEPS 1500u
#define HEAL_NS      (60 * QN_S)

enum fault {
    FAULT_LOSS,    /* LEARNs, any subset of the receivers */
    FAULT_REORDER, /* LEARNs overtake each other and come twice */
    FAULT_DELAY,   /* channels of very different speed */
    FAULT_PAUSE,   /* nodes stand still, for long */
    FAULT_ROOM,    /* transfers find room rarely */
    FAULT_MEMORY,  /* allocations fail */
    FAULT_CLOCK,   /* the leader's wall clock jumps back */
    FAULT_REPEAT,  /* origins are told to send everything again */
    FAULT_PIECES,  /* messages are cut small */
    FAULT_SMALL,   /* bounds so small that they are reached */
    FAULT_SUSPECT, /* nodes are suspected, rightly or not */
    FAULT_CUT,     /* one direction between two nodes stands still for long */
    FAULT_KILL,    /* nodes die and come back, one failover after the other */
    FAULTS
};

struct sim {
    struct cluster c;
    uint32_t faults; /* mask */
    bool healed;
    qn_time_t delay[QN_NODES_MAX][QN_NODES_MAX]; /* ns, most */
    qn_time_t paused_until[QN_NODES_MAX];
    qn_time_t cut_until[QN_NODES_MAX][QN_NODES_MAX];
    uint64_t submitted[QN_NODES_MAX]; /* by this life */
    uint64_t untold[QN_NODES_MAX];    /* mask: who does not know of its death */
    qn_time_t back_at[QN_NODES_MAX];  /* of the dead */
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
    static char text[8192];
    uint64_t n = cluster_random(c, s->load + 1);
    for (uint64_t k = 0; k < n; k++) {
        int head = snprintf(text, sizeof text, "%u:%" PRIu64 ":", i,
                            s->submitted[i] + 1);
        size_t len = (size_t)head + cluster_random(c, s->size + 1);
        memset(text + head, 'x', len - (size_t)head);
        int err = cluster_submit(c, i, text, len);
        if (err != QN_OK) {
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
    if (s->c.direct[i][p->cfg.leader].head != NULL) {
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
    for (uint32_t k = 0; k < tries && c->member[i].transfers != 0; k++) {
        uint64_t peers = room;
        if (has(s, FAULT_ROOM)) {
            peers = cluster_random(c, UINT64_MAX) &
                    cluster_random(c, UINT64_MAX) &
                    cluster_random(c, UINT64_MAX) & room;
        }
        cluster_room(c, i, peers);
    }
}

static void turn(struct sim *s, qn_node_t i)
{
    struct cluster *c = &s->c;
    receive(s, i);
    if (!s->healed) {
        submit(s, i);
        if (chance(s, 3)) {
            const struct qn_input in = {.kind = QN_IN_STAMP};
            cluster_step(c, i, &in);
        }
        if (has(s, FAULT_REPEAT) && chance(s, 10)) {
            repeat(s, i);
        }
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

/** A leader works with its acceptor, in the newest epoch: a failover that may
 *  have been under way is over. */
static bool settled(const struct sim *s)
{
    const struct cluster *c = &s->c;
    uint32_t dead = 0;
    bool good = false;
    for (qn_node_t i = 0; i < c->nodes; i++) {
        const struct qn_onepaxos *p = c->member[i].p;
        if (p == NULL) {
            dead++;
            continue;
        }
        if (p->leader.role != QN_ACTIVE || p->cfg.index + 1 != c->entries) {
            continue;
        }
        const struct member *a = &c->member[p->cfg.acceptor];
        good = a->p != NULL && a->inc == p->cfg.acceptor_inc &&
               a->p->acceptor.promised == p->leader.ep;
    }
    return good && 2 * (dead + 1) < c->nodes;
}

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

static void kill_one(struct sim *s)
{
    struct cluster *c = &s->c;
    qn_node_t i = (qn_node_t)cluster_random(c, c->nodes);
    if (chance(s, 60) && c->entries > 0) { /* one that matters */
        const struct qn_ul_entry *e = &c->entry[c->entries - 1];
        i = chance(s, 50) ? e->leader : e->acceptor;
    }
    if (c->member[i].p == NULL ||
        !(c->in_memory ? one_stays(s, i) : settled(s))) {
        return;
    }
    cluster_kill(c, i, 8);
    s->submitted[i] = 0;
    s->untold[i] = QN_BIT(c->nodes) - 1;
    s->back_at[i] = c->now + cluster_random(c, 30 * QN_MS);
}

static void bring_back(struct sim *s, qn_node_t i)
{
    struct cluster *c = &s->c;
    qn_node_t donor = (qn_node_t)cluster_random(c, c->nodes);
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
    if (has(s, FAULT_KILL) && cluster_random(c, 100) == 0) {
        uint64_t n = c->in_memory ? 1 + cluster_random(c, c->nodes - 1) : 1;
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
}

/* ---------------------------------------------------------------- runs -- */

static void advance(struct sim *s)
{
    struct cluster *c = &s->c;
    c->now += cluster_random(c, 100 * QN_US);
    c->wall_ms += cluster_random(c, 2);
    if (has(s, FAULT_CLOCK) && chance(s, 5)) {
        c->wall_ms -= cluster_random(c, 50);
    }
    if (has(s, FAULT_CUT) && chance(s, 2)) {
        s->cut_until[cluster_random(c, c->nodes)][cluster_random(c, c->nodes)] =
            c->now + cluster_random(c, 20 * QN_MS);
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
        if (m->p == NULL) {
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

static void heal(struct sim *s)
{
    struct cluster *c = &s->c;
    s->healed = true;
    c->out_of_memory = 0;
    memset(s->paused_until, 0, sizeof s->paused_until);
    qn_time_t until = c->now + HEAL_NS;
    while (!complete(s)) {
        advance(s);
        if (c->now >= until) {
            cluster_fail(c, "no progress after healing; faults 0x%x",
                         s->faults);
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
    c->out_of_memory = has(s, FAULT_MEMORY) ? 50 : 0;
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

void sim_run(uint64_t seed, const char *program)
{
    struct sim *s = calloc(1, sizeof *s);
    struct cluster *c = &s->c;
    c->rng = seed;
    c->ctx = s;
    c->on_send = on_send;
    c->now = QN_S;
    c->wall_ms = 1000000;
    snprintf(c->replay, sizeof c->replay, "QN_SIM_SEED=%" PRIu64 " %s", seed,
             program);
    s->faults = (uint32_t)(cluster_random(c, 1u << FAULTS) &
                           cluster_random(c, 1u << FAULTS));
    c->nodes = 3 + (uint32_t)cluster_random(c, 5);
    params(s);
    topology(s);
    cluster_start(c);
    for (uint32_t n = 0; n < FAULTY_STEPS; n++) {
        advance(s);
    }
    heal(s);
    for (qn_node_t i = 0; i < c->nodes; i++) {
        uint32_t may = 1u << FAULT_SMALL | 1u << FAULT_KILL;
        may |= c->in_memory ? 1u << FAULT_MEMORY : 0; /* it cannot grow */
        if (c->member[i].need_snapshot && (s->faults & may) == 0) {
            cluster_fail(c, "node %u needs a snapshot within the bounds", i);
        }
    }
    cluster_end(c);
    free(s);
}
