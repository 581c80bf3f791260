#include "loadgen/verify/checker/linear.h"

#include "core/base/err.h"
#include "loadgen/verify/checker/model_internal.h"

/*
 * Runs the two parts in turn. Zones come first: they find a violation that two
 * values prove at once, where a search would have to try every order.
 */

enum {
    RECORDS_MAX = 1 << 30
}; /* indices have 32 bits, and there are up to twice as many slots */

static const struct qn_linear_opts defaults = {
    .steps_max = QN_LINEAR_STEPS_MAX,
    .visited_max = QN_LINEAR_VISITED_MAX,
};

static int check(struct qn_model *m, const struct qn_linear_opts *opts,
                 struct qn_linear_result *out)
{
    if (m->class == QN_MODEL_REGISTER) {
        int err = qn_zones_check(m, out);
        bool complete = !m->erases && !m->conditions;
        if (err != QN_OK || out->verdict == QN_NOT_LINEARIZABLE ||
            (complete && !opts->always_search)) {
            return err;
        }
    }
    return qn_search_check(m, opts, out);
}

int qn_linear_check(const struct qn_record *records, size_t n,
                    const struct qn_linear_opts *opts,
                    struct qn_linear_result *out)
{
    if (n > RECORDS_MAX) {
        return QN_EINVAL;
    }
    struct qn_linear_opts o = opts == NULL ? defaults : *opts;
    o.steps_max = o.steps_max != 0 ? o.steps_max : defaults.steps_max;
    o.visited_max = o.visited_max != 0 ? o.visited_max : defaults.visited_max;
    struct qn_model m;
    struct qn_linear_result result = {.verdict = QN_LINEARIZABLE};
    int err = qn_model_init(&m, records, n, o.plain);
    if (err == QN_OK) {
        err = check(&m, &o, &result);
        qn_model_fini(&m);
    }
    if (err == QN_OK) {
        *out = result;
    }
    return err;
}
