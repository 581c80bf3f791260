#include "kvs/control/refusal.h"

static const char *const texts[QN_REFUSALS] = {
#define X(name, text) [QN_REFUSAL_##name] = (text),
    QN_REFUSAL_MAP(X)
#undef X
};

const char *qn_refusal_text(int64_t why)
{
    return why > QN_REFUSAL_NONE && why < QN_REFUSALS
               ? texts[why]
               : "for a reason that only another build knows; see the "
                 "server's log";
}
