/*
 * The device of the queuepairs: one of words, and behind each attachment the
 * links of its node with all others. up makes those of a peer anew.
 */
#include <string.h>

#include "core/base/assert.h"
#include "transports/udn/udn_internal.h"
#include "transports/udn/udn_mutant.h"

static int attach(struct qn_device **out, const struct qn_device_attach_opts *o)
{
    const uint32_t links = o->opts->nodes * o->opts->lanes;
    int rc = qn_words_attach(out, o, &qn_udn_device,
                             sizeof(struct qn_udn_port) +
                                 links * sizeof(struct qn_udn_link));
    if (rc == QN_OK) {
        struct qn_udn_port *p = qn_udn_port_of(*out);
        uint32_t queue;
        bool taken = qn_words_take_queue(*out, &queue);
        QN_ASSERT(taken && queue == QN_UDN_QUEUE);
        p->device = *out;
        p->nodes = o->opts->nodes;
        p->lanes = o->opts->lanes;
        memcpy(p->inc, o->incarnation, p->nodes * sizeof *p->inc);
    }
    return rc;
}

static void up(struct qn_device *d, qn_node_t node, uint64_t inc)
{
    struct qn_udn_port *p = qn_udn_port_of(d);
    if (!qn_words_living(d, node, inc)) {
        p->inc[node] = inc;
        if (!QN_UDN_MUTANT(OLD_FRAMES)) {
            memset(qn_udn_link_of(p, node, 0), 0, p->lanes * sizeof p->link[0]);
        }
    }
    qn_words_up(d, node, inc);
}

const struct qn_device_type qn_udn_device = {
    .name = "udn",
    .bytes = qn_words_bytes,
    .format = qn_words_format,
    .attach = attach,
    .detach = qn_words_detach,
    .down = qn_words_down,
    .up = up,
};
