#ifndef QN_BARRIER_MEASURED_MEASURED_BARRIER_H
#define QN_BARRIER_MEASURED_MEASURED_BARRIER_H

/**
 * A barrier whose form is chosen by what its members measure when they join.
 *
 *     const struct qn_barrier_opts opts = {.members = 8};
 *     bytes = qn_measured_barrier_bytes(&opts);
 *     memory = aligned_alloc(QN_CACHELINE, bytes);
 *     qn_measured_barrier_format(memory, bytes, &opts);      once, alone
 *     qn_measured_barrier_join(memory, member, NULL, &me);   each thread, once
 *     qn_barrier_wait(&me), qn_barrier_leave(&me)            as of any barrier
 *
 * Each two members pass dissemination barriers of two, an episode of which
 * takes one transfer: pairs that have no member in common at the same time, in
 * members - 1 rounds. By these prices member 0 calls qn_barrier_select. Prices
 * say nothing of episodes one behind the other, so all then pass the barrier
 * that is selected and the one that they had without prices, 3 batches of 10
 * episodes each in turn, and keep the faster one by member 0's clock. Between
 * these steps they meet at a central barrier.
 *
 * A pair passes 10 batches of 10 episodes; its price is the shortest batch.
 * It ends earlier if it takes longer than QN_MEASURED_PAIR_NS, so a member that
 * stalls costs little more than its stall. One that ends in it, or never comes,
 * holds up all others for ever, as at any barrier of core/barrier.
 *
 * Members that share cores measure nothing: they have the form for those
 * (central). Nor do more than QN_MEASURED_MEMBERS_MAX members.
 *
 * Works between processes that map the memory at different addresses. Not in
 * signal handlers.
 */

#include "core/barrier/barrier.h"
#include "core/base/clock.h"

/** Prices are a matrix, and a tree of many takes long to plan (0.1 s of 256).
 */
#define QN_MEASURED_MEMBERS_MAX 256u
/** A pair begins no batch behind that. */
#define QN_MEASURED_PAIR_NS     QN_MS

/** What a member reads the time from. */
struct qn_measured_clock {
    qn_time_t (*now)(void *ctx); /* ns; does not go back */
    void *ctx;
};

/** @return bytes, a multiple of QN_CACHELINE; 0: opts are out of range, or name
 *  a form or a tree. 960 bytes for each member and 8 for each two beside three
 *  times qn_barrier_bytes. Pure. */
size_t qn_measured_barrier_bytes(const struct qn_barrier_opts *opts);

/**
 * Make it of the memory. Runs alone.
 *
 * @param memory  QN_CACHELINE aligned. What it held before does not matter.
 * @param opts    Without form and tree: the barrier chooses.
 * @return QN_OK; QN_EINVAL: opts are out of range, or name a form or a tree;
 *         QN_EMSGSIZE: fewer bytes than qn_measured_barrier_bytes says.
 */
int qn_measured_barrier_format(void *memory, size_t bytes,
                               const struct qn_barrier_opts *opts);

/**
 * Become a member. The first time it blocks until all members have joined and
 * measured. One that has left by qn_barrier_leave may be followed by another
 * thread, which joins at once.
 *
 * @param memory  Shared, kept until qn_barrier_leave.
 * @param member  In [0, members).
 * @param clock   For the measurement, borrowed; NULL: qn_clock_now.
 * @param me      Filled: a member of the barrier that was chosen.
 * @return QN_OK; QN_EINVAL: no such member, or no barrier of this version of
 *         the library; QN_EBUSY: the member has joined and not left.
 *
 * Member 0 allocates and frees, and has 100 KB of stack; without memory the
 * form is that of qn_barrier_format without prices.
 */
int qn_measured_barrier_join(void *memory, uint32_t member,
                             const struct qn_measured_clock *clock,
                             struct qn_barrier_member *me);

#endif
