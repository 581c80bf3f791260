/*
 * Compare and set, compare and delete (as in Redis 8.4; DELIFEQ as in Valkey).
 *
 * A condition compares the value that a key has when the log entry is applied.
 * Of two clients that both read x and both say IFEQ x, exactly one succeeds,
 * and it is the same one on every replica. A missing key differs from every
 * value: IFEQ and IFDEQ do not hold, IFNE and IFDNE do.
 *
 * A digest is XXH3-64 of the value with seed 0, as 16 hexadecimal digits: for
 * values too long to be sent twice. It is no proof of equality.
 *
 * Unlike in Redis, a malformed digest is an error whatever the key holds:
 * whether a request is valid must not depend on the data.
 */
#include <stdio.h>

/* XXH3 of this build, not of a shared library, so that two replicas never
 * disagree. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "kvs/commands/cmd_internal.h"

#define DIGEST_DIGITS 16u

static uint64_t digest_of(struct qn_slice value)
{
    return XXH3_64bits(value.data, value.len);
}

static bool digest_parse(struct qn_slice text, uint64_t *out)
{
    uint64_t v = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.data[i];
        uint8_t letter = c | 0x20;
        if (c >= '0' && c <= '9') {
            v = v << 4 | (uint64_t)(c - '0');
        } else if (letter >= 'a' && letter <= 'f') {
            v = v << 4 | (uint64_t)(letter - 'a' + 10);
        } else {
            return false;
        }
    }
    *out = v;
    return text.len == DIGEST_DIGITS;
}

int qn_cmd_condition_parse(struct qn_cmd_condition *out, struct qn_slice word,
                           struct qn_slice operand)
{
    struct qn_cmd_condition c = {.operand = operand};
    if (qn_cmd_word_is(word, "ifeq")) {
        c.kind = QN_CMD_IFEQ;
    } else if (qn_cmd_word_is(word, "ifne")) {
        c.kind = QN_CMD_IFNE;
    } else if (qn_cmd_word_is(word, "ifdeq")) {
        c.kind = QN_CMD_IFDEQ;
    } else if (qn_cmd_word_is(word, "ifdne")) {
        c.kind = QN_CMD_IFDNE;
    } else {
        return QN_ENOENT;
    }
    bool by_digest = c.kind == QN_CMD_IFDEQ || c.kind == QN_CMD_IFDNE;
    if (by_digest && !digest_parse(operand, &c.digest)) {
        return QN_EINVAL;
    }
    *out = c;
    return QN_OK;
}

static bool equal(struct qn_slice a, struct qn_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

bool qn_cmd_condition_holds(const struct qn_cmd_condition *c, bool found,
                            struct qn_slice value)
{
    switch (c->kind) {
    case QN_CMD_IFEQ:
        return found && equal(value, c->operand);
    case QN_CMD_IFNE:
        return !found || !equal(value, c->operand);
    case QN_CMD_IFDEQ:
        return found && digest_of(value) == c->digest;
    case QN_CMD_IFDNE:
        return !found || digest_of(value) != c->digest;
    case QN_CMD_ALWAYS:
        break;
    }
    return true;
}

int qn_cmd_digest(struct qn_store *s, const struct qn_cmd_call *c)
{
    struct qn_found old;
    if (!qn_cmd_lookup(s, c, c->argv[1], &old)) {
        qn_reply_null(c->reply, c->proto);
        return QN_OK;
    }
    char text[DIGEST_DIGITS + 1];
    snprintf(text, sizeof text, "%016llx",
             (unsigned long long)digest_of(old.value));
    qn_reply_bulk(c->reply, text, DIGEST_DIGITS);
    return QN_OK;
}

static void delete_if(struct qn_store *s, const struct qn_cmd_call *c,
                      const struct qn_cmd_condition *condition)
{
    struct qn_found old;
    bool hold = qn_cmd_lookup(s, c, c->argv[1], &old) &&
                qn_cmd_condition_holds(condition, true, old.value);
    if (hold) {
        qn_store_del(s, c->db, c->argv[1], c->slot);
    }
    qn_reply_int(c->reply, hold);
}

int qn_cmd_delex(struct qn_store *s, const struct qn_cmd_call *c)
{
    struct qn_cmd_condition condition = {.kind = QN_CMD_ALWAYS};
    if (c->argc != 2 && c->argc != 4) {
        qn_cmd_reply_arity(c);
        return QN_OK;
    }
    int err = c->argc == 2
                  ? QN_OK
                  : qn_cmd_condition_parse(&condition, c->argv[2], c->argv[3]);
    if (err == QN_OK) {
        delete_if(s, c, &condition);
    } else {
        qn_reply_error(c->reply, err == QN_EINVAL ? QN_CMD_ERR_DIGEST
                                                  : QN_CMD_ERR_SYNTAX);
    }
    return QN_OK;
}

int qn_cmd_delifeq(struct qn_store *s, const struct qn_cmd_call *c)
{
    const struct qn_cmd_condition condition = {.kind = QN_CMD_IFEQ,
                                               .operand = c->argv[2]};
    delete_if(s, c, &condition);
    return QN_OK;
}
