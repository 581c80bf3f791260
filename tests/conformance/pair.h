#ifndef QN_TESTS_CONFORMANCE_PAIR_H
#define QN_TESTS_CONFORMANCE_PAIR_H

/** Two ends of queuepairs in one thread, on private memory. */

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/bits.h"
#include "core/qp.h"
#include "tests/support/test.h"
#include "transports/registry.h"

/** Run `body` for every transport of the registry, as `t`. */
#define FOR_EACH_TRANSPORT(t)                                                  \
    const struct qn_transport *t;                                              \
    for (uint32_t t##_i = 0; (t = qn_transport_at(t##_i)) != NULL; t##_i++)

/** What holds for a transport by its kind of memory. */
static inline bool has_lanes(const struct qn_transport *t)
{
    return t->memory != QN_TRANSPORT_DEVICE;
}

static inline bool is_isolated(const struct qn_transport *t)
{
    return t->memory == QN_TRANSPORT_ISOLATED;
}

static inline bool joins_processes(const struct qn_transport *t)
{
    return t->memory != QN_TRANSPORT_BOTH_WRITE;
}

/** What does not hold for a transport, and cannot. One that is not here has to
 *  pass all that its kind of memory allows. */
static const struct {
    const char *name;
    bool lanes_apart; /* a full lane leaves the others room */
} backend_exception[] = {
    {NULL, true},
};

static inline bool has_lanes_apart(const struct qn_transport *t)
{
    uint32_t i = 0;
    while (backend_exception[i].name != NULL &&
           strcmp(backend_exception[i].name, t->name) != 0) {
        i++;
    }
    return backend_exception[i].lanes_apart;
}

/** Rings to test: a device has its own. */
static inline size_t rings_of(const struct qn_transport *t, size_t rings)
{
    return has_lanes(t) ? rings : 1;
}

struct pair {
    const struct qn_transport *t;
    uint32_t cells;
    uint8_t *lane[2]; /* [i]: written by end i; NULL: there is a device */
    uint8_t *area;    /* of the device */
    struct qn_device *device[2]; /* attachments */
    enum qn_lane lane_kind;      /* TREE: on the device of another pair */
    struct qn_qp *end[2];
    uint64_t inc[2];
    uint32_t msg_max[2]; /* 0: QN_MSG_MAX */
};

/** Devices of pairs are strict: they do what hardware may do. */
static const struct qn_device_opts pair_device = {
    .nodes = 2, .lanes = QN_LANES, .strict = true, .seed = 7};

static inline uint8_t *pair_memory(const struct qn_transport *t, uint32_t cells)
{
    size_t bytes = (t->lane_bytes(cells) + 63) & ~(size_t)63;
    uint8_t *m = aligned_alloc(QN_CACHELINE, bytes);
    cr_assert_not_null(m);
    memset(m, 0, bytes);
    return m;
}

static inline uint8_t *pair_area(const struct qn_transport *t)
{
    size_t bytes = qn_align_up(t->device->bytes(&pair_device), 4096);
    uint8_t *m = aligned_alloc(4096, bytes);
    cr_assert_not_null(m);
    memset(m, 0, bytes);
    t->device->format(m, &pair_device);
    return m;
}

/** What end `i` of the pair is opened on. */
static inline struct qn_qp_opts pair_opts(const struct pair *p, qn_node_t i)
{
    return (struct qn_qp_opts){.tx = p->lane[i],
                               .rx = p->lane[1 - i],
                               .device = p->device[i],
                               .lane = p->lane_kind,
                               .cells = p->cells,
                               .self = i,
                               .peer = 1 - i,
                               .msg_max = p->msg_max[i],
                               .self_inc = p->inc[i],
                               .peer_inc = p->inc[1 - i]};
}

static inline void pair_attach(struct pair *p, qn_node_t i)
{
    const struct qn_device_attach_opts o = {.memory = p->area,
                                            .opts = &pair_device,
                                            .self = i,
                                            .incarnation = p->inc};
    if (p->area != NULL && p->device[i] == NULL) {
        int rc = p->t->device->attach(&p->device[i], &o);
        cr_assert_eq(rc, QN_OK, "%s: %s", p->t->name, qn_strerror(rc));
    }
}

static inline void pair_open_end(struct pair *p, qn_node_t i)
{
    pair_attach(p, i);
    const struct qn_qp_opts o = pair_opts(p, i);
    int rc = p->t->open(&p->end[i], &o);
    cr_assert_eq(rc, QN_OK, "%s: %s", p->t->name, qn_strerror(rc));
}

/** End `i` has ended, and the other is told. */
static inline void pair_down(struct pair *p, qn_node_t i)
{
    qn_qp_down(p->end[1 - i]);
    if (p->area != NULL) {
        qn_device_down(p->device[1 - i], i);
    }
}

/** Receive one message at end 1 while end 0 pushes. Any transport must need at
 *  most one turn per cell. */
static inline int pair_pump(struct pair *p, void *in, size_t cap, size_t *len)
{
    int rc = QN_EAGAIN;
    for (uint32_t turn = 0; turn < 3000 && rc == QN_EAGAIN; turn++) {
        qn_qp_flush(p->end[0]);
        rc = qn_qp_try_recv(p->end[1], in, cap, len);
        qn_qp_flush(p->end[1]);
    }
    return rc;
}

/** As pair_open; `sends` and `receives`: what end 0 and end 1 say is the
 * longest message. */
static inline void pair_open_limited(struct pair *p,
                                     const struct qn_transport *t,
                                     uint32_t cells, uint32_t sends,
                                     uint32_t receives)
{
    *p = (struct pair){
        .t = t, .cells = cells, .inc = {11, 22}, .msg_max = {sends, receives}};
    if (has_lanes(t)) {
        p->lane[0] = pair_memory(t, cells);
        p->lane[1] = pair_memory(t, cells);
    } else {
        p->area = pair_area(t);
        pair_attach(p, 0);
        pair_attach(p, 1);
    }
    pair_open_end(p, 0);
    pair_open_end(p, 1);
}

static inline void pair_open(struct pair *p, const struct qn_transport *t,
                             uint32_t cells)
{
    pair_open_limited(p, t, cells, 0, 0);
}

/** The other lane between the ends of `direct`; it is closed first. */
static inline void pair_open_tree(struct pair *p, const struct pair *direct)
{
    *p = *direct;
    p->lane_kind = QN_LANE_TREE;
    for (qn_node_t i = 0; i < 2 && has_lanes(p->t); i++) {
        p->lane[i] = pair_memory(p->t, p->cells);
    }
    pair_open_end(p, 0);
    pair_open_end(p, 1);
}

static inline void pair_close(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        qn_qp_close(p->end[i]);
        free(p->lane[i]);
    }
    for (int i = 0; i < 2 && p->lane_kind == QN_LANE_DIRECT; i++) {
        qn_device_detach(p->device[i]);
    }
    free(p->lane_kind == QN_LANE_DIRECT ? p->area : NULL);
}

/** The `len` bytes of message number `n`. */
static inline void pattern(uint8_t *buf, size_t len, uint32_t n)
{
    uint32_t x = n * 2654435761u + 1;
    for (size_t i = 0; i < len; i++) {
        x = x * 1664525u + 1013904223u;
        buf[i] = (uint8_t)(x >> 24);
    }
}

static inline bool pattern_is(const uint8_t *buf, size_t len, uint32_t n)
{
    uint32_t x = n * 2654435761u + 1;
    for (size_t i = 0; i < len; i++) {
        x = x * 1664525u + 1013904223u;
        if (buf[i] != (uint8_t)(x >> 24)) {
            return false;
        }
    }
    return true;
}

/** Bytes that one more end takes of its allocator; without the last of them it
 *  is refused, and takes none. */
static inline size_t pair_end_memory(const struct pair *p, uint32_t msg_max)
{
    struct qn_alloc_limit l;
    struct qn_qp_opts o = pair_opts(p, 0);
    struct qn_qp *end = NULL;
    o.alloc = &l.alloc;
    o.msg_max = msg_max;
    qn_alloc_limit_init(&l, &qn_alloc_malloc, SIZE_MAX);
    cr_assert_eq(p->t->open(&end, &o), QN_OK);
    qn_qp_close(end);
    cr_assert_eq(l.used, 0);
    const size_t most = l.most;
    qn_alloc_limit_init(&l, &qn_alloc_malloc, most - 1);
    cr_assert_eq(p->t->open(&end, &o), QN_ENOMEM);
    cr_assert_eq(l.used, 0);
    return most;
}

#endif
