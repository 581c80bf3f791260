/*
 * Schedules of large collectives, interpreted: every variant with sizes around
 * its thresholds, any root, placements of one to three levels, each kind of
 * entry and exit.
 */
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"
#include "tests/unit/core/coll/large/large_world.h"

#define MEMBERS_MAX 17u

/* Places of members, by rank: one region; round robin over three regions of a
 * node; uneven nodes and regions; each in a node of its own. */
#define PLACEMENTS 4u

static const struct qn_large_place *placement(uint32_t kind)
{
    static struct qn_large_place place[PLACEMENTS][MEMBERS_MAX];
    for (uint32_t x = 0; x < MEMBERS_MAX; x++) {
        place[1][x] = (struct qn_large_place){0, (uint16_t)(x % 3)};
        place[2][x] = (struct qn_large_place){(uint16_t)(x * x % 7 % 3),
                                              (uint16_t)(x / 2 % 3)};
        place[3][x] = (struct qn_large_place){(uint16_t)(MEMBERS_MAX - x), 0};
    }
    return kind == 0 ? NULL : place[kind];
}

static void check(const struct qn_large_plan *p, uint32_t seed)
{
    const char *wrong = qn_large_world_run(p, seed);
    cr_assert(wrong == NULL,
              "%s, %u members, root %u, %u bytes, seed %u, ordered %d, entry "
              "%d, exit %d: %s",
              p->variant->name, p->n, p->root, (uint32_t)p->bytes, seed,
              p->ordered, (int)p->entry, (int)p->exit, wrong);
}

/* Everything that is not given is drawn from `seed`. */
static struct qn_large_plan drawn(const struct qn_large_variant *v, uint32_t n,
                                  uint64_t bytes, uint32_t seed)
{
    const uint32_t r = seed * 2654435761u;
    const bool pairs = v->operation == QN_LARGE_REDUCE && (r >> 30 & 1) != 0;
    return (struct qn_large_plan){
        .variant = v,
        .place = placement(r >> 8 & 3),
        .n = n,
        .root = (r >> 10) % n,
        .bytes = pairs ? bytes & ~(uint64_t)1 : bytes,
        .threshold = QN_LARGE_CHUNK,
        .ordered = pairs,
        .entry = (enum qn_large_sync)((r >> 20) % 3),
        .exit = (enum qn_large_sync)((r >> 24) % 3),
    };
}

Test(large_schedule, the_table_has_27_variants_and_each_a_name_of_its_own)
{
    const struct qn_large_variant *v;
    uint32_t count[QN_LARGE_OPERATIONS] = {0}, flat = 0, i = 0;
    for (; (v = qn_large_variant_at(i)) != NULL; i++) {
        cr_assert_eq(qn_large_variant_find(v->name), v, "%s", v->name);
        const char *op = qn_large_operation_name(v->operation);
        cr_assert_eq(strncmp(v->name, op, strlen(op)), 0, "%s", v->name);
        if (v->tree == QN_LARGE_FLAT) {
            flat++;
        } else {
            count[v->operation]++;
            cr_assert(i < QN_LARGE_TABLE, "%s", v->name);
        }
    }
    cr_assert_eq(flat, 2 * QN_LARGE_OPERATIONS);
    cr_assert(count[QN_LARGE_BROADCAST] == 12 && count[QN_LARGE_REDUCE] == 4 &&
              count[QN_LARGE_SCATTER] == 6 && count[QN_LARGE_GATHER] == 5);
    cr_assert(qn_large_variant_find("broadcast/pull") == NULL);
}

Test(large_schedule, what_suits_is_pushed_only_where_members_write_each_other)
{
    for (uint32_t op = 0; op < QN_LARGE_OPERATIONS; op++) {
        for (uint32_t regions = 1; regions <= 2; regions++) {
            const struct qn_large_variant *v = qn_large_variant_choose(
                (enum qn_large_operation)op, regions, false);
            cr_assert(v != NULL && v->operation == op &&
                      v->direction == QN_LARGE_PULL);
            v = qn_large_variant_choose((enum qn_large_operation)op, regions,
                                        true);
            cr_assert(v != NULL && v->operation == op);
        }
    }
}

Test(large_schedule, fragments_cover_a_message_once)
{
    static const uint64_t sizes[] = {0,     1,     8191,  8192,  8193,  32767,
                                     32768, 32769, 65535, 65536, 65537, 100000};
    const struct qn_large_variant *v;
    for (uint32_t i = 0; (v = qn_large_variant_at(i)) != NULL; i++) {
        for (uint32_t k = 0; k < QN_ARRAY_COUNT(sizes); k++) {
            const uint32_t count = qn_large_fragment_count(v, sizes[k]);
            const bool cut = v->fragments == QN_LARGE_DYNAMIC
                                 ? sizes[k] > QN_LARGE_DYNAMIC_ABOVE
                                 : v->fragments == QN_LARGE_FIXED &&
                                       sizes[k] > QN_LARGE_CHUNK;
            cr_assert_eq(count > 1, cut);
            cr_assert_eq(qn_large_fragment_at(v, sizes[k], 0), 0);
            cr_assert_eq(qn_large_fragment_at(v, sizes[k], count), sizes[k]);
            for (uint32_t f = 0; f < count && cut; f++) {
                const uint64_t at = qn_large_fragment_at(v, sizes[k], f);
                const uint64_t end = qn_large_fragment_at(v, sizes[k], f + 1);
                cr_assert(end > at);
                cr_assert_eq(qn_large_fragments_of(v, sizes[k], at + 1), f + 1);
                cr_assert_eq(qn_large_fragments_of(v, sizes[k], end), f + 1);
            }
        }
    }
}

/* All roots, with few bytes. */
Test(large_schedule, small_messages_come_right_in_every_form)
{
    const struct qn_large_variant *v;
    for (uint32_t i = 0; (v = qn_large_variant_at(i)) != NULL; i++) {
        for (uint32_t n = 1; n <= MEMBERS_MAX; n++) {
            for (uint32_t root = 0; root < n; root++) {
                struct qn_large_plan p = drawn(v, n, 6, i + root * 37);
                p.root = root;
                check(&p, root);
            }
        }
    }
}

/* Entry and exit in all pairs, at three sizes of groups. */
Test(large_schedule, each_entry_and_exit_guards_what_it_promises)
{
    static const uint32_t members[] = {2, 5, 8};
    const struct qn_large_variant *v;
    for (uint32_t i = 0; (v = qn_large_variant_at(i)) != NULL; i++) {
        for (uint32_t k = 0; k < 9 * QN_ARRAY_COUNT(members); k++) {
            const uint32_t n = members[k / 9];
            for (uint32_t seed = 0; seed < 4; seed++) {
                struct qn_large_plan p = drawn(v, n, 40, seed + k);
                p.entry = (enum qn_large_sync)(k % 3);
                p.exit = (enum qn_large_sync)(k / 3 % 3);
                check(&p, seed);
            }
        }
    }
}

/* Around the thresholds, of a message, of a range of the tree, of the ring. */
Test(large_schedule, sizes_around_thresholds_come_right)
{
    static const uint32_t members[] = {1, 2, 3, 6, 9};
    static const uint64_t sizes[] = {0,     1,     2730,  8191,  8192,  8193,
                                     16385, 32767, 32768, 32769, 65535, 65537};
    const struct qn_large_variant *v;
    uint32_t seed = 0;
    for (uint32_t i = 0; (v = qn_large_variant_at(i)) != NULL; i++) {
        for (uint32_t m = 0; m < QN_ARRAY_COUNT(members); m++) {
            for (uint32_t k = 0; k < QN_ARRAY_COUNT(sizes); k++) {
                const struct qn_large_plan p =
                    drawn(v, members[m], sizes[k], ++seed);
                check(&p, seed);
            }
        }
    }
}

Test(large_schedule, many_fragments_come_right)
{
    const struct qn_large_variant *v;
    for (uint32_t i = 0; (v = qn_large_variant_at(i)) != NULL; i++) {
        for (uint32_t n = 2; n <= 5; n++) {
            const struct qn_large_plan p = drawn(v, n, 300001, i * 5 + n);
            check(&p, n);
        }
    }
}

/* The tree of another root: rank 0's, in which the root has changed places. */
Test(large_schedule, another_root_uses_a_tree_that_is_there)
{
    static struct qn_shape s; /* too large for the stack */
    const struct qn_large_variant *v;
    for (uint32_t i = 0; (v = qn_large_variant_at(i)) != NULL; i++) {
        const bool other =
            v->operation <= QN_LARGE_REDUCE && v->tree != QN_LARGE_FLAT;
        for (uint32_t root = 0; root < 13 && other; root++) {
            struct qn_large_plan p = drawn(v, 13, 10, i * 13 + root);
            qn_large_tree_build(&s, p.place, p.n, 0, v->tree);
            qn_large_tree_reroot(&s, root);
            cr_assert_eq(qn_shape_check(&s), QN_OK);
            p.root = root;
            p.tree = &s;
            check(&p, root);
        }
    }
}
