#ifndef QN_LOADGEN_NET_ONESHOT_REQUEST_H
#define QN_LOADGEN_NET_ONESHOT_REQUEST_H

/** One request to a server, with its whole reply. */

#include <stddef.h>

#include "kvs/base/buf.h"

/**
 * Connect, send one request and wait for its reply.
 *
 * @param patience_s  At most so long for each step.
 * @param address  HOST:PORT, [V6]:PORT or unix:PATH.
 * @param request  RESP, borrowed.
 * @param out      Filled: the bytes of a bulk, else the line without its type.
 *                 Appended to; after a failure it may hold a part of the reply.
 * @param why      [cap] Filled if the result is 0: the reason, without the
 *                 address.
 * @return type of the reply: '$', '+', '-', ...; 0: no reply.
 */
int qn_oneshot_request_within(const char *address, const char *request,
                              int patience_s, struct qn_buf *out, char *why,
                              size_t cap);

/** With five seconds per step. */
int qn_oneshot_request(const char *address, const char *request,
                       struct qn_buf *out, char *why, size_t cap);

#endif
