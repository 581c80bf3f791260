#ifndef QN_LOADGEN_VERIFY_CHECKER_VISITED_STATES_INTERNAL_H
#define QN_LOADGEN_VERIFY_CHECKER_VISITED_STATES_INTERNAL_H

/** States that the search has visited without success: a set of 128-bit hashes
 *  that only grows, up to a limit. One thread. */

#include <stdbool.h>
#include <stdint.h>

struct qn_visited_key {
    uint64_t a;
    uint64_t b;
};

struct qn_visited_states {
    struct qn_visited_key *slot; /* [mask + 1]; both 0: empty */
    uint64_t mask;
    uint64_t count;
    uint64_t count_max;
};

/** Make an empty set; it takes no memory yet. */
void qn_visited_states_init(struct qn_visited_states *f, uint64_t count_max);
void qn_visited_states_fini(struct qn_visited_states *f);

bool qn_visited_states_has(const struct qn_visited_states *f,
                           struct qn_visited_key key);

/** Add a key that is not in the set. @return QN_OK; QN_ENOMEM; QN_ERANGE if it
 *  holds count_max keys. */
int qn_visited_states_add(struct qn_visited_states *f,
                          struct qn_visited_key key);

#endif
