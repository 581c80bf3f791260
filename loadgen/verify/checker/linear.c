#include "loadgen/verify/checker/linear.h"

#include "core/base/err.h"
#include "loadgen/verify/checker/model_internal.h"

/*
 * The two parts in turn: zones first, because a violation that two values
 * prove is found at once there, while a search would have to try every order.
 */

enum { RECORDS_MAX = 1 << 30 }; /* indices are 32 bits, slots twice as many */

static const struct qn_linear_opts defaults = {
    .steps_max = QN_LINEAR_STEPS_MAX,
    .failed_max = QN_LINEAR_FAILED_MAX,
};

static int judge(struct qn_model *m, const struct qn_linear_opts *opts,
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
    o.failed_max = o.failed_max != 0 ? o.failed_max : defaults.failed_max;
    struct qn_model m;
    struct qn_linear_result result = {.verdict = QN_LINEARIZABLE};
    int err = qn_model_init(&m, records, n, o.plain);
    if (err == QN_OK) {
        err = judge(&m, &o, &result);
        qn_model_fini(&m);
    }
    if (err == QN_OK) {
        *out = result;
    }
    return err;
}
