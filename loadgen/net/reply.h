#ifndef QN_LOADGEN_NET_REPLY_H
#define QN_LOADGEN_NET_REPLY_H

/**
 * A scanner of RESP2 and RESP3 replies, for a client that counts and checks
 * them: it finds where each reply ends, tells its type and number, and shows
 * its first bytes. It keeps no more than those, whatever the reply's size.
 *
 * A state machine over any segmentation of the stream: no socket, no
 * allocation. One thread per scanner.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QN_REPLY_HEAD_MAX  128 /* bytes of a reply that are kept and shown */
#define QN_REPLY_DEPTH_MAX 8   /* arrays in arrays */

/** A checksum of bytes in their order (Fletcher's). All zero: of none. */
struct qn_reply_sum {
    uint64_t a;
    uint64_t b;
};

/** Add bytes; the same in any segmentation. */
void qn_reply_sum_add(struct qn_reply_sum *s, const uint8_t *p, size_t len);

struct qn_reply {
    char type;           /* first byte of the reply; '_' for every null */
    int64_t number;      /* ':' value; '$' '=' '!' length in bytes; '*' '~' '%'
                            elements (pairs); else 0 */
    const uint8_t *head; /* a line without its type, or the bulk's bytes; valid
                            until the next call or until the input goes */
    size_t head_len;     /* bytes, at most QN_REPLY_HEAD_MAX */
    struct qn_reply_sum sum; /* of a bulk's bytes; zeros unless asked for */
};

/** Private but for its size. All zero but `sums`: ready for the first byte. */
struct qn_reply_scanner {
    struct {
        uint64_t left; /* elements to come */
        bool aside;    /* a push or an attribute: not a reply itself */
    } frame[QN_REPLY_DEPTH_MAX];
    uint32_t depth;     /* frames in use */
    uint32_t phase;     /* what the next byte belongs to */
    uint64_t body_left; /* bytes of the bulk still to come, without CRLF */
    bool sums;          /* set by the caller: make the sums of bulks */
    bool top;           /* the bulk is the reply itself, not an element */
    struct qn_reply reply;
    uint8_t last; /* byte of an unfinished line */
    uint32_t kept_len;
    uint8_t kept[QN_REPLY_HEAD_MAX + 3]; /* a line or head in pieces: type,
                                            QN_REPLY_HEAD_MAX bytes, CRLF */
};

/**
 * Scan up to the end of one reply.
 *
 * Pushes and attributes of RESP3 are passed over: they answer nothing.
 *
 * @param data  [len] Borrowed; what comes after the bytes already used.
 * @param used  Filled: how many bytes were taken. All of them, unless the
 *              answer is 1.
 * @param out   Filled when the answer is 1.
 * @return 1: a reply ended; 0: more bytes are needed; QN_ECORRUPT: this is not
 *         RESP, or deeper than QN_REPLY_DEPTH_MAX; the stream is lost.
 */
int qn_reply_scan(struct qn_reply_scanner *s, const uint8_t *data, size_t len,
                  size_t *used, struct qn_reply *out);

#endif
