/*
 * Acknowledged broadcasts as tasks.
 *
 * A member counts, for each operation of the window, the messages of each of
 * its stages (core/coll/wiring.h). Operation n + window begins only when n is
 * complete at the root, and then every member has sent its last message of n.
 * So the slot of an operation is free when the next one needs it.
 *
 * SDR: a member begins at the oldest operation that is not finished here. It
 * works on those behind it, too, in order, but sends nothing for them. What an
 * end makes possible is another task, so that no task sends for more than one
 * operation.
 */
#include "core/tasks/task_broadcast.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

/* The payload of a task. */
struct message {
    uint32_t number;
    uint8_t stage; /* of the receiver */
    uint8_t len;
    uint8_t unused[2];
    uint8_t bytes[QN_TASK_BROADCAST_BYTES];
};

_Static_assert(sizeof(struct message) == QN_TASK_PAYLOAD, "all of it");

struct operation {
    struct message message;
    uint32_t arrived[QN_STAGES_MAX]; /* messages */
    uint32_t fired;                  /* stages */
    bool under_way, worked;
};

struct member {
    alignas(QN_CACHELINE) struct qn_task_broadcast *of;
    const struct qn_wiring *wiring;
    struct operation *operation; /* [window] */
    uint32_t oldest;             /* SDR: not finished here */
    bool resumes;                /* SDR: a task for that is in the deque */
};

struct qn_task_broadcast {
    struct qn_task_broadcast_opts opts;
    uint32_t members, root;
    uint32_t started, completed; /* the root's */
    struct member member[];
};

static struct operation *slot(const struct member *m, uint32_t number)
{
    return &m->operation[number & (m->of->opts.window - 1)];
}

/* ---- one operation at one member ---- */

static void arrive(struct qn_task_worker *w, const struct qn_task *task);

static void fire(struct qn_task_worker *w, struct member *m,
                 struct operation *op)
{
    uint32_t stage = op->fired++;
    for (uint32_t i = 0; i < m->wiring->stage[stage].succs; i++) {
        const struct qn_link *link = qn_wiring_succ(m->wiring, stage, i);
        struct message message = op->message;
        struct qn_task task = {.run = arrive,
                               .ctx = &m->of->member[link->node]};
        message.stage = link->stage;
        memcpy(task.payload, &message, sizeof message);
        qn_task_send(w, link->node, &task);
    }
}

static void fire_all(struct qn_task_worker *w, struct member *m,
                     struct operation *op)
{
    while (op->fired < m->wiring->stages) {
        const struct qn_stage *stage = &m->wiring->stage[op->fired];
        if (op->arrived[op->fired] < stage->preds ||
            (stage->worked && !op->worked)) {
            return;
        }
        fire(w, m, op);
    }
}

static void work(struct member *m, struct operation *op)
{
    const struct qn_task_broadcast_opts *o = &m->of->opts;
    op->worked = true;
    o->work(o->ctx, (uint32_t)(m - m->of->member), op->message.number,
            op->message.bytes, op->message.len);
}

/* All that the operation lets its member do. @return true: it is finished. */
static bool settle(struct qn_task_worker *w, struct member *m,
                   struct operation *op, bool sends)
{
    if (sends) {
        fire_all(w, m, op); /* what need not wait for the work goes first */
    }
    if (!op->worked) {
        work(m, op);
    }
    if (sends) {
        fire_all(w, m, op);
    }
    return op->fired == m->wiring->stages;
}

static void finish(struct qn_task_worker *w, struct member *m,
                   struct operation *op)
{
    struct qn_task_broadcast *b = m->of;
    op->under_way = false;
    if (m->wiring->root) {
        b->completed++;
        if (b->opts.done != NULL) {
            b->opts.done(b->opts.ctx, w, op->message.number);
        }
    }
}

/* ---- SDR ---- */

static void in_order(struct qn_task_worker *w, struct member *m);

static void resume(struct qn_task_worker *w, const struct qn_task *task)
{
    struct member *m = task->ctx;
    m->resumes = false;
    in_order(w, m);
}

static void resume_later(struct qn_task_worker *w, struct member *m)
{
    const struct qn_task task = {.run = resume, .ctx = m};
    if (!m->resumes) {
        m->resumes = true;
        bool room = qn_task_spawn(w, &task);
        QN_ASSERT(room); /* `local` is qn_task_broadcast_most at least */
    }
}

static bool under_way(const struct member *m, uint32_t number)
{
    const struct operation *op = slot(m, number);
    return op->under_way && op->message.number == number;
}

static void in_order(struct qn_task_worker *w, struct member *m)
{
    uint32_t oldest = m->oldest;
    if (under_way(m, oldest) && settle(w, m, slot(m, oldest), true)) {
        m->oldest++;
        finish(w, m, slot(m, oldest));
        if (under_way(m, m->oldest)) {
            resume_later(w, m);
        }
        return;
    }
    for (uint32_t n = oldest;
         under_way(m, n) && n - oldest < m->of->opts.window; n++) {
        (void)settle(w, m, slot(m, n), false);
    }
}

/* ---- arrivals ---- */

static void go_on(struct qn_task_worker *w, struct member *m,
                  struct operation *op)
{
    if (m->of->opts.kind == QN_TASK_SDR) {
        in_order(w, m);
    } else if (settle(w, m, op, true)) {
        finish(w, m, op);
    }
}

static struct operation *begin(struct member *m, const struct message *message)
{
    struct operation *op = slot(m, message->number);
    *op = (struct operation){.message = *message, .under_way = true};
    return op;
}

static void arrive(struct qn_task_worker *w, const struct qn_task *task)
{
    struct member *m = task->ctx;
    struct message message;
    memcpy(&message, task->payload, sizeof message);
    struct operation *op = slot(m, message.number);
    if (!op->under_way) {
        op = begin(m, &message);
    }
    QN_ASSERT(op->message.number == message.number);
    op->arrived[message.stage]++;
    go_on(w, m, op);
}

int qn_task_broadcast_start(struct qn_task_broadcast *b,
                            struct qn_task_worker *w, const void *payload,
                            size_t len, uint32_t *number)
{
    struct member *root = &b->member[b->root];
    struct message message = {.number = b->started + 1, .len = (uint8_t)len};
    if (qn_task_worker_number(w) != b->root) {
        return QN_EPERM;
    }
    if (len > QN_TASK_BROADCAST_BYTES) {
        return QN_EMSGSIZE;
    }
    if (slot(root, message.number)->under_way || !qn_task_can_send(w)) {
        return QN_EAGAIN;
    }
    if (len > 0) {
        memcpy(message.bytes, payload, len);
    }
    b->started++;
    if (number != NULL) {
        *number = message.number;
    }
    struct operation *op = begin(root, &message);
    if (b->opts.kind == QN_TASK_SDR) {
        fire(w, root, op); /* in order, for all before it have */
    }
    go_on(w, root, op);
    return QN_OK;
}

uint32_t qn_task_broadcast_completed(const struct qn_task_broadcast *b)
{
    return b->completed;
}

/* ---- make ---- */

uint32_t qn_task_broadcast_most(const struct qn_wiring *w, uint32_t window)
{
    return window * w->preds + 1; /* and the one that resumes */
}

static bool member_good(const struct qn_task_team_opts *team,
                        const struct qn_task_broadcast_opts *o, uint32_t i)
{
    const struct qn_wiring *w = o->wiring[i];
    return w->kind == (o->kind == QN_TASK_BT ? QN_WIRING_ACKNOWLEDGED
                                             : QN_WIRING_RING) &&
           !w->called && w->links <= team->sends &&
           qn_task_broadcast_most(w, o->window) <= team->local;
}

static bool opts_good(const struct qn_task_team_opts *team,
                      const struct qn_task_broadcast_opts *o)
{
    uint32_t roots = 0;
    bool good = o->window >= 1 && o->window <= QN_TASK_BROADCAST_WINDOW_MAX &&
                qn_is_pow2(o->window);
    for (uint32_t i = 0; i < team->workers && good; i++) {
        good = member_good(team, o, i);
        roots += o->wiring[i]->root;
    }
    return good && roots == 1;
}

int qn_task_broadcast_create(struct qn_task_broadcast **out,
                             struct qn_task_team *team,
                             const struct qn_task_broadcast_opts *o)
{
    const struct qn_task_team_opts *t = qn_task_team_opts(team);
    if (!opts_good(t, o)) {
        return QN_EINVAL;
    }
    size_t bytes =
        sizeof(struct qn_task_broadcast) + t->workers * sizeof(struct member);
    struct qn_task_broadcast *b =
        aligned_alloc(QN_CACHELINE, qn_align_up(bytes, QN_CACHELINE));
    if (b == NULL) {
        return QN_ENOMEM;
    }
    memset(b, 0, bytes);
    b->opts = *o;
    b->members = t->workers;
    for (uint32_t i = 0; i < t->workers; i++) {
        struct member *m = &b->member[i];
        *m = (struct member){.of = b, .wiring = o->wiring[i], .oldest = 1};
        m->operation = calloc(o->window, sizeof *m->operation);
        if (m->operation == NULL) {
            qn_task_broadcast_destroy(b);
            return QN_ENOMEM;
        }
        b->root = o->wiring[i]->root ? i : b->root;
    }
    *out = b;
    return QN_OK;
}

void qn_task_broadcast_destroy(struct qn_task_broadcast *b)
{
    for (uint32_t i = 0; b != NULL && i < b->members; i++) {
        free(b->member[i].operation);
    }
    free(b);
}
