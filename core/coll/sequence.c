/*
 * In front of each message on its way there is a struct tag_wire; without
 * credit only the first half of it, for then there is one source, the root.
 *
 * Four numbers of messages: stable <= delivered here; and at the root all that
 * have begun are delivered. Of its own submissions a source knows: those up to
 * `ended` are at all members, those up to `numbered` were delivered here, those
 * up to `asked` were requested in this view (or begun, at the root). Of one
 * that is numbered `at` holds the number, so that it ends when that is stable.
 *
 * A member that completes an operation has sent all its messages for it. So a
 * member has completed what is stable: what it releases it need not send.
 */
#include "core/coll/sequence.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

#define HEAD_BYTES 8u /* what the lanes put in front */

struct tag_wire {
    uint16_t
        behind; /* number of the message - stable number; of a request: 0 */
    uint16_t source;
    uint32_t incarnation;
    uint64_t number;
};

static_assert(sizeof(struct tag_wire) + HEAD_BYTES == QN_RETAINED_ROOM, "room");
static_assert(QN_FLOW_WINDOW_MAX <= UINT16_MAX, "behind");

struct qn_sequence {
    struct qn_sequence_opts o;
    size_t tag_bytes; /* of struct tag_wire that travel */

    struct qn_coll_flow *flow; /* of the present view, or of the last one */
    struct qn_view view;
    bool root;    /* of it */
    bool entered; /* a first view */
    bool left;

    struct qn_retained kept;
    uint32_t delivered, stable;
    uint32_t completed; /* the root: up to here sources are told */
    struct qn_sequencer sequencer;
    struct qn_tag *tag; /* [members] of it */

    qn_node_t *owed; /* [members] sources to be told of the stable number */
    bool *is_owed;   /* [members] */
    uint32_t owed_count;

    struct qn_source source;
    uint64_t numbered, asked; /* submissions */
    uint32_t *at;             /* [credit] numbers of submissions */
    uint32_t *len;            /* [credit] bytes of submissions */
    uint8_t *submission;      /* [credit] of `stride` bytes */
    size_t stride;
    uint8_t bare[HEAD_BYTES];
};

/* ---- making one ---- */

static bool opts_ok(const struct qn_sequence_opts *o)
{
    return o->members >= 1 && o->members <= QN_MEMBERS_MAX &&
           o->self < o->members && o->incarnation >= 1 && o->window >= 1 &&
           o->window <= QN_FLOW_WINDOW_MAX &&
           (o->window & (o->window - 1)) == 0 && o->deliver != NULL &&
           o->len_max <= QN_SEQUENCE_LEN_MAX;
}

static int allocate(struct qn_sequence *s)
{
    const struct qn_sequence_opts *o = &s->o;
    const uint32_t credit = QN_MAX(o->credit, 1u);
    s->stride = qn_retained_cost(o->len_max);
    s->tag = calloc(o->members, sizeof *s->tag);
    s->owed = calloc(o->members, sizeof *s->owed);
    s->is_owed = calloc(o->members, sizeof *s->is_owed);
    s->at = calloc(credit, sizeof *s->at);
    s->len = calloc(credit, sizeof *s->len);
    s->submission = calloc(credit, s->stride);
    int rc = qn_retained_init(&s->kept, o->window,
                              o->bytes_max != 0 ? o->bytes_max
                                                : o->window * s->stride,
                              o->len_max, o->delivered);
    bool ok = s->tag != NULL && s->owed != NULL && s->is_owed != NULL &&
              s->at != NULL && s->len != NULL && s->submission != NULL;
    return ok ? rc : QN_ENOMEM;
}

int qn_sequence_create(struct qn_sequence **out,
                       const struct qn_sequence_opts *o)
{
    if (!opts_ok(o)) {
        return QN_EINVAL;
    }
    struct qn_sequence *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return QN_ENOMEM;
    }
    s->o = *o;
    s->tag_bytes = o->credit > 0 ? sizeof(struct tag_wire)
                                 : offsetof(struct tag_wire, number);
    s->delivered = s->stable = s->completed = o->delivered;
    s->left = true;
    int rc = allocate(s);
    if (rc != QN_OK) {
        qn_sequence_destroy(s);
        return rc;
    }
    qn_sequencer_init(&s->sequencer, s->tag, o->members);
    if (o->tag != NULL) {
        memcpy(s->tag, o->tag, o->members * sizeof *s->tag);
    }
    s->o.tag = NULL;
    qn_source_init(&s->source, o->self, o->incarnation, QN_MAX(o->credit, 1u));
    *out = s;
    return QN_OK;
}

void qn_sequence_destroy(struct qn_sequence *s)
{
    if (s != NULL) {
        qn_coll_flow_destroy(s->flow);
        qn_retained_fini(&s->kept);
        free(s->tag);
        free(s->owed);
        free(s->is_owed);
        free(s->at);
        free(s->len);
        free(s->submission);
        free(s);
    }
}

/* ---- tags on their way ---- */

static void put_tag(const struct qn_sequence *s, uint8_t *to,
                    const struct qn_tag *t, uint32_t behind)
{
    const struct tag_wire w = {.behind = (uint16_t)behind,
                               .source = (uint16_t)t->source,
                               .incarnation = t->incarnation,
                               .number = t->number};
    memcpy(to, &w, s->tag_bytes);
}

/* @return false: too short. */
static bool get_tag(const struct qn_sequence *s, const uint8_t *from,
                    size_t len, struct qn_tag *t, uint32_t *behind)
{
    struct tag_wire w = {0};
    if (len < s->tag_bytes || len - s->tag_bytes > s->o.len_max) {
        return false;
    }
    memcpy(&w, from, s->tag_bytes);
    *behind = w.behind;
    *t = (struct qn_tag){
        .source = w.source, .incarnation = w.incarnation, .number = w.number};
    return true;
}

/* ---- what has come to all ---- */

static bool is_own(const struct qn_sequence *s, const struct qn_tag *t)
{
    return s->o.credit > 0 && t->source == s->o.self &&
           t->incarnation == s->o.incarnation;
}

static void end_submissions(struct qn_sequence *s)
{
    uint64_t n = s->source.ended;
    while (n < s->numbered &&
           !qn_view_before(s->stable, s->at[(n + 1) % s->o.credit])) {
        n++;
    }
    int rc = qn_source_end(&s->source, n);
    QN_ASSERT(rc == QN_OK);
}

static void set_stable(struct qn_sequence *s, uint32_t number)
{
    if (qn_view_before(s->stable, number)) {
        s->stable = number;
        qn_retained_release(&s->kept, number);
        end_submissions(s);
    }
}

static void owe(struct qn_sequence *s, const struct qn_tag *t)
{
    if (s->o.credit > 0 && t->source != s->o.self &&
        qn_view_has(&s->view, t->source) && !s->is_owed[t->source]) {
        s->is_owed[t->source] = true;
        s->owed[s->owed_count++] = t->source;
    }
}

/* ---- delivery ---- */

static void deliver(struct qn_sequence *s, uint32_t number)
{
    const struct qn_retained_message *m = qn_retained_at(&s->kept, number);
    s->delivered = number;
    if (s->o.credit > 0) {
        qn_sequencer_observe(&s->sequencer, &m->tag);
    }
    if (is_own(s, &m->tag)) {
        s->numbered = m->tag.number;
        s->at[s->numbered % s->o.credit] = number;
    }
    s->o.deliver(s->o.ctx, number, m);
}

/* @return false: no more can be begun now. */
static int begin(struct qn_sequence *s, const struct qn_tag *t, const void *msg,
                 size_t len)
{
    uint32_t number;
    if (!qn_retained_fits(&s->kept, len)) {
        return QN_EAGAIN;
    }
    int rc = qn_coll_flow_begin(s->flow, 0, &number);
    if (rc == QN_OK) {
        QN_ASSERT(number == s->kept.last + 1);
        qn_retained_add(&s->kept, t, msg, len);
    }
    return rc;
}

bool qn_sequence_runs(const struct qn_sequence *s)
{
    return !s->left && qn_coll_flow_error(s->flow) == QN_OK;
}

static uint8_t *submission_of(const struct qn_sequence *s, uint64_t number)
{
    return s->submission + number % s->o.credit * s->stride + QN_RETAINED_ROOM;
}

static struct qn_tag own_tag(const struct qn_sequence *s, uint64_t number)
{
    return (struct qn_tag){
        .source = s->o.self, .incarnation = s->o.incarnation, .number = number};
}

/* The root's own submissions, which it requests of itself. */
static bool begin_own(struct qn_sequence *s)
{
    if (!s->root || s->o.credit == 0 || !qn_sequence_runs(s) ||
        s->asked == s->source.last.number) {
        return false;
    }
    const uint64_t next = s->asked + 1;
    const struct qn_tag t = own_tag(s, next);
    if (begin(s, &t, submission_of(s, next), s->len[next % s->o.credit]) !=
        QN_OK) {
        return false;
    }
    s->asked = next;
    return true;
}

static void deliver_all(struct qn_sequence *s)
{
    uint32_t number;
    while (qn_coll_flow_deliver(s->flow, &number)) {
        if (qn_view_before(s->delivered, number)) {
            deliver(s, number);
        }
        qn_coll_flow_worked(s->flow, number);
    }
}

static void complete_all(struct qn_sequence *s)
{
    const uint32_t completed = qn_coll_flow_completed(s->flow);
    while (s->root && s->completed != completed) {
        owe(s, &qn_retained_at(&s->kept, ++s->completed)->tag);
    }
    if (s->root) {
        set_stable(s, completed);
    }
}

void qn_sequence_settled(struct qn_sequence *s)
{
    bool more = !s->left;
    while (more) {
        deliver_all(s);
        complete_all(s);
        more = begin_own(s);
    }
}

/* ---- views ---- */

void qn_sequence_leave(struct qn_sequence *s, struct qn_view_report *out)
{
    if (!s->left) {
        s->left = true;
        qn_coll_flow_fail(s->flow, QN_EPEERDEAD);
    }
    *out = (struct qn_view_report){.member = s->o.self,
                                   .delivered = s->delivered,
                                   .released = s->kept.last == s->delivered
                                                   ? s->kept.first
                                                   : s->delivered};
}

static bool wiring_ok(const struct qn_wiring *w)
{
    return w->kind == QN_WIRING_RING ||
           (w->kind == QN_WIRING_ACKNOWLEDGED && !w->called);
}

bool qn_sequence_awaits(const struct qn_sequence *s, const struct qn_view *view)
{
    return !s->entered || qn_view_newer(view->number, s->view.number);
}

static bool view_ok(const struct qn_sequence *s, const struct qn_view *v)
{
    return v->root < s->o.members && qn_view_has(v, s->o.self) &&
           qn_view_has(v, v->root) &&
           !qn_view_before(s->delivered, v->before) &&
           !qn_view_before(v->done, s->delivered) &&
           !qn_view_before(v->before, s->kept.first) &&
           (v->root != s->o.self || s->delivered == v->done);
}

static int make_flow(struct qn_sequence *s, const struct qn_view *v,
                     const struct qn_wiring *wiring)
{
    const struct qn_wiring *const wirings[] = {wiring};
    const struct qn_coll_flow_opts o = {.wiring = wirings,
                                        .kinds = 1,
                                        .window = s->o.window,
                                        .before = v->before,
                                        .cumulative = wiring->kind ==
                                                      QN_WIRING_ACKNOWLEDGED};
    struct qn_coll_flow *flow;
    int rc = qn_coll_flow_create(&flow, &o);
    if (rc == QN_OK) {
        qn_coll_flow_destroy(s->flow);
        s->flow = flow;
    }
    return rc;
}

static void send_again(struct qn_sequence *s)
{
    uint32_t number;
    for (uint32_t k = s->view.before; k != s->view.done; k++) {
        int rc = qn_coll_flow_begin(s->flow, 0, &number);
        QN_ASSERT(rc == QN_OK);
        QN_ASSERT(number == k + 1);
    }
}

int qn_sequence_enter(struct qn_sequence *s, const struct qn_view *view,
                      const struct qn_wiring *wiring)
{
    struct qn_view_report report;
    if (!qn_sequence_awaits(s, view)) {
        return QN_EINVAL;
    }
    qn_sequence_leave(s, &report);
    if (!view_ok(s, view) || !wiring_ok(wiring) ||
        wiring->root != (view->root == s->o.self)) {
        return QN_EINVAL;
    }
    int rc = make_flow(s, view, wiring);
    if (rc != QN_OK) {
        return rc;
    }
    s->view = *view;
    s->root = wiring->root;
    s->entered = true;
    s->left = false;
    memset(s->is_owed, 0, s->o.members * sizeof *s->is_owed);
    s->owed_count = 0;
    s->completed = view->before;
    set_stable(s, view->before);
    s->asked = QN_MAX(s->numbered, s->source.ended);
    if (s->root) {
        send_again(s);
    }
    qn_sequence_settled(s);
    return QN_OK;
}

void qn_sequence_down(struct qn_sequence *s, qn_node_t node)
{
    if (s->left || !qn_view_has(&s->view, node)) {
        return;
    }
    qn_coll_flow_down(s->flow, node);
    if (qn_coll_flow_error(s->flow) == QN_OK) { /* no neighbour */
        qn_coll_flow_fail(s->flow, QN_EPEERDEAD);
    }
    qn_sequence_settled(s);
}

const struct qn_tag *qn_sequence_tags(const struct qn_sequence *s)
{
    return s->tag;
}

uint32_t qn_sequence_delivered(const struct qn_sequence *s)
{
    return s->delivered;
}

uint32_t qn_sequence_stable(const struct qn_sequence *s)
{
    return s->stable;
}

/* ---- a source ---- */

int qn_sequence_submit(struct qn_sequence *s, const void *msg, size_t len,
                       uint64_t *number)
{
    struct qn_tag t;
    if (s->o.credit == 0) {
        return QN_EPERM;
    }
    if (len > s->o.len_max) {
        return QN_EMSGSIZE;
    }
    int rc = qn_source_submit(&s->source, &t);
    if (rc != QN_OK) {
        return rc;
    }
    s->len[t.number % s->o.credit] = (uint32_t)len;
    if (len > 0) {
        memcpy(submission_of(s, t.number), msg, len);
    }
    if (number != NULL) {
        *number = t.number;
    }
    qn_sequence_settled(s);
    return QN_OK;
}

uint64_t qn_sequence_ended(const struct qn_sequence *s)
{
    return s->source.ended;
}

int qn_sequence_send(struct qn_sequence *s, const void *msg, size_t len,
                     uint32_t *number)
{
    const struct qn_tag none = {.source = s->o.self};
    if (!s->root || s->o.credit > 0) {
        return QN_EPERM;
    }
    if (len > s->o.len_max) {
        return QN_EMSGSIZE;
    }
    if (qn_coll_flow_error(s->flow) != QN_OK) {
        return qn_coll_flow_error(s->flow);
    }
    int rc = begin(s, &none, msg, len);
    if (rc == QN_OK) {
        if (number != NULL) {
            *number = s->kept.last;
        }
        qn_sequence_settled(s);
    }
    return rc;
}

/* ---- operations ---- */

struct qn_coll_flow *qn_sequence_flow(struct qn_sequence *s)
{
    return s->flow;
}

/* A message that has come before: by another link of a ring, or in an earlier
 * view. */
static int take_again(const struct qn_sequence *s, uint32_t number, size_t len)
{
    return qn_retained_at(&s->kept, number)->len == len ? QN_OK : QN_ECORRUPT;
}

int qn_sequence_take(struct qn_sequence *s, const struct qn_flow_head *h,
                     const void *bytes, size_t len)
{
    struct qn_tag t;
    uint32_t behind;
    if (len == 0 && (s->root || h->stage > 0)) {
        return QN_OK; /* an acknowledgement */
    }
    if (s->root || h->stage > 0 || !get_tag(s, bytes, len, &t, &behind) ||
        behind == 0 || behind > s->o.window || t.source >= s->o.members) {
        return QN_ECORRUPT;
    }
    const uint32_t stable = h->number - behind;
    if (qn_view_before(qn_coll_flow_completed(s->flow), stable)) {
        return QN_ECORRUPT;
    }
    set_stable(s, stable);
    len -= s->tag_bytes;
    if (!qn_view_before(s->kept.last, h->number)) {
        return take_again(s, h->number, len);
    }
    if (h->number != s->kept.last + 1 || !qn_retained_fits(&s->kept, len)) {
        return QN_ECORRUPT;
    }
    qn_retained_add(&s->kept, &t, (const uint8_t *)bytes + s->tag_bytes, len);
    return QN_OK;
}

/* The root sends, and others pass on. */
static bool carries_message(const struct qn_sequence *s,
                            const struct qn_flow_send *f)
{
    return !f->bare && f->stage == 0 && f->head.stage == 0 &&
           qn_view_before(s->stable, f->head.number);
}

uint8_t *qn_sequence_give(struct qn_sequence *s, const struct qn_flow_send *f,
                          size_t *len)
{
    if (!carries_message(s, f)) {
        *len = 0;
        return s->bare + HEAD_BYTES;
    }
    const struct qn_retained_message *m =
        qn_retained_at(&s->kept, f->head.number);
    uint8_t *at = m->msg - s->tag_bytes;
    put_tag(s, at, &m->tag, f->head.number - s->stable);
    *len = s->tag_bytes + m->len;
    return at;
}

/* ---- requests ---- */

uint8_t *qn_sequence_next_request(struct qn_sequence *s, size_t *len)
{
    if (s->root || s->o.credit == 0 || !qn_sequence_runs(s) ||
        s->asked == s->source.last.number) {
        return NULL;
    }
    const uint64_t next = s->asked + 1;
    const struct qn_tag t = own_tag(s, next);
    uint8_t *at = submission_of(s, next) - s->tag_bytes;
    put_tag(s, at, &t, 0);
    *len = s->tag_bytes + s->len[next % s->o.credit];
    return at;
}

void qn_sequence_requested(struct qn_sequence *s)
{
    QN_ASSERT(s->asked < s->source.last.number);
    s->asked++;
}

/* @param verdict  Filled if the result is QN_OK. */
static int judge_request(const struct qn_sequence *s, qn_node_t from,
                         const void *bytes, size_t len, struct qn_tag *t,
                         enum qn_tag_verdict *verdict)
{
    uint32_t behind;
    if (!s->root || s->o.credit == 0 || !get_tag(s, bytes, len, t, &behind) ||
        t->source != from || !qn_view_has(&s->view, from)) {
        return QN_ECORRUPT;
    }
    if (!qn_sequence_runs(s)) {
        return QN_EPEERDEAD;
    }
    *verdict = qn_sequencer_judge(&s->sequencer, t);
    if (*verdict != QN_TAG_NEXT) {
        return *verdict == QN_TAG_OLD ? QN_OK : QN_ECORRUPT;
    }
    return qn_retained_fits(&s->kept, len - s->tag_bytes) ? QN_OK : QN_EAGAIN;
}

int qn_sequence_takes_request(const struct qn_sequence *s, qn_node_t from,
                              const void *bytes, size_t len)
{
    struct qn_tag t;
    enum qn_tag_verdict verdict;
    return judge_request(s, from, bytes, len, &t, &verdict);
}

int qn_sequence_take_request(struct qn_sequence *s, qn_node_t from,
                             const void *bytes, size_t len)
{
    struct qn_tag t;
    enum qn_tag_verdict verdict;
    int rc = judge_request(s, from, bytes, len, &t, &verdict);
    if (rc == QN_OK && verdict == QN_TAG_NEXT) {
        rc = begin(s, &t, (const uint8_t *)bytes + s->tag_bytes,
                   len - s->tag_bytes);
        QN_ASSERT(rc == QN_OK); /* judged so */
        qn_sequence_settled(s); /* it is delivered here, and so admitted */
    }
    return rc;
}

uint32_t qn_sequence_owed(const struct qn_sequence *s)
{
    return s->left ? 0 : s->owed_count;
}

qn_node_t qn_sequence_owed_to(const struct qn_sequence *s, uint32_t i)
{
    QN_ASSERT(i < s->owed_count);
    return s->owed[i];
}

void qn_sequence_told(struct qn_sequence *s, uint32_t i)
{
    QN_ASSERT(i < s->owed_count);
    s->is_owed[s->owed[i]] = false;
    s->owed[i] = s->owed[--s->owed_count];
}

int qn_sequence_take_stable(struct qn_sequence *s, uint32_t number)
{
    if (s->left) {
        return QN_OK;
    }
    if (s->root || qn_view_before(qn_coll_flow_completed(s->flow), number)) {
        return QN_ECORRUPT;
    }
    set_stable(s, number);
    return QN_OK;
}
