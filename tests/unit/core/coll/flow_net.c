#include "tests/unit/core/coll/flow_net.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"

uint32_t flow_net_draw(struct flow_net *net, uint32_t bound)
{
    QN_ASSERT(bound > 0);
    net->random = net->random * UINT64_C(6364136223846793005) + 1442695;
    return (uint32_t)(net->random >> 33) % bound;
}

uint64_t flow_net_value(uint32_t number)
{
    return number * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t contribution(uint32_t member, uint32_t number)
{
    return (member + 1) * UINT64_C(1000003) + flow_net_value(number);
}

uint64_t flow_net_sum(const struct flow_net *net, uint32_t number)
{
    uint64_t sum = 0;
    for (uint32_t v = 0; v < net->n; v++) {
        sum += contribution(v, number);
    }
    return sum;
}

/* ---- wirings ---- */

void flow_net_tree(struct flow_net *net, struct qn_tree *t, uint32_t root)
{
    struct qn_shape s;
    struct qn_edges edges;
    qn_node_t order[FLOW_NET_MAX] = {0}, identity[FLOW_NET_MAX];
    for (uint32_t i = 0; i < net->n; i++) {
        uint32_t j = flow_net_draw(net, i + 1);
        order[i] = order[j];
        order[j] = i;
        identity[i] = i;
    }
    for (uint32_t i = 0; root != QN_NO_MEMBER && i < net->n; i++) {
        if (order[i] == root) {
            order[i] = order[0];
            order[0] = root;
        }
    }
    /* Below one of the last few: deep trees, and wide ones. */
    uint32_t reach = 1 + flow_net_draw(net, net->n);
    qn_edges_init(&edges, net->n);
    for (uint32_t i = 1; i < net->n; i++) {
        uint32_t back = 1 + flow_net_draw(net, QN_MIN(i, reach));
        qn_edges_add(&edges, order[i - back], order[i]);
    }
    cr_assert_eq(qn_shape_from_edges(&s, &edges, order[0]), QN_OK);
    cr_assert_eq(qn_tree_place(t, &s, identity), QN_OK);
}

void flow_net_wire(struct flow_net *net, uint32_t kind,
                   const struct qn_wiring_opts *o)
{
    for (uint32_t v = 0; v < net->n; v++) {
        struct qn_wiring_opts mine = *o;
        mine.self = v;
        cr_assert_eq(qn_wiring_tree(&net->member[v].wiring[kind], &mine),
                     QN_OK);
    }
}

void flow_net_ring(struct flow_net *net, const struct qn_diamond_ring *r,
                   bool observed)
{
    for (uint32_t v = 0; v < net->n; v++) {
        const struct qn_wiring_ring_opts o = {
            .ring = r, .self = v, .observed = observed};
        cr_assert_eq(qn_wiring_ring(&net->member[v].wiring[0], &o), QN_OK);
    }
}

static uint32_t kind_of(const struct flow_net *net, uint32_t number)
{
    return net->kind_of != NULL ? net->kind_of(number) : 0;
}

/* ---- events ---- */

static bool earlier(const struct flow_event *a, const struct flow_event *b)
{
    return a->time < b->time;
}

static void swap(struct flow_event *a, struct flow_event *b)
{
    struct flow_event c = *a;
    *a = *b;
    *b = c;
}

static void push(struct flow_net *net, const struct flow_event *e)
{
    if (net->events == net->heap_size) {
        net->heap_size = 2 * net->heap_size + 64;
        net->heap = realloc(net->heap, net->heap_size * sizeof *net->heap);
        cr_assert_not_null(net->heap);
    }
    uint32_t i = net->events++;
    net->heap[i] = *e;
    while (i > 0 && earlier(&net->heap[i], &net->heap[(i - 1) / 2])) {
        swap(&net->heap[i], &net->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
}

static void at(struct flow_net *net, uint64_t time, uint32_t member, bool work,
               uint32_t number)
{
    const struct flow_event e = {
        .time = time, .member = member, .number = number, .work = work};
    push(net, &e);
}

static struct flow_event take(struct flow_net *net)
{
    struct flow_event first = net->heap[0];
    net->heap[0] = net->heap[--net->events];
    for (uint32_t i = 0, c = 1; c < net->events; c = 2 * i + 1) {
        if (c + 1 < net->events && earlier(&net->heap[c + 1], &net->heap[c])) {
            c++;
        }
        if (!earlier(&net->heap[c], &net->heap[i])) {
            break;
        }
        swap(&net->heap[c], &net->heap[i]);
        i = c;
    }
    return first;
}

void flow_net_wake(struct flow_net *net, uint32_t member)
{
    at(net, net->now, member, false, 0);
}

void flow_net_call(struct flow_net *net, uint64_t time, uint32_t member,
                   flow_net_fn *call, uint64_t arg)
{
    struct flow_event e = {
        .time = time, .member = member, .call = call, .arg = arg};
    push(net, &e);
}

/* ---- lanes ---- */

static struct flow_lane *lane_of(struct flow_net *net, uint32_t from,
                                 uint32_t to)
{
    struct flow_member *m = &net->member[to];
    for (uint32_t i = 0; i < m->lanes; i++) {
        if (m->lane[i].from == from) {
            return &m->lane[i];
        }
    }
    return NULL;
}

static void add_lane(struct flow_net *net, uint32_t from, uint32_t to)
{
    if (lane_of(net, from, to) == NULL) {
        struct flow_member *m = &net->member[to];
        m->lane = realloc(m->lane, (m->lanes + 1) * sizeof *m->lane);
        cr_assert_not_null(m->lane);
        m->lane[m->lanes] = (struct flow_lane){
            .from = from,
            .to = to,
            .ring = calloc(net->room, sizeof(struct flow_message))};
        cr_assert_not_null(m->lane[m->lanes].ring);
        m->lanes++;
    }
}

static struct flow_message *message_at(const struct flow_net *net,
                                       const struct flow_lane *l, uint32_t i)
{
    return &l->ring[i % net->room];
}

static struct flow_op *op_of(const struct flow_net *net, uint32_t v,
                             uint32_t number)
{
    return &net->member[v].op[number % net->window];
}

/* ---- one member ---- */

static uint64_t expected(struct flow_net *net, uint32_t number)
{
    return net->payload != NULL ? net->payload(net, number)
                                : flow_net_value(number);
}

/* A new operation at this member: no message came here by any path, unless one
 * has come already. */
static void fresh(struct flow_net *net, uint32_t v, uint32_t number)
{
    *op_of(net, v, number) = (struct flow_op){.least = UINT32_MAX};
}

/* What the net knows of an operation that is complete at a member. */
static void check_complete(struct flow_net *net, uint32_t v, uint32_t number)
{
    const struct qn_wiring *w = net->member[v].wiring[kind_of(net, number)];
    const enum qn_wiring_kind kind = w->kind;
    const bool entered =
        kind == QN_WIRING_ALLREDUCE || kind == QN_WIRING_EXCHANGE;
    const bool answered =
        kind == QN_WIRING_COMMIT ||
        (w->root && (kind == QN_WIRING_ACKNOWLEDGED || kind == QN_WIRING_RING));
    const bool combined = entered || kind == QN_WIRING_COMMIT ||
                          (w->root && kind == QN_WIRING_REDUCE);
    cr_assert(!combined ||
                  op_of(net, v, number)->sum == flow_net_sum(net, number),
              "member %u number %u", v, number);
    for (uint32_t u = 0; (entered || answered) && u < net->n; u++) {
        const struct flow_member *m = &net->member[u];
        cr_assert(!entered || m->begun > number - net->first);
        cr_assert(!answered || (int32_t)(m->delivered - number) >= 0);
    }
}

/* Operations that are complete here make their places free; after each input,
 * because the next message may be of the operation that gets the place. */
static void finish(struct flow_net *net, uint32_t v)
{
    struct flow_member *self = &net->member[v];
    uint32_t completed = qn_coll_flow_completed(self->f);
    while (self->completed != completed) {
        check_complete(net, v, ++self->completed);
        if (net->on_complete != NULL) {
            net->on_complete(net, v, self->completed);
        }
        fresh(net, v, self->completed);
    }
}

static void receive(struct flow_net *net, uint32_t v, uint32_t from,
                    const struct flow_message *m)
{
    struct flow_member *self = &net->member[v];
    if (m->head.kind == QN_FLOW_FAIL) {
        qn_coll_flow_down(self->f, from);
        return;
    }
    if (qn_coll_flow_takes(self->f, from, &m->head) == QN_EPEERDEAD) {
        return;
    }
    const struct qn_wiring *w = self->wiring[m->head.kind];
    const struct qn_stage *s = &w->stage[m->head.stage];
    struct flow_op *op = op_of(net, v, m->head.number);
    bool first = qn_coll_flow_arrive(self->f, &m->head);
    self->handled++;
    op->least = QN_MIN(op->least, m->least);
    op->most = QN_MAX(op->most, m->most);
    if (s->payload == QN_PAYLOAD_COMBINE) {
        op->sum += m->value;
    } else if (m->head.stage > 0) {
        op->sum = m->value;
    } else {
        cr_assert(first || op->value == m->value);
        op->value = m->value;
    }
    if (w->root) {
        net->least = QN_MIN(net->least, m->least);
        net->most = QN_MAX(net->most, m->most);
    }
    finish(net, v);
}

/* The first message of a lane that is visible and may be taken, or tail. */
static uint32_t next_in(const struct flow_net *net, const struct flow_lane *l)
{
    uint32_t end = net->reorder ? l->tail : l->head + (l->head != l->tail);
    for (uint32_t i = l->head; i != end; i++) {
        const struct flow_message *m = message_at(net, l, i);
        if (m->visible > net->now) {
            continue;
        }
        if (m->head.kind == QN_FLOW_FAIL) {
            return i;
        }
        int rc = qn_coll_flow_takes(net->member[l->to].f, l->from, &m->head);
        cr_assert_neq(rc, QN_ECORRUPT, "%u -> %u number %u", l->from, l->to,
                      m->head.number);
        if (rc != QN_EAGAIN) {
            return i;
        }
    }
    return l->tail;
}

static bool read_lane(struct flow_net *net, struct flow_lane *l)
{
    bool moved = false;
    for (uint32_t i; (i = next_in(net, l)) != l->tail; moved = true) {
        struct flow_message m = *message_at(net, l, i);
        *message_at(net, l, i) = *message_at(net, l, l->head);
        l->head++;
        receive(net, l->to, l->from, &m);
    }
    if (moved) {
        flow_net_wake(net, l->from); /* there is room */
    }
    return moved;
}

static bool is_cut(const struct flow_net *net, uint32_t v)
{
    return net->cut.on && net->cut.member == v && net->cut.sends == 0;
}

static bool send_all(struct flow_net *net, uint32_t v)
{
    struct flow_member *self = &net->member[v];
    struct qn_flow_send send;
    bool moved = false;
    while (qn_coll_flow_next(self->f, &send)) {
        struct flow_lane *l = lane_of(net, v, send.to);
        bool fail = send.head.kind == QN_FLOW_FAIL;
        bool down =
            !fail && send.stage == 0 &&
            self->wiring[send.head.kind]->stage[0].payload == QN_PAYLOAD_COPY;
        const struct flow_op none = {0};
        const struct flow_op *op =
            fail ? &none : op_of(net, v, send.head.number);
        if (net->member[send.to].ended || l->tail - l->head == net->room ||
            is_cut(net, v)) {
            break;
        }
        uint64_t visible = net->now + 1 + flow_net_draw(net, net->delay);
        l->last = net->reorder ? visible : QN_MAX(l->last, visible);
        *message_at(net, l, l->tail++) =
            (struct flow_message){.head = send.head,
                                  .value = send.bare ? 0
                                           : down    ? op->value
                                                     : op->sum,
                                  .visible = l->last,
                                  .least = op->least + 1,
                                  .most = op->most + 1};
        at(net, l->last, send.to, false, 0);
        net->messages += !fail;
        net->cut.sends -= net->cut.on && net->cut.member == v;
        self->handled++;
        qn_coll_flow_sent(self->f);
        finish(net, v);
        moved = true;
    }
    finish(net, v); /* what cannot be sent was passed over */
    return moved;
}

static bool deliver_all(struct flow_net *net, uint32_t v)
{
    struct flow_member *self = &net->member[v];
    uint32_t number;
    bool moved = false;
    while (qn_coll_flow_deliver(self->f, &number)) {
        cr_assert_eq(op_of(net, v, number)->value, expected(net, number),
                     "member %u number %u", v, number);
        self->delivered = number;
        if (self->wiring[kind_of(net, number)]->kind == QN_WIRING_COMMIT) {
            op_of(net, v, number)->sum += contribution(v, number); /* votes */
        }
        if (net->on_deliver != NULL) {
            net->on_deliver(net, v, number);
        }
        at(net, net->now + flow_net_draw(net, net->work + 1), v, true, number);
        finish(net, v);
        moved = true;
    }
    return moved;
}

/* @return whether it has to wait. */
static bool begins_later(struct flow_net *net, uint32_t v)
{
    return net->now < net->member[v].begins_at;
}

static void begin_later(struct flow_net *net, uint32_t v)
{
    if (net->late > 0) {
        net->member[v].begins_at = net->now + flow_net_draw(net, net->late + 1);
        at(net, net->member[v].begins_at, v, false, 0);
    }
}

static bool begin_all(struct flow_net *net, uint32_t v)
{
    struct flow_member *self = &net->member[v];
    bool moved = false;
    for (;;) {
        uint32_t next = net->first + self->begun, number;
        uint32_t kind = kind_of(net, next);
        const struct qn_wiring *w = self->wiring[kind];
        uint32_t ops = net->allowed != NULL ? net->allowed(net) : net->ops;
        if (self->begun == ops || !(w->called || w->root) ||
            begins_later(net, v) ||
            qn_coll_flow_begin(self->f, kind, &number) != QN_OK) {
            return moved;
        }
        cr_assert_eq(number, next);
        self->begun++;
        begin_later(net, v);
        moved = true;
        struct flow_op *op = op_of(net, v, number);
        if (w->stage[0].payload == QN_PAYLOAD_COMBINE) {
            op->sum += contribution(v, number);
        } else if (w->kind == QN_WIRING_EXCHANGE) {
            op->value = contribution(v, number);
            op->sum += op->value;
        } else if (w->root) {
            op->value = expected(net, number);
        }
        if (w->root || w->preds == 0) {
            op->least = op->most = 0;
        }
        finish(net, v);
    }
}

static void turn(struct flow_net *net, uint32_t v)
{
    struct flow_member *self = &net->member[v];
    bool moved = !self->ended;
    while (moved) {
        moved = false;
        for (uint32_t i = 0; i < self->lanes; i++) {
            moved = read_lane(net, &self->lane[i]) || moved;
        }
        moved = begin_all(net, v) || moved;
        moved = deliver_all(net, v) || moved;
        moved = send_all(net, v) || moved;
    }
}

/* ---- the net ---- */

static void make_member(struct flow_net *net, uint32_t v)
{
    struct flow_member *self = &net->member[v];
    const struct qn_wiring *wiring[QN_FLOW_KINDS_MAX] = {NULL};
    for (uint32_t k = 0; k < net->kinds; k++) {
        const struct qn_wiring *w = wiring[k] = self->wiring[k];
        for (uint32_t i = 0; i < w->links; i++) {
            add_lane(net, w->link[i].node, v); /* FAIL goes either way */
        }
    }
    const struct qn_coll_flow_opts o = {.wiring = wiring,
                                        .kinds = net->kinds,
                                        .window = net->window,
                                        .before = net->first - 1};
    cr_assert_eq(qn_coll_flow_create(&self->f, &o), QN_OK);
    self->completed = self->delivered = net->first - 1;
    self->op = calloc(net->window, sizeof *self->op);
    cr_assert_not_null(self->op);
    for (uint32_t i = 0; i < net->window; i++) {
        fresh(net, v, i);
    }
}

void flow_net_start(struct flow_net *net)
{
    net->least = UINT32_MAX;
    for (uint32_t v = 0; v < net->n; v++) {
        make_member(net, v);
    }
    for (uint32_t v = 0; v < net->n; v++) {
        flow_net_wake(net, v);
    }
}

void flow_net_run(struct flow_net *net)
{
    while (net->events > 0 && !is_cut(net, net->cut.member)) {
        if (net->end != 0 && net->heap[0].time > net->end) {
            return;
        }
        struct flow_event e = take(net);
        net->now = e.time;
        if (e.call != NULL) {
            e.call(net, e.member, e.arg);
        }
        if (e.work) {
            qn_coll_flow_worked(net->member[e.member].f, e.number);
            finish(net, e.member);
        }
        turn(net, e.member);
    }
}

static void forget_unseen(struct flow_net *net, struct flow_lane *l)
{
    while (l->head != l->tail &&
           message_at(net, l, l->tail - 1)->visible > net->now) {
        l->tail--;
    }
}

void flow_net_kill(struct flow_net *net, uint32_t member)
{
    net->member[member].ended = true;
    for (uint32_t v = 0; v < net->n; v++) {
        struct flow_lane *l = lane_of(net, member, v);
        if (net->member[v].ended) {
            continue;
        }
        if (l != NULL) {
            forget_unseen(net, l);
            turn(net, v);
            l->head = l->tail;
        }
        qn_coll_flow_down(net->member[v].f, member);
        finish(net, v);
        flow_net_wake(net, v);
    }
}

void flow_net_free(struct flow_net *net)
{
    for (uint32_t v = 0; v < net->n; v++) {
        struct flow_member *self = &net->member[v];
        for (uint32_t i = 0; i < self->lanes; i++) {
            free(self->lane[i].ring);
        }
        free(self->lane);
        free(self->op);
        qn_coll_flow_destroy(self->f);
        for (uint32_t k = 0; k < net->kinds; k++) {
            qn_wiring_destroy(self->wiring[k]);
        }
    }
    free(net->heap);
    free(net);
}
