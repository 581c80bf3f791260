/*
 * Barriers on shared lines beside those over topologies: the same machine, the
 * same prices. Each node has a core of its own and looks on.
 */
#include <math.h>
#include <string.h>
#include <time.h>

#include "core/barrier/selection/selection.h"
#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "loadgen/base/list.h"
#include "loadgen/simulate/barrier/shared_barrier.h"
#include "loadgen/simulate/command.h"

#define EPISODE_FACTOR 4.0 /* times the prediction: more than one takes */
#define EPISODE_LEAST  (100 * QN_US)

/* @return its number among qn_barrier_forms; QN_BARRIER_FORMS: there is none of
 * that name. */
static uint32_t form_named(const char *name, size_t len)
{
    uint32_t i = 0;
    while (i < QN_BARRIER_FORMS &&
           (strlen(qn_barrier_forms[i]->name) != len ||
            memcmp(qn_barrier_forms[i]->name, name, len) != 0)) {
        i++;
    }
    return i;
}

int qn_simulate_forms_check(const struct qn_simulate *s)
{
    const char *word;
    size_t len;
    for (const char *at = s->forms; qn_list_next(&at, &word, &len);) {
        if (form_named(word, len) == QN_BARRIER_FORMS) {
            fprintf(stderr, "%s: --form: unknown form '%.*s'; choose among ",
                    s->program, (int)len, word);
            for (uint32_t i = 0; i < QN_BARRIER_FORMS; i++) {
                fprintf(stderr, "%s%s", i > 0 ? ", " : "",
                        qn_barrier_forms[i]->name);
            }
            fputc('\n', stderr);
            return 2;
        }
    }
    return 0;
}

static int run(const struct qn_simulate *s, struct qn_shared_barrier_opts *o,
               struct qn_simulate_row *row)
{
    struct qn_shared_barrier_result r;
    int err = qn_simulate_prices(s, &o->prices);
    if (err != QN_OK) {
        return err;
    }
    err = qn_shared_barrier_run(&r, o);
    qn_prices_destroy(o->prices);
    if (err == QN_OK) {
        row->median_ns = r.median_ns;
        row->p99_ns = r.p99_ns;
        row->rate = r.rate;
        row->operations = r.incomplete ? 0 : o->count;
        row->wrong = r.wrong;
        row->incomplete = r.incomplete;
        row->run = r.run;
    }
    return err;
}

static int add(struct qn_simulate *s, const struct qn_barrier_selection *c,
               uint32_t form)
{
    const char *name = qn_barrier_forms[form]->name;
    const double ns = c->cycles[form] / s->ghz;
    struct qn_simulate_row *row = &s->row[s->rows];
    struct qn_shared_barrier_opts o = {
        .form = name,
        .tree = &c->tree,
        .members = s->m->n,
        .episode_ns = QN_MAX(EPISODE_LEAST, (uint64_t)(EPISODE_FACTOR * ns)),
        .alone = s->alone,
        .count = (uint32_t)s->count,
        .seed = s->seed,
        .jitter = s->jitter,
        .fault = s->fault,
        .faults = s->faults};
    if (s->rows == QN_SIMULATE_ROWS) {
        return qn_simulate_fail(s, "too many topologies; give at most 64");
    }
    /* What is known of a tiled machine are messages, from which its costs are
     * derived. */
    *row =
        (struct qn_simulate_row){.predicted_ns = s->is_tiled ? (double)NAN : ns,
                                 .bound = (double)NAN,
                                 .chosen = strcmp(name, c->form) == 0};
    snprintf(row->name, sizeof row->name, "lines:%s", name);
    const clock_t before = clock();
    const int err = run(s, &o, row);
    s->host_s += (double)(clock() - before) / CLOCKS_PER_SEC;
    if (err != QN_OK) {
        return qn_simulate_fail(s, qn_strerror(err));
    }
    s->rows++;
    return 0;
}

int qn_simulate_forms(struct qn_simulate *s)
{
    struct qn_barrier_selection c;
    const char *at = s->forms, *word;
    size_t len;
    int status = 0;
    const int err = qn_barrier_select(&c, s->m, s->m->n);
    if (err != QN_OK) {
        return qn_simulate_fail(s, qn_strerror(err));
    }
    for (uint32_t i = 0;
         s->forms == NULL && i < QN_BARRIER_FORMS && status == 0; i++) {
        status = add(s, &c, i);
    }
    while (status == 0 && qn_list_next(&at, &word, &len)) {
        status = add(s, &c, form_named(word, len));
    }
    return status;
}
