/*
 * Machines for runs of core/sync: which file is read, and which
 * core each node has.
 */
#include "loadgen/simulate/locks/locks_machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"

static void fill_tiled(struct qn_locks_machine *m)
{
    const struct qn_tiled *t = &m->tiled;
    m->cores = qn_grid_cores(&t->grid);
    m->cycle = (qn_ps_t)llround(1000 / t->clock_ghz);
    m->dispatch = qn_tiled_ps(t, QN_TILEGX_DISPATCH);
    m->increment = qn_tiled_ps(t, QN_TILEGX_INCREMENT);
    m->empty_turn = qn_tiled_ps(t, QN_TILEGX_TURN);
}

static void fill_coherent(struct qn_locks_machine *m)
{
    const struct qn_coherent_file *f = &m->file;
    m->cores = m->m->n;
    m->cycle = (qn_ps_t)llround(1000 / f->clock_ghz);
    m->dispatch = qn_coherent_file_ps(f, QN_COHERENT_FILE_DISPATCH);
    m->increment = qn_coherent_file_ps(f, QN_COHERENT_FILE_INCREMENT);
    m->empty_turn = qn_coherent_file_ps(f, QN_COHERENT_FILE_TURN);
}

int qn_locks_machine_load(struct qn_locks_machine *out, const char *path,
                          struct qn_parse_error *e)
{
    struct qn_locks_machine m = {.is_tiled = qn_tiled_is(path)};
    int rc;
    if (m.is_tiled) {
        rc = qn_tiled_load(&m.tiled, path, e);
        if (rc == QN_OK && m.tiled.kind != QN_TILED_TILEGX) {
            rc = qn_parse_error_set(e, path, 1, "kind",
                                    "locks need coherent memory; name a "
                                    "TILE-Gx, or a folder");
        }
        if (rc == QN_OK) {
            fill_tiled(&m);
        }
    } else {
        rc = qn_coherent_file_load(&m.file, path, e);
        rc = rc == QN_OK ? qn_machine_load(&m.m, path, e) : rc;
        if (rc == QN_OK) {
            fill_coherent(&m);
        }
    }
    if (rc == QN_OK) {
        *out = m;
    }
    return rc;
}

void qn_locks_machine_free(struct qn_locks_machine *m)
{
    qn_machine_destroy(m->m);
    m->m = NULL;
}

/* ---- places ---- */

/* Where a core comes when cores are dealt round robin over the sockets: by its
 * hyper-thread, its rank on the socket, and the socket. */
static uint64_t turn_of(const struct qn_machine *m, uint32_t core)
{
    const struct qn_machine_core *own = &m->core[core];
    uint64_t thread = 0;
    uint64_t rank = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const struct qn_machine_core *other = &m->core[i];
        thread += i < core && other->phys == own->phys;
        rank += other->socket == own->socket && other->phys < own->phys;
    }
    return thread << 40 | rank << 20 | own->socket;
}

struct dealt {
    uint64_t turn;
    uint32_t core;
};

static int by_turn(const void *a, const void *b)
{
    const struct dealt *x = a;
    const struct dealt *y = b;
    return x->turn < y->turn ? -1 : x->turn > y->turn;
}

/* The core of the second server: the next one of the socket. @return core 0 if
 * there is none. */
static uint32_t second_server(const struct qn_machine *m)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < m->n; i++) {
        if (m->core[i].socket == m->core[0].socket &&
            m->core[i].phys != m->core[0].phys &&
            (best == 0 || turn_of(m, i) < turn_of(m, best))) {
            best = i;
        }
    }
    return best;
}

static int deal(const struct qn_machine *m, uint32_t n, uint32_t servers,
                uint32_t *core, uint32_t *domain)
{
    struct dealt *all = calloc(m->n, sizeof *all);
    const uint32_t second = servers > 1 ? second_server(m) : 0;
    uint32_t cores = 0;
    if (all == NULL) {
        return QN_ENOMEM;
    }
    for (uint32_t i = 0; i < m->n; i++) {
        const uint32_t phys = m->core[i].phys;
        const bool first = i == 0 || i == second;
        const bool idle = servers > 0 && (phys == m->core[0].phys ||
                                          phys == m->core[second].phys);
        if (first || !idle) {
            /* the first is core 0, whatever its turn; then the second */
            const uint64_t turn = turn_of(m, i) + 2;
            all[cores++] = (struct dealt){first ? i != 0 : turn, i};
        }
    }
    qsort(all, cores, sizeof *all, by_turn);
    for (uint32_t i = 0; i < n && n <= cores; i++) {
        core[i] = all[i].core;
        domain[i] = m->core[core[i]].socket;
    }
    free(all);
    return n <= cores ? QN_OK : QN_EINVAL;
}

int qn_locks_machine_cores(const struct qn_locks_machine *m, uint32_t n,
                           uint32_t servers, uint32_t *core, uint32_t *domain)
{
    if (!m->is_tiled) {
        return deal(m->m, n, servers, core, domain);
    }
    for (uint32_t i = 0; i < n && n <= m->cores; i++) {
        core[i] = i;
        domain[i] = 0;
    }
    return n <= m->cores ? QN_OK : QN_EINVAL;
}

int qn_locks_machine_prices(const struct qn_locks_machine *m,
                            const uint32_t *core, uint32_t n,
                            struct qn_prices **out)
{
    const struct qn_coherent_opts o = qn_coherent_file_opts(&m->file);
    return m->is_tiled ? qn_tiled_prices(out, &m->tiled, core, n)
                       : qn_coherent_create(out, m->m, core, n, &o);
}
