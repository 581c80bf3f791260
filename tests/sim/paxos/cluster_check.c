/*
 * The invariants, from above. The global view knows what the acceptor has
 * decided (decided[], by hash), the one history of commands that everybody must
 * apply, and how far each node is. Checks look at the machine through its
 * internal header: what a node believes must follow from what was decided.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "paxos/machine/onepaxos_internal.h"
#include "tests/sim/paxos/cluster_internal.h"
#include "tests/sim/paxos/fault_oracle.h"

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
                p->change.handing_over ? " handing_over" : "");
        fprintf(stderr,
                "%u: applied %" PRIu64 " learned %" PRIu64 " decided %" PRIu64
                " lo %" PRIu64 " next %" PRIu64 " queued %" PRIu64
                " unapplied %" PRIu64 " bytes %" PRIu64 " fetches %" PRIu64
                "%s\n",
                i, st.applied, st.learned_hi, st.decided_hi, st.log_lo, st.next,
                st.queued, st.unapplied, st.log_bytes, st.fetches,
                st.need_snapshot ? " needs a snapshot" : "");
        fprintf(stderr,
                "%u: origin ready %u head %u sent %u tail %u%s; asked %" PRIx64
                " owed %" PRIx64 " serve from %" PRIu64 "\n",
                i, p->origin.ready, p->origin.head, p->origin.sent,
                p->origin.tail, p->origin.blocked ? " blocked" : "",
                p->leader.asked, p->leader.owed, p->change.serve_from);
    }
}

_Noreturn void cluster_fail(const struct cluster *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "violated: ");
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    dump(c);
    abort();
}

static uint64_t hash_of(const struct qn_log_entry *e)
{
    return XXH3_64bits(e->batch->bytes, e->batch->len);
}

/** An acceptor has decided `slot`. No command is in two slots, and each
 *  origin's are in order; those of an incarnation that is over may come late.
 */
static void check_new(struct cluster *c, qn_slot_t slot,
                      const struct qn_log_entry *e)
{
    CHECK(c, slot < CLUSTER_SLOTS, "run too long");
    struct qn_slice batch = {e->batch->bytes, e->batch->len};
    c->decided[slot] = hash_of(e);
    c->decided_hi = slot;
    CHECK(c, qn_batch_check(batch) == QN_OK, "malformed batch decided");
    CHECK(c, qn_batch_count(batch) <= c->params.batch_commands,
          "%u commands in slot %" PRIu64, qn_batch_count(batch), slot);
    struct qn_command_run g;
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
    struct qn_accept_register w = {c->word.first, c->word.second};
    if (!c->in_memory || w.hi == c->decided_hi) {
        return;
    }
    const struct qn_ul_entry *owner = &c->entry[w.epoch];
    const struct qn_ring *r = cluster_ring(c, owner->leader, owner->leader_inc);
    for (qn_slot_t s = c->decided_hi + 1; s <= w.hi; s++) {
        struct qn_log_entry e = {.state = QN_SLOT_LEARNED};
        qn_epoch_t epoch;
        CHECK(c,
              qn_ring_read(r, s, &qn_alloc_malloc, &epoch, &e.batch) == QN_OK,
              "node %u: slot %" PRIu64 " is decided, and not in the ring of %u",
              i, s, owner->leader);
        check_new(c, s, &e);
        qn_refbuf_unref(e.batch);
    }
}

/** Only who has claimed the word moves it, to an epoch that it owns; and who
 *  leads or is about to has claimed it. */
static void check_claim(struct cluster *c, qn_node_t i)
{
    const struct member *m = &c->member[i];
    const struct qn_accept_register w = {c->word.first, c->word.second};
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
    struct qn_accept_register w = {c->word.first, c->word.second};
    const struct qn_ul_entry *owner = &c->entry[w.epoch];
    const struct qn_ring *r = cluster_ring(c, owner->leader, owner->leader_inc);
    struct qn_refbuf *b = NULL;
    qn_epoch_t epoch;
    for (qn_slot_t s = qn_ring_lo(r); s <= w.hi; s++) {
        CHECK(c, qn_ring_read(r, s, &qn_alloc_malloc, &epoch, &b) == QN_OK,
              "slot %" PRIu64 " is not in the ring of epoch %" PRIu64, s,
              w.epoch);
        CHECK(c, XXH3_64bits(b->bytes, b->len) == c->decided[s],
              "I1: the ring of epoch %" PRIu64 " has another slot %" PRIu64,
              w.epoch, s);
        qn_refbuf_unref(b);
    }
}

qn_slot_t cluster_kept(const struct cluster *c)
{
    const struct qn_ul_entry *e = &c->entry[c->word.first];
    return c->in_memory ? qn_ring_lo(cluster_ring(c, e->leader, e->leader_inc))
                        : 0;
}

/** A ring that is begun at a take-over gets what the living lack whom the old
 *  one, which kept the slots from `kept` on, could help; but for what this one
 *  has dropped before. */
void cluster_check_begun(struct cluster *c, qn_node_t i,
                         const struct qn_ring *was, qn_slot_t kept)
{
    const struct member *m = &c->member[i];
    if (!c->in_memory || m->shared.own.tenure == was->tenure) {
        return;
    }
    qn_slot_t first = m->p->change.copy_first;
    for (qn_node_t n = 0; n < c->nodes; n++) {
        const struct qn_peer *known = &m->p->peer[n];
        qn_slot_t next = c->member[n].slot + 1;
        bool fresh = known->later && known->applied == 0;
        if (c->cover != NULL && c->member[n].p != NULL) {
            c->cover->row[COVERAGE_WORD_LAGGARD] +=
                c->member[n].p->learned_hi + 1 < kept;
        }
        CHECK(c,
              c->member[n].p == NULL || fresh || next < kept || next >= first ||
                  first == was->lo,
              "node %u takes over from slot %" PRIu64 " on, and %u needs "
              "slot %" PRIu64 ", which was kept",
              i, first, n, next);
    }
}

/** A node votes from now on, or is no member any more: it does not own the
 *  ring. Only its next incarnation comes again, and no other knows better. */
static void check_seat(struct cluster *c, const struct qn_ul_entry *e)
{
    const struct qn_ul_entry *owner = &c->entry[c->word.first];
    bool votes = (e->voters & QN_BIT(e->voter)) != 0;
    CHECK(c, votes || owner->leader != e->voter,
          "node %u is removed, and owns the ring", e->voter);
    CHECK(c, !votes || e->voter_inc > c->ended[e->voter],
          "node %u: incarnation %" PRIu64 " votes again", e->voter,
          e->voter_inc);
    if (c->cover != NULL) {
        c->cover->row[votes ? COVERAGE_SEAT_ADDED : COVERAGE_SEAT_REMOVED]++;
        c->cover->row[COVERAGE_SEAT_AGAIN] += votes && c->ended[e->voter] != 0;
    }
    if (!votes) {
        c->ended[e->voter] = e->voter_inc;
        c->ended_at[e->voter] = c->now;
    }
}

/** Longer than any message is on its way without a fault. */
#define LATE_NS (2 * QN_MS)

/** A node may hear late that it is removed. */
static void note_removed(struct cluster *c, qn_node_t i)
{
    const struct member *m = &c->member[i];
    if (c->ended_at[i] != 0 && c->ended[i] == m->inc &&
        qn_utility_removed(&m->p->ul)) {
        if (c->cover != NULL && c->now - c->ended_at[i] > LATE_NS) {
            c->cover->row[COVERAGE_SEAT_LATE]++;
        }
        c->ended_at[i] = 0;
    }
}

/** What node i is the first to know. The only voter may learn an entry, take
 *  over and decide in one step. */
static void note_entries(struct cluster *c, qn_node_t i)
{
    const struct member *m = &c->member[i];
    const struct qn_utility *u = qn_onepaxos_utility(m->p);
    for (uint32_t e = c->entries; e < qn_utility_len(u); e++) {
        CHECK(c, e < CLUSTER_ENTRIES, "run too long");
        c->entry[c->entries++] = *qn_utility_entry(u, e);
        if (c->entry[e].kind == QN_UL_SEAT) {
            check_seat(c, &c->entry[e]);
        }
        if (!qn_ul_begins_epoch(&c->entry[e])) {
            c->led[e] = c->led[e - 1]; /* roles stay as they are */
        } else if (e != 0) {
            fault_oracle_entry(c, i);
        }
    }
}

/** What a node has learned is what was decided. */
void cluster_check_learned(struct cluster *c, qn_node_t i)
{
    struct member *m = &c->member[i];
    const struct qn_onepaxos *p = m->p;
    note_entries(c, i);
    note_removed(c, i);
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
void cluster_check_roles(struct cluster *c, qn_node_t i)
{
    struct member *m = &c->member[i];
    note_entries(c, i);
    const struct qn_ul_entry *own = &m->p->cfg;
    CHECK(c, memcmp(own, &c->entry[own->index], sizeof *own) == 0,
          "node %u has another entry %u", i, own->index);
    CHECK(c,
          !c->in_memory || c->entry[c->word.first].leader_inc != m->inc ||
              cluster_in_sync(c, i),
          "node %u owns the ring and is not in sync", i);
    uint32_t newest = c->entries - 1;
    while (!qn_ul_begins_epoch(&c->entry[newest])) {
        newest--;
    }
    bool active = m->p->leader.role == QN_ACTIVE;
    cluster_check_stopped(c, i);
    if (active && !m->active) {
        c->epochs++;
        fault_oracle_leads(c, i);
        if (c->in_memory) {
            check_kept(c);
        }
        CHECK(c, own->index != newest || m->p->leader.next > c->decided_hi,
              "node %u leads epoch %u at slot %" PRIu64
              ", decided are %" PRIu64,
              i, own->index, m->p->leader.next, c->decided_hi);
    }
    m->active = active;
}

/** The bounds that hold between any two steps. */
void cluster_check_bounds(struct cluster *c, qn_node_t i)
{
    const struct qn_onepaxos *p = c->member[i].p;
    struct qn_onepaxos_status st;
    qn_onepaxos_status(p, &st);
    CHECK(c, st.applied <= st.learned_hi && st.learned_hi <= st.decided_hi,
          "node %u: positions", i);
    CHECK(c, st.log_lo <= st.applied + 1, "node %u dropped unapplied slots", i);
    /* With the memory acceptor a member alone has all of it. */
    uint32_t share = c->params.queue / (c->in_memory ? 1 : c->nodes);
    CHECK(c, st.unapplied <= QN_MAX(share, 1u),
          "node %u: %" PRIu64 " commands beyond its credit", i, st.unapplied);
    CHECK(c, st.queued <= c->params.queue, "node %u: queue", i);
    CHECK(c, st.role != QN_ACTIVE || qn_epoch_leads(p), "two leaders");
    CHECK(c,
          st.role != QN_ACTIVE ||
              st.next - 1 - st.learned_hi <= c->params.window,
          "more than WINDOW in flight");
}

static uint64_t digits(struct qn_slice text, size_t *at)
{
    uint64_t n = 0;
    for (; *at < text.len && text.data[*at] != ':'; ++*at) {
        n = 10 * n + text.data[*at] - '0';
    }
    ++*at;
    return n;
}

/** The simulator's commands begin with "origin:sequence:". */
static bool tagged(struct qn_slice text, qn_node_t origin, uint64_t seq)
{
    size_t at = 0;
    return text.data[0] < '0' || text.data[0] > '9' ||
           (digits(text, &at) == origin && digits(text, &at) == seq);
}

/** One history for all: every node applies a prefix of it. */
static void check_command(struct cluster *c, qn_node_t i,
                          const struct qn_apply *a, uint64_t seq,
                          struct qn_slice text)
{
    struct member *m = &c->member[i];
    const struct command now = {a->run.origin, a->run.inc, seq};
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
    CHECK(c, tagged(text, now.origin, seq),
          "command %u:%" PRIu64 " has other bytes", now.origin, seq);
}

void cluster_check_apply(struct cluster *c, qn_node_t i,
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
          a->mine ==
              (a->run.count != 0 && a->run.origin == i && a->run.inc == m->inc),
          "node %u: mine", i);
    m->stamp = a->stamp_ms;
    struct qn_slice list = a->run.commands, text;
    for (uint64_t seq = a->run.first; qn_commands_next(&list, &text); seq++) {
        check_command(c, i, a, seq, text);
    }
    m->slot += a->last;
}

/** Node i needs a snapshot: the leader, if there is one, does not wait for it.
 */
void cluster_check_awaited(struct cluster *c, qn_node_t i)
{
    for (qn_node_t n = 0; n < c->nodes && c->in_memory; n++) {
        const struct qn_onepaxos *p = c->member[n].p;
        bool leads = p != NULL && n != i && p->leader.role == QN_ACTIVE &&
                     qn_memory_acceptor_load(p->memory).epoch == p->leader.ep;
        CHECK(c,
              !leads || !p->leader.flow.member[i].awaited ||
                  p->incarnation[i] != c->member[i].inc,
              "node %u needs a snapshot, but node %u waits for it", i, n);
    }
}
