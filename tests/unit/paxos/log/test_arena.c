/* The upload arena: places, their order, memory, and what a reader believes. */
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "paxos/log/arena.h"
#include "tests/support/test.h"

#define MIB ((uint64_t)1 << 20)

static uint8_t *memory;
static struct qn_arena a, seen;
static uint64_t granted; /* bytes, by grow */
static bool refuses;

static int grow(void *ctx, uint64_t bytes)
{
    (void)ctx;
    if (!refuses) {
        granted = QN_MAX(granted, bytes);
    }
    return refuses ? QN_ENOMEM : QN_OK;
}

static void begin(uint64_t capacity)
{
    const struct qn_arena_opts o = {.capacity = capacity, .grow = grow};
    size_t bytes = qn_align_up(qn_arena_bytes(capacity), QN_CACHELINE);
    memory = aligned_alloc(QN_CACHELINE, bytes);
    memset(memory, 0, bytes);
    granted = qn_arena_bytes(0);
    cr_assert_eq(qn_arena_begin(&a, memory, &o), QN_OK);
    qn_arena_open(&seen, memory, capacity);
}

static void end(void)
{
    qn_arena_end(&a);
    free(memory);
}

#define ARENA(name) Test(arena, name, .fini = end)

static struct qn_arena_place add(uint64_t len)
{
    struct qn_arena_place p;
    cr_assert_eq(qn_arena_add(&a, len, &p), QN_OK);
    cr_assert_eq(p.len, len);
    cr_assert_leq(qn_arena_bytes(p.at + len), granted, "within its memory");
    return p;
}

ARENA(what_was_put_is_pulled_in_parts)
{
    char text[6] = "";
    begin(1024);
    struct qn_arena_place p = add(5);
    memcpy(qn_arena_at(&a, &p), "hello", 5);
    cr_assert_eq(qn_arena_pull(&seen, &p, 0, text, 2), QN_OK);
    cr_assert_eq(qn_arena_pull(&seen, &p, 2, text + 2, 3), QN_OK);
    cr_assert_str_eq(text, "hello");
    struct qn_arena_place none = add(0);
    cr_assert_eq(qn_arena_pull(&seen, &none, 0, text, 0), QN_OK);
}

ARENA(what_has_ended_is_not_pulled)
{
    char byte;
    begin(1024);
    struct qn_arena_place p = add(1);
    struct qn_arena_place q = add(1);
    qn_arena_free(&a);
    cr_assert_eq(qn_arena_pull(&seen, &p, 0, &byte, 1), QN_ESTALE);
    cr_assert_eq(qn_arena_pull(&seen, &q, 0, &byte, 1), QN_OK);
    qn_arena_free(&a);
    cr_assert_eq(qn_arena_pull(&seen, &q, 0, &byte, 1), QN_ESTALE);
}

Test(arena, a_block_that_has_ended_has_no_bytes, .fini = end, .signal = SIGABRT)
{
    begin(1024);
    struct qn_arena_place p = add(1);
    qn_arena_free(&a);
    (void)qn_arena_at(&a, &p);
}

ARENA(a_wild_place_is_refused)
{
    char bytes[64];
    begin(1024);
    struct qn_arena_place p = add(64);
    static const uint64_t wild[] = {UINT64_MAX, UINT64_MAX - 63, 1025, 961};
    for (size_t i = 0; i < 4; i++) {
        struct qn_arena_place x = p;
        x.at = wild[i];
        cr_assert_eq(qn_arena_pull(&seen, &x, 0, bytes, 64), QN_ECORRUPT);
        x = p;
        x.len = wild[i] < 1025 ? 1025 : wild[i];
        cr_assert_eq(qn_arena_pull(&seen, &x, 0, bytes, 64), QN_ECORRUPT);
    }
    p.index = 0;
    cr_assert_eq(qn_arena_pull(&seen, &p, 0, bytes, 64), QN_ECORRUPT);
    p = (struct qn_arena_place){.index = 7, .at = 960, .len = 64};
    cr_assert_eq(qn_arena_pull(&seen, &p, 0, bytes, 64), QN_OK,
                 "of no use to anybody, and harmless");
}

ARENA(it_is_full)
{
    struct qn_arena_place p;
    begin(1024);
    cr_assert_eq(qn_arena_add(&a, 1025, &p), QN_EMSGSIZE);
    add(512);
    add(512);
    cr_assert_eq(qn_arena_add(&a, 1, &p), QN_EAGAIN);
    cr_assert_eq(a.used, 1024);
    qn_arena_free(&a);
    add(512);
    cr_assert_eq(qn_arena_add(&a, 1, &p), QN_EAGAIN);
    cr_assert_eq(a.most, 1024);
}

ARENA(it_has_so_many_blocks)
{
    struct qn_arena_place p;
    begin(QN_ARENA_BLOCKS * QN_CACHELINE * 2);
    for (uint32_t i = 0; i < QN_ARENA_BLOCKS; i++) {
        add(1);
    }
    cr_assert_eq(qn_arena_add(&a, 1, &p), QN_EAGAIN);
    qn_arena_free(&a);
    add(1);
}

ARENA(what_was_told_to_nobody_is_taken_back)
{
    struct qn_arena_place p;
    begin(1024);
    add(1000);
    qn_arena_undo(&a);
    add(1000);
    qn_arena_free(&a);
    add(600);
    add(300);
    qn_arena_free(&a);
    add(500); /* it begins a lap */
    qn_arena_undo(&a);
    add(500);
    cr_assert_eq(qn_arena_add(&a, 200, &p), QN_EAGAIN);
    cr_assert_eq(a.used, 320 + 512);
}

ARENA(a_light_load_takes_little_memory)
{
    begin(64 * MIB);
    for (int i = 0; i < 10000; i++) {
        add(60000);
        add(60000);
        qn_arena_free(&a);
        qn_arena_free(&a);
    }
    cr_assert_leq(granted, qn_arena_bytes(MIB));
}

ARENA(a_steady_load_takes_no_more_than_a_few_times_what_it_keeps)
{
    begin(64 * MIB);
    for (int i = 0; i < 10000; i++) {
        add(60000);
        if (i >= 50) {
            qn_arena_free(&a);
        }
    }
    cr_assert_leq(granted, qn_arena_bytes(8 * MIB), "for 3 MB");
}

ARENA(without_memory_it_stays_as_it_was)
{
    struct qn_arena_place p;
    begin(8 * MIB);
    add(60000);
    refuses = true;
    cr_assert_eq(qn_arena_add(&a, 2 * MIB, &p), QN_ENOMEM);
    add(60000);
    refuses = false;
    p = add(2 * MIB);
    cr_assert_eq(p.index, 3, "no index was used up");
}

/* Random lengths, and ends in order: no block lies over another, and what is
 * left of each is what was written. */
struct kept {
    struct qn_arena_place place;
    uint8_t fill;
};

static bool apart(const struct kept *k, uint64_t first, uint64_t next,
                  const struct qn_arena_place *p)
{
    for (uint64_t i = first; i < next; i++) {
        const struct qn_arena_place *o = &k[i % 64].place;
        if (p->at < o->at + o->len && o->at < p->at + p->len) {
            return false;
        }
    }
    return true;
}

static bool intact(const struct kept *k)
{
    uint8_t bytes[4096];
    bool same =
        qn_arena_pull(&seen, &k->place, 0, bytes, k->place.len) == QN_OK;
    for (uint64_t i = 0; same && i < k->place.len; i++) {
        same = bytes[i] == k->fill;
    }
    return same;
}

ARENA(blocks_never_meet)
{
    struct kept kept[64];
    uint64_t first = 0;
    uint64_t next = 0;
    uint32_t full = 0;
    srand(5);
    begin(32768);
    for (int n = 0; n < 200000; n++) {
        struct qn_arena_place p;
        uint64_t len = (uint64_t)rand() % (rand() % 8 == 0 ? 4096 : 700);
        if (next - first < 64 && rand() % 2 == 0 &&
            qn_arena_add(&a, len, &p) == QN_OK) {
            cr_assert(apart(kept, first, next, &p), "step %d", n);
            kept[next++ % 64] = (struct kept){p, (uint8_t)n};
            memset(qn_arena_at(&a, &p), (uint8_t)n, len);
        } else if (first != next && rand() % 2 == 0) {
            cr_assert(intact(&kept[first++ % 64]), "step %d", n);
            qn_arena_free(&a);
        } else {
            full++;
        }
    }
    cr_assert_gt(full, 0);
    cr_assert_geq(a.most, 24576, "it was nearly full");
}
