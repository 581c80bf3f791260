/** Why a group is not recovered (kvs/control/recovery_error.h). */
#include <string.h>

#include "kvs/control/recovery_error.h"
#include "tests/support/test.h"

Test(recovery_error, each_is_a_line_of_its_own)
{
    for (int i = 1; i < QN_RECOVERY_ERRORS; i++) {
        const char *text = qn_recovery_error_text(i);
        cr_assert(strlen(text) > 10 && strlen(text) < 120, "%s", text);
        cr_assert(strchr(text, '\n') == NULL, "%s", text);
        for (int k = 0; k < i; k++) {
            cr_assert(strcmp(qn_recovery_error_text(k), text) != 0, "%d and %d",
                      k, i);
        }
    }
}

Test(recovery_error, one_of_another_build_points_to_the_log)
{
    static const int64_t unknown[] = {0, -1, QN_RECOVERY_ERRORS, INT64_MAX,
                                      INT64_MIN};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        cr_assert(strstr(qn_recovery_error_text(unknown[i]), "server's log") !=
                  NULL);
    }
}
