/*
 * Commands that read or write whole values.
 *
 * GET and SET are most of the traffic: one lookup or one put, no allocation but
 * the store's, the arguments used in place. A SET without options does not read
 * the old value.
 *
 * A key whose deadline lies at or before the stamp is absent for every decision
 * here (qn_cmd_lookup), and its replacement is stored like a new key. Whether
 * this replica has freed the old entry makes no difference that a client can
 * see.
 *
 * If a command replies with an old value, the value is copied into the reply
 * before the new one is stored. (It would also stay valid afterwards, until the
 * writer's next reclaim.)
 */
#include "kvs/commands/cmd_internal.h"

static void reply_value(const struct qn_cmd_call *c, bool found,
                        struct qn_slice value)
{
    if (found) {
        qn_reply_bulk(c->reply, value.data, value.len);
    } else {
        qn_reply_null(c->reply, c->proto);
    }
}

int qn_cmd_get(struct qn_store *s, const struct qn_cmd_call *c)
{
    struct qn_found old;
    bool found = qn_cmd_lookup(s, c, c->argv[1], &old);
    reply_value(c, found, old.value);
    return QN_OK;
}

struct set_options {
    bool nx, xx, get;
    struct qn_cmd_condition condition;
};

/* A comparing option at argv[i], which excludes NX, XX and others like it.
 * @return NULL, or the error. */
static const char *set_condition_parse(const struct qn_cmd_call *c, uint32_t i,
                                       struct set_options *o)
{
    if (i + 1 >= c->argc || o->nx || o->xx ||
        o->condition.kind != QN_CMD_ALWAYS) {
        return QN_CMD_ERR_SYNTAX;
    }
    int err = qn_cmd_condition_parse(&o->condition, c->argv[i], c->argv[i + 1]);
    return err == QN_OK       ? NULL
           : err == QN_EINVAL ? QN_CMD_ERR_DIGEST
                              : QN_CMD_ERR_SYNTAX;
}

/* SET's arguments behind the value. @return NULL, or the error. */
static const char *set_options_parse(const struct qn_cmd_call *c,
                                     struct set_options *o)
{
    for (uint32_t i = 3; i < c->argc; i++) {
        bool compares = o->condition.kind != QN_CMD_ALWAYS;
        if (qn_cmd_word_is(c->argv[i], "get")) {
            o->get = true;
        } else if (qn_cmd_word_is(c->argv[i], "nx") && !o->xx && !compares) {
            o->nx = true;
        } else if (qn_cmd_word_is(c->argv[i], "xx") && !o->nx && !compares) {
            o->xx = true;
        } else {
            const char *error = set_condition_parse(c, i++, o);
            if (error != NULL) {
                return error;
            }
        }
    }
    return NULL;
}

static int set_with_options(struct qn_store *s, const struct qn_cmd_call *c)
{
    struct set_options o = {.condition = {.kind = QN_CMD_ALWAYS}};
    const char *error = set_options_parse(c, &o);
    if (error != NULL) {
        qn_reply_error(c->reply, "%s", error);
        return QN_OK;
    }
    struct qn_found old;
    bool found = qn_cmd_lookup(s, c, c->argv[1], &old);
    bool hold = o.nx   ? !found
                : o.xx ? found
                       : qn_cmd_condition_holds(&o.condition, found, old.value);
    if (o.get) {
        reply_value(c, found, old.value);
    } else if (hold) {
        qn_reply_ok(c->reply);
    } else {
        qn_reply_null(c->reply, c->proto);
    }
    return hold ? qn_cmd_put(s, c, c->argv[1], 0, &c->argv[2], 1) : QN_OK;
}

int qn_cmd_set(struct qn_store *s, const struct qn_cmd_call *c)
{
    if (c->argc > 3) {
        return set_with_options(s, c);
    }
    qn_reply_ok(c->reply);
    return qn_cmd_put(s, c, c->argv[1], 0, &c->argv[2], 1);
}

int qn_cmd_setnx(struct qn_store *s, const struct qn_cmd_call *c)
{
    struct qn_found old;
    bool found = qn_cmd_lookup(s, c, c->argv[1], &old);
    qn_reply_int(c->reply, !found);
    return found ? QN_OK : qn_cmd_put(s, c, c->argv[1], 0, &c->argv[2], 1);
}

int qn_cmd_getset(struct qn_store *s, const struct qn_cmd_call *c)
{
    qn_cmd_get(s, c);
    return qn_cmd_put(s, c, c->argv[1], 0, &c->argv[2], 1);
}

int qn_cmd_getdel(struct qn_store *s, const struct qn_cmd_call *c)
{
    struct qn_found old;
    bool found = qn_cmd_lookup(s, c, c->argv[1], &old);
    reply_value(c, found, old.value);
    if (found) {
        qn_store_del(s, c->db, c->argv[1], c->slot);
    }
    return QN_OK;
}

int qn_cmd_mget(struct qn_store *s, const struct qn_cmd_call *c)
{
    qn_reply_array(c->reply, c->argc - 1);
    for (uint32_t i = 1; i < c->argc; i++) {
        struct qn_found old;
        bool found = qn_cmd_lookup(s, c, c->argv[i], &old);
        reply_value(c, found, old.value);
    }
    return QN_OK;
}

/* Would all pairs fit? Bytes that one pair frees are not counted for the
 * others. */
static bool pairs_fit(const struct qn_store *s, const struct qn_cmd_call *c)
{
    uint64_t most = 0, more = 0;
    for (uint32_t i = 1; i < c->argc; i += 2) {
        most += qn_cmd_entry_bytes(c->argv[i], c->argv[i + 1].len);
    }
    if (qn_cmd_memory_has(s, c, most)) {
        return true;
    }
    for (uint32_t i = 1; i < c->argc; i += 2) {
        more += qn_cmd_growth(s, c, c->argv[i], c->argv[i + 1].len);
    }
    return qn_cmd_memory_has(s, c, more);
}

/* Store the pairs argv[1], argv[2], ...; of equal keys the last one stays. All
 * or none: there is room for all before the first is stored. */
static int put_pairs(struct qn_store *s, const struct qn_cmd_call *c)
{
    struct qn_cmd_call all = *c;
    if (!pairs_fit(s, c)) {
        return QN_EDQUOT;
    }
    all.memory_max = 0;
    for (uint32_t i = 1; i < c->argc; i += 2) {
        int err = qn_cmd_put(s, &all, c->argv[i], 0, &c->argv[i + 1], 1);
        if (err != QN_OK) {
            return err;
        }
    }
    return QN_OK;
}

int qn_cmd_mset(struct qn_store *s, const struct qn_cmd_call *c)
{
    if (c->argc % 2 == 0) {
        qn_cmd_reply_arity(c);
        return QN_OK;
    }
    qn_reply_ok(c->reply);
    return put_pairs(s, c);
}

int qn_cmd_msetnx(struct qn_store *s, const struct qn_cmd_call *c)
{
    if (c->argc % 2 == 0) {
        qn_cmd_reply_arity(c);
        return QN_OK;
    }
    for (uint32_t i = 1; i < c->argc; i += 2) {
        struct qn_found old;
        if (qn_cmd_lookup(s, c, c->argv[i], &old)) {
            qn_reply_int(c->reply, 0);
            return QN_OK;
        }
    }
    qn_reply_int(c->reply, 1);
    return put_pairs(s, c);
}

int qn_cmd_strlen(struct qn_store *s, const struct qn_cmd_call *c)
{
    struct qn_found old;
    qn_cmd_lookup(s, c, c->argv[1], &old);
    qn_reply_int(c->reply, (int64_t)old.value.len);
    return QN_OK;
}
