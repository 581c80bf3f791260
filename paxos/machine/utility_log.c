/*
 * The entries that a node knows (utility.h): learned in order, one per index
 * for ever.
 *
 * Each node keeps the newest QN_UL_KEPT of them. A node that was stalled while
 * more than those were chosen gets as many as there are and skips the rest.
 * What it voted for below is chosen without it, and the roles that it had in
 * entries that it never sees have been taken from it.
 */
#include <string.h>

#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"

const struct qn_ul_entry *qn_utility_entry(const struct qn_utility *u,
                                           uint32_t index)
{
    bool kept = index >= u->lo && index < u->len;
    QN_ASSERT(!kept || u->log[index % QN_UL_KEPT].index == index);
    return kept ? &u->log[index % QN_UL_KEPT] : NULL;
}

static bool same_entry(const struct qn_ul_entry *a, const struct qn_ul_entry *b)
{
    uint8_t x[QN_UL_BYTES], y[QN_UL_BYTES];
    qn_ul_encode(a, x);
    qn_ul_encode(b, y);
    return memcmp(x, y, sizeof x) == 0;
}

/* --------------------------------------------------------------- voters -- */

static uint64_t voters_of(const struct qn_utility *u,
                          const struct qn_ul_entry *e)
{
    return e->voters != 0 ? e->voters : qn_group_mask(u->nodes);
}

bool qn_utility_majority(const struct qn_utility *u, uint64_t nodes)
{
    uint64_t voters = u->voters;
    if (QN_MUTANT(U_PROPOSERS)) {
        voters =
            voters_of(u, u->phase == QN_UTILITY_ACCEPT ? &u->value : &u->want);
    }
    nodes &= QN_MUTANT(U_OWN_ENTRY) ? UINT64_MAX : voters;
    return 2 * __builtin_popcountll(nodes) > __builtin_popcountll(voters);
}

bool qn_utility_follows(const struct qn_utility *u, const struct qn_ul_entry *e)
{
    uint64_t moved = e->kind == QN_UL_SEAT ? QN_BIT(e->voter) : 0;
    return e->index == u->len && voters_of(u, e) == (u->voters ^ moved);
}

/** A VOTER or SEAT entry that lets this incarnation vote: no incarnation since
 *  the one that it names has voted. */
static bool names_me(const struct qn_utility *u, const struct qn_ul_entry *e)
{
    bool begins =
        !qn_ul_begins_epoch(e) && (voters_of(u, e) & QN_BIT(u->self)) != 0;
    return begins && e->voter == u->self &&
           ((e->voter_inc >= u->since && e->voter_inc <= u->self_inc) ||
            QN_MUTANT(U_ANY_LIFE));
}

/** The voters behind entry `e`, which is learned now. The entry may end the
 *  vote of this incarnation; or one that is skipped has: none is kept below. So
 *  it looks, too, where this incarnation has come after that end, and knows no
 *  more than the record of the one before: then the seat is left for nothing.
 *  The record says so from now on, and the next process of the seat is none
 *  that was removed. */
static void voters_change(struct qn_utility *u, const struct qn_ul_entry *e)
{
    uint64_t me = QN_BIT(u->self);
    uint64_t voters = voters_of(u, e);
    if (QN_MUTANT(U_DIFFERENCE) && u->voters != 0) {
        voters = u->voters ^ (e->kind == QN_UL_SEAT ? QN_BIT(e->voter) : 0);
    }
    bool ends = e->kind == QN_UL_SEAT && e->voter == u->self &&
                e->voter_inc >= u->self_inc;
    bool skipped = u->lo == e->index && (u->voters & me) != 0;
    if ((ends || skipped) && (voters & me) == 0) {
        u->removed = u->unwritten = true;
    }
    u->voters = voters;
    if (u->non_voting && names_me(u, e)) {
        u->non_voting = false;
        u->unwritten = true;
    }
}

/* ---------------------------------------------------------------- learn -- */

static void learn_one(struct qn_utility *u, const struct qn_ul_entry *e)
{
    const struct qn_ul_entry *known = qn_utility_entry(u, e->index);
    QN_ASSERT(known == NULL || same_entry(known, e)); /* one per index */
    if (e->index != u->len) {
        return; /* known, or a gap before it: it will come in order */
    }
    u->log[u->len++ % QN_UL_KEPT] = *e;
    if (u->len - u->lo > QN_UL_KEPT) {
        u->lo++;
    }
    QN_ASSERT(u->len - u->lo <= QN_UL_KEPT);
    voters_change(u, e);
    u->phase = QN_UTILITY_IDLE; /* whichever proposer won */
    u->pause = u->pause_least;
}

/** Consecutive, and as they are known here. */
static bool adoptable(const struct qn_utility *u, const struct qn_ul_entry *log,
                      uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct qn_ul_entry *known = qn_utility_entry(u, log[i].index);
        if (log[i].index != log[0].index + i ||
            (known != NULL && !same_entry(known, &log[i]))) {
            return false;
        }
    }
    return true;
}

int qn_utility_adopt(struct qn_utility *u, const struct qn_ul_entry *log,
                     uint32_t count)
{
    if (!adoptable(u, log, count)) {
        return QN_EINVAL;
    }
    if (log[0].index > u->len) {
        u->lo = u->len = log[0].index;
    }
    for (uint32_t i = 0; i < count; i++) {
        learn_one(u, &log[i]);
    }
    return QN_OK;
}

/** As many entries as a node keeps, and still there is a gap before them: no
 *  node has those any more. They are skipped, as with a snapshot. */
static void skip_lost(struct qn_utility *u, struct qn_slice entries)
{
    struct qn_ul_entry e;
    if (entries.len / QN_UL_BYTES >= QN_UL_KEPT &&
        qn_ul_decode(&e, entries, 0) == QN_OK && e.index > u->len &&
        !QN_MUTANT(U_NO_SKIP)) {
        u->lo = u->len = e.index;
    }
}

void qn_utility_learn(struct qn_utility *u, struct qn_slice entries)
{
    struct qn_ul_entry e;
    skip_lost(u, entries);
    for (uint32_t i = 0; qn_ul_decode(&e, entries, i) == QN_OK; i++) {
        learn_one(u, &e);
    }
}

struct qn_refbuf *qn_utility_suffix(const struct qn_utility *u, uint32_t first)
{
    first = QN_MAX(first, u->lo);
    uint32_t count = u->len > first ? u->len - first : 0;
    struct qn_refbuf *b = qn_refbuf_create(u->alloc, count * QN_UL_BYTES);
    for (uint32_t i = 0; b != NULL && i < count; i++) {
        qn_ul_encode(&u->log[(first + i) % QN_UL_KEPT],
                     b->bytes + (size_t)i * QN_UL_BYTES);
        b->len += QN_UL_BYTES;
    }
    QN_ASSERT(count <= QN_UL_KEPT);
    return b;
}

void qn_utility_init(struct qn_utility *u, const struct qn_utility_opts *o)
{
    QN_ASSERT(o->count <= QN_UL_KEPT);
    QN_ASSERT(o->pause > 0);
    QN_ASSERT(o->self < o->nodes);
    uint64_t since = o->vote != NULL ? o->vote->since : 0;
    *u = (struct qn_utility){
        .self = o->self,
        .nodes = o->nodes,
        .self_inc = o->self_inc,
        .alloc = o->alloc,
        .non_voting = o->non_voting || since != 0,
        .since = o->non_voting ? o->self_inc : since,
        .lo = o->count != 0 ? o->log[0].index : 0,
        .len = o->count != 0 ? o->log[0].index : 0,
        .pause = o->pause,
        .pause_least = o->pause,
        .random = o->seed,
    };
    if (o->count != 0) {
        (void)qn_utility_adopt(u, o->log, o->count);
    }
    if (o->vote != NULL && !QN_MUTANT(U_AMNESIA)) {
        QN_ASSERT(o->vote->index <= u->len);
        u->vote = *o->vote;
    }
}
