/*
 * The map of peers, with incarnations that have no outbox and no queuepair:
 * which are present, retained, or gone. Descriptors are copies of /dev/null's.
 */
#include "paxos/member/peers.h"

#include <fcntl.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/test.h"

static struct qn_peers p;

static void teardown(void)
{
    qn_peers_fini(&p);
}

#define CASE(name) Test(peers, name, .fini = teardown)

static struct qn_mapped_peer *make(qn_node_t node, uint64_t incarnation)
{
    const struct qn_mapped_peer like = {
        .node = node, .incarnation = incarnation, .pid = 4711};
    struct qn_mapped_peer *peer = NULL;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    cr_assert_eq(qn_peer_create(&peer, &like, NULL, fd), QN_OK);
    close(fd);
    return peer;
}

static bool needs_odd(const void *ctx, const struct qn_mapped_peer *peer)
{
    (void)ctx;
    return peer->incarnation % 2 == 1;
}

CASE(a_peer_keeps_what_it_was_made_of_and_its_own_descriptor)
{
    struct qn_mapped_peer *peer = make(3, 8);
    qn_peers_add(&p, peer);
    cr_assert_eq(peer->pid, 4711);
    cr_assert_neq(fcntl(peer->fd, F_GETFD), -1);
    cr_assert_eq(p.incarnation[3], 8);
    cr_assert_eq(qn_peers_present(&p), 1u << 3);
}

CASE(a_descriptor_that_is_not_open_makes_no_peer)
{
    const struct qn_mapped_peer like = {.node = 1};
    struct qn_mapped_peer *peer = NULL;
    cr_assert_eq(qn_peer_create(&peer, &like, NULL, -1), QN_EMFILE);
    cr_assert_null(peer);
}

CASE(a_retired_peer_is_retained_and_its_incarnation_remembered)
{
    struct qn_mapped_peer *peer = make(2, 5);
    qn_peers_add(&p, peer);
    cr_assert_eq(qn_peers_retire(&p, 2), peer);
    cr_assert_eq(p.retained, peer);
    cr_assert_eq(p.incarnation[2], 5);
    cr_assert_eq(qn_peers_present(&p), 0);
}

CASE(a_later_incarnation_is_present_beside_a_retained_one)
{
    qn_peers_add(&p, make(2, 5));
    (void)qn_peers_retire(&p, 2);
    qn_peers_add(&p, make(2, 6));
    cr_assert_eq(p.incarnation[2], 6);
    cr_assert_eq(p.retained->incarnation, 5);
    cr_assert_eq(p.present[2]->incarnation, 6);
}

CASE(sweeping_frees_those_that_are_not_needed)
{
    for (uint64_t incarnation = 1; incarnation <= 6; incarnation++) {
        qn_peers_retain(&p, make(0, incarnation));
    }
    qn_peers_sweep(&p, needs_odd, NULL);
    cr_assert_eq(p.retained->incarnation, 5);
    cr_assert_eq(p.retained->next->incarnation, 3);
    cr_assert_eq(p.retained->next->next->incarnation, 1);
    cr_assert_null(p.retained->next->next->next);
}

CASE(a_dropped_peer_is_not_retained)
{
    qn_peers_add(&p, make(4, 1));
    qn_peers_drop(&p, 4);
    cr_assert_eq(qn_peers_present(&p), 0);
    cr_assert_null(p.retained);
}

Test(peers, a_node_has_one_present_incarnation, .signal = SIGABRT)
{
    qn_peers_add(&p, make(2, 5));
    qn_peers_add(&p, make(2, 6));
}

/* ---- what queuepairs have moved ---- */

static struct qn_qp_traffic moved(const struct qn_qp *qp)
{
    return (struct qn_qp_traffic){.sent = qp->doorbell == NULL ? 10 : 100,
                                  .received = 1};
}

static void close_nothing(struct qn_qp *qp)
{
    (void)qp;
}

static const struct qn_qp_ops cells = {
    .unit = "cells", .traffic = moved, .close = close_nothing};
static const struct qn_qp_ops words = {
    .unit = "words", .traffic = moved, .close = close_nothing};

static void moved_is(const struct qn_qp_ops *ops, uint64_t sent,
                     uint64_t received)
{
    struct qn_qp_traffic t = qn_peers_traffic(&p, ops);
    cr_assert_eq(t.sent, sent, "%s: %lu", ops->unit, t.sent);
    cr_assert_eq(t.received, received, "%s: %lu", ops->unit, t.received);
}

CASE(each_backend_counts_its_own_queuepairs_also_closed_ones)
{
    struct qn_doorbell doorbell;
    struct qn_qp by_cells = {.ops = &cells};
    struct qn_qp by_words = {.ops = &words, .doorbell = &doorbell};
    p.direct[1] = &by_cells;
    p.tree[1] = &by_words;
    p.direct[2] = &by_words;
    moved_is(&cells, 10, 1);
    moved_is(&words, 200, 2);
    qn_peers_close_queuepairs(&p, 1);
    moved_is(&cells, 10, 1);
    moved_is(&words, 200, 2);
    p.direct[1] = &by_words;
    moved_is(&words, 300, 3);
    qn_peers_close_queuepairs(&p, 1);
    qn_peers_close_queuepairs(&p, 2);
    moved_is(&cells, 10, 1);
    moved_is(&words, 300, 3);
}
