#ifndef QN_LOADGEN_BARRIER_TABLE_H
#define QN_LOADGEN_BARRIER_TABLE_H

/** Rows of `quoin bench barrier`: a line of the table on stderr, and a JSON
 *  object. One thread. */

#include <jansson.h>
#include <stdint.h>

#include "loadgen/barrier/barrier_team.h"
#include "loadgen/base/median.h"

struct qn_barrier_row {
    const char *name;
    struct qn_barrier_team *team;
    uint32_t subject;
    uint64_t count;      /* barriers of a round; 0: it is not measured */
    const char *refused; /* why; NULL: it takes too long */
    double once;         /* ns of the first barrier */
    uint32_t rounds;
    double ns[QN_MEDIAN_VALUES_MAX];    /* of a barrier, by round */
    double ratio[QN_MEDIAN_VALUES_MAX]; /* to the first row in that round */
};

/** Print the heading of a group. */
void qn_barrier_table_head(uint32_t members, const char *kind,
                           const char *first);

/** Print a row, whose values are sorted. @return its object. */
json_t *qn_barrier_table_row(struct qn_barrier_row *r);

#endif
