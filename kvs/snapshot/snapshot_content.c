/*
 * The two halves of a store's transfer. A cut belongs to a store, and the store
 * may be replaced while the cut is given: then the new one has no cut, and the
 * donation is given up.
 *
 * The reader cannot repeat a chunk that it has read in part. So short memory is
 * not reported as QN_ENOMEM, which would mean "nothing has changed", but ends
 * the attempt.
 */
#include "kvs/snapshot/snapshot_content.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "kvs/store/snapshot_iter.h"

#define RECLAIM 64u /* blocks given back per chunk read */

struct qn_snapshot_content {
    struct qn_snapshot_content_opts o;
    /* The donor's half: */
    bool giving;
    struct qn_snapshot_meta meta;
    struct qn_snapshot_writer writer;
    uint64_t given_keys;
    uint64_t held_max;
    /* The joiner's: */
    bool reading;
    const char *why;
    struct qn_snapshot_reader reader;
    struct qn_snapshot_meta got;
    struct qn_store *made; /* NULL until META has come */
};

static struct qn_store *own_store(const struct qn_snapshot_content *c)
{
    return c->o.ops.store(c->o.ops.ctx);
}

static bool complete(void *ctx)
{
    return own_store(ctx) != NULL;
}

/* ---- the donor ---- */

static int begin(void *ctx, qn_slot_t position)
{
    struct qn_snapshot_content *c = ctx;
    struct qn_store *s = own_store(c);
    struct qn_snapshot_meta *m = &c->meta;
    struct qn_store_stats st;
    struct qn_snapshot_iter_facts f;
    qn_store_stats(s, &st);
    c->held_max = QN_MAX(c->o.log_bytes, st.logical_bytes / 4);
    int err = qn_snapshot_iter_begin(s, position, c->held_max);
    if (err != QN_OK) {
        return err;
    }
    c->o.ops.facts(c->o.ops.ctx, m);
    qn_snapshot_iter_facts(s, &f);
    m->position = position;
    m->dbs = f.dbs;
    m->seed = f.seed;
    m->keys = f.keys;
    m->logical_bytes = f.logical_bytes;
    memcpy(m->flushed, f.flushed, f.dbs * sizeof f.flushed[0]);
    qn_snapshot_writer_init(&c->writer, m);
    c->given_keys = 0;
    c->giving = true;
    return QN_OK;
}

static int cut_peek(void *ctx, struct qn_walked *w)
{
    return qn_snapshot_iter_peek(own_store(ctx), w);
}

static void cut_next(void *ctx)
{
    struct qn_snapshot_content *c = ctx;
    c->given_keys++;
    qn_snapshot_iter_next(own_store(c));
}

static const qn_slot_t *cut_stripes(void *ctx)
{
    struct qn_snapshot_iter_facts f;
    bool active = qn_snapshot_iter_facts(own_store(ctx), &f);
    QN_ASSERT(active); /* peek has just said that all were met */
    return f.stripe;
}

static int next(void *ctx, uint8_t *bytes, size_t cap, size_t *len)
{
    struct qn_snapshot_content *c = ctx;
    const struct qn_snapshot_source source = {cut_peek, cut_next, cut_stripes,
                                              c};
    QN_ASSERT(cap >= QN_SNAPSHOT_CHUNK);
    return qn_snapshot_write(&c->writer, &source, bytes, len);
}

static int progress(void *ctx, struct qn_state_transfer_progress *p)
{
    struct qn_snapshot_content *c = ctx;
    struct qn_store *s = own_store(c);
    struct qn_snapshot_iter_facts f;
    if (s == NULL || !qn_snapshot_iter_active(s) ||
        !qn_snapshot_iter_facts(s, &f)) {
        return QN_EABORTED;
    }
    const uint64_t keys = QN_MIN(c->given_keys, c->meta.keys);
    p->done = c->meta.keys == 0
                  ? QN_STATE_TRANSFER_DONE
                  : (uint32_t)(keys * QN_STATE_TRANSFER_DONE / c->meta.keys);
    p->used = (uint32_t)QN_MIN(100 * f.held_bytes / c->held_max, 100u);
    return QN_OK;
}

static void end(void *ctx)
{
    struct qn_snapshot_content *c = ctx;
    struct qn_store *s = own_store(c);
    if (s != NULL) {
        qn_snapshot_iter_end(s);
    }
    c->giving = false;
}

/* ---- the joiner ---- */

static int on_meta(void *ctx, const struct qn_snapshot_meta *m)
{
    struct qn_snapshot_content *c = ctx;
    const struct qn_store_opts o = {
        .seed = m->seed, .dbs = m->dbs, .reuse_bytes = QN_STORE_REUSE};
    c->got = *m;
    return qn_store_create(&c->made, &o);
}

static int on_entry(void *ctx, const struct qn_walked *w)
{
    struct qn_snapshot_content *c = ctx;
    return qn_store_put_walked(c->made, w);
}

static int on_stripes(void *ctx, uint32_t first, uint32_t count,
                      const qn_slot_t *stripe)
{
    struct qn_snapshot_content *c = ctx;
    return qn_store_load_stripes(c->made, first, count, stripe);
}

static int read_part(void *ctx, qn_slot_t position, struct qn_slice part)
{
    struct qn_snapshot_content *c = ctx;
    const struct qn_snapshot_sink sink = {on_meta, on_entry, on_stripes, c};
    if (!c->reading) {
        qn_snapshot_reader_init(&c->reader, c->o.nodes, position, c->o.config);
        c->reading = true;
    }
    int err = qn_snapshot_read(&c->reader, part, &sink);
    if (c->made != NULL) {
        (void)qn_store_reclaim(c->made, RECLAIM); /* what splits have left */
    }
    c->why = c->reader.why;
    return err == QN_ENOMEM ? QN_EDQUOT : err;
}

/* The reader has counted entries and the store counts keys: equal numbers
 * show that no key came twice. */
static int finish(void *ctx)
{
    struct qn_snapshot_content *c = ctx;
    struct qn_store_stats st;
    if (!c->reading || !c->reader.complete) {
        c->why = "the snapshot ends early";
        return QN_ECORRUPT;
    }
    for (uint32_t db = 0; db < c->got.dbs; db++) {
        (void)qn_store_load_flushed(c->made, db, c->got.flushed[db]);
    }
    qn_store_stats(c->made, &st);
    if (st.keys != c->got.keys || st.logical_bytes != c->got.logical_bytes) {
        c->why = "a key came twice";
        return QN_ECORRUPT;
    }
    return QN_OK;
}

static void reader_end(struct qn_snapshot_content *c)
{
    if (c->reading) {
        qn_snapshot_reader_fini(&c->reader);
    }
    c->reader = (struct qn_snapshot_reader){0};
    c->reading = false;
    c->made = NULL;
}

static void install(void *ctx, qn_slot_t position)
{
    struct qn_snapshot_content *c = ctx;
    QN_ASSERT(c->made != NULL && c->got.position == position);
    c->o.ops.install(c->o.ops.ctx, c->made, &c->got);
    reader_end(c);
}

static void abandon(void *ctx)
{
    struct qn_snapshot_content *c = ctx;
    if (c->made != NULL) {
        c->o.ops.discard(c->o.ops.ctx, c->made);
    }
    reader_end(c);
}

static const char *why(void *ctx)
{
    return ((const struct qn_snapshot_content *)ctx)->why;
}

/* ---- the public face ---- */

int qn_snapshot_content_create(struct qn_snapshot_content **out,
                               const struct qn_snapshot_content_opts *o)
{
    struct qn_snapshot_content *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return QN_ENOMEM;
    }
    c->o = *o;
    *out = c;
    return QN_OK;
}

void qn_snapshot_content_destroy(struct qn_snapshot_content *c)
{
    if (c != NULL) {
        QN_ASSERT(!c->giving && !c->reading); /* the transfer has ended it */
        free(c);
    }
}

struct qn_state_transfer_user qn_snapshot_content_user(
    struct qn_snapshot_content *c)
{
    return (struct qn_state_transfer_user){.complete = complete,
                                           .begin = begin,
                                           .next = next,
                                           .end = end,
                                           .progress = progress,
                                           .read = read_part,
                                           .finish = finish,
                                           .install = install,
                                           .abandon = abandon,
                                           .why = why,
                                           .ctx = c};
}

void qn_snapshot_content_status(const struct qn_snapshot_content *c,
                                struct qn_snapshot_content_status *out)
{
    const struct qn_store *s = own_store(c);
    struct qn_snapshot_iter_facts cut = {0};
    struct qn_store_stats st = {0};
    if (s != NULL) {
        (void)qn_snapshot_iter_facts(s, &cut);
        qn_store_stats(s, &st);
    }
    *out = (struct qn_snapshot_content_status){
        .keys = c->reader.keys,
        .keys_total = c->reader.keys_said,
        .cut_bytes = cut.held_bytes,
        .cut_bytes_max = c->giving ? c->held_max : 0,
        .cut_bytes_most = st.cut_bytes_most,
    };
}
