#include "kvs/control/recovery_error.h"

static const char *const texts[QN_RECOVERY_ERRORS] = {
#define X(name, text) [QN_RECOVERY_ERROR_##name] = (text),
    QN_RECOVERY_ERROR_MAP(X)
#undef X
};

const char *qn_recovery_error_text(int64_t why)
{
    return why > QN_RECOVERY_ERROR_NONE && why < QN_RECOVERY_ERRORS
               ? texts[why]
               : "for a reason that only another build knows; see the "
                 "server's log";
}
