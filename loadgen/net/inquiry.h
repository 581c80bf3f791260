#ifndef QN_LOADGEN_NET_INQUIRY_H
#define QN_LOADGEN_NET_INQUIRY_H

/** One request to a server, and its whole reply. */

#include <stddef.h>

#include "kvs/base/buf.h"

/**
 * Connect, send a request and wait for the reply; five seconds at most for each
 * step.
 *
 * @param whom     HOST:PORT, [V6]:PORT or unix:PATH.
 * @param request  RESP, borrowed.
 * @param out      Filled: the bytes of a bulk, else the line without its type.
 *                 Appended to; on failure perhaps a part.
 * @param why      [cap] Filled if the answer is 0: why, without `whom`.
 * @return type of the reply: '$', '+', '-', ...; 0: there is none.
 */
int qn_inquire(const char *whom, const char *request, struct qn_buf *out,
               char *why, size_t cap);

#endif
