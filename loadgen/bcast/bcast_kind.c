/*
 * What the commands do not have in common.
 */
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/coll/coll.h"
#include "loadgen/bcast/bcast_internal.h"

static const struct qn_bcast_kind kinds[] = {
    {.op = QN_COLLECTIVE_BROADCAST,
     .program = "quoin bench broadcast",
     .name = "broadcast",
     .title = "broadcast",
     .latency = "from a leaf's request to the root until the leaf has it; the "
                "slowest leaf",
     .summary = "Measure broadcasts over trees and compare them with the "
                "model. Times run\nfrom a leaf's request to the root until "
                "the leaf has the message; the slowest\nleaf counts.",
     .size_max = QN_OPERATION_SIZE_MAX,
     .window = true},
    {.op = QN_COLLECTIVE_ACK,
     .program = "quoin bench ack",
     .name = "ack",
     .title = "acknowledged broadcast",
     .latency = "from the root's send until it knows that all have it",
     .summary = "Measure acknowledged broadcasts over trees and compare them "
                "with the model.\nTimes run from the root's send until it "
                "knows that all nodes have delivered.",
     .size_max = QN_OPERATION_SIZE_MAX,
     .window = true},
    {.op = QN_COLLECTIVE_REDUCE,
     .program = "quoin bench reduce",
     .name = "reduce",
     .title = "reduction",
     .latency = "from a common start until the root has the result",
     .shared = "from the root's start until it has the result",
     .summary = "Measure reductions over trees and compare them with the "
                "model. Times run\nfrom a common start until the root has "
                "the result.",
     .size_max = 8 * QN_COLL_WORDS},
    {.op = QN_COLLECTIVE_BARRIER,
     .program = "quoin bench tree-barrier",
     .name = "tree-barrier",
     .title = "barrier",
     .latency = "from a common start until the last node has left",
     .shared = "from the root's start until it has left",
     .summary = "Measure barriers over trees and compare them with the model "
                "and with\npthread_barrier. Times run from a common start "
                "until the last node has left.",
     .pthread = true},
    {.op = QN_COLLECTIVE_BARRIER,
     .program = "quoin bench allreduce",
     .name = "allreduce",
     .title = "all-reduction",
     .latency = "from a common start until the last node has the result",
     .shared = "from the root's start until it has the result",
     .summary = "Measure all-reductions over trees and compare them with the "
                "model. Times run\nfrom a common start until the last node "
                "has the result.",
     .size_max = 8 * QN_COLL_WORDS},
    {.op = QN_COLLECTIVE_2PC,
     .program = "quoin bench 2pc",
     .name = "2pc",
     .title = "two-phase commit",
     .latency = "from a common start until the last node knows the decision",
     .shared = "from the root's start until it knows the decision",
     .summary = "Measure two-phase commits over trees and compare them with "
                "the model: all nodes\nare asked, vote, and are told. Times "
                "run from a common start until the last node\nknows the "
                "decision."},
};

const struct qn_bcast_kind *qn_bcast_kind(const char *name)
{
    uint32_t i = 0;
    while (strcmp(kinds[i].name, name) != 0) {
        i++;
        QN_ASSERT(i < QN_ARRAY_COUNT(kinds));
    }
    return &kinds[i];
}
