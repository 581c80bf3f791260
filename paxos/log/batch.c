/*
 * Commands and batches: batch.h describes the bytes.
 *
 * A run gives the number and the bytes of its commands, so a search for
 * duplicates walks runs and never commands. An origin's request is copied
 * into a batch with one memcpy and skipped with one addition.
 *
 * Checked once, trusted afterwards: qn_batch_check and qn_commands_check look
 * at every length before anything is stored. The readers below assert what the
 * check has shown. Varints have their shortest form, so the bytes of a batch
 * are a function of its content: two batches are equal if their bytes are.
 */
#include "paxos/log/batch.h"

#include <string.h>

#include "core/base/little_endian.h"

/* ------------------------------------------------------------- varints -- */

static size_t put_varint(uint8_t *to, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) {
        to[n++] = (uint8_t)(v | 0x80);
    }
    to[n++] = (uint8_t)v;
    QN_DASSERT(n <= QN_VARINT_MAX);
    return n;
}

/** Take a varint off the front of *s. @return false: malformed. */
static bool take_varint(struct qn_slice *s, uint64_t *v)
{
    uint64_t x = 0;
    for (size_t i = 0; i < s->len && i < QN_VARINT_MAX; i++) {
        uint8_t byte = s->data[i];
        if (i == 9 && byte > 1) {
            return false; /* beyond 64 bits */
        }
        x |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            if (byte == 0 && i != 0) {
                return false; /* not the shortest form */
            }
            s->data += i + 1;
            s->len -= i + 1;
            *v = x;
            return true;
        }
    }
    return false;
}

static struct qn_slice take_bytes(struct qn_slice *s, size_t n)
{
    QN_DASSERT(n <= s->len);
    struct qn_slice front = {s->data, n};
    s->data += n;
    s->len -= n;
    return front;
}

/* ------------------------------------------------------------ commands -- */

int qn_commands_add(struct qn_refbuf **b, const struct qn_slice *parts,
                    uint32_t n)
{
    size_t len = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (parts[i].len > QN_COMMAND_MAX - len) {
            return QN_EMSGSIZE;
        }
        len += parts[i].len;
    }
    if (qn_refbuf_reserve(b, QN_VARINT_MAX + len) != QN_OK) {
        return QN_ENOMEM;
    }
    uint8_t *to = (*b)->bytes + (*b)->len;
    to += put_varint(to, 2 * (uint64_t)len);
    for (uint32_t i = 0; i < n; i++) {
        if (parts[i].len != 0) {
            memcpy(to, parts[i].data, parts[i].len);
            to += parts[i].len;
        }
    }
    (*b)->len = (uint32_t)(to - (*b)->bytes);
    QN_ASSERT((*b)->len <= (*b)->cap);
    return QN_OK;
}

int qn_commands_refer(struct qn_refbuf **b, const struct qn_arena_place *p)
{
    QN_ASSERT(p->index != 0); /* as take_reference reads it */
    QN_ASSERT(p->len <= QN_COMMAND_MAX);
    if (qn_refbuf_reserve(b, 3 * QN_VARINT_MAX) != QN_OK) {
        return QN_ENOMEM;
    }
    uint8_t *to = (*b)->bytes + (*b)->len;
    to += put_varint(to, 2 * p->len + 1);
    to += put_varint(to, p->index);
    to += put_varint(to, p->at);
    (*b)->len = (uint32_t)(to - (*b)->bytes);
    return QN_OK;
}

static bool take_reference(struct qn_slice *list, struct qn_wanted *w)
{
    return take_varint(list, &w->place.index) &&
           take_varint(list, &w->place.at) && w->place.index != 0;
}

static bool take_wanted(struct qn_slice *list, struct qn_wanted *w)
{
    uint64_t word;
    if (!take_varint(list, &word) || word / 2 > QN_COMMAND_MAX) {
        return false;
    }
    w->refers = (word & 1) != 0;
    w->place.len = word / 2;
    if (w->refers) {
        return take_reference(list, w);
    }
    if (word / 2 > list->len) {
        return false;
    }
    w->bytes = take_bytes(list, (size_t)(word / 2));
    return true;
}

static bool take_command(struct qn_slice *list, struct qn_slice *command)
{
    struct qn_wanted w;
    bool ok = take_wanted(list, &w) && !w.refers;
    *command = ok ? w.bytes : *command;
    return ok;
}

bool qn_commands_next(struct qn_slice *list, struct qn_slice *command)
{
    if (list->len == 0) {
        return false;
    }
    bool ok = take_command(list, command);
    QN_ASSERT(ok);
    return true;
}

int64_t qn_commands_check(struct qn_slice list)
{
    int64_t n = 0;
    struct qn_slice command;
    for (; list.len != 0; n++) {
        if (!take_command(&list, &command)) {
            return QN_ECORRUPT;
        }
    }
    return n;
}

static size_t varint_bytes(uint64_t v)
{
    size_t n = 1;
    for (; v >= 0x80; v >>= 7) {
        n++;
    }
    return n;
}

uint64_t qn_command_bytes(uint64_t len)
{
    return varint_bytes(2 * len) + len;
}

bool qn_wanted_next(struct qn_slice *list, struct qn_wanted *w)
{
    if (list->len == 0) {
        return false;
    }
    bool ok = take_wanted(list, w);
    QN_ASSERT(ok);
    return true;
}

int qn_wanted_check(struct qn_slice list, struct qn_wants *out)
{
    struct qn_wanted w;
    *out = (struct qn_wants){.count = 0};
    for (; list.len != 0; out->count++) {
        if (!take_wanted(&list, &w)) {
            return QN_ECORRUPT;
        }
        out->refers |= w.refers;
        out->bytes += qn_command_bytes(w.place.len);
    }
    return QN_OK;
}

/* ------------------------------------------------------------- batches -- */

struct qn_refbuf *qn_batch_create(const struct qn_alloc *a, size_t cap)
{
    struct qn_refbuf *b = qn_refbuf_create(a, QN_BATCH_HEAD + cap);
    if (b != NULL) {
        memset(b->bytes, 0, QN_BATCH_HEAD);
        b->len = QN_BATCH_HEAD;
    }
    return b;
}

static void count_add(struct qn_refbuf *b, uint32_t more)
{
    qn_put_le(b->bytes + 8, (uint32_t)qn_get_le(b->bytes + 8, 4) + more, 4);
}

void qn_batch_begin(struct qn_refbuf *b, const struct qn_command_run *g,
                    uint64_t bytes)
{
    QN_ASSERT(g->count != 0); /* each range as take_run reads it */
    QN_ASSERT(g->origin < QN_NODES_MAX);
    QN_ASSERT(g->inc != 0);
    QN_ASSERT(g->first != 0);
    QN_ASSERT(g->count <= bytes);
    QN_ASSERT(b->cap - b->len >= QN_RUN_HEAD + bytes);
    uint8_t *to = b->bytes + b->len;
    *to++ = (uint8_t)g->origin;
    to += put_varint(to, g->inc);
    to += put_varint(to, g->first);
    to += put_varint(to, g->count);
    to += put_varint(to, bytes);
    b->len = (uint32_t)(to - b->bytes);
    count_add(b, g->count);
}

void qn_batch_put(struct qn_refbuf *b, uint64_t len)
{
    b->len += (uint32_t)put_varint(b->bytes + b->len, 2 * len);
}

int qn_batch_add(struct qn_refbuf **batch, const struct qn_command_run *g)
{
    if (qn_refbuf_reserve(batch, QN_RUN_HEAD + g->commands.len) != QN_OK) {
        return QN_ENOMEM;
    }
    struct qn_refbuf *b = *batch;
    qn_batch_begin(b, g, g->commands.len);
    memcpy(b->bytes + b->len, g->commands.data, g->commands.len);
    b->len += (uint32_t)g->commands.len;
    return QN_OK;
}

uint32_t qn_batch_strip(struct qn_refbuf *batch, qn_node_t origin, uint64_t inc)
{
    struct qn_slice all = {batch->bytes, batch->len};
    struct qn_command_run g;
    uint32_t at = QN_BATCH_HEAD;
    uint32_t kept = at;
    uint32_t went = 0;
    for (uint32_t from = at; qn_batch_next(all, &at, &g); from = at) {
        if (g.origin == origin && g.inc == inc) {
            went += g.count;
            continue;
        }
        memmove(batch->bytes + kept, batch->bytes + from, at - from);
        kept += at - from;
    }
    QN_ASSERT(kept <= batch->len);
    QN_ASSERT(went <= qn_batch_count(all));
    batch->len = kept;
    count_add(batch, 0u - went);
    return went;
}

void qn_batch_set_stamp(struct qn_refbuf *batch, uint64_t stamp_ms)
{
    QN_ASSERT(batch->refs == 1); /* it is not shared yet */
    QN_ASSERT(batch->len >= QN_BATCH_HEAD);
    qn_put_le(batch->bytes, stamp_ms, 8);
}

uint64_t qn_batch_stamp(struct qn_slice batch)
{
    QN_ASSERT(batch.len >= QN_BATCH_HEAD);
    return qn_get_le(batch.data, 8);
}

uint32_t qn_batch_count(struct qn_slice batch)
{
    QN_ASSERT(batch.len >= QN_BATCH_HEAD);
    return (uint32_t)qn_get_le(batch.data + 8, 4);
}

static bool take_run(struct qn_slice *s, struct qn_command_run *g)
{
    uint64_t count;
    uint64_t bytes;
    if (s->len == 0 || s->data[0] >= QN_NODES_MAX) {
        return false;
    }
    g->origin = take_bytes(s, 1).data[0];
    if (!take_varint(s, &g->inc) || !take_varint(s, &g->first) ||
        !take_varint(s, &count) || !take_varint(s, &bytes) || bytes > s->len ||
        count == 0 || count > bytes || g->first == 0 || g->inc == 0 ||
        g->first > UINT64_MAX - count) {
        return false;
    }
    g->count = (uint32_t)count;
    g->commands = take_bytes(s, (size_t)bytes);
    return true;
}

bool qn_batch_next(struct qn_slice batch, uint32_t *at,
                   struct qn_command_run *g)
{
    *at = *at == 0 ? QN_BATCH_HEAD : *at;
    QN_ASSERT(*at <= batch.len);
    struct qn_slice rest = {batch.data + *at, batch.len - *at};
    if (rest.len == 0) {
        return false;
    }
    bool ok = take_run(&rest, g);
    QN_ASSERT(ok);
    *at = (uint32_t)(batch.len - rest.len);
    return true;
}

int qn_batch_check(struct qn_slice batch)
{
    if (batch.len < QN_BATCH_HEAD || batch.len > QN_REFBUF_MAX) {
        return QN_ECORRUPT;
    }
    struct qn_slice rest = {batch.data + QN_BATCH_HEAD,
                            batch.len - QN_BATCH_HEAD};
    uint64_t count = 0;
    struct qn_command_run g;
    while (rest.len != 0) {
        if (!take_run(&rest, &g) ||
            qn_commands_check(g.commands) != (int64_t)g.count) {
            return QN_ECORRUPT;
        }
        count += g.count;
    }
    return count == qn_batch_count(batch) ? QN_OK : QN_ECORRUPT;
}
