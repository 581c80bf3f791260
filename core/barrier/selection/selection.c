/* The selection among the forms. */
#include "core/barrier/selection/selection.h"

#include <stdio.h>
#include <string.h>

#include "core/barrier/selection/predict_forms.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/plan/plan.h"

/* The forms by name. (The list of core/barrier is in another object on the
 * simulated machine.) */
static const struct {
    const char *form;
    double (*predict)(const struct qn_machine *m); /* NULL: the planner */
} priced[] = {
    {"central", qn_barrier_predict_central},
    {"dissemination", qn_barrier_predict_dissemination},
    {"mcs", qn_barrier_predict_mcs},
    {"tree", NULL},
};

_Static_assert(QN_ARRAY_COUNT(priced) == QN_BARRIER_FORMS, "one price each");

static void choose_by_prices(struct qn_barrier_selection *out,
                             const struct qn_machine *m,
                             const struct qn_plan *tree)
{
    uint32_t best = 0;
    for (uint32_t i = 0; i < QN_BARRIER_FORMS; i++) {
        out->cycles[i] =
            priced[i].predict != NULL ? priced[i].predict(m) : tree->cost;
        best = out->cycles[i] < out->cycles[best] ? i : best;
    }
    out->form = priced[best].form;
    out->tree = tree->down;
}

/* The first cores of a machine, one for each member. */
static int first_cores(struct qn_machine **out, const struct qn_machine *m,
                       uint32_t members)
{
    uint32_t index[QN_CORES_MAX];
    for (uint32_t i = 0; i < members; i++) {
        index[i] = i;
    }
    return qn_machine_restrict(out, m, index, members);
}

int qn_barrier_select(struct qn_barrier_selection *out,
                      const struct qn_machine *m, uint32_t members)
{
    struct qn_plan tree;
    struct qn_machine *some = NULL;
    struct qn_plan_opts o = QN_PLAN_OPTS_DEFAULT;
    if (members < 1 || members > QN_BARRIER_MEMBERS_MAX) {
        return QN_EINVAL;
    }
    if (members > m->n || members == 1) {
        *out = (struct qn_barrier_selection){.form = "central",
                                             .shared_cores = members > m->n};
        return QN_OK;
    }
    if (!qn_machine_has_costs(m)) {
        return QN_EINVAL;
    }
    o.goal = QN_GOAL_BARRIER;
    o.one_tree = true;
    int rc = first_cores(&some, m, members);
    rc = rc == QN_OK ? qn_plan(&tree, some, &o) : rc;
    if (rc == QN_OK) {
        memset(out, 0, sizeof *out);
        choose_by_prices(out, some, &tree);
    }
    qn_machine_destroy(some);
    return rc;
}

void qn_barrier_selection_apply(const struct qn_barrier_selection *c,
                                struct qn_barrier_opts *opts)
{
    opts->form = c->form;
    opts->tree = strcmp(c->form, "tree") == 0 ? &c->tree : NULL;
}

void qn_barrier_selection_explain(const struct qn_barrier_selection *c,
                                  char *text, size_t bytes)
{
    size_t at = (size_t)snprintf(
        text, bytes, "%s: %s", c->form,
        c->shared_cores ? "members share cores, and each passes it by one "
                          "operation"
                        : "cycles predicted:");
    for (uint32_t i = 0; i < QN_BARRIER_FORMS && at < bytes; i++) {
        if (c->cycles[i] > 0) {
            at += (size_t)snprintf(text + at, bytes - at, " %s %.0f",
                                   priced[i].form, c->cycles[i]);
        }
    }
}
