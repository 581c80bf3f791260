#include "kvs/session/work_list.h"

#include <stdlib.h>

#include "tests/support/test.h"

enum { LINKS = 6 };

static struct qn_work_list list;
static struct qn_work_link item[LINKS];

static void setup(void)
{
    list = (struct qn_work_list){0};
    for (int i = 0; i < LINKS; i++) {
        item[i] = (struct qn_work_link){0};
    }
}

#define CASE(name) Test(work_list, name, .init = setup)

static int popped(struct qn_work_list *l)
{
    struct qn_work_link *got = qn_work_list_pop(l);
    return got == NULL ? -1 : (int)(got - item);
}

CASE(elements_leave_in_the_order_of_their_coming)
{
    for (int i = 0; i < 3; i++) {
        qn_work_list_add(&list, &item[i]);
    }
    for (int i = 0; i < 3; i++) {
        cr_expect(popped(&list) == i);
    }
    cr_expect(popped(&list) == -1);
    cr_expect(qn_work_list_is_empty(&list));
}

CASE(an_element_is_listed_once)
{
    qn_work_list_add(&list, &item[0]);
    qn_work_list_add(&list, &item[1]);
    qn_work_list_add(&list, &item[0]);
    cr_expect(popped(&list) == 0);
    cr_expect(popped(&list) == 1);
    cr_expect(popped(&list) == -1);
}

CASE(an_element_that_has_left_may_come_again)
{
    qn_work_list_add(&list, &item[0]);
    cr_expect(popped(&list) == 0);
    qn_work_list_add(&list, &item[0]);
    cr_expect(popped(&list) == 0);
    cr_expect(popped(&list) == -1);
}

CASE(a_taken_element_still_counts_as_listed)
{
    qn_work_list_add(&list, &item[0]);
    qn_work_list_add(&list, &item[1]);
    struct qn_work_list batch = qn_work_list_take(&list);
    qn_work_list_add(&list, &item[1]);
    qn_work_list_add(&list, &item[2]);
    cr_expect(popped(&batch) == 0);
    cr_expect(popped(&batch) == 1);
    cr_expect(popped(&batch) == -1);
    cr_expect(popped(&list) == 2);
    cr_expect(popped(&list) == -1);
}

CASE(the_rest_of_a_batch_goes_in_front)
{
    for (int i = 0; i < 3; i++) {
        qn_work_list_add(&list, &item[i]);
    }
    struct qn_work_list batch = qn_work_list_take(&list);
    cr_expect(popped(&batch) == 0);
    qn_work_list_add(&list, &item[0]);
    qn_work_list_put_front(&list, &batch);
    cr_expect(qn_work_list_is_empty(&batch));
    qn_work_list_add(&list, &item[3]);
    const int want[] = {1, 2, 0, 3, -1};
    for (int i = 0; i < 5; i++) {
        int got = popped(&list);
        cr_expect(got == want[i], "%d: expected %d, got %d", i, want[i], got);
    }
}

CASE(a_rest_goes_into_an_empty_list)
{
    qn_work_list_add(&list, &item[0]);
    struct qn_work_list batch = qn_work_list_take(&list);
    qn_work_list_put_front(&list, &batch);
    qn_work_list_put_front(&list, &batch);
    qn_work_list_add(&list, &item[1]);
    cr_expect(popped(&list) == 0);
    cr_expect(popped(&list) == 1);
    cr_expect(popped(&list) == -1);
}

/* Against an array. */
CASE(random_operations_agree_with_an_array)
{
    int model[LINKS];
    int n = 0;
    srand(5);
    for (int step = 0; step < 20000; step++) {
        int i = rand() % LINKS;
        if (rand() % 2 == 0) {
            bool there = false;
            for (int k = 0; k < n; k++) {
                there = there || model[k] == i;
            }
            if (!there) {
                model[n++] = i;
            }
            qn_work_list_add(&list, &item[i]);
        } else {
            int want = n == 0 ? -1 : model[0];
            n -= n > 0;
            for (int k = 0; k < n; k++) {
                model[k] = model[k + 1];
            }
            cr_assert(popped(&list) == want);
        }
        cr_assert(qn_work_list_is_empty(&list) == (n == 0));
    }
}
