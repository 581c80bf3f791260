#ifndef QN_TESTS_SUPPORT_RUNNER_H
#define QN_TESTS_SUPPORT_RUNNER_H

/**
 * A small test runner with Criterion's interface (see test.h).
 *
 * Each test runs in a forked child, so that a crash, a sanitizer report or a
 * leak found at exit fails only that test. The process exits 1 when a test
 * failed. One argument selects the tests whose "suite/name" contains it.
 */

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct qn_test {
    const char *suite;
    const char *name;
    void (*run)(void);
    void (*init)(void);
    void (*fini)(void);
    double timeout; /* s; 0: 60 s */
    int signal;     /* expected signal that ends it; 0: none */
    int exit_code;  /* expected exit status */
    int disabled;
    const char *description;
    struct qn_test *next;
};

void qn_test_register(struct qn_test *t);

/** Records a failed check; `fatal` ends the test. The text begins with a blank,
 *  because an empty format causes a warning. */
void qn_test_failed(bool fatal, const char *file, int line, const char *expr,
                    const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#define Test(suite_, name_, ...)                                               \
    static void qn_test_run_##suite_##_##name_(void);                          \
    static struct qn_test qn_test_##suite_##_##name_ = {                       \
        .suite = #suite_,                                                      \
        .name = #name_,                                                        \
        .run = qn_test_run_##suite_##_##name_,                                 \
        __VA_ARGS__};                                                          \
    __attribute__((constructor)) static void qn_test_add_##suite_##_##name_(   \
        void)                                                                  \
    {                                                                          \
        qn_test_register(&qn_test_##suite_##_##name_);                         \
    }                                                                          \
    static void qn_test_run_##suite_##_##name_(void)

#define QN_TEST_CHECK_(fatal, cond, text, ...)                                 \
    ((cond)                                                                    \
         ? (void)0                                                             \
         : qn_test_failed((fatal), __FILE__, __LINE__, text, " " __VA_ARGS__))

#define cr_assert(cond, ...) QN_TEST_CHECK_(true, cond, #cond, __VA_ARGS__)
#define cr_expect(cond, ...) QN_TEST_CHECK_(false, cond, #cond, __VA_ARGS__)
#define cr_assert_not(cond, ...)                                               \
    QN_TEST_CHECK_(true, !(cond), "!(" #cond ")", __VA_ARGS__)
#define cr_expect_not(cond, ...)                                               \
    QN_TEST_CHECK_(false, !(cond), "!(" #cond ")", __VA_ARGS__)
#define cr_assert_fail(...)                                                    \
    qn_test_failed(true, __FILE__, __LINE__, "failure", " " __VA_ARGS__)

#define QN_TEST_CMP_(fatal, a, op, b, ...)                                     \
    QN_TEST_CHECK_(fatal, (a)op(b), #a " " #op " " #b, __VA_ARGS__)
#define cr_assert_eq(a, b, ...)  QN_TEST_CMP_(true, a, ==, b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...) QN_TEST_CMP_(true, a, !=, b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...)  QN_TEST_CMP_(true, a, <, b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...) QN_TEST_CMP_(true, a, <=, b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...)  QN_TEST_CMP_(true, a, >, b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...) QN_TEST_CMP_(true, a, >=, b, __VA_ARGS__)
#define cr_expect_eq(a, b, ...)  QN_TEST_CMP_(false, a, ==, b, __VA_ARGS__)
#define cr_expect_neq(a, b, ...) QN_TEST_CMP_(false, a, !=, b, __VA_ARGS__)
#define cr_expect_lt(a, b, ...)  QN_TEST_CMP_(false, a, <, b, __VA_ARGS__)
#define cr_expect_gt(a, b, ...)  QN_TEST_CMP_(false, a, >, b, __VA_ARGS__)
#define cr_expect_leq(a, b, ...) QN_TEST_CMP_(false, a, <=, b, __VA_ARGS__)
#define cr_expect_geq(a, b, ...) QN_TEST_CMP_(false, a, >=, b, __VA_ARGS__)
#define cr_assert_float_eq(a, b, by, ...)                                      \
    cr_assert((a) - (b) <= (by) && (b) - (a) <= (by), __VA_ARGS__)
#define cr_assert_null(p, ...)                                                 \
    QN_TEST_CHECK_(true, (p) == NULL, #p " == NULL", __VA_ARGS__)
#define cr_expect_null(p, ...)                                                 \
    QN_TEST_CHECK_(false, (p) == NULL, #p " == NULL", __VA_ARGS__)
#define cr_assert_not_null(p, ...)                                             \
    QN_TEST_CHECK_(true, (p) != NULL, #p " != NULL", __VA_ARGS__)
#define cr_expect_not_null(p, ...)                                             \
    QN_TEST_CHECK_(false, (p) != NULL, #p " != NULL", __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...)                                            \
    QN_TEST_CHECK_(true, strcmp((a), (b)) == 0, #a " equals " #b, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...)                                            \
    QN_TEST_CHECK_(false, strcmp((a), (b)) == 0, #a " equals " #b, __VA_ARGS__)
#define cr_assert_arr_eq(a, b, n, ...)                                         \
    QN_TEST_CHECK_(true, memcmp((a), (b), (n)) == 0, #a " equals " #b,         \
                   __VA_ARGS__)

#endif
