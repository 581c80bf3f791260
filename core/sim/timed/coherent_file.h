#ifndef QN_SIM_TIMED_COHERENT_FILE_H
#define QN_SIM_TIMED_COHERENT_FILE_H

/**
 * What a coherent machine charges beside its pair costs: `prices.json` in the
 * folder of the machine.
 *
 *     {"format": "quoin-prices", "version": 1, "clock_ghz": 2.13,
 *      "parameters": {
 *       "hit": {"value": 4, "unit": "cycles", "source": "documented",
 *               "note": "a load that hits the first level cache"}}}
 *
 * parameter.h says what a parameter is. Each of the list must be there. A
 * description is immutable once read.
 */

#include "core/sim/timed/coherent.h"
#include "core/sim/timed/parameter.h"

/* X(enumerator, name in files, unit, may it be 0?): the options of struct
 * qn_coherent_opts, and what programs compute. */
#define QN_COHERENT_FILE_MAP(X)                                                \
    X(HIT, "hit", "cycles", false)                                             \
    X(RMW, "rmw", "cycles", false)                                             \
    X(FENCE, "fence", "cycles", false)                                         \
    X(CLOCK, "clock", "cycles", false)                                         \
    X(SHARED, "shared_store", "share", true)                                   \
    X(SHARED_LEAST, "shared_store_least", "cycles", true)                      \
    X(PREFETCH, "prefetch", "share", true)                                     \
    X(AHEAD, "prefetch_ahead", "lines", false)                                 \
    X(MEMORY, "memory", "cycles", false)                                       \
    X(STREAMS, "streams", "lines", false)                                      \
    X(WATCHED, "watched", "factor", false)                                     \
    X(HYPER, "hyper_threads", "switch", true)                                  \
    X(DISPATCH, "dispatch", "cycles", true)   /* of a delegated operation */   \
    X(INCREMENT, "increment", "cycles", true) /* one more of an array */       \
    X(TURN, "empty_turn", "cycles", true)     /* of a loop that waits */

enum qn_coherent_file_parameter {
#define X(id, name, unit, zero) QN_COHERENT_FILE_##id,
    QN_COHERENT_FILE_MAP(X)
#undef X
        QN_COHERENT_FILE_PARAMETERS
};

struct qn_coherent_file {
    double clock_ghz;
    struct qn_parameter parameter[QN_COHERENT_FILE_PARAMETERS];
};

/** Read `prices.json` of a machine's folder. @return QN_OK; QN_ENOENT, QN_EIO,
 *  QN_EINVAL, QN_EMSGSIZE, QN_ENOMEM: then `parse_error` (may be NULL) says
 *  what to do. */
int qn_coherent_file_load(struct qn_coherent_file *out, const char *folder,
                          struct qn_parse_error *parse_error);

/** The same from memory; `file` is its name in faults. */
int qn_coherent_file_parse(struct qn_coherent_file *out, const char *file,
                           const char *bytes, size_t len,
                           struct qn_parse_error *parse_error);

/** Its options; what it does not name is 0. */
struct qn_coherent_opts qn_coherent_file_opts(const struct qn_coherent_file *f);

/** A parameter in cycles, as picoseconds. */
qn_ps_t qn_coherent_file_ps(const struct qn_coherent_file *f,
                            enum qn_coherent_file_parameter parameter);

#endif
