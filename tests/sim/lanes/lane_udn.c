/* The queuepair over words: its lanes are windows in private memory, what both
 * nodes share is the device. Its memory orders are those of the words, of which
 * explore/words/test_words_orders.c weakens each. */
#include "tests/sim/lanes/lane_world.h"
#include "transports/udn/udn_internal.h"

/* Counts of frames have 16 bits. */
static int open_at(struct qn_qp **out, const struct qn_qp_opts *o,
                   uint32_t start)
{
    int rc = qn_udn.open(out, o);
    if (rc == QN_OK) {
        struct qn_udn_link *l =
            qn_udn_link_of(qn_udn_port_of(o->device), o->peer, 0);
        l->sent = l->acked = l->released = l->told = (uint16_t)start;
    }
    return rc;
}

const struct lane_kind lane_kind = {.transport = &qn_udn,
                                    .open_at = open_at,
                                    .full = QN_UDN_WINDOW,
                                    .again = QN_UDN_WINDOW,
                                    .most = 2 - LANE_LESS};
