/*
 * What a message of one line through the shared memory of TILE-Gx costs, for
 * plans and predictions. Homes are hashed, so a pair's costs are means over all
 * homes: they depend on how far the two cores are from the middle of the grid,
 * and not on how far they are from each other.
 *
 * The receiver waits at the line, so it has a copy. The sender writes the line
 * and publishes it: a store, which takes the copy away, a fence, and a store;
 * for so long it can do nothing else. The receiver has looked meanwhile, so it
 * loses its copy again half of an acknowledgement after the second store, and
 * loads the line. For a message that was there before it looked, the load is
 * all: the queued factor.
 */
#include <math.h>

#include "core/base/err.h"
#include "core/base/text.h"
#include "core/machine/machine.h"
#include "core/sim/timed/tiled/tiled.h"

struct means {
    double trip; /* of a load */
    double ack;  /* of a store, no copies */
    double drop; /* added if a copy of this core has to go */
};

static struct means means_of(const struct qn_tiled *m, uint32_t core)
{
    const uint32_t cores = qn_grid_cores(&m->grid);
    struct means sum = {0};
    for (uint32_t home = 0; home < cores; home++) {
        double way = qn_grid_hops(&m->grid, core, home) *
                     qn_tiled_value(m, QN_TILEGX_HOP);
        bool own = home == core;
        sum.trip += own ? qn_tiled_value(m, QN_TILEGX_L2)
                        : qn_tiled_value(m, QN_TILEGX_LOOK) +
                              qn_tiled_value(m, QN_TILEGX_HOME) + 2 * way;
        sum.ack += own ? qn_tiled_value(m, QN_TILEGX_L2)
                       : qn_tiled_value(m, QN_TILEGX_ACK) + 2 * way;
        sum.drop += qn_tiled_value(m, QN_TILEGX_DROP) + 2 * way;
    }
    return (struct means){sum.trip / cores, sum.ack / cores, sum.drop / cores};
}

static void fill(struct qn_machine *to, const struct qn_tiled *m)
{
    double trips = 0, receives = 0;
    double store = qn_tiled_value(m, QN_TILEGX_STORE);
    double fence = qn_tiled_value(m, QN_TILEGX_FENCE);
    for (uint32_t u = 0; u < to->n; u++) {
        struct means sender = means_of(m, u);
        to->core[u].phys = u;
        to->core[u].cache = u;
        for (uint32_t v = 0; v < to->n; v++) {
            struct means receiver = means_of(m, v);
            size_t at = (size_t)u * to->n + v;
            if (u != v) {
                double ack = sender.ack + receiver.drop;
                to->send[at] = 2 * store + fmax(fence, ack - store);
                to->receive[at] = ack / 2 + receiver.trip;
                trips += receiver.trip;
                receives += to->receive[at];
            }
        }
    }
    to->facts.queued_factor = receives > 0 ? trips / receives : 0;
}

int qn_tiled_machine(struct qn_machine **out, const struct qn_tiled *m)
{
    if (m->kind != QN_TILED_TILEGX) {
        return QN_EINVAL;
    }
    struct qn_machine *to;
    int err = qn_machine_create(&to, qn_grid_cores(&m->grid));
    if (err != QN_OK) {
        return err;
    }
    qn_text_copy(to->name, sizeof to->name, m->name);
    to->facts.clock_ghz = m->clock_ghz;
    fill(to, m);
    *out = to;
    return QN_OK;
}
