#include "core/coll/request_lanes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"

enum { REQUEST, STABLE };

struct wire {
    uint32_t number;
    uint16_t view;
    uint16_t what;
};

static_assert(sizeof(struct wire) == 8, "what sequence.h leaves in front");

int qn_request_lanes_init(struct qn_request_lanes *l, struct qn_sequence *s,
                          uint32_t members)
{
    *l = (struct qn_request_lanes){.s = s, .members = members};
    if (members == 0) {
        return QN_OK;
    }
    l->qp = calloc(members, sizeof(struct qn_qp *));
    l->is_used = calloc(members, sizeof *l->is_used);
    return l->qp != NULL && l->is_used != NULL ? QN_OK : QN_ENOMEM;
}

void qn_request_lanes_fini(struct qn_request_lanes *l)
{
    free((void *)l->qp);
    free(l->is_used);
}

/* All are flushed once: what was read in an earlier view may not be said. */
void qn_request_lanes_enter(struct qn_request_lanes *l, qn_node_t self,
                            const struct qn_view *view, struct qn_qp **qp)
{
    for (qn_node_t v = 0; v < l->members; v++) {
        l->qp[v] = v != self && qn_view_has(view, v) ? qp[v] : NULL;
        l->is_used[v] = l->qp[v] != NULL;
    }
    l->root = view->root;
    l->is_root = view->root == self;
    l->view = view->number;
}

void qn_request_lanes_down(struct qn_request_lanes *l, qn_node_t node)
{
    if (node < l->members) {
        l->qp[node] = NULL;
    }
}

/* ---- receive ---- */

/* The peers whose lanes are looked at: first .. end - 1. */
static qn_node_t first_of(const struct qn_request_lanes *l)
{
    return l->is_root ? 0 : l->root;
}

static qn_node_t end_of(const struct qn_request_lanes *l)
{
    return l->is_root || l->members == 0 ? l->members : l->root + 1;
}

static void corrupt(struct qn_request_lanes *l)
{
    qn_coll_flow_fail(qn_sequence_flow(l->s), QN_ECORRUPT);
    qn_sequence_settled(l->s);
}

/* The next message of this view. Older ones are dropped.
 * @return QN_OK; QN_EAGAIN: none, or of a later view; or why there is none. */
static int next_from(struct qn_request_lanes *l, qn_node_t from, struct wire *w,
                     const uint8_t **msg, size_t *len)
{
    const void *found;
    int rc = QN_EAGAIN;
    while (l->qp[from] != NULL &&
           (rc = qn_qp_peek(l->qp[from], &found, len)) == QN_OK) {
        if (*len < sizeof *w) {
            return QN_ECORRUPT;
        }
        *msg = qn_qp_steady(found, *len, l->own);
        memcpy(w, *msg, sizeof *w);
        const int16_t newer = (int16_t)(uint16_t)(w->view - l->view);
        if (newer >= 0) {
            return newer == 0 ? QN_OK : QN_EPEERDEAD;
        }
        qn_qp_release(l->qp[from]);
        l->is_used[from] = true;
    }
    return l->qp[from] == NULL ? QN_EAGAIN : rc;
}

/* @return false: it stays in its lane. */
static bool take(struct qn_request_lanes *l, qn_node_t from,
                 const struct wire *w, const uint8_t *msg, size_t len)
{
    int rc = QN_ECORRUPT;
    if (w->what == REQUEST) {
        rc = qn_sequence_take_request(l->s, from, msg + sizeof *w,
                                      len - sizeof *w);
    } else if (w->what == STABLE) {
        rc = qn_sequence_take_stable(l->s, w->number);
    }
    if (rc == QN_EAGAIN || rc == QN_EPEERDEAD) {
        return false;
    }
    qn_qp_release(l->qp[from]);
    l->is_used[from] = true;
    if (rc != QN_OK) {
        corrupt(l);
    }
    return true;
}

static bool receive(struct qn_request_lanes *l, qn_node_t from)
{
    struct wire w;
    const uint8_t *msg;
    size_t len;
    int rc = next_from(l, from, &w, &msg, &len);
    if (rc == QN_OK) {
        return take(l, from, &w, msg, len);
    }
    if (rc == QN_EPEERDEAD) { /* it has ended, or has left this view */
        qn_sequence_down(l->s, from);
    } else if (rc != QN_EAGAIN) {
        corrupt(l);
    }
    return false;
}

/* ---- send ---- */

/* @return QN_OK; QN_EAGAIN: no room; QN_EPEERDEAD. */
static int send_to(struct qn_request_lanes *l, qn_node_t to, uint8_t *msg,
                   size_t len, const struct wire *w)
{
    if (l->qp[to] == NULL) {
        return QN_EPEERDEAD;
    }
    memcpy(msg, w, sizeof *w);
    l->is_used[to] = true; /* also without room: the flush asks for it */
    return qn_qp_try_send(l->qp[to], msg, sizeof *w + len);
}

static bool send_requests(struct qn_request_lanes *l)
{
    uint8_t *at;
    size_t len;
    bool moved = false;
    const struct wire w = {.view = l->view, .what = REQUEST};
    while ((at = qn_sequence_next_request(l->s, &len)) != NULL) {
        int rc = send_to(l, l->root, at - sizeof w, len, &w);
        if (rc == QN_EAGAIN) {
            return moved;
        }
        if (rc != QN_OK) {
            qn_sequence_down(l->s, l->root);
            return moved;
        }
        qn_sequence_requested(l->s);
        moved = true;
    }
    return moved;
}

/* A source without room is told later, and by messages. */
static bool send_stable(struct qn_request_lanes *l)
{
    bool moved = false;
    for (uint32_t i = qn_sequence_owed(l->s); i-- > 0;) {
        const struct wire w = {.number = qn_sequence_stable(l->s),
                               .view = l->view,
                               .what = STABLE};
        uint8_t msg[sizeof w];
        if (send_to(l, qn_sequence_owed_to(l->s, i), msg, 0, &w) != QN_EAGAIN) {
            qn_sequence_told(l->s, i);
            moved = true;
        }
    }
    return moved;
}

static bool send_all(struct qn_request_lanes *l)
{
    return l->members > 0 && (l->is_root ? send_stable(l) : send_requests(l));
}

/* ---- turns ---- */

bool qn_request_lanes_poll(struct qn_request_lanes *l)
{
    bool moved = false;
    for (qn_node_t v = first_of(l); v < end_of(l) && qn_sequence_runs(l->s);
         v++) {
        moved = receive(l, v) || moved;
    }
    return send_all(l) || moved;
}

/* Something that poll would do something with. */
static bool has_message(struct qn_request_lanes *l, qn_node_t from)
{
    const void *found;
    size_t len;
    struct wire w;
    if (l->qp[from] == NULL) {
        return false;
    }
    int rc = qn_qp_peek(l->qp[from], &found, &len);
    if (rc != QN_OK || len < sizeof w) {
        return rc != QN_EAGAIN;
    }
    const uint8_t *msg = qn_qp_steady(found, len, l->own);
    memcpy(&w, msg, sizeof w);
    return w.view != l->view || w.what != REQUEST ||
           qn_sequence_takes_request(l->s, from, msg + sizeof w,
                                     len - sizeof w) != QN_EAGAIN;
}

static bool has_room(const struct qn_request_lanes *l, qn_node_t to)
{
    return l->qp[to] == NULL || qn_qp_room(l->qp[to]) > 0;
}

static bool can_send(const struct qn_request_lanes *l)
{
    size_t len;
    if (!l->is_root) {
        return qn_sequence_next_request(l->s, &len) != NULL &&
               has_room(l, l->root);
    }
    for (uint32_t i = 0; i < qn_sequence_owed(l->s); i++) {
        if (has_room(l, qn_sequence_owed_to(l->s, i))) {
            return true;
        }
    }
    return false;
}

bool qn_request_lanes_pending(struct qn_request_lanes *l)
{
    if (l->members == 0 || !qn_sequence_runs(l->s)) {
        return false;
    }
    bool any = can_send(l);
    for (qn_node_t v = first_of(l); v < end_of(l) && !any; v++) {
        any = has_message(l, v);
    }
    return any;
}

bool qn_request_lanes_flush(struct qn_request_lanes *l)
{
    bool more = false;
    (void)send_all(l);
    for (qn_node_t v = 0; v < l->members; v++) {
        if (l->is_used[v]) {
            l->is_used[v] = l->qp[v] != NULL && qn_qp_flush(l->qp[v]);
            more = l->is_used[v] || more;
        }
    }
    return more;
}
