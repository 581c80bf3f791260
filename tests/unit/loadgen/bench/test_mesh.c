/*
 * How a mesh shows a node the lanes of its peers. What goes through them is
 * tests/conformance's.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/base/bits.h"
#include "loadgen/bench/mesh.h"
#include "tests/support/test.h"
#include "transports/registry.h"

struct seen {
    bool own_writable, peer_writable;
    uint32_t answers;
};

/* May the kernel write there for this process? Asked without a fault: it reads
 * a zero, which the end of a new lane is, or answers EFAULT. */
static bool writable(void *at)
{
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    cr_assert_geq(zero, 0);
    bool yes = read(zero, at, 1) == 1;
    cr_assert(yes || errno == EFAULT);
    close(zero);
    return yes;
}

/* Each message waits for the one before it, so both nodes sleep and ring. */
static int talk(struct qn_mesh_end *end, uint32_t *answers)
{
    struct qn_qp *qp = end->qp[1 - end->self][QN_LANE_DIRECT];
    uint32_t word = 0;
    size_t len;
    int rc = QN_OK;
    for (uint32_t i = 0; i < 200 && rc == QN_OK; i++) {
        if (end->self == 0) {
            rc = qn_qp_send(qp, &i, sizeof i, QN_TIME_NEVER);
        }
        if (rc == QN_OK) {
            rc = qn_qp_recv(qp, &word, sizeof word, &len, QN_TIME_NEVER);
        }
        if (rc == QN_OK && end->self == 1) {
            rc = qn_qp_send(qp, &word, sizeof word, QN_TIME_NEVER);
        }
        *answers += rc == QN_OK && word == i;
    }
    return rc;
}

static int look(struct qn_mesh_end *end, void *arg)
{
    struct seen *seen = (struct seen *)arg + end->self;
    const qn_node_t peer = 1 - end->self;
    const size_t bytes = qn_transport_find("ump")->lane_bytes(64);
    uint8_t *tx = qn_outbox_lane(end->view[end->self], peer, QN_LANE_TREE);
    uint8_t *rx = qn_outbox_lane(end->view[peer], end->self, QN_LANE_TREE);
    seen->own_writable = writable(tx + bytes - 1);
    seen->peer_writable = writable(rx + bytes - 2);
    return talk(end, &seen->answers);
}

static void nodes_see(const char *transport, bool read_only, bool writable_peer)
{
    struct seen seen[2] = {0};
    struct qn_mesh m;
    const struct qn_mesh_opts o = {.transport = qn_transport_find(transport),
                                   .nodes = 2,
                                   .cells = 64,
                                   .read_only = read_only};
    cr_assert_eq(qn_mesh_create(&m, &o), QN_OK);
    cr_assert_eq(qn_mesh_run(&m, look, seen), 0);
    qn_mesh_destroy(&m);
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(seen); i++) {
        cr_assert(seen[i].own_writable);
        cr_assert_eq(seen[i].peer_writable, writable_peer);
        cr_assert_eq(seen[i].answers, 200);
    }
}

Test(mesh, threads_read_lanes_through_read_only_pages_if_asked, .timeout = 60)
{
    nodes_see("ump", true, false);
    nodes_see("ump", false, true);
}

Test(mesh, lanes_that_both_ends_write_stay_writable, .timeout = 60)
{
    nodes_see("ffq_shared", true, true);
}
