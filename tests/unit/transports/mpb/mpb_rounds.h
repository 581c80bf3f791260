#ifndef QN_TESTS_UNIT_MPB_ROUNDS_H
#define QN_TESTS_UNIT_MPB_ROUNDS_H

/** Broadcasts in which all nodes take part, one after the other, each node at a
 *  pace that a seed chooses, in one thread: what OC-Bcast and its rivals are
 *  tested with. */

#include "tests/unit/transports/mpb/mpb_world.h"

#define MPB_ROUND_BYTES 1200u /* of the longest broadcast */

struct mpb_round {
    qn_node_t root;
    uint32_t len;
    bool together; /* all are through with the one before when it begins */
};

struct mpb_rounds {
    struct mpb_world *w; /* kept; closed at the end */
    uint64_t seed;
    const struct mpb_round *round;
    uint32_t count; /* of them */
    int (*begin)(qn_node_t i, qn_node_t root, void *bytes, uint32_t len);
    int (*step)(qn_node_t i);
    bool (*late)(qn_node_t i, uint32_t step); /* NULL: none is */
    void (*together)(void);                   /* all are; or NULL */
};

/** @return NULL, or what went wrong. */
const char *mpb_rounds_run(const struct mpb_rounds *r);

#endif
