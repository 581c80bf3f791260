#ifndef QN_CORE_DISCOVER_TOPOLOGY_INTERNAL_H
#define QN_CORE_DISCOVER_TOPOLOGY_INTERNAL_H

/** What the readers of topologies share: units, made into a machine. */

#include "core/machine/machine.h"

#define QN_NODE_UNKNOWN UINT32_MAX

/** A processing unit and the objects that it belongs to, each by any number
 *  that no other object has. */
struct qn_unit {
    uint32_t os;     /* operating system number */
    uint32_t node;   /* of the operating system; QN_NODE_UNKNOWN */
    uint64_t phys;   /* core; the unit itself if there is none */
    uint64_t cache;  /* largest data cache above; else package, else machine */
    uint64_t socket; /* package; else machine */
};

/**
 * A machine without costs, numbered and named.
 *
 * @param unit  [count] In any order; sorted. count is 0 .. QN_CORES_MAX.
 * @param cpu   Model of the processor, any text; may be empty.
 * @return QN_OK; QN_EINVAL (no unit, a number twice or too large), QN_ENOMEM,
 *         fault filled.
 */
int qn_units_to_machine(struct qn_machine **out, struct qn_unit *unit,
                        uint32_t count, const char *cpu, const char *file,
                        struct qn_parse_error *parse_error);

#endif
