/** Why a group is not recovered (kvs/control/refusal.h). */
#include <string.h>

#include "kvs/control/refusal.h"
#include "tests/support/test.h"

Test(refusal, each_is_a_line_of_its_own)
{
    for (int i = 1; i < QN_REFUSALS; i++) {
        const char *text = qn_refusal_text(i);
        cr_assert(strlen(text) > 10 && strlen(text) < 120, "%s", text);
        cr_assert(strchr(text, '\n') == NULL, "%s", text);
        for (int k = 0; k < i; k++) {
            cr_assert(strcmp(qn_refusal_text(k), text) != 0, "%d and %d", k, i);
        }
    }
}

Test(refusal, of_another_build_is_said_to_be)
{
    static const int64_t unknown[] = {0, -1, QN_REFUSALS, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        cr_assert(strstr(qn_refusal_text(unknown[i]), "server's log") != NULL);
    }
}
