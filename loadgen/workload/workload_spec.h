#ifndef QN_LOADGEN_WORKLOAD_WORKLOAD_SPEC_H
#define QN_LOADGEN_WORKLOAD_WORKLOAD_SPEC_H

/**
 * A workload as the words of the options, completed by a named workload or the
 * defaults, and parsed.
 *
 *     name     mix                keys      key, value size
 *     (none)   get:80,set:20      uniform   16, 16
 *     ycsb-a   get:50,set:50      zipf:0.99 23, 1000
 *     ycsb-b   get:95,set:5       zipf:0.99
 *     ycsb-c   get                zipf:0.99
 *     ycsb-d   get:95,insert:5    latest
 *     ycsb-f   get:50,rmw:50      zipf:0.99
 *
 * YCSB: B. Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC
 * 2010, table 2 and its `workloads/`. A record of ten fields of 100 bytes is
 * one value here, and an update writes all of it.
 *
 * Pure, any thread.
 */

#include "loadgen/workload/workload.h"

#define QN_WORKLOAD_SPEC_ERROR_MAX                                             \
    240 /* bytes of an error text, including its 0 */

struct qn_workload_spec {
    const char *workload; /* a name of the table above, or NULL */
    const char *mix;      /* text for qn_mix_parse; NULL: that of the workload;
                             likewise below */
    const char *dist;     /* qn_dist_parse */
    const char *key_size; /* qn_sizes_parse */
    const char *value_size;
};

/**
 * Complete and parse.
 *
 * @param r      Members that are NULL, except `workload`, are set to the text
 *               that is used.
 * @param opts   mix, dist, key_size and value_size are filled; `keys` must be
 *               set: the keys must fit into key_size.
 * @param error  [error_size] Filled on failure: the option and what is wrong,
 *               with the nearest valid name; no newline.
 * @return QN_OK; QN_EINVAL.
 */
int qn_workload_spec_parse(struct qn_workload_spec *r,
                           struct qn_workload_opts *opts, char *error,
                           size_t error_size);

#endif
