#ifndef QN_TESTS_SIM_EXPLORE_ORDERS_H
#define QN_TESTS_SIM_EXPLORE_ORDERS_H

/**
 * Mutants of memory orders (core/sim/explore/weaken.h): every ordered operation
 * of some files made weaker, one at a time, against a set of explorations.
 */

#include <stdbool.h>
#include <stdint.h>

/** Mutants that no exploration finds, and why the order is what it is. */
struct unfound {
    const char *prefix; /* of their names: "publish store 1: release to ..." */
    uint32_t mutants;
    const char *why;
};

struct orders {
    const char *const *files; /* parts of names, NULL at the end */
    /** Explore in C11 within bounds number `level`, from 0.
     *  @return true: a fault was found. */
    bool (*explore)(uint32_t level);
    uint32_t levels;
    const struct unfound *unfound; /* prefix NULL at the end */
    uint32_t least;                /* mutants, at least */
    /** Parts of lines of `files` with an ordered operation that no exploration
     *  comes to, NULL at the end: all others are judged. NULL: that is not
     *  checked. */
    const char *const *unreached;
};

/** Try all mutants, each in a process of its own, which may abort: that is
 *  found, too. Those not found must be those in `unfound`, in that number;
 *  they are searched with one level less, or with QN_ORDERS_ALL with all.
 *  QN_SHOW_ORDERS prints the verdicts. */
void orders_judge(const struct orders *o);

/** The operations of `func` all at once, each as weak as can be or, if `half`,
 *  as acquire and release: is it found? */
bool orders_function_is_found(const struct orders *o, const char *const *func,
                              bool half);

#endif
