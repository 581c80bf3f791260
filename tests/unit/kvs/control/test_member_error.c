/** Why no member is added or removed (kvs/control/member_error.h). */
#include "kvs/control/member_error.h"

#include <string.h>

#include "core/base/err.h"
#include "tests/support/test.h"

Test(member_error, each_is_a_line_of_its_own)
{
    for (int i = 1; i < QN_MEMBER_ERRORS; i++) {
        const char *text = qn_member_error_text(i);
        cr_assert(strlen(text) > 10 && strlen(text) < 120, "%s", text);
        cr_assert(strchr(text, '\n') == NULL, "%s", text);
        for (int k = 0; k < i; k++) {
            cr_assert(strcmp(qn_member_error_text(k), text) != 0, "%d and %d",
                      k, i);
        }
    }
}

Test(member_error, one_of_another_build_points_to_the_log)
{
    static const int64_t unknown[] = {0, -1, QN_MEMBER_ERRORS, INT64_MAX,
                                      INT64_MIN};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        cr_assert(strstr(qn_member_error_text(unknown[i]), "server's log") !=
                  NULL);
    }
}

Test(member_error, an_answer_names_the_replica_and_the_error)
{
    char line[QN_MEMBER_WHY_MAX];
    const struct qn_ctl_member_answer silent = {
        .node = 3, .peer = 2, .why = QN_MEMBER_ERROR_SILENT};
    const struct qn_ctl_member_answer unmet = {
        .node = 3, .peer = 1, .why = QN_MEMBER_ERROR_UNMET, .error = QN_ENOMEM};
    const struct qn_ctl_member_answer full = {.why = QN_MEMBER_ERROR_FULL};
    cr_expect(strstr(qn_member_answer_text(&silent, line), "(replica 2)") !=
              NULL);
    cr_expect(strstr(qn_member_answer_text(&unmet, line), "(replica 1): ") !=
              NULL);
    cr_expect(strstr(line, qn_strerror(QN_ENOMEM)) != NULL);
    cr_expect_str_eq(qn_member_answer_text(&full, line),
                     qn_member_error_text(QN_MEMBER_ERROR_FULL));
}

Test(member_error, an_answer_says_which_limit_would_fit)
{
    char line[QN_MEMBER_WHY_MAX];
    struct qn_ctl_member_answer a = {.why = QN_MEMBER_ERROR_MEMORY,
                                     .fits = 1200};
    cr_expect(strstr(qn_member_answer_text(&a, line),
                     "lower maxmemory (to 1200mb)") != NULL,
              "%s", line);
    a.fits = 0;
    cr_expect_str_eq(qn_member_answer_text(&a, line),
                     qn_member_error_text(QN_MEMBER_ERROR_MEMORY));
}
