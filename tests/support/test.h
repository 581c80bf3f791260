#ifndef QN_TESTS_SUPPORT_TEST_H
#define QN_TESTS_SUPPORT_TEST_H

/**
 * The header of every test: Test(suite, name, options...) defines one, with the
 * names and the meaning of Criterion's; cr_assert* ends it when it fails,
 * cr_expect* only records that it has failed.
 *
 * Two runners have the same tests. Criterion's is criterion.c. It cannot start
 * under ThreadSanitizer, and a leak report does not fail its tests: the
 * sanitizer presets link the small one, runner.c. Neither shows in here.
 *
 * A check is one comparison and one call. Criterion's own are a dozen calls in
 * place, and were two thirds of the time that a test took to compile.
 */

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct qn_test {
    const char *suite;
    const char *name;
    const char *file;
    unsigned line;
    void (*run)(void);
    struct qn_test *next; /* of the runner */

    /* The options. */
    void (*init)(void);
    void (*fini)(void);
    double timeout; /* s; 0: the runner's own */
    int signal;     /* expected signal that ends it; 0: none */
    int exit_code;  /* expected exit status */
};

/** Tells the runner of a test, which is static; before main(). */
void qn_test_register(struct qn_test *t);

/** Tells the runner of a failed check. */
void qn_test_report(bool fatal, const char *file, int line, const char *text);

/** Records a failed check; `fatal` ends the test. The text begins with a blank,
 *  because an empty format causes a warning. */
void qn_test_failed(bool fatal, const char *file, int line, const char *expr,
                    const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/** The same of a comparison, with the values of both sides as whole numbers. */
void qn_test_differ(bool fatal, const char *file, int line, const char *expr,
                    long long a, long long b, const char *fmt, ...)
    __attribute__((format(printf, 7, 8)));

#define Test(suite_, name_, ...)                                               \
    static void qn_test_run_##suite_##_##name_(void);                          \
    static struct qn_test qn_test_##suite_##_##name_ = {                       \
        .suite = #suite_,                                                      \
        .name = #name_,                                                        \
        .file = __FILE__,                                                      \
        .line = __LINE__,                                                      \
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

/* The compilers except a constant from this warning, but not its copy here. */
#pragma GCC diagnostic ignored "-Wsign-compare"
#define QN_TEST_CMP_(fatal, a, op, b, ...)                                     \
    do {                                                                       \
        const __auto_type qn_a_ = (a);                                         \
        const __auto_type qn_b_ = (b);                                         \
        if (!(qn_a_ op qn_b_)) {                                               \
            qn_test_differ((fatal), __FILE__, __LINE__, #a " " #op " " #b,     \
                           (long long)qn_a_, (long long)qn_b_,                 \
                           " " __VA_ARGS__);                                   \
        }                                                                      \
    } while (0)
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
