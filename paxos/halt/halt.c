/*
 * The verdict that the group has halted: see the header.
 *
 * Why the leader of the newest epoch may say it (process acceptor). Its machine
 * says that it can never begin the epoch: the acceptor has ended, and so has
 * the last leader that may have the log. Could there be a later epoch, whose
 * leader had an answer of one of the two before it ended? Then a majority had
 * voted for its entry before that end; each voter said so in its outbox before
 * its vote left, and its later incarnations say so from the beginning. So if a
 * majority says now, after the ends were heard of, that it has never voted for
 * a later entry than those known here, there is none that could have had an
 * answer; and leaders of entries that are chosen from now on find that both
 * have ended.
 *
 * Why an incomplete log is said late and can be withdrawn. Peers that have
 * learned more give the leader the rest, or a snapshot; so it goes on unless
 * all living peers have learned exactly as much. A peer that has learned less
 * may have the rest behind a gap of its own, and is waited for. A stalled peer
 * may not have read yet what the acceptor had sent to it.
 */
#include "paxos/halt/halt.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "paxos/wire/msg.h"

static uint64_t bit(qn_node_t i)
{
    return (uint64_t)1 << i;
}

void qn_halt_init(struct qn_halt *h, qn_node_t self, uint32_t nodes)
{
    QN_ASSERT(nodes <= QN_NODES_MAX);
    QN_ASSERT(self < nodes);
    *h = (struct qn_halt){.self = self, .nodes = nodes};
}

void qn_halt_born(struct qn_halt *h, qn_node_t node, uint64_t inc, bool ended)
{
    QN_ASSERT(node < h->nodes);
    QN_ASSERT(node != h->self || !ended);
    h->born[node] = inc + ended;
}

void qn_halt_peer_up(struct qn_halt *h, qn_node_t peer, uint64_t bereft)
{
    QN_ASSERT(peer < h->nodes);
    QN_ASSERT(peer != h->self);
    h->late[peer] = bereft;
}

/* ---- process acceptor ---------------------------------------------------- */

/* The log lacks something, at the same place, for long enough. */
static bool lacks_for_long(struct qn_halt *h, const struct qn_halt_facts *v,
                           qn_time_t now)
{
    if (!v->lacks || h->lacks_at != v->learned) {
        h->lacks_since = 0;
    }
    if (v->lacks && h->lacks_since == 0) {
        h->lacks_since = now;
        h->lacks_at = v->learned;
    }
    QN_ASSERT(now >= h->lacks_since);
    QN_ASSERT(v->lacks || h->lacks_since == 0);
    return v->lacks && now - h->lacks_since >= QN_DRIVER_LACKS;
}

static bool says_gap(uint64_t word)
{
    return word != QN_HALT_BY_FORCE && (word & QN_HALT_LOG_INCOMPLETE) != 0;
}

static uint64_t word_of(const struct qn_halt_facts *v)
{
    uint64_t mark = v->epoch + 1;
    QN_ASSERT(mark < QN_HALT_LOG_INCOMPLETE);
    return v->lost ? mark : mark | QN_HALT_LOG_INCOMPLETE;
}

uint64_t qn_halt_word(struct qn_halt *h, const struct qn_halt_facts *v,
                      qn_time_t now)
{
    QN_ASSERT(v->by_force || v->served || v->word != QN_HALT_BY_FORCE);
    if (v->served) {
        return v->word == QN_HALT_BY_FORCE ? 0 : v->word;
    }
    bool gap = v->leads && lacks_for_long(h, v, now);
    uint64_t word = !gap && says_gap(v->word) ? 0 : v->word;
    if (!v->leads || v->by_force || !(gap || v->lost)) {
        return word;
    }
    return v->no_later_vote ? word_of(v) : word;
}

enum qn_halt_reason qn_halt_read(uint64_t word, uint64_t epoch)
{
    uint64_t mark = epoch + 1;
    QN_ASSERT(mark < QN_HALT_LOG_INCOMPLETE);
    return word == mark                              ? QN_HALT_REASON_LOST
           : word == (mark | QN_HALT_LOG_INCOMPLETE) ? QN_HALT_REASON_GAP
                                                     : QN_HALT_REASON_NONE;
}

/* ---- memory acceptor ----------------------------------------------------- */

bool qn_halt_has_ended(uint64_t inc, uint64_t newest, bool lives)
{
    return newest > inc || (newest == inc && !lives);
}

bool qn_halt_has_heard(const struct qn_halt *h, qn_node_t member,
                       const uint64_t *hears, const uint64_t *newest,
                       uint64_t living)
{
    QN_ASSERT(member < h->nodes);
    QN_ASSERT(h->nodes == QN_NODES_MAX || living >> h->nodes == 0);
    QN_ASSERT((living & bit(h->self)) != 0);
    for (qn_node_t k = 0; k < h->nodes; k++) {
        bool alive = hears[k] == newest[k] && (living & bit(k)) != 0;
        if (k != member && hears[k] != 0 && !alive) {
            return false;
        }
    }
    return true;
}

bool qn_halt_born_late(const struct qn_halt *h, qn_node_t owner, uint64_t inc)
{
    QN_ASSERT(owner < h->nodes);
    return inc < h->born[owner];
}

bool qn_halt_is_late(const struct qn_halt *h, qn_node_t member, uint64_t said,
                     uint64_t epoch)
{
    QN_ASSERT(member < h->nodes);
    QN_ASSERT(h->late[h->self] == 0);
    return said == epoch + 1 || h->late[member] == epoch + 1;
}

bool qn_halt_verdict_halts(const struct qn_verdict *v)
{
    return v->kind == QN_VERDICT_STOPPED || v->kind == QN_VERDICT_DAMAGED;
}

bool qn_halt_take(struct qn_halt *h, const struct qn_verdict *v, qn_time_t now)
{
    bool halted = qn_halt_verdict_halts(&h->verdict);
    if (h->verdict.kind == QN_VERDICT_DAMAGED) {
        return false;
    }
    QN_ASSERT((v->kind == QN_VERDICT_WAITING) == (v->awaited != 0));
    QN_ASSERT(h->nodes == QN_NODES_MAX || v->awaited >> h->nodes == 0);
    QN_ASSERT(v->kind == QN_VERDICT_NONE || v->kind == QN_VERDICT_DAMAGED ||
              v->kept + 1 < v->lo);
    h->verdict = *v;
    if (v->kind != QN_VERDICT_WAITING) {
        h->lacks_since = 0;
    } else if (h->lacks_since == 0) {
        h->lacks_since = now;
    }
    QN_ASSERT(now >= h->lacks_since);
    return !halted && qn_halt_verdict_halts(v);
}

uint64_t qn_halt_waits_for(const struct qn_halt *h, qn_time_t now)
{
    QN_ASSERT(now >= h->lacks_since);
    bool long_enough =
        h->lacks_since != 0 && now - h->lacks_since >= QN_DRIVER_LACKS;
    return long_enough ? h->verdict.awaited : 0;
}

/* ---- for people ---------------------------------------------------------- */

static qn_slot_t higher(qn_slot_t known, qn_slot_t said)
{
    return said <= QN_SLOT_MAX ? QN_MAX(known, said) : known;
}

void qn_halt_note(struct qn_halt *h, qn_slot_t position)
{
    h->highest_announced = higher(h->highest_announced, position);
    QN_ASSERT(h->highest_announced <= QN_SLOT_MAX);
}

qn_slot_t qn_halt_highest(const struct qn_halt *h, qn_slot_t decided,
                          qn_slot_t index, bool halted)
{
    qn_slot_t highest = QN_MAX(h->highest_announced, decided);
    highest = higher(highest, index);
    QN_ASSERT(highest >= decided);
    return halted ? QN_MAX(highest, h->verdict.hi) : highest;
}

void qn_halt_recovered(struct qn_halt *h)
{
    h->highest_announced = 0;
    h->verdict = (struct qn_verdict){0};
}
