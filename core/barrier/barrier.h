#ifndef QN_BARRIER_BARRIER_H
#define QN_BARRIER_BARRIER_H

/**
 * Barriers on shared lines, in memory of the caller: no member leaves an
 * episode before all have entered it.
 *
 *     const struct qn_barrier_opts opts = {.members = 4, .cores = 2};
 *     bytes = qn_barrier_bytes(&opts);
 *     memory = aligned_alloc(QN_CACHELINE, bytes);
 *     qn_barrier_format(memory, bytes, &opts);    once, alone
 *     qn_barrier_join(memory, member, &me);       each thread, once
 *     qn_barrier_wait(&me);                       any number of times
 *     qn_barrier_leave(&me);
 *
 * | form          | of n members, lines moved | one behind the other       |
 * |---------------|---------------------------|----------------------------|
 * | central       | n, and one to n           | n: all want one line       |
 * | dissemination | n log2(n)                 | log2(n), rounded up        |
 * | mcs           | 2 (n - 1)                 | log4(n) up and log2(n) down |
 * | tree          | 2 (n - 1)                 | as the tree that is given  |
 *
 * Without a name it is central up to QN_BARRIER_CENTRAL members, and where
 * there are more members than cores: each passes it by one operation, whichever
 * comes last, while in the others a member waits for others in turn, each of
 * which must get a core first. Else it is dissemination; or tree, if there is
 * one. core/barrier/selection chooses by the prices of a machine, and
 * core/barrier/measured by what the members measure when they join.
 *
 * A member is one thread. wait belongs to it; join and leave are any thread's,
 * between two episodes of that member, while others may be within one: a seat
 * may go from thread to thread, but their number does not change.
 * What is shared is shared by indices, so processes may map the memory at
 * different addresses. A member that ends, or never comes, holds up all others
 * for ever: a barrier of queuepairs (core/coll) notices, this one does not. Not
 * in signal handlers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/topo/shape.h"
#include "core/wait/baton.h"

#define QN_BARRIER_MEMBERS_MAX 1024u
/** Members up to which a central barrier is the fastest on own cores. */
#define QN_BARRIER_CENTRAL     4u

struct qn_barrier_form;
struct qn_barrier_memory;

/** All zero but for members: the barrier chooses. */
struct qn_barrier_opts {
    const char *form; /* its name, borrowed; NULL: what suits the rest */
    uint32_t members; /* 1 .. QN_BARRIER_MEMBERS_MAX */
    const struct qn_shape *tree; /* of the form `tree`, over members: borrowed.
                       NULL: two children each, in the order of members */
    uint32_t cores; /* that the members run on; 0: as many as the affinity mask
                       of the thread that formats it has */
    bool own_cores; /* each member has a core of its own, for as long as it is
                       one: it looks on and does not sleep */
};

/** A member. Private to its thread; fields are private but for `waits`, which
 *  its thread reads. QN_CACHELINE aligned: malloc is not enough. */
struct qn_barrier_member {
    /* In a line of its own, wherever members lie side by side: it changes in
     * each episode. */
    alignas(QN_CACHELINE) const struct qn_barrier_form *form;
    struct qn_barrier_memory *memory; /* shared, kept */
    uint32_t member;                  /* its number, in [0, members) */
    uint32_t members;
    uint32_t flags;    /* of each member */
    uint32_t episode;  /* that it has entered, from 1; wraps */
    bool own_cores;    /* as the options said */
    bool shared_cores; /* there are more members than cores */
    bool slice_before; /* its last yields took a time slice */
    /* Of its place in the tree: */
    uint32_t parent; /* of the root: itself */
    uint32_t children, first_child, last_child;
    uint32_t blind; /* waits that yield without a look, before the next look */
    uint32_t blind_next;   /* as it was set last */
    qn_time_t yields_from; /* ns, monotonic: before that it parks instead */
    struct qn_wait_stats waits;
};

/** A kind of barrier. Call it by the functions below. */
struct qn_barrier_form {
    const char *name;
    void (*wait)(struct qn_barrier_member *me);
};

/** All of them; NULL at the end. */
extern const struct qn_barrier_form *const qn_barrier_forms[];

/** @return whether members share cores: there are more members than cores, and
 *  none was promised one of its own. Any thread; it may ask for the affinity
 *  mask of the caller. */
bool qn_barrier_shares_cores(const struct qn_barrier_opts *opts);

/** @return bytes of a barrier, a multiple of QN_CACHELINE; 0: opts are out of
 *  range, or there is no form of that name. Pure. */
size_t qn_barrier_bytes(const struct qn_barrier_opts *opts);

/**
 * Make a barrier of the memory. Runs alone.
 *
 * @param memory  QN_CACHELINE aligned. What it held before does not matter.
 * @param bytes   Of the memory.
 * @return QN_OK; QN_EINVAL: opts are out of range, or there is no form of that
 *         name; QN_EMSGSIZE: fewer bytes than qn_barrier_bytes says.
 */
int qn_barrier_format(void *memory, size_t bytes,
                      const struct qn_barrier_opts *opts);

/**
 * Become a member. One that has left may be followed by another thread, which
 * goes on where it was.
 *
 * @param memory  Shared, kept until qn_barrier_leave.
 * @param member  In [0, members).
 * @param me      Filled.
 * @return QN_OK; QN_EINVAL: no such member, or no barrier of this version of
 *         the library; QN_EBUSY: the member has joined and not left.
 */
int qn_barrier_join(void *memory, uint32_t member,
                    struct qn_barrier_member *me);

/** Another thread may be this member from now on. Not within an episode. */
void qn_barrier_leave(struct qn_barrier_member *me);

/** The form's name, as it was chosen. */
const char *qn_barrier_form_name(const struct qn_barrier_member *me);

/** Enter the next episode, and wait until all members have entered it. What
 *  each did before is visible behind it. Blocking. */
static inline void qn_barrier_wait(struct qn_barrier_member *me)
{
    me->episode++;
    me->form->wait(me);
}

#endif
