#include "core/base/err.h"

const char *qn_strerror(int err)
{
    switch (err) {
    case QN_OK:
        return "success";
#define X(name, value, text)                                                   \
    case QN_##name:                                                            \
        return text;
        QN_ERR_MAP(X)
#undef X
    default:
        return "unknown error";
    }
}
