/* S2: barriers on shared lines on the timed machine, one at a time as those of
 * queuepairs in virtual.h.
 *
 * All members begin at one instant, and the last that leaves ends an episode.
 * Between two of them all are idle, so that an episode finds no trace of the
 * one before it, but in the caches. */
#include <stdlib.h>
#include <string.h>

#include "core/barrier/selection/selection.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sim/timed/coherent.h"
#include "core/sim/timed/timed.h"
#include "loadgen/simulate/replay.h"

#define WARM  4u
#define COUNT 5u            /* they repeat but for the order at a line */
#define GAP   (100 * QN_US) /* more than one takes */

static struct {
    void *memory;
    qn_ps_t ended[WARM + COUNT]; /* by the member that was last */
    uint32_t left;               /* members that have passed all */
} shared_world;

static qn_ps_t start_of(uint32_t episode)
{
    return (episode + 1) * GAP * QN_PS_PER_NS;
}

static void node(void *ctx, uint32_t member)
{
    struct qn_barrier_member me;
    (void)ctx;
    if (qn_barrier_join(shared_world.memory, member, &me) != QN_OK) {
        return;
    }
    for (uint32_t i = 0; i < WARM + COUNT; i++) {
        qn_timed_sleep_until(start_of(i));
        qn_barrier_wait(&me);
        shared_world.ended[i] = QN_MAX(shared_world.ended[i], qn_timed_clock());
    }
    shared_world.left++;
}

static int by_size(const void *a, const void *b)
{
    const qn_ps_t x = *(const qn_ps_t *)a, y = *(const qn_ps_t *)b;
    return (x > y) - (x < y);
}

static double median_ns(void)
{
    qn_ps_t took[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        took[i] = shared_world.ended[WARM + i] - start_of(WARM + i);
    }
    qsort(took, COUNT, sizeof *took, by_size);
    const qn_ps_t median = took[COUNT / 2];
    return (double)median / QN_PS_PER_NS;
}

static int run(const struct qn_machine *m, double ghz, double link)
{
    static uint32_t core[QN_CORES_MAX];
    const struct qn_coherent_opts c = {
        .clock_ghz = ghz, .bare = true, .link = link};
    struct qn_timed_opts t = {.nodes = m->n,
                              .main = node,
                              .seed = 1,
                              .looks_on = true,
                              .until_ns = (WARM + COUNT + 10) * GAP};
    struct qn_timed_result r;
    for (uint32_t i = 0; i < m->n; i++) {
        core[i] = i;
    }
    int err = qn_coherent_create(&t.prices, m, core, m->n, &c);
    if (err == QN_OK) {
        err = qn_timed_run(&t, &r);
        qn_prices_destroy(t.prices);
    }
    if (err == QN_OK) {
        qn_timed_result_free(&r);
        err = shared_world.left == m->n ? QN_OK : QN_ECORRUPT;
    }
    return err;
}

int qn_replay_s2_shared(const struct qn_machine *m, const char *form,
                        double ghz, double link, double *ns)
{
    struct qn_barrier_selection c;
    struct qn_barrier_opts o = {
        .form = form, .members = m->n, .cores = m->n, .own_cores = true};
    const size_t bytes = qn_barrier_bytes(&o);
    memset(&shared_world, 0, sizeof shared_world);
    if (bytes == 0 || m->n < 2) {
        return QN_EINVAL;
    }
    int err = qn_barrier_select(&c, m, m->n);
    if (err == QN_OK && form == NULL) {
        qn_barrier_selection_apply(&c, &o);
    }
    o.tree = &c.tree;
    shared_world.memory = aligned_alloc(QN_CACHELINE, bytes);
    err = err != QN_OK ? err
          : shared_world.memory == NULL
              ? QN_ENOMEM
              : qn_barrier_format(shared_world.memory, bytes, &o);
    err = err == QN_OK ? run(m, ghz, link) : err;
    if (err == QN_OK) {
        *ns = median_ns();
    }
    free(shared_world.memory);
    return err;
}
