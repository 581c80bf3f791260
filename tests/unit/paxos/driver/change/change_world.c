#include "tests/unit/paxos/driver/change/change_world.h"

#include "paxos/driver/driver_internal.h"
#include "tests/support/test.h"

struct world *change_voters(uint32_t n)
{
    struct world *w = world_seats(8, (UINT64_C(1) << n) - 1);
    world_go_on(w);
    return w;
}

void change_waits(struct world *w, qn_time_t ns)
{
    for (qn_time_t until = w->now + ns; w->now < until;) {
        w->now += 9 * QN_MS;
        world_rounds(w, 1);
    }
}

void change_refused(struct world *w, qn_node_t at,
                    const struct qn_driver_change *c, int err)
{
    uint64_t before = world_status(w, at).voters;
    cr_assert_eq(world_order(w, at, c), QN_OK);
    cr_assert_eq(world_status(w, at).change, QN_CHANGE_PENDING);
    change_waits(w, QN_DRIVER_ORDER_MAX + QN_S);
    cr_assert_eq(world_status(w, at).change, QN_CHANGE_REFUSED);
    cr_assert_eq(world_status(w, at).change_error, err, "%s",
                 qn_strerror(world_status(w, at).change_error));
    cr_assert_eq(world_status(w, at).voters, before);
}

void change_unknown(const struct world *w, qn_node_t at, int err)
{
    cr_assert_eq(world_status(w, at).change, QN_CHANGE_UNKNOWN);
    cr_assert_eq(world_status(w, at).change_error, err, "%s",
                 qn_strerror(world_status(w, at).change_error));
}
