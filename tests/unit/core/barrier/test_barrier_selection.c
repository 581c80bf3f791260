/* The selection of a barrier: prices in, form out. */
#include <stdio.h>
#include <string.h>

#include "core/barrier/selection/predict_forms.h"
#include "core/barrier/selection/selection.h"
#include "core/base/bits.h"
#include "core/plan/search/objective.h"
#include "tests/support/uniform_machine.h"
#include "tests/unit/core/barrier/barrier_of.h"

static struct qn_machine *machine(const char *name)
{
    struct qn_parse_error bad = {""};
    struct qn_machine *m = NULL;
    char path[256];
    snprintf(path, sizeof path, QN_MACHINES "/%s", name);
    cr_assert_eq(qn_machine_load(&m, path, &bad), QN_OK, "%s", bad.text);
    return m;
}

static struct qn_machine *first_of(const struct qn_machine *m, uint32_t n)
{
    struct qn_machine *some = NULL;
    uint32_t index[QN_CORES_MAX];
    for (uint32_t i = 0; i < n; i++) {
        index[i] = i;
    }
    cr_assert_eq(qn_machine_restrict(&some, m, index, n), QN_OK);
    return some;
}

static struct qn_machine *machine_of(uint32_t n, const double *send,
                                     double receive)
{
    struct qn_machine *m = NULL;
    cr_assert_eq(qn_machine_create(&m, n), QN_OK);
    for (uint32_t i = 0; i < n * n; i++) {
        const bool same = i / n == i % n;
        m->send[i] = same ? 0 : send[i];
        m->receive[i] = same ? 0 : receive;
    }
    return m;
}

/* No two sends cost the same, so each figure says whose flags it counts. */
Test(barrier_selection, three_members_are_predicted_as_by_hand)
{
    const double send[] = {0, 10, 8, 2, 0, 20, 30, 3, 0};
    struct qn_machine *m = machine_of(3, send, 5);
    /* Raised at 10, 20, 30 and seen at 35, 25, 35; then raised at 43, 27, 38
     * and seen at 48, 43, 48. */
    cr_expect_eq(qn_barrier_predict_dissemination(m), 48);
    /* 1 takes the line from 0 (5), and its copy (2); 2 from 1 (5), and copies
     * (30). Then 0 and 1 read: 5, and an eighth of 5. */
    cr_expect_eq(qn_barrier_predict_central(m), 47.625);
    qn_machine_destroy(m);
}

/* Four arrive at 0 and are seen there one by one, at 140. 0 tells 1 and 2, 1
 * tells 3 and, at 310, 4. */
Test(barrier_selection, mcs_is_predicted_by_a_tree_of_four_and_one_of_two)
{
    double send[25];
    for (uint32_t i = 0; i < 25; i++) {
        send[i] = 100;
    }
    struct qn_machine *m = machine_of(5, send, 10);
    cr_expect_eq(qn_barrier_predict_mcs(m), 140 + 320);
    qn_machine_destroy(m);
}

Test(barrier_selection, fewer_members_than_cores_are_the_first_ones)
{
    const double send[] = {0, 7, 900, 7, 0, 900, 900, 900, 0};
    struct qn_machine *m = machine_of(3, send, 5);
    struct qn_barrier_selection c;
    cr_assert_eq(qn_barrier_select(&c, m, 2), QN_OK);
    cr_expect_eq(c.cycles[1], 12);
    qn_machine_destroy(m);
}

/* Two sockets: rounds of dissemination cross between them, a tree does once. On
 * one socket there is nothing to save. */
Test(barrier_selection, on_three_machines_it_is_the_form_that_suits_each)
{
    static const struct {
        const char *machine;
        uint32_t members;
        const char *form;
    } all[] = {
        {"epyc_7742_2x64", 2, "dissemination"},
        {"epyc_7742_2x64", 32, "tree"},
        {"westmere_8x10x2", 4, "dissemination"},
        {"westmere_8x10x2", 64, "tree"},
        {"graviton3_1x64", 8, "dissemination"},
        {"graviton3_1x64", 64, "dissemination"},
    };
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(all); i++) {
        struct qn_machine *m = machine(all[i].machine);
        struct qn_barrier_selection c;
        cr_assert_eq(qn_barrier_select(&c, m, all[i].members), QN_OK);
        cr_expect_str_eq(c.form, all[i].form, "%s, %u: %s", all[i].machine,
                         all[i].members, c.form);
        cr_expect_eq(c.tree.n, all[i].members);
        /* One tree, both ways: that is what the barrier does. */
        struct qn_machine *some = first_of(m, all[i].members);
        cr_expect_eq(c.cycles[3],
                     qn_plan_cost(some, &c.tree, &c.tree, QN_GOAL_BARRIER, 1));
        qn_machine_destroy(some);
        cr_expect(!c.shared_cores);
        qn_machine_destroy(m);
    }
}

Test(barrier_selection, is_explained_by_what_was_predicted)
{
    struct qn_machine *m = uniform_machine(4);
    struct qn_barrier_selection c;
    char text[128], little[8];
    cr_assert_eq(qn_barrier_select(&c, m, 4), QN_OK);
    /* Three arrivals of 200, 100 for the last reader and an eighth for each of
     * the two before; two rounds; up and down 400 each. */
    qn_barrier_selection_explain(&c, text, sizeof text);
    cr_expect_str_eq(text, "dissemination: cycles predicted: central 725 "
                           "dissemination 400 mcs 800 tree 800");
    qn_barrier_selection_explain(&c, little, sizeof little);
    cr_expect_str_eq(little, "dissemi");
    qn_machine_destroy(m);
}

Test(barrier_selection, members_that_share_cores_take_central)
{
    struct qn_machine *m = uniform_machine(2);
    struct qn_barrier_selection c;
    char text[128];
    cr_assert_eq(qn_barrier_select(&c, m, 3), QN_OK);
    cr_expect_str_eq(c.form, "central");
    cr_expect(c.shared_cores);
    qn_barrier_selection_explain(&c, text, sizeof text);
    cr_expect_str_eq(text, "central: members share cores, and each passes it "
                           "by one operation");
    cr_assert_eq(qn_barrier_select(&c, m, 1), QN_OK);
    cr_expect(!c.shared_cores);
    qn_machine_destroy(m);
}

Test(barrier_selection, is_what_the_barrier_then_is)
{
    struct qn_machine *m = machine("westmere_8x10x2");
    struct qn_barrier_selection c;
    struct qn_barrier_member me;
    struct qn_barrier_opts o = {.members = 32, .cores = 32};
    cr_assert_eq(qn_barrier_select(&c, m, 32), QN_OK);
    qn_barrier_selection_apply(&c, &o);
    cr_expect_eq(o.tree, &c.tree);
    void *memory = barrier_of(&o);
    cr_assert_eq(qn_barrier_join(memory, 0, &me), QN_OK);
    cr_expect_str_eq(qn_barrier_form_name(&me), c.form);
    cr_expect_eq(me.parent, c.tree.parent[0]);
    cr_expect_eq(me.children, c.tree.count[0]);
    free(memory);
    qn_machine_destroy(m);
}

/* In the order of qn_barrier_forms: text and prices name the same. */
Test(barrier_selection, every_form_has_a_price)
{
    struct qn_machine *m = uniform_machine(8);
    struct qn_barrier_selection c;
    uint32_t forms = 0;
    cr_assert_eq(qn_barrier_select(&c, m, 8), QN_OK);
    EACH_FORM(form)
    {
        cr_expect_gt(c.cycles[forms], 0, "%s", form->name);
        forms++;
    }
    cr_expect_eq(forms, QN_BARRIER_FORMS);
    cr_expect_eq(c.cycles[1], qn_barrier_predict_dissemination(m));
    cr_expect_str_eq(qn_barrier_forms[1]->name, "dissemination");
    qn_machine_destroy(m);
}

Test(barrier_selection, without_costs_or_members_it_is_refused)
{
    struct qn_machine *m = NULL;
    struct qn_barrier_selection c = {.form = "untouched"};
    cr_assert_eq(qn_machine_create(&m, 2), QN_OK);
    cr_expect_eq(qn_barrier_select(&c, m, 2), QN_EINVAL);
    cr_expect_eq(qn_barrier_select(&c, m, 0), QN_EINVAL);
    cr_expect_eq(qn_barrier_select(&c, m, QN_BARRIER_MEMBERS_MAX + 1),
                 QN_EINVAL);
    cr_expect_str_eq(c.form, "untouched");
    qn_machine_destroy(m);
}
