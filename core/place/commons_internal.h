#ifndef QN_PLACE_COMMONS_INTERNAL_H
#define QN_PLACE_COMMONS_INTERNAL_H

#include "core/place/commons.h"

/** Liveness word of `node`: {incarnation, futex}. See liveness.c. */
struct qn_pair *qn_commons_liveness(const struct qn_commons *c, qn_node_t node);

bool qn_commons_is_shared(const struct qn_commons *c);

/** True if this handle may write the pages of `node`. */
bool qn_commons_owns(const struct qn_commons *c, qn_node_t node);

/** Make the liveness word of another node writable for a moment, or read-only
 *  again. The thread of the handle; shared form. @return false: no memory. */
bool qn_commons_lend_liveness(struct qn_commons *c, qn_node_t node,
                              bool writable);

#endif
