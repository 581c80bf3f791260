/*
 * The change feed: see feed.h.
 *
 *     records   | r | r | r | r | r |      a ring by number, lo .. hi - 1
 *                 |   |           |
 *     bytes     | ..... | .. |  ..... |    a ring by byte, tail .. head - 1
 *
 * Both overwrite their oldest end. The bytes of one command are never split: at
 * the end of the ring they begin anew at its start, and what was left there
 * goes with the command in front of it.
 *
 * A subscriber is a position. `first` is where what is kept begins, so whether
 * a subscriber has lost something is one comparison of positions, and nothing
 * is done to subscribers when a record is overwritten. `index` only saves it
 * the search: no record below it reaches beyond its position.
 *
 * A subscriber that has lost something must seek. While that is so of all of
 * them, for as long as the ring takes to be overwritten once, nothing is
 * recorded: so one that has stopped costs a comparison for each command.
 *
 * Between records there is nothing, so a position between the end of one and
 * the next one is as good as either. That is why `first` is the end of the
 * record that was cut last, not the beginning of the oldest: a subscriber that
 * has read the former has lost nothing.
 */
#include "paxos/feed/feed.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"

#define BYTES_MAX (UINT64_C(1) << 40)

struct kept {
    struct qn_feed_record r;
    uint64_t end; /* `head` behind its bytes */
};

struct subscriber {
    bool used;
    struct qn_feed_position at; /* next to be read */
    uint64_t index;
};

struct qn_feed {
    struct qn_feed_opts o;
    struct qn_feed_position next;  /* of the next record */
    struct qn_feed_position first; /* what is kept begins there; with a block */
    struct kept *block;  /* records, and their bytes behind; or NULL */
    uint64_t lo, hi;     /* numbers of records, run free */
    uint64_t lo_at;      /* lo, modulo records */
    uint64_t head, tail; /* of bytes, run free until it is empty */
    uint64_t head_at;    /* head, modulo bytes; below it */
    uint64_t bytes;      /* of all that are kept */
    uint64_t cut;
    uint64_t look_due; /* of `cut`: then it looks whether all are gone ... */
    bool all_gone;     /* ... which they were then, and have been since, */
    bool idle;         /* ... twice: nothing is recorded until one seeks */
    uint32_t subscribers;
    struct subscriber subscriber[QN_FEED_SUBSCRIBERS_MAX];
};

static struct qn_feed_position later(struct qn_feed_position a,
                                     struct qn_feed_position b)
{
    return qn_feed_compare(a, b) < 0 ? b : a;
}

/* From lo to hi. (A division for each command would cost as much as the rest.)
 */
static struct kept *record(const struct qn_feed *f, uint64_t number)
{
    QN_DASSERT(f->block != NULL);
    QN_DASSERT(number - f->lo <= f->o.records);
    const uint64_t i = f->lo_at + (number - f->lo);
    return &f->block[i < f->o.records ? i : i - f->o.records];
}

/* ---- the block ----------------------------------------------------------- */

uint64_t qn_feed_bytes(const struct qn_feed_opts *o)
{
    return o->records * (uint64_t)sizeof(struct kept) + o->bytes;
}

static void empty(struct qn_feed *f)
{
    f->cut += f->hi - f->lo;
    f->first = f->next;
    f->lo = f->hi = f->lo_at = f->bytes = 0;
    f->head = f->tail = f->head_at = 0;
}

/* One seeks: what comes next is recorded. */
static void wake(struct qn_feed *f)
{
    f->first = f->idle ? f->next : f->first;
    f->idle = f->all_gone = false;
}

static int block_take(struct qn_feed *f)
{
    if (f->block == NULL) {
        const struct qn_alloc *a = f->o.alloc;
        f->block = a->resize(a->ctx, NULL, qn_feed_bytes(&f->o));
        f->lo = f->hi; /* of a block that was given back */
        empty(f);
        f->idle = f->all_gone = false;
        f->look_due = f->cut;
    }
    return f->block != NULL ? QN_OK : QN_ENOMEM;
}

static void block_give(struct qn_feed *f)
{
    if (f->block != NULL) {
        (void)f->o.alloc->resize(f->o.alloc->ctx, f->block, 0);
    }
    f->block = NULL;
}

bool qn_feed_valid(const struct qn_feed_opts *o)
{
    return o->bytes != 0 && o->bytes <= BYTES_MAX && o->records != 0 &&
           o->subscribers != 0 && o->subscribers <= QN_FEED_SUBSCRIBERS_MAX;
}

int qn_feed_create(struct qn_feed **out, const struct qn_feed_opts *o)
{
    if (!qn_feed_valid(o)) {
        return QN_EINVAL;
    }
    const struct qn_alloc *a = o->alloc != NULL ? o->alloc : &qn_alloc_malloc;
    struct qn_feed *f = a->resize(a->ctx, NULL, sizeof *f);
    if (f == NULL) {
        return QN_ENOMEM;
    }
    *f = (struct qn_feed){.o = *o, .next = {.slot = o->applied + 1}};
    f->o.alloc = a;
    if (o->retain && block_take(f) != QN_OK) {
        qn_feed_destroy(f);
        return QN_ENOMEM;
    }
    *out = f;
    return QN_OK;
}

void qn_feed_destroy(struct qn_feed *f)
{
    if (f != NULL) {
        block_give(f);
        (void)f->o.alloc->resize(f->o.alloc->ctx, f, 0);
    }
}

/* ---- recording ----------------------------------------------------------- */

static void cut_oldest(struct qn_feed *f)
{
    QN_ASSERT(f->lo < f->hi);
    const struct kept *k = record(f, f->lo);
    QN_ASSERT(k->end >= f->tail);
    QN_ASSERT(f->bytes >= k->r.bytes.len);
    f->first = k->r.to;
    f->tail = k->end;
    f->bytes -= k->r.bytes.len;
    f->lo++;
    f->lo_at = f->lo_at + 1 < f->o.records ? f->lo_at + 1 : 0;
    f->cut++;
}

/* Room for one record with `len` bytes in one part. @return false: there is
 * none, whatever is cut. */
static bool make_room(struct qn_feed *f, uint64_t len)
{
    uint64_t left = f->o.bytes - f->head_at;
    uint64_t skip = len > left ? left : 0;
    while (f->lo < f->hi && (f->hi - f->lo == f->o.records ||
                             f->head + skip + len - f->tail > f->o.bytes)) {
        cut_oldest(f);
    }
    f->head += skip;
    f->head_at = skip > 0 ? 0 : f->head_at;
    if (f->lo == f->hi) {
        f->head = f->tail = f->head_at = 0;
    }
    return len <= f->o.bytes;
}

struct qn_feed_position qn_feed_first(const struct qn_feed *f)
{
    return f->block != NULL && !f->idle ? f->first : f->next;
}

static bool is_gone(const struct qn_feed *f, struct qn_feed_position at)
{
    return qn_feed_compare(at, qn_feed_first(f)) < 0;
}

static uint32_t count_gone(const struct qn_feed *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->o.subscribers; i++) {
        const struct subscriber *s = &f->subscriber[i];
        n += s->used && is_gone(f, s->at);
    }
    return n;
}

/* All that is kept was recorded since the last look. Is it kept for nothing? */
static void look(struct qn_feed *f)
{
    const bool all = !f->o.retain && count_gone(f) == f->subscribers;
    f->look_due = f->cut + QN_MAX(f->hi - f->lo, 1u);
    if (all && f->all_gone) {
        empty(f);
        f->idle = true;
    }
    f->all_gone = all;
}

/* What comes next reaches to before `to`: `r`, but for kind and positions. */
static void add(struct qn_feed *f, enum qn_feed_kind kind,
                struct qn_feed_position to, const struct qn_feed_record *r)
{
    const struct qn_feed_position at = f->next;
    const uint64_t len = r->bytes.len;
    if (f->block != NULL && !f->idle && f->cut >= f->look_due) {
        look(f);
    }
    f->next = to;
    if (f->block == NULL || f->idle) {
        return;
    }
    if (!make_room(f, len)) {
        f->first = to;
        f->cut++;
        return;
    }
    struct kept *k = record(f, f->hi);
    uint8_t *bytes = (uint8_t *)(f->block + f->o.records) + f->head_at;
    QN_ASSERT(f->head_at + len <= f->o.bytes);
    if (len != 0) {
        memcpy(bytes, r->bytes.data, len);
    }
    f->head += len;
    f->head_at = f->head_at + len < f->o.bytes ? f->head_at + len : 0;
    f->bytes += len;
    f->hi++;
    k->r = *r;
    k->r.kind = kind;
    k->r.at = at;
    k->r.to = to;
    k->r.bytes.data = bytes;
    k->end = f->head;
    QN_ASSERT(f->bytes <= f->o.bytes);
}

/* What comes next has position `to`, or a later one. */
static void pass_to(struct qn_feed *f, qn_slot_t to)
{
    if (to > f->next.slot) {
        const struct qn_feed_record nothing = {.bytes = {NULL, 0}};
        add(f, QN_FEED_GAP, (struct qn_feed_position){.slot = to}, &nothing);
    }
}

void qn_feed_command(struct qn_feed *f, const struct qn_feed_record *c)
{
    QN_ASSERT(c->at.slot >= f->next.slot);
    pass_to(f, c->at.slot);
    const struct qn_feed_position to = {f->next.slot, f->next.number + 1};
    add(f, QN_FEED_COMMAND, to, c);
}

void qn_feed_slot_end(struct qn_feed *f, qn_slot_t slot)
{
    QN_ASSERT(slot >= f->next.slot);
    pass_to(f, slot);
    f->next = (struct qn_feed_position){.slot = slot + 1};
}

void qn_feed_snapshot(struct qn_feed *f, qn_slot_t slot)
{
    const struct qn_feed_position behind = {.slot = slot + 1};
    QN_ASSERT(qn_feed_compare(behind, f->next) >= 0);
    pass_to(f, slot + 1);
}

/* ---- subscribers --------------------------------------------------------- */

static struct subscriber *of(struct qn_feed *f, uint32_t id)
{
    QN_ASSERT(id < f->o.subscribers);
    QN_ASSERT(f->subscriber[id].used);
    return &f->subscriber[id];
}

static const struct subscriber *of_const(const struct qn_feed *f, uint32_t id)
{
    QN_ASSERT(id < f->o.subscribers);
    QN_ASSERT(f->subscriber[id].used);
    return &f->subscriber[id];
}

/* The first record that reaches beyond `at`; hi: none. */
static uint64_t search(const struct qn_feed *f, struct qn_feed_position at)
{
    uint64_t lo = f->lo;
    uint64_t hi = f->hi;
    while (lo < hi) {
        uint64_t middle = lo + (hi - lo) / 2;
        if (qn_feed_compare(record(f, middle)->r.to, at) <= 0) {
            lo = middle + 1;
        } else {
            hi = middle;
        }
    }
    return lo;
}

int qn_feed_subscribe(struct qn_feed *f, const struct qn_feed_position *from,
                      uint32_t *id)
{
    uint32_t i = 0;
    while (i < f->o.subscribers && f->subscriber[i].used) {
        i++;
    }
    if (i == f->o.subscribers) {
        return QN_EDQUOT;
    }
    if (from != NULL && is_gone(f, *from)) {
        return QN_EGONE;
    }
    if (block_take(f) != QN_OK) {
        return QN_ENOMEM;
    }
    f->subscriber[i].used = true;
    f->subscribers++;
    *id = i;
    int err = qn_feed_seek(f, i, from);
    QN_ASSERT(err == QN_OK);
    return QN_OK;
}

void qn_feed_unsubscribe(struct qn_feed *f, uint32_t id)
{
    of(f, id)->used = false;
    f->subscribers--;
    if (f->subscribers == 0 && !f->o.retain) {
        block_give(f);
    }
}

int qn_feed_seek(struct qn_feed *f, uint32_t id,
                 const struct qn_feed_position *to)
{
    struct subscriber *s = of(f, id);
    if (to != NULL && is_gone(f, *to)) {
        return QN_EGONE;
    }
    wake(f);
    s->at = to != NULL ? *to : f->next;
    s->index = search(f, s->at);
    return QN_OK;
}

int qn_feed_read(struct qn_feed *f, uint32_t id, struct qn_feed_record *r)
{
    struct subscriber *s = of(f, id);
    if (is_gone(f, s->at)) {
        return QN_EGONE;
    }
    s->index = QN_MAX(s->index, f->lo);
    while (s->index < f->hi &&
           qn_feed_compare(record(f, s->index)->r.to, s->at) <= 0) {
        s->index++;
    }
    if (s->index == f->hi) {
        s->at = later(s->at, f->next);
        return QN_EAGAIN;
    }
    *r = record(f, s->index++)->r;
    r->at = r->kind == QN_FEED_GAP ? later(r->at, s->at) : r->at;
    s->at = r->to;
    return QN_OK;
}

struct qn_feed_position qn_feed_position(const struct qn_feed *f, uint32_t id)
{
    struct qn_feed_position at = of_const(f, id)->at;
    if (is_gone(f, at)) {
        return at;
    }
    uint64_t i = search(f, at);
    return later(at, i < f->hi ? record(f, i)->r.at : f->next);
}

uint32_t qn_feed_lag(const struct qn_feed *f, uint32_t id)
{
    return (uint32_t)(f->hi - search(f, of_const(f, id)->at));
}

void qn_feed_status(const struct qn_feed *f, struct qn_feed_status *out)
{
    *out = (struct qn_feed_status){.first = qn_feed_first(f),
                                   .next = f->next,
                                   .subscribers = f->subscribers,
                                   .gone = count_gone(f),
                                   .cut = f->cut};
    if (f->block != NULL) {
        out->records = (uint32_t)(f->hi - f->lo);
        out->bytes = f->bytes;
    }
}
