/*
 * The explorer's reduction loses nothing: on small programs, drawn from a seed,
 * the set of ends is the same with it and without, in both memories and for
 * each bound. An end is every register and every variable.
 */
#include <stdio.h>

#include "tests/support/test.h"
#include "tests/unit/core/sim/litmus.h"

/* A sanitizer makes each run twenty times slower. */
#ifdef __SANITIZE_ADDRESS__
#define PROGRAMS 3u
#else
#define PROGRAMS 40u
#endif

static struct litmus_ends all, reduced;
static uint64_t state; /* of the generator */

static uint32_t draw(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static memory_order draw_order(void)
{
    static const memory_order order[] = {RLX, ACQ, REL, ACR, SC, SC};
    return order[draw(6)];
}

static struct litmus_op draw_op(uint8_t reg)
{
    struct litmus_op op = {.variable = (uint8_t)draw(2),
                           .value = (uint8_t)(1 + draw(2)),
                           .order = draw_order()};
    switch (draw(7)) {
    case 0:
    case 1:
        op.kind = LITMUS_LOAD;
        op.reg = reg;
        return op;
    case 2:
        op.kind = LITMUS_ADD;
        op.reg = reg;
        return op;
    case 3:
        op.kind = LITMUS_FENCE;
        op.order = draw(3) == 0 ? op.order : SC;
        return op;
    case 4:
        op.kind = LITMUS_STREAM;
        return op;
    default:
        op.kind = LITMUS_STORE;
        return op;
    }
}

static memory_order of_kind(const struct litmus_op *op)
{
    if (op->kind == LITMUS_LOAD && (op->order == REL || op->order == ACR)) {
        return ACQ;
    }
    if (op->kind == LITMUS_STORE && (op->order == ACQ || op->order == ACR)) {
        return REL;
    }
    return op->order;
}

/* Each thread ends with a store: a kill in front of what only loads follow is
 * no other end than none. */
static struct litmus_program draw_program(uint32_t threads, uint32_t ops)
{
    struct litmus_program p = {.threads = threads};
    for (uint32_t t = 0; t < threads; t++) {
        for (uint32_t i = 0; i < ops; i++) {
            struct litmus_op op =
                draw_op((uint8_t)(1 + t * (threads == 2 ? 3 : 2) +
                                  i % (threads == 2 ? 3 : 2)));
            op.order = of_kind(&op);
            p.thread[t][i] = op;
        }
        p.thread[t][ops] =
            (struct litmus_op){LITMUS_STORE, Z, (uint8_t)(t + 1), 0, RLX};
    }
    return p;
}

static void show(const struct litmus_program *p)
{
    static const char *const name[] = {"end",    "load", "store",
                                       "stream", "add",  "fence"};
    for (uint32_t t = 0; t < p->threads; t++) {
        for (const struct litmus_op *op = p->thread[t]; op->kind != LITMUS_END;
             op++) {
            fprintf(stderr, "%u: %s %c %u order %d\n", t, name[op->kind],
                    "xyz"[op->variable], op -> value, (int)op -> order);
        }
    }
}

static void same_ends(const struct litmus_program *p, struct qn_explore_opts o)
{
    o.all = true;
    cr_assert(litmus_explore(p, o, &all));
    o.all = false;
    cr_assert(litmus_explore(p, o, &reduced));
    for (uint32_t i = 0; i < all.count; i++) {
        if (!litmus_has(&reduced, all.end[i])) {
            all.wanted = all.end[i];
            o.all = true;
            (void)litmus_explore(p, o, &all);
            show(p);
            cr_assert(false, "bounds %u and %u: an end is lost: %s",
                      o.deviations, o.kills, all.found.choices);
        }
    }
    cr_assert_leq(reduced.found.runs, all.found.runs);
}

static void compare(enum qn_explore_memory m, uint32_t threads, uint32_t ops,
                    uint32_t deviations)
{
    uint64_t runs = 0, fewer = 0;
    state = 1;
    for (uint32_t n = 0; n < PROGRAMS; n++) {
        const struct litmus_program p = draw_program(threads, ops);
        for (uint32_t d = 0; d <= deviations; d++) {
            for (uint32_t kills = 0; kills <= 1; kills++) {
                same_ends(&p, (struct qn_explore_opts){.memory = m,
                                                       .deviations = d,
                                                       .kills = kills});
                runs += all.found.runs;
                fewer += reduced.found.runs;
            }
        }
    }
    cr_assert_lt(5 * fewer, 4 * runs, "hardly reduced: %llu of %llu",
                 (unsigned long long)fewer, (unsigned long long)runs);
}

Test(reduction, two_threads_tso, .timeout = 120)
{
    compare(QN_EXPLORE_TSO, 2, 4, 4);
}

Test(reduction, two_threads_c11, .timeout = 120)
{
    compare(QN_EXPLORE_C11, 2, 4, 4);
}

Test(reduction, three_threads_tso, .timeout = 120)
{
    compare(QN_EXPLORE_TSO, 3, 3, 2);
}

Test(reduction, three_threads_c11, .timeout = 120)
{
    compare(QN_EXPLORE_C11, 3, 3, 2);
}

/* Drawn programs hardly tell which of two fences came first: here the second
 * thread sees x too late only if its fence came before the other. */
Test(reduction, the_order_of_fences_is_kept)
{
    const struct litmus_program p = {
        2,
        {{STORE(X, 1, RLX), STORE(Y, 1, RLX), FENCE(SC), STORE(Z, 1, RLX)},
         {LOAD(Y, 0, RLX), FENCE(SC), LOAD(X, 1, RLX), STORE(Z, 2, RLX)}}};
    for (uint32_t d = 0; d <= 4; d++) {
        same_ends(&p, (struct qn_explore_opts){.memory = QN_EXPLORE_C11,
                                               .deviations = d});
        same_ends(&p, (struct qn_explore_opts){.deviations = d});
    }
    cr_assert(litmus_explore(
        &p, (struct qn_explore_opts){.memory = QN_EXPLORE_C11, .deviations = 2},
        &all));
    cr_assert(litmus_has_registers(&all, (const uint8_t[]){1, 0}, 2));
}

/* Three threads have six orders in which they may run, and one end. */
Test(reduction, a_state_that_was_visited_is_not_gone_on_from)
{
    const struct litmus_program p = {
        3, {{STORE(X, 1, RLX)}, {STORE(Y, 1, RLX)}, {STORE(Z, 1, RLX)}}};
    for (int m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explore_opts o = {.memory = (enum qn_explore_memory)m,
                                    .all = true};
        cr_assert(litmus_explore(&p, o, &all));
        cr_expect_eq(all.found.runs - all.found.pruned, 6);
        o.all = false;
        cr_assert(litmus_explore(&p, o, &reduced));
        cr_expect_eq(reduced.found.runs - reduced.found.pruned, 1);
    }
}
