/*
 * S1: the planned tree is never much slower than the best static one, whatever
 * the machine, the operation and the size of the group. (Smelt, section 5; the
 * adaptive trees there are ours planned.)
 *
 * Groups are dealt round robin over the memory nodes. All topologies of a group
 * have one root, that of the plan. Only transfers are priced.
 *
 * The best static tree is looked for among those which are predicted to take
 * at most WORTH times the least prediction. The others cannot be the best: what
 * is executed is within 25 % of what is predicted, at worst, on all machines
 * (tests/sim/timed/test_predicted.c; 1.000 times it in fact). They are also the
 * ones that take the most virtual time.
 */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/simulate/command.h"
#include "loadgen/simulate/replay.h"
#include "loadgen/topo/model/cores.h"
#include "transports/registry.h"

#define COUNT     3u            /* operations of a topology: they repeat */
#define WARM      33u           /* each line of a lane was used once */
#define WORTH     (1.25 / 0.75) /* bounds of test_predicted.c */
#define NAMES_MAX 32u

static const struct {
    const char *what; /* behind the operation */
    double least;     /* of best static / plan */
} claim[QN_REPLAY_PLANS] = {
    [QN_REPLAY_PLAN] = {"", 0.97},
    [QN_REPLAY_LONGER] = {", plans of one second", 0.99},
    [QN_REPLAY_OWN] = {", tree of the driver", 0.85},
};

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static struct qn_machine *part(const struct qn_machine *m, uint32_t n)
{
    static uint32_t index[QN_CORES_MAX];
    struct qn_machine *some = NULL;
    qn_cores_deal(index, m);
    qsort(index, n, sizeof index[0], by_value);
    return qn_machine_restrict(&some, m, index, n) == QN_OK ? some : NULL;
}

static int run(struct qn_simulate *s, const char *name,
               struct qn_topology_spec_opts *o, double *ns)
{
    int status = qn_simulate_add(s, name, o);
    if (status == 0) {
        *ns = s->row[0].median_ns;
        qn_timed_result_free(&s->row[0].run);
        s->rows = 0;
    }
    return status;
}

bool qn_replay_static(const char *name)
{
    return strncmp(name, "ring", 4) != 0 && strcmp(name, "adaptive") != 0;
}

void qn_replay_worst_note(struct qn_replay_worst *w, const double *ns,
                          double best_static, uint32_t n)
{
    w->groups++;
    for (uint32_t i = 0; i < QN_REPLAY_PLANS; i++) {
        double ratio = best_static / ns[i];
        if (ns[i] > 0 && (w->n[i] == 0 || ratio < w->ratio[i])) {
            w->ratio[i] = ratio;
            w->n[i] = n;
        }
    }
}

/* What static trees are predicted to take, in cycles; others: INFINITY. */
static int predict(double *cycles, const struct qn_simulate *s,
                   const struct qn_topology_spec_opts *o)
{
    struct qn_topology_spec spec;
    struct qn_parse_error bad = {""};
    const char *name;
    int err = QN_OK;
    for (uint32_t i = 0;
         err == QN_OK && (name = qn_topology_spec_name_at(i)) != NULL; i++) {
        QN_ASSERT(i < NAMES_MAX);
        cycles[i] = (double)INFINITY;
        if (qn_replay_static(name)) {
            err = qn_topology_spec_make(&spec, s->m, name, o, &bad);
        }
        if (err == QN_OK && qn_replay_static(name)) {
            cycles[i] = qn_topology_spec_cost(&spec, s->m, o->goal, o->q);
            qn_topology_spec_fini(&spec);
        }
    }
    return err == QN_OK ? 0 : qn_simulate_fail(s, qn_strerror(err));
}

/* The fastest of them. */
static int best_static(struct qn_simulate *s, struct qn_topology_spec_opts *o,
                       double *best)
{
    const char *name;
    double cycles[NAMES_MAX], least = (double)INFINITY;
    int status = predict(cycles, s, o);
    for (uint32_t i = 0; status == 0 && qn_topology_spec_name_at(i) != NULL;
         i++) {
        least = QN_MIN(least, cycles[i]);
    }
    *best = (double)INFINITY;
    for (uint32_t i = 0;
         status == 0 && (name = qn_topology_spec_name_at(i)) != NULL; i++) {
        if (cycles[i] <= WORTH * least) {
            double ns = (double)INFINITY;
            status = run(s, name, o, &ns);
            *best = QN_MIN(*best, ns);
        }
    }
    return status;
}

static int one_group(struct qn_simulate *s, const struct qn_replay_opts *o,
                     struct qn_replay_worst *w)
{
    struct qn_topology_spec_opts spec = {.goal = qn_simulate_goal(s->op),
                                         .root = QN_ROOT_FREE,
                                         .q = 1,
                                         .seed = 1,
                                         .one_tree = true};
    double ns[QN_REPLAY_PLANS] = {0}, best = 0;
    int status = run(s, "auto", &spec, &ns[QN_REPLAY_PLAN]);
    status = status == 0 ? best_static(s, &spec, &best) : status;
    if (status == 0 && o->longer) {
        spec.moves = QN_REPLAY_LONGER_MOVES;
        status = run(s, "auto", &spec, &ns[QN_REPLAY_LONGER]);
    }
    if (status == 0) {
        qn_replay_worst_note(w, ns, best, s->m->n);
    }
    return status;
}

static uint32_t next_size(const struct qn_replay_opts *o, uint32_t n,
                          uint32_t all)
{
    return o->every || n == all ? n + 1 : QN_MIN(2 * n, all);
}

static int one_operation(const struct qn_machine *m, enum qn_virtual op,
                         const struct qn_replay_opts *o,
                         struct qn_replay_worst *w)
{
    struct qn_simulate *s = calloc(1, sizeof *s);
    int status = s != NULL ? 0 : 1;
    for (uint32_t n = 2; n <= m->n && status == 0; n = next_size(o, n, m->n)) {
        *s = (struct qn_simulate){.program = "quoin sim replay",
                                  .op = op,
                                  .transport = qn_transport_at(0),
                                  .size = QN_VIRTUAL_SIZE_MIN,
                                  .count = COUNT,
                                  .warm = WARM,
                                  .bare = true,
                                  .alone = true,
                                  .m = part(m, n)};
        s->ghz = m->facts.clock_ghz > 0 ? m->facts.clock_ghz : QN_GHZ_USUAL;
        status = s->m != NULL ? one_group(s, o, w) : 1;
        qn_machine_destroy(s->m);
    }
    free(s);
    return status;
}

static void print(const struct qn_machine *m, const char *operation,
                  const struct qn_replay_worst *w,
                  const struct qn_replay_opts *o, uint32_t *missed)
{
    for (uint32_t i = 0; i < QN_REPLAY_PLANS; i++) {
        struct qn_replay_row row = {
            .id = "S1", .limit = claim[i].least, .got = w->ratio[i]};
        snprintf(row.what, sizeof row.what, "%s, %s%s, %u groups, worst of %u",
                 m->name, operation, claim[i].what, w->groups, w->n[i]);
        *missed += w->n[i] > 0 && !qn_replay_row_print(&row, o->to);
    }
}

static int one_machine(const char *path, const struct qn_replay_opts *o,
                       uint32_t *missed)
{
    struct qn_parse_error parse_error = {""};
    struct qn_machine *m;
    if (qn_machine_load(&m, path, &parse_error) != QN_OK) {
        fprintf(stderr, "quoin sim replay: %s\n", parse_error.text);
        return 2;
    }
    int status = 0;
    for (uint32_t op = 0; op < QN_VIRTUAL_CHANNEL && status == 0; op++) {
        struct qn_replay_worst w = {.groups = 0};
        status = one_operation(m, (enum qn_virtual)op, o, &w);
        print(m, qn_virtual_name((enum qn_virtual)op), &w, o, missed);
    }
    if (status == 0) {
        struct qn_replay_worst w = {.groups = 0};
        status = qn_replay_s1_commit(m, o, &w);
        print(m, "commit", &w, o, missed);
    }
    qn_machine_destroy(m);
    return status;
}

static bool is_machine(const char *path)
{
    char meta[4096 + sizeof "/meta.json"];
    (void)snprintf(meta, sizeof meta, "%s/meta.json", path);
    return access(meta, R_OK) == 0;
}

/* All machines in a folder, by name; without one the claim would hold. */
static int one_folder(const char *folder, const struct qn_replay_opts *o,
                      uint32_t *missed)
{
    struct dirent **entry;
    int count = scandir(folder, &entry, NULL, alphasort), status = 0;
    uint32_t machines = 0;
    for (int i = 0; i < count; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
        if (status == 0 && entry[i]->d_name[0] != '.' && is_machine(path)) {
            status = one_machine(path, o, missed);
            machines++;
        }
        free(entry[i]);
    }
    if (count >= 0) {
        free(entry);
    }
    if (machines == 0) {
        fprintf(stderr,
                "quoin sim replay: there is no machine in the folder %s; name "
                "one with --machines\n",
                folder);
        status = 2;
    }
    return status;
}

int qn_replay_s1(const struct qn_replay_opts *o, uint32_t *missed)
{
    int status = 0;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(o->machines); i++) {
        const char *path = o->machines[i];
        if (path != NULL && status == 0) {
            status = is_machine(path) ? one_machine(path, o, missed)
                                      : one_folder(path, o, missed);
        }
    }
    return status;
}
