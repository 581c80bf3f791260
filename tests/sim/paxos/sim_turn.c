/*
 * One turn of one node: some packets of its channels in random order, commands
 * and other inputs, TICK, transfers, its peers' positions.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paxos/machine/onepaxos_internal.h"
#include "tests/sim/paxos/sim_internal.h"

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
    if (sim_chance(s, 30)) {
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
        bool tree = sim_chance(s, 50);
        struct lane *l = tree ? &c->tree[from][i] : &c->direct[from][i];
        if (tree && sim_has(s, FAULT_REORDER)) {
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
    if (c->member[i].transfers == 0) {
        return; /* mostly, and to count what is on its way takes long */
    }
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
        if (sim_has(s, FAULT_ROOM)) {
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
    if (sim_chance(s, 3)) {
        const struct qn_input in = {.kind = QN_IN_STAMP};
        cluster_step(c, i, &in);
    }
    if (sim_has(s, FAULT_REPEAT) && sim_chance(s, 10)) {
        repeat(s, i);
    }
    if (c->member[i].p != NULL && sim_chance(s, 1)) {
        cluster_say_beat(c, i);
    }
}

/** From 1 us to 4 ms, or none any more; while it leads or before it does. */
static void tempo(struct sim *s, qn_node_t i)
{
    if (s->slows && s->healed) {
        cluster_slow(&s->c, i, 0);
    } else if (s->slows && sim_aside(&s->tempo) == 0) {
        uint64_t gap = sim_aside(&s->tempo);
        cluster_slow(&s->c, i, gap < 13 ? QN_US << gap : 0);
    }
}

/** As the shell does: fresh reads now and then, and what waits may be asked
 *  again. */
static void reads(struct sim *s, qn_node_t i)
{
    if (s->reads) {
        cluster_read(&s->c, i, !s->healed && sim_aside(&s->readers) < 4);
    }
}

void sim_turn(struct sim *s, qn_node_t i)
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
    if (sim_chance(s, 30)) {
        qn_node_t peer = (qn_node_t)cluster_random(c, c->nodes);
        if (peer != i) {
            cluster_beat(c, i, peer);
        }
    }
    reads(s, i);
    cluster_tick(c, i);
    transfers(s, i);
}
