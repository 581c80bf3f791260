#ifndef QN_KVS_LISTEN_LISTEN_H
#define QN_KVS_LISTEN_LISTEN_H

/**
 * The listening sockets of a server. Its supervisor makes and keeps them.
 *
 * TCP: one socket per seat on the shared address, all with SO_REUSEPORT, so
 * that the kernel spreads connections over them; and one per replica on the
 * replica's own port. The shared sockets are bound in the order of ids, so a
 * socket's index in its group is its replica's id. All replicas hold them, also
 * those of vacant seats, so none is opened or closed, and no queue is reset,
 * while any replica runs, whichever come and go (kvs/server/server_accept.h).
 * Unix: one socket at PATH that all replicas accept from, and one per replica
 * at PATH.i. Accepted TCP connections inherit no-delay and keep-alive.
 *
 * SO_REUSEPORT would let a second server of the same user share the address
 * silently. Two measures prevent that: a lock, held as long as any process of
 * this server runs, and a bind without the option before the real ones.
 *
 * One thread. Nothing blocks.
 */

#include "core/node.h"
#include "kvs/config/config.h"

/** Kinds of sockets that an adopter receives. */
enum qn_listen_kind {
    QN_LISTEN_SOCKET,    /* a listening one; its address says which */
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

/** Begin with nothing open. `c` is kept, and must be checked (qn_config_check)
 * before qn_listen_open.
 */
void qn_listen_init(struct qn_listen *l, const struct qn_config *c);

/**
 * Make all sockets; connections wait in them until a replica accepts.
 *
 * @param why  [cap] Filled on failure: one line that says what to do.
 * @return QN_OK; QN_EADDRINUSE: another process has the address; QN_EPERM: it
 *         may not be bound; QN_EMFILE; QN_EIO: any other reason. Nothing is
 *         left behind on failure.
 */
int qn_listen_open(struct qn_listen *l, char *why, size_t cap);

/** The name of the address in the run-time folder; all spellings of a path's
 *  directory have the same name. @return QN_OK; QN_ENOENT: it has no name
 *  (port 0 has one only when it is open, see `port`; or no such directory,
 *  and errno says why). */
int qn_listen_name(const struct qn_config *c, char *name, size_t cap);

#define QN_LISTEN_SHOWN_MAX (QN_CONFIG_TEXT_MAX + 16)
/** The address in the usual form, with that port: 127.0.0.1:7379, [::1]:7379,
 *  or a path. @param text  [QN_LISTEN_SHOWN_MAX] Filled. @return text. */
const char *qn_listen_shown(const struct qn_config *c, uint32_t port,
                            char *text);

/** Take over a socket of a running server that belongs to `node`. `fd` is
 *  taken, even if it is not needed. */
void qn_listen_adopt(struct qn_listen *l, qn_node_t node,
                     enum qn_listen_kind kind, int fd);

/** Unix: make the socket pair for passed connections, for each replica that
 *  has none. @return QN_OK; QN_EMFILE. */
int qn_listen_pass(struct qn_listen *l);

/** Make the own socket of `node`, if it should have one and has none. Errors
 *  as qn_listen_open. */
int qn_listen_own(struct qn_listen *l, qn_node_t node, char *why, size_t cap);

/** The socket on the shared address that `node` accepts from. */
int qn_listen_shared(const struct qn_listen *l, qn_node_t node);

/** In a replica's process: close the own ports of other replicas, and keep
 *  all shared sockets (kvs/server/server_accept.h) and the lock. Nothing is
 *  removed from the file system. */
void qn_listen_keep_only(struct qn_listen *l, qn_node_t node);

/** `node` has ended for good: close its own port or path. The other replicas
 *  accept what arrives at its socket on the shared address. */
void qn_listen_close_node(struct qn_listen *l, qn_node_t node);

/** Close all and remove the Unix sockets. Harmless when closed already. */
void qn_listen_close(struct qn_listen *l);

#endif
