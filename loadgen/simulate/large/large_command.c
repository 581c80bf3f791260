/*
 * `quoin sim large`: variants of large collectives on a described machine. The
 * members are the first cores of the file, in its order, or all of them.
 */
#include "loadgen/simulate/large/large_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/large/large_predict.h"
#include "loadgen/base/list.h"
#include "loadgen/base/options.h"
#include "loadgen/base/output_path.h"
#include "loadgen/large/large_plot.h"
#include "loadgen/simulate/large/large_run.h"

#define SIZES_MAX 16u

struct command {
    /* options */
    const char *machine, *operation, *sizes, *variant, *plot;
    uint64_t members, root, seed;
    double slow, jitter;
    bool isolated;
    /* state */
    struct qn_machine *m; /* of the members */
    uint64_t size[SIZES_MAX];
    uint32_t size_count;
    struct qn_large_place place[QN_CORES_MAX];
    struct qn_large_plot picture;
};

#define AT(member) offsetof(struct command, member)

static const struct qn_option table[] = {
    QN_OPTION("machine", "PATH", qn_option_string, AT(machine),
              "machine: a file or folder as in quoin tree (required)"),
    QN_OPTION("operation", "NAME", qn_option_string, AT(operation),
              "broadcast, reduce, scatter or gather (all of them)"),
    QN_OPTION("variant", "NAME", qn_option_string, AT(variant),
              "one variant, auto (the one that is predicted to take least), or "
              "all (all)"),
    QN_OPTION("size", "BYTES,...", qn_option_string, AT(sizes),
              "sizes (64ki,1mi,16mi), multiples of 4: of a broadcast, of a "
              "reduced vector, of each member's part"),
    QN_OPTION_COUNT("members", "N", AT(members),
                    "members, on the first cores (all cores)", 2, QN_CORES_MAX),
    QN_OPTION_COUNT("root", "N", AT(root), "the member at the root (0)", 0,
                    QN_CORES_MAX),
    QN_OPTION("isolated", NULL, qn_option_flag, AT(isolated),
              "members do not write each other's memory: no push"),
    QN_OPTION("slow", "FACTOR", qn_option_double, AT(slow),
              "the last member's transfers take FACTOR times as long (1)"),
    QN_OPTION_COUNT("seed", "N", AT(seed), "of jitter and of ties (1)", 0,
                    UINT32_MAX),
    QN_OPTION("jitter", "PART", qn_option_part, AT(jitter),
              "each price is up to this part more (0)"),
    QN_OPTION("plot", "FILE.svg", qn_option_string, AT(plot),
              "draw the speed of each variant over the size"),
};

static int fail(const char *line)
{
    fprintf(stderr, "quoin sim large: %s\n", line);
    return 2;
}

/* ---- options ---- */

static int take_sizes(struct command *c)
{
    bool good = true;
    c->size_count =
        qn_parse_counts(c->sizes, 4, QN_LARGE_RUN_MOST, c->size, SIZES_MAX);
    for (uint32_t i = 0; i < c->size_count; i++) {
        good = good && c->size[i] % 4 == 0;
    }
    return good && c->size_count > 0
               ? 0
               : fail("--size takes up to 16 multiples of 4, at most 64mi: "
                      "64ki,1mi");
}

static int take_machine(struct command *c)
{
    static uint32_t index[QN_CORES_MAX];
    struct qn_parse_error e = {{0}};
    struct qn_machine *all = NULL;
    int rc = qn_machine_load(&all, c->machine, &e);
    if (rc != QN_OK) {
        return fail(e.text[0] != '\0' ? e.text : qn_strerror(rc));
    }
    const uint32_t n = c->members == 0 ? all->n : (uint32_t)c->members;
    for (uint32_t i = 0; i < n; i++) {
        index[i] = i;
    }
    const char *wrong =
        n > all->n || n < 2 ? "--members: the machine has fewer cores"
        : c->root >= n      ? "--root takes a member: less than their number"
                            : NULL;
    rc = wrong == NULL ? qn_machine_restrict(&c->m, all, index, n) : QN_EINVAL;
    const bool priced = qn_machine_has_costs(all);
    qn_machine_destroy(all);
    if (wrong != NULL) {
        return fail(wrong);
    }
    return rc != QN_OK ? fail(qn_strerror(rc))
           : priced    ? 0
                       : fail("the machine has no costs; measure it with quoin "
                                 "machine --measure");
}

static bool is_operation(const struct command *c, enum qn_large_operation op)
{
    return c->operation == NULL ||
           strcmp(c->operation, qn_large_operation_name(op)) == 0;
}

static bool is_automatic(const struct command *c)
{
    return strcmp(c->variant, "auto") == 0;
}

static bool is_asked(const struct command *c, const struct qn_large_variant *v)
{
    const bool named = is_automatic(c) || strcmp(c->variant, "all") == 0 ||
                       strcmp(c->variant, v->name) == 0;
    return named && is_operation(c, v->operation) &&
           (!c->isolated || v->direction == QN_LARGE_PULL);
}

static int check(struct command *c)
{
    uint32_t asked = 0;
    const struct qn_large_variant *v;
    for (uint32_t i = 0; (v = qn_large_variant_at(i)) != NULL; i++) {
        asked += is_asked(c, v);
    }
    if (asked == 0) {
        return fail("no variant is left of --operation, --variant and "
                    "--isolated; docs/collectives.md has their names");
    }
    if (c->plot != NULL &&
        qn_output_path_check("quoin sim large", "plot", c->plot,
                             "name a file in it") != 0) {
        return 2;
    }
    if (!(c->slow >= 1)) {
        return fail("--slow takes at least 1");
    }
    int status = take_sizes(c);
    status = status == 0 ? take_machine(c) : status;
    if (status == 0) {
        qn_large_places(c->m, c->place);
    }
    return status;
}

/* ---- rows ---- */

/* 0: there is no memory for it. */
static double predicted(const struct command *c,
                        const struct qn_large_variant *v, uint64_t bytes)
{
    double ns = 0;
    (void)qn_large_predict(c->m, c->place, v, (uint32_t)c->root, bytes, &ns);
    return ns;
}

static int run_row(struct command *c, const struct qn_large_variant *v,
                   uint64_t bytes)
{
    struct qn_large_run_result r;
    const struct qn_large_run_opts o = {.m = c->m,
                                        .variant = v,
                                        .bytes = bytes,
                                        .root = (uint32_t)c->root,
                                        .slow = c->slow,
                                        .seed = c->seed,
                                        .jitter = c->jitter};
    const int rc = qn_large_run_timed(&r, &o);
    if (rc != QN_OK || r.wrong) {
        fprintf(stderr, "quoin sim large: %s: %s\n", v->name,
                rc == QN_ETIMEDOUT ? "takes more than an hour of virtual time; "
                                     "take fewer members or bytes"
                : rc != QN_OK      ? qn_strerror(rc)
                                   : "a result is wrong");
        return 1;
    }
    const double each = (double)bytes / r.ns * 1e3;
    printf("%-36s %10llu %12.0f %9.0f %9.0f %12.0f\n", v->name,
           (unsigned long long)bytes, r.ns, each, each * (c->m->n - 1),
           predicted(c, v, bytes));
    fflush(stdout);
    qn_large_plot_add(&c->picture, c->m->name, v->name, bytes, r.ns);
    return 0;
}

/* Of each operation the variant that is predicted to take least. */
static int run_chosen(struct command *c, uint64_t bytes)
{
    int status = 0;
    for (uint32_t i = 0; i < QN_LARGE_OPERATIONS && status == 0; i++) {
        const enum qn_large_operation op = (enum qn_large_operation)i;
        const struct qn_large_variant *best;
        if (!is_operation(c, op)) {
            continue;
        }
        const int rc = qn_large_predict_best(c->m, c->place, op, bytes,
                                             !c->isolated, &best);
        if (rc != QN_OK) {
            (void)fail(qn_strerror(rc));
            return 1;
        }
        status = run_row(c, best, bytes);
    }
    return status;
}

static int run_asked(struct command *c, uint64_t bytes)
{
    const struct qn_large_variant *v;
    int status = 0;
    for (uint32_t i = 0; status == 0 && (v = qn_large_variant_at(i)) != NULL;
         i++) {
        status = is_asked(c, v) ? run_row(c, v, bytes) : 0;
    }
    return status;
}

static int run(struct command *c)
{
    int status = 0;
    printf("%u members, in virtual time\n%-36s %10s %12s %9s %9s %12s\n",
           c->m->n, "variant", "bytes", "ns", "MB/s each", "MB/s all",
           "predicted ns");
    for (uint32_t s = 0; s < c->size_count && status == 0; s++) {
        status = is_automatic(c) ? run_chosen(c, c->size[s])
                                 : run_asked(c, c->size[s]);
    }
    return status != 0 || c->plot == NULL
               ? status
               : qn_large_plot_write(&c->picture, "quoin sim large", c->plot,
                                     "quoin sim large");
}

int qn_large_sim_command(int argc, char **argv)
{
    struct command c = {
        .sizes = "64ki,1mi,16mi", .variant = "all", .slow = 1, .seed = 1};
    const struct qn_options o = {
        "quoin sim large",
        "Run large collectives on a described machine, in virtual time: how "
        "fast is each\nvariant there? docs/simulator.md says how far to trust "
        "the figures.",
        table, QN_ARRAY_COUNT(table), &c};
    int status;
    if (!qn_options_parse_needing(&o, argc, argv, &status, "machine",
                                  "machines/uv2000_24x8")) {
        return status;
    }
    status = check(&c);
    status = status == 0 ? run(&c) : status;
    qn_large_plot_free(&c.picture);
    qn_machine_destroy(c.m);
    return status;
}
