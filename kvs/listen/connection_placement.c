/*
 * Placement of connections (connection_placement.h).
 *
 * The program is made of two parts. First a binary search over the runs of
 * cores that have the same answer:
 *
 *         ld cpu
 *         jge #mid, 0, 1         cores from mid on are behind the jump
 *         ja right
 *         ...left...             each leaf is a jump to its answer
 *         ...right...
 *
 * then the answers, each once: `ret i`, or for several replicas
 *
 *         ld random; mod #count
 *         jeq #0, 0, 1; ret i    for each of them
 *
 * Conditional jumps reach only 255 instructions, so all long jumps are `ja`.
 * The kernel allows only forward jumps, so the answers are behind the search.
 */
#include "kvs/listen/connection_placement.h"

#include <errno.h>
#include <sys/socket.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/place/numa_map.h"

enum { FAR = 256 }; /* farther than any distance of a map */

/* ---- the decision -------------------------------------------------------- */

static int home_distance(const struct qn_connection_placement *p, int from,
                         qn_node_t i)
{
    int home = p->home[i];
    bool known = home >= 0 && (uint32_t)home < p->map->nodes;
    return known ? p->map->distance[from][home] : FAR;
}

uint64_t qn_connection_placement_near(const struct qn_connection_placement *p,
                                      uint32_t cpu, uint64_t open)
{
    int from = p->map != NULL && cpu < p->map->cpus ? p->map->node[cpu] : -1;
    int least = FAR;
    uint64_t near = 0;
    QN_ASSERT(open != 0);
    if (from < 0) {
        return open;
    }
    for (qn_node_t i = 0; i < p->nodes; i++) {
        int d = home_distance(p, from, i);
        if ((open >> i & 1) == 0 || d > least) {
            continue;
        }
        near = d < least ? 0 : near;
        least = d;
        near |= (uint64_t)1 << i;
    }
    return near;
}

/* ---- the program --------------------------------------------------------- */

struct run {
    uint32_t first; /* core */
    uint32_t answer;
};

struct program {
    struct sock_filter *out;
    uint32_t count;
    bool full;
    struct run run[QN_PLACES_MAX + 1];
    uint32_t runs;
    uint64_t answer[QN_PLACES_MAX + 1]; /* distinct masks */
    uint32_t answers;
    uint32_t leaf_at[QN_PLACES_MAX + 1]; /* of each run, a `ja` */
};

static void emit(struct program *g, uint16_t code, uint32_t k, uint8_t jt,
                 uint8_t jf)
{
    if (g->count == QN_CONNECTION_PLACEMENT_INSNS) {
        g->full = true;
        return;
    }
    g->out[g->count++] =
        (struct sock_filter){.code = code, .jt = jt, .jf = jf, .k = k};
}

/* Make the `ja` at `at` lead to the next instruction emitted. */
static void land(struct program *g, uint32_t at)
{
    if (!g->full) {
        g->out[at].k = g->count - at - 1;
    }
}

static uint32_t answer_of(struct program *g, uint64_t mask)
{
    uint32_t i = 0;
    while (i < g->answers && g->answer[i] != mask) {
        i++;
    }
    if (i == g->answers) {
        g->answer[g->answers++] = mask;
    }
    return i;
}

static void find_runs(struct program *g,
                      const struct qn_connection_placement *p, uint64_t open)
{
    uint32_t cpus = p->map != NULL ? p->map->cpus : 0;
    QN_ASSERT(cpus <= QN_PLACES_MAX);
    /* The core number `cpus` stands for all cores that the map does not know.
     */
    for (uint32_t cpu = 0; cpu <= cpus; cpu++) {
        uint32_t answer =
            answer_of(g, qn_connection_placement_near(p, cpu, open));
        if (g->runs == 0 || g->run[g->runs - 1].answer != answer) {
            g->run[g->runs++] = (struct run){cpu, answer};
        }
    }
}

/* The search over the runs from .. to - 1; as deep as their number's log. */
static void emit_search(struct program *g, uint32_t from, uint32_t to)
{
    if (to - from == 1) {
        g->leaf_at[from] = g->count;
        emit(g, BPF_JMP | BPF_JA, 0, 0, 0);
        return;
    }
    uint32_t mid = from + (to - from) / 2;
    emit(g, BPF_JMP | BPF_JGE | BPF_K, g->run[mid].first, 0, 1);
    uint32_t right = g->count;
    emit(g, BPF_JMP | BPF_JA, 0, 0, 0);
    emit_search(g, from, mid);
    land(g, right);
    emit_search(g, mid, to);
}

static void emit_answer(struct program *g, uint64_t mask)
{
    uint32_t count = (uint32_t)__builtin_popcountll(mask);
    if (count > 1) {
        emit(g, BPF_LD | BPF_W | BPF_ABS,
             (uint32_t)(SKF_AD_OFF + SKF_AD_RANDOM), 0, 0);
        emit(g, BPF_ALU | BPF_MOD | BPF_K, count, 0, 0);
    }
    for (uint32_t nth = 0; mask != 0; nth++, mask &= mask - 1) {
        if (nth + 1 < count) {
            emit(g, BPF_JMP | BPF_JEQ | BPF_K, nth, 0, 1);
        }
        emit(g, BPF_RET | BPF_K, (uint32_t)__builtin_ctzll(mask), 0, 0);
    }
}

uint32_t qn_connection_placement_program(
    const struct qn_connection_placement *p, uint64_t open,
    struct sock_filter *out)
{
    struct program g = {.out = out};
    find_runs(&g, p, open);
    emit(&g, BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_CPU), 0,
         0);
    emit_search(&g, 0, g.runs);
    for (uint32_t a = 0; a < g.answers && !g.full; a++) {
        for (uint32_t r = 0; r < g.runs; r++) {
            if (g.run[r].answer == a) {
                land(&g, g.leaf_at[r]);
            }
        }
        emit_answer(&g, g.answer[a]);
    }
    return g.full ? 0 : g.count;
}

bool qn_connection_placement_attach(int fd, struct sock_filter *program,
                                    uint32_t count)
{
    const struct sock_fprog all = {.len = (unsigned short)count,
                                   .filter = program};
    int none = 0;
    if (count > 0) {
        return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &all,
                          sizeof all) == 0;
    }
    /* ENOENT: no program was attached. */
    return setsockopt(fd, SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, &none,
                      sizeof none) == 0 ||
           errno == ENOENT;
}
