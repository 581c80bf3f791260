/*
 * The cluster: see cluster.h. The global view knows what the acceptor has
 * decided (decided[], by hash), the one history of commands that everybody
 * must apply, and how far each node is. Checks look at the machine through its
 * internal header: what a node believes must follow from what was decided.
 */
#include "tests/sim/cluster.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "paxos/onepaxos_internal.h"

static void dump(const struct cluster *c)
{
    for (qn_node_t i = 0; i < c->nodes; i++) {
        struct qn_onepaxos_status st;
        qn_onepaxos_status(c->member[i].p, &st);
        fprintf(stderr,
                "%u: applied %" PRIu64 " learned %" PRIu64 " decided %" PRIu64
                " lo %" PRIu64 " next %" PRIu64 " queued %" PRIu64
                " unapplied %" PRIu64 " bytes %" PRIu64 " fetches %" PRIu64
                "%s\n",
                i, st.applied, st.learned_hi, st.decided_hi, st.log_lo, st.next,
                st.queued, st.unapplied, st.log_bytes, st.fetches,
                st.need_snapshot ? " needs a snapshot" : "");
    }
}

_Noreturn void cluster_fail(const struct cluster *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "violated: ");
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, "\nreplay: %s\n", c->replay);
    dump(c);
    abort();
}

#define CHECK(c, cond, ...) ((cond) ? (void)0 : cluster_fail((c), __VA_ARGS__))

uint64_t cluster_random(struct cluster *c, uint64_t n)
{
    /* splitmix64 */
    uint64_t z = (c->rng += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

static void *resize(void *ctx, void *p, size_t bytes)
{
    struct cluster *c = ctx;
    if (bytes == 0) {
        c->blobs -= p != NULL;
        free(p);
        return NULL;
    }
    if (c->out_of_memory != 0 && cluster_random(c, 1000) < c->out_of_memory) {
        return NULL;
    }
    c->blobs += p == NULL;
    return realloc(p, bytes);
}

/* --------------------------------------------------------------- start -- */

static void member_start(struct cluster *c, qn_node_t i)
{
    uint64_t inc[QN_NODES_MAX];
    for (uint32_t n = 0; n < QN_NODES_MAX; n++) {
        inc[n] = 100 + n;
    }
    const struct qn_onepaxos_opts o = {.self = i,
                                       .nodes = c->nodes,
                                       .incarnation = inc,
                                       .parent = c->nodes > 1 ? 1 : 0,
                                       .alloc = &c->alloc,
                                       .params = c->params};
    size_t size = qn_onepaxos_size(&o);
    CHECK(c, size != 0, "bad options");
    c->member[i].p = qn_onepaxos_init(calloc(1, size), &o);
    c->member[i].deadline = QN_TIME_NEVER;
}

void cluster_start(struct cluster *c)
{
    c->alloc = (struct qn_alloc){resize, c};
    for (qn_node_t i = 0; i < c->nodes; i++) {
        member_start(c, i);
        for (qn_node_t k = 0; k < c->nodes; k++) {
            c->direct[i][k].tail = &c->direct[i][k].head;
            c->tree[i][k].tail = &c->tree[i][k].head;
        }
    }
}

void cluster_end(struct cluster *c)
{
    for (qn_node_t i = 0; i < c->nodes; i++) {
        qn_onepaxos_fini(c->member[i].p);
        free(c->member[i].p);
        for (qn_node_t k = 0; k < c->nodes; k++) {
            qn_joiner_reset(&c->direct[i][k].joiner);
            while (c->direct[i][k].head != NULL) {
                cluster_drop(c, &c->direct[i][k]);
            }
            while (c->tree[i][k].head != NULL) {
                cluster_drop(c, &c->tree[i][k]);
            }
        }
    }
    CHECK(c, c->blobs == 0, "%" PRId64 " blobs are left", c->blobs);
}

/* ------------------------------------------------------------- packets -- */

static void post_piece(struct cluster *c, qn_node_t from, qn_node_t to,
                       const struct qn_msg *m, bool tree)
{
    uint8_t head[QN_HEAD_MAX];
    size_t n = qn_msg_head(m, head);
    struct packet *k = malloc(sizeof *k + n + m->body.len);
    *k = (struct packet){
        .from = from, .to = to, .due = c->now, .len = n + m->body.len};
    memcpy(k->bytes, head, n);
    if (m->body.len != 0) {
        memcpy(k->bytes + n, m->body.data, m->body.len);
    }
    if (c->on_send != NULL && !c->on_send(c, k, tree)) {
        free(k);
        return;
    }
    struct lane *l = tree ? &c->tree[from][to] : &c->direct[from][to];
    *l->tail = k;
    l->tail = &k->next;
}

static void post(struct cluster *c, qn_node_t from, qn_node_t to,
                 const struct qn_msg *m, bool tree)
{
    struct qn_msg piece;
    uint32_t at = 0;
    size_t max = tree || c->piece_bytes == 0 ? SIZE_MAX : c->piece_bytes;
    while (qn_msg_cut(m, max, &at, &piece)) {
        post_piece(c, from, to, &piece, tree);
    }
}

void cluster_drop(struct cluster *c, struct lane *l)
{
    (void)c;
    struct packet *k = l->head;
    l->head = k->next;
    if (l->head == NULL) {
        l->tail = &l->head;
    }
    free(k);
}

/** @return false: refused for now. */
static bool give(struct cluster *c, qn_node_t from, qn_node_t to,
                 const struct qn_msg *m)
{
    const struct qn_input in = {.kind = QN_IN_RECV, .recv = {from, m}};
    int err = cluster_step(c, to, &in);
    CHECK(c, err == QN_OK || err == QN_EAGAIN || err == QN_ENOMEM,
          "%u answers %d to %s from %u", to, err, qn_msg_name(m->kind), from);
    return err == QN_OK;
}

bool cluster_deliver(struct cluster *c, struct lane *l, bool tree)
{
    struct packet *k = l->head;
    if (k == NULL) {
        return false;
    }
    if (!l->is_parked) {
        int err = qn_msg_decode(&l->parked, k->bytes, k->len);
        CHECK(c, err == QN_OK, "malformed packet %u->%u", k->from, k->to);
        err = tree ? QN_OK : qn_joiner_take(&l->joiner, &c->alloc, &l->parked);
        if (err == QN_ENOMEM) {
            return false;
        }
        CHECK(c, err == QN_OK || err == QN_EAGAIN, "pieces do not join");
        if (err == QN_EAGAIN) {
            const struct qn_input in = {
                .kind = QN_IN_PIECE,
                .piece = {k->from, l->parked.kind, l->parked.slot}};
            cluster_step(c, k->to, &in);
            cluster_drop(c, l);
            return true;
        }
    }
    l->is_parked = !give(c, k->from, k->to, &l->parked);
    if (!l->is_parked) {
        cluster_drop(c, l);
    }
    return !l->is_parked;
}

/* -------------------------------------------------------------- checks -- */

static uint64_t hash_of(const struct qn_entry *e)
{
    return XXH3_64bits(e->batch->bytes, e->batch->len);
}

/** The acceptor has decided `slot`: I1 from now on. No command is in two
 *  slots, and each origin's are in order. */
static void check_decided(struct cluster *c, qn_slot_t slot,
                          const struct qn_entry *e)
{
    CHECK(c, slot < CLUSTER_SLOTS, "run too long");
    CHECK(c, slot == c->decided_hi + 1, "slot %" PRIu64 " decided early", slot);
    struct qn_slice batch = {e->batch->bytes, e->batch->len};
    c->decided[slot] = hash_of(e);
    c->decided_hi = slot;
    CHECK(c, qn_batch_check(batch) == QN_OK, "malformed batch decided");
    CHECK(c, qn_batch_count(batch) <= c->params.batch_commands,
          "%u commands in slot %" PRIu64, qn_batch_count(batch), slot);
    struct qn_group g;
    for (uint32_t at = 0; qn_batch_next(batch, &at, &g);) {
        CHECK(c, g.first == c->decided_seq[g.origin] + 1,
              "slot %" PRIu64 ": command %u:%" PRIu64 " after %" PRIu64, slot,
              g.origin, g.first, c->decided_seq[g.origin]);
        c->decided_seq[g.origin] += g.count;
    }
}

/** What a node has learned is what was decided. */
static void check_learned(struct cluster *c, qn_node_t i)
{
    struct member *m = &c->member[i];
    const struct qn_onepaxos *p = m->p;
    if (i == p->cfg.acceptor) {
        while (c->decided_hi < p->acceptor.hi) {
            qn_slot_t s = c->decided_hi + 1;
            if (qn_log_holds(&p->log, s)) {
                check_decided(c, s, qn_log_at(&p->log, s));
            } else { /* a group of one has dropped it again */
                c->decided_hi++;
            }
        }
    }
    CHECK(c, p->decided_hi <= c->decided_hi,
          "node %u believes in slot %" PRIu64 ", decided are %" PRIu64, i,
          p->decided_hi, c->decided_hi);
    for (; m->learned < p->learned_hi; m->learned++) {
        qn_slot_t s = m->learned + 1;
        CHECK(c,
              !qn_log_holds(&p->log, s) ||
                  hash_of(qn_log_at(&p->log, s)) == c->decided[s],
              "I1: node %u learned another slot %" PRIu64, i, s);
    }
}

/** The bounds that hold between any two steps. */
static void check_bounds(struct cluster *c, qn_node_t i)
{
    const struct qn_onepaxos *p = c->member[i].p;
    struct qn_onepaxos_status st;
    qn_onepaxos_status(p, &st);
    CHECK(c, st.applied <= st.learned_hi && st.learned_hi <= st.decided_hi,
          "node %u: positions", i);
    CHECK(c, st.log_lo <= st.applied + 1, "node %u dropped unapplied slots", i);
    CHECK(c, st.unapplied <= QN_MAX(c->params.queue / c->nodes, 1u),
          "node %u: %" PRIu64 " commands beyond its credit", i, st.unapplied);
    CHECK(c, st.queued <= c->params.queue, "node %u: queue", i);
    CHECK(c, st.role != QN_ACTIVE || i == p->cfg.leader, "two leaders");
    CHECK(c,
          st.role != QN_ACTIVE ||
              st.next - 1 - st.learned_hi <= c->params.window,
          "more than WINDOW in flight");
}

/** One history for all: every node applies a prefix of it. */
static void check_command(struct cluster *c, qn_node_t i,
                          const struct qn_apply *a, uint64_t seq,
                          struct qn_slice text)
{
    struct member *m = &c->member[i];
    const struct command now = {a->group.origin, seq};
    CHECK(c, seq == m->seq[now.origin] + 1,
          "node %u applies %u:%" PRIu64 " after %" PRIu64, i, now.origin, seq,
          m->seq[now.origin]);
    m->seq[now.origin] = seq;
    if (m->applied == c->history_count) {
        CHECK(c, m->applied < CLUSTER_COMMANDS, "run too long");
        c->history[c->history_count++] = now;
    }
    const struct command *want = &c->history[m->applied++];
    CHECK(c, want->origin == now.origin && want->seq == seq,
          "node %u applies %u:%" PRIu64 " where others have %u:%" PRIu64, i,
          now.origin, seq, want->origin, want->seq);
    char tag[32]; /* how the simulator begins its commands */
    int n = snprintf(tag, sizeof tag, "%u:%" PRIu64 ":", now.origin, seq);
    CHECK(c,
          text.data[0] < '0' || text.data[0] > '9' ||
              (text.len >= (size_t)n && memcmp(text.data, tag, (size_t)n) == 0),
          "command %s has other bytes", tag);
}

static void check_apply(struct cluster *c, qn_node_t i,
                        const struct qn_apply *a)
{
    struct member *m = &c->member[i];
    CHECK(c, a->slot == m->slot + 1,
          "node %u applies slot %" PRIu64 " after %" PRIu64, i, a->slot,
          m->slot);
    CHECK(c, a->slot <= c->decided_hi, "slot %" PRIu64 " is not decided",
          a->slot);
    CHECK(c, a->stamp_ms >= m->stamp, "node %u: the stamp falls", i);
    CHECK(c, a->mine == (a->group.count != 0 && a->group.origin == i),
          "node %u: mine", i);
    m->stamp = a->stamp_ms;
    struct qn_slice list = a->group.commands, text;
    for (uint64_t seq = a->group.first; qn_commands_next(&list, &text); seq++) {
        check_command(c, i, a, seq, text);
    }
    m->slot += a->last;
}

/* --------------------------------------------------------------- steps -- */

static void execute(struct cluster *c, qn_node_t i, const struct qn_out *o)
{
    switch (o->kind) {
    case QN_OUT_SEND:
        post(c, i, o->to, &o->msg, false);
        break;
    case QN_OUT_BCAST:
        for (qn_node_t k = 0; k < c->nodes; k++) {
            if (k != i && k != c->member[i].p->cfg.leader) {
                post(c, i, k, &o->msg, true);
            }
        }
        break;
    case QN_OUT_APPLY:
        check_apply(c, i, &o->apply);
        break;
    case QN_OUT_NEED_SNAPSHOT:
        c->member[i].need_snapshot = true;
        break;
    }
}

int cluster_step(struct cluster *c, qn_node_t node, const struct qn_input *in)
{
    struct member *m = &c->member[node];
    int err = qn_onepaxos_step(m->p, in, c->now, c->wall_ms, &m->out);
    check_learned(c, node);
    check_bounds(c, node);
    if (c->on_outputs != NULL) {
        c->on_outputs(c, node);
    }
    for (uint32_t i = 0; i < m->out.count; i++) {
        execute(c, node, &m->out.out[i]);
    }
    m->deadline = m->out.deadline;
    m->transfers = m->out.transfers;
    qn_step_out_release(&m->out);
    return err;
}

int cluster_submit(struct cluster *c, qn_node_t node, const char *text,
                   size_t len)
{
    struct qn_slice part = {(const uint8_t *)text, len};
    const struct qn_input in = {.kind = QN_IN_SUBMIT, .submit = {&part, 1}};
    return cluster_step(c, node, &in);
}

void cluster_tick(struct cluster *c, qn_node_t node)
{
    const struct qn_input in = {.kind = QN_IN_TICK};
    do {
        int err = cluster_step(c, node, &in);
        CHECK(c, err == QN_OK, "TICK answers %d", err);
    } while (c->member[node].out.again);
}

void cluster_room(struct cluster *c, qn_node_t node, uint64_t peers)
{
    const struct qn_input in = {.kind = QN_IN_ROOM, .room = {peers}};
    cluster_step(c, node, &in);
}

void cluster_beat(struct cluster *c, qn_node_t node, qn_node_t peer)
{
    struct qn_onepaxos_status st;
    qn_onepaxos_status(c->member[peer].p, &st);
    const struct qn_input in = {.kind = QN_IN_BEAT,
                                .beat = {peer, st.applied, st.learned_hi}};
    cluster_step(c, node, &in);
}
