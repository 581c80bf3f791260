#include "tests/sim/explore/sync/object/object_world.h"

#include <stdio.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/mark.h"
#include "core/sim/machine.h"
#include "core/sync/object/collection.h"
#include "core/sync/object/counter.h"
#include "loadgen/verify/object/object_history.h"
#include "tests/support/test.h"

#define RECORDS_MAX  64u
#define MEMORY_BYTES 65536u
#define FIRST_VALUE  100u /* of node 1; that of node 0 is 0 */
#define REFUSED      255u /* a kind of record: a put, and it was full */

static struct {
    const struct object_case *c;
    enum qn_explore_memory memory;
    struct qn_collection q;
    struct qn_collection_client client[OBJECT_NODES];
    struct qn_counter counter;
    struct qn_counter_client adder[OBJECT_NODES];
    struct qn_object_record record[RECORDS_MAX];
    uint32_t records;
    uint32_t puts[OBJECT_NODES];                  /* of each, so far */
    uint32_t payload[OBJECT_NODES * FIRST_VALUE]; /* written before a put */
    qn_a32 tick;
} world;

static alignas(QN_CACHELINE) uint8_t memory[MEMORY_BYTES];

static uint32_t nodes_of(const struct object_case *c)
{
    uint32_t n = 0;
    while (n < OBJECT_NODES && c->node[n] != NULL) {
        n++;
    }
    return n;
}

/* An access, so that all orders of ends and beginnings are explored. relaxed:
 * it orders nothing else. In TSO it would drain the buffer; there a touch tells
 * that the order matters. */
static qn_time_t now(void)
{
    if (world.memory == QN_EXPLORE_TSO) {
        uint32_t *private_tick = (uint32_t *)(void *)&world.tick;
        qn_touch_out(private_tick, sizeof *private_tick);
        return ++*private_tick;
    }
    return qn_fetch_add(&world.tick, 1, QN_RELAXED) + 1;
}

static struct qn_object_record *begin(void)
{
    if (world.records == RECORDS_MAX) {
        qn_sim_fail("too many records");
    }
    struct qn_object_record *r = &world.record[world.records++];
    r->responded = QN_TIME_NEVER;
    r->invoked = now();
    return r;
}

static void put(uint32_t me)
{
    struct qn_object_record *r = begin();
    r->kind = QN_OBJECT_PUT;
    r->value = me * FIRST_VALUE + world.puts[me]++;
    qn_touch_out(&world.payload[r->value], sizeof *world.payload);
    if (qn_collection_put(&world.client[me], r->value) != QN_OK) {
        r->kind = REFUSED;
    }
    r->responded = now();
}

static void take(uint32_t me)
{
    struct qn_object_record *r = begin();
    r->kind = QN_OBJECT_NOTHING;
    uint64_t value = 0;
    bool found = qn_collection_take(&world.client[me], &value) == QN_OK;
    r->responded = now();
    if (found) {
        if (value >= QN_ARRAY_COUNT(world.payload)) {
            qn_sim_fail("a value that was never put");
        }
        qn_touch_in(&world.payload[value], sizeof *world.payload);
        r->kind = QN_OBJECT_TAKE;
        r->value = value;
    }
}

static void add(uint32_t me)
{
    struct qn_object_record *r = begin();
    r->kind = QN_OBJECT_ADD;
    int err = qn_counter_add(&world.adder[me], 1, &r->value);
    r->responded = now();
    if (err != QN_OK) {
        qn_sim_fail("an addition was refused");
    }
}

static void run(uint32_t me, const char *program)
{
    for (; *program != '\0'; program++) {
        switch (*program) {
        case 'p':
            put(me);
            break;
        case 't':
            take(me);
            break;
        case 'y':
            qn_pause();
            break;
        default:
            add(me);
        }
    }
}

static void run_self(void *ctx)
{
    (void)ctx;
    run(qn_sim.self, world.c->node[qn_sim.self]);
}

static struct qn_delegate_opts delegate_of(const struct object_case *c)
{
    return (struct qn_delegate_opts){
        .type = c->backend == NULL ? NULL : qn_delegate_find(c->backend),
        .lock = c->lock == NULL ? NULL : qn_lock_find(c->lock)};
}

static void make_collection(const struct object_case *c, uint32_t nodes)
{
    const struct qn_delegate_opts d = delegate_of(c);
    const struct qn_collection_opts o = {
        .type = qn_collection_find(c->type),
        .clients = nodes,
        .capacity = c->capacity,
        .ring = c->ring,
        .batch = c->batch,
        .delegate = c->backend == NULL ? NULL : &d,
    };
    size_t bytes = qn_collection_bytes(&o);
    cr_assert(bytes != 0 && bytes <= sizeof memory);
    memset(memory, 0, bytes);
    cr_assert_eq(qn_collection_format(memory, &o), QN_OK);
    cr_assert_eq(qn_collection_open(&world.q, memory), QN_OK);
    for (uint32_t i = 0; i < nodes; i++) {
        const struct qn_collection_join_opts j = {.domain = i};
        cr_assert_eq(qn_collection_join(&world.q, &world.client[i], &j), QN_OK);
    }
}

static void make_counter(const struct object_case *c, uint32_t nodes)
{
    const struct qn_delegate_opts d = delegate_of(c);
    const struct qn_counter_opts o = {
        .clients = nodes, .delegate = c->backend == NULL ? NULL : &d};
    size_t bytes = qn_counter_bytes(&o);
    cr_assert(bytes != 0 && bytes <= sizeof memory);
    memset(memory, 0, bytes);
    cr_assert_eq(qn_counter_format(memory, &o), QN_OK);
    cr_assert_eq(qn_counter_open(&world.counter, memory), QN_OK);
    for (uint32_t i = 0; i < nodes; i++) {
        cr_assert_eq(qn_counter_join(&world.counter, &world.adder[i], NULL),
                     QN_OK);
    }
}

static void setup(void *ctx)
{
    (void)ctx;
    uint32_t nodes = nodes_of(world.c);
    world.records = 0;
    memset(world.puts, 0, sizeof world.puts);
    qn_store(&world.tick, 0, QN_SEQ_CST);
    if (world.c->type == NULL) {
        make_counter(world.c, nodes);
    } else {
        make_collection(world.c, nodes);
    }
    if (world.c->before != NULL) {
        run(0, world.c->before);
    }
}

/* What is left is taken, the clients leave, and one fills it up. */
static const char *room(uint32_t nodes)
{
    struct qn_collection_client *c = &world.client[0];
    uint32_t puts = 0;
    uint64_t value;
    for (uint32_t i = 1; i < nodes; i++) {
        qn_collection_leave(&world.client[i]);
    }
    for (uint32_t i = 0; i < RECORDS_MAX; i++) {
        (void)qn_collection_take(c, &value);
    }
    while (puts < RECORDS_MAX && qn_collection_put(c, 1) == QN_OK) {
        puts++;
    }
    qn_collection_leave(c);
    return puts < world.c->capacity ? "memory is lost" : NULL;
}

static void drop_refused(void)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < world.records; i++) {
        if (world.record[i].kind != REFUSED) {
            world.record[kept++] = world.record[i];
        }
    }
    world.records = kept;
}

static const char *check(void *ctx)
{
    struct qn_object_verdict v = {.fault = QN_OBJECT_NO_FAULT};
    uint32_t nodes = nodes_of(world.c);
    int err;
    (void)ctx;
    for (uint32_t i = 0; i < nodes; i++) {
        if (qn_sim_end_of(i) != QN_SIM_DONE) {
            return "a thread sleeps for ever";
        }
    }
    if (world.c->type == NULL) {
        err = qn_counter_history_check(world.record, world.records, 0, &v);
        return err == QN_OK && v.fault == QN_OBJECT_NO_FAULT
                   ? NULL
                   : qn_object_fault_text(v.fault);
    }
    do {
        take(0); /* until nothing is left: so nothing is lost */
    } while (world.records < RECORDS_MAX &&
             world.record[world.records - 1].kind == QN_OBJECT_TAKE);
    drop_refused();
    err = world.q.type->order == QN_FIFO
              ? qn_queue_history_check(world.record, world.records, &v)
              : qn_stack_history_check(world.record, world.records, &v);
    if (err != QN_OK || v.fault != QN_OBJECT_NO_FAULT) {
        return qn_object_fault_text(v.fault);
    }
    return room(nodes);
}

bool object_explore(const struct object_case *c, enum qn_explore_memory m,
                    uint32_t deviations, struct qn_explored *out)
{
    const struct qn_explore_opts o = {
        .nodes = nodes_of(c),
        .node = {run_self, run_self, run_self},
        .setup = setup,
        .check = check,
        .memory = m,
        .deviations = deviations,
        .steps_max = 3000,
    };
    world.c = c;
    world.memory = m;
    return qn_explore(&o, out) && out->complete;
}

const char *object_case_text(const struct object_case *c)
{
    static char text[120];
    snprintf(text, sizeof text, "%s %s [%s] %s %s %s",
             c->type == NULL ? "counter" : c->type,
             c->backend == NULL ? "" : c->backend,
             c->before == NULL ? "" : c->before, c->node[0],
             c->node[1] == NULL ? "" : c->node[1],
             c->node[2] == NULL ? "" : c->node[2]);
    return text;
}
