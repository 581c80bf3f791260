#ifndef QN_KVS_INTROSPECT_CLIENTINFO_H
#define QN_KVS_INTROSPECT_CLIENTINFO_H

/**
 * CLIENT LIST, INFO and KILL: the line about a connection, and the filters
 * that choose connections. A filter borrows the request's arguments; the
 * replica that got the request checks it and passes the arguments on, and each
 * replica parses them again.
 *
 * Pure, any thread. Nothing blocks.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/bits.h"
#include "kvs/base/buf.h"

/** One connection. Strings are borrowed, NUL-terminated; NULL: empty. */
struct qn_client_info {
    uint64_t id;       /* unique over all replicas */
    const char *addr;  /* peer, "127.0.0.1:50770", "[::1]:50770", "unix:0" */
    const char *laddr; /* own end */
    int64_t fd;
    const char *name;
    uint64_t age_s;
    uint64_t idle_s; /* since the last request */
    uint32_t db;
    bool blocked;        /* flag b: waits in a command */
    bool closing;        /* flag c: closed when its replies are written */
    bool is_unix;        /* flag U */
    bool no_evict;       /* flag e */
    bool no_touch;       /* flag T */
    bool writing;        /* has output that the socket did not take */
    uint64_t qbuf;       /* bytes of input held */
    uint64_t qbuf_free;  /* room behind them */
    uint64_t argv_mem;   /* bytes of a held request */
    uint64_t out_buffer; /* bytes of the output buffer */
    uint64_t out_used;   /* of these, in use */
    uint64_t out_queued; /* bytes handed to the socket and not yet taken */
    uint64_t total_mem;  /* bytes, all told */
    const char *cmd;     /* last command, "client|list"; NULL: none */
    const char *user;
    uint8_t proto; /* 2 or 3 */
    const char *lib_name;
    const char *lib_ver;
};

/** Append the line of CLIENT LIST and INFO, with LF at its end: the fields of
 *  Redis 7.0 in its order, then lib-name and lib-ver of 7.2. */
void qn_client_info_line(struct qn_buf *out, const struct qn_client_info *c);

enum qn_client_type {
    QN_CLIENT_ANY,
    QN_CLIENT_NORMAL, /* all connections of v1 */
    QN_CLIENT_REPLICA,
    QN_CLIENT_MASTER,
    QN_CLIENT_PUBSUB,
};

/** CLIENT LIST [TYPE t | ID id ...] */
struct qn_client_list {
    enum qn_client_type type;
    const struct qn_slice *ids; /* [id_count] borrowed; none: all */
    uint32_t id_count;
};

/** Parse a whole request, argv[0] is "client". @return false: the error reply
 *  was written, *out is untouched. */
bool qn_client_list_parse(const struct qn_slice *argv, uint32_t argc,
                          struct qn_client_list *out, struct qn_buf *reply);
/** True if the filter chooses connection c. */
bool qn_client_list_matches(const struct qn_client_list *f,
                            const struct qn_client_info *c);

/** CLIENT KILL addr | CLIENT KILL [ID id] [TYPE t] [USER u] [ADDR a] [LADDR a]
 *  [SKIPME yes|no] */
struct qn_client_kill {
    bool old_form; /* addr alone: replies OK, may kill the asker */
    bool skip_me;  /* leave the connection that asks */
    uint64_t id;   /* 0: any */
    enum qn_client_type type;
    const struct qn_slice *addr, *laddr, *user; /* borrowed; NULL: any */
};

/** As qn_client_list_parse. The only user is `default`; any other user is an
 *  error. */
bool qn_client_kill_parse(const struct qn_slice *argv, uint32_t argc,
                          struct qn_client_kill *out, struct qn_buf *reply);
/** True if the filter chooses connection c. @param me c is the connection
 *  that asked. */
bool qn_client_kill_matches(const struct qn_client_kill *f,
                            const struct qn_client_info *c, bool me);
/** Write the reply, after `killed` connections were closed on all replicas. */
void qn_client_kill_reply(const struct qn_client_kill *f, uint64_t killed,
                          struct qn_buf *reply);

#endif
