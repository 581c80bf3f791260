#ifndef QN_LOADGEN_VERIFY_CHECKER_FAILED_INTERNAL_H
#define QN_LOADGEN_VERIFY_CHECKER_FAILED_INTERNAL_H

/** What the search has tried in vain: a set of 128-bit hashes that only grows,
 *  up to a limit. One thread. */

#include <stdbool.h>
#include <stdint.h>

struct qn_failed_key {
    uint64_t a;
    uint64_t b;
};

struct qn_failed {
    struct qn_failed_key *slot; /* [mask + 1]; both 0: empty */
    uint64_t mask;
    uint64_t count;
    uint64_t count_max;
};

/** An empty set; takes no memory yet. */
void qn_failed_init(struct qn_failed *f, uint64_t count_max);
void qn_failed_fini(struct qn_failed *f);

bool qn_failed_has(const struct qn_failed *f, struct qn_failed_key key);

/** Add a key that is not there. @return QN_OK; QN_ENOMEM; QN_ERANGE if
 *  count_max are there. */
int qn_failed_add(struct qn_failed *f, struct qn_failed_key key);

#endif
