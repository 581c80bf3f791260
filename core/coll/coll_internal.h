#ifndef QN_COLL_COLL_INTERNAL_H
#define QN_COLL_COLL_INTERNAL_H

/* What a member is made of. */

#include "core/coll/coll.h"
#include "core/coll/operations.h"

struct qn_coll {
    struct qn_operations *operations;
    struct qn_coll_lanes lanes;
    struct qn_doorbell *doorbell;
    struct qn_backoff_opts backoff;
    qn_node_t self;
    uint32_t window;
    bool views;     /* lanes may hold what was sent in earlier ones */
    bool has_lanes; /* not, if they could not be made for the last view */
    bool moved;     /* by the last poll */
};

#endif
