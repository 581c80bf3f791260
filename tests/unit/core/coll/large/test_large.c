/* What a large collective refuses, and what it keeps; one member, or two of
 * which one is played by the test. */
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/large/large.h"
#include "core/coll/large/large_predict.h"
#include "core/place/outbox.h"
#include "tests/support/test.h"

static struct qn_large l; /* too large for the stack */
static struct qn_large_line lines[2];
static uint8_t own[256], other[256];
static const struct qn_large_arena arenas[2] = {{own, sizeof own},
                                                {other, sizeof other}};

static void init(uint32_t members, bool push, bool apart)
{
    static struct qn_alloc work;
    work = qn_alloc_malloc;
    const struct qn_large_opts o = {.members = members,
                                    .lines = lines,
                                    .arenas = apart ? arenas : NULL,
                                    .work = apart ? &work : NULL,
                                    .push = push};
    memset(lines, 0, sizeof lines);
    cr_assert_eq(qn_large_init(&l, &o), QN_OK);
}

static struct qn_large_call call_of(const char *variant, uint64_t bytes)
{
    const struct qn_large_variant *v = qn_large_variant_find(variant);
    return (struct qn_large_call){.variant = v,
                                  .operation = v->operation,
                                  .bytes = bytes,
                                  .in = own,
                                  .out = own + 128,
                                  .op = &qn_sum_u64,
                                  .entry = QN_LARGE_OWN,
                                  .exit = QN_LARGE_OWN};
}

Test(large, options_that_make_no_group_are_refused)
{
    struct qn_large_opts o = {.members = 2, .lines = lines};
    cr_assert_eq(qn_large_init(&l, &o), QN_OK);
    o.rank = 2;
    cr_assert_eq(qn_large_init(&l, &o), QN_EINVAL);
    o = (struct qn_large_opts){.members = 0, .lines = lines};
    cr_assert_eq(qn_large_init(&l, &o), QN_EINVAL);
    o.members = QN_LARGE_MEMBERS_MAX + 1;
    cr_assert_eq(qn_large_init(&l, &o), QN_EINVAL);
    o = (struct qn_large_opts){.members = 2};
    cr_assert_eq(qn_large_init(&l, &o), QN_EINVAL);
    o = (struct qn_large_opts){.members = 2, .lines = lines, .arenas = arenas};
    cr_assert_eq(qn_large_init(&l, &o), QN_EINVAL);
}

Test(large, push_is_refused_where_members_do_not_share)
{
    const struct qn_large_variant *v;
    init(1, false, false);
    for (uint32_t i = 0; (v = qn_large_variant_at(i)) != NULL; i++) {
        const struct qn_large_call c = call_of(v->name, 8);
        cr_assert_eq(qn_large_run(&l, &c),
                     v->direction == QN_LARGE_PUSH ? QN_EPERM : QN_OK);
    }
    init(1, true, false);
    const struct qn_large_call c = call_of("broadcast/push/flat", 8);
    cr_assert_eq(qn_large_run(&l, &c), QN_OK);
    qn_large_fini(&l);
}

Test(large, calls_that_cannot_be_run_change_nothing)
{
    init(1, false, false);
    struct qn_large_call c = call_of("broadcast/pull/flat", 8);
    c.root = 1;
    cr_assert_eq(qn_large_run(&l, &c), QN_EINVAL);
    c = call_of("broadcast/pull/flat", QN_LARGE_BYTES_MAX + 1);
    cr_assert_eq(qn_large_run(&l, &c), QN_EINVAL);
    c = call_of("broadcast/pull/flat", 8);
    c.operation = QN_LARGE_SCATTER;
    cr_assert_eq(qn_large_run(&l, &c), QN_EINVAL);
    c = call_of("broadcast/pull/flat", 8);
    c.in = NULL;
    cr_assert_eq(qn_large_run(&l, &c), QN_EINVAL);
    c.variant = NULL;
    c.operation = QN_LARGE_OPERATIONS;
    cr_assert_eq(qn_large_run(&l, &c), QN_EINVAL);
    c = call_of("reduce/pull/flat", 12); /* one element and a half */
    cr_assert_eq(qn_large_run(&l, &c), QN_EINVAL);
    c.op = NULL;
    cr_assert_eq(qn_large_run(&l, &c), QN_EINVAL);
    cr_assert_eq(lines[0].word, 0);
    c = call_of("gather/pull/flat", 8);
    cr_assert_eq(qn_large_run(&l, &c), QN_OK);
}

/* Choices in which each operation and size has another variant. */
static struct qn_large_choices choices_of(enum qn_large_direction direction)
{
    struct qn_large_choices c = {{{NULL}}};
    const struct qn_large_variant *v;
    uint32_t count[QN_LARGE_OPERATIONS] = {0};
    for (uint32_t i = 0; (v = qn_large_variant_at(i)) != NULL; i++) {
        uint32_t *n = &count[v->operation];
        if (v->direction == direction && *n < QN_LARGE_CHOICES) {
            c.of[v->operation][(*n)++] = v;
        }
    }
    for (uint32_t op = 0; op < QN_LARGE_OPERATIONS; op++) {
        for (uint32_t i = count[op]; i < QN_LARGE_CHOICES; i++) {
            c.of[op][i] = c.of[op][i % count[op]];
        }
    }
    return c;
}

Test(large, a_call_without_a_variant_runs_the_choice_of_its_size)
{
    const struct qn_large_choices choices = choices_of(QN_LARGE_PULL);
    static uint64_t in[(1 << 16) / 8 + 1], out[(1 << 16) / 8 + 1];
    init(1, false, false);
    l.o.choices = &choices;
    for (uint32_t op = 0; op < QN_LARGE_OPERATIONS; op++) {
        static const uint64_t bytes[] = {8, 1 << 14, (1 << 14) + 8, 1 << 16,
                                         (1 << 16) + 8};
        static const uint32_t index[] = {0, 0, 1, 1, 2};
        for (uint32_t i = 0; i < QN_ARRAY_COUNT(bytes); i++) {
            const struct qn_large_call c = {.operation =
                                                (enum qn_large_operation)op,
                                            .bytes = bytes[i],
                                            .in = in,
                                            .out = out,
                                            .op = &qn_sum_u64};
            memset(out, 0, sizeof out);
            in[0] = 7 + i;
            cr_assert_eq(qn_large_run(&l, &c), QN_OK);
            cr_expect_eq(l.plan.variant, choices.of[op][index[i]], "%u, %llu",
                         op, (unsigned long long)bytes[i]);
            cr_expect_eq(out[0], op == QN_LARGE_BROADCAST ? 0 : 7 + i);
        }
    }
    qn_large_fini(&l);
}

/* A name goes before the choice; choices of a group that shares are refused in
 * one that does not. */
Test(large, a_name_goes_before_a_choice_and_a_choice_may_be_refused)
{
    const struct qn_large_choices choices = choices_of(QN_LARGE_PUSH);
    init(1, false, false);
    l.o.choices = &choices;
    struct qn_large_call c = call_of("broadcast/pull/flat", 8);
    cr_assert_eq(qn_large_run(&l, &c), QN_OK);
    cr_expect_eq(l.plan.variant, c.variant);
    c.variant = NULL;
    cr_expect_eq(qn_large_run(&l, &c), QN_EPERM);
    qn_large_fini(&l);
}

Test(large, a_shown_buffer_lies_in_the_own_arena)
{
    init(2, false, true);
    struct qn_large_call c = call_of("broadcast/pull/flat", 8);
    c.in = other;
    cr_assert_eq(qn_large_run(&l, &c), QN_EINVAL);
    c.in = own + sizeof own - 4;
    cr_assert_eq(qn_large_run(&l, &c), QN_EINVAL);
    cr_assert_eq(lines[0].word, 0);
}

Test(large, places_that_all_know_lie_in_the_own_arena)
{
    init(2, false, true);
    struct qn_large_call c = call_of("broadcast/pull/flat", 8);
    c.entry = QN_LARGE_NONE;
    c.root = 1;
    c.in = other; /* what it would look for in member 1's arena */
    cr_assert_eq(qn_large_run(&l, &c), QN_EINVAL);
    c.in = own + sizeof own - 4;
    cr_assert_eq(qn_large_run(&l, &c), QN_EINVAL);
    c.in = own;
    c.out = other;
    cr_assert_eq(qn_large_run(&l, &c), QN_EINVAL);
    cr_assert_eq(lines[0].word, 0);
    c.out = own + 128;
    other[0] = 9;
    lines[1].word = 200; /* far enough */
    cr_assert_eq(qn_large_run(&l, &c), QN_OK);
    cr_assert_eq(own[128], 9);
}

/* The root of a broadcast waits for nothing, but when words would come too far
 * from each other. */
Test(large, members_meet_before_their_words_are_too_far_apart)
{
    init(2, false, true);
    struct qn_large_call c = call_of("broadcast/pull/flat", 8);
    c.exit = QN_LARGE_NONE;
    cr_assert_eq(qn_large_run(&l, &c), QN_OK);
    lines[1].word = 1000; /* it has read that, and more */
    cr_assert_eq(qn_large_settle(&l), QN_OK);
    cr_assert(l.unmet > 0 && l.unmet < 20, "%llu", (unsigned long long)l.unmet);
    const uint64_t span = l.unmet;
    l.unmet = ((uint64_t)1 << 29) - span;
    cr_assert_eq(qn_large_run(&l, &c), QN_OK);
    cr_assert_eq(qn_large_settle(&l), QN_OK);
    cr_assert_eq(l.unmet, (uint64_t)1 << 29);
    qn_large_down(lines, 1);
    lines[1].word = (l.base << 1) | 1; /* it comes no further */
    cr_assert_eq(qn_large_run(&l, &c), QN_EPEERDEAD);
    init(2, false, true);
    l.unmet = (uint64_t)1 << 29;
    lines[1].word = 1000;
    cr_assert_eq(qn_large_run(&l, &c), QN_OK);
    cr_assert_eq(qn_large_settle(&l), QN_OK);
    cr_assert(l.unmet < 20, "they have met");
}

Test(large, what_another_member_shows_is_checked)
{
    init(2, false, true);
    struct qn_large_call c = call_of("broadcast/pull/flat", 8);
    c.root = 1;
    lines[1].shown = sizeof other - 4;
    lines[1].word = 2; /* it has entered */
    cr_assert_eq(qn_large_run(&l, &c), QN_ECORRUPT);
    cr_assert_eq(lines[0].word & 1, 1, "the others learn that it has failed");
    cr_assert_eq(qn_large_run(&l, &c), QN_ECORRUPT);
}

#define PULLED (UINT64_C(64) << 10)

static struct qn_outbox *outbox_of(qn_node_t node, struct qn_outbox_opts *o)
{
    struct qn_outbox *b;
    o->node = node;
    cr_assert_eq(qn_outbox_create(&b, o), QN_OK);
    cr_assert_eq(qn_outbox_grow(b, QN_REGION_ARENA, o->arena_bytes), QN_OK);
    return b;
}

/* Where long commands wait for their leader: mapped read-only by all others. */
Test(large, a_broadcast_is_pulled_from_the_arena_of_an_outbox)
{
    struct qn_outbox_opts o = {.nodes = 2,
                               .incarnation = 1,
                               .arena_bytes = 4 * PULLED,
                               .numa_node = -1,
                               .shared = true};
    struct qn_outbox *mine = outbox_of(0, &o), *peers = outbox_of(1, &o), *seen;
    cr_assert_eq(qn_outbox_map(&seen, qn_outbox_fd(peers), &o), QN_OK);
    uint8_t *to = qn_outbox_region(mine, QN_REGION_ARENA);
    uint8_t *from = qn_outbox_region(peers, QN_REGION_ARENA);
    const struct qn_large_arena two[2] = {
        {to, o.arena_bytes},
        {qn_outbox_region(seen, QN_REGION_ARENA), o.arena_bytes}};
    init(2, false, true);
    l.o.arenas = two;
    struct qn_large_call c = call_of("broadcast/pull/flat", PULLED);
    c.root = 1;
    c.in = NULL;
    c.out = to + PULLED;
    for (uint64_t i = 0; i < PULLED; i++) {
        from[PULLED / 2 + i] = (uint8_t)(i * 7 + (i >> 8));
    }
    lines[1].shown = PULLED / 2;
    lines[1].word = 2; /* it has entered */
    cr_assert_eq(qn_large_run(&l, &c), QN_OK);
    cr_expect_eq(memcmp(to + PULLED, from + PULLED / 2, PULLED), 0);
    qn_large_fini(&l);
    qn_outbox_destroy(seen);
    qn_outbox_destroy(peers);
    qn_outbox_destroy(mine);
}

/* As one does that was called with other bytes. */
Test(large, a_member_that_shows_nothing_is_no_crash)
{
    init(2, true, true);
    struct qn_large_call c = call_of("broadcast/pull/flat", 8);
    c.op = NULL;
    c.root = 1;
    lines[1].shown = UINT64_MAX;
    lines[1].word = 2;
    cr_assert_eq(qn_large_run(&l, &c), QN_ECORRUPT);
    init(2, true, true);
    c = call_of("broadcast/push/flat", 8);
    lines[1].shown = UINT64_MAX;
    lines[1].word = 2;
    cr_assert_eq(qn_large_run(&l, &c), QN_ECORRUPT);
    init(2, true, true);
    c = call_of("reduce/push/flat", 8);
    c.root = 1;
    lines[1].shown = UINT64_MAX;
    lines[1].word = 2;
    cr_assert_eq(qn_large_run(&l, &c), QN_ECORRUPT);
}

Test(large, a_member_that_was_said_to_have_ended_ends)
{
    init(2, false, false);
    const struct qn_large_call c = call_of("broadcast/pull/flat", 8);
    qn_large_down(lines, 0);
    cr_assert_eq(qn_large_run(&l, &c), QN_EREMOVED);
}

Test(large, the_progress_of_an_ended_member_counts)
{
    init(2, false, true);
    struct qn_large_call c = call_of("broadcast/pull/flat", 8);
    c.root = 1;
    memset(other, 7, sizeof other);
    lines[1].shown = 16;
    lines[1].word = 2;
    qn_large_down(lines, 1);
    cr_assert_eq(qn_large_run(&l, &c), QN_OK);
    cr_assert_eq(own[128], 7);
    cr_assert_eq(qn_large_run(&l, &c), QN_EPEERDEAD);
}

static size_t blocks, largest;

static void *count_blocks(void *ctx, void *p, size_t bytes)
{
    (void)ctx;
    if (bytes > ((size_t)64 << 20)) {
        return NULL;
    }
    blocks += p == NULL;
    blocks -= bytes == 0;
    largest = QN_MAX(largest, bytes);
    return qn_alloc_malloc.resize(NULL, p, bytes);
}

/* Member 1 of three, which serves member 2, and combines what both have. */
Test(large, intermediate_memory_is_kept_up_to_its_bound)
{
    static struct qn_large_line three[4];
    static const struct qn_alloc counted = {count_blocks, NULL};
    const uint64_t sizes[] = {QN_LARGE_KEPT_MAX, QN_LARGE_KEPT_MAX / 2,
                              QN_LARGE_KEPT_MAX + 8};
    const size_t kept[] = {1, 1, 0};
    uint8_t *big = malloc(sizes[2]);
    cr_assert(big != NULL);
    const struct qn_large_opts o = {
        .members = 4, .rank = 2, .lines = three, .work = &counted};
    cr_assert_eq(qn_large_init(&l, &o), QN_OK);
    struct qn_large_call c = call_of("reduce/pull/binomial/whole", 8);
    c.in = big;
    memset(big, 0, sizes[2]);
    for (uint32_t i = 0; i < 3; i++) {
        c.bytes = sizes[i];
        three[3].shown = (uint64_t)(uintptr_t)big;
        three[3].word = three[0].word = 1000 * (i + 1); /* far enough */
        cr_assert_eq(qn_large_run(&l, &c), QN_OK);
        cr_assert_eq(blocks, kept[i], "size %u: %zu blocks", i, blocks);
    }
    cr_assert_eq(largest, sizes[2]);
    c.bytes = (uint64_t)65 << 20;
    const uint32_t before = three[2].word;
    cr_assert_eq(qn_large_run(&l, &c), QN_ENOMEM);
    cr_assert_eq(three[2].word, before);
    qn_large_fini(&l);
    cr_assert_eq(blocks, 0);
    free(big);
}
