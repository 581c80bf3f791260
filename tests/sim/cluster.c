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
        const struct qn_onepaxos *p = c->member[i].p;
        if (p == NULL) {
            fprintf(stderr, "%u: dead\n", i);
            continue;
        }
        qn_onepaxos_status(p, &st);
        fprintf(stderr,
                "%u: role %d epoch %u (leader %u, acceptor %u%s) ep %u cep %u "
                "sk %u promised %u hi %" PRIu64 " phase %d%s%s\n",
                i, st.role, st.epoch, st.leader, st.acceptor,
                p->acceptor.active ? ", I am active" : "", p->leader.ep,
                p->change.cep, p->change.sk, p->acceptor.promised,
                p->acceptor.hi, p->ul.phase,
                p->change.prepared ? " prepared" : "",
                p->change.freezing ? " freezing" : "");
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

static void check_roles(struct cluster *c, qn_node_t i);

/* --------------------------------------------------------------- start -- */

static const struct qn_ring *find_ring(void *ctx, qn_node_t node, uint64_t inc)
{
    const struct cluster *c = ctx;
    for (uint32_t i = 0; i < c->memory_count; i++) {
        if (c->memory[i].node == node && c->memory[i].inc == inc) {
            return &c->memory[i].ring;
        }
    }
    return NULL;
}

static int grow(void *ctx, uint64_t bytes)
{
    struct memory *m = ctx;
    CHECK(m->c, bytes <= qn_ring_bytes(m->c->ring_slots, m->c->ring_bytes),
          "node %u asks for more than its address space", m->node);
    if (m->c->out_of_memory != 0 &&
        cluster_random(m->c, 1000) < 4 * m->c->out_of_memory) {
        return QN_ENOMEM;
    }
    m->granted = QN_MAX(m->granted, bytes);
    return QN_OK;
}

static void claim(void *ctx, bool writable)
{
    struct member *m = ctx;
    m->claimed = writable;
}

static void owner(void *ctx, qn_epoch_t epoch)
{
    struct member *m = ctx;
    struct cluster *c = m->cluster;
    CHECK(c, m->claimed, "life %" PRIu64 " owns without a claim", m->inc);
    CHECK(c, epoch < CLUSTER_ENTRIES, "run too long");
    c->owner[epoch] = m->inc;
}

static const struct qn_ring *map_ring(void *ctx, qn_node_t node, uint64_t inc)
{
    const struct member *m = ctx;
    return find_ring(m->cluster, node, inc);
}

/** A new life has a new ring, and maps those of all others. */
static struct qn_shared *make_shared(struct cluster *c, qn_node_t i)
{
    CHECK(c, c->memory_count < CLUSTER_LIVES, "run too long");
    struct memory *m = &c->memory[c->memory_count++];
    size_t bytes = qn_ring_bytes(c->ring_slots, c->ring_bytes);
    *m = (struct memory){.c = c,
                         .node = i,
                         .inc = c->member[i].inc,
                         .granted = qn_ring_bytes(c->ring_slots, 0),
                         .mem = aligned_alloc(QN_CACHELINE, bytes)};
    memset(m->mem, 0, bytes);
    const struct qn_ring_opts o = {.slots = c->ring_slots,
                                   .capacity = c->ring_bytes,
                                   .span = c->ring_span,
                                   .keep = c->ring_keep,
                                   .grow = grow,
                                   .ctx = m};
    qn_ring_open(&m->ring, m->mem, &o);
    struct member *x = &c->member[i];
    x->cluster = c;
    x->claimed = false;
    x->shared = (struct qn_shared){.word = &c->word,
                                   .own = m->ring,
                                   .ring = map_ring,
                                   .claim = claim,
                                   .owner = owner,
                                   .ctx = x};
    qn_ring_begin(&x->shared.own, 1);
    return &x->shared;
}

/** What was never asked for was never touched. */
static void memory_end(struct cluster *c, struct memory *m)
{
    size_t bytes = qn_ring_bytes(c->ring_slots, c->ring_bytes);
    for (size_t at = m->granted; at < bytes; at++) {
        CHECK(c, m->mem[at] == 0, "node %u wrote to memory it has not",
              m->node);
    }
    free(m->mem);
}

static void member_start(struct cluster *c, qn_node_t i,
                         const struct member *donor)
{
    uint64_t inc[QN_NODES_MAX] = {0};
    struct member *m = &c->member[i];
    for (uint32_t n = 0; n < c->nodes; n++) {
        inc[n] = c->member[n].inc;
    }
    struct qn_onepaxos_opts o = {.self = i,
                                 .nodes = c->nodes,
                                 .incarnation = inc,
                                 .parent = c->nodes > 1 ? 1 : 0,
                                 .alloc = &c->alloc,
                                 .params = c->params,
                                 .seed = cluster_random(c, UINT64_MAX)};
    struct qn_resume resume;
    struct qn_ul_entry ul[QN_UL_KEPT];
    if (donor != NULL) {
        const struct qn_utility *u = qn_onepaxos_utility(donor->p);
        qn_onepaxos_resume(donor->p, &resume);
        o.resume = &resume;
        o.ul = ul;
        uint32_t len = QN_MAX(qn_utility_len(u), m->record.count);
        for (uint32_t e = len > QN_UL_KEPT ? len - QN_UL_KEPT : 0; e < len;
             e++) {
            const struct qn_ul_entry *x = qn_utility_entry(u, e);
            ul[o.ul_count++] = x != NULL ? *x : m->record.log[e];
        }
        o.vote = &m->record.vote;
    }
    o.shared = c->in_memory ? make_shared(c, i) : NULL;
    size_t size = qn_onepaxos_size(&o);
    CHECK(c, size != 0, "bad options");
    m->p = qn_onepaxos_init(calloc(1, size), &o);
    m->deadline = QN_TIME_NEVER;
}

void cluster_start(struct cluster *c)
{
    c->alloc = (struct qn_alloc){resize, c};
    c->lives = 99;
    for (qn_node_t i = 0; i < c->nodes; i++) {
        c->member[i].inc = ++c->lives;
    }
    for (qn_node_t i = 0; i < c->nodes; i++) {
        member_start(c, i, NULL);
        check_roles(c, i);
        for (qn_node_t k = 0; k < c->nodes; k++) {
            c->direct[i][k].tail = &c->direct[i][k].head;
            c->tree[i][k].tail = &c->tree[i][k].head;
        }
    }
}

static void member_end(struct member *m)
{
    if (m->p != NULL) {
        qn_onepaxos_fini(m->p);
        free(m->p);
        m->p = NULL;
    }
}

void cluster_end(struct cluster *c)
{
    for (qn_node_t i = 0; i < c->nodes; i++) {
        member_end(&c->member[i]);
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
    for (uint32_t i = 0; i < c->memory_count; i++) {
        memory_end(c, &c->memory[i]);
    }
    CHECK(c, c->blobs == 0, "%" PRId64 " blobs are left", c->blobs);
}

/* ------------------------------------------------------------- packets -- */

static void post_piece(struct cluster *c, qn_node_t from, qn_node_t to,
                       const struct qn_msg *m, bool tree)
{
    uint8_t head[QN_HEAD_MAX];
    size_t n = qn_msg_head(m, head);
    if (c->member[to].p == NULL) {
        return;
    }
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
    if (k == NULL || c->member[k->to].p == NULL) {
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

/** An acceptor has decided `slot`. No command is in two slots, and each
 *  origin's are in order; those of a life that is over may come late. */
static void check_new(struct cluster *c, qn_slot_t slot,
                      const struct qn_entry *e)
{
    CHECK(c, slot < CLUSTER_SLOTS, "run too long");
    struct qn_slice batch = {e->batch->bytes, e->batch->len};
    c->decided[slot] = hash_of(e);
    c->decided_hi = slot;
    CHECK(c, qn_batch_check(batch) == QN_OK, "malformed batch decided");
    CHECK(c, qn_batch_count(batch) <= c->params.batch_commands,
          "%u commands in slot %" PRIu64, qn_batch_count(batch), slot);
    struct qn_group g;
    for (uint32_t at = 0; qn_batch_next(batch, &at, &g);) {
        struct qn_session *s = &c->decided_seq[g.origin];
        if (g.inc < s->inc) {
            continue;
        }
        if (g.inc > s->inc) {
            *s = (struct qn_session){.inc = g.inc};
        }
        CHECK(c, g.first == s->last + 1,
              "slot %" PRIu64 ": command %u:%" PRIu64 " after %" PRIu64, slot,
              g.origin, g.first, s->last);
        s->last += g.count;
    }
}

/** I1 at each accept and activation. */
static void check_accepted(struct cluster *c, qn_node_t i)
{
    struct member *m = &c->member[i];
    const struct qn_onepaxos *p = m->p;
    if (!p->acceptor.active) {
        return;
    }
    for (; m->accepted < p->acceptor.hi; m->accepted++) {
        qn_slot_t s = m->accepted + 1;
        bool kept = qn_log_holds(&p->log, s);
        if (s > c->decided_hi) {
            CHECK(c, s == c->decided_hi + 1, "slot %" PRIu64 " decided early",
                  s);
            if (kept) {
                check_new(c, s, qn_log_at(&p->log, s));
            } else { /* a group of one has dropped it again */
                c->decided_hi++;
            }
        } else {
            CHECK(c, !kept || hash_of(qn_log_at(&p->log, s)) == c->decided[s],
                  "I1: node %u accepted another batch for slot %" PRIu64, i, s);
        }
    }
}

/** What the word says is decided was decided by the node that just moved it. */
static void check_word(struct cluster *c, qn_node_t i)
{
    struct qn_word w = {c->word.first, c->word.second};
    if (!c->in_memory || w.hi == c->decided_hi) {
        return;
    }
    const struct qn_ul_entry *owner = &c->entry[w.epoch];
    const struct qn_ring *r = find_ring(c, owner->leader, owner->leader_inc);
    for (qn_slot_t s = c->decided_hi + 1; s <= w.hi; s++) {
        struct qn_entry e = {.state = QN_SLOT_LEARNED};
        qn_epoch_t epoch;
        CHECK(c,
              qn_ring_read(r, s, &qn_alloc_malloc, &epoch, &e.batch) == QN_OK,
              "node %u: slot %" PRIu64 " is decided, and not in the ring of %u",
              i, s, owner->leader);
        check_new(c, s, &e);
        qn_blob_unref(e.batch);
    }
}

/** Only who has claimed the word moves it, to an epoch that it owns; and who
 *  leads or is about to has claimed it. */
static void check_claim(struct cluster *c, qn_node_t i)
{
    const struct member *m = &c->member[i];
    const struct qn_word w = {c->word.first, c->word.second};
    if (!c->in_memory) {
        return;
    }
    bool moved = w.epoch != c->checked.epoch || w.hi != c->checked.hi;
    CHECK(c, !moved || m->claimed, "node %u moves the word unclaimed", i);
    CHECK(c, !moved || c->owner[w.epoch] == m->inc,
          "node %u moves the word to an epoch it does not own", i);
    CHECK(c, m->claimed == (m->p->leader.role != QN_FOLLOWER),
          "node %u: claimed %d in role %d", i, m->claimed, m->p->leader.role);
    c->checked = w;
}

/** From its ring and any node in sync everything decided can be had. */
static void check_kept(struct cluster *c)
{
    struct qn_word w = {c->word.first, c->word.second};
    const struct qn_ul_entry *owner = &c->entry[w.epoch];
    const struct qn_ring *r = find_ring(c, owner->leader, owner->leader_inc);
    struct qn_blob *b = NULL;
    qn_epoch_t epoch;
    for (qn_slot_t s = qn_ring_lo(r); s <= w.hi; s++) {
        CHECK(c, qn_ring_read(r, s, &qn_alloc_malloc, &epoch, &b) == QN_OK,
              "slot %" PRIu64 " is not in the ring of epoch %" PRIu64, s,
              w.epoch);
        CHECK(c, XXH3_64bits(b->bytes, b->len) == c->decided[s],
              "I1: the ring of epoch %" PRIu64 " has another slot %" PRIu64,
              w.epoch, s);
        qn_blob_unref(b);
    }
}

/** What a node has learned is what was decided. */
static void check_learned(struct cluster *c, qn_node_t i)
{
    struct member *m = &c->member[i];
    const struct qn_onepaxos *p = m->p;
    check_accepted(c, i);
    check_claim(c, i);
    check_word(c, i);
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

/** One entry per index of the utility log; a leader that becomes ACTIVE in its
 *  newest epoch has all that was decided. */
static void check_roles(struct cluster *c, qn_node_t i)
{
    struct member *m = &c->member[i];
    const struct qn_utility *u = qn_onepaxos_utility(m->p);
    for (uint32_t e = c->entries; e < qn_utility_len(u); e++) {
        CHECK(c, e < CLUSTER_ENTRIES, "run too long");
        c->entry[c->entries++] = *qn_utility_entry(u, e);
    }
    const struct qn_ul_entry *own = &m->p->cfg;
    CHECK(c, memcmp(own, &c->entry[own->index], sizeof *own) == 0,
          "node %u has another entry %u", i, own->index);
    CHECK(c,
          !c->in_memory || c->entry[c->word.first].leader_inc != m->inc ||
              cluster_in_sync(c, i),
          "node %u owns the ring and is not in sync", i);
    bool active = m->p->leader.role == QN_ACTIVE;
    if (active && !m->active) {
        c->epochs++;
        if (c->in_memory) {
            check_kept(c);
        }
        CHECK(c,
              own->index + 1 != c->entries || m->p->leader.next > c->decided_hi,
              "node %u leads epoch %u at slot %" PRIu64
              ", decided are %" PRIu64,
              i, own->index, m->p->leader.next, c->decided_hi);
    }
    m->active = active;
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
    CHECK(c, st.role != QN_ACTIVE || qn_epoch_leads(p), "two leaders");
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
    const struct command now = {a->group.origin, a->group.inc, seq};
    struct qn_session *last = &m->seq[now.origin];
    CHECK(c, now.inc >= last->inc, "node %u applies a dead life's command", i);
    if (now.inc > last->inc) {
        *last = (struct qn_session){.inc = now.inc};
    }
    CHECK(c, seq == last->last + 1,
          "node %u applies %u:%" PRIu64 " after %" PRIu64, i, now.origin, seq,
          last->last);
    last->last = seq;
    if (m->applied == c->history_count) {
        CHECK(c, m->applied < CLUSTER_COMMANDS, "run too long");
        c->history[c->history_count++] = now;
    }
    const struct command *want = &c->history[m->applied++];
    CHECK(c,
          want->origin == now.origin && want->inc == now.inc &&
              want->seq == seq,
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
    CHECK(c,
          a->mine == (a->group.count != 0 && a->group.origin == i &&
                      a->group.inc == m->inc),
          "node %u: mine", i);
    m->stamp = a->stamp_ms;
    struct qn_slice list = a->group.commands, text;
    for (uint64_t seq = a->group.first; qn_commands_next(&list, &text); seq++) {
        check_command(c, i, a, seq, text);
    }
    m->slot += a->last;
}

/* --------------------------------------------------------------- steps -- */

static void persist(struct cluster *c, qn_node_t i, const struct qn_vote *vote)
{
    struct member *m = &c->member[i];
    const struct qn_utility *u = qn_onepaxos_utility(m->p);
    m->record.vote = *vote;
    for (uint32_t *n = &m->record.count; *n < vote->index; (*n)++) {
        CHECK(c, *n < CLUSTER_ENTRIES, "run too long");
        /* NULL: so old that a snapshot has brought the log without it. */
        const struct qn_ul_entry *e = qn_utility_entry(u, *n);
        m->record.log[*n] = e != NULL ? *e : c->entry[*n];
    }
}

static void execute(struct cluster *c, qn_node_t i, const struct qn_out *o)
{
    switch (o->kind) {
    case QN_OUT_SEND:
        post(c, i, o->to, &o->msg, false);
        break;
    case QN_OUT_SEND_ALL:
    case QN_OUT_BCAST:
        for (qn_node_t k = 0; k < c->nodes; k++) {
            if (k != i && (o->kind == QN_OUT_SEND_ALL || k != o->to)) {
                post(c, i, k, &o->msg, o->kind == QN_OUT_BCAST);
            }
        }
        break;
    case QN_OUT_PERSIST:
        persist(c, i, &o->vote);
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
    if (m->p == NULL) {
        return QN_OK;
    }
    int err = qn_onepaxos_step(m->p, in, c->now, c->wall_ms, &m->out);
    check_learned(c, node);
    check_roles(c, node);
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
    if (c->member[peer].p == NULL) {
        return;
    }
    qn_onepaxos_status(c->member[peer].p, &st);
    const struct qn_input in = {.kind = QN_IN_BEAT,
                                .beat = {peer, st.applied, st.learned_hi, 0}};
    cluster_step(c, node, &in);
}

/* --------------------------------------------------------------- lives -- */

/** Drop what is behind the first `keep` packets. */
static void cut(struct lane *l, uint64_t keep)
{
    struct packet **at = &l->head;
    while (*at != NULL && keep-- > 0) {
        at = &(*at)->next;
    }
    struct packet *rest = *at;
    *at = NULL;
    l->tail = at;
    while (rest != NULL) {
        struct packet *next = rest->next;
        free(rest);
        rest = next;
    }
}

static void reset_lane(struct lane *l)
{
    cut(l, 0);
    qn_joiner_reset(&l->joiner);
    l->is_parked = false;
}

void cluster_kill(struct cluster *c, qn_node_t node, uint64_t keep)
{
    struct member *m = &c->member[node];
    member_end(m);
    m->need_snapshot = m->active = false;
    m->transfers = 0;
    for (qn_node_t k = 0; k < c->nodes; k++) {
        reset_lane(&c->direct[k][node]);
        reset_lane(&c->tree[k][node]);
        cut(&c->direct[node][k],
            cluster_random(c, keep) + c->direct[node][k].is_parked);
        cut(&c->tree[node][k], cluster_random(c, keep));
    }
}

/** What the donor's state has, the other's has now. */
static void copy_state(struct member *m, const struct member *donor)
{
    m->applied = donor->applied;
    m->slot = m->learned = donor->slot;
    m->accepted = donor->slot;
    m->stamp = donor->stamp;
    memcpy(m->seq, donor->seq, sizeof m->seq);
    m->need_snapshot = false;
}

static bool between_slots(const struct member *donor)
{
    struct qn_resume r;
    return donor->p != NULL && qn_onepaxos_resume(donor->p, &r);
}

bool cluster_restart(struct cluster *c, qn_node_t node, qn_node_t donor)
{
    struct member *m = &c->member[node];
    if (!between_slots(&c->member[donor])) {
        return false;
    }
    m->inc = ++c->lives;
    for (qn_node_t k = 0; k < c->nodes; k++) {
        reset_lane(&c->direct[node][k]);
        reset_lane(&c->tree[node][k]);
    }
    copy_state(m, &c->member[donor]);
    member_start(c, node, &c->member[donor]);
    for (qn_node_t k = 0; k < c->nodes; k++) {
        const struct qn_input in = {.kind = QN_IN_UP, .up = {node, m->inc}};
        if (k != node) {
            cluster_step(c, k, &in);
        }
    }
    return true;
}

void cluster_install(struct cluster *c, qn_node_t node, qn_node_t donor)
{
    struct member *m = &c->member[node];
    const struct member *d = &c->member[donor];
    struct qn_resume resume;
    if (m->p == NULL || !between_slots(d) || !between_slots(m) ||
        d->slot <= m->slot) {
        return;
    }
    qn_onepaxos_resume(d->p, &resume);
    copy_state(m, d);
    qn_onepaxos_install(m->p, &resume, c->now);
    cluster_tick(c, node);
}

void cluster_down(struct cluster *c, qn_node_t node, qn_node_t peer)
{
    const struct qn_input in = {.kind = QN_IN_DOWN, .down = {peer}};
    cluster_step(c, node, &in);
}

void cluster_suspect(struct cluster *c, qn_node_t node, uint64_t peers)
{
    const struct qn_input in = {.kind = QN_IN_SUSPECT, .suspect = {peers}};
    cluster_step(c, node, &in);
}

bool cluster_in_sync(const struct cluster *c, qn_node_t node)
{
    const struct member *m = &c->member[node];
    if (m->p == NULL) {
        return false;
    }
    const struct qn_ul_entry *e = &c->entry[c->word.first];
    const struct qn_ring *r =
        find_ring((void *)(uintptr_t)c, e->leader, e->leader_inc);
    return r != NULL && m->slot + 1 >= qn_ring_lo(r);
}
