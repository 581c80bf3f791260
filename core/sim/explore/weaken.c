/*
 * The hook in core/base/atomic_sim.h is called by each operation, with its
 * place in the source and its order. A place is found again by its line and
 * file; two operations of a kind in one line are one here.
 */
#include "core/sim/explore/weaken.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"

#define SITES 1024u

static struct {
    struct qn_weak_site site[SITES];
    uint32_t sites;
    struct weak {
        struct qn_sim_site at;
        memory_order to;
    } weak[QN_WEAK_MAX];
    uint32_t weak_ones;
} w;

static bool same(const struct qn_sim_site *a, const struct qn_sim_site *b)
{
    return a->line == b->line && strcmp(a->kind, b->kind) == 0 &&
           strcmp(a->file, b->file) == 0;
}

static memory_order collect(const struct qn_sim_site *site, memory_order order)
{
    for (uint32_t i = 0; i < w.sites; i++) {
        if (same(&w.site[i].at, site)) {
            return order;
        }
    }
    QN_ASSERT(w.sites < SITES);
    w.site[w.sites++] = (struct qn_weak_site){.at = *site, .order = order};
    return order;
}

static memory_order weaken(const struct qn_sim_site *site, memory_order order)
{
    for (uint32_t i = 0; i < w.weak_ones; i++) {
        if (site->line == w.weak[i].at.line && same(site, &w.weak[i].at)) {
            return w.weak[i].to;
        }
    }
    return order;
}

void qn_weaken_watch(void)
{
    w.sites = 0;
    qn_sim_weaken = collect;
}

static int by_place(const void *a, const void *b)
{
    const struct qn_weak_site *x = a;
    const struct qn_weak_site *y = b;
    int files = strcmp(x->at.file, y->at.file);
    return files != 0 ? files : x->at.line - y->at.line;
}

/* Relaxed ones count in the numbers, too. */
static void number(void)
{
    qsort(w.site, w.sites, sizeof w.site[0], by_place);
    for (uint32_t i = 0; i < w.sites; i++) {
        w.site[i].number = 1;
        for (uint32_t k = 0; k < i; k++) {
            w.site[i].number +=
                strcmp(w.site[k].at.file, w.site[i].at.file) == 0 &&
                strcmp(w.site[k].at.func, w.site[i].at.func) == 0 &&
                strcmp(w.site[k].at.kind, w.site[i].at.kind) == 0;
        }
    }
}

uint32_t qn_weaken_sites(const char *part, struct qn_weak_site *out,
                         uint32_t max)
{
    uint32_t count = 0;
    number();
    for (uint32_t i = 0; i < w.sites && count < max; i++) {
        if (strstr(w.site[i].at.file, part) != NULL &&
            w.site[i].order != memory_order_relaxed) {
            out[count++] = w.site[i];
        }
    }
    return count;
}

void qn_weaken_begin(const struct qn_weak_site *site, memory_order to)
{
    QN_ASSERT(w.weak_ones < QN_WEAK_MAX);
    w.weak[w.weak_ones++] = (struct weak){site->at, to};
    qn_sim_weaken = weaken;
}

void qn_weaken_end(void)
{
    w.weak_ones = 0;
    qn_sim_weaken = NULL;
}

static uint32_t weaker_than_seq_cst(const char *kind, memory_order *out)
{
    if (strcmp(kind, "load") == 0) {
        out[0] = memory_order_acquire;
    } else if (strcmp(kind, "store") == 0) {
        out[0] = memory_order_release;
    } else {
        out[0] = memory_order_acq_rel;
    }
    return 1;
}

uint32_t qn_weaker_orders(const struct qn_weak_site *site, memory_order *out)
{
    uint32_t count = 0;
    out[count++] = memory_order_relaxed;
    if (site->order == memory_order_acq_rel) {
        out[count++] = memory_order_acquire;
        out[count++] = memory_order_release;
    } else if (site->order == memory_order_seq_cst) {
        count += weaker_than_seq_cst(site->at.kind, out + count);
    }
    return count;
}

const char *qn_order_name(memory_order order)
{
    switch (order) {
    case memory_order_relaxed:
        return "relaxed";
    case memory_order_acquire:
        return "acquire";
    case memory_order_release:
        return "release";
    case memory_order_acq_rel:
        return "acq_rel";
    case memory_order_seq_cst:
        return "seq_cst";
    default:
        return "consume";
    }
}
