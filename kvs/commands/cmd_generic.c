/*
 * Commands on keys as such, on whole databases, and on the configuration.
 *
 * KEYS walks the table, and so does DBSIZE if there are deadlines. KEYS does
 * not know in advance how many elements its reply has, and a second walk could
 * find another number, because the writer may be another thread. The elements
 * are therefore written first, then counted, and the header is put before them.
 *
 * Keys past their deadline are skipped wherever a client could see them.
 * RANDOMKEY draws again, and walks at last.
 */
#include "kvs/commands/cmd_internal.h"

#include "core/base/assert.h"
#include "kvs/base/glob.h"

#define WALK_BUCKETS 4096u /* per call of qn_store_walk; any number works */

int qn_cmd_del(struct qn_store *s, const struct qn_cmd_call *c)
{
    int64_t n = 0;
    for (uint32_t i = 1; i < c->argc; i++) {
        struct qn_found old;
        /* A dead key counts as absent, and is left to the code that frees
         * dead keys: DEL must not differ between replicas that have freed it
         * and replicas that have not. */
        n += qn_cmd_lookup(s, c, c->argv[i], &old) &&
             qn_store_del(s, c->db, c->argv[i], c->slot);
    }
    qn_reply_int(c->reply, n);
    return QN_OK;
}

int qn_cmd_exists(struct qn_store *s, const struct qn_cmd_call *c)
{
    int64_t n = 0;
    for (uint32_t i = 1; i < c->argc; i++) {
        struct qn_found old;
        n += qn_cmd_lookup(s, c, c->argv[i], &old);
    }
    qn_reply_int(c->reply, n);
    return QN_OK;
}

int qn_cmd_type(struct qn_store *s, const struct qn_cmd_call *c)
{
    struct qn_found old;
    bool found = qn_cmd_lookup(s, c, c->argv[1], &old);
    qn_reply_status(c->reply, found ? "string" : "none");
    return QN_OK;
}

/* ---- databases ----------------------------------------------------------- */

static int flush(struct qn_store *s, const struct qn_cmd_call *c, uint32_t db)
{
    bool known =
        c->argc == 1 || (c->argc == 2 && (qn_cmd_word_is(c->argv[1], "sync") ||
                                          qn_cmd_word_is(c->argv[1], "async")));
    if (!known) {
        qn_reply_error(c->reply, QN_CMD_ERR_SYNTAX);
        return QN_OK;
    }
    qn_store_flush(s, db, c->slot);
    qn_reply_ok(c->reply);
    return QN_OK;
}

int qn_cmd_flushall(struct qn_store *s, const struct qn_cmd_call *c)
{
    return flush(s, c, UINT32_MAX);
}

int qn_cmd_flushdb(struct qn_store *s, const struct qn_cmd_call *c)
{
    return flush(s, c, c->db);
}

static void walk_all(const struct qn_store *s, qn_walk_fn *fn, void *ctx)
{
    uint64_t cursor = 0;
    do {
        cursor = qn_store_walk(s, cursor, WALK_BUCKETS, fn, ctx);
    } while (cursor != 0);
}

struct counting {
    const struct qn_cmd_call *c;
    int64_t dead;
};

static bool count_dead(void *ctx, const struct qn_walked *w)
{
    struct counting *n = ctx;
    n->dead += w->db == n->c->db && qn_cmd_dead(n->c, w->deadline_ms);
    return true;
}

int qn_cmd_dbsize(struct qn_store *s, const struct qn_cmd_call *c)
{
    struct counting n = {.c = c};
    if (qn_store_mortal(s, c->db) != 0) {
        walk_all(s, count_dead, &n);
    }
    qn_reply_int(c->reply, (int64_t)qn_store_count(s, c->db) - n.dead);
    return QN_OK;
}

/* ---- keys ---------------------------------------------------------------- */

struct matching {
    const struct qn_cmd_call *c;
    struct qn_slice pattern;
    bool all; /* the pattern is `*`, which matches the empty key too */
    size_t found;
};

static bool match_key(void *ctx, const struct qn_walked *w)
{
    struct matching *m = ctx;
    if (w->db == m->c->db && !qn_cmd_dead(m->c, w->deadline_ms) &&
        (m->all || qn_glob_match(m->pattern, w->key, false))) {
        qn_reply_bulk(m->c->reply, w->key.data, w->key.len);
        m->found++;
    }
    return true;
}

/* Put the header of an array of n elements before what lies behind `start`. */
static void array_close(struct qn_buf *b, size_t start, size_t n)
{
    size_t elements = b->len - start;
    qn_reply_array(b, n);
    if (b->oom) {
        return;
    }
    uint8_t header[32];
    size_t len = b->len - start - elements;
    QN_ASSERT(len <= sizeof header);
    memcpy(header, b->data + start + elements, len);
    memmove(b->data + start + len, b->data + start, elements);
    memcpy(b->data + start, header, len);
}

int qn_cmd_keys(struct qn_store *s, const struct qn_cmd_call *c)
{
    if (c->reply == NULL) {
        return QN_OK;
    }
    struct qn_slice pattern = c->argv[1];
    struct matching m = {.c = c,
                         .pattern = pattern,
                         .all = pattern.len == 1 && pattern.data[0] == '*'};
    size_t start = c->reply->len;
    walk_all(s, match_key, &m);
    array_close(c->reply, start, m.found);
    return QN_OK;
}

static bool first_live(void *ctx, const struct qn_walked *w)
{
    struct matching *m = ctx;
    if (m->found == 0) {
        match_key(ctx, w);
    }
    return m->found == 0;
}

int qn_cmd_randomkey(struct qn_store *s, const struct qn_cmd_call *c)
{
    uint64_t random = c->random;
    struct qn_walked w;
    for (int tries = 0; tries < 16; tries++) {
        if (!qn_store_random(s, c->db, random, &w)) {
            qn_reply_null(c->reply, c->proto);
            return QN_OK;
        }
        if (!qn_cmd_dead(c, w.deadline_ms)) {
            qn_reply_bulk(c->reply, w.key.data, w.key.len);
            return QN_OK;
        }
        random = random * 6364136223846793005u + 1442695040888963407u;
    }
    /* Nearly all are dead: take the first that is not. */
    struct matching m = {.c = c, .all = true};
    uint64_t cursor = 0;
    do {
        cursor = qn_store_walk(s, cursor, WALK_BUCKETS, first_live, &m);
    } while (cursor != 0 && m.found == 0);
    if (m.found == 0) {
        qn_reply_null(c->reply, c->proto);
    }
    return QN_OK;
}

/* ---- configuration ------------------------------------------------------- */

int qn_cmd_config_set(struct qn_store *s, const struct qn_cmd_call *c)
{
    (void)s;
    QN_ASSERT(c->configure != NULL);
    if (c->argc % 2 != 0) {
        qn_reply_error(c->reply, QN_CMD_ERR_SYNTAX);
        return QN_OK;
    }
    c->configure(c->configure_ctx, c);
    return QN_OK;
}
