#include "flow_world.h"

#include <string.h>

#include "core/base/bits.h"

struct flow_world fw;

const struct qn_flow_limits flow_limits = {.lag_bytes = LAG,
                                           .stop_bytes = STOP,
                                           .lag_slots = 1000,
                                           .stop_slots = 4000,
                                           .timeout = QN_S};

struct qn_flow_place flow_place(qn_node_t n)
{
    return (struct qn_flow_place){.applied = fw.applied[n],
                                  .read = fw.read_too[n],
                                  .bytes = (fw.decided - fw.applied[n]) * BATCH,
                                  .kept = fw.applied[n] + 1 >= fw.lo};
}

void flow_begin(uint32_t nodes, uint32_t min)
{
    struct qn_flow_limits l = flow_limits;
    struct qn_flow_place at[QN_NODES_MAX];
    l.min_awaited = min;
    memset(&fw, 0, sizeof fw);
    fw.now = 5 * QN_S;
    fw.lo = 1;
    for (qn_node_t n = 0; n < nodes; n++) {
        at[n] = flow_place(n);
    }
    qn_flow_init(&fw.f, 0, nodes, &l);
    qn_flow_begin(&fw.f, fw.now, (1u << nodes) - 1, at);
}

void flow_setup(void)
{
    flow_begin(3, 0);
}

uint64_t flow_decide(uint64_t most)
{
    for (uint64_t k = 0; k < most; k++) {
        struct qn_flow_by by;
        do {
            by = qn_flow_shuts(&fw.f, fw.now, BATCH);
        } while (qn_flow_look(&fw.f, fw.now, by));
        if (by.members != 0 || by.holds != 0) {
            return k;
        }
        fw.decided++;
        qn_flow_decided(&fw.f, BATCH);
    }
    return most;
}

void flow_applies(qn_node_t n, uint64_t slots)
{
    fw.applied[n] = QN_MIN(fw.applied[n] + slots, fw.decided);
    qn_flow_heard(&fw.f, fw.now, n, flow_place(n));
}

void flow_passes(qn_time_t ns)
{
    fw.now += ns;
}

const struct flow_follower flow_well = {1000, 1}, flow_squeezed = {20, 100},
                           flow_stopped = {0, 1};

uint64_t flow_seconds(uint64_t count, struct flow_follower one,
                      struct flow_follower two)
{
    qn_slot_t before = fw.decided;
    for (uint64_t turn = 0; turn < 100 * count; turn++) {
        flow_passes(10 * QN_MS);
        flow_applies(1, turn % one.turns == 0 ? one.slots : 0);
        flow_applies(2, turn % two.turns == 0 ? two.slots : 0);
        flow_decide(8);
    }
    return fw.decided - before;
}
