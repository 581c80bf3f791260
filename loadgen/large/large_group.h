#ifndef QN_LOADGEN_LARGE_GROUP_H
#define QN_LOADGEN_LARGE_GROUP_H

/**
 * Where the members of one group run, and which variant of an operation they
 * take there, and why: by the prices of a described machine, or by the NUMA
 * regions alone. One thread.
 */

#include "core/coll/large/large_predict.h"
#include "core/node.h"
#include "core/place/place.h"

#define QN_LARGE_WHY_MAX 160u

struct qn_large_group {
    uint32_t members;
    bool push;   /* members write each other's memory */
    bool shares; /* a machine was given, and members share cores */
    uint32_t core[QN_NODES_MAX]; /* CPU of each */
    struct qn_large_place place[QN_NODES_MAX];
    struct qn_machine *m; /* of the members; NULL: no prices for them. Owned */
    struct qn_large_choices choices; /* with m */
};

/**
 * @param g        Filled; ended by qn_large_group_fini.
 * @param machine  Whose prices decide, by the numbers of the cores; NULL:
 *                 none. Borrowed. Not used where members share cores: copies
 *                 that take turns on a core are not predicted.
 * @return QN_OK; QN_ENOENT: the machine lacks a core; QN_ENOMEM.
 */
int qn_large_group_make(struct qn_large_group *g, const struct qn_places *p,
                        const struct qn_machine *machine, uint32_t members,
                        bool push);

void qn_large_group_fini(struct qn_large_group *g);

/** What qn_large_run takes without a name. */
const struct qn_large_variant *qn_large_group_variant(
    const struct qn_large_group *g, enum qn_large_operation op, uint64_t bytes);

/** Why: one line without an end. @param why  [QN_LARGE_WHY_MAX] filled. */
void qn_large_group_why(const struct qn_large_group *g,
                        enum qn_large_operation op, uint64_t bytes, char *why);

#endif
