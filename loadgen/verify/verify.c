#include "loadgen/verify/verify.h"

#include "core/base/err.h"
#include "loadgen/verify/explain/explain.h"
#include "loadgen/verify/explain/timeline.h"
#include "loadgen/verify/history/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * Checks one key at a time in one buffer, so that memory beyond the history is
 * that of the largest key.
 */

struct run {
    const struct qn_history *h;
    const struct qn_verify_opts *opts;
    struct qn_record *records; /* records of the present key */
    struct qn_verify_result result;
};

/* Maximum of keys that are named; the rest is counted. */
enum { NAMED_MAX = 20 };

static uint64_t largest_key(const struct qn_history *h)
{
    uint64_t max = 0;
    for (uint64_t i = 0; i < h->key_count; i++) {
        max = h->key[i].count > max ? h->key[i].count : max;
    }
    return max;
}

static void name(const struct run *r, uint64_t i, const char *what)
{
    char key[12];
    qn_record_key_text(r->h->key[i].key, key);
    if (r->opts->report != NULL) {
        fprintf(r->opts->report, "%s: %s (%" PRIu64 " operations)\n", key, what,
                r->h->key[i].count);
    }
}

static int draw(struct run *r, const struct qn_witness *w)
{
    if (r->opts->svg == NULL || r->result.svg_written) {
        return QN_OK;
    }
    bool standard = strcmp(r->opts->svg, "-") == 0;
    FILE *f = standard ? stdout : fopen(r->opts->svg, "we");
    if (f == NULL) {
        return QN_EIO;
    }
    int err = qn_timeline_svg(f, w);
    if ((standard ? fflush(f) : fclose(f)) != 0 && err == QN_OK) {
        err = QN_EIO;
    }
    r->result.svg_written = err == QN_OK;
    return err;
}

static int explain(struct run *r, uint64_t i,
                   const struct qn_linear_result *found)
{
    struct qn_witness w;
    int err =
        qn_explain(r->records, r->h->key[i].count, found, &r->opts->linear, &w);
    if (err != QN_OK) {
        return err;
    }
    if (r->opts->report != NULL) {
        err = qn_timeline_text(r->opts->report, &w);
    }
    if (err == QN_OK) {
        err = draw(r, &w);
    }
    qn_witness_fini(&w);
    return err;
}

static int check_key(struct run *r, uint64_t i)
{
    struct qn_linear_result found;
    uint64_t n = r->h->key[i].count;
    qn_history_records(r->h, i, r->records);
    for (uint64_t k = 0; k < n; k++) {
        r->result.unknown += r->records[k].outcome == QN_RECORD_UNKNOWN;
    }
    int err = qn_linear_check(r->records, n, &r->opts->linear, &found);
    if (err != QN_OK || found.verdict == QN_LINEARIZABLE) {
        return err;
    }
    if (found.verdict == QN_LINEAR_UNDECIDED) {
        if (r->result.undecided++ < NAMED_MAX) {
            name(r, i, "undecided: the budget of steps or memory was used up");
        }
        return QN_OK;
    }
    if (r->result.violations++ < r->opts->explained_max) {
        return explain(r, i, &found);
    }
    if (r->result.violations <= NAMED_MAX) {
        name(r, i, "not linearizable");
    }
    return QN_OK;
}

int qn_verify(const struct qn_history *h, const struct qn_verify_opts *opts,
              struct qn_verify_result *out)
{
    struct run r = {.h = h, .opts = opts};
    r.records = malloc((largest_key(h) + 1) * sizeof *r.records);
    int err = r.records == NULL ? QN_ENOMEM : QN_OK;
    for (uint64_t i = 0; i < h->key_count && err == QN_OK; i++) {
        err = check_key(&r, i);
    }
    free(r.records);
    if (err == QN_OK) {
        r.result.records = h->count;
        r.result.keys = h->key_count;
        *out = r.result;
    }
    return err;
}

int qn_verify_status(const struct qn_verify_result *r)
{
    return r->violations > 0 ? 3 : r->undecided > 0 ? 4 : 0;
}

const char *qn_verify_name(const struct qn_verify_result *r)
{
    return r->violations > 0  ? "not linearizable"
           : r->undecided > 0 ? "undecided"
                              : "linearizable";
}

void qn_verify_print(FILE *out, const struct qn_verify_result *r)
{
    static const char *const verdict[] = {
        [0] = "linearizable", [3] = "NOT linearizable", [4] = "UNDECIDED"};
    fprintf(out,
            "%s: %" PRIu64 " operations (%" PRIu64 " without an answer) on "
            "%" PRIu64 " keys; violations on %" PRIu64 ", undecided %" PRIu64
            "\n",
            verdict[qn_verify_status(r)], r->records, r->unknown, r->keys,
            r->violations, r->undecided);
}
