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

/** A VOTER entry that lets this incarnation vote. */
static bool names_me(const struct qn_utility *u, const struct qn_ul_entry *e)
{
    return e->voter == u->self &&
           (e->voter_inc == u->self_inc || QN_MUTANT(U_ANY_LIFE));
}

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
    if (e->kind == QN_UL_VOTER && names_me(u, e) && u->non_voting) {
        u->non_voting = false;
        u->renewed = true;
    }
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
    *u = (struct qn_utility){
        .self = o->self,
        .nodes = o->nodes,
        .self_inc = o->self_inc,
        .alloc = o->alloc,
        .non_voting = o->non_voting,
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
