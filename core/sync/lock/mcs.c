/*
 * The queue lock of Mellor-Crummey and Scott (1991). The lock's word is the
 * node of the last client in the queue, plus 1, or 0: free.
 *
 *     acquire   prepare the node; exchange the tail for it. If there was a
 *               predecessor: tell it the successor (link), wait for go
 *     release   if there is no successor yet: CAS the tail from the own node to
 *               0, or, when a successor has come, wait for the link; hand over
 *
 * Link and go are batons of one node, so a holder that waits for a link sleeps
 * on it, too: its successor may have lost its core in between.
 *
 * A node is used again as soon as its owner has handed over. Then its successor
 * has told the link, and all that may still come is a wake-up by address.
 */
#include "core/sync/lock/lock_internal.h"
#include "core/sync/lock/lock_mutant.h"

#define NONE 0u

static void prepare(struct qn_lock_node *n)
{
    qn_baton_init(&n->go);
    qn_baton_init(&n->link);
}

static void mcs_acquire(struct qn_lock_client *c)
{
    struct qn_lock_node *n = &c->nodes[c->node];
    struct qn_wait_stats *waits = &c->stats.waits;
    prepare(n);
    /* acquire -> the release of this exchange by the predecessor: its link is
     * prepared; or -> that of the holder which left the lock free. */
    const uint32_t before =
        qn_exchange(&c->memory->word, c->node + 1, QN_ACQ_REL);
    if (QN_LOCK_MUTANT(MCS_LATE)) {
        prepare(n);
    }
    if (before != NONE) {
        qn_baton_pass(&c->nodes[before - 1].link, QN_BATON_GO + c->node,
                      c->own_cores || QN_LOCK_MUTANT(MCS_SILENT_LINK), waits);
        (void)qn_baton_await(&n->go, c->own_cores, waits);
    }
}

static bool mcs_try(struct qn_lock_client *c)
{
    uint32_t seen = NONE;
    /* relaxed: the compare-and-swap decides. */
    if (qn_load(&c->memory->word, QN_RELAXED) != NONE) {
        return false;
    }
    prepare(&c->nodes[c->node]);
    if (QN_LOCK_MUTANT(MCS_TRY_STORES)) {
        qn_store(&c->memory->word, c->node + 1, QN_SEQ_CST);
        return true;
    }
    c->stats.cas++;
    /* acquire, release: as the exchange of mcs_acquire. */
    const bool taken = qn_cas(&c->memory->word, &seen, c->node + 1, QN_ACQ_REL);
    c->stats.cas_failed += !taken;
    return taken;
}

/* @return true: no client was behind this one. */
static bool leave_free(struct qn_lock_client *c)
{
    uint32_t seen = c->node + 1;
    c->stats.cas++;
    /* release -> the exchange of mcs_acquire, and the compare-and-swap of
     * mcs_try: what was done under the lock. */
    const bool done = qn_cas(&c->memory->word, &seen, NONE, QN_RELEASE);
    c->stats.cas_failed += !done;
    return done;
}

static void mcs_release(struct qn_lock_client *c)
{
    struct qn_lock_node *n = &c->nodes[c->node];
    struct qn_wait_stats *waits = &c->stats.waits;
    uint32_t next;
    if (!qn_baton_is_go(&n->link, &next)) {
        if (leave_free(c) || QN_LOCK_MUTANT(MCS_LEAVES)) {
            return;
        }
        next = qn_baton_await(&n->link, c->own_cores, waits);
    }
    qn_baton_pass(&c->nodes[next - QN_BATON_GO].go, QN_BATON_GO,
                  c->own_cores || QN_LOCK_MUTANT(MCS_NO_WAKE), waits);
}

const struct qn_lock_type qn_lock_mcs = {.name = "mcs",
                                         .fifo = true,
                                         .acquire = mcs_acquire,
                                         .release = mcs_release,
                                         .try_acquire = mcs_try,
                                         .acquire_until = qn_lock_untimed};
