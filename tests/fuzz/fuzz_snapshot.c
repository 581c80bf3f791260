/*
 * Fuzzing snapshots. The input is a list of chunks: kind (1 byte; its bit 7:
 * as it is, whole chunk with head), length (2 bytes), bytes. The others get a
 * head that is right in all but the kind, so that bodies are reached. Whatever
 * comes: no crash, no entry beyond the limits that META has set, and nothing
 * complete whose totals are wrong.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "kvs/snapshot/snapshot.h"
#include "kvs/snapshot/snapshot_internal.h"
#include "kvs/store/snapshot_iter.h"
#include "tests/fuzz/fuzz.h"

#define POSITION 1000u

struct seen {
    uint32_t metas, dbs;
    uint64_t keys, bytes, keys_said, sum;
};

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

/* Touch all of it: a sanitizer sees what is not there. */
static uint64_t touch(const void *p, size_t n)
{
    const uint8_t *bytes = p;
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum = sum * 31 + bytes[i];
    }
    return sum;
}

static int on_meta(void *ctx, const struct qn_snapshot_meta *m)
{
    struct seen *s = ctx;
    must(s->metas++ == 0);
    must(m->nodes == 3);
    must(m->dbs >= 1 && m->dbs <= QN_STORE_DBS_MAX);
    s->dbs = m->dbs;
    s->keys_said = m->keys;
    s->sum += touch(m, sizeof *m);
    return QN_OK;
}

static int on_entry(void *ctx, const struct qn_walked *w)
{
    struct seen *s = ctx;
    must(s->metas == 1 && w->db < s->dbs);
    must(w->key.len <= QN_STORE_KEY_MAX && w->value.len <= QN_STORE_VAL_MAX);
    s->keys++;
    s->bytes += w->key.len + w->value.len + QN_STORE_ENTRY_COST;
    s->sum += touch(w->key.data, w->key.len);
    s->sum += touch(w->value.data, w->value.len);
    return QN_OK;
}

static int on_stripes(void *ctx, uint32_t first, uint32_t count,
                      const qn_slot_t *stripe)
{
    struct seen *s = ctx;
    must(s->metas == 1 && first + count <= QN_STORE_STRIPES && count != 0);
    s->sum += touch(stripe, count * sizeof *stripe);
    return QN_OK;
}

static size_t with_head(uint8_t *chunk, uint8_t kind, const uint8_t *body,
                        size_t n)
{
    const struct qn_snapshot_head h = {.version = QN_SNAPSHOT_VERSION,
                                       .kind = kind};
    memcpy(chunk, &h, sizeof h);
    memcpy(chunk + sizeof h, body, n);
    return sizeof h + n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct qn_config start;
    struct seen seen = {0};
    const struct qn_snapshot_sink sink = {on_meta, on_entry, on_stripes, &seen};
    struct qn_snapshot_reader r;
    qn_config_init(&start);
    qn_snapshot_reader_init(&r, 3, POSITION, &start);
    int err = QN_OK;
    while (n >= 3) {
        uint8_t kind = data[0];
        size_t len = QN_MIN((size_t)(data[1] | data[2] << 8), n - 3);
        len = QN_MIN(len, QN_SNAPSHOT_CHUNK - sizeof(struct qn_snapshot_head));
        /* Of exactly its size: a sanitizer sees what is read beyond. */
        uint8_t *chunk = malloc(sizeof(struct qn_snapshot_head) + len);
        must(chunk != NULL);
        size_t bytes = len;
        if ((kind & 0x80) != 0) {
            memcpy(chunk, data + 3, len);
        } else {
            bytes = with_head(chunk, kind, data + 3, len);
        }
        bool failed = err != QN_OK;
        err = qn_snapshot_read(&r, (struct qn_slice){chunk, bytes}, &sink);
        must(!failed || err != QN_OK);
        must((err == QN_OK) == (r.why == NULL));
        free(chunk);
        data += 3 + len;
        n -= 3 + len;
    }
    must(!r.complete || seen.keys == seen.keys_said);
    qn_snapshot_reader_fini(&r);
    return 0;
}
