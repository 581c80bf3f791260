#ifndef QN_LOADGEN_NET_REPLY_H
#define QN_LOADGEN_NET_REPLY_H

/**
 * A scanner of RESP2 and RESP3 replies, for a client that counts and checks
 * them. It finds the end of each reply and gives its type, its number and its
 * first bytes. It keeps only these, whatever the size of the reply.
 *
 * A state machine over any segmentation of the stream: no socket, no
 * allocation. One thread per scanner.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QN_REPLY_HEAD_MAX  128 /* bytes of a reply that are kept and shown */
#define QN_REPLY_DEPTH_MAX 8   /* nested aggregates */

/** Order-dependent checksum of bytes (Fletcher). All zero: no bytes. */
struct qn_reply_sum {
    uint64_t a;
    uint64_t b;
};

/** Add bytes; the result does not depend on the segmentation. */
void qn_reply_sum_add(struct qn_reply_sum *s, const uint8_t *p, size_t len);

struct qn_reply {
    char type;      /* first byte of the reply; '_' for every null */
    int64_t number; /* ':' value; '$' '=' '!' length in bytes; '*' '~' '%'
                       elements (pairs); else 0 */
    const uint8_t
        *head; /* a line without its type, or the bytes of the bulk; valid until
                  the next call and as long as the input */
    size_t head_len; /* bytes, at most QN_REPLY_HEAD_MAX */
    struct qn_reply_sum
        sum; /* of the bytes of a bulk; zero unless `sums` is set */
};

/** Private. All zero except `sums`: ready for the first byte. */
struct qn_reply_scanner {
    struct {
        uint64_t left; /* elements still to come */
        bool aside;    /* a push or an attribute, which is not a reply */
    } frame[QN_REPLY_DEPTH_MAX];
    uint32_t depth;     /* frames in use */
    uint32_t phase;     /* part of the reply that the next byte belongs to */
    uint64_t body_left; /* bytes of the bulk still to come, without CRLF */
    bool sums;          /* set by the caller: compute sums of bulks */
    bool top;           /* the bulk is the reply itself, not an element */
    struct qn_reply reply;
    uint8_t last; /* last byte of an unfinished line */
    uint32_t kept_len;
    uint8_t kept[QN_REPLY_HEAD_MAX + 3]; /* a split line or head: type,
                                            QN_REPLY_HEAD_MAX bytes, CRLF */
};

/**
 * Scan up to the end of one reply.
 *
 * Pushes and attributes of RESP3 are skipped, since they answer no request.
 *
 * @param data  [len] Borrowed; the bytes that follow those already used.
 * @param used  Filled: number of bytes taken; all of them, unless the result is
 *              1.
 * @param out   Filled if the result is 1.
 * @return 1: a reply ended; 0: more bytes are needed; QN_ECORRUPT: not RESP, or
 *         nested deeper than QN_REPLY_DEPTH_MAX; the stream cannot be used any
 *         more.
 */
int qn_reply_scan(struct qn_reply_scanner *s, const uint8_t *data, size_t len,
                  size_t *used, struct qn_reply *out);

#endif
