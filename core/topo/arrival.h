#ifndef QN_CORE_TOPO_ARRIVAL_H
#define QN_CORE_TOPO_ARRIVAL_H

/** Messages on their way up, in the order in which a core receives them: by
 *  the time when they are visible, ties by the sender. Pure, any thread. */

#include <stdint.h>

struct qn_arrival {
    double visible; /* cycles */
    uint32_t from;
};

/** For qsort. */
static inline int qn_arrival_order(const void *a, const void *b)
{
    const struct qn_arrival *x = a, *y = b;
    if (x->visible != y->visible) {
        return x->visible < y->visible ? -1 : 1;
    }
    return x->from < y->from ? -1 : 1;
}

#endif
