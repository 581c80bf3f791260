/* Lanes to seats, taken or vacant, and queuepairs in them. */

#include <errno.h>
#include <string.h>

#include "core/base/err.h"
#include "core/place/outbox.h"
#include "outbox_world.h"
#include "tests/support/test.h"

#define LANES_TO_A_SEAT (2 * (size_t)8192) /* two of LANE, in whole pages */

static struct qn_outbox *make_seats(bool shared, uint64_t seats)
{
    struct qn_outbox *o = NULL;
    struct qn_outbox_opts w = outbox_opts(shared);
    w.nodes = QN_NODES_MAX;
    w.seats = seats;
    cr_assert_eq(qn_outbox_create(&o, &w), QN_OK);
    cr_assert(!shared || outbox_allocated(o) == qn_outbox_bytes_fixed(&w));
    return o;
}

Test(outbox, a_vacant_seat_takes_address_space_and_no_memory)
{
    struct qn_outbox *all = make_seats(true, 0);
    struct qn_outbox *three = make_seats(true, 7);
    cr_assert_eq(qn_outbox_bytes(all), qn_outbox_bytes(three));
    cr_assert_eq(outbox_allocated(all) - outbox_allocated(three),
                 (QN_NODES_MAX - 3) * LANES_TO_A_SEAT);
    struct qn_outbox *alone = make_seats(true, 1u << 1); /* its own */
    cr_assert_eq(outbox_allocated(three) - outbox_allocated(alone),
                 2 * LANES_TO_A_SEAT);
    qn_outbox_destroy(alone);
    qn_outbox_destroy(three);
    qn_outbox_destroy(all);
}

/* Each in turn, last one first; the others stay as they were. */
Test(outbox, a_seat_is_taken_in_place)
{
    for (int shared = 0; shared < 2; shared++) {
        struct qn_outbox *o = make_seats(shared, 5);
        struct qn_outbox_opts w = outbox_opts(shared);
        struct qn_outbox *seen = NULL;
        size_t had = shared ? outbox_allocated(o) : 0;
        w.nodes = QN_NODES_MAX; /* a reader need not know the seats */
        cr_assert_eq(shared ? qn_outbox_map(&seen, qn_outbox_fd(o), &w)
                            : qn_outbox_alias(&seen, o),
                     QN_OK);
        for (qn_node_t i = QN_NODES_MAX - 1; i > 1; i--) {
            size_t more = i == 2 ? 0 : LANES_TO_A_SEAT; /* it has one */
            cr_assert_eq(qn_outbox_seated(seen, i), i == 2);
            cr_assert_eq(qn_outbox_seat(o, i), QN_OK);
            cr_assert_eq(qn_outbox_seat(o, i), QN_OK);
            cr_assert(qn_outbox_seated(seen, i));
            cr_assert(!shared || outbox_allocated(o) == had + more);
            had += more;
            memset(qn_outbox_lane(o, i, QN_LANE_DIRECT), (int)i, LANE);
            memset(qn_outbox_lane(o, i, QN_LANE_TREE), (int)i + 100, LANE);
        }
        for (qn_node_t i = 2; i < QN_NODES_MAX; i++) {
            const uint8_t *direct = qn_outbox_lane(seen, i, QN_LANE_DIRECT);
            const uint8_t *tree = qn_outbox_lane(seen, i, QN_LANE_TREE);
            cr_assert(direct[0] == i && direct[LANE - 1] == i, "%u", i);
            cr_assert(tree[0] == i + 100 && tree[LANE - 1] == i + 100);
        }
        qn_outbox_destroy(seen);
        qn_outbox_destroy(o);
    }
}

Test(outbox, a_seat_without_memory_stays_vacant)
{
    struct qn_outbox *o = make_seats(true, 3);
    size_t had = outbox_allocated(o);
    outbox_refuse = ENOSPC;
    cr_assert_eq(qn_outbox_seat(o, 9), QN_ENOMEM);
    outbox_refuse = 0;
    cr_assert_eq(outbox_allocated(o), had);
    cr_assert_not(qn_outbox_seated(o, 9));
    cr_assert_eq(qn_outbox_seat(o, 9), QN_OK);
    cr_assert_eq(outbox_allocated(o), had + LANES_TO_A_SEAT);
    qn_outbox_destroy(o);
    struct qn_outbox_opts w = outbox_opts(true);
    w.seats = 1u << 3; /* there are three nodes */
    cr_assert_eq(qn_outbox_create(&o, &w), QN_EINVAL);
}

/* A group of three that may grow to 64. */
Test(outbox, a_capacity_of_64_costs_three_members_no_lanes)
{
    size_t fixed[2];
    for (int i = 0; i < 2; i++) {
        struct qn_outbox_opts w = outbox_opts(true);
        w.nodes = i == 0 ? 3 : QN_NODES_MAX;
        w.seats = 7;
        fixed[i] = 3 * qn_outbox_bytes_fixed(&w);
    }
    cr_assert_eq(fixed[0], fixed[1]);
}

/* ---- queuepairs ---------------------------------------------------------- */

/* A transport that notes what it is opened on, and fails at the n-th. */
static struct qn_qp_opts opened_on[QN_LANES_MAX];
static struct qn_qp ends[QN_LANES_MAX];
static uint32_t opens, closes, fails_at;

static void fake_close(struct qn_qp *qp)
{
    cr_assert(qp >= ends && qp < ends + QN_LANES_MAX);
    closes++;
}

static int fake_open(struct qn_qp **out, const struct qn_qp_opts *o)
{
    static const struct qn_qp_ops ops = {.close = fake_close};
    if (opens == fails_at) {
        return QN_ENOMEM;
    }
    opened_on[opens] = *o;
    ends[opens].ops = &ops;
    *out = &ends[opens++];
    return QN_OK;
}

static int connect_three(struct qn_qp **qp, struct qn_outbox *own,
                         struct qn_outbox *peer)
{
    static const struct qn_transport fake = {.open = fake_open};
    const struct qn_outbox_connect_opts o = {
        .transport = &fake,
        .own = own,
        .peer = peer,
        .lanes = 3,
        .each = {.cells = 64, .self = 1, .peer = 2}};
    opens = closes = 0;
    return qn_outbox_connect(qp, &o);
}

Test(outbox, queuepairs_lie_in_the_lanes_of_both)
{
    struct qn_outbox_opts w = outbox_opts(false);
    struct qn_outbox *own, *peer;
    struct qn_qp *qp[3] = {&ends[3], &ends[3], &ends[3]};
    w.lanes = 3;
    cr_assert_eq(qn_outbox_create(&own, &w), QN_OK);
    w.node = 2;
    w.incarnation = 9;
    cr_assert_eq(qn_outbox_create(&peer, &w), QN_OK);
    fails_at = 3;
    cr_assert_eq(connect_three(qp, own, peer), QN_OK);
    for (uint32_t l = 0; l < 3; l++) {
        const struct qn_qp_opts *o = &opened_on[l];
        cr_assert(qp[l] == &ends[l] && o->lane == (enum qn_lane)l);
        cr_assert(o->tx == qn_outbox_lane(own, 2, (enum qn_lane)l));
        cr_assert(o->rx == qn_outbox_lane(peer, 1, (enum qn_lane)l));
        cr_assert(o->self_inc == 7 && o->peer_inc == 9);
        cr_assert(o->self == 1 && o->peer == 2 && o->cells == 64);
    }
    fails_at = 2;
    cr_assert_eq(connect_three(qp, own, peer), QN_ENOMEM);
    cr_assert_eq(closes, 2, "those that were open");
    cr_assert(qp[0] == NULL && qp[1] == NULL && qp[2] == NULL);
    qn_outbox_destroy(own);
    qn_outbox_destroy(peer);
}
