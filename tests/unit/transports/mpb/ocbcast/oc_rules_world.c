/*
 * Four rules of the asynchronous form that random schedules do not need, each
 * in the shortest run that does. Chains (k = 1), in which one node at a time is
 * polled. A message is one byte, repeated.
 */
#include "core/base/bits.h"
#include "tests/unit/transports/mpb/mpb_world.h"
#include "tests/unit/transports/mpb/ocbcast/oc_world.h"
#include "transports/mpb/ocbcast/oc_async_internal.h"

#define NODES 6u
#define ALL   UINT32_MAX /* of a mask of nodes */

static struct mpb_world w;
static struct qn_device_bcast *bcast[NODES]; /* NULL: it is not there */
static uint32_t got[NODES];
static const char *wrong;

static struct qn_oc_async *of(qn_node_t i)
{
    return (struct qn_oc_async *)(void *)bcast[i];
}

static void expect(bool holds, const char *otherwise)
{
    wrong = wrong == NULL && !holds ? otherwise : wrong;
}

static void deliver(void *ctx, qn_node_t source, const void *msg, size_t len)
{
    const uint8_t *byte = msg;
    (void)source;
    ++*(uint32_t *)ctx;
    for (size_t i = 1; i < len; i++) {
        expect(byte[i] == byte[0], "of two messages one was made");
    }
}

/* ---- nodes ---- */

static void join(qn_node_t i)
{
    const struct qn_oc_async_opts o = {.device = w.node[i], .k = 1};
    cr_assert_eq(qn_oc_async_create(&bcast[i], &o), QN_OK);
    got[i] = 0;
}

/* It knows all but those of the mask `unknown`. */
static void attach(qn_node_t i, uint32_t unknown)
{
    uint64_t all[NODES];
    memcpy(all, w.incarnation, sizeof all);
    for (qn_node_t v = 0; v < NODES; v++) {
        w.incarnation[v] = (unknown >> v & 1) != 0 ? 0 : all[v];
    }
    mpb_attach(&w, i);
    memcpy(w.incarnation, all, sizeof all);
    join(i);
}

static void open_chain(uint32_t nodes, uint64_t seed)
{
    mpb_open_world(&w, nodes, true, seed);
    wrong = NULL;
    for (qn_node_t i = 0; i < nodes && i < MPB_ATTACHED; i++) {
        join(i);
    }
}

/* What is in its message buffer stays there. */
static void die(qn_node_t i)
{
    qn_device_bcast_destroy(bcast[i]);
    bcast[i] = NULL;
    qn_device_detach(w.node[i]);
    w.node[i] = NULL;
}

static const char *close_chain(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        qn_device_bcast_destroy(bcast[i]);
        bcast[i] = NULL;
    }
    mpb_close_world(&w);
    return wrong;
}

static void poll(qn_node_t i, uint32_t budget)
{
    (void)qn_device_bcast_poll(bcast[i], budget, deliver, &got[i]);
    (void)qn_device_bcast_flush(bcast[i]);
}

/* Those of the mask take turns until nothing is left to do for them. */
static void turns(uint32_t mask)
{
    for (uint32_t t = 0; t < 12 * NODES; t++) {
        qn_node_t i = t % NODES;
        if ((mask >> i & 1) != 0 && bcast[i] != NULL) {
            poll(i, 8);
        }
    }
}

/* By node 0. */
static void send(size_t len, int byte)
{
    static uint8_t bytes[QN_MSG_MAX];
    memset(bytes, byte, len);
    const struct qn_slice part = {bytes, len};
    expect(qn_device_bcast_try_send(bcast[0], &part, 1) == QN_OK,
           "the window stays closed");
}

static void send_to(uint32_t mask)
{
    send(1, 'x');
    turns(mask);
}

/* ---- the rules ---- */

const char *oc_async_old_position(uint64_t seed)
{
    open_chain(3, seed);
    for (uint32_t i = 0; i < 3; i++) {
        send_to(ALL); /* node 2 says that it has two */
    }
    die(2);
    qn_device_down(w.node[0], 2);
    qn_device_down(w.node[1], 2);
    for (uint32_t i = 0; i < 6; i++) {
        send_to(ALL);
    }
    w.incarnation[2] += 0x10000; /* its words look as those of the former */
    attach(2, 0);
    qn_device_up(w.node[0], 2, w.incarnation[2]);
    qn_device_up(w.node[1], 2, w.incarnation[2]);
    turns(ALL);
    const uint32_t before = got[2]; /* what was on its way */
    for (uint32_t i = 0; i < 3; i++) {
        send_to(ALL);
    }
    expect(got[1] == 12, "lost at the node in between");
    expect(got[2] == before + 3, "a word of long ago has counted");
    return close_chain();
}

const char *oc_async_same_count(uint64_t seed)
{
    open_chain(3, seed);
    send_to(ALL);
    die(2);
    qn_device_down(w.node[0], 2);
    qn_device_down(w.node[1], 2);
    turns(ALL); /* node 1 says that its view has changed once */
    die(1);
    qn_device_down(w.node[0], 1);
    w.incarnation[1]++;
    attach(1, 1u << 2);
    qn_device_up(w.node[0], 1, w.incarnation[1]);
    turns(ALL);
    w.incarnation[2]++;
    attach(2, 0);
    qn_device_up(w.node[0], 2, w.incarnation[2]);
    send_to(ALL);
    send_to(ALL); /* the buffer of node 1 has the second one only */
    expect(got[2] == 0, "by way of a node that does not know it");
    qn_device_up(w.node[1], 2, w.incarnation[2]);
    turns(ALL); /* node 1 says the same again, in another life */
    expect(got[2] == 2, "the source has not noticed that a view has changed");
    return close_chain();
}

const char *oc_async_jump(uint64_t seed)
{
    open_chain(3, seed);
    const size_t two = of(0)->payload_max + 1; /* chunks */
    send(two, 'a');
    turns(3);
    die(2);
    w.incarnation[2]++;
    attach(2, 0);
    /* Node 1 interrupts those that it knows, as when its view has changed. */
    mpb_core(&w, 1)->access->interrupt(mpb_core(&w, 1), 1u << 2);
    poll(2, 1);
    expect(of(2)->in[0].number == 1, "it does not have the first chunk");
    qn_device_down(w.node[0], 2);
    qn_device_down(w.node[1], 2);
    turns(3);
    send_to(3);
    send(two, 'b');
    turns(3);
    expect(got[1] == 3, "lost at the node in between");
    qn_device_up(w.node[0], 2, w.incarnation[2]);
    qn_device_up(w.node[1], 2, w.incarnation[2]);
    turns(ALL); /* all have chunk 4, so the second half of `b` comes first */
    expect(of(2)->in[0].number == 5, "it is not sent again");
    expect(got[2] == 0, "a half message");
    send_to(ALL);
    expect(got[2] == 1, "lost behind the jump");
    return close_chain();
}

/* The tree is 0 2 3 4 and then 0 1 3 4 5: what node 2 had sent to node 3 comes
 * behind the same of node 1. */
const char *oc_async_straggler(uint64_t seed)
{
    const uint32_t later = 1u << 1 | 1u << 5;
    open_chain(NODES, seed);
    die(0);
    die(2);
    attach(0, later);
    attach(2, later);
    attach(5, 0);
    send_to(1u << 0 | 1u << 2 | 1u << 3); /* it fills the buffer of node 3 */
    send_to(1u << 0 | 1u << 2);
    expect(got[2] == 2 && got[3] == 1, "it is not on its way");
    die(2);
    qn_device_down(w.node[0], 2);
    qn_device_up(w.node[0], 1, w.incarnation[1]);
    qn_device_up(w.node[0], 5, w.incarnation[5]);
    turns(1u << 0 | 1u << 1);
    poll(3, 2); /* of node 0, whose view has changed; of node 1 */
    turns(1u << 1);
    poll(3, 1); /* of node 1 */
    expect(of(3)->queued == 2, "node 3 does not have both");
    poll(3, 1); /* of node 2 */
    turns(ALL);
    expect(got[4] == 2, "lost at the end of the former tree");
    expect(got[5] == 2, "a straggler has taken the place of a newer chunk");
    return close_chain();
}
