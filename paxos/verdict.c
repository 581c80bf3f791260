/*
 * The verdict: see the header.
 *
 * Why all must have learned equally much: A has learned slots <= 100, B those
 * <= 50 and, behind its gap, 101 to 200; the ring begins at 150. A has nothing
 * to give but what B lacks, and then B has all. Who has learned exactly as much
 * as the longest has nothing behind a gap that would help: the next slot is
 * what he lacks, and so do all.
 *
 * A verdict that comes too early does no harm: it decides nothing, and is found
 * anew in each turn from what is true then. An order to go on by force comes
 * after the ends of all others, which each are found here again.
 */
#include "paxos/verdict.h"

#include "core/base/assert.h"

static void longest_find(const struct qn_verdict_in *in, struct qn_verdict *v)
{
    bool found = false;
    for (qn_node_t i = 0; i < in->nodes; i++) {
        const struct qn_verdict_member *m = &in->member[i];
        if (m->lives && (!found || m->learned > v->kept)) {
            v->longest = i;
            v->kept = m->learned;
            found = true;
        }
    }
}

/* A snapshot helps if the ring goes on behind it. */
static bool is_awaited(const struct qn_verdict *v,
                       const struct qn_verdict_member *m)
{
    return m->lives && (m->coming + 1 >= v->lo ||
                        (!m->late && (!m->heard || m->learned != v->kept)));
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
    for (qn_node_t i = 0; i < in->nodes; i++) {
        if (is_awaited(&v, &in->member[i])) {
            v.awaited |= UINT64_C(1) << i;
        }
    }
    v.kind = v.awaited != 0 ? QN_VERDICT_WAITING : QN_VERDICT_STOPPED;
    return v;
}
