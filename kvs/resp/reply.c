/*
 * Replies are written straight into the connection's output buffer: one
 * reservation for the longest form, then plain stores. No writer looks at the
 * buffer again, so a reply of many elements costs no more than its bytes.
 *
 * Most replies are short numbers and short bulks. A table of digit pairs halves
 * the divisions of a number, and numbers below 10 (`:0`, `:1`, `$3`, `*2`) skip
 * it. A bulk reserves header, data and CRLF at once, so it usually needs a
 * single bounds check.
 *
 * Writers take a NULL buffer: every replica applies a command, and only one of
 * them has a client that waits. The check is made here and not in each command.
 *
 * The buffer records lack of memory (sticky `oom`). A reservation that fails
 * writes nothing, so the buffer always holds whole elements. The owner closes
 * the connection.
 */
#include "kvs/resp/reply.h"

#include <stdarg.h>
#include <stdio.h>

/* Sign, 19 digits, and the type byte and CRLF around them. */
#define NUMBER_MAX 20
#define HEADER_MAX (1 + NUMBER_MAX + 2)

static const char digit_pairs[] = "00010203040506070809"
                                  "10111213141516171819"
                                  "20212223242526272829"
                                  "30313233343536373839"
                                  "40414243444546474849"
                                  "50515253545556575859"
                                  "60616263646566676869"
                                  "70717273747576777879"
                                  "80818283848586878889"
                                  "90919293949596979899";

/* Decimal digits of v at `to`. @return the first byte after them. */
static uint8_t *put_digits(uint8_t *to, uint64_t v)
{
    if (v < 10) {
        *to = (uint8_t)('0' + v);
        return to + 1;
    }
    uint8_t digits[NUMBER_MAX];
    uint8_t *at = digits + sizeof digits;
    while (v >= 100) {
        at -= 2;
        memcpy(at, &digit_pairs[v % 100 * 2], 2);
        v /= 100;
    }
    at -= 2;
    memcpy(at, &digit_pairs[v * 2], 2);
    at += *at == '0';
    size_t n = (size_t)(digits + sizeof digits - at);
    memcpy(to, at, n);
    return to + n;
}

static uint8_t *put_crlf(uint8_t *to)
{
    to[0] = '\r';
    to[1] = '\n';
    return to + 2;
}

/* type, v, CRLF at `to`. @return the first byte after them. */
static uint8_t *put_header(uint8_t *to, char type, uint64_t v)
{
    *to = (uint8_t)type;
    return put_crlf(put_digits(to + 1, v));
}

/* Room for n bytes; NULL if no client waits or memory is short. */
static uint8_t *reserve(struct qn_buf *b, size_t n)
{
    if (b == NULL) {
        return NULL;
    }
    return b->cap - b->len >= n && !b->oom && b->data != NULL
               ? b->data + b->len
               : qn_buf_reserve(b, n);
}

static void written_to(struct qn_buf *b, const uint8_t *end)
{
    b->len = (size_t)(end - b->data);
}

static void header(struct qn_buf *b, char type, uint64_t v)
{
    uint8_t *to = reserve(b, HEADER_MAX);
    if (to != NULL) {
        written_to(b, put_header(to, type, v));
    }
}

static void constant(struct qn_buf *b, const char *text, size_t len)
{
    if (b != NULL) {
        qn_buf_append(b, text, len);
    }
}

#define CONSTANT(b, text) constant((b), (text), sizeof(text) - 1)

void qn_reply_status(struct qn_buf *b, const char *text)
{
    size_t len = strlen(text);
    uint8_t *to = reserve(b, len + 3);
    if (to != NULL) {
        *to = '+';
        memcpy(to + 1, text, len);
        written_to(b, put_crlf(to + 1 + len));
    }
}

void qn_reply_ok(struct qn_buf *b)
{
    CONSTANT(b, "+OK\r\n");
}

/* Write at `to`, with room for `room` bytes, what fits of the text, and a NUL.
 * @return its whole length in bytes; 0 if it cannot be formatted. */
static size_t print(uint8_t *to, size_t room, const char *fmt, va_list args)
{
    int n = vsnprintf((char *)to, room, fmt, args);
    return n < 0 ? 0 : (size_t)n;
}

void qn_reply_error(struct qn_buf *b, const char *fmt, ...)
{
    /* Most texts fit the first guess; a longer one is printed again. */
    size_t room = 256;
    if (b != NULL) {
        b->error = true;
    }
    for (;;) {
        uint8_t *to = reserve(b, room + 3);
        if (to == NULL) {
            return;
        }
        va_list args;
        va_start(args, fmt);
        size_t len = print(to + 1, room, fmt, args);
        va_end(args);
        if (len >= room) {
            room = len + 1;
            continue;
        }
        *to = '-';
        for (size_t i = 1; i <= len; i++) {
            if (to[i] == '\r' || to[i] == '\n') {
                to[i] = ' ';
            }
        }
        written_to(b, put_crlf(to + 1 + len));
        return;
    }
}

void qn_reply_int(struct qn_buf *b, int64_t v)
{
    uint8_t *to = reserve(b, HEADER_MAX);
    if (to == NULL) {
        return;
    }
    *to++ = ':';
    uint64_t magnitude = (uint64_t)v;
    if (v < 0) {
        *to++ = '-';
        magnitude = 0 - magnitude; /* INT64_MIN too */
    }
    written_to(b, put_crlf(put_digits(to, magnitude)));
}

void qn_reply_bulk(struct qn_buf *b, const void *data, size_t len)
{
    uint8_t *to = reserve(b, HEADER_MAX + len + 2);
    if (to == NULL) {
        return;
    }
    to = put_header(to, '$', len);
    if (len != 0) {
        memcpy(to, data, len);
    }
    written_to(b, put_crlf(to + len));
}

void qn_reply_bulk_str(struct qn_buf *b, const char *text)
{
    qn_reply_bulk(b, text, strlen(text));
}

void qn_reply_null(struct qn_buf *b, uint8_t proto)
{
    if (proto == 3) {
        CONSTANT(b, "_\r\n");
    } else {
        CONSTANT(b, "$-1\r\n");
    }
}

void qn_reply_null_array(struct qn_buf *b, uint8_t proto)
{
    if (proto == 3) {
        CONSTANT(b, "_\r\n");
    } else {
        CONSTANT(b, "*-1\r\n");
    }
}

void qn_reply_array(struct qn_buf *b, size_t n)
{
    header(b, '*', n);
}

void qn_reply_map(struct qn_buf *b, uint8_t proto, size_t pairs)
{
    if (proto == 3) {
        header(b, '%', pairs);
    } else {
        header(b, '*', pairs * 2);
    }
}

void qn_reply_set(struct qn_buf *b, uint8_t proto, size_t n)
{
    header(b, proto == 3 ? '~' : '*', n);
}

void qn_reply_text(struct qn_buf *b, uint8_t proto, const char *text,
                   size_t len)
{
    static const char format[] = "txt:";
    if (proto != 3) {
        qn_reply_bulk(b, text, len);
        return;
    }
    size_t n = sizeof format - 1;
    uint8_t *to = reserve(b, HEADER_MAX + n + len + 2);
    if (to == NULL) {
        return;
    }
    to = put_header(to, '=', n + len);
    memcpy(to, format, n);
    if (len != 0) {
        memcpy(to + n, text, len);
    }
    written_to(b, put_crlf(to + n + len));
}
