/*
 * Commands on a part of a value: APPEND, GETRANGE (SUBSTR), SETRANGE, GETBIT,
 * SETBIT.
 *
 * Values are immutable, so a changed part means a new value. The store builds
 * it from slices of the old value and of the arguments, without a buffer in
 * between. Only the zeros between the old end and a far offset need other
 * memory: a small constant, or zero pages of the system.
 *
 * These commands keep the key's deadline: they change a value and do not
 * replace it.
 */
#include "kvs/commands/cmd_internal.h"

#include <stdlib.h>

#include "kvs/base/number.h"

/* True if a value of old + more bytes is allowed; else the error was written.
 */
static bool length_fits(const struct qn_cmd_call *c, uint64_t old,
                        uint64_t more)
{
    uint64_t max = qn_cmd_value_max(c);
    if (old <= max && more <= max - old) {
        return true;
    }
    qn_reply_error(c->reply, QN_CMD_ERR_TOO_BIG);
    return false;
}

int qn_cmd_append(struct qn_store *s, const struct qn_cmd_call *c)
{
    struct qn_found old;
    struct qn_slice tail = c->argv[2];
    bool found = qn_cmd_lookup(s, c, c->argv[1], &old);
    if (found && !length_fits(c, old.value.len, tail.len)) {
        return QN_OK;
    }
    qn_reply_int(c->reply, (int64_t)(old.value.len + tail.len));
    const struct qn_slice parts[] = {old.value, tail};
    return qn_cmd_put(s, c, c->argv[1], old.deadline_ms, parts, 2);
}

/* The bytes start..end, both included, negative ones counted from the end, as
 * Redis counts them: an end before the beginning means the first byte. */
static struct qn_slice range_of(struct qn_slice v, int64_t start, int64_t end)
{
    const struct qn_slice none = {0};
    int64_t len = (int64_t)v.len;
    if (len == 0 || (start < 0 && end < 0 && start > end)) {
        return none;
    }
    start = start < 0 ? start + len : start;
    end = end < 0 ? end + len : end;
    start = QN_MAX(start, 0);
    end = QN_MAX(end, 0);
    end = QN_MIN(end, len - 1);
    if (start > end) {
        return none;
    }
    return (struct qn_slice){v.data + start, (size_t)(end - start + 1)};
}

int qn_cmd_getrange(struct qn_store *s, const struct qn_cmd_call *c)
{
    int64_t start, end;
    if (!qn_number_parse(c->argv[2], &start) ||
        !qn_number_parse(c->argv[3], &end)) {
        qn_reply_error(c->reply, QN_CMD_ERR_INTEGER);
        return QN_OK;
    }
    struct qn_found old;
    qn_cmd_lookup(s, c, c->argv[1], &old);
    struct qn_slice part = range_of(old.value, start, end);
    qn_reply_bulk(c->reply, part.data, part.len);
    return QN_OK;
}

/* Store old[0..at) zeros value old[at + len..). */
static int put_range(struct qn_store *s, const struct qn_cmd_call *c,
                     const struct qn_found *old, size_t at,
                     struct qn_slice value)
{
    static const uint8_t few[256];
    struct qn_slice head = {old->value.data, QN_MIN(at, old->value.len)};
    struct qn_slice gap = {few, at - head.len};
    struct qn_slice tail = {0};
    size_t end = at + value.len;
    if (end < old->value.len) {
        tail = (struct qn_slice){old->value.data + end, old->value.len - end};
    }
    uint8_t *many = NULL;
    if (gap.len > sizeof few) {
        many = calloc(1, gap.len);
        if (many == NULL) {
            return QN_ENOMEM;
        }
        gap.data = many;
    }
    const struct qn_slice parts[] = {head, gap, value, tail};
    int err = qn_cmd_put(s, c, c->argv[1], old->deadline_ms, parts, 4);
    free(many);
    return err;
}

int qn_cmd_setrange(struct qn_store *s, const struct qn_cmd_call *c)
{
    int64_t offset;
    struct qn_slice value = c->argv[3];
    if (!qn_number_parse(c->argv[2], &offset)) {
        qn_reply_error(c->reply, QN_CMD_ERR_INTEGER);
        return QN_OK;
    }
    if (offset < 0) {
        qn_reply_error(c->reply, "ERR offset is out of range");
        return QN_OK;
    }
    struct qn_found old;
    qn_cmd_lookup(s, c, c->argv[1], &old);
    if (value.len == 0) {
        /* Nothing to write: no padding either, and no new key. */
        qn_reply_int(c->reply, (int64_t)old.value.len);
        return QN_OK;
    }
    if (!length_fits(c, (uint64_t)offset, value.len)) {
        return QN_OK;
    }
    size_t end = QN_MAX((size_t)offset + value.len, old.value.len);
    if (!qn_cmd_memory_fits(s, c, c->argv[1], end)) {
        return QN_EDQUOT; /* before the gap takes memory */
    }
    qn_reply_int(c->reply, (int64_t)end);
    return put_range(s, c, &old, (size_t)offset, value);
}

/* The byte and the mask of a bit; bit 0 is the highest of byte 0. False: the
 * error was written. */
static bool bit_of(const struct qn_cmd_call *c, size_t *byte, uint8_t *mask)
{
    int64_t offset;
    if (!qn_number_parse(c->argv[2], &offset) || offset < 0 ||
        (uint64_t)offset / 8 >= qn_cmd_value_max(c)) {
        qn_reply_error(c->reply,
                       "ERR bit offset is not an integer or out of range");
        return false;
    }
    *byte = (size_t)offset / 8;
    *mask = (uint8_t)(0x80 >> offset % 8);
    return true;
}

int qn_cmd_getbit(struct qn_store *s, const struct qn_cmd_call *c)
{
    size_t byte;
    uint8_t mask;
    if (!bit_of(c, &byte, &mask)) {
        return QN_OK;
    }
    struct qn_found old;
    qn_cmd_lookup(s, c, c->argv[1], &old);
    qn_reply_int(c->reply,
                 byte < old.value.len && (old.value.data[byte] & mask) != 0);
    return QN_OK;
}

int qn_cmd_setbit(struct qn_store *s, const struct qn_cmd_call *c)
{
    size_t byte;
    uint8_t mask;
    int64_t bit;
    if (!bit_of(c, &byte, &mask)) {
        return QN_OK;
    }
    if (!qn_number_parse(c->argv[3], &bit) || (bit != 0 && bit != 1)) {
        qn_reply_error(c->reply, "ERR bit is not an integer or out of range");
        return QN_OK;
    }
    struct qn_found old;
    qn_cmd_lookup(s, c, c->argv[1], &old);
    uint8_t was = byte < old.value.len ? old.value.data[byte] : 0;
    uint8_t is = (uint8_t)(bit != 0 ? was | mask : was & ~mask);
    size_t end = QN_MAX(byte + 1, old.value.len);
    if (!qn_cmd_memory_fits(s, c, c->argv[1], end)) {
        return QN_EDQUOT; /* before the gap takes memory */
    }
    qn_reply_int(c->reply, (was & mask) != 0);
    return put_range(s, c, &old, byte, (struct qn_slice){&is, 1});
}
