/*
 * Sets options at start and by CONFIG SET; answers CONFIG GET.
 *
 * Setting checks one option. qn_config_check, or qn_config_check_limits, checks
 * what concerns several after all were set, so that their order does not
 * matter.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "kvs/base/glob.h"
#include "kvs/config/config_internal.h"
#include "kvs/resp/reply.h"

enum { NAME_MAX_BYTES = 64 }; /* of an option, NUL included */

/* ---- at start ------------------------------------------------------------ */

int qn_config_start(struct qn_config *c, const char *name, const char *value,
                    char *why, size_t cap)
{
    char reason[QN_CONFIG_WHY_MAX];
    const struct qn_config_row *r = qn_config_find(name);
    if (r == NULL) {
        qn_config_why_unknown(name, why, cap);
        return QN_ENOENT;
    }
    int err = QN_EINVAL;
    if (r->storage == QN_CONFIG_FIXED) {
        if (strcmp(value, r->initial) == 0) {
            return QN_OK;
        }
        snprintf(reason, sizeof reason, "argument can only be '%s'",
                 r->initial);
    } else {
        err = qn_config_read(r, c, value, reason, sizeof reason);
        if (err != QN_OK && r->storage != QN_CONFIG_TEXT) {
            /* Redis' text for an invalid number does not name the valid
             * values. */
            qn_config_why(r, true, reason, sizeof reason);
        }
    }
    if (err != QN_OK) {
        snprintf(why, cap, "%s '%.64s': %s", r->name, value, reason);
    }
    return err;
}

/* ---- CONFIG SET ---------------------------------------------------------- */

/* Copy an argument that may hold NUL; false: it cannot be the name of an
 * option. */
static bool as_string(struct qn_slice s, char *to, size_t cap)
{
    if (s.len >= cap || (s.len > 0 && memchr(s.data, '\0', s.len) != NULL)) {
        return false;
    }
    if (s.len > 0) {
        memcpy(to, s.data, s.len);
    }
    to[s.len] = '\0';
    return true;
}

/* Why it cannot be set this way; NULL: it can. */
static const char *way_refused(const struct qn_config_row *r,
                               enum qn_config_when way)
{
    if (r->when == way) {
        return NULL;
    }
    return r->when == QN_CONFIG_AT_START ? "can't set immutable config"
                                         : "set it in a command of its own: "
                                           "lag-timeout and "
                                           "min-replicas-to-write do not go "
                                           "through the log, the others do";
}

int qn_config_set(struct qn_config *c, enum qn_config_when way,
                  struct qn_slice name, struct qn_slice value, char *why,
                  size_t cap)
{
    char key[NAME_MAX_BYTES];
    char text[QN_CONFIG_TEXT_MAX];
    char reason[QN_CONFIG_WHY_MAX];
    const struct qn_config_row *r =
        as_string(name, key, sizeof key) ? qn_config_find(key) : NULL;
    if (r == NULL) {
        snprintf(why, cap,
                 "Unknown option or number of arguments for CONFIG SET - "
                 "'%.*s'",
                 (int)QN_MIN(name.len, (size_t)128), (const char *)name.data);
        return QN_ENOENT;
    }
    /* Words such as `auto` have a meaning only at start. */
    struct qn_config_row number = *r;
    number.word = r->storage == QN_CONFIG_BOOL ? r->word : NULL;
    int err = QN_EINVAL;
    const char *refused = way_refused(r, way);
    if (refused != NULL) {
        snprintf(reason, sizeof reason, "%s", refused);
        err = QN_EPERM;
    } else if (as_string(value, text, sizeof text)) {
        err = qn_config_read(&number, c, text, reason, sizeof reason);
    } else {
        qn_config_why(&number, false, reason, sizeof reason);
    }
    if (err != QN_OK) {
        snprintf(why, cap,
                 "CONFIG SET failed (possibly related to argument '%s') - %s",
                 r->name, reason);
    }
    return err;
}

/* The name that occurs twice; NULL: none. */
static const struct qn_slice *named_twice(const struct qn_slice *pair,
                                          uint32_t count)
{
    for (uint32_t i = 0; i < count; i += 2) {
        for (uint32_t k = 0; k < i; k += 2) {
            const struct qn_slice *a = &pair[i], *b = &pair[k];
            if (a->len == b->len &&
                strncasecmp((const char *)a->data, (const char *)b->data,
                            a->len) == 0) {
                return a;
            }
        }
    }
    return NULL;
}

int qn_config_set_all(struct qn_config *c, enum qn_config_when way,
                      const struct qn_slice *pair, uint32_t count, char *why,
                      size_t cap)
{
    struct qn_config next = *c;
    int err = QN_OK;
    for (uint32_t i = 0; i + 1 < count && err == QN_OK; i += 2) {
        err = qn_config_set(&next, way, pair[i], pair[i + 1], why, cap);
    }
    if (err != QN_OK) {
        return err;
    }
    const struct qn_slice *twice = named_twice(pair, count);
    if (twice != NULL) {
        snprintf(why, cap,
                 "CONFIG SET failed (possibly related to argument '%.*s') - "
                 "duplicate parameter",
                 (int)twice->len, (const char *)twice->data);
        return QN_EINVAL;
    }
    err = qn_config_check_limits(&next, why, cap);
    if (err == QN_OK) {
        *c = next;
    }
    return err;
}

bool qn_config_beside(const struct qn_slice *pair, uint32_t count)
{
    char key[NAME_MAX_BYTES];
    for (uint32_t i = 0; i < count; i += 2) {
        const struct qn_config_row *r =
            as_string(pair[i], key, sizeof key) ? qn_config_find(key) : NULL;
        if (r != NULL && r->when == QN_CONFIG_BESIDE_LOG) {
            return true;
        }
    }
    return false;
}

/* ---- CONFIG GET ---------------------------------------------------------- */

static bool wanted(const struct qn_config_row *r,
                   const struct qn_slice *pattern, uint32_t count)
{
    struct qn_slice name = {(const uint8_t *)r->name, strlen(r->name)};
    for (uint32_t i = 0; i < count; i++) {
        if (qn_glob_match(pattern[i], name, true)) {
            return true;
        }
    }
    return false;
}

void qn_config_reply(const struct qn_config *c, const struct qn_slice *pattern,
                     uint32_t count, uint8_t proto, struct qn_buf *reply)
{
    const struct qn_config_row *r;
    size_t pairs = 0;
    for (uint32_t i = 0; (r = qn_config_row(i)) != NULL; i++) {
        pairs += wanted(r, pattern, count);
    }
    qn_reply_map(reply, proto, pairs);
    for (uint32_t i = 0; (r = qn_config_row(i)) != NULL; i++) {
        char room[QN_CONFIG_NUMBER_MAX];
        if (wanted(r, pattern, count)) {
            qn_reply_bulk_str(reply, r->name);
            qn_reply_bulk_str(reply, qn_config_write(r, c, room));
        }
    }
}
