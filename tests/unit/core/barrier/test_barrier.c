/* Barriers by name: limits, errors, seats. */
#include <sched.h>

#include "core/barrier/barrier_internal.h"
#include "tests/unit/core/barrier/barrier_of.h"

Test(barrier, a_number_of_members_out_of_range_is_refused)
{
    const uint32_t wrong[] = {0, QN_BARRIER_MEMBERS_MAX + 1, UINT32_MAX};
    alignas(QN_CACHELINE) char memory[QN_CACHELINE];
    EACH_FORM(form)
    {
        for (uint32_t i = 0; i < 3; i++) {
            const struct qn_barrier_opts o = {.form = form->name,
                                              .members = wrong[i]};
            cr_expect_eq(qn_barrier_bytes(&o), 0);
            cr_expect_eq(qn_barrier_format(memory, sizeof memory, &o),
                         QN_EINVAL);
        }
    }
}

Test(barrier, a_form_that_there_is_not_is_refused)
{
    const struct qn_barrier_opts o = {.form = "butterfly", .members = 2};
    alignas(QN_CACHELINE) char memory[QN_CACHELINE];
    cr_expect_eq(qn_barrier_bytes(&o), 0);
    cr_expect_eq(qn_barrier_format(memory, sizeof memory, &o), QN_EINVAL);
}

/* Under AddressSanitizer the bytes are seen to be enough, too. */
Test(barrier, each_number_of_members_has_as_many_seats)
{
    const uint32_t some[] = {1, 2, 3, 16, 17, QN_BARRIER_MEMBERS_MAX};
    EACH_FORM(form)
    {
        for (uint32_t i = 0; i < 6; i++) {
            const struct qn_barrier_opts o = {.form = form->name,
                                              .members = some[i]};
            struct qn_barrier_member me;
            void *memory = barrier_of(&o);
            cr_expect_eq(qn_barrier_bytes(&o) % QN_CACHELINE, 0);
            for (uint32_t k = 0; k < some[i]; k++) {
                cr_assert_eq(qn_barrier_join(memory, k, &me), QN_OK);
                cr_expect_str_eq(qn_barrier_form_name(&me), form->name);
            }
            cr_expect_eq(qn_barrier_join(memory, some[i], &me), QN_EINVAL);
            free(memory);
        }
    }
}

Test(barrier, a_byte_too_few_is_refused)
{
    EACH_FORM(form)
    {
        const struct qn_barrier_opts o = {.form = form->name, .members = 5};
        void *memory = barrier_of(&o);
        const size_t bytes = qn_barrier_bytes(&o);
        cr_expect_eq(qn_barrier_format(memory, bytes - 1, &o), QN_EMSGSIZE);
        free(memory);
    }
}

Test(barrier, a_tree_that_is_none_or_of_others_is_refused)
{
    struct qn_shape tree;
    struct qn_edges e;
    alignas(QN_CACHELINE) char memory[40 * QN_CACHELINE];
    qn_edges_init(&e, 3);
    qn_edges_add(&e, 2, 0);
    qn_edges_add(&e, 2, 1);
    cr_assert_eq(qn_shape_from_edges(&tree, &e, 2), QN_OK);
    struct qn_barrier_opts o = {.form = "tree", .members = 3, .tree = &tree};
    cr_expect_eq(qn_barrier_format(memory, sizeof memory, &o), QN_OK);
    o.members = 4;
    cr_expect_eq(qn_barrier_format(memory, sizeof memory, &o), QN_EINVAL);
    o.members = 3;
    tree.parent[2] = 0;
    cr_expect_eq(qn_barrier_format(memory, sizeof memory, &o), QN_EINVAL);
}

Test(barrier, of_one_member_is_passed_at_once)
{
    EACH_FORM(form)
    {
        const struct qn_barrier_opts o = {.form = form->name, .members = 1};
        struct qn_barrier_member me;
        void *memory = barrier_of(&o);
        cr_assert_eq(qn_barrier_join(memory, 0, &me), QN_OK);
        for (uint32_t i = 0; i < 1000; i++) {
            qn_barrier_wait(&me);
        }
        cr_expect_eq(me.waits.parks + me.waits.yields + me.waits.wakes, 0);
        free(memory);
    }
}

Test(barrier, a_seat_is_taken_once_and_goes_on_where_it_was)
{
    EACH_FORM(form)
    {
        const struct qn_barrier_opts o = {.form = form->name, .members = 1};
        struct qn_barrier_member me;
        struct qn_barrier_member next;
        void *memory = barrier_of(&o);
        cr_assert_eq(qn_barrier_join(memory, 0, &me), QN_OK);
        qn_barrier_wait(&me);
        cr_expect_eq(qn_barrier_join(memory, 0, &next), QN_EBUSY);
        qn_barrier_leave(&me);
        cr_assert_eq(qn_barrier_join(memory, 0, &next), QN_OK);
        cr_expect_eq(next.episode, me.episode);
        qn_barrier_wait(&next);
        free(memory);
    }
}

Test(barrier, memory_of_another_version_is_refused)
{
    const struct qn_barrier_opts o = {.members = 2};
    struct qn_barrier_member me;
    struct qn_barrier_memory *m = barrier_of(&o);
    const uint32_t says = qn_load(&m->says, QN_RELAXED);
    qn_store(&m->says, says + (1u << 16), QN_RELAXED);
    cr_expect_eq(qn_barrier_join(m, 0, &me), QN_EINVAL);
    qn_store(&m->says, 0, QN_RELAXED);
    cr_expect_eq(qn_barrier_join(m, 0, &me), QN_EINVAL);
    qn_store(&m->says, says, QN_RELAXED);
    cr_expect_eq(qn_barrier_join(m, 0, &me), QN_OK);
    free(m);
}

static const char *chosen(struct qn_barrier_opts o)
{
    struct qn_barrier_member me;
    void *memory = barrier_of(&o);
    cr_assert_eq(qn_barrier_join(memory, 0, &me), QN_OK);
    free(memory);
    return qn_barrier_form_name(&me);
}

Test(barrier, without_a_name_it_is_what_suits_members_and_cores)
{
    const uint32_t few = QN_BARRIER_CENTRAL;
    struct qn_barrier_opts o = {.members = few, .cores = few};
    cr_expect_str_eq(chosen(o), "central");
    o.members = o.cores = few + 1;
    cr_expect_str_eq(chosen(o), "dissemination");
    o.cores = few; /* one has no core of its own */
    cr_expect_str_eq(chosen(o), "central");
    o.own_cores = true; /* as the caller says, whatever the number is */
    cr_expect_str_eq(chosen(o), "dissemination");
}

Test(barrier, cores_that_are_not_named_are_those_of_the_affinity_mask)
{
    const struct qn_barrier_opts o = {.members = QN_BARRIER_CENTRAL + 1};
    cpu_set_t one;
    const int core = sched_getcpu();
    CPU_ZERO(&one);
    CPU_SET(core < 0 ? 0 : (unsigned)core, &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    cr_expect_str_eq(chosen(o), "central");
}
