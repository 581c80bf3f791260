#include "loadgen/bench/bench_snapshot.h"

#include <time.h>

#include "core/base/clock.h"
#include "core/base/err.h"
#include "kvs/snapshot/snapshot.h"
#include "kvs/store/snapshot_iter.h"

/*
 * The cost of a snapshot for a donor and a joiner, without the channel. A chunk
 * is written and then read at once, in one thread, so the caches are somewhat
 * colder for both than on their own cores; each is measured separately, in CPU
 * time.
 */

static int peek(void *ctx, struct qn_walked *w)
{
    return qn_snapshot_iter_peek(ctx, w);
}

static void next(void *ctx)
{
    qn_snapshot_iter_next(ctx);
}

static const qn_slot_t *stripes(void *ctx)
{
    struct qn_snapshot_iter_facts f;
    (void)qn_snapshot_iter_facts(ctx, &f);
    return f.stripe;
}

struct made {
    struct qn_store *store;
};

static int on_meta(void *ctx, const struct qn_snapshot_meta *m)
{
    const struct qn_store_opts o = {.seed = m->seed, .dbs = m->dbs};
    return qn_store_create(&((struct made *)ctx)->store, &o);
}

static int on_entry(void *ctx, const struct qn_walked *w)
{
    return qn_store_put_walked(((struct made *)ctx)->store, w);
}

static int on_stripes(void *ctx, uint32_t first, uint32_t count,
                      const qn_slot_t *stripe)
{
    return qn_store_load_stripes(((struct made *)ctx)->store, first, count,
                                 stripe);
}

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * (double)QN_S + (double)t.tv_nsec;
}

/* Write and read all chunks. @return false on failure. */
static bool pass_on(struct qn_store *s, const struct qn_snapshot_meta *meta,
                    struct made *to, struct qn_bench_snapshot *out)
{
    static uint8_t chunk[QN_SNAPSHOT_CHUNK];
    const struct qn_snapshot_source source = {peek, next, stripes, s};
    const struct qn_snapshot_sink sink = {on_meta, on_entry, on_stripes, to};
    struct qn_snapshot_writer w;
    struct qn_snapshot_reader r;
    qn_snapshot_writer_init(&w, meta);
    qn_snapshot_reader_init(&r, meta->nodes, meta->position, &meta->config);
    int err = QN_OK;
    while (err == QN_OK && !r.complete) {
        size_t len = 0;
        double from = cpu_ns();
        do {
            err = qn_snapshot_write(&w, &source, chunk, &len);
        } while (err == QN_EAGAIN);
        double took = cpu_ns() - from;
        out->write_ns += took;
        out->chunk_us_max = QN_MAX(out->chunk_us_max, took / (double)QN_US);
        out->bytes_per_key += (double)len;
        if (err == QN_OK) {
            from = cpu_ns();
            err = qn_snapshot_read(&r, (struct qn_slice){chunk, len}, &sink);
            (void)qn_store_reclaim(to->store, 64);
            out->read_ns += cpu_ns() - from;
        }
    }
    bool complete = r.complete;
    qn_snapshot_reader_fini(&r);
    return complete;
}

bool qn_bench_snapshot(struct qn_store *s, struct qn_bench_snapshot *out)
{
    static struct qn_snapshot_meta meta;
    struct qn_snapshot_iter_facts f;
    struct made to = {NULL};
    const qn_slot_t position = UINT64_MAX - 1;
    *out = (struct qn_bench_snapshot){0};
    if (qn_snapshot_iter_begin(s, position, UINT64_MAX) != QN_OK ||
        !qn_snapshot_iter_facts(s, &f)) {
        return false;
    }
    meta = (struct qn_snapshot_meta){.position = position,
                                     .nodes = 3,
                                     .dbs = f.dbs,
                                     .seed = f.seed,
                                     .keys = f.keys,
                                     .logical_bytes = f.logical_bytes};
    qn_config_init(&meta.config);
    bool good = pass_on(s, &meta, &to, out);
    qn_snapshot_iter_end(s);
    double keys = (double)QN_MAX(f.keys, (uint64_t)1);
    out->write_ns /= keys;
    out->read_ns /= keys;
    out->bytes_per_key /= keys;
    good = good && qn_store_digest(to.store, 0) == qn_store_digest(s, 0);
    qn_store_destroy(to.store);
    return good;
}
