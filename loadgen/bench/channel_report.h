#ifndef QN_LOADGEN_BENCH_CHANNEL_REPORT_H
#define QN_LOADGEN_BENCH_CHANNEL_REPORT_H

/** What `quoin bench channel` has measured over one transport, and how it is
 *  told: a line on stderr and an object of JSON each. One thread. */

#include <jansson.h>
#include <stdint.h>

#include "core/node.h"
#include "loadgen/bench/channel.h"

#define QN_CHANNEL_TURNS_MAX 1000u
#define QN_CHANNEL_FORMS_MAX 8u

struct qn_channel_results {
    /* ns per operation; [t][0] is unused, since form 0 is the probe. */
    double ns[QN_CHANNEL_TURNS_MAX][QN_CHANNEL_FORMS_MAX];
    /* [t][f], [t][f + 1]: ns of the probes around form f. */
    double probe[QN_CHANNEL_TURNS_MAX][QN_CHANNEL_FORMS_MAX + 1];
    uint32_t turns;
    uint64_t
        trips[QN_NODES_MAX]; /* blocking form: by the first node of the pair */
    double seconds[QN_NODES_MAX];
    uint64_t cpu_ns[QN_NODES_MAX]; /* likewise: of each node */
    uint64_t checksum;
};

/** Form number `i`: medians over the turns; its ratio over those whose probes
 *  are on one level. @return a new object. */
json_t *qn_channel_report_form(const struct qn_channel_results *r, uint32_t i);

/** The blocking form with `nodes` nodes. @return a new object. */
json_t *qn_channel_report_pairs(const struct qn_channel_results *r,
                                uint32_t nodes, const char *kind);

#endif
