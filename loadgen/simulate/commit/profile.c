/* See the header. */
#include "loadgen/simulate/commit/profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"

#define LINES_FIRST 4096u
#define LINES_SHOWN 12u

struct line_use {
    uint32_t line;
    uint64_t loads, stores, rmws, copies; /* transfers */
    uint64_t nodes;                       /* mask */
    qn_ps_t took;
};

struct qn_sim_profile {
    struct line_use *use; /* [lines], owned; by number */
    uint32_t lines;
    bool short_of_memory; /* the later lines are missing */
};

int qn_sim_profile_create(struct qn_sim_profile **out)
{
    *out = calloc(1, sizeof **out);
    return *out != NULL ? QN_OK : QN_ENOMEM;
}

void qn_sim_profile_destroy(struct qn_sim_profile *p)
{
    if (p != NULL) {
        free(p->use);
        free(p);
    }
}

/* ---- lines --------------------------------------------------------------- */

static bool make_room(struct qn_sim_profile *p, uint32_t line)
{
    uint32_t more = QN_MAX(p->lines, LINES_FIRST);
    while (more <= line) {
        more *= 2;
    }
    if (more == p->lines) {
        return true;
    }
    struct line_use *use = realloc(p->use, more * sizeof *use);
    if (use == NULL) {
        p->short_of_memory = true;
        return false;
    }
    memset(use + p->lines, 0, (more - p->lines) * sizeof *use);
    p->use = use;
    p->lines = more;
    return true;
}

static void count(struct line_use *u, enum qn_sim_kind access)
{
    u->loads += access == QN_SIM_LOAD;
    u->stores += access == QN_SIM_STORE;
    u->rmws += access == QN_SIM_RMW;
    u->copies += access == QN_SIM_TOUCH_IN || access == QN_SIM_TOUCH_OUT ||
                 access == QN_SIM_COPY_OUT;
}

void qn_sim_profile_event(void *ctx, const struct qn_timed_event *e)
{
    struct qn_sim_profile *p = ctx;
    bool transfer =
        e->transfer == QN_TRANSFER_READ || e->transfer == QN_TRANSFER_WRITE;
    if (e->kind != QN_TIMED_ACCESS || !transfer || !make_room(p, e->line)) {
        return;
    }
    struct line_use *u = &p->use[e->line];
    u->line = e->line;
    count(u, e->access);
    u->nodes |= UINT64_C(1) << e->node % 64;
    u->took += e->until - e->from;
}

static int by_time(const void *a, const void *b)
{
    const struct line_use *x = a, *y = b;
    return (x->took < y->took) - (x->took > y->took);
}

static double per_slot(const struct qn_sim_commit_result *r, uint64_t n)
{
    return r->slots == 0 ? 0 : (double)n / (double)r->slots;
}

static void print_lines(const struct line_use *use, uint32_t lines,
                        const struct qn_sim_commit_result *r, FILE *to)
{
    fprintf(to, "per slot:\n%6s %6s %6s %6s %6s %8s  replicas\n", "line",
            "loads", "stores", "rmws", "copies", "ns");
    for (uint32_t i = 0; i < QN_MIN(lines, LINES_SHOWN); i++) {
        const struct line_use *u = &use[i];
        if (u->took > 0) {
            fprintf(to, "%6u %6.2f %6.2f %6.2f %6.2f %8.1f  %" PRIx64 "\n",
                    u->line, per_slot(r, u->loads), per_slot(r, u->stores),
                    per_slot(r, u->rmws), per_slot(r, u->copies),
                    per_slot(r, u->took) / 1000, u->nodes);
        }
    }
}

/* ---- replicas ------------------------------------------------------------ */

static double us(qn_ps_t ps)
{
    return (double)ps / 1e6;
}

static void print_replicas(const struct qn_sim_commit_result *r, FILE *to)
{
    fprintf(to, "%-7s %5s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", "replica",
            "core", "us", "hits", "reads", "writes", "queued", "library",
            "work", "paused", "parked");
    for (uint32_t i = 0; i < r->machine.nodes; i++) {
        const struct qn_timed_node *n = &r->machine.node[i];
        fprintf(to,
                "%-7u %5u %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f "
                "%8.1f%s\n",
                i, r->core[i], us(n->clock), us(n->hit), us(n->read),
                us(n->write), us(n->waited + n->fenced), us(n->library),
                us(n->worked), us(n->paused), us(n->parked),
                n->spun ? "  looks without a pause" : "");
    }
}

void qn_sim_profile_print(const struct qn_sim_profile *p,
                          const struct qn_sim_commit_result *r, FILE *to)
{
    struct line_use *sorted = malloc((p->lines + 1) * sizeof *sorted);
    print_replicas(r, to);
    if (sorted != NULL && p->lines > 0) {
        memcpy(sorted, p->use, p->lines * sizeof *sorted);
        qsort(sorted, p->lines, sizeof *sorted, by_time);
        print_lines(sorted, p->lines, r, to);
    }
    if (sorted == NULL || p->short_of_memory) {
        fputs("no memory for all lines\n", to);
    }
    free(sorted);
}
