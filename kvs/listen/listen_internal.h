#ifndef QN_KVS_LISTEN_LISTEN_INTERNAL_H
#define QN_KVS_LISTEN_LISTEN_INTERNAL_H

/**
 * What the files of listen.h share: listen.c keeps the sockets and the lock,
 * listen_tcp.c and listen_unix.c make the sockets.
 *
 * Functions that take `why` fill it when they fail; they return QN_OK or what
 * qn_listen_open returns.
 */

#include "kvs/listen/listen.h"

/** The caller's line. */
struct qn_error_line {
    char *text;
    size_t cap;
};

/** Write the line. @return `err`. */
int qn_listen_fail(const struct qn_error_line *why, int err, const char *fmt,
                   ...) __attribute__((format(printf, 3, 4)));

/** The QN_E* of an errno. */
int qn_listen_error(int e);

/** Close *fd if it is open, and set it to -1. */
void qn_listen_close_one(int *fd);

/** Lock the address `name` against other servers.
 *  @param shown  The address as a user writes it. */
int qn_listen_lock(struct qn_listen *l, const char *name, const char *shown,
                   const struct qn_error_line *why);

/** Claim the address and make all its sockets. On failure some may be open.
 */
int qn_listen_open_tcp(struct qn_listen *l, const struct qn_error_line *why);
/** As qn_listen_open_tcp. */
int qn_listen_open_unix(struct qn_listen *l, const struct qn_error_line *why);

/** Make the own socket of `node`. */
int qn_listen_own_tcp(struct qn_listen *l, qn_node_t node,
                      const struct qn_error_line *why);
/** As qn_listen_own_tcp. */
int qn_listen_own_unix(struct qn_listen *l, qn_node_t node,
                       const struct qn_error_line *why);

/** The port that a TCP socket is bound to. */
uint32_t qn_listen_port_of(int fd);

/** Remove PATH, or PATH.node if `own`. */
void qn_listen_unlink(const struct qn_config *c, bool own, qn_node_t node);

#endif
