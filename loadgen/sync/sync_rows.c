#include "loadgen/sync/sync_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "loadgen/base/list.h"

/* Is `word` [len] a subject's name, or that with its family in front? */
static bool names(const char *word, size_t len, const struct qn_subject_name *n)
{
    const size_t family = strlen(n->type->family);
    if (len > family && word[family] == '/' &&
        memcmp(word, n->type->family, family) == 0) {
        word += family + 1;
        len -= family + 1;
    }
    return strlen(n->name) == len && memcmp(word, n->name, len) == 0;
}

/* Is it in a list with commas? NULL lists all. */
static bool listed(const char *list, const struct qn_subject_name *n)
{
    const char *word;
    size_t len;
    for (const char *at = list; qn_list_next(&at, &word, &len);) {
        if (names(word, len, n)) {
            return true;
        }
    }
    return list == NULL;
}

static int add_row(struct qn_sync_run *run, const struct qn_subject_name *n)
{
    struct qn_sync_row *r = calloc(1, sizeof *r);
    struct qn_histogram *ns = calloc(1, sizeof *ns);
    if (r == NULL || ns == NULL || run->rows == QN_SYNC_ROWS_MAX) {
        free(r);
        free(ns);
        return QN_ENOMEM;
    }
    r->subject = *n;
    r->ns = ns;
    run->row[run->rows++] = r;
    return QN_OK;
}

/* Does a command measure a family? The system's mutex goes with all. */
static bool measures(const char *command, const struct qn_subject_type *t,
                     bool simulated)
{
    const enum qn_subject_kind kind =
        strcmp(command, "queue") == 0   ? QN_SUBJECT_QUEUE
        : strcmp(command, "stack") == 0 ? QN_SUBJECT_STACK
                                        : QN_SUBJECT_COUNTER;
    return t->kind == kind &&
           (strcmp(t->family, command) == 0 ||
            (strcmp(t->family, "mutex") == 0 && !simulated) ||
            (strcmp(t->family, "counter") == 0 &&
             strcmp(command, "delegate") == 0));
}

int qn_sync_run_make(struct qn_sync_run *r, const char *command,
                     const char *only, bool simulated)
{
    const struct qn_subject_name yardstick = {&qn_subject_plain,
                                              qn_subject_plain.name(0)};
    int rc = add_row(r, &yardstick);
    for (uint32_t t = 0; rc == QN_OK && qn_subject_types[t] != NULL; t++) {
        const struct qn_subject_type *type = qn_subject_types[t];
        const char *name;
        for (uint32_t i = 0;
             rc == QN_OK && measures(command, type, simulated) &&
             (name = type->name(i)) != NULL;
             i++) {
            const struct qn_subject_name n = {type, name};
            if (listed(only, &n)) {
                rc = add_row(r, &n);
            }
        }
    }
    return rc;
}

/* In the order of the rounds they stay, since shares are of one round. */
static double median_rate(const struct qn_sync_row *r)
{
    double rate[QN_MEDIAN_VALUES_MAX];
    if (r->refused != QN_OK) {
        return 0;
    }
    memcpy(rate, r->rate, r->rounds * sizeof *rate);
    return qn_median_of(rate, r->rounds).median;
}

void qn_sync_run_compare(struct qn_sync_run *r)
{
    double median[QN_SYNC_ROWS_MAX];
    for (uint32_t i = 1; i < r->rows; i++) {
        median[i] = median_rate(r->row[i]);
    }
    for (uint32_t i = 1; i < r->rows; i++) {
        struct qn_sync_row *row = r->row[i];
        uint32_t best = 0;
        for (uint32_t k = 1; k < r->rows; k++) {
            const bool better = best == 0 || median[k] > median[best];
            best = k != i && median[k] > 0 && better ? k : best;
        }
        row->best = best != 0 ? r->row[best] : NULL;
        for (uint32_t k = 0; best != 0 && k < row->rounds; k++) {
            row->share[k] = row->rate[k] / r->row[best]->rate[k];
        }
    }
}

void qn_sync_run_free(struct qn_sync_run *r)
{
    for (uint32_t i = 0; i < r->rows; i++) {
        free(r->row[i]->ns);
        free(r->row[i]);
    }
    r->rows = 0;
}

int qn_sync_run_has(const struct qn_sync_run *r, const char *only,
                    const char *program)
{
    const char *word;
    size_t len;
    for (const char *at = only; qn_list_next(&at, &word, &len);) {
        bool found = false;
        for (uint32_t i = 1; i < r->rows; i++) {
            found = found || names(word, len, &r->row[i]->subject);
        }
        if (!found) {
            fprintf(stderr,
                    "%s: --only: there is no '%.*s' here; leave it out "
                    "to see all\n",
                    program, (int)len, word);
            return 2;
        }
    }
    return 0;
}
