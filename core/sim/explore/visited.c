/*
 * A hash goes along each node: over its accesses and, for each, the hash of the
 * last write to the same word. A write has those of the reads behind the last
 * write, too, as a sum, since their order does not matter. So the hashes of all
 * nodes tell the trace.
 *
 * What depends on what is that of independent.c, or more. C11: what seq_cst
 * orders is one word more, which full fences write and other seq_cst accesses
 * read. TSO: the same with all that empties a buffer as its writes, and loads
 * and drains as its reads; a buffer has a hash of its own, as its stores reach
 * memory at other times than their node runs.
 *
 * Words share places of a small table. Those that do depend on each other, so a
 * trace counts as several at worst.
 */
#include "core/sim/explore/visited.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/sim/explore/independent.h"

#define WORD   8u
#define PLACES 1024u
#define FIRST  4096u        /* states */
#define LAST   (1u << 22)   /* 32 MiB; more are not kept */
#define MOST   UINT64_C(15) /* deviations that an entry can tell, and 1 */

struct place {
    uint64_t write, reads;
    uint64_t run; /* of another run: nothing has happened there */
};

static struct {
    enum qn_explore_memory memory;
    uint64_t run;
    uint64_t node[QN_EXPLORE_NODES], buffer[QN_EXPLORE_NODES];
    struct place all; /* the word more */
    struct place place[PLACES];
    uint64_t *state; /* [size] key << 4 | deviations + 1; 0: none */
    uint32_t size, used;
} v;

static uint64_t mix(uint64_t h, uint64_t with)
{
    h = (h ^ with) + UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return h ^ h >> 32;
}

/* ---- states ---- */

static void resize(uint32_t size)
{
    free(v.state);
    v.state = calloc(size, sizeof *v.state);
    QN_ASSERT(v.state != NULL);
    v.size = size;
    v.used = 0;
}

/* @return its entry, or an empty one. */
static uint64_t *entry_of(uint64_t key)
{
    uint32_t i = (uint32_t)(key >> 4) & (v.size - 1);
    while (v.state[i] != 0 && (v.state[i] ^ key) > MOST) {
        i = (i + 1) & (v.size - 1);
    }
    return &v.state[i];
}

static void grow(void)
{
    uint64_t *old = v.state;
    const uint32_t size = v.size;
    v.state = NULL;
    resize(2 * size);
    for (uint32_t i = 0; i < size; i++) {
        if (old[i] != 0) {
            *entry_of(old[i] & ~MOST) = old[i];
            v.used++;
        }
    }
    free(old);
}

static void enter(uint64_t key, uint32_t deviations)
{
    if (v.used >= v.size / 2 && v.size < LAST) {
        grow();
    }
    uint64_t *e = entry_of(key);
    if (*e != 0 || v.used < v.size / 2) {
        v.used += *e == 0;
        *e = key | (deviations + 1);
    }
}

void qn_visited_start(void)
{
    resize(FIRST);
}

/* ---- a trace ---- */

void qn_visited_begin(enum qn_explore_memory m)
{
    v.memory = m;
    v.run++;
    v.all = (struct place){.run = v.run};
    for (uint32_t i = 0; i < QN_EXPLORE_NODES; i++) {
        v.node[i] = mix(i, 0);
        v.buffer[i] = mix(i, 1);
    }
}

static struct place *place_of(uintptr_t at)
{
    struct place *p = &v.place[mix(at / WORD, 0) % PLACES];
    if (p->run != v.run) {
        *p = (struct place){.run = v.run};
    }
    return p;
}

static uint64_t behind(uint64_t h, const struct place *p, bool writes)
{
    h = mix(h, p->write);
    return writes ? mix(h, p->reads) : h;
}

static void leave_at(struct place *p, uint64_t h, bool writes)
{
    p->write = writes ? h : p->write;
    p->reads = writes ? 0 : p->reads + h;
}

/* What a node or buffer of hash `h` does. `words`: to those of the access;
 * `all`: to the word more, 0: nothing, 1: a read, 2: a write. */
static uint64_t event(uint64_t h, const struct qn_sim_access *a, bool words,
                      uint32_t all)
{
    const bool writes = qn_access_writes(a);
    const uintptr_t from = (uintptr_t)a->at / WORD * WORD;
    const uintptr_t to = words ? (uintptr_t)a->at + a->bytes : from;
    h = mix(h, a->kind);
    for (uintptr_t at = from; at < to; at += WORD) {
        h = behind(h, place_of(at), writes);
    }
    h = all != 0 ? behind(h, &v.all, all == 2) : h;
    for (uintptr_t at = from; at < to; at += WORD) {
        leave_at(place_of(at), h, writes);
    }
    if (all != 0) {
        leave_at(&v.all, h, all == 2);
    }
    return h;
}

/* To the word more. */
static uint32_t all_of(const struct qn_sim_access *a)
{
    if (v.memory == QN_EXPLORE_C11) {
        return qn_access_full_fence(a)                                      ? 2
               : a->order == memory_order_seq_cst && a->kind != QN_SIM_LOAD ? 1
                                                                            : 0;
    }
    return qn_access_local(v.memory, a, false) ? 0
           : qn_access_empties(a)              ? 2
                                               : 1;
}

/* What it does to its words says nothing more about a trace: TSO, a store that
 * waits in its buffer; C11, a load, of which c11.c tells what it takes, and
 * plain copies, which are a race if their order matters. */
static bool is_private(const struct qn_sim_access *a, bool checked)
{
    return v.memory == QN_EXPLORE_TSO
               ? a->kind == QN_SIM_STORE || a->kind == QN_SIM_COPY_OUT
               : a->kind == QN_SIM_LOAD ||
                     qn_access_local(v.memory, a, checked);
}

void qn_visited_access(const struct qn_sim_access *a, bool checked)
{
    uint64_t *h = &v.node[qn_sim.self];
    *h = event(*h, a, !is_private(a, checked), all_of(a));
}

void qn_visited_drain(uint32_t node, uint32_t place,
                      const struct qn_sim_access *a)
{
    v.buffer[node] = event(mix(v.buffer[node], place), a, true, 1);
}

void qn_visited_note(uint32_t what)
{
    v.node[qn_sim.self] = mix(v.node[qn_sim.self], what);
}

/* Of all nodes and buffers. */
static uint64_t trace(void)
{
    uint64_t h = 0;
    for (uint32_t i = 0; i < qn_sim.nodes; i++) {
        h = mix(mix(h, v.node[i]), v.buffer[i]);
    }
    return h;
}

void qn_visited_all(void)
{
    const uint64_t h = mix(mix(trace(), v.all.write), v.all.reads);
    for (uint32_t i = 0; i < qn_sim.nodes; i++) {
        v.node[i] = mix(h, i);
    }
    leave_at(&v.all, h, true);
}

static uint64_t key_of(const struct qn_visited_at *at, uint32_t set)
{
    /* Which node leaves does not matter to those that may run next. */
    const uint32_t self = at->leaves ? QN_EXPLORE_NODES : qn_sim.self;
    const uint64_t where = at->paused | at->kills << 8 | self << 16;
    return mix(mix(trace(), where), set) & ~MOST;
}

bool qn_visited(const struct qn_visited_at *at, uint32_t deviations)
{
    uint32_t set = at->set;
    if (deviations + 1 > MOST) {
        return false;
    }
    /* Fewer nodes in the sleep set: more was run. */
    for (;; set = (set - 1) & at->set) {
        const uint64_t e = *entry_of(key_of(at, set));
        if (e != 0 && (e & MOST) <= deviations + 1) {
            return true;
        }
        if (set == 0) {
            break;
        }
    }
    enter(key_of(at, at->set), deviations);
    return false;
}
