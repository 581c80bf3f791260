/*
 * The world of test_takeover_*.c: members with their rings, the accept register
 * and the owners of epochs. The members are real machines; their memory comes
 * from one piece, which the next run uses again, since they may end anywhere.
 */
#include "tests/sim/explore/takeover_world.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#define COMMAND_MAX 256u

struct takeover takeover;

/** Nothing is given back; a piece that grows moves. */
static void *resize(void *ctx, void *p, size_t bytes)
{
    (void)ctx;
    if (bytes == 0) {
        return NULL;
    }
    cr_assert_leq(takeover.heap_used + bytes, TAKEOVER_HEAP);
    uint8_t *at = takeover.heap + takeover.heap_used;
    takeover.heap_used += qn_align_up(bytes, 64);
    if (p != NULL) { /* it lies below, so this reads nothing but the heap */
        memmove(at, p, QN_MIN(bytes, (size_t)(at - (uint8_t *)p)));
    } else {
        memset(at, 0, bytes);
    }
    return at;
}

const struct qn_alloc takeover_pieces = {resize, NULL};

uint64_t takeover_life(qn_node_t i)
{
    return 100 + i;
}

static const struct qn_ring *ring_of(void *ctx, qn_node_t node, uint64_t inc)
{
    (void)ctx;
    return inc == takeover_life(node) ? &takeover.shared[node].own : NULL;
}

/** First come (qn_commons_owner_set). */
static bool owns(void *ctx, qn_epoch_t epoch)
{
    const struct qn_memory_acceptor *s = ctx;
    struct qn_pair *at = &takeover.owner[epoch];
    uint64_t mine = takeover_life((qn_node_t)(s - takeover.shared));
    uint64_t first;
    uint64_t inc;
    (void)qn_cas_pair(at, 0, 0, (uint64_t)epoch + 1, mine);
    qn_load_pair(at, &first, &inc);
    return inc == mine;
}

/* --------------------------------------------------------------- members -- */

static void step(qn_node_t i, const struct qn_input *in, qn_time_t now)
{
    /* Each stamps with a clock of its own: batches without commands differ. */
    (void)qn_onepaxos_step(takeover.node[i], in, now, 1000 * (i + 1),
                           &takeover.out[i]);
}

void takeover_tick(qn_node_t i, uint32_t turns)
{
    const struct qn_input in = {.kind = QN_IN_TICK};
    for (uint32_t n = 1; n <= turns; n++) {
        step(i, &in, QN_S + n * QN_MS);
    }
}

void takeover_submit(qn_node_t i, uint32_t bytes)
{
    static const uint8_t text[COMMAND_MAX] = {'x'};
    const struct qn_slice part = {text, bytes};
    cr_assert_leq(bytes, COMMAND_MAX);
    const struct qn_input in = {.kind = QN_IN_SUBMIT, .submit = {&part, 1}};
    step(i, &in, QN_S);
}

void takeover_hears_of(qn_node_t i, uint32_t index, qn_node_t leader)
{
    const struct qn_ul_entry e = {.index = index,
                                  .kind = QN_UL_LEADER,
                                  .tenure = index,
                                  .leader = (uint8_t)leader,
                                  .acceptor = (uint8_t)leader,
                                  .leader_inc = takeover_life(leader),
                                  .acceptor_inc = takeover_life(leader)};
    uint8_t ul[QN_UL_BYTES];
    qn_ul_encode(&e, ul);
    const struct qn_msg m = {
        .kind = QN_MSG_U_CHOSEN, .epoch = index, .body = {ul, sizeof ul}};
    const struct qn_input in = {.kind = QN_IN_RECV, .recv = {0, &m}};
    step(i, &in, QN_S);
}

void takeover_member_make(qn_node_t i)
{
    static const uint64_t inc[TAKEOVER_NODES] = {100, 101, 102};
    const struct qn_ring_opts r = {.slots = TAKEOVER_SLOTS,
                                   .capacity = TAKEOVER_CAPACITY};
    struct qn_memory_acceptor *s = &takeover.shared[i];
    *s = (struct qn_memory_acceptor){.accept_register = &takeover.word,
                                     .ring = ring_of,
                                     .owner = takeover.announced ? owns : NULL,
                                     .ctx = s};
    qn_ring_open(&s->own, takeover.ring_mem + (size_t)i * TAKEOVER_RING, &r);
    qn_ring_begin(&s->own, 1);
    struct qn_onepaxos_opts o = {.self = i,
                                 .nodes = TAKEOVER_NODES,
                                 .incarnation = inc,
                                 .alloc = &takeover_pieces,
                                 .params = qn_params_default(true),
                                 .seed = 1,
                                 .memory = s};
    o.params.ring = 64;
    o.params.queue = 64;
    o.params.batch_commands = 1;
    takeover.node[i] =
        qn_onepaxos_init(resize(NULL, NULL, qn_onepaxos_size(&o)), &o);
}

void takeover_make(void)
{
    memset(&takeover, 0, sizeof takeover);
    takeover.heap = aligned_alloc(64, TAKEOVER_HEAP);
    takeover.ring_mem =
        aligned_alloc(QN_CACHELINE, (size_t)TAKEOVER_NODES * TAKEOVER_RING);
    cr_assert_leq(qn_ring_bytes(TAKEOVER_SLOTS, TAKEOVER_CAPACITY),
                  TAKEOVER_RING);
}

void takeover_unmake(void)
{
    free(takeover.heap);
    free(takeover.ring_mem);
}

void takeover_begin(void)
{
    memset(takeover.ring_mem, 0, (size_t)TAKEOVER_NODES * TAKEOVER_RING);
    memset(takeover.owner, 0, sizeof takeover.owner);
    takeover.heap_used = 0;
    takeover.word = (struct qn_pair){0};
    for (qn_node_t i = 0; i < TAKEOVER_NODES; i++) {
        takeover_member_make(i);
    }
}

const struct qn_ring *takeover_ring_of(uint64_t epoch)
{
    uint64_t inc = epoch == 0 ? takeover_life(0) : takeover.owner[epoch].second;
    if (inc == 0) { /* as all that lead say: entry i names node i */
        return &takeover.shared[epoch].own;
    }
    return &takeover.shared[inc - takeover_life(0)].own;
}
