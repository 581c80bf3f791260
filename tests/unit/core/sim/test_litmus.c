/*
 * The C11 memory of the explorer against a table of litmus tests: an end that
 * C11 allows is found, one that it forbids is not. Programs and verdicts are
 * the usual ones (Batty et al., Mathematizing C++ Concurrency; Lahav et al.,
 * Repairing Sequential Consistency in C/C++11). `not covered`: C11 allows it,
 * the machine does not do it (c11.h).
 */
#include "tests/support/test.h"
#include "tests/unit/core/sim/litmus.h"

enum verdict { FORBIDDEN, ALLOWED, NOT_COVERED };

/* Orders of a program's W and R places. */
struct combination {
    memory_order w, r;
    enum verdict verdict;
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *order_name(memory_order o)
{
    static const char *const name[] = {
        [memory_order_relaxed] = "relaxed", [memory_order_consume] = "consume",
        [memory_order_acquire] = "acquire", [memory_order_release] = "release",
        [memory_order_acq_rel] = "acq_rel", [memory_order_seq_cst] = "seq_cst"};
    return name[o];
}

static struct litmus_ends ends;

static void explore(const struct litmus_program *p)
{
    cr_assert(litmus_explore(p,
                             (struct qn_explore_opts){.memory = QN_EXPLORE_C11,
                                                      .deviations = 12},
                             &ends),
              "%s", ends.found.fault == NULL ? "incomplete" : ends.found.fault);
}

static void judge(const struct litmus_program *p, const uint8_t *reg,
                  uint32_t n, struct combination c)
{
    explore(p);
    cr_assert_eq(litmus_has_registers(&ends, reg, n), c.verdict == ALLOWED,
                 "%s and %s: %s", order_name(c.w), order_name(c.r),
                 c.verdict == ALLOWED ? "allowed and not found"
                                      : "found and must not be");
}

/* ---- message passing ---- */

static const struct combination mp[] = {
    {RLX, RLX, ALLOWED}, {RLX, ACQ, ALLOWED},   {RLX, SC, ALLOWED},
    {REL, RLX, ALLOWED}, {REL, ACQ, FORBIDDEN}, {REL, SC, FORBIDDEN},
    {SC, RLX, ALLOWED},  {SC, ACQ, FORBIDDEN},  {SC, SC, FORBIDDEN}};

Test(litmus, message_passing)
{
    for (size_t i = 0; i < COUNT(mp); i++) {
        const struct litmus_program p = {
            2,
            {{STORE(X, 1, RLX), STORE(Y, 1, mp[i].w)},
             {LOAD(Y, 0, mp[i].r), LOAD(X, 1, RLX)}}};
        judge(&p, (const uint8_t[]){1, 0}, 2, mp[i]);
    }
}

static const struct combination mp_fences[] = {
    {RLX, RLX, ALLOWED},   {RLX, ACQ, ALLOWED},   {RLX, SC, ALLOWED},
    {ACQ, ACQ, ALLOWED},   {REL, RLX, ALLOWED},   {REL, REL, ALLOWED},
    {REL, ACQ, FORBIDDEN}, {REL, ACR, FORBIDDEN}, {REL, SC, FORBIDDEN},
    {ACR, ACQ, FORBIDDEN}, {SC, ACQ, FORBIDDEN},  {SC, SC, FORBIDDEN}};

Test(litmus, message_passing_by_fences)
{
    for (size_t i = 0; i < COUNT(mp_fences); i++) {
        const struct litmus_program p = {
            2,
            {{STORE(X, 1, RLX), FENCE(mp_fences[i].w), STORE(Y, 1, RLX)},
             {LOAD(Y, 0, RLX), FENCE(mp_fences[i].r), LOAD(X, 1, RLX)}}};
        judge(&p, (const uint8_t[]){1, 0}, 2, mp_fences[i]);
    }
}

/* A fence at one end, an ordered operation at the other. */
Test(litmus, message_passing_mixed)
{
    const struct litmus_program to_fence = {
        2,
        {{STORE(X, 1, RLX), STORE(Y, 1, REL)},
         {LOAD(Y, 0, RLX), FENCE(ACQ), LOAD(X, 1, RLX)}}};
    const struct litmus_program from_fence = {
        2,
        {{STORE(X, 1, RLX), FENCE(REL), STORE(Y, 1, RLX)},
         {LOAD(Y, 0, ACQ), LOAD(X, 1, RLX)}}};
    const struct litmus_program too_early = {
        2,
        {{FENCE(REL), STORE(X, 1, RLX), STORE(Y, 1, RLX)},
         {LOAD(Y, 0, ACQ), LOAD(X, 1, RLX)}}};
    const uint8_t stale[] = {1, 0};
    judge(&to_fence, stale, 2, (struct combination){REL, ACQ, FORBIDDEN});
    judge(&from_fence, stale, 2, (struct combination){REL, ACQ, FORBIDDEN});
    judge(&too_early, stale, 2, (struct combination){REL, ACQ, ALLOWED});
}

/* ---- store buffering ---- */

static const struct combination sb[] = {
    {RLX, RLX, ALLOWED}, {RLX, ACQ, ALLOWED}, {RLX, SC, ALLOWED},
    {REL, RLX, ALLOWED}, {REL, ACQ, ALLOWED}, {REL, SC, ALLOWED},
    {SC, RLX, ALLOWED},  {SC, ACQ, ALLOWED},  {SC, SC, FORBIDDEN}};

Test(litmus, store_buffering)
{
    for (size_t i = 0; i < COUNT(sb); i++) {
        const struct litmus_program p = {
            2,
            {{STORE(X, 1, sb[i].w), LOAD(Y, 0, sb[i].r)},
             {STORE(Y, 1, sb[i].w), LOAD(X, 1, sb[i].r)}}};
        judge(&p, (const uint8_t[]){0, 0}, 2, sb[i]);
    }
}

/* The two fences. */
static const struct combination sb_fences[] = {
    {ACR, ACR, ALLOWED}, {ACR, SC, ALLOWED}, {REL, SC, ALLOWED},
    {SC, RLX, ALLOWED},  {SC, ACR, ALLOWED}, {SC, SC, FORBIDDEN}};

Test(litmus, store_buffering_by_fences)
{
    for (size_t i = 0; i < COUNT(sb_fences); i++) {
        const struct litmus_program p = {
            2,
            {{STORE(X, 1, RLX), FENCE(sb_fences[i].w), LOAD(Y, 0, RLX)},
             {STORE(Y, 1, RLX), FENCE(sb_fences[i].r), LOAD(X, 1, RLX)}}};
        judge(&p, (const uint8_t[]){0, 0}, 2, sb_fences[i]);
    }
}

Test(litmus, store_buffering_by_a_fence_and_by_operations)
{
    const struct litmus_program p = {
        2,
        {{STORE(X, 1, SC), LOAD(Y, 0, SC)},
         {STORE(Y, 1, RLX), FENCE(SC), LOAD(X, 1, RLX)}}};
    const struct litmus_program load_too_weak = {
        2,
        {{STORE(X, 1, SC), LOAD(Y, 0, ACQ)},
         {STORE(Y, 1, RLX), FENCE(SC), LOAD(X, 1, RLX)}}};
    const uint8_t both[] = {0, 0};
    judge(&p, both, 2, (struct combination){SC, SC, FORBIDDEN});
    judge(&load_too_weak, both, 2, (struct combination){SC, ACQ, ALLOWED});
}

/* ---- independent reads of independent writes ---- */

static const struct combination iriw[] = {
    {RLX, RLX, ALLOWED}, {REL, ACQ, ALLOWED}, {REL, SC, ALLOWED},
    {SC, ACQ, ALLOWED},  {SC, RLX, ALLOWED},  {SC, SC, FORBIDDEN}};

Test(litmus, independent_reads_of_independent_writes, .timeout = 120)
{
    for (size_t i = 0; i < COUNT(iriw); i++) {
        const struct litmus_program p = {
            4,
            {{STORE(X, 1, iriw[i].w)},
             {STORE(Y, 1, iriw[i].w)},
             {LOAD(X, 0, iriw[i].r), LOAD(Y, 1, iriw[i].r)},
             {LOAD(Y, 2, iriw[i].r), LOAD(X, 3, iriw[i].r)}}};
        judge(&p, (const uint8_t[]){1, 0, 1, 0}, 4, iriw[i]);
    }
}

static const struct combination iriw_fences[] = {
    {ACQ, ACQ, ALLOWED}, {ACR, SC, ALLOWED}, {SC, SC, FORBIDDEN}};

Test(litmus, independent_reads_by_fences, .timeout = 120)
{
    for (size_t i = 0; i < COUNT(iriw_fences); i++) {
        const struct litmus_program p = {
            4,
            {{STORE(X, 1, RLX)},
             {STORE(Y, 1, RLX)},
             {LOAD(X, 0, RLX), FENCE(iriw_fences[i].w), LOAD(Y, 1, RLX)},
             {LOAD(Y, 2, RLX), FENCE(iriw_fences[i].r), LOAD(X, 3, RLX)}}};
        judge(&p, (const uint8_t[]){1, 0, 1, 0}, 4, iriw_fences[i]);
    }
}

/* ---- causality over a third thread ---- */

static const struct combination wrc[] = {
    {RLX, RLX, ALLOWED}, {REL, RLX, ALLOWED},   {RLX, ACQ, ALLOWED},
    {SC, RLX, ALLOWED},  {REL, ACQ, FORBIDDEN}, {SC, SC, FORBIDDEN}};

Test(litmus, write_to_read_causality, .timeout = 120)
{
    for (size_t i = 0; i < COUNT(wrc); i++) {
        const struct litmus_program p = {
            3,
            {{STORE(X, 1, RLX)},
             {LOAD(X, 0, RLX), STORE(Y, 1, wrc[i].w)},
             {LOAD(Y, 1, wrc[i].r), LOAD(X, 2, RLX)}}};
        judge(&p, (const uint8_t[]){1, 1, 0}, 3, wrc[i]);
    }
}

Test(litmus, causality_over_two_messages, .timeout = 120)
{
    for (size_t i = 0; i < COUNT(wrc); i++) {
        const struct litmus_program p = {
            3,
            {{STORE(X, 1, RLX), STORE(Y, 1, wrc[i].w)},
             {LOAD(Y, 0, wrc[i].r), STORE(Z, 1, wrc[i].w)},
             {LOAD(Z, 1, wrc[i].r), LOAD(X, 2, RLX)}}};
        judge(&p, (const uint8_t[]){1, 1, 0}, 3, wrc[i]);
    }
}

/* ---- two stores each, the other way round ---- */

static const struct combination two_plus_two[] = {
    {RLX, RLX, NOT_COVERED}, {REL, REL, NOT_COVERED}, {SC, SC, FORBIDDEN}};

Test(litmus, two_plus_two_writes)
{
    for (size_t i = 0; i < COUNT(two_plus_two); i++) {
        const struct litmus_program p = {
            2,
            {{STORE(X, 1, two_plus_two[i].w), STORE(Y, 2, two_plus_two[i].w)},
             {STORE(Y, 1, two_plus_two[i].w), STORE(X, 2, two_plus_two[i].w)}}};
        explore(&p);
        cr_assert(!litmus_has_memory(&ends, 1, 1));
        cr_assert(litmus_has_memory(&ends, 2, 2), "one behind the other");
    }
}

/* ---- load buffering ---- */

static const struct combination lb[] = {{RLX, RLX, NOT_COVERED},
                                        {RLX, ACQ, NOT_COVERED},
                                        {REL, RLX, NOT_COVERED},
                                        {REL, ACQ, FORBIDDEN},
                                        {SC, SC, FORBIDDEN}};

Test(litmus, load_buffering)
{
    for (size_t i = 0; i < COUNT(lb); i++) {
        const struct litmus_program p = {
            2,
            {{LOAD(X, 0, lb[i].r), STORE(Y, 1, lb[i].w)},
             {LOAD(Y, 1, lb[i].r), STORE(X, 1, lb[i].w)}}};
        judge(&p, (const uint8_t[]){1, 1}, 2, lb[i]);
    }
}

/* ---- release sequences ---- */

static const struct combination sequence[] = {
    {REL, RLX, FORBIDDEN}, {REL, ACQ, FORBIDDEN}, {REL, REL, FORBIDDEN},
    {RLX, RLX, ALLOWED},   {RLX, ACR, ALLOWED},   {SC, SC, FORBIDDEN}};

/* A read-modify-write of any order continues what `w` began. */
Test(litmus, a_read_modify_write_continues_a_release_sequence, .timeout = 120)
{
    for (size_t i = 0; i < COUNT(sequence); i++) {
        const struct litmus_program p = {
            3,
            {{STORE(X, 1, RLX), STORE(Y, 1, sequence[i].w)},
             {ADD(Y, 1, 2, sequence[i].r)},
             {LOAD(Y, 0, ACQ), LOAD(X, 1, RLX)}}};
        judge(&p, (const uint8_t[]){2, 0}, 2, sequence[i]);
    }
}

/* A store does not: not another thread's, and (C++20) not one's own. */
Test(litmus, a_store_ends_a_release_sequence, .timeout = 120)
{
    const struct litmus_program other = {3,
                                         {{STORE(X, 1, RLX), STORE(Y, 1, REL)},
                                          {LOAD(Y, 2, RLX), STORE(Y, 2, RLX)},
                                          {LOAD(Y, 0, ACQ), LOAD(X, 1, RLX)}}};
    const struct litmus_program own = {
        2,
        {{STORE(X, 1, RLX), STORE(Y, 1, REL), STORE(Y, 2, RLX)},
         {LOAD(Y, 0, ACQ), LOAD(X, 1, RLX)}}};
    judge(&other, (const uint8_t[]){2, 0, 1}, 3,
          (struct combination){REL, RLX, ALLOWED});
    judge(&own, (const uint8_t[]){2, 0}, 2,
          (struct combination){REL, RLX, ALLOWED});
}

/* ---- coherence ---- */

static const memory_order store_orders[] = {RLX, REL, SC};
static const memory_order load_orders[] = {RLX, ACQ, SC};

static void coherent(const struct litmus_program *p, const uint8_t *reg,
                     uint32_t n, memory_order w, memory_order r)
{
    judge(p, reg, n, (struct combination){w, r, FORBIDDEN});
}

static void all_coherent(memory_order w, memory_order r)
{
    const struct litmus_program read_read = {
        2, {{STORE(X, 1, w), STORE(X, 2, w)}, {LOAD(X, 0, r), LOAD(X, 1, r)}}};
    const struct litmus_program write_read = {
        2, {{STORE(X, 1, w), LOAD(X, 0, r)}, {STORE(X, 2, w)}}};
    const struct litmus_program read_write = {
        2, {{LOAD(X, 0, r), STORE(X, 1, w)}, {STORE(X, 2, w)}}};
    const struct litmus_program two_readers = {
        4,
        {{STORE(X, 1, w)},
         {STORE(X, 2, w)},
         {LOAD(X, 0, r), LOAD(X, 1, r)},
         {LOAD(X, 2, r), LOAD(X, 3, r)}}};
    coherent(&read_read, (const uint8_t[]){2, 1}, 2, w, r);
    coherent(&read_read, (const uint8_t[]){1, 0}, 2, w, r);
    coherent(&write_read, (const uint8_t[]){0}, 1, w, r);
    coherent(&read_write, (const uint8_t[]){1}, 1, w, r);
    coherent(&two_readers, (const uint8_t[]){1, 2, 2, 1}, 4, w, r);
}

Test(litmus, coherence_holds_in_every_order, .timeout = 120)
{
    for (size_t w = 0; w < COUNT(store_orders); w++) {
        for (size_t r = 0; r < COUNT(load_orders); r++) {
            all_coherent(store_orders[w], load_orders[r]);
        }
    }
}

Test(litmus, read_modify_writes_are_atomic_in_every_order)
{
    for (memory_order o = RLX; o <= SC; o++) {
        const struct litmus_program p = {
            3, {{ADD(X, 1, 0, o)}, {ADD(X, 1, 1, o)}, {ADD(X, 1, 2, o)}}};
        judge(&p, (const uint8_t[]){0, 0}, 2,
              (struct combination){o, o, FORBIDDEN});
        cr_assert(litmus_has_memory(&ends, 3, 0));
        cr_assert_eq(ends.count, 6, "every order of three");
    }
}

/* ---- streaming stores: message passing without the cache ---- */

static const enum qn_explore_memory memories[] = {QN_EXPLORE_TSO,
                                                  QN_EXPLORE_C11};

static void judge_streaming(const struct litmus_program *p, enum verdict v)
{
    for (size_t i = 0; i < COUNT(memories); i++) {
        cr_assert(litmus_explore(
            p,
            (struct qn_explore_opts){.memory = memories[i], .deviations = 12},
            &ends));
        cr_assert_eq(litmus_has_registers(&ends, (const uint8_t[]){1, 0}, 2),
                     v == ALLOWED, "memory %zu: %s", i,
                     v == ALLOWED ? "allowed and not found"
                                  : "found and must not be");
    }
}

#define READER                                                                 \
    {                                                                          \
        LOAD(Y, 0, ACQ), LOAD(X, 1, RLX)                                       \
    }

Test(litmus, a_release_does_not_order_a_streaming_store)
{
    const struct litmus_program store = {
        2, {{STREAM(X, 1), STORE(Y, 1, REL)}, READER}};
    const struct litmus_program fence = {
        2, {{STREAM(X, 1), FENCE(REL), STORE(Y, 1, RLX)}, READER}};
    const struct litmus_program both = {2,
                                        {{STREAM(X, 1), STREAM(Y, 1)}, READER}};
    judge_streaming(&store, ALLOWED);
    judge_streaming(&fence, ALLOWED);
    judge_streaming(&both, ALLOWED);
}

Test(litmus, nor_is_a_streaming_store_a_release)
{
    const struct litmus_program after_store = {
        2, {{STORE(X, 1, RLX), STREAM(Y, 1)}, READER}};
    const struct litmus_program after_fence = {
        2, {{STORE(X, 1, RLX), FENCE(REL), STREAM(Y, 1)}, READER}};
    const struct litmus_program after_full_fence = {
        2, {{STORE(X, 1, RLX), FENCE(SC), STREAM(Y, 1)}, READER}};
    judge_streaming(&after_store, ALLOWED);
    judge_streaming(&after_fence, ALLOWED);
    judge_streaming(&after_full_fence, FORBIDDEN);
}

Test(litmus, full_fences_and_read_modify_writes_order_streaming_stores)
{
    const struct litmus_program fence = {
        2, {{STREAM(X, 1), FENCE(SC), STORE(Y, 1, REL)}, READER}};
    const struct litmus_program add = {
        2, {{STREAM(X, 1), ADD(Z, 1, 2, RLX), STORE(Y, 1, REL)}, READER}};
    const struct litmus_program by_add = {
        2, {{STREAM(X, 1), ADD(Y, 1, 2, REL)}, READER}};
    judge_streaming(&fence, FORBIDDEN);
    judge_streaming(&add, FORBIDDEN);
    judge_streaming(&by_add, FORBIDDEN);
}

/* Behind a fence the next streaming store is as late as the first. */
Test(litmus, a_fence_orders_what_is_in_front_of_it)
{
    const struct litmus_program p = {
        2, {{STREAM(X, 1), FENCE(SC), STREAM(X, 2), STORE(Y, 1, REL)}, READER}};
    judge_streaming(&p, FORBIDDEN);
    cr_assert(litmus_has_registers(&ends, (const uint8_t[]){1, 1}, 2));
    cr_assert(litmus_has_registers(&ends, (const uint8_t[]){1, 2}, 2));
}

/* One variable: its stores become visible in the order of the program, and the
 * node itself sees them at once. */
static void forbid_streaming(const struct litmus_program *p, uint8_t first,
                             uint8_t second)
{
    const uint8_t reg[] = {first, second};
    for (size_t i = 0; i < COUNT(memories); i++) {
        cr_assert(litmus_explore(
            p,
            (struct qn_explore_opts){.memory = memories[i], .deviations = 12},
            &ends));
        cr_assert_not(litmus_has_registers(&ends, reg, 2), "%u %u: memory %zu",
                      first, second, i);
    }
}

Test(litmus, streaming_stores_are_coherent)
{
    const struct litmus_program twice = {
        2, {{STREAM(X, 1), STREAM(X, 2)}, {LOAD(X, 0, ACQ), LOAD(X, 1, RLX)}}};
    const struct litmus_program before = {
        2,
        {{STREAM(X, 1), STORE(X, 2, RLX)}, {LOAD(X, 0, ACQ), LOAD(X, 1, RLX)}}};
    const struct litmus_program after = {
        2,
        {{STORE(X, 1, RLX), STREAM(X, 2)}, {LOAD(X, 0, ACQ), LOAD(X, 1, RLX)}}};
    const struct litmus_program *const two[] = {&twice, &before, &after};
    for (size_t i = 0; i < COUNT(two); i++) {
        forbid_streaming(two[i], 2, 1);
        cr_assert(litmus_has_memory(&ends, 2, 0));
        forbid_streaming(two[i], 2, 0);
        forbid_streaming(two[i], 1, 0);
    }
    const struct litmus_program own = {
        2, {{STREAM(X, 1), LOAD(X, 0, RLX)}, {LOAD(Y, 1, RLX)}}};
    forbid_streaming(&own, 0, 0);
}

/* What its node has seen to be overwritten is not late. */
Test(litmus, a_streaming_store_that_was_overwritten_is_past)
{
    const struct litmus_program p = {
        3,
        {{STREAM(X, 1), LOAD(X, 2, ACQ), STORE(Y, 1, REL)},
         {STORE(X, 2, RLX)},
         READER}};
    for (uint8_t late = 0; late < 2; late++) {
        const uint8_t reg[] = {1, late, 2};
        judge_streaming(&p, ALLOWED); /* where the first load finds 1 */
        cr_assert_not(litmus_has_registers(&ends, reg, 3), "%u", late);
    }
}

/* A fourth is one more than may be late: the first is like others. (On TSO it
 * becomes visible, unless another has before, which is a deviation more.) */
Test(litmus, so_many_streaming_stores_wait_and_no_more)
{
    const struct litmus_program three = {
        2,
        {{STREAM(X, 1), STREAM(Z, 1), STREAM(Z, 2), STORE(Y, 1, REL)}, READER}};
    const struct litmus_program four = {
        2,
        {{STREAM(X, 1), STREAM(Z, 1), STREAM(Z, 2), STREAM(Z, 1),
          STORE(Y, 1, REL)},
         READER}};
    for (size_t i = 0; i < COUNT(memories); i++) {
        const struct qn_explore_opts o = {.memory = memories[i],
                                          .deviations = 1};
        const uint8_t stale[] = {1, 0};
        cr_assert(litmus_explore(&three, o, &ends));
        cr_assert(litmus_has_registers(&ends, stale, 2), "memory %zu", i);
        cr_assert(litmus_explore(&four, o, &ends));
        cr_assert_not(litmus_has_registers(&ends, stale, 2), "memory %zu", i);
    }
}
