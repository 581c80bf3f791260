#ifndef QN_LOADGEN_TOPO_MODEL_SURVEY_H
#define QN_LOADGEN_TOPO_MODEL_SURVEY_H

/**
 * All machines of a folder, all topologies, all operations, groups of every
 * size: what is predicted, and how far from the planner's it is.
 *
 * A group of size g is the first g of a machine's cores dealt round robin over
 * its memory nodes (cores.h). Groups are shared among threads; the result does
 * not depend on how many.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "loadgen/topo/model/contender.h"

#define QN_SURVEY_TOPOS    24u
#define QN_SURVEY_GOALS    6u /* broadcast to throughput */
#define QN_SURVEY_MACHINES 256u

/** The first two rows: planned with a free root, and from the first core. */
enum { QN_SURVEY_AUTO, QN_SURVEY_AUTO_FIRST, QN_SURVEY_OTHERS };

struct qn_survey_group {
    uint32_t machine;                              /* index */
    uint32_t size;                                 /* cores */
    double cost[QN_SURVEY_TOPOS][QN_SURVEY_GOALS]; /* cycles; NAN: not its
                                                      operation */
};

struct qn_survey_opts {
    const char *folder;         /* of machines, or one machine */
    const char *sizes;          /* "2,4,8-16", "full"; NULL: all from 2 */
    uint32_t threads;           /* at least 1 */
    bool live;                  /* a line of progress on stderr */
    struct qn_contender_opts o; /* goal and root are set here */
};

struct qn_survey {
    uint32_t machines;
    struct qn_machine *machine[QN_SURVEY_MACHINES]; /* by file name */
    uint32_t topos;
    const char *topo[QN_SURVEY_TOPOS]; /* names */
    uint32_t groups;
    struct qn_survey_group *group; /* [groups] by machine, then size */
    double seconds;                /* that planning took */
    uint32_t threads;
};

/**
 * @param out    Filled; freed by qn_survey_destroy.
 * @param fault  Filled on failure.
 * @return QN_OK; QN_ENOENT (no machine there), QN_EINVAL (a file or `sizes`),
 *         QN_EIO, QN_EMSGSIZE, QN_ENOMEM.
 */
int qn_survey_run(struct qn_survey **out, const struct qn_survey_opts *o,
                  struct qn_parse_error *parse_error);

/** NULL is allowed. */
void qn_survey_destroy(struct qn_survey *s);

/** Is the topology a static tree from the first core? */
bool qn_survey_is_static(const struct qn_survey *s, uint32_t topo);

/**
 * Geometric mean of a topology's cost over that of `auto`.
 *
 * @param machine  Index; UINT32_MAX: each machine counts once.
 * @param size     Cores; 0: all sizes; UINT32_MAX: whole machines only.
 * @return NAN if there is none.
 */
double qn_survey_times(const struct qn_survey *s, uint32_t topo, uint32_t goal,
                       uint32_t machine, uint32_t size);

/** The same of the best static tree of each group over row `than`. */
double qn_survey_gain(const struct qn_survey *s, uint32_t than, uint32_t goal,
                      uint32_t size);

/** The tables. */
void qn_survey_write_text(const struct qn_survey *s, FILE *to);

/** machine,cores,size,topology,op,cycles,times_auto: a line per number. */
void qn_survey_write_csv(const struct qn_survey *s, FILE *to);

#endif
