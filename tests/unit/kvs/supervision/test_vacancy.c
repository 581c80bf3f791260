/* May a replica be started? Never beside a process of it that lives. */
#include "kvs/supervision/vacancy.h"

#include "tests/support/test.h"

static struct qn_vacancy seen(bool held, enum qn_liveness word, bool runs)
{
    return (struct qn_vacancy){
        .known = true, .held = held, .word = word, .runs = runs};
}

static const enum qn_reach reaches[] = {QN_REACH_ABSENT, QN_REACH_BUSY};

Test(vacancy, who_was_met_is_heard)
{
    const struct qn_vacancy unknown = {0};
    const struct qn_vacancy lives = seen(true, QN_LIVENESS_ALIVE, true);
    cr_assert_eq(qn_vacancy_step(QN_REACH_MET, &unknown), QN_VACANCY_HEAR);
    cr_assert_eq(qn_vacancy_step(QN_REACH_MET, &lives), QN_VACANCY_HEAR);
}

/* All that can be seen: started exactly where neither lock nor word says that
 * a process lives, whatever asking has come to. */
Test(vacancy, one_sign_of_life_is_enough_to_wait)
{
    static const enum qn_liveness words[] = {
        QN_LIVENESS_NONE, QN_LIVENESS_ALIVE, QN_LIVENESS_DEAD};
    for (int i = 0; i < 2 * 2 * 3 * 2; i++) {
        bool held = i % 2;
        bool runs = i / 2 % 2;
        enum qn_liveness word = words[i / 4 % 3];
        const struct qn_vacancy v = seen(held, word, runs);
        bool lives = held || (word == QN_LIVENESS_ALIVE && runs);
        cr_expect_eq(qn_vacancy_step(reaches[i / 12], &v),
                     lives ? QN_VACANCY_WAIT : QN_VACANCY_START,
                     "held %d, word %d, runs %d", held, word, runs);
    }
}

/* Its kernel's mark did not come, and it has ended for all that. */
Test(vacancy, a_word_that_was_overwritten_is_not_waited_for)
{
    const struct qn_vacancy v = seen(false, QN_LIVENESS_ALIVE, false);
    cr_assert_eq(qn_vacancy_step(QN_REACH_ABSENT, &v), QN_VACANCY_START);
}

/* No replica has given the group's memory: a full queue may be one's. */
Test(vacancy, a_full_queue_is_not_absence)
{
    const struct qn_vacancy unknown = {0};
    cr_assert_eq(qn_vacancy_step(QN_REACH_BUSY, &unknown), QN_VACANCY_WAIT);
    cr_assert_eq(qn_vacancy_step(QN_REACH_ABSENT, &unknown), QN_VACANCY_START);
}
