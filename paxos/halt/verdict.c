/*
 * The verdict: see the header.
 *
 * Why all must have learned equally much. Suppose A has learned slots <= 100,
 * and B those <= 50 and, behind its gap, 101 to 200; the ring begins at 150. A
 * has nothing to give but what B lacks, and then B has all. A member that has
 * learned exactly as much as the longest has nothing behind a gap that would
 * help: it lacks the next slot, and so do all.
 *
 * A verdict that is reached too early does no harm: it decides nothing, and is
 * reached anew in each turn from what is true then. An order to go on by force
 * comes after the ends of all other members, and each end is checked here
 * again.
 */
#include "paxos/halt/verdict.h"

#include "core/base/assert.h"
#include "paxos/mutant.h"

/* Which of two that have learned equally much goes on: one that may lead. */
static bool is_better(const struct qn_verdict_member *m,
                      const struct qn_verdict_member *than)
{
    return m->votes != than->votes ? m->votes : than->late;
}

static void longest_find(const struct qn_verdict_in *in, struct qn_verdict *v)
{
    bool found = false;
    for (qn_node_t i = 0; i < in->nodes; i++) {
        const struct qn_verdict_member *m = &in->member[i];
        bool more =
            !found || m->learned > v->kept ||
            (m->learned == v->kept && is_better(m, &in->member[v->longest]));
        if (m->lives && more) {
            v->longest = i;
            v->kept = m->learned;
            found = true;
        }
    }
}

/* What it may hold is not known yet. A snapshot helps if the ring goes on
 * behind it. */
static bool may_have_more(const struct qn_verdict *v,
                          const struct qn_verdict_member *m)
{
    bool unread = !m->late && !m->heard && !QN_MUTANT(VERDICT_UNREAD);
    return m->lives && (m->coming + 1 >= v->lo || unread);
}

/* The member is behind: it takes what the longest gives it. Only its own
 * report counts. */
static bool is_behind(const struct qn_verdict *v,
                      const struct qn_verdict_member *m)
{
    return m->lives && !m->late && m->learned != v->kept &&
           !QN_MUTANT(VERDICT_BEHIND);
}

static uint64_t mask_of(const struct qn_verdict_in *in,
                        const struct qn_verdict *v,
                        bool (*is)(const struct qn_verdict *,
                                   const struct qn_verdict_member *))
{
    uint64_t mask = 0;
    for (qn_node_t i = 0; i < in->nodes; i++) {
        mask |= (uint64_t)is(v, &in->member[i]) << i;
    }
    return mask;
}

struct qn_verdict qn_verdict_find(const struct qn_verdict_in *in)
{
    struct qn_verdict v = {.lo = in->lo, .hi = in->hi};
    QN_ASSERT(in->nodes <= QN_NODES_MAX);
    if (!in->ended) {
        return (struct qn_verdict){0};
    }
    longest_find(in, &v);
    if (v.kept + 1 >= in->lo) {
        return (struct qn_verdict){0};
    }
    v.awaited = mask_of(in, &v, may_have_more);
    if (v.awaited == 0) {
        v.awaited = mask_of(in, &v, is_behind);
        v.awaited |= v.awaited != 0 ? UINT64_C(1) << v.longest : 0;
    }
    QN_ASSERT(v.longest < in->nodes);
    QN_ASSERT(v.kept + 1 < v.lo); /* a slot between them is lost */
    v.kind = v.awaited != 0 ? QN_VERDICT_WAITING : QN_VERDICT_STOPPED;
    return v;
}
