/*
 * Every group is independent of all others, so thread t takes the groups t, t +
 * threads, ...: the sizes of a machine alternate between threads, which shares
 * the work evenly without any coordination.
 */
#include "loadgen/topo/model/sweep.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/topo/static_trees.h"
#include "loadgen/topo/model/cores.h"

/* ---- machines ---- */

static bool is_machine(const char *folder, const char *name)
{
    char path[4096];
    struct stat st;
    size_t len = strlen(name);
    if (name[0] == '.') {
        return false;
    }
    (void)snprintf(path, sizeof path, "%s/%s/numa.csv", folder, name);
    return stat(path, &st) == 0 ||
           (len > 5 && strcmp(name + len - 5, ".json") == 0);
}

static int load(struct qn_sweep *s, const char *path,
                struct qn_parse_error *parse_error)
{
    if (s->machines == QN_SWEEP_MACHINES) {
        (void)qn_parse_error_set(parse_error, path, 0, NULL,
                                 "too many machines; at most %u are supported",
                                 QN_SWEEP_MACHINES);
        return QN_EMSGSIZE;
    }
    int err = qn_machine_load(&s->machine[s->machines], path, parse_error);
    s->machines += err == QN_OK;
    return err;
}

static int load_folder(struct qn_sweep *s, const char *folder,
                       struct qn_parse_error *parse_error)
{
    struct dirent **entry = NULL;
    int count = scandir(folder, &entry, NULL, alphasort), err = QN_OK;
    for (int i = 0; i < count; i++) {
        char path[4096];
        if (err == QN_OK && is_machine(folder, entry[i]->d_name)) {
            (void)snprintf(path, sizeof path, "%s/%s", folder,
                           entry[i]->d_name);
            err = load(s, path, parse_error);
        }
        free(entry[i]);
    }
    free(entry);
    return err;
}

static int load_all(struct qn_sweep *s, const char *folder,
                    struct qn_parse_error *parse_error)
{
    struct stat st;
    char numa[4096];
    (void)snprintf(numa, sizeof numa, "%s/numa.csv", folder);
    bool single = stat(numa, &st) == 0 ||
                  (stat(folder, &st) == 0 && !S_ISDIR(st.st_mode));
    int err = single ? load(s, folder, parse_error)
                     : load_folder(s, folder, parse_error);
    if (err == QN_OK && s->machines == 0) {
        (void)qn_parse_error_set(
            parse_error, folder, 0, NULL,
            "no machine found; expected folders with numa.csv "
            "or .json files");
        return QN_ENOENT;
    }
    return err;
}

/* ---- groups ---- */

/* Marks the requested sizes. */
static bool parse_sizes(const char *text, bool *wanted, bool *whole)
{
    *whole = text != NULL && strcmp(text, "full") == 0;
    for (uint32_t i = 2; text == NULL && i <= QN_CORES_MAX; i++) {
        wanted[i] = true;
    }
    while (text != NULL && !*whole) {
        char *end;
        unsigned long from = strtoul(text, &end, 10), to = from;
        if (text[0] < '0' || text[0] > '9') {
            return false;
        }
        if (*end == '-' && end[1] >= '0' && end[1] <= '9') {
            to = strtoul(end + 1, &end, 10);
        }
        if (from < 2 || to < from || to > QN_CORES_MAX ||
            (*end != ',' && *end != '\0')) {
            return false;
        }
        for (unsigned long i = from; i <= to; i++) {
            wanted[i] = true;
        }
        text = *end == ',' ? end + 1 : NULL;
    }
    return true;
}

static int make_groups(struct qn_sweep *s, const char *sizes,
                       struct qn_parse_error *parse_error)
{
    bool wanted[QN_CORES_MAX + 1] = {false}, whole = false;
    size_t most = 0;
    if (!parse_sizes(sizes, wanted, &whole)) {
        return qn_parse_error_set(
            parse_error, "--sizes", 0, NULL,
            "'%s' is not a list of sizes from 2 to %u; use a "
            "list like 2,4,8-16, or full",
            sizes, QN_CORES_MAX);
    }
    for (uint32_t i = 0; i < s->machines; i++) {
        most += s->machine[i]->n;
    }
    s->group = calloc(most + 1, sizeof *s->group);
    if (s->group == NULL) {
        return QN_ENOMEM;
    }
    for (uint32_t i = 0; i < s->machines; i++) {
        uint32_t n = s->machine[i]->n;
        for (uint32_t size = 1; size <= n; size++) {
            if (whole ? size == n : wanted[size]) {
                s->group[s->groups].machine = i;
                s->group[s->groups++].size = size;
            }
        }
    }
    return QN_OK;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int make_group(struct qn_machine **out, const struct qn_machine *m,
                      uint32_t size)
{
    uint32_t index[QN_CORES_MAX] = {0};
    qn_cores_deal(index, m);
    qsort(index, size, sizeof *index, by_number);
    return qn_machine_restrict(out, m, index, size);
}

/* ---- costs ---- */

static bool searched(const struct qn_sweep *s, uint32_t topo)
{
    return topo < QN_SWEEP_OTHERS || strncmp(s->topo[topo], "ring:", 5) == 0;
}

/* Costs of one topology. Searched topologies are made for one goal, which rings
 * may not support; the others are evaluated for all goals. */
static int cost(struct qn_sweep_group *g, const struct qn_machine *m,
                const struct qn_sweep *s, uint32_t topo,
                const struct qn_topology_spec_opts *o,
                struct qn_topology_spec *c)
{
    bool planned = topo < QN_SWEEP_OTHERS;
    int err =
        qn_topology_spec_make(c, m, planned ? "auto" : s->topo[topo], o, NULL);
    for (uint32_t i = 0; err == QN_OK && i < QN_SWEEP_GOALS; i++) {
        if (i == o->goal || !searched(s, topo)) {
            g->cost[topo][i] =
                qn_topology_spec_cost(c, m, (enum qn_goal)i, o->q);
        }
    }
    qn_topology_spec_fini(c);
    return err;
}

/* A ring of this group, with one map for its latency and one for its rate. */
static int cost_ring(struct qn_sweep_group *g, const struct qn_machine *m,
                     const struct qn_sweep *s, uint32_t topo,
                     const struct qn_topology_spec_opts *plain,
                     struct qn_topology_spec *c)
{
    struct qn_topology_spec_opts o = *plain;
    for (uint32_t i = 0; i < QN_SWEEP_GOALS; i++) {
        g->cost[topo][i] = NAN;
    }
    o.goal = QN_GOAL_ACK;
    int err = cost(g, m, s, topo, &o, c);
    o.goal = QN_GOAL_THROUGHPUT;
    return err == QN_OK ? cost(g, m, s, topo, &o, c) : err;
}

static int fill(struct qn_sweep_group *g, const struct qn_sweep *s,
                const struct qn_topology_spec_opts *plain,
                struct qn_topology_spec *c)
{
    struct qn_topology_spec_opts o = *plain;
    struct qn_machine *m = NULL;
    int err = make_group(&m, s->machine[g->machine], g->size);
    for (uint32_t i = 0; err == QN_OK && i < QN_SWEEP_GOALS; i++) {
        o.goal = (enum qn_goal)i;
        o.root = QN_ROOT_FREE;
        err = cost(g, m, s, QN_SWEEP_AUTO, &o, c);
        o.root = 0;
        err = err == QN_OK ? cost(g, m, s, QN_SWEEP_AUTO_FIRST, &o, c) : err;
    }
    o.root = QN_ROOT_FREE;
    for (uint32_t t = QN_SWEEP_OTHERS; err == QN_OK && t < s->topos; t++) {
        err = searched(s, t) ? cost_ring(g, m, s, t, &o, c)
                             : cost(g, m, s, t, &o, c);
    }
    qn_machine_destroy(m);
    return err;
}

struct worker {
    pthread_t thread;
    struct qn_sweep *s;
    const struct qn_sweep_opts *o;
    uint32_t at;
    int err;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    struct qn_topology_spec *c = malloc(sizeof *c);
    w->err = c != NULL ? QN_OK : QN_ENOMEM;
    for (uint32_t i = w->at; i < w->s->groups && w->err == QN_OK;
         i += w->s->threads) {
        if (w->o->live && w->at == 0) {
            fprintf(stderr, "\r%u of %u groups ", i, w->s->groups);
        }
        w->err = fill(&w->s->group[i], w->s, &w->o->o, c);
    }
    free(c);
    return NULL;
}

#define THREADS_MAX 64u

static int run(struct qn_sweep *s, const struct qn_sweep_opts *o)
{
    struct worker worker[THREADS_MAX];
    uint32_t started = 1;
    int err = QN_OK;
    s->threads = QN_MIN(QN_MAX(o->threads, 1u), THREADS_MAX);
    int64_t begin = (int64_t)qn_clock_now();
    for (uint32_t i = 0; i < s->threads; i++) {
        worker[i] = (struct worker){.s = s, .o = o, .at = i};
    }
    while (started < s->threads &&
           pthread_create(&worker[started].thread, NULL, work,
                          &worker[started]) == 0) {
        started++;
    }
    (void)work(&worker[0]);
    for (uint32_t i = 1; i < s->threads; i++) {
        if (i < started) {
            (void)pthread_join(worker[i].thread, NULL);
        } else {
            (void)work(&worker[i]); /* its thread could not be created */
        }
    }
    for (uint32_t i = 0; i < s->threads; i++) {
        err = err == QN_OK ? worker[i].err : err;
    }
    s->seconds = (double)((int64_t)qn_clock_now() - begin) / 1e9;
    if (o->live) {
        fputs("\r                              \r", stderr);
    }
    return err;
}

int qn_sweep_run(struct qn_sweep **out, const struct qn_sweep_opts *o,
                 struct qn_parse_error *parse_error)
{
    struct qn_sweep *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return QN_ENOMEM;
    }
    s->topo[QN_SWEEP_AUTO] = "auto";
    s->topo[QN_SWEEP_AUTO_FIRST] = "auto, first core";
    s->topos = QN_SWEEP_OTHERS;
    for (uint32_t i = 0; qn_topology_spec_name_at(i) != NULL; i++) {
        QN_ASSERT(s->topos < QN_SWEEP_TOPOS);
        s->topo[s->topos++] = qn_topology_spec_name_at(i);
    }
    int err = load_all(s, o->folder, parse_error);
    err = err == QN_OK ? make_groups(s, o->sizes, parse_error) : err;
    err = err == QN_OK ? run(s, o) : err;
    if (err == QN_ENOMEM) {
        (void)qn_parse_error_set(parse_error, o->folder, 0, NULL,
                                 "out of memory");
    }
    if (err != QN_OK) {
        qn_sweep_destroy(s);
        return err;
    }
    *out = s;
    return QN_OK;
}

void qn_sweep_destroy(struct qn_sweep *s)
{
    if (s != NULL) {
        for (uint32_t i = 0; i < s->machines; i++) {
            qn_machine_destroy(s->machine[i]);
        }
        free(s->group);
        free(s);
    }
}
