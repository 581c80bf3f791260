/*
 * Slots form a ring. In front of the last number that is complete lie those of
 * the window, ready for it; behind it, if operations end alike, those that are
 * kept:
 *
 *     kept, can be handed on | the window  |
 *                     completed          clean
 *
 * Of a view that hands on, operations before+1 .. done run as those of kind
 * AGAIN, also at members that have completed them: for these `completed` stays
 * ahead of the flow's number until that has come there.
 *
 * At least `done` is run again in each view. Then what has completed in a view
 * did so after all its members had entered it, and each knows its place in it:
 * that of the last view that it has entered.
 *
 * Contributions that come early are kept for the window only.
 */
#include "core/coll/operations.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/payload/coll_slot.h"

#define WIRINGS ((uint32_t)QN_WIRING_RING) /* of trees and their members */
#define TOLD    WIRINGS       /* a reduction, and that it is over */
#define AGAIN   (WIRINGS + 1) /* what another view has completed */

static_assert(AGAIN + 1 == QN_OPERATIONS_KINDS, "kinds");
static_assert(QN_OPERATIONS_KINDS <= QN_FLOW_KINDS_MAX, "kinds");

/* What is made anew for each view. */
struct run {
    struct qn_coll_flow *flow;
    const struct qn_wiring *wiring[QN_OPERATIONS_KINDS]; /* some twice */
    struct qn_wiring *own[WIRINGS];                      /* those of them; or
                                                            NULL */
    struct qn_coll_place place;
    struct qn_coll_early *early; /* [window] by number */
    uint8_t *parts;
};

struct qn_operations {
    struct qn_operations_opts o;
    struct run run;
    uint16_t view;
    uint64_t member[QN_NODE_SET_WORDS(QN_MEMBERS_MAX)]; /* of the view */
    bool left;
    struct qn_coll_sizes sizes;
    uint32_t period;
    uint32_t last;      /* number of the operation that was started last */
    uint32_t begun;     /* in the flow */
    uint32_t completed; /* operations whose output is written */
    uint32_t delivered; /* the last operation whose payload came down */
    uint32_t done;      /* of the view */
    uint32_t clean;     /* slots up to this number are, or are in use */
    uint32_t bad;       /* corrupt, and so are all later ones, once is_bad */
    bool is_bad;
    struct qn_coll_slot *slot; /* [slots] by number */
    uint32_t slots;            /* a power of two */
    uint8_t *buffers;
};

static bool before(uint32_t a, uint32_t b)
{
    return qn_view_before(a, b);
}

static struct qn_coll_slot *slot_of(const struct qn_operations *p,
                                    uint32_t number)
{
    return &p->slot[number & (p->slots - 1)];
}

static const enum qn_wiring_kind kind_of_what[] = {
    [QN_COLL_BROADCAST] = QN_WIRING_BROADCAST,
    [QN_COLL_ACKNOWLEDGED] = QN_WIRING_ACKNOWLEDGED,
    [QN_COLL_REDUCE] = QN_WIRING_REDUCE,
    [QN_COLL_ALLREDUCE] = QN_WIRING_ALLREDUCE,
    [QN_COLL_COMMIT] = QN_WIRING_COMMIT,
    [QN_COLL_GATHER] = QN_WIRING_REDUCE,
    [QN_COLL_SCATTER] = QN_WIRING_BROADCAST,
};

/* As which kind an operation runs. */
static uint32_t kind_of(const struct qn_operations *p, enum qn_coll_what what,
                        uint32_t number)
{
    const enum qn_wiring_kind asked = kind_of_what[what];
    const enum qn_wiring_kind kind =
        asked == QN_WIRING_ALLREDUCE && p->o.exchange ? QN_WIRING_EXCHANGE
                                                      : asked;
    if (!p->o.alike) {
        return kind;
    }
    return !before(p->done, number)   ? AGAIN
           : kind == QN_WIRING_REDUCE ? TOLD
           : kind == QN_WIRING_BROADCAST && number % p->period == 0
               ? QN_WIRING_ACKNOWLEDGED
               : (uint32_t)kind;
}

/* ---- what a view has of its own ---- */

static void free_run(struct run *r, uint32_t window)
{
    for (uint32_t i = 0; r->early != NULL && i < window; i++) {
        free(r->early[i].part_bytes);
        free(r->early[i].seen);
    }
    free(r->early);
    free(r->parts);
    qn_coll_flow_destroy(r->flow);
    for (uint32_t k = 0; k < WIRINGS; k++) {
        qn_wiring_destroy(r->own[k]);
    }
}

static int make_wirings(struct run *r, const struct qn_operations_view *o,
                        bool exchange)
{
    int rc = qn_tree_check(o->down) == QN_OK && qn_tree_has(o->down, o->self)
                 ? QN_OK
                 : QN_EINVAL;
    for (uint32_t k = 0; k < WIRINGS && rc == QN_OK; k++) {
        if (k == QN_WIRING_EXCHANGE && !exchange) {
            r->wiring[k] = r->own[QN_WIRING_ALLREDUCE]; /* it is not used */
            continue;
        }
        const struct qn_wiring_opts w = {.kind = (enum qn_wiring_kind)k,
                                         .called = true,
                                         .down = o->down,
                                         .up = o->up != NULL ? o->up : o->down,
                                         .self = o->self};
        rc = qn_wiring_tree(&r->own[k], &w);
        r->wiring[k] = r->own[k];
    }
    r->wiring[TOLD] = r->wiring[AGAIN] = r->own[QN_WIRING_ALLREDUCE];
    return rc;
}

static void find_place(struct run *r, const struct qn_operations_view *o,
                       bool exchange)
{
    r->place = (struct qn_coll_place){
        .members = o->down->n, .root = r->own[0]->root, .exchanges = exchange};
    for (qn_node_t v = 0; v < o->self; v++) {
        r->place.rank += qn_tree_has(o->down, v);
    }
}

/* Links that contributions come by. */
static uint32_t links_of(const struct run *r)
{
    return r->place.exchanges ? r->place.members - 1
                              : r->own[QN_WIRING_REDUCE]->preds;
}

static int make_early(struct run *r, uint32_t window, uint32_t head_bytes,
                      uint32_t stride)
{
    const uint32_t links = links_of(r);
    const size_t each = (size_t)links * stride;
    r->early = calloc(window, sizeof *r->early);
    r->parts = calloc(window, QN_MAX(each, 1u));
    if (r->early == NULL || r->parts == NULL) {
        return QN_ENOMEM;
    }
    for (uint32_t i = 0; i < window; i++) {
        struct qn_coll_early *e = &r->early[i];
        e->part = r->parts + i * each + head_bytes;
        e->part_bytes = calloc(QN_MAX(links, 1u), sizeof(uint32_t));
        e->seen = calloc(r->place.members, sizeof(bool));
        if (e->part_bytes == NULL || e->seen == NULL) {
            return QN_ENOMEM;
        }
    }
    return QN_OK;
}

/* @param number  The one before its first operation. */
static int make_run(struct qn_operations *p, const struct qn_operations_view *o,
                    uint32_t number)
{
    struct run r = {.flow = NULL};
    int rc = make_wirings(&r, o, p->o.exchange);
    if (rc == QN_OK) {
        const struct qn_coll_flow_opts f = {.wiring = r.wiring,
                                            .kinds = qn_operations_kinds(p),
                                            .window = p->o.window,
                                            .before = number};
        find_place(&r, o, p->o.exchange);
        rc = qn_coll_flow_create(&r.flow, &f); /* checks the window */
    }
    rc = rc == QN_OK
             ? make_early(&r, p->o.window, p->o.head_bytes, p->sizes.stride)
             : rc;
    if (rc != QN_OK) {
        free_run(&r, p->o.window);
        return rc;
    }
    free_run(&p->run, p->o.window);
    p->run = r;
    p->sizes.links = links_of(&r);
    p->begun = p->delivered = number;
    memset(p->member, 0, sizeof p->member);
    for (qn_node_t v = 0; v < QN_MEMBERS_MAX; v++) {
        p->member[v / 64] |= (uint64_t)qn_tree_has(o->down, v) << v % 64;
    }
    return QN_OK;
}

/* Slots for operations of this view, up to a number. */
static void clean_slots(struct qn_operations *p, uint32_t end)
{
    while (before(p->clean, end)) {
        struct qn_coll_slot *o = slot_of(p, ++p->clean);
        o->early = p->run.early[p->clean & (p->o.window - 1)];
        qn_coll_slot_clear(o, &p->sizes, &p->run.place);
    }
}

/* ---- making one ---- */

static uint8_t *next_buffer(struct qn_operations *p, uint8_t **at)
{
    uint8_t *buffer = *at + p->o.head_bytes;
    *at += p->sizes.stride;
    return buffer;
}

static int make_slots(struct qn_operations *p)
{
    p->slots = p->o.window;
    while (p->o.alike && p->slots < 3 * p->o.window + p->period) {
        p->slots *= 2;
    }
    p->slot = calloc(p->slots, sizeof *p->slot);
    p->buffers = calloc(2 * (size_t)p->slots + 1, p->sizes.stride);
    if (p->slot == NULL || p->buffers == NULL) {
        return QN_ENOMEM;
    }
    uint8_t *at = p->buffers;
    p->sizes.scratch = next_buffer(p, &at);
    for (uint32_t i = 0; i < p->slots; i++) {
        p->slot[i].payload = next_buffer(p, &at);
        p->slot[i].result = next_buffer(p, &at);
    }
    return QN_OK;
}

int qn_operations_create(struct qn_operations **out,
                         const struct qn_operations_opts *o)
{
    struct qn_operations *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return QN_ENOMEM;
    }
    p->o = *o;
    p->view = o->number;
    p->period = qn_operations_period(o->window);
    p->sizes.bytes_max = o->bytes_max;
    p->sizes.stride = o->head_bytes + (o->bytes_max + 7) / 8 * 8;
    p->last = p->completed = p->done = p->clean = o->before;
    int rc = make_run(p, &o->first, o->before);
    rc = rc == QN_OK ? make_slots(p) : rc;
    if (rc != QN_OK) {
        qn_operations_destroy(p);
        return rc;
    }
    p->o.first.down = p->o.first.up = NULL;
    clean_slots(p, o->before + p->o.window);
    *out = p;
    return QN_OK;
}

void qn_operations_destroy(struct qn_operations *p)
{
    if (p != NULL) {
        free(p->slot);
        free(p->buffers);
        free_run(&p->run, p->o.window);
        free(p);
    }
}

/* ---- messages ---- */

uint32_t qn_operations_kinds(const struct qn_operations *p)
{
    return p->o.alike ? QN_OPERATIONS_KINDS : WIRINGS;
}

struct qn_coll_flow *qn_operations_flow(struct qn_operations *p)
{
    return p->run.flow;
}

const struct qn_wiring *const *qn_operations_wiring(
    const struct qn_operations *p)
{
    return p->run.wiring;
}

/* What is handed on comes from several that have it, or from none yet. */
static int take_again(struct qn_operations *p, uint32_t number,
                      const void *bytes, size_t len)
{
    return len > 0 && before(p->completed, number)
               ? qn_coll_slot_take_payload(slot_of(p, number), bytes, len)
               : QN_OK;
}

int qn_operations_take(struct qn_operations *p, const struct qn_flow_head *h,
                       const void *bytes, size_t len)
{
    struct qn_coll_slot *o = slot_of(p, h->number);
    const enum qn_wiring_payload is =
        p->run.wiring[h->kind]->stage[h->stage].payload;
    if (len > p->sizes.bytes_max || (is == QN_PAYLOAD_NONE && len > 0)) {
        return QN_ECORRUPT;
    }
    if (h->kind == AGAIN) {
        return take_again(p, h->number, bytes, len);
    }
    if (is == QN_PAYLOAD_COMBINE) {
        return qn_coll_slot_take_part(o, &p->sizes, h->link, bytes, len);
    }
    if (h->kind == TOLD) {
        return len == 0 ? QN_OK : QN_ECORRUPT;
    }
    return is == QN_PAYLOAD_NONE ? QN_OK
           : h->stage == 0       ? qn_coll_slot_take_payload(o, bytes, len)
                                 : qn_coll_slot_take_result(o, bytes, len);
}

/* An operation is corrupt that may have passed all its stages. */
static void set_bad(struct qn_operations *p, uint32_t number)
{
    if (!p->is_bad) {
        p->is_bad = true;
        p->bad = number;
    }
    qn_coll_flow_fail(p->run.flow, QN_ECORRUPT);
}

uint8_t *qn_operations_give(struct qn_operations *p,
                            const struct qn_flow_send *s, size_t *len)
{
    struct qn_coll_slot *o = slot_of(p, s->head.number);
    const enum qn_wiring_payload is =
        p->run.wiring[s->head.kind]->stage[s->stage].payload;
    if (s->head.kind == AGAIN) {
        return qn_coll_slot_hand_on(o, len);
    }
    if (is == QN_PAYLOAD_COPY && s->stage == 0) {
        *len = o->payload_bytes;
        return o->payload;
    }
    if (is == QN_PAYLOAD_COPY && qn_coll_slot_settle(o, &p->sizes) != QN_OK) {
        set_bad(p, s->head.number);
    }
    const bool bare = is == QN_PAYLOAD_NONE ||
                      (s->head.kind == TOLD && is == QN_PAYLOAD_COPY);
    *len = bare ? 0 : o->result_bytes;
    return o->result;
}

/* Begin what is run again and has been started before. */
static void begin_again(struct qn_operations *p)
{
    uint32_t number;
    while (before(p->begun, p->done) && before(p->begun, p->last) &&
           qn_coll_flow_begin(p->run.flow, AGAIN, &number) == QN_OK) {
        p->begun = number;
    }
}

static void complete(struct qn_operations *p)
{
    if (qn_coll_slot_write(slot_of(p, ++p->completed), &p->sizes) != QN_OK) {
        set_bad(p, p->completed);
    }
}

void qn_operations_settled(struct qn_operations *p)
{
    if (p->o.alike) {
        begin_again(p);
    }
    while (qn_coll_flow_deliver(p->run.flow, &p->delivered)) {
    }
    /* The work of an operation is to start it. */
    qn_coll_flow_worked(
        p->run.flow, before(p->begun, p->delivered) ? p->begun : p->delivered);
    const uint32_t completed = qn_coll_flow_completed(p->run.flow);
    while (before(p->completed, completed)) {
        complete(p);
    }
    clean_slots(p, completed + p->o.window);
}

/* ---- the calls ---- */

int qn_operations_start(struct qn_operations *p,
                        const struct qn_coll_call *call, uint32_t *number)
{
    uint32_t next = p->last + 1;
    if (p->begun != p->last) { /* what is run again comes first */
        const int error = qn_coll_flow_error(p->run.flow);
        return error != QN_OK ? error : QN_EAGAIN;
    }
    const uint32_t kind = kind_of(p, call->what, next);
    const struct qn_coll_place *place =
        kind == AGAIN ? &slot_of(p, next)->place : &p->run.place;
    int rc = qn_coll_slot_check(place, p->sizes.bytes_max, call);
    rc = rc == QN_OK ? qn_coll_flow_begin(p->run.flow, kind, &next) : rc;
    if (rc != QN_OK) {
        return rc;
    }
    QN_ASSERT(next == p->last + 1);
    p->last = p->begun = next;
    if (number != NULL) {
        *number = next;
    }
    rc = qn_coll_slot_join(slot_of(p, next), &p->sizes, call);
    if (rc != QN_OK) {
        set_bad(p, next);
    }
    qn_operations_settled(p);
    return rc;
}

uint32_t qn_operations_last(const struct qn_operations *p)
{
    return p->last;
}

int qn_operations_state(const struct qn_operations *p, uint32_t number)
{
    if (p->is_bad && !before(number, p->bad)) {
        return QN_ECORRUPT;
    }
    if (!before(p->completed, number)) {
        return QN_OK;
    }
    return p->o.alike && before(p->last, number)
               ? QN_EPEERDEAD
               : qn_coll_flow_state(p->run.flow, number);
}

/* ---- views ---- */

int qn_operations_leave(struct qn_operations *p, struct qn_view_report *out)
{
    if (!p->o.alike) {
        return QN_EPERM;
    }
    if (!p->left) {
        p->left = true;
        qn_coll_flow_fail(p->run.flow, QN_EPEERDEAD);
    }
    *out = (struct qn_view_report){.member = p->o.first.self,
                                   .delivered = p->completed,
                                   .released = p->clean - p->slots};
    return QN_OK;
}

void qn_operations_down(struct qn_operations *p, qn_node_t node)
{
    const bool member =
        node < QN_MEMBERS_MAX && (p->member[node / 64] >> node % 64 & 1) != 0;
    if (p->o.alike && member && qn_coll_flow_error(p->run.flow) == QN_OK) {
        qn_coll_flow_fail(p->run.flow, QN_EPEERDEAD);
        qn_operations_settled(p);
    }
}

int qn_operations_await(const struct qn_operations *p,
                        const struct qn_view *view)
{
    if (!p->o.alike) {
        return QN_EPERM;
    }
    return qn_view_newer(view->number, p->view) ? QN_OK : QN_EINVAL;
}

static bool view_ok(const struct qn_operations *p, const struct qn_view *v,
                    const struct qn_operations_view *o)
{
    return o->self == p->o.first.self && qn_view_has(v, p->o.first.self) &&
           !before(p->completed, v->before) && !before(v->done, p->completed) &&
           v->done - v->before <= p->slots;
}

/* What others have completed waits for its result, but at a root that has it.
 */
static int hand_over(struct qn_operations *p)
{
    int rc = QN_OK;
    for (uint32_t k = p->completed + 1; !before(p->done, k) && rc == QN_OK;
         k++) {
        rc = qn_coll_slot_hand_over(slot_of(p, k), &p->sizes);
    }
    return rc;
}

/* At least one is run again: so nothing new completes before all members have
 * entered the view. */
static uint32_t run_again_after(const struct qn_view *v)
{
    return before(v->before, v->done) ? v->before : v->done - 1;
}

int qn_operations_enter(struct qn_operations *p, const struct qn_view *view,
                        const struct qn_operations_view *o)
{
    struct qn_view_report report;
    int rc = qn_operations_await(p, view);
    if (rc != QN_OK) {
        return rc;
    }
    rc = p->is_bad ? QN_ECORRUPT : qn_operations_leave(p, &report);
    if (rc == QN_OK && !view_ok(p, view, o)) {
        rc = QN_EINVAL;
    }
    if (rc != QN_OK) {
        return rc;
    }
    clean_slots(p, view->done); /* they ran in the old view */
    rc = make_run(p, o, run_again_after(view));
    if (rc != QN_OK) {
        return rc;
    }
    p->view = view->number;
    p->left = false;
    p->done = p->clean = view->done;
    p->last = before(view->done, p->last) ? view->done : p->last;
    rc = hand_over(p);
    if (rc != QN_OK) {
        set_bad(p, p->completed + 1);
    }
    qn_operations_settled(p);
    return rc;
}
