#include "core/frames.h"

#include "core/base/bits.h"

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
