#include "loadgen/workload/workload_spec.h"

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/suggest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * The words are parsed after all options were read, so an option overrides the
 * named workload regardless of their order on the command line.
 */

static const struct qn_workload_spec defaults = {NULL, "get:80,set:20",
                                                 "uniform", "16", "16"};

/* Keys of YCSB: "user" and 19 digits. */
static const struct qn_workload_spec named[] = {
    {"ycsb-a", "get:50,set:50", "zipf:0.99", "23", "1000"},
    {"ycsb-b", "get:95,set:5", "zipf:0.99", "23", "1000"},
    {"ycsb-c", "get", "zipf:0.99", "23", "1000"},
    {"ycsb-d", "get:95,insert:5", "latest", "23", "1000"},
    {"ycsb-f", "get:50,rmw:50", "zipf:0.99", "23", "1000"},
};

static int find(const char *name, const struct qn_workload_spec **out,
                char *error, size_t error_size)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(named); i++) {
        if (strcmp(named[i].workload, name) == 0) {
            *out = &named[i];
            return QN_OK;
        }
    }
    const char *near = qn_suggest(name, &named[0].workload, sizeof named[0],
                                  QN_ARRAY_COUNT(named));
    if (strcmp(name, "ycsb-e") == 0 || near == NULL) {
        snprintf(error, error_size,
                 "--workload: unknown workload '%.40s'; use ycsb-a, ycsb-b, "
                 "ycsb-c, ycsb-d or ycsb-f",
                 name);
    } else {
        snprintf(error, error_size,
                 "--workload: unknown workload '%.40s'; did you mean '%s'?",
                 name, near);
    }
    return QN_EINVAL;
}

static void complete(const char **word, const char *with)
{
    if (*word == NULL) {
        *word = with;
    }
}

/* Put the name of the option before the text of its parser. */
static int refuse(const char *option, const char *what, char *error,
                  size_t error_size)
{
    snprintf(error, error_size, "--%s: %s", option, what);
    return QN_EINVAL;
}

static int parse_sizes(const struct qn_workload_spec *r,
                       struct qn_workload_opts *opts, char *error,
                       size_t error_size)
{
    char what[160];
    if (qn_sizes_parse(&opts->key_size, QN_SIZES_ETC_KEY, r->key_size,
                       QN_KEY_SIZE_MAX, what, sizeof what) != QN_OK) {
        return refuse("key-size", what, error, error_size);
    }
    if (qn_sizes_parse(&opts->value_size, QN_SIZES_ETC_VALUE, r->value_size,
                       QN_VALUE_SIZE_MAX, what, sizeof what) != QN_OK) {
        return refuse("value-size", what, error, error_size);
    }
    uint64_t least = qn_workload_key_size_min(opts);
    if (opts->key_size.max < least) {
        bool grows = qn_mix_weight(&opts->mix, QN_OP_INSERT) > 0;
        snprintf(error, error_size,
                 "--keys %" PRIu64 "%s needs --key-size %" PRIu64 " or more",
                 opts->keys, grows ? " with insert" : "", least);
        return QN_EINVAL;
    }
    return QN_OK;
}

int qn_workload_spec_parse(struct qn_workload_spec *r,
                           struct qn_workload_opts *opts, char *error,
                           size_t error_size)
{
    char what[160];
    const struct qn_workload_spec *base = &defaults;
    if (r->workload != NULL &&
        find(r->workload, &base, error, error_size) != QN_OK) {
        return QN_EINVAL;
    }
    complete(&r->mix, base->mix);
    complete(&r->dist, base->dist);
    complete(&r->key_size, base->key_size);
    complete(&r->value_size, base->value_size);
    if (qn_mix_parse(&opts->mix, r->mix, what, sizeof what) != QN_OK) {
        return refuse("mix", what, error, error_size);
    }
    if (qn_dist_parse(&opts->dist, r->dist, what, sizeof what) != QN_OK) {
        return refuse("dist", what, error, error_size);
    }
    return parse_sizes(r, opts, error, error_size);
}
