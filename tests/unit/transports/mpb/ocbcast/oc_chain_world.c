/*
 * A chain of three: what the source sends goes by node 1 to node 2. The calls
 * come one behind the other, and only what node 1 finds at its first look is
 * not what is there: a head of which the parent has written a part.
 */
#include "tests/unit/transports/mpb/mpb_world.h"
#include "tests/unit/transports/mpb/ocbcast/oc_world.h"
#include "transports/mpb/ocbcast/oc_async_internal.h"

#define NODES 3u

static struct mpb_world w;
static struct qn_device_bcast *bcast[NODES]; /* NULL: it has ended */
static uint32_t got[NODES];
static const struct qn_mpb_access *whole;
static struct qn_mpb_access torn; /* as whole, but for the first head */
static uint32_t torn_word;
static bool to_tear;

static struct qn_oc_async *of(qn_node_t i)
{
    return (struct qn_oc_async *)(void *)bcast[i];
}

static void get(struct qn_mpb *m, void *to, uint32_t core, uint32_t first,
                uint32_t bytes)
{
    whole->get(m, to, core, first, bytes);
    if (to_tear && core == 0 && first == of(1)->head) {
        struct qn_oc_head *h = to;
        h->word[torn_word] ^= UINT64_C(1) << QN_OC_MEMBERS_MAX;
        to_tear = false;
    }
}

static void join(qn_node_t i)
{
    cr_assert_eq(
        qn_oc_async_create(
            &bcast[i], &(struct qn_oc_async_opts){.device = w.node[i], .k = 1}),
        QN_OK);
}

static void open_chain(uint64_t seed)
{
    mpb_open_world(&w, NODES, true, seed);
    memset(got, 0, sizeof got);
    for (qn_node_t i = 0; i < NODES; i++) {
        join(i);
    }
}

static void close_chain(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        qn_device_bcast_destroy(bcast[i]);
    }
    mpb_close_world(&w);
}

static void deliver(void *ctx, qn_node_t source, const void *msg, size_t len)
{
    (void)source, (void)msg, (void)len;
    ++*(uint32_t *)ctx;
}

static void turns(void)
{
    for (uint32_t t = 0; t < 8 * NODES; t++) {
        qn_node_t i = t % NODES;
        if (bcast[i] != NULL) {
            (void)qn_device_bcast_poll(bcast[i], 8, deliver, &got[i]);
            (void)qn_device_bcast_flush(bcast[i]);
        }
    }
}

static void send(void)
{
    const uint8_t byte = 'x';
    const struct qn_slice part = {&byte, 1};
    cr_assert_eq(qn_device_bcast_try_send(bcast[0], &part, 1), QN_OK);
    turns();
}

const char *oc_async_torn_head(uint64_t seed)
{
    open_chain(seed);
    send();
    whole = mpb_core(&w, 1)->access;
    torn = *whole;
    torn.get = get;
    torn_word = 2 * (uint32_t)(seed % 2); /* bytes, or version */
    to_tear = true;
    mpb_core(&w, 1)->access = &torn;
    send();
    /* The rest of the head is written, and then the parent interrupts. */
    whole->interrupt(mpb_core(&w, 0), 2);
    turns();
    const char *wrong = to_tear ? "it did not look" : NULL;
    wrong = got[1] != 2 || got[2] != 2 ? "lost behind a torn head" : wrong;
    mpb_core(&w, 1)->access = whole;
    close_chain();
    return wrong;
}

const char *oc_async_old_leaf(uint64_t seed)
{
    open_chain(seed);
    send();
    qn_device_bcast_destroy(bcast[2]);
    bcast[2] = NULL;
    mpb_end(&w, 2);
    for (uint32_t i = 0; i < 3; i++) { /* as if 0x3000 views had changed */
        of(0)->out.version = (uint16_t)(of(0)->out.version + 0x3000);
        send();
    }
    w.incarnation[2]++;
    mpb_attach(&w, 2);
    join(2);
    qn_device_up(w.node[0], 2, w.incarnation[2]);
    qn_device_up(w.node[1], 2, w.incarnation[2]);
    turns();
    uint32_t before = got[2]; /* what node 1 has in its buffer still */
    send();
    const char *wrong = NULL;
    wrong = got[1] != 5 ? "a leaf has missed something" : wrong;
    wrong = got[2] != before + 1 ? "a former leaf does not pass on" : wrong;
    close_chain();
    return wrong;
}
