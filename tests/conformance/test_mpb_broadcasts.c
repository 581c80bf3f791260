/*
 * One row per broadcast of a chip in which all nodes take part: threads as
 * nodes, on a plain and on a strict chip, roots that stay and that move,
 * lengths of none to several chunks. What a row must do is one suite.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "tests/support/test.h"
#include "transports/mpb/chip.h"
#include "transports/mpb/layout.h"
#include "transports/mpb/ocbcast/ocbcast.h"
#include "transports/mpb/twosided/rivals.h"

#define NODES_MAX 5u
#define ROUNDS    200u
#define BYTES     1500u
#define SESSION   7u

union bcast {
    struct qn_oc oc;
    struct qn_rival rival;
};

struct row {
    const char *name;
    uint32_t k; /* 0: nodes - 1 */
    enum qn_rival_kind kind;
    int (*init)(const struct row *r, union bcast *b, struct qn_mpb *chip);
    int (*begin)(union bcast *b, qn_node_t root, void *bytes, uint32_t len);
    int (*step)(union bcast *b);
    void (*down)(union bcast *b);
};

/* The lines that queuepairs leave, but no more than make several chunks. */
static uint32_t first_line(const struct qn_mpb *chip)
{
    struct qn_mpb_layout l;
    cr_assert(qn_mpb_layout(&l, chip->nodes, chip->lanes));
    return QN_MAX(l.broadcast, QN_MPB_LINES - 20);
}

static int oc_init(const struct row *r, union bcast *b, struct qn_mpb *chip)
{
    uint32_t first = first_line(chip);
    return qn_oc_init(&b->oc, &(struct qn_oc_opts){
                                  .chip = chip,
                                  .first = first,
                                  .lines = QN_MPB_LINES - first,
                                  .k = r->k != 0 ? QN_MIN(r->k, chip->nodes - 1)
                                                 : chip->nodes - 1,
                                  .session = SESSION});
}

static int oc_begin(union bcast *b, qn_node_t root, void *bytes, uint32_t len)
{
    return qn_oc_begin(&b->oc, root, bytes, len);
}

static int oc_step(union bcast *b)
{
    return qn_oc_step(&b->oc);
}

static void oc_down(union bcast *b)
{
    qn_oc_down(&b->oc);
}

static int rival_init(const struct row *r, union bcast *b, struct qn_mpb *chip)
{
    uint32_t first = first_line(chip);
    return qn_rival_init(&b->rival, r->kind,
                         &(struct qn_two_opts){.chip = chip,
                                               .first = first,
                                               .lines = QN_MPB_LINES - first,
                                               .session = SESSION});
}

static int rival_begin(union bcast *b, qn_node_t root, void *bytes,
                       uint32_t len)
{
    return qn_rival_begin(&b->rival, root, bytes, len);
}

static int rival_step(union bcast *b)
{
    return qn_rival_step(&b->rival);
}

static void rival_down(union bcast *b)
{
    qn_rival_down(&b->rival);
}

#define OC    oc_init, oc_begin, oc_step, oc_down
#define RIVAL rival_init, rival_begin, rival_step, rival_down

static const struct row rows[] = {
    {"OC-Bcast, k = 1", 1, 0, OC},
    {"OC-Bcast, k = 2", 2, 0, OC},
    {"OC-Bcast, k = nodes - 1", 0, 0, OC},
    {"binomial", 0, QN_RIVAL_BINOMIAL, RIVAL},
    {"scatter-allgather", 0, QN_RIVAL_SCATTER_ALLGATHER, RIVAL},
};

/* ---- nodes ---- */

struct world;

struct node {
    struct world *w;
    struct qn_device *device;
    union bcast b;
    uint8_t bytes[BYTES + 1];
    const char *wrong;
};

static struct world {
    const struct row *row;
    void *memory;
    uint32_t nodes;
    uint64_t incarnation[QN_MPB_CORES];
    struct node node[NODES_MAX];
} world;

static void open_world(const struct row *row, uint32_t nodes, bool strict)
{
    const struct qn_device_opts o = {
        .nodes = nodes, .lanes = 1, .strict = strict, .seed = nodes};
    size_t bytes = qn_mpb_device.bytes(&o);
    memset(&world, 0, sizeof world);
    world.row = row;
    world.nodes = nodes;
    world.memory = aligned_alloc(4096, bytes);
    cr_assert_not_null(world.memory);
    memset(world.memory, 0, bytes);
    qn_mpb_device.format(world.memory, &o);
    for (qn_node_t i = 0; i < nodes; i++) {
        world.incarnation[i] = 1 + i;
    }
    for (qn_node_t i = 0; i < nodes; i++) {
        struct node *n = &world.node[i];
        n->w = &world;
        cr_assert_eq(
            qn_mpb_device.attach(&n->device,
                                 &(struct qn_device_attach_opts){
                                     .memory = world.memory,
                                     .opts = &o,
                                     .self = i,
                                     .incarnation = world.incarnation}),
            QN_OK);
        cr_assert_eq(row->init(row, &n->b, qn_mpb_of(n->device)), QN_OK);
    }
}

static void close_world(void)
{
    for (qn_node_t i = 0; i < world.nodes; i++) {
        cr_assert_null(qn_mpb_fault(world.node[i].device), "%s",
                       world.row->name);
        qn_device_detach(world.node[i].device);
    }
    free(world.memory);
}

static uint32_t length_of(uint32_t round)
{
    return round * 137 % (BYTES + 1);
}

static uint8_t byte_of(uint32_t i, uint32_t round)
{
    return (uint8_t)(i / 8 + round + 1);
}

static void fill(uint8_t *bytes, bool root, uint32_t round)
{
    memset(bytes, 0, BYTES + 1);
    for (uint32_t i = 0; i < length_of(round) && root; i++) {
        bytes[i] = byte_of(i, round);
    }
}

static const char *check(const uint8_t *bytes, uint32_t round)
{
    for (uint32_t i = 0; i < length_of(round); i++) {
        if (bytes[i] != byte_of(i, round)) {
            return "other bytes";
        }
    }
    return bytes[length_of(round)] == 0 ? NULL : "too many bytes";
}

static void *take_part(void *arg)
{
    struct node *n = arg;
    const struct row *row = n->w->row;
    for (uint32_t round = 0; round < ROUNDS && n->wrong == NULL; round++) {
        qn_node_t root = round / 3 % n->w->nodes;
        fill(n->bytes, root == n->device->self, round);
        if (row->begin(&n->b, root, n->bytes, length_of(round)) != QN_OK) {
            n->wrong = "begin";
            break;
        }
        while (row->step(&n->b) == QN_EAGAIN) {
            sched_yield();
        }
        n->wrong = check(n->bytes, round);
    }
    return NULL;
}

static void run(const struct row *row, uint32_t nodes, bool strict)
{
    pthread_t thread[NODES_MAX];
    open_world(row, nodes, strict);
    for (uint32_t i = 0; i < nodes; i++) {
        cr_assert_eq(
            pthread_create(&thread[i], NULL, take_part, &world.node[i]), 0);
    }
    for (uint32_t i = 0; i < nodes; i++) {
        cr_assert_eq(pthread_join(thread[i], NULL), 0);
        cr_assert_null(world.node[i].wrong, "%s, %u nodes: %s", row->name,
                       nodes, world.node[i].wrong);
    }
    close_world();
}

Test(mpb_broadcasts, all_threads_get_all_of_it, .timeout = 60)
{
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(rows); i++) {
        for (uint32_t nodes = 2; nodes <= NODES_MAX; nodes++) {
            run(&rows[i], nodes, false);
        }
    }
}

Test(mpb_broadcasts, on_strict_chips_too, .timeout = 60)
{
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(rows); i++) {
        for (uint32_t nodes = 2; nodes <= NODES_MAX; nodes += 3) {
            run(&rows[i], nodes, true);
        }
    }
}

/* One that waits for a node that has ended goes on as soon as it was told. */
Test(mpb_broadcasts, end_when_a_node_has_ended)
{
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(rows); i++) {
        uint8_t bytes[40] = {0};
        open_world(&rows[i], 3, true);
        struct node *n = &world.node[1];
        cr_assert_eq(rows[i].begin(&n->b, 0, bytes, sizeof bytes), QN_OK);
        cr_assert_eq(rows[i].begin(&n->b, 0, bytes, sizeof bytes), QN_EAGAIN);
        cr_assert_eq(rows[i].step(&n->b), QN_EAGAIN);
        rows[i].down(&n->b);
        cr_assert_eq(rows[i].step(&n->b), QN_EPEERDEAD);
        cr_assert_eq(rows[i].begin(&n->b, 0, bytes, sizeof bytes),
                     QN_EPEERDEAD);
        close_world();
    }
}
