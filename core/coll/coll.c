/*
 * Of each operation in the window there is a slot: its payload on the way down,
 * and a result that is combined on the way up, or received. A contribution that
 * arrives before the member has started the operation is kept in a part of its
 * own (one per child), because nothing says yet how to combine it.
 *
 * What is gathered is a list of entries: a rank in 8 bytes, and the
 * contribution, rounded up to 8. An operator that does not commute works on
 * such a list, when it has come to the root in full.
 *
 * A payload is always kept behind room for a message's head, so it is sent
 * where it lies.
 */
#include "core/coll/coll.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/mark.h"

#define KINDS       ((uint32_t)QN_WIRING_RING) /* wirings of a tree */
#define NO_PART     UINT32_MAX
#define ENTRY_BYTES 8u /* the head of an entry: a rank */

struct coll_slot {
    struct qn_coll_call call;
    bool started;     /* `call` is known */
    bool has_payload; /* the payload has come down */
    bool ordered;     /* the entries were combined */
    uint32_t payload_bytes;
    uint32_t result_bytes;
    uint8_t *payload;     /* [bytes_max] */
    uint8_t *result;      /* [bytes_max] */
    uint8_t *part;        /* [children] of `stride` bytes */
    uint32_t *part_bytes; /* [children]; NO_PART: not there */
    bool *seen;           /* [members] ranks whose entries are in */
};

struct qn_coll {
    struct qn_coll_flow *flow;
    struct qn_coll_lanes lanes;
    struct qn_wiring *wiring[KINDS];
    struct qn_doorbell *doorbell;
    struct qn_backoff_opts backoff;
    bool moved; /* by the last poll */
    bool root;
    uint32_t members, rank;
    uint32_t children; /* of the tree up */
    uint32_t window, bytes_max;
    uint32_t stride;    /* from one buffer to the next */
    uint32_t last;      /* number of the operation that was started last */
    uint32_t completed; /* operations whose output is written */
    uint32_t delivered; /* the last operation whose payload came down */
    uint32_t bad;       /* corrupt, and so are all later ones, once is_bad */
    bool is_bad;
    struct coll_slot *slot; /* [window] */
    uint8_t *buffers;
    uint8_t *scratch; /* [stride] */
};

static struct coll_slot *slot_of(const struct qn_coll *c, uint32_t number)
{
    return &c->slot[number & (c->window - 1)];
}

/* ---- what an operation is ---- */

static enum qn_wiring_kind kind_of(enum qn_coll_what what)
{
    return what == QN_COLL_GATHER    ? QN_WIRING_REDUCE
           : what == QN_COLL_SCATTER ? QN_WIRING_BROADCAST
                                     : (enum qn_wiring_kind)what;
}

static bool reduces(const struct qn_coll_call *call)
{
    return call->what == QN_COLL_REDUCE || call->what == QN_COLL_ALLREDUCE;
}

/* Its contributions travel as entries. */
static bool gathers(const struct qn_coll_call *call)
{
    return call->what == QN_COLL_GATHER ||
           (reduces(call) && call->count > 0 && !call->op->commutes);
}

static bool goes_up(const struct qn_coll_call *call)
{
    return reduces(call) || call->what == QN_COLL_GATHER ||
           call->what == QN_COLL_COMMIT;
}

/* Bytes of one member's contribution, or of what one member gets. */
static uint64_t bytes_of(const struct qn_coll_call *call)
{
    return call->what == QN_COLL_COMMIT ? sizeof(uint64_t)
           : reduces(call) && call->count > 0
               ? (uint64_t)call->count * call->op->bytes
               : call->count;
}

static uint64_t entry_bytes(const struct qn_coll_call *call)
{
    return ENTRY_BYTES + (bytes_of(call) + 7) / 8 * 8;
}

/* Bytes that come down before all have contributed. */
static uint64_t payload_bytes(const struct qn_coll *c,
                              const struct qn_coll_call *call)
{
    return call->what == QN_COLL_SCATTER  ? bytes_of(call) * c->members
           : call->what == QN_COLL_COMMIT ? 0
                                          : bytes_of(call);
}

static int check_call(const struct qn_coll *c, const struct qn_coll_call *call)
{
    QN_ASSERT(call->what <= QN_COLL_SCATTER);
    QN_ASSERT(!reduces(call) || call->count == 0 || call->op != NULL);
    uint64_t most = gathers(call)   ? entry_bytes(call) * c->members
                    : goes_up(call) ? bytes_of(call)
                                    : payload_bytes(c, call);
    bool reads_in = call->what == QN_COLL_COMMIT ||
                    call->what == QN_COLL_GATHER || (c->root && !goes_up(call));
    if (most > c->bytes_max) {
        return QN_EMSGSIZE;
    }
    return reads_in && bytes_of(call) > 0 && call->in == NULL ? QN_EINVAL
                                                              : QN_OK;
}

/* ---- contributions ---- */

/* Entries of a child, or the own one, behind those that are there. */
static int append(struct qn_coll *c, struct coll_slot *o, const uint8_t *bytes,
                  size_t len)
{
    const size_t each = entry_bytes(&o->call);
    if (len == 0 || len % each != 0 || o->result_bytes + len > c->bytes_max) {
        return QN_ECORRUPT;
    }
    for (size_t at = 0; at < len; at += each) {
        uint64_t rank;
        memcpy(&rank, bytes + at, sizeof rank);
        if (rank >= c->members || o->seen[rank]) {
            return QN_ECORRUPT;
        }
        o->seen[rank] = true;
    }
    memcpy(o->result + o->result_bytes, bytes, len);
    o->result_bytes += (uint32_t)len;
    return QN_OK;
}

static int contribute(struct qn_coll *c, struct coll_slot *o,
                      const uint8_t *bytes, size_t len)
{
    if (gathers(&o->call)) {
        return append(c, o, bytes, len);
    }
    if (len != bytes_of(&o->call)) {
        return QN_ECORRUPT;
    }
    if (o->call.what == QN_COLL_COMMIT) {
        qn_and_u64.combine(o->result, bytes, 1);
    } else if (o->call.count > 0) {
        o->call.op->combine(o->result, bytes, o->call.count);
    }
    return QN_OK;
}

static void fill_neutral(uint8_t *to, const struct qn_coll_call *call)
{
    for (uint32_t i = 0; i < call->count; i++) {
        memcpy(to + (size_t)i * call->op->bytes, call->op->neutral,
               call->op->bytes);
    }
}

static void own_contribution(uint8_t *to, const struct qn_coll_call *call)
{
    if (call->what == QN_COLL_COMMIT) {
        uint64_t yes;
        memcpy(&yes, call->in, sizeof yes);
        yes = yes != 0;
        memcpy(to, &yes, sizeof yes);
    } else if (call->in != NULL) {
        memcpy(to, call->in, bytes_of(call));
    } else if (call->count > 0) {
        fill_neutral(to, call);
    }
}

/* The own contribution, and then those that came before. */
static int begin_result(struct qn_coll *c, struct coll_slot *o)
{
    if (!gathers(&o->call)) {
        own_contribution(o->result, &o->call);
        o->result_bytes = (uint32_t)bytes_of(&o->call);
    } else {
        const uint64_t rank = c->rank;
        memset(o->result, 0, entry_bytes(&o->call));
        memcpy(o->result, &rank, sizeof rank);
        own_contribution(o->result + ENTRY_BYTES, &o->call);
        o->result_bytes = (uint32_t)entry_bytes(&o->call);
        if (o->seen[rank]) {
            return QN_ECORRUPT;
        }
        o->seen[rank] = true;
    }
    int rc = QN_OK;
    for (uint32_t i = 0; i < c->children && rc == QN_OK; i++) {
        if (o->part_bytes[i] != NO_PART) {
            rc = contribute(c, o, o->part + (size_t)i * c->stride,
                            o->part_bytes[i]);
        }
    }
    return rc;
}

/* The contribution of a rank among the entries; NULL: it is missing. */
static const uint8_t *entry_of(const struct coll_slot *o, uint64_t rank)
{
    const size_t each = entry_bytes(&o->call);
    for (size_t at = 0; at < o->result_bytes; at += each) {
        if (memcmp(o->result + at, &rank, sizeof rank) == 0) {
            return o->result + at + ENTRY_BYTES;
        }
    }
    return NULL;
}

/* At the root, when all entries are there: the result in the order of ranks. */
static int order(struct qn_coll *c, struct coll_slot *o)
{
    const size_t each = bytes_of(&o->call);
    size_t len = 0;
    for (uint32_t rank = 0; rank < c->members; rank++) {
        const uint8_t *entry = entry_of(o, rank);
        if (entry == NULL) {
            return QN_ECORRUPT;
        }
        if (o->call.what == QN_COLL_GATHER || rank == 0) {
            memcpy(c->scratch + len, entry, each);
            len += each;
        } else {
            o->call.op->combine(c->scratch, entry, o->call.count);
        }
    }
    memcpy(o->result, c->scratch, len);
    o->result_bytes = (uint32_t)len;
    return QN_OK;
}

/* An operation is corrupt that may have passed all its stages. */
static void set_bad(struct qn_coll *c, uint32_t number)
{
    if (!c->is_bad) {
        c->is_bad = true;
        c->bad = number;
    }
    qn_coll_flow_fail(c->flow, QN_ECORRUPT);
}

static void settle_result(struct qn_coll *c, struct coll_slot *o,
                          uint32_t number)
{
    if (!c->root || o->ordered || !gathers(&o->call)) {
        return;
    }
    o->ordered = true;
    if (order(c, o) != QN_OK) {
        o->result_bytes = 0;
        set_bad(c, number);
    }
}

/* ---- what the lanes ask ---- */

static int take(void *ctx, const struct qn_flow_head *h, const void *bytes,
                size_t len)
{
    struct qn_coll *c = ctx;
    struct coll_slot *o = slot_of(c, h->number);
    const enum qn_wiring_payload is =
        c->wiring[h->kind]->stage[h->stage].payload;
    if (len > c->bytes_max || (is == QN_PAYLOAD_NONE && len > 0)) {
        return QN_ECORRUPT;
    }
    if (is == QN_PAYLOAD_COMBINE) {
        if (o->started) {
            return contribute(c, o, bytes, len);
        }
        memcpy(o->part + (size_t)h->link * c->stride, bytes, len);
        o->part_bytes[h->link] = (uint32_t)len;
    } else if (is == QN_PAYLOAD_COPY && h->stage == 0) {
        if (o->started && len != payload_bytes(c, &o->call)) {
            return QN_ECORRUPT;
        }
        memcpy(o->payload, bytes, len);
        o->payload_bytes = (uint32_t)len;
        o->has_payload = true;
    } else if (is == QN_PAYLOAD_COPY) { /* it has been started: it answers */
        if (!o->started || len != bytes_of(&o->call)) {
            return QN_ECORRUPT;
        }
        memcpy(o->result, bytes, len);
        o->result_bytes = (uint32_t)len;
    }
    return QN_OK;
}

static uint8_t *give(void *ctx, const struct qn_flow_send *s, size_t *len)
{
    struct qn_coll *c = ctx;
    struct coll_slot *o = slot_of(c, s->head.number);
    const struct qn_wiring *w = c->wiring[s->head.kind];
    const enum qn_wiring_payload is = w->stage[s->stage].payload;
    if (is == QN_PAYLOAD_COPY && s->stage == 0) {
        *len = o->payload_bytes;
        return o->payload;
    }
    if (is == QN_PAYLOAD_COPY) {
        settle_result(c, o, s->head.number);
    }
    *len = is == QN_PAYLOAD_NONE ? 0 : o->result_bytes;
    return o->result;
}

static void clear(struct qn_coll *c, struct coll_slot *o)
{
    o->started = o->has_payload = o->ordered = false;
    o->payload_bytes = o->result_bytes = 0;
    for (uint32_t i = 0; i < c->children; i++) {
        o->part_bytes[i] = NO_PART;
    }
    memset(o->seen, 0, c->members);
}

static void write_out(struct qn_coll *c, struct coll_slot *o, uint32_t number)
{
    const struct qn_coll_call *call = &o->call;
    settle_result(c, o, number);
    const uint8_t *from = o->result;
    size_t len = o->result_bytes;
    if (!goes_up(call)) {
        bool part = call->what == QN_COLL_SCATTER;
        from = o->payload + (part ? (size_t)c->rank * call->count : 0);
        len = call->count;
    } else if (!c->root && kind_of(call->what) == QN_WIRING_REDUCE) {
        return;
    }
    if (call->out != NULL && len > 0) {
        memcpy(call->out, from, len);
    }
}

static void settled(void *ctx)
{
    struct qn_coll *c = ctx;
    while (qn_coll_flow_deliver(c->flow, &c->delivered)) {
    }
    /* The work of an operation is to start it. */
    qn_coll_flow_worked(c->flow, (int32_t)(c->last - c->delivered) < 0
                                     ? c->last
                                     : c->delivered);
    const uint32_t completed = qn_coll_flow_completed(c->flow);
    while (c->completed != completed) {
        struct coll_slot *o = slot_of(c, ++c->completed);
        write_out(c, o, c->completed);
        clear(c, o);
    }
}

static const struct qn_coll_lanes_user user = {
    .take = take, .give = give, .settled = settled};

/* ---- making one ---- */

static bool has_self(const struct qn_tree *t, qn_node_t self)
{
    return qn_tree_check(t) == QN_OK && qn_tree_has(t, self);
}

static int make_wirings(struct qn_coll *c, const struct qn_coll_opts *o)
{
    int rc = has_self(o->down, o->self) ? QN_OK : QN_EINVAL;
    for (uint32_t k = 0; k < KINDS && rc == QN_OK; k++) {
        const struct qn_wiring_opts w = {.kind = (enum qn_wiring_kind)k,
                                         .called = true,
                                         .down = o->down,
                                         .up = o->up != NULL ? o->up : o->down,
                                         .self = o->self};
        rc = qn_wiring_tree(&c->wiring[k], &w);
    }
    return rc;
}

static void find_rank(struct qn_coll *c, const struct qn_coll_opts *o)
{
    for (qn_node_t v = 0; v < o->self; v++) {
        c->rank += qn_tree_has(o->down, v);
    }
    c->members = o->down->n;
    c->root = c->wiring[0]->root;
    c->children = c->wiring[QN_WIRING_REDUCE]->preds;
}

static uint8_t *next_buffer(struct qn_coll *c, uint8_t **at)
{
    uint8_t *buffer = *at + QN_COLL_HEAD_BYTES;
    *at += c->stride;
    return buffer;
}

static int make_slots(struct qn_coll *c)
{
    const size_t each = c->children + 2; /* buffers of a slot */
    c->stride = QN_COLL_HEAD_BYTES + (c->bytes_max + 7) / 8 * 8;
    c->slot = calloc(c->window, sizeof *c->slot);
    c->buffers = calloc(c->window * each + 1, c->stride);
    if (c->slot == NULL || c->buffers == NULL) {
        return QN_ENOMEM;
    }
    uint8_t *at = c->buffers;
    c->scratch = next_buffer(c, &at);
    for (uint32_t i = 0; i < c->window; i++) {
        struct coll_slot *o = &c->slot[i];
        o->payload = next_buffer(c, &at);
        o->result = next_buffer(c, &at);
        o->part = at + QN_COLL_HEAD_BYTES;
        at += (size_t)c->children * c->stride;
        o->part_bytes = calloc(QN_MAX(c->children, 1u), sizeof(uint32_t));
        o->seen = calloc(c->members, sizeof(bool));
        if (o->part_bytes == NULL || o->seen == NULL) {
            return QN_ENOMEM;
        }
        clear(c, o);
    }
    return QN_OK;
}

static int make_lanes(struct qn_coll *c, const struct qn_coll_opts *o)
{
    const struct qn_wiring *wiring[KINDS];
    for (uint32_t k = 0; k < KINDS; k++) {
        wiring[k] = c->wiring[k];
    }
    const struct qn_coll_flow_opts f = {
        .wiring = wiring, .kinds = KINDS, .window = c->window};
    int rc = qn_coll_flow_create(&c->flow, &f);
    if (rc != QN_OK) {
        return rc;
    }
    const struct qn_coll_lanes_opts l = {.flow = c->flow,
                                         .wiring = wiring,
                                         .kinds = KINDS,
                                         .qp = o->qp,
                                         .view = o->view,
                                         .budget = 1,
                                         .user = &user,
                                         .ctx = c};
    return qn_coll_lanes_init(&c->lanes, &l);
}

int qn_coll_create(struct qn_coll **out, const struct qn_coll_opts *o)
{
    struct qn_coll *c = aligned_alloc(alignof(struct qn_coll), sizeof *c);
    if (c == NULL) {
        return QN_ENOMEM;
    }
    *c = (struct qn_coll){.doorbell = o->doorbell,
                          .backoff = o->backoff,
                          .window = o->window == 0 ? 1 : o->window,
                          .bytes_max = o->bytes_max == 0 ? 8 * QN_COLL_WORDS
                                                         : o->bytes_max};
    int rc =
        c->bytes_max <= QN_COLL_PAYLOAD_MAX ? make_wirings(c, o) : QN_EINVAL;
    if (rc == QN_OK) {
        find_rank(c, o);
        rc = make_lanes(c, o); /* checks the window */
    }
    rc = rc == QN_OK ? make_slots(c) : rc;
    if (rc != QN_OK) {
        qn_coll_destroy(c);
        return rc;
    }
    *out = c;
    return QN_OK;
}

void qn_coll_destroy(struct qn_coll *c)
{
    if (c == NULL) {
        return;
    }
    for (uint32_t i = 0; c->slot != NULL && i < c->window; i++) {
        free(c->slot[i].part_bytes);
        free(c->slot[i].seen);
    }
    free(c->slot);
    free(c->buffers);
    qn_coll_lanes_fini(&c->lanes);
    qn_coll_flow_destroy(c->flow);
    for (uint32_t k = 0; k < KINDS; k++) {
        qn_wiring_destroy(c->wiring[k]);
    }
    free(c);
}

/* ---- the calls ---- */

/* What is known of the operation when this member joins it. */
static int join(struct qn_coll *c, struct coll_slot *o)
{
    if (goes_up(&o->call)) {
        return begin_result(c, o);
    }
    if (c->root) {
        o->payload_bytes = (uint32_t)payload_bytes(c, &o->call);
        if (o->payload_bytes > 0) {
            memcpy(o->payload, o->call.in, o->payload_bytes);
        }
        return QN_OK;
    }
    return o->has_payload && o->payload_bytes != payload_bytes(c, &o->call)
               ? QN_ECORRUPT
               : QN_OK;
}

int qn_coll_start(struct qn_coll *c, const struct qn_coll_call *call,
                  uint32_t *number)
{
    uint32_t next;
    int rc = check_call(c, call);
    rc = rc == QN_OK ? qn_coll_flow_begin(c->flow, kind_of(call->what), &next)
                     : rc;
    if (rc != QN_OK) {
        return rc;
    }
    struct coll_slot *o = slot_of(c, next);
    o->call = *call;
    o->started = true;
    c->last = next;
    if (number != NULL) {
        *number = next;
    }
    rc = join(c, o);
    o->call.in = NULL;
    if (rc != QN_OK) {
        set_bad(c, next);
    }
    settled(c);
    return rc;
}

uint32_t qn_coll_last(const struct qn_coll *c)
{
    return c->last;
}

int qn_coll_state(const struct qn_coll *c, uint32_t number)
{
    if (c->is_bad && (int32_t)(number - c->bad) >= 0) {
        return QN_ECORRUPT;
    }
    return qn_coll_flow_state(c->flow, number);
}

int qn_coll_poll(struct qn_coll *c)
{
    qn_mark(QN_MARK_POLL);
    c->moved = qn_coll_lanes_poll(&c->lanes);
    return qn_coll_state(c, c->last);
}

bool qn_coll_moved(const struct qn_coll *c)
{
    return c->moved;
}

int qn_coll_test(struct qn_coll *c, uint32_t number)
{
    c->moved = qn_coll_lanes_poll(&c->lanes);
    (void)qn_coll_lanes_flush(&c->lanes);
    return qn_coll_state(c, number);
}

int qn_coll_wait(struct qn_coll *c, uint32_t number, qn_time_t deadline)
{
    QN_ASSERT(c->doorbell != NULL);
    struct qn_backoff backoff;
    int rc, slept = QN_OK;
    qn_backoff_init(&backoff, &c->backoff);
    while ((rc = qn_coll_test(c, number)) == QN_EAGAIN && slept == QN_OK) {
        if (c->moved) {
            qn_backoff_reset(&backoff);
            continue;
        }
        if (qn_backoff_again(&backoff)) {
            continue;
        }
        qn_backoff_reset(&backoff);
        qn_doorbell_arm(c->doorbell);
        (void)qn_coll_lanes_flush(&c->lanes);
        if (!qn_coll_lanes_pending(&c->lanes)) {
            slept = qn_doorbell_wait(c->doorbell, deadline);
        }
        qn_doorbell_disarm(c->doorbell);
    }
    return rc == QN_EAGAIN ? QN_ETIMEDOUT : rc;
}

bool qn_coll_pending(struct qn_coll *c)
{
    return qn_coll_lanes_pending(&c->lanes);
}

bool qn_coll_flush(struct qn_coll *c)
{
    return qn_coll_lanes_flush(&c->lanes);
}

void qn_coll_down(struct qn_coll *c, qn_node_t peer)
{
    qn_coll_lanes_down(&c->lanes, peer);
}
