#include "kvs/snapshot/snapshot.h"

/*
 * Chunks: writing.
 *
 * Each call writes one chunk of one kind, so an error or a wait concerns a
 * whole chunk and the reader has one body to parse. META fits one chunk by its
 * limits (static_assert below). Entries are packed until the next one does not
 * fit; an entry longer than a chunk begins wherever there is room for SPLIT_MIN
 * bytes of it. The writer remembers only how much of the current entry was
 * sent: it peeks at the entry again for each chunk, because the entry may have
 * moved from the table to the cut's queue meanwhile.
 *
 * Runs of stripes that are 0 are left out between chunks.
 */

#include <assert.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "kvs/snapshot/snapshot_internal.h"
#include "kvs/store/snapshot_iter.h"

#define BODY_MAX (QN_SNAPSHOT_CHUNK - sizeof(struct qn_snapshot_head))
#define SPLIT_MIN                                                              \
    1024u                 /* bytes that must be left for a long entry to       \
                             begin */
#define STRIPES_MAX 4000u /* in one chunk */

static_assert(sizeof(struct qn_snapshot_head) == QN_SNAPSHOT_HEAD,
              "the head of a chunk");
static_assert(QN_CONFIG_RUNTIME_MAX + sizeof(struct qn_snapshot_fixed) +
                      QN_NODES_MAX * sizeof(struct qn_session) +
                      QN_STORE_DBS_MAX * sizeof(qn_slot_t) <=
                  BODY_MAX,
              "META is one chunk");
static_assert(8 + STRIPES_MAX * sizeof(qn_slot_t) <= BODY_MAX, "STRIPES");

/* ---- the head ---- */

static size_t chunk_end(uint8_t kind, uint8_t *chunk, size_t body)
{
    const struct qn_snapshot_head h = {.version = QN_SNAPSHOT_VERSION,
                                       .kind = kind};
    memcpy(chunk, &h, sizeof h);
    return sizeof h + body;
}

/* ---- META ---- */

static uint8_t *put(uint8_t *to, const void *p, size_t n)
{
    if (n != 0) {
        memcpy(to, p, n);
    }
    return to + n;
}

static size_t put_meta(uint8_t *body, const struct qn_snapshot_meta *m)
{
    const struct qn_snapshot_fixed f = {
        .applied_ms = m->applied_ms,
        .seed = m->seed,
        .keys = m->keys,
        .logical_bytes = m->logical_bytes,
        .nodes = m->nodes,
        .dbs = m->dbs,
    };
    uint8_t *to = put(body, &f, sizeof f);
    to = put(to, m->refused, m->nodes * sizeof m->refused[0]);
    to = put(to, m->flushed, m->dbs * sizeof m->flushed[0]);
    to += qn_config_runtime_write(&m->config, to);
    return (size_t)(to - body);
}

/* ---- ENTRIES ---- */

static struct qn_slice part(struct qn_slice s, uint64_t from, uint64_t max)
{
    from = QN_MIN(from, s.len);
    return (struct qn_slice){s.data + from, QN_MIN(s.len - from, max)};
}

/* The key and value of an entry behind the `sent` first bytes. */
static size_t put_body(struct qn_snapshot_writer *w, const struct qn_walked *e,
                       uint8_t *to, size_t room)
{
    struct qn_slice key = part(e->key, w->sent, room);
    uint64_t skip = w->sent + key.len - e->key.len; /* of the value */
    struct qn_slice value = {NULL, 0};
    if (w->sent + key.len >= e->key.len) {
        value = part(e->value, skip, room - key.len);
    }
    put(put(to, key.data, key.len), value.data, value.len);
    w->sent += key.len + value.len;
    return key.len + value.len;
}

static size_t put_entry_head(const struct qn_walked *e, uint8_t *to)
{
    const struct qn_snapshot_entry h = {
        .flags = e->deadline_ms != 0 ? QN_SNAPSHOT_DEADLINE : 0,
        .db = (uint8_t)e->db,
        .key_len = (uint32_t)e->key.len,
        .value_len = (uint32_t)e->value.len,
        .slot = e->slot,
    };
    uint8_t *end = put(to, &h, sizeof h);
    if (e->deadline_ms != 0) {
        end = put(end, &e->deadline_ms, sizeof e->deadline_ms);
    }
    return (size_t)(end - to);
}

/* As much of an entry as fits into body[at ..). *at moves. @return true if it
 * is all sent. */
static bool put_entry(struct qn_snapshot_writer *w, const struct qn_walked *e,
                      uint8_t *body, size_t *at)
{
    size_t head =
        sizeof(struct qn_snapshot_entry) + (e->deadline_ms != 0 ? 8 : 0);
    uint64_t bytes = (uint64_t)e->key.len + e->value.len;
    size_t room = BODY_MAX - *at;
    if (w->sent == 0) {
        bool is_long = head + bytes > BODY_MAX;
        if (room < (is_long ? SPLIT_MIN : head + bytes)) {
            return false;
        }
        *at += put_entry_head(e, body + *at);
        room -= head;
    }
    *at += put_body(w, e, body + *at, room);
    return w->sent == bytes;
}

static int put_entries(struct qn_snapshot_writer *w,
                       const struct qn_snapshot_source *s, uint8_t *body,
                       size_t *at)
{
    for (;;) {
        struct qn_walked e;
        int err = s->peek(s->ctx, &e);
        if (err != QN_OK) {
            return err;
        }
        if (!put_entry(w, &e, body, at)) {
            return QN_OK;
        }
        w->sent = 0;
        s->next(s->ctx);
    }
}

/* ---- STRIPES, END ---- */

/* Write the next stripes, beginning with the first that is not 0. @return
 * bytes; 0: all done. */
static size_t put_stripes(struct qn_snapshot_writer *w, const qn_slot_t *stripe,
                          uint8_t *body)
{
    while (w->stripe < QN_STORE_STRIPES && stripe[w->stripe] == 0) {
        w->stripe++;
    }
    uint32_t n = QN_MIN(QN_STORE_STRIPES - w->stripe, STRIPES_MAX);
    if (n == 0) {
        return 0;
    }
    uint8_t *to = put(body, &w->stripe, 4);
    to = put(to, &n, 4);
    to = put(to, &stripe[w->stripe], n * sizeof *stripe);
    w->stripe += n;
    return (size_t)(to - body);
}

static size_t put_end(const struct qn_snapshot_meta *m, uint8_t *body)
{
    const uint64_t totals[2] = {m->keys, m->logical_bytes};
    put(body, totals, sizeof totals);
    return sizeof totals;
}

/* ---- the writer ---- */

void qn_snapshot_writer_init(struct qn_snapshot_writer *w,
                             const struct qn_snapshot_meta *meta)
{
    QN_ASSERT(meta->nodes <= QN_NODES_MAX && meta->dbs <= QN_STORE_DBS_MAX);
    *w = (struct qn_snapshot_writer){.meta = meta, .kind = QN_SNAPSHOT_META};
}

int qn_snapshot_write(struct qn_snapshot_writer *w,
                      const struct qn_snapshot_source *source, uint8_t *chunk,
                      size_t *len)
{
    uint8_t *body = chunk + sizeof(struct qn_snapshot_head);
    size_t n = 0;
    if (w->ended) {
        return QN_ENOENT;
    }
    if (w->kind == QN_SNAPSHOT_META) {
        n = put_meta(body, w->meta);
        *len = chunk_end(w->kind++, chunk, n);
        return QN_OK;
    }
    if (w->kind == QN_SNAPSHOT_ENTRIES) {
        int err = put_entries(w, source, body, &n);
        if (err == QN_EABORTED || (n == 0 && err != QN_ENOENT)) {
            return err;
        }
        if (n != 0) {
            *len = chunk_end(w->kind, chunk, n);
            return QN_OK;
        }
        w->kind++;
    }
    if (w->kind == QN_SNAPSHOT_STRIPES) {
        n = put_stripes(w, source->stripes(source->ctx), body);
        if (n != 0) {
            *len = chunk_end(w->kind, chunk, n);
            return QN_OK;
        }
        w->kind++;
    }
    *len = chunk_end(w->kind, chunk, put_end(w->meta, body));
    w->ended = true;
    return QN_OK;
}
