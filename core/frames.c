#include "core/frames.h"

#include "core/base/bits.h"

struct qn_frame qn_frame_cut(const void *msg, uint32_t len, uint32_t from,
                             const struct qn_frame_limits *l)
{
    bool whole = from == 0 && len <= l->any;
    bool first = from == 0 && !whole;
    uint32_t n = QN_MIN(len - from, first ? l->first : l->any);
    return (struct qn_frame){.kind = whole             ? QN_FRAME_ONLY
                                     : first           ? QN_FRAME_FIRST
                                     : from + n == len ? QN_FRAME_LAST
                                                       : QN_FRAME_MORE,
                             .data = (const uint8_t *)msg + from,
                             .len = n,
                             .total = len};
}

static bool lane_good(const void *lane)
{
    return lane != NULL && (uintptr_t)lane % QN_CACHELINE == 0;
}

bool qn_qp_opts_good(const struct qn_qp_opts *o, uint32_t cells_min,
                     uint32_t cells_max)
{
    return lane_good(o->tx) && lane_good(o->rx) && qn_is_pow2(o->cells) &&
           o->cells >= cells_min && o->cells <= cells_max &&
           o->self < QN_MEMBERS_MAX && o->peer < QN_MEMBERS_MAX &&
           (o->msg_max == 0 ||
            (o->msg_max >= QN_INPLACE_MAX && o->msg_max <= QN_MSG_MAX)) &&
           o->self_inc != 0 && o->peer_inc != 0;
}
