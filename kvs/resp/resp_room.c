/*
 * The reader's memory: where a socket is read into, and what is kept of it
 * (figure in resp.c).
 *
 * A bulk's announced length reserves nothing: room begins with 32 KiB and grows
 * by what has arrived, so a client that wants memory must send bytes. A client
 * that has sent a large bulk before gets room for another one of that length at
 * once, up to 1 MiB: growing would copy the received bytes once or twice. The
 * room for a large bulk ends where the bulk ends; the next request begins in
 * the caller's buffer again, and the bulk's memory is freed as soon as the bulk
 * was used.
 */
#include <stdlib.h>

#include "core/base/assert.h"
#include "kvs/resp/resp_internal.h"

#define ROOM_MIN  ((size_t)32 * 1024)
#define ROOM_LOW  ((size_t)4 * 1024)
#define ROOM_ONCE ((size_t)1024 * 1024) /* for a bulk as long as one before */

static bool is_borrowed(const struct qn_resp_reader *r)
{
    return r->input != r->held.data;
}

/* Move the arguments of the request under way along with its bytes. `base` is
 * a number because the old memory may be freed. */
static void rebase(struct qn_resp_reader *r)
{
    const uint8_t *begin = r->input + r->begin;
    if (r->wanted == 0 || r->base == (uintptr_t)begin) {
        return;
    }
    for (uint32_t i = 0; i < r->argc; i++) {
        uintptr_t offset = (uintptr_t)r->argv[i].data - r->base;
        r->argv[i].data = begin + offset;
    }
    r->base = (uintptr_t)begin;
}

/* Make held.cap at least `cap`, and not larger: the caller knows what it
 * expects. */
static bool hold(struct qn_resp_reader *r, size_t cap)
{
    if (cap <= r->held.cap) {
        return true;
    }
    uint8_t *data = realloc(r->held.data, cap);
    if (data == NULL) {
        return false;
    }
    r->held.data = data;
    r->held.cap = cap;
    return true;
}

void qn_resp_drop(struct qn_resp_reader *r)
{
    if (r->argv != r->few) {
        free(r->argv);
        r->argv = r->few;
        r->argv_cap = QN_RESP_ARGS_INLINE;
    }
    qn_buf_free(&r->held);
    qn_buf_free(&r->line);
    r->input = NULL;
    r->input_len = r->begin = r->at = 0;
    r->taken = SIZE_MAX;
    r->argc = r->wanted = 0;
    r->bulk_len = QN_RESP_NO_BULK;
    r->whole = r->is_large = false;
}

int qn_resp_fail(struct qn_resp_reader *r, int error, const char *text)
{
    qn_resp_drop(r);
    r->error = error;
    r->error_text = text;
    return error;
}

/* Shift what is held to the front. */
static void compact(struct qn_resp_reader *r)
{
    if (r->begin == 0) {
        return;
    }
    uint8_t *data = r->held.data;
    memmove(data, data + r->begin, r->input_len - r->begin);
    r->input_len -= r->begin;
    r->held.len = r->input_len;
    r->at -= r->begin;
    r->begin = 0;
    rebase(r);
}

/* What a large bulk still lacks; 0: none is under way. */
static size_t missing_of_large(const struct qn_resp_reader *r)
{
    if (r->bulk_len == QN_RESP_NO_BULK || r->bulk_len < QN_RESP_LARGE) {
        return 0;
    }
    size_t there = r->input_len - r->at;
    size_t whole = r->bulk_len + 2;
    return whole > there ? whole - there : 0;
}

/* How many bytes should be read next, when `len` bytes of `cap` are in use. */
static size_t room_for(const struct qn_resp_reader *r, size_t len, size_t cap)
{
    size_t missing = missing_of_large(r);
    if (missing != 0 && r->bulk_len <= QN_MIN(r->large, ROOM_ONCE)) {
        return missing;
    }
    missing = missing != 0 ? missing : SIZE_MAX;
    size_t room = cap - len;
    if (room < ROOM_LOW && room < missing) {
        room = QN_MAX(ROOM_MIN, len);
    }
    return QN_MIN(room, missing);
}

/* A request that was found whole is parsed again: its bytes move. */
static void forget_whole(struct qn_resp_reader *r)
{
    if (r->whole) {
        r->whole = false;
        r->at = r->begin;
        r->argc = 0;
    }
}

/* ---- the reader --------------------------------------------------------- */

size_t qn_resp_feed_max(const struct qn_resp_reader *r, size_t n)
{
    return r->was_large ? QN_MIN(n, ROOM_LOW) : n;
}

bool qn_resp_holds(const struct qn_resp_reader *r)
{
    return r->held.len != 0;
}

uint8_t *qn_resp_room(struct qn_resp_reader *r, size_t *n)
{
    QN_ASSERT(!is_borrowed(r));
    r->taken = SIZE_MAX;
    if (r->error != 0) {
        return NULL;
    }
    forget_whole(r);
    compact(r);
    size_t len = r->held.len;
    if (len >= r->limits->buffer_max) {
        return NULL;
    }
    size_t room = room_for(r, len, r->held.cap);
    room = (size_t)QN_MIN(room, r->limits->buffer_max - len);
    if (!hold(r, len + room)) {
        return NULL;
    }
    r->input = r->held.data;
    rebase(r);
    *n = room;
    return r->held.data + len;
}

void qn_resp_fed(struct qn_resp_reader *r, size_t n)
{
    QN_ASSERT(!is_borrowed(r));
    QN_ASSERT(n <= r->held.cap - r->held.len);
    r->held.len += n;
    r->input_len = r->held.len;
}

void qn_resp_feed(struct qn_resp_reader *r, const uint8_t *bytes, size_t n)
{
    QN_ASSERT(!is_borrowed(r) && r->held.len == 0);
    if (n == 0 || r->error != 0) {
        return;
    }
    if (r->held.data != NULL) {
        qn_resp_drop(r); /* room that nothing was read into */
    }
    r->input = bytes;
    r->input_len = n;
}

int qn_resp_settle(struct qn_resp_reader *r)
{
    if (r->error != 0) {
        return r->error == QN_ENOMEM ? QN_ENOMEM : QN_OK;
    }
    r->taken = SIZE_MAX;
    size_t rest = r->input_len - r->begin;
    if (rest == 0) {
        qn_resp_drop(r);
        return QN_OK;
    }
    if (!is_borrowed(r)) {
        return QN_OK;
    }
    forget_whole(r);
    /* A large bulk gets its room at once. Another rest gets only what it
     * needs, because most are the end of a pipeline. */
    bool large = missing_of_large(r) != 0;
    if (!hold(r, rest + (large ? room_for(r, rest, rest) : 0))) {
        return qn_resp_fail(r, QN_ENOMEM, NULL);
    }
    const uint8_t *from = r->input + r->begin;
    memcpy(r->held.data, from, rest);
    r->input = r->held.data;
    r->input_len = r->held.len = rest;
    r->at -= r->begin;
    r->begin = 0;
    rebase(r);
    return QN_OK;
}
