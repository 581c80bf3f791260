#ifndef QN_LOADGEN_NET_ADDRESS_H
#define QN_LOADGEN_NET_ADDRESS_H

/** Where a server listens: HOST:PORT, [V6]:PORT or unix:PATH. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

struct qn_address {
    const char *text; /* as typed; kept */
    struct sockaddr_storage addr;
    socklen_t len;
};

/**
 * Is it an address, whether or not the host exists? Pure.
 *
 * @return QN_OK; QN_EINVAL if it has no such form, QN_ERANGE if the port is not
 *         1 to 65535.
 */
int qn_address_check(const char *text);

/**
 * Resolve an address; may block on DNS.
 *
 * @param text  Kept.
 * @param a     Filled.
 * @return QN_OK; as qn_address_check; QN_ENOENT if the host is not known.
 */
int qn_address_resolve(struct qn_address *a, const char *text);

/** What is wrong with an address, from an error of the two above: the end of a
 *  line, no newline. */
const char *qn_address_refusal(int err);

static inline bool qn_address_is_unix(const struct qn_address *a)
{
    return a->addr.ss_family == AF_UNIX;
}

/** The path of a Unix address. */
static inline const char *qn_address_path(const struct qn_address *a)
{
    return ((const struct sockaddr_un *)(const void *)&a->addr)->sun_path;
}

/** Why a step on a socket with a limit of time failed: `why` [size] is filled
 *  from errno. @param seconds  The limit. */
void qn_address_why(int seconds, char *why, size_t size);

/**
 * Connect, send requests and wait for their replies, blocking for two seconds
 * at most per step. An error reply ends it.
 *
 * @param requests  RESP, `count` of them. Borrowed.
 * @param error     [error_size] Filled on failure: why, no newline; an error
 *                  reply itself.
 * @return QN_OK; QN_EPERM after an error reply; QN_EIO if nobody listens or
 * what answers is no RESP server.
 */
int qn_address_ask(const struct qn_address *a, const char *requests, int count,
                   char *error, size_t error_size);

/**
 * Connect, send PING (and HELLO 3 if wanted) and wait for a reply, blocking for
 * two seconds at most.
 *
 * @param error  [error_size] Filled on failure: why, no newline.
 * @return QN_OK; QN_EIO if nobody listens or what answers is no RESP server
 *         that lets us in.
 */
int qn_address_probe(const struct qn_address *a, bool resp3, char *error,
                     size_t error_size);

#endif
