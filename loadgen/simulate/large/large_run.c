/*
 * All memory is one mapping, of which only what is touched takes memory of the
 * host: of each member its input, its output and its intermediate buffer, apart
 * by a multiple of the piece that copies are priced by.
 *
 * Inputs are touched by their members before the first operation, so that they
 * lie where a program's would: in the cache of their member if that holds them.
 */
#include "loadgen/simulate/large/large_run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/large/bulk_copy.h"
#include "core/coll/large/large.h"
#include "core/coll/large/large_predict.h"
#include "core/sim/timed/coherent.h"
#include "core/sim/timed/timed.h"

/* As on own cores; then a member sleeps, so that waits of milliseconds cost the
 * host little. */
#define LOOK_NS (20 * QN_US)

#define WORD  sizeof(uint32_t) /* an element; a message may be one */
#define COUNT 2u /* each takes the same time, but for what is in the caches */

struct member {
    struct qn_large l;
    struct qn_alloc work;
    uint32_t *in, *out;
    char *intermediate;
    qn_ps_t begun, ended;
    int rc;
};

static struct large_world {
    const struct qn_large_run_opts *o;
    struct qn_operator op;
    struct member *member; /* [n] */
    struct qn_large_line *lines;
    struct qn_large_place *place;
    struct qn_large_arena *arena;
    char *memory, *first; /* the mapping; of the arenas, aligned */
    size_t bytes, apart;  /* of the mapping; between arenas */
} large_world;

/* ---- memory ---- */

static void *take_work(void *ctx, void *p, size_t bytes)
{
    const struct member *m = ctx;
    (void)p;
    return bytes == 0 ? NULL : m->intermediate;
}

static uint32_t owner_of(void *ctx, const void *at)
{
    const uintptr_t offset = (uintptr_t)at - (uintptr_t)large_world.first;
    (void)ctx;
    return (uint32_t)(offset / large_world.apart);
}

static int map_arenas(uint32_t n)
{
    const uint64_t all = qn_align_up(large_world.o->bytes, QN_BULK_PIECE) * n;
    const size_t part = QN_MAX((size_t)all, (size_t)QN_BULK_PIECE);
    large_world.apart = 4 * part; /* intermediate: a slot more than members */
    large_world.bytes = large_world.apart * n + QN_BULK_PIECE;
    large_world.memory =
        mmap(NULL, large_world.bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (large_world.memory == MAP_FAILED) {
        return QN_ENOMEM;
    }
    const uintptr_t base = (uintptr_t)large_world.memory;
    large_world.first =
        large_world.memory + (qn_align_up(base, QN_BULK_PIECE) - base);
    for (uint32_t i = 0; i < n; i++) {
        struct member *m = &large_world.member[i];
        char *at = large_world.first + large_world.apart * i;
        large_world.arena[i] = (struct qn_large_arena){at, large_world.apart};
        m->in = (uint32_t *)(void *)at;
        m->out = (uint32_t *)(void *)(at + part);
        m->intermediate = at + 2 * part;
        m->work = (struct qn_alloc){take_work, m};
    }
    return QN_OK;
}

static void free_world(void)
{
    if (large_world.memory != NULL && large_world.memory != MAP_FAILED) {
        munmap(large_world.memory, large_world.bytes);
    }
    free(large_world.member);
    free(large_world.lines);
    free(large_world.place);
    free(large_world.arena);
}

static int make_world(const struct qn_large_run_opts *o)
{
    const uint32_t n = o->m->n;
    large_world = (struct large_world){.o = o};
    large_world.member = calloc(n, sizeof *large_world.member);
    large_world.lines =
        aligned_alloc(QN_CACHELINE, n * sizeof *large_world.lines);
    large_world.place = calloc(n, sizeof *large_world.place);
    large_world.arena = calloc(n, sizeof *large_world.arena);
    if (large_world.member == NULL || large_world.lines == NULL ||
        large_world.place == NULL || large_world.arena == NULL) {
        return QN_ENOMEM;
    }
    memset(large_world.lines, 0, n * sizeof *large_world.lines);
    qn_large_places(o->m, large_world.place);
    return map_arenas(n);
}

/* ---- contents ---- */

static bool is_checked(void)
{
    return large_world.o->bytes <= QN_LARGE_RUN_CHECKED;
}

/* Bytes that move nowhere are not added either. */
static void combine_nothing(void *into, const void *from, uint32_t count)
{
    (void)into;
    (void)from;
    (void)count;
}

static const uint32_t zero;

static void add(void *into, const void *from, uint32_t count)
{
    uint32_t *x = into;
    const uint32_t *y = from;
    for (uint32_t i = 0; i < count; i++) {
        x[i] += y[i];
    }
}

static uint32_t word_of(uint32_t rank, uint64_t i)
{
    return (uint32_t)(i + 1) * 0x9e3779b9u + rank * 0x10001u;
}

static uint64_t words_in(uint32_t rank)
{
    const struct qn_large_run_opts *o = large_world.o;
    const bool all =
        o->variant->operation == QN_LARGE_SCATTER && rank == o->root;
    return o->bytes / WORD * (all ? o->m->n : 1);
}

static uint32_t sum_of(uint64_t i)
{
    uint32_t sum = 0;
    for (uint32_t x = 0; x < large_world.o->m->n; x++) {
        sum += word_of(x, i);
    }
    return sum;
}

static bool is_right(uint32_t rank)
{
    const struct qn_large_run_opts *o = large_world.o;
    const uint64_t words = o->bytes / WORD;
    const uint32_t *out = large_world.member[rank].out;
    const bool root = rank == o->root;
    bool right = true;
    for (uint64_t i = 0; i < words; i++) {
        switch (o->variant->operation) {
        case QN_LARGE_BROADCAST:
            right = right && (root || out[i] == word_of(o->root, i));
            break;
        case QN_LARGE_SCATTER:
            right = right && out[i] == word_of(o->root, rank * words + i);
            break;
        case QN_LARGE_REDUCE:
            right = right && (!root || out[i] == sum_of(i));
            break;
        default:
            for (uint32_t x = 0; root && x < o->m->n; x++) {
                right = right && out[x * words + i] == word_of(x, i);
            }
        }
    }
    return right;
}

static void fill(uint32_t rank)
{
    const struct member *m = &large_world.member[rank];
    for (uint64_t i = 0; i < words_in(rank); i++) {
        m->in[i] = word_of(rank, i);
    }
}

/* ---- members ---- */

static void node_main(void *ctx, uint32_t rank)
{
    struct member *m = &large_world.member[rank];
    const struct qn_large_run_opts *o = large_world.o;
    const struct qn_large_call c = {.variant = o->variant,
                                    .operation = o->variant->operation,
                                    .root = o->root,
                                    .bytes = o->bytes,
                                    .in = m->in,
                                    .out = m->out,
                                    .op = &large_world.op,
                                    .entry = QN_LARGE_ALL,
                                    .exit = QN_LARGE_ALL};
    (void)ctx;
    qn_bulk_touch(m->in, m->in, words_in(rank) * WORD);
    m->rc = qn_large_run(&m->l, &c);
    m->begun = qn_timed_clock();
    for (uint32_t i = 0; i < COUNT && m->rc == QN_OK; i++) {
        m->rc = qn_large_run(&m->l, &c);
    }
    m->ended = qn_timed_clock();
}

static int start_members(void)
{
    const uint32_t n = large_world.o->m->n;
    int rc = QN_OK;
    for (uint32_t i = 0; i < n && rc == QN_OK; i++) {
        struct member *m = &large_world.member[i];
        const struct qn_large_opts l = {.members = n,
                                        .rank = i,
                                        .lines = large_world.lines,
                                        .arenas = large_world.arena,
                                        .place = large_world.place,
                                        .work = &m->work,
                                        .push = true,
                                        .backoff = {.look_ns = LOOK_NS}};
        rc = qn_large_init(&m->l, &l);
        m->rc = QN_EIO; /* until it has returned */
        if (is_checked()) {
            fill(i);
        }
    }
    return rc;
}

static void sum_up(struct qn_large_run_result *out, bool failed)
{
    qn_ps_t begun = 0, ended = 0;
    *out = (struct qn_large_run_result){.wrong = failed};
    for (uint32_t i = 0; i < large_world.o->m->n; i++) {
        const struct member *m = &large_world.member[i];
        begun = QN_MAX(begun, m->begun);
        ended = QN_MAX(ended, m->ended);
        out->wrong =
            out->wrong || m->rc != QN_OK || (is_checked() && !is_right(i));
    }
    out->ns = (double)(ended - begun) / QN_PS_PER_NS / COUNT;
}

static int run_members(struct qn_large_run_result *out)
{
    static uint32_t core[QN_CORES_MAX];
    const struct qn_large_run_opts *o = large_world.o;
    const struct qn_coherent_opts c = {.bulk = true};
    const struct qn_sim_fault slow = {
        .kind = QN_SIM_FAULT_LINES, .node = o->m->n - 1, .factor = o->slow};
    struct qn_timed_result r;
    struct qn_timed_opts t = {.nodes = o->m->n,
                              .main = node_main,
                              .seed = o->seed,
                              .jitter = o->jitter,
                              .owner = owner_of,
                              .unmoved = !is_checked(),
                              .fault = &slow,
                              .faults = o->slow >= 1};
    for (uint32_t i = 0; i < o->m->n; i++) {
        core[i] = i;
    }
    int rc = qn_coherent_create(&t.prices, o->m, core, o->m->n, &c);
    if (rc == QN_OK) {
        rc = qn_timed_run(&t, &r);
        qn_prices_destroy(t.prices);
    }
    if (rc == QN_OK) {
        sum_up(out, r.fault != NULL);
        rc = r.cut_off ? QN_ETIMEDOUT : QN_OK;
        qn_timed_result_free(&r);
    }
    return rc;
}

int qn_large_run_timed(struct qn_large_run_result *out,
                       const struct qn_large_run_opts *o)
{
    if (o->m->n < 2 || o->root >= o->m->n || o->bytes % WORD != 0 ||
        o->bytes > QN_LARGE_RUN_MOST || !qn_machine_has_costs(o->m)) {
        return QN_EINVAL;
    }
    int rc = make_world(o);
    large_world.op = (struct qn_operator){is_checked() ? add : combine_nothing,
                                          &zero, WORD, true};
    rc = rc == QN_OK ? start_members() : rc;
    rc = rc == QN_OK ? run_members(out) : rc;
    free_world();
    return rc;
}
