#ifndef QN_KVS_LISTEN_LISTEN_H
#define QN_KVS_LISTEN_LISTEN_H

/**
 * The listening sockets of a server, made and kept by its supervisor.
 *
 * TCP: one socket per replica on the shared address, all with SO_REUSEPORT, so
 * that the kernel spreads connections over them; and one per replica on a port
 * of its own. The shared ones are bound in the order of ids and held by all
 * replicas, so that none is closed, and its queue reset, while one of them
 * lives (kvs/server/server_accept.h), and a socket's index in its group is its
 * replica's id. Unix: one socket at PATH that all replicas accept from, and one
 * per replica at PATH.i. Accepted TCP connections inherit no-delay and
 * keep-alive.
 *
 * SO_REUSEPORT would let a second server of the same user share the address
 * silently. Two things stop that: a lock, held as long as any process of this
 * server lives, and a bind without the option before the real ones.
 *
 * One thread.
 */

#include "core/node.h"
#include "kvs/config/config.h"

/** What an adopter is given. */
enum qn_listen_kind {
    QN_LISTEN_SOCKET,    /* a listening one: which, it says itself */
    QN_LISTEN_PASS_FROM, /* kvs/listen/fd_passing.h */
    QN_LISTEN_PASS_TO,
};

struct qn_listen {
    const struct qn_config *config; /* kept */
    int lock;                       /* a locked file; -1 */
    int shared[QN_NODES_MAX];       /* TCP: one each; Unix: [0]; -1: none */
    int own[QN_NODES_MAX];          /* -1: none */
    int pass_from[QN_NODES_MAX];    /* kvs/listen/fd_passing.h; -1: none */
    int pass_to[QN_NODES_MAX];
    uint32_t port;                   /* shared, really bound; 0: Unix */
    uint32_t own_port[QN_NODES_MAX]; /* really bound; 0: none */
};

/** Nothing open yet. `c` is kept; it is checked (qn_config_check) before open.
 */
void qn_listen_init(struct qn_listen *l, const struct qn_config *c);

/**
 * Make them all; connections wait in them until somebody accepts.
 *
 * @param why  [cap] Filled on failure: one line that says what to do.
 * @return QN_OK; QN_EADDRINUSE; QN_EPERM; QN_EMFILE; QN_EIO. Nothing is left
 *         behind on failure.
 */
int qn_listen_open(struct qn_listen *l, char *why, size_t cap);

/** What the address is called in the run-time folder; one name for all
 *  spellings of a path's directory. @return QN_OK; QN_ENOENT: it has none (port
 *  0, which has one once it is open: `port`; or no such directory: errno says
 *  why). */
int qn_listen_name(const struct qn_config *c, char *name, size_t cap);

/** The address as people write it, with that port: 127.0.0.1:7379, [::1]:7379,
 *  or a path. @return text [QN_LISTEN_SHOWN_MAX]. */
#define QN_LISTEN_SHOWN_MAX (QN_CONFIG_TEXT_MAX + 16)
const char *qn_listen_shown(const struct qn_config *c, uint32_t port,
                            char *text);

/** Take over a socket of a running server that is for `node`. It is taken, also
 *  if it is not needed. */
void qn_listen_adopt(struct qn_listen *l, qn_node_t node,
                     enum qn_listen_kind kind, int fd);

/** Unix: make what connections are passed on through, for each replica that
 *  has none. @return QN_OK; QN_EMFILE. */
int qn_listen_pass(struct qn_listen *l);

/** Make the socket of `node` alone, if there is none and there should be. As
 *  qn_listen_open. */
int qn_listen_own(struct qn_listen *l, qn_node_t node, char *why, size_t cap);

/** The socket on the shared address that `node` accepts from. */
int qn_listen_shared(const struct qn_listen *l, qn_node_t node);

/** In a replica's process: close the own ports of others; it keeps all that is
 *  shared (kvs/server/server_accept.h). Nothing is removed from the file
 * system. The lock stays held. */
void qn_listen_keep_only(struct qn_listen *l, qn_node_t node);

/** `node` has ended for good: close its own port or path. What comes to its
 *  socket on the shared address is for the others. */
void qn_listen_close_node(struct qn_listen *l, qn_node_t node);

/** Close all and remove the Unix sockets. Harmless when closed already. */
void qn_listen_close(struct qn_listen *l);

#endif
