#include "tests/unit/paxos/member/transfer/transfer_world.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "paxos/flow/flow.h"

struct world w;

static size_t bytes_of(const struct toy *t)
{
    return sizeof *t + t->count * sizeof t->item[0];
}

static struct toy *toy_new(uint32_t count)
{
    struct toy *t = calloc(1, sizeof *t + count * sizeof t->item[0]);
    cr_assert_not_null(t);
    t->count = count;
    return t;
}

static void apply(struct toy *t)
{
    t->applied++;
    if (t->count != 0) {
        uint32_t *item = &t->item[t->applied * 7919 % t->count];
        *item = *item * 3 + (uint32_t)t->applied;
    }
}

/* @return what this call is to say: QN_OK, or the error of its failure. */
static int outcome(struct node *n, enum call c)
{
    struct failure *f = &n->fail[c];
    f->calls++;
    bool fails = f->at != 0 && f->calls >= f->at &&
                 (f->every != 0 ? (f->calls - f->at) % f->every == 0
                                : f->calls == f->at);
    f->met += fails;
    return fails ? f->err : QN_OK;
}

/* ---- the user's state ---- */

static bool complete(void *ctx)
{
    return ((struct node *)ctx)->toy != NULL;
}

static int begin(void *ctx, qn_slot_t position)
{
    struct node *n = ctx;
    cr_assert(!n->cuts, "one at a time");
    cr_assert_eq(position, n->toy->applied, "between two slots");
    int err = outcome(n, BEGIN);
    if (err != QN_OK) {
        return err;
    }
    if (!w.no_cut) {
        n->cut = toy_new(n->toy->count);
        memcpy(n->cut, n->toy, bytes_of(n->toy));
    }
    n->cuts = true;
    n->cut_at = position;
    n->given = 0;
    n->begins++;
    return QN_OK;
}

static int next(void *ctx, uint8_t *bytes, size_t cap, size_t *len)
{
    struct node *n = ctx;
    const struct toy *from = w.no_cut ? n->toy : n->cut;
    cr_assert(n->cuts);
    cr_assert_eq(from->applied, n->cut_at, "a consistent cut");
    int err = outcome(n, NEXT);
    if (err != QN_OK) {
        return err;
    }
    size_t left = bytes_of(from) - n->given;
    if (left == 0) {
        return QN_ENOENT;
    }
    *len = left < cap ? left : cap;
    memcpy(bytes, (const uint8_t *)from + n->given, *len);
    n->given += *len;
    return QN_OK;
}

static void end(void *ctx)
{
    struct node *n = ctx;
    cr_assert(n->cuts);
    free(n->cut);
    n->cut = NULL;
    n->cuts = false;
    n->ends++;
}

static int progress(void *ctx, struct qn_state_transfer_progress *p)
{
    struct node *n = ctx;
    p->done = UINT32_MAX; /* more than all is all */
    return outcome(n, PROGRESS);
}

static int read_part(void *ctx, qn_slot_t position, struct qn_slice part)
{
    struct node *n = ctx;
    int err = outcome(n, READ);
    if (err != QN_OK) {
        return err;
    }
    n->made = realloc(n->made, n->made_bytes + part.len);
    cr_assert_not_null(n->made);
    memcpy((uint8_t *)n->made + n->made_bytes, part.data, part.len);
    n->made_bytes += part.len;
    cr_assert_eq(n->made->applied, position);
    return QN_OK;
}

static int finish(void *ctx)
{
    struct node *n = ctx;
    int err = outcome(n, FINISH);
    if (err == QN_OK) {
        cr_assert_eq(n->made_bytes, bytes_of(n->made));
        n->finished = true;
    }
    return err;
}

static void install(void *ctx, qn_slot_t position)
{
    struct node *n = ctx;
    cr_assert(n->finished && n->made->applied == position);
    cr_assert(!n->cuts, "a cut of the old state has ended");
    free(n->toy);
    n->toy = n->made;
    n->made = NULL;
    n->made_bytes = 0;
    n->finished = false;
    n->installs++;
}

static void abandon(void *ctx)
{
    struct node *n = ctx;
    free(n->made);
    n->made = NULL;
    n->made_bytes = 0;
    n->finished = false;
    n->abandons++;
}

/* ---- the member ---- */

static int tell(void *ctx, qn_node_t to, struct qn_slice bytes)
{
    struct node *n = ctx;
    uint32_t *tail = &w.tail[n->self][to];
    if (outcome(n, TELL) != QN_OK || w.node[to].down ||
        *tail - w.head[n->self][to] == LANE_MAX) {
        return QN_EAGAIN;
    }
    struct message *m = &w.lane[n->self][to][(*tail)++ % LANE_MAX];
    *m = (struct message){malloc(bytes.len), bytes.len};
    memcpy(m->bytes, bytes.data, bytes.len);
    if (bytes.len > 1000 && w.damage-- == 0) {
        m->bytes[bytes.len / 2] ^= 1;
    }
    return QN_OK;
}

static uint64_t busy(void *ctx)
{
    (void)ctx;
    return w.leaders;
}

static bool cut(void *ctx, struct qn_library_state *s)
{
    const struct node *n = ctx;
    *s =
        (struct qn_library_state){.resume = {.position = n->toy->applied,
                                             .session = {{1, n->toy->applied}}},
                                  .nodes = n->library_nodes};
    return true;
}

static int resume(void *ctx, const struct qn_library_state *s, qn_time_t now)
{
    struct node *n = ctx;
    (void)now;
    cr_assert(n->finished);
    n->resumed_last = s->resume.session[0].last;
    return outcome(n, RESUME);
}

static bool may_suspend(void *ctx, bool alone)
{
    return alone || !((struct node *)ctx)->may_not_suspend;
}

static void hold(void *ctx, qn_node_t to, qn_slot_t position, uint32_t done)
{
    struct node *n = ctx;
    cr_assert_neq(to, n->self);
    cr_assert_eq(position, n->cut_at);
    cr_assert_leq(done, QN_HOLD_DONE);
    n->holds = true;
    n->hold_at = position;
}

/* Not called for a snapshot given to the end. */
static void release(void *ctx, qn_node_t to)
{
    struct node *n = ctx;
    cr_assert_neq(to, n->self);
    cr_assert(n->holds);
    n->holds = false;
}

static uint32_t log_used(void *ctx, qn_slot_t position)
{
    (void)ctx;
    (void)position;
    return 0;
}

/* Counts, and fails when a test says so. */
static void *resize(void *ctx, void *p, size_t bytes)
{
    (void)ctx;
    if (bytes != 0 && ++w.allocations == w.allocation_fails) {
        return NULL;
    }
    w.blocks += p == NULL;
    w.blocks -= bytes == 0;
    w.bytes += bytes;
    return qn_alloc_malloc.resize(NULL, p, bytes);
}

static const struct qn_alloc counted = {resize, NULL};

/* ---- the world ---- */

static int member_make(struct node *n, struct qn_state_transfer **x)
{
    const struct qn_state_transfer_opts o = {.self = n->self,
                                             .nodes = NODES,
                                             .rounds_max = w.rounds_max,
                                             .alloc = &counted,
                                             .ops = {.tell = tell,
                                                     .busy = busy,
                                                     .cut = cut,
                                                     .resume = resume,
                                                     .may_suspend = may_suspend,
                                                     .log_used = log_used,
                                                     .hold = hold,
                                                     .release = release,
                                                     .ctx = n},
                                             .user = {.no_cut = w.no_cut,
                                                      .call = w.call,
                                                      .complete = complete,
                                                      .begin = begin,
                                                      .next = next,
                                                      .end = end,
                                                      .progress = progress,
                                                      .read = read_part,
                                                      .finish = finish,
                                                      .install = install,
                                                      .abandon = abandon,
                                                      .ctx = n}};
    return qn_state_transfer_create(x, &o);
}

int world_member_again(struct qn_state_transfer **x)
{
    return member_make(&w.node[0], x);
}

void world_begin(uint32_t count)
{
    w = (struct world){.no_cut = w.no_cut,
                       .rounds_max = w.rounds_max,
                       .call = w.call,
                       .slots = 100,
                       .now = QN_MS,
                       .damage = -1};
    for (qn_node_t i = 0; i < NODES; i++) {
        struct node *n = &w.node[i];
        *n = (struct node){.self = i, .library_nodes = NODES};
        cr_assert_eq(member_make(n, &n->x), QN_OK);
        n->toy = toy_new(count);
    }
    world_step(0);
}

void lanes_clear(qn_node_t a)
{
    for (qn_node_t b = 0; b < NODES; b++) {
        for (; w.head[a][b] != w.tail[a][b]; w.head[a][b]++) {
            free(w.lane[a][b][w.head[a][b] % LANE_MAX].bytes);
        }
        for (; w.head[b][a] != w.tail[b][a]; w.head[b][a]++) {
            free(w.lane[b][a][w.head[b][a] % LANE_MAX].bytes);
        }
    }
}

void world_end(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        struct node *n = &w.node[i];
        lanes_clear(i);
        qn_state_transfer_destroy(n->x);
        cr_assert_eq(n->begins, n->ends, "each cut ends once");
        cr_assert_null(n->cut);
        cr_assert_null(n->made, "what was read is installed or abandoned");
        free(n->toy);
    }
    cr_assert_eq(w.blocks, 0);
    w.no_cut = false;
    w.rounds_max = 0;
    w.call = 0;
}

void loses_all(struct node *n)
{
    free(n->toy);
    n->toy = NULL;
}

void dies(struct node *n)
{
    n->down = true;
    lanes_clear(n->self);
    for (qn_node_t i = 0; i < NODES; i++) {
        if (i != n->self) {
            qn_state_transfer_peer_down(w.node[i].x, n->self, w.now);
        }
    }
}

static void receive(struct node *n)
{
    for (qn_node_t from = 0; from < NODES; from++) {
        while (w.head[from][n->self] != w.tail[from][n->self]) {
            struct message m =
                w.lane[from][n->self][w.head[from][n->self]++ % LANE_MAX];
            cr_assert(qn_state_transfer_on_message(
                n->x, from, (struct qn_slice){m.bytes, m.len}, w.now));
            free(m.bytes);
        }
    }
}

static void turn(struct node *n)
{
    if (n->down || n->stopped) {
        return;
    }
    receive(n);
    n->at = qn_state_transfer_turn(n->x, w.now);
    n->suspended += qn_state_transfer_suspends(n->x);
    while (n->toy != NULL && n->toy->applied < w.slots &&
           !qn_state_transfer_suspends(n->x)) {
        apply(n->toy);
    }
}

void world_step(uint32_t writes)
{
    w.slots += writes;
    for (qn_node_t i = 0; i < NODES; i++) {
        turn(&w.node[i]);
    }
    w.now += QN_MS;
}

void run_until_joined(struct node *n, uint32_t most)
{
    const uint64_t times = status_of(n).joined + 1;
    for (uint32_t i = 0; status_of(n).joined < times; i++) {
        cr_assert_lt(i, most, "node %u does not get there", n->self);
        world_step(3);
    }
    world_step(0);
}

struct qn_state_transfer_status status_of(const struct node *n)
{
    struct qn_state_transfer_status st;
    qn_state_transfer_status(n->x, &st);
    return st;
}

void expect_same(const struct node *a, const struct node *b)
{
    cr_assert_eq(a->toy->applied, b->toy->applied);
    cr_assert_eq(a->toy->count, b->toy->count);
    cr_assert_eq(memcmp(a->toy, b->toy, bytes_of(a->toy)), 0);
}

void fail_at(struct node *n, enum call c, uint32_t at, int err, uint32_t every)
{
    n->fail[c] = (struct failure){.at = at, .err = err, .every = every};
}
