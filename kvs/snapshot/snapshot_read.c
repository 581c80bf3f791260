/*
 * Chunks: reading.
 *
 * A chunk is checked in two steps: its head, then its body, by kind. Kinds
 * never decrease, and META is the first chunk and no other. All errors are
 * sticky.
 *
 * The transfer has found damage, not malice. The lengths are checked here, so
 * that a misbehaving peer cannot crash this process.
 */
#include "core/base/assert.h"
#include "core/base/err.h"
#include "kvs/snapshot/snapshot.h"
#include "kvs/snapshot/snapshot_internal.h"
#include "kvs/store/snapshot_iter.h"

/* ---- bytes ---- */

/* Take n bytes off the front of *s. @return NULL: it is shorter. */
static const uint8_t *take(struct qn_slice *s, size_t n)
{
    if (s->len < n) {
        return NULL;
    }
    const uint8_t *p = s->data;
    s->data += n;
    s->len -= n;
    return p;
}

static bool take_into(struct qn_slice *s, void *to, size_t n)
{
    const uint8_t *p = take(s, n);
    if (p != NULL && n != 0) {
        memcpy(to, p, n);
    }
    return p != NULL;
}

static int refuse(struct qn_snapshot_reader *r, const char *why)
{
    r->why = why;
    return QN_ECORRUPT;
}

/* ---- META ---- */

static int read_meta(struct qn_snapshot_reader *r, struct qn_slice s,
                     const struct qn_snapshot_sink *sink)
{
    struct qn_snapshot_fixed f;
    struct qn_snapshot_meta m = {.position = r->position};
    if (!take_into(&s, &f, sizeof f) || f.nodes != r->nodes || f.dbs == 0 ||
        f.dbs > QN_STORE_DBS_MAX) {
        return refuse(r, "the snapshot is of another group");
    }
    m.applied_ms = f.applied_ms;
    m.nodes = f.nodes;
    m.dbs = r->dbs = f.dbs;
    m.seed = f.seed;
    m.keys = r->keys_said = f.keys;
    m.logical_bytes = r->logical_bytes_said = f.logical_bytes;
    if (!take_into(&s, m.refused, f.nodes * sizeof(struct qn_session)) ||
        !take_into(&s, m.flushed, f.dbs * sizeof(qn_slot_t))) {
        return refuse(r, "the snapshot's META is malformed");
    }
    m.config = *r->start;
    if (qn_config_runtime_read(&m.config, &s) != QN_OK) {
        return refuse(r, "the snapshot has an unknown option");
    }
    return s.len != 0 ? refuse(r, "the snapshot's META is too long")
                      : sink->meta(sink->ctx, &m);
}

/* ---- ENTRIES ---- */

static int give(struct qn_snapshot_reader *r, struct qn_walked *w,
                const uint8_t *bytes, const struct qn_snapshot_sink *sink)
{
    w->key.data = bytes;
    w->value.data = bytes + w->key.len;
    r->keys++;
    r->logical_bytes += w->key.len + w->value.len + QN_STORE_ENTRY_COST;
    return sink->entry(sink->ctx, w);
}

/* The next bytes of an entry under way. */
static int read_more(struct qn_snapshot_reader *r, struct qn_slice *s,
                     const struct qn_snapshot_sink *sink)
{
    size_t whole = r->split.key.len + r->split.value.len;
    size_t n = QN_MIN(s->len, whole - r->body.len);
    qn_buf_append(&r->body, take(s, n), n);
    if (r->body.oom) {
        r->why = "an entry is too long for this process' memory";
        return QN_ENOMEM;
    }
    if (r->body.len < whole) {
        return QN_OK;
    }
    r->splitting = false;
    int err = give(r, &r->split, r->body.data, sink);
    qn_buf_free(&r->body);
    return err;
}

static bool read_entry_head(const struct qn_snapshot_reader *r,
                            struct qn_slice *s, struct qn_walked *w)
{
    struct qn_snapshot_entry h;
    if (!take_into(s, &h, sizeof h)) {
        return false;
    }
    *w = (struct qn_walked){.db = h.db,
                            .key.len = h.key_len,
                            .value.len = h.value_len,
                            .slot = h.slot};
    return (h.flags & ~QN_SNAPSHOT_DEADLINE) == 0 && h.zero == 0 &&
           h.zero_too == 0 && h.db < r->dbs && h.key_len <= QN_STORE_KEY_MAX &&
           h.value_len <= QN_STORE_VAL_MAX && h.slot <= r->position &&
           ((h.flags & QN_SNAPSHOT_DEADLINE) == 0 ||
            (take_into(s, &w->deadline_ms, 8) && w->deadline_ms != 0));
}

static int read_entries(struct qn_snapshot_reader *r, struct qn_slice s,
                        const struct qn_snapshot_sink *sink)
{
    int err = QN_OK;
    if (r->splitting) {
        err = read_more(r, &s, sink);
    }
    while (err == QN_OK && s.len != 0) {
        struct qn_walked w;
        if (!read_entry_head(r, &s, &w)) {
            return refuse(r, "an entry is malformed");
        }
        const uint8_t *bytes = take(&s, w.key.len + w.value.len);
        if (bytes != NULL) {
            err = give(r, &w, bytes, sink);
        } else {
            r->split = w;
            r->splitting = true;
            err = read_more(r, &s, sink);
        }
    }
    return err;
}

/* ---- STRIPES, END ---- */

static int read_stripes(struct qn_snapshot_reader *r, struct qn_slice s,
                        const struct qn_snapshot_sink *sink)
{
    qn_slot_t slots[QN_SNAPSHOT_CHUNK / sizeof(qn_slot_t)]; /* aligned */
    uint32_t first = 0, count = 0;
    if (!take_into(&s, &first, 4) || !take_into(&s, &count, 4) || count == 0 ||
        s.len != count * sizeof(qn_slot_t) || first < r->stripe ||
        first > QN_STORE_STRIPES || count > QN_STORE_STRIPES - first) {
        return refuse(r, "stripes are malformed");
    }
    r->stripe = first + count;
    memcpy(slots, s.data, s.len);
    for (uint32_t i = 0; i < count; i++) {
        if (slots[i] > r->position) {
            return refuse(r, "a stripe is newer than the snapshot");
        }
    }
    return sink->stripes(sink->ctx, first, count, slots);
}

static int read_end(struct qn_snapshot_reader *r, struct qn_slice s)
{
    uint64_t totals[2];
    if (s.len != sizeof totals || !take_into(&s, totals, sizeof totals)) {
        return refuse(r, "the snapshot's end is malformed");
    }
    if (totals[0] != r->keys || r->keys != r->keys_said ||
        totals[1] != r->logical_bytes ||
        r->logical_bytes != r->logical_bytes_said) {
        return refuse(
            r,
            "the snapshot has other numbers of keys or bytes than announced");
    }
    r->complete = true;
    return QN_OK;
}

/* ---- the reader ---- */

void qn_snapshot_reader_init(struct qn_snapshot_reader *r, uint32_t nodes,
                             qn_slot_t position, const struct qn_config *start)
{
    *r = (struct qn_snapshot_reader){
        .nodes = nodes, .position = position, .start = start};
}

void qn_snapshot_reader_fini(struct qn_snapshot_reader *r)
{
    qn_buf_free(&r->body);
}

/* Can it be the next chunk? */
static int check_head(struct qn_snapshot_reader *r, struct qn_slice chunk,
                      struct qn_snapshot_head *h)
{
    if (r->complete) {
        return refuse(r, "the snapshot continues behind its end");
    }
    if (chunk.len < sizeof *h || chunk.len > QN_SNAPSHOT_CHUNK) {
        return refuse(r, "a chunk is too short or too long");
    }
    memcpy(h, chunk.data, sizeof *h);
    if (h->version != QN_SNAPSHOT_VERSION || h->zero != 0 || h->zero_too != 0) {
        return refuse(r, "the snapshot has another version");
    }
    if ((h->kind == QN_SNAPSHOT_META) == r->began || h->kind < r->kind ||
        h->kind > QN_SNAPSHOT_END ||
        (r->splitting && h->kind != QN_SNAPSHOT_ENTRIES)) {
        return refuse(r, "the snapshot's parts are out of order");
    }
    return QN_OK;
}

static int read_chunk(struct qn_snapshot_reader *r, struct qn_slice chunk,
                      const struct qn_snapshot_sink *sink)
{
    struct qn_snapshot_head h;
    int err = check_head(r, chunk, &h);
    if (err != QN_OK) {
        return err;
    }
    r->began = true;
    r->kind = h.kind;
    struct qn_slice body = {chunk.data + sizeof h, chunk.len - sizeof h};
    switch ((enum qn_snapshot_kind)h.kind) {
    case QN_SNAPSHOT_META:
        return read_meta(r, body, sink);
    case QN_SNAPSHOT_ENTRIES:
        return read_entries(r, body, sink);
    case QN_SNAPSHOT_STRIPES:
        return read_stripes(r, body, sink);
    case QN_SNAPSHOT_END:
        break;
    }
    return read_end(r, body);
}

int qn_snapshot_read(struct qn_snapshot_reader *r, struct qn_slice chunk,
                     const struct qn_snapshot_sink *sink)
{
    if (r->err == QN_OK) {
        r->err = read_chunk(r, chunk, sink);
        if (r->err != QN_OK && r->why == NULL) {
            r->why = qn_strerror(r->err);
        }
    }
    return r->err;
}
