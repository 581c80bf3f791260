#include "core/coll/coll_view.h"

#include <string.h>

#include "core/base/err.h"

int qn_view_decide(struct qn_view *out, uint16_t number,
                   const struct qn_view_report *report, uint32_t n)
{
    uint64_t member[QN_NODE_SET_WORDS(QN_MEMBERS_MAX)] = {0};
    for (uint32_t i = 0; i < n; i++) {
        if (report[i].member >= QN_MEMBERS_MAX) {
            return QN_EINVAL;
        }
        member[report[i].member / 64] |= UINT64_C(1) << report[i].member % 64;
    }
    if (n == 0) {
        return QN_EINVAL;
    }
    const struct qn_view_report *most = &report[0], *least = &report[0];
    for (uint32_t i = 1; i < n; i++) {
        if (qn_view_before(most->delivered, report[i].delivered)) {
            most = &report[i];
        }
        if (qn_view_before(report[i].delivered, least->delivered)) {
            least = &report[i];
        }
    }
    if (qn_view_before(least->delivered, most->released)) {
        return QN_ECORRUPT;
    }
    *out = (struct qn_view){.number = number,
                            .root = most->member,
                            .before = least->delivered,
                            .done = most->delivered};
    memcpy(out->member, member, sizeof member);
    return QN_OK;
}
