/*
 * Alone, all members are idle between two episodes, so that one finds no
 * trace of the one before it, but in the caches. What members tell each other
 * beside the barrier (when they entered) lies outside of the simulated memory.
 * All do the same, so that most would leave together without a barrier, too:
 * behind the timed episodes there is one that member 0 enters late.
 */
#include "loadgen/simulate/barrier/shared_barrier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"

#define WARM  4u /* episodes before the first one that is timed */
#define SPARE 10u

static struct {
    const struct qn_shared_barrier_opts *o;
    void *memory;
    uint32_t *entered;   /* [members] episodes */
    qn_ps_t *took;       /* [count] */
    qn_ps_t first, last; /* member 0 began the first timed episode; left the
                            last one */
    uint32_t left;       /* members that have passed all */
    uint64_t wrong;
} episodes;

static qn_ps_t start_of(uint32_t episode)
{
    return (episode + 1) * episodes.o->episode_ns * QN_PS_PER_NS;
}

static bool all_entered(uint32_t episode)
{
    bool all = true;
    for (uint32_t i = 0; i < episodes.o->members; i++) {
        all = all && episodes.entered[i] > episode;
    }
    return all;
}

/* A member has left an episode that it entered at `from`. */
static void note(uint32_t member, uint32_t episode, qn_ps_t from)
{
    const qn_ps_t now = qn_timed_clock();
    episodes.wrong += !all_entered(episode);
    if (episode < WARM || episode == WARM + episodes.o->count) {
        return;
    }
    qn_ps_t *took = &episodes.took[episode - WARM];
    if (episodes.o->alone) {
        *took = QN_MAX(*took, now - start_of(episode));
    } else if (member == 0) {
        *took = now - from;
        episodes.first = episode == WARM ? from : episodes.first;
        episodes.last = now;
    }
}

static void node(void *ctx, uint32_t member)
{
    struct qn_barrier_member me;
    (void)ctx;
    if (qn_barrier_join(episodes.memory, member, &me) != QN_OK) {
        return;
    }
    for (uint32_t i = 0; i <= WARM + episodes.o->count; i++) {
        if (episodes.o->alone) {
            qn_timed_sleep_until(start_of(i));
        }
        if (i == WARM + episodes.o->count && member == 0) {
            qn_timed_sleep_until(qn_timed_clock() +
                                 episodes.o->episode_ns / 2 * QN_PS_PER_NS);
            qn_timed_turn(); /* the others go on before it enters */
        }
        const qn_ps_t from = qn_timed_clock();
        episodes.entered[member] = i + 1;
        qn_barrier_wait(&me);
        note(member, i, from);
    }
    episodes.left++;
}

static int by_size(const void *a, const void *b)
{
    const qn_ps_t x = *(const qn_ps_t *)a, y = *(const qn_ps_t *)b;
    return (x > y) - (x < y);
}

static double ns_at(uint32_t i)
{
    return (double)episodes.took[i] / QN_PS_PER_NS;
}

static int run(struct qn_shared_barrier_result *r)
{
    const struct qn_shared_barrier_opts *o = episodes.o;
    const struct qn_timed_opts t = {.nodes = o->members,
                                    .prices = o->prices,
                                    .main = node,
                                    .seed = o->seed,
                                    .jitter = o->jitter,
                                    .looks_on = true,
                                    .until_ns = (WARM + o->count + SPARE) *
                                                o->episode_ns,
                                    .fault = o->fault,
                                    .faults = o->faults};
    const uint32_t n = o->count;
    const int err = qn_timed_run(&t, &r->run);
    if (err != QN_OK) {
        return err;
    }
    r->wrong = episodes.wrong;
    r->incomplete = episodes.left < o->members;
    r->median_ns = r->p99_ns = r->rate = (double)NAN;
    if (!r->incomplete) {
        qsort(episodes.took, n, sizeof *episodes.took, by_size);
        r->median_ns = ns_at(n / 2);
        r->p99_ns = ns_at((uint32_t)(n * UINT64_C(99) / 100));
    }
    if (!r->incomplete && !o->alone) {
        r->rate = 1e12 * n / (double)(episodes.last - episodes.first);
    }
    return QN_OK;
}

int qn_shared_barrier_run(struct qn_shared_barrier_result *r,
                          const struct qn_shared_barrier_opts *o)
{
    const struct qn_barrier_opts b = {.form = o->form,
                                      .members = o->members,
                                      .tree = o->tree,
                                      .cores = o->members,
                                      .own_cores = true};
    const size_t bytes = qn_barrier_bytes(&b);
    if (bytes == 0 || o->members < 2 || o->count < 1) {
        return QN_EINVAL;
    }
    memset(&episodes, 0, sizeof episodes);
    episodes.o = o;
    episodes.memory = aligned_alloc(QN_CACHELINE, bytes);
    episodes.entered = calloc(o->members, sizeof *episodes.entered);
    episodes.took = calloc(o->count, sizeof *episodes.took);
    int err = episodes.memory != NULL && episodes.entered != NULL &&
                      episodes.took != NULL
                  ? qn_barrier_format(episodes.memory, bytes, &b)
                  : QN_ENOMEM;
    err = err == QN_OK ? run(r) : err;
    free(episodes.memory);
    free(episodes.entered);
    free(episodes.took);
    return err;
}
