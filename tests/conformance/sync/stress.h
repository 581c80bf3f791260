#ifndef QN_TESTS_CONFORMANCE_SYNC_STRESS_H
#define QN_TESTS_CONFORMANCE_SYNC_STRESS_H

/**
 * One stress run of a subject (loadgen/sync/subject.h): threads operate on it
 * as a seed says, and all that they have seen is checked.
 *
 * A run draws threads, cores, how often clients leave and join, whether there
 * are as many places as threads, signals whose handler sleeps wherever a thread
 * is, or wherever one slow thread is, operations that sleep, how many additions
 * a thread has on their way at a server, the kind of a device of words, sizes
 * of batches, the number of values that fit, how often `auto` changes, and how
 * often a server is stopped and another one takes its place. In the end:
 *
 * - the history is linearizable, for a counter with the exact total;
 * - what was put and not taken is still there, each value once;
 * - each place can be taken again, and no more; a queue or a stack takes as
 *   many values as it should;
 * - results of one thread grow;
 * - all threads have ended: none sleeps for ever. A watch ends the process if
 *   no operation ends for STRESS_HANG_S, and says the seed and what each thread
 *   does.
 */

#include "loadgen/sync/subject.h"

#define STRESS_HANG_S 60
#define STRESS_TEXT   200

struct stress_plan {
    struct qn_subject_name subject;
    uint64_t seed;
    uint32_t operations; /* of all threads together, about */
    uint32_t hang_s;     /* 0: STRESS_HANG_S */
    const char *lock;    /* of delegates under one; NULL: the seed draws it */
    bool smallest;       /* rings of two cells, batches of one operation */
    bool own_cores;  /* a thread for each core, at most two, with that option: a
                        waiter costs its yields, so few operations */
    bool one_stalls; /* the first thread stops wherever it is, until all others
                        have ended: of subjects where it holds none up */
};

/** Two objects, one of which uses the other (subject_nested.c). */
extern const struct qn_subject_type stress_nested;

/** All families: those of loadgen/sync, and nested ones. @return the t-th; NULL
 *  past the last. */
const struct qn_subject_type *stress_type(uint32_t t);

/** Run it. @return NULL: all is well; else what is wrong, a constant text. */
const char *stress_run(const struct stress_plan *p);

/** A line that says what the seed has drawn. @param text  [STRESS_TEXT] Filled.
 */
void stress_describe(const struct stress_plan *p, char *text);

#endif
