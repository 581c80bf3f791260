#ifndef QN_LOADGEN_NET_ADDRESS_H
#define QN_LOADGEN_NET_ADDRESS_H

/** Address of a server: HOST:PORT, [V6]:PORT or unix:PATH. */

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
 * Check the form of an address; the host need not exist. Pure.
 *
 * @return QN_OK; QN_EINVAL if the form is wrong, QN_ERANGE if the port is not 1
 *         to 65535.
 */
int qn_address_check(const char *text);

/**
 * Resolve an address; may block on DNS.
 *
 * @param text  Kept.
 * @param a     Filled.
 * @return QN_OK; errors of qn_address_check; QN_ENOENT if the host is unknown.
 */
int qn_address_resolve(struct qn_address *a, const char *text);

/** Text for an error of the two functions above: the end of a line, without a
 *  newline. */
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

/** Fill `why` [size] from errno after a failed operation on a socket with a
 *  time limit of `seconds`. */
void qn_address_why(int seconds, char *why, size_t size);

/**
 * Connect, send requests and wait for their replies; blocks for at most two
 * seconds per step. The first error reply ends it.
 *
 * @param requests  RESP, `count` of them. Borrowed.
 * @param error     [error_size] Filled on failure: the reason or the error
 *                  reply, without a newline.
 * @return QN_OK; QN_EPERM after an error reply; QN_EIO if the server is not
 *         reachable or does not speak RESP.
 */
int qn_address_ask(const struct qn_address *a, const char *requests, int count,
                   char *error, size_t error_size);

/**
 * Connect, send PING (and HELLO 3 if wanted) and wait for the reply; blocks for
 * at most two seconds.
 *
 * @param error  [error_size] Filled on failure: the reason, without a newline.
 * @return QN_OK; QN_EIO if the server is not reachable, does not speak RESP or
 *         refuses the connection.
 */
int qn_address_probe(const struct qn_address *a, bool resp3, char *error,
                     size_t error_size);

#endif
