#include "kvs/control/member_error.h"

#include <stdio.h>

#include "core/base/err.h"

static const char *const texts[QN_MEMBER_ERRORS] = {
#define X(name, text) [QN_MEMBER_ERROR_##name] = (text),
    QN_MEMBER_ERROR_MAP(X)
#undef X
};

const char *qn_member_error_text(int64_t why)
{
    return why > QN_MEMBER_ERROR_NONE && why < QN_MEMBER_ERRORS
               ? texts[why]
               : "for a reason that only another build knows; see the "
                 "server's log";
}

const char *qn_member_answer_text(const struct qn_ctl_member_answer *a,
                                  char *line)
{
    char who[24] = "";
    char err[64] = "";
    char fits[48] = "";
    if (a->why == QN_MEMBER_ERROR_UNMET || a->why == QN_MEMBER_ERROR_SILENT ||
        a->why == QN_MEMBER_ERROR_ALL) {
        snprintf(who, sizeof who, " (replica %u)", a->peer);
    }
    if (a->error != QN_OK) {
        snprintf(err, sizeof err, ": %s", qn_strerror((int)a->error));
    }
    if (a->why == QN_MEMBER_ERROR_MEMORY && a->fits != 0) {
        snprintf(fits, sizeof fits, " (to %umb)", a->fits);
    }
    snprintf(line, QN_MEMBER_WHY_MAX, "%s%s%s%s", qn_member_error_text(a->why),
             who, fits, err);
    return line;
}
