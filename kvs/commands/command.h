#ifndef QN_KVS_COMMANDS_COMMAND_H
#define QN_KVS_COMMANDS_COMMAND_H

/**
 * Commands: one table, and what each command does to the store.
 *
 * The table is the single source of names, arity, key positions, flags and
 * documentation (COMMAND COUNT, LIST, INFO, DOCS answer from it). A command's
 * `where` says where it is executed (kvs/resp/RESP.md, section 5):
 *
 *   QN_CMD_WRITE   encoded, put through the log, executed by qn_cmd_run on
 *                  every replica when it applies the entry; errors are decided
 *                  there, so that all agree
 *   QN_CMD_READ    executed by qn_cmd_run on the connection's own replica
 *   QN_CMD_LOCAL   answered by the connection's process (kvs/local); what
 *                  needs nothing but the table (COMMAND, HELP) can be executed
 *                  by qn_cmd_run with a NULL store
 *   QN_CMD_ALL     asked of all replicas by the process that received it
 *
 * A subcommand is a row of its own, named `container|sub`.
 *
 * Pure: no clock, no configuration, no randomness except what the caller
 * passes. No function blocks. Threads: WRITE belongs to the store's writer,
 * READ to any reader; the functions on names and bytes may be called from any
 * thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/bits.h"
#include "core/node.h"
#include "kvs/base/buf.h"
#include "kvs/store/store.h"

enum qn_cmd_where { QN_CMD_WRITE, QN_CMD_READ, QN_CMD_LOCAL, QN_CMD_ALL };

struct qn_cmd_call; /* below */

/** A command's body. @return QN_OK; QN_ENOMEM; QN_EDQUOT: it would grow the
 *  store beyond `memory_max`, and nothing has changed. On an error, what was
 *  written of the reply is void. */
typedef int qn_cmd_run_fn(struct qn_store *s, const struct qn_cmd_call *c);

struct qn_cmd {
    const char *name; /* lower case; `client|list` for a subcommand */
    uint16_t id;      /* in the log; never reused nor changed; below
                         QN_CMD_IDS_MAX; 0: never in the log */
    int16_t arity;    /* as in Redis: name included, negative: at least */
    enum qn_cmd_where where;
    int8_t key_first, key_last, key_step; /* as in COMMAND INFO */
    uint8_t subs;           /* the next `subs` rows are its subcommands */
    qn_cmd_run_fn *run;     /* NULL: not executed here. Call qn_cmd_run */
    const char *flags;      /* blank-separated, as in COMMAND INFO */
    const char *acl;        /* categories that do not follow from the flags */
    const char *keys;       /* flags of the key specification; NULL: no keys */
    const char *tips;       /* as in COMMAND INFO; NULL: none */
    const char *group;      /* "string", "generic", ... for COMMAND DOCS */
    const char *since;      /* version of Redis */
    const char *cost;       /* "O(1)" */
    const char *deprecated; /* since this version, or NULL */
    const char *replaced;   /* by what, if deprecated */
    const char
        *syntax; /* arguments, see kvs/commands/cmd_syntax.h; NULL: none */
    const char *summary; /* one sentence */
};

#define QN_CMD_ROWS_MAX 255u /* rows of the table, subcommands included */
#define QN_CMD_IDS_MAX  256u

/** One execution. */
struct qn_cmd_call {
    const struct qn_cmd *cmd;
    const struct qn_slice *argv; /* [argc], argv[0] is the name. Borrowed */
    uint32_t argc;               /* fits the arity */
    uint32_t db;
    uint8_t proto;          /* 2 or 3: how the reply is written */
    struct qn_buf *reply;   /* NULL: no client waits here */
    qn_slot_t slot;         /* WRITE: its position */
    uint64_t stamp_ms;      /* WRITE: its batch's stamp; READ: last applied */
    uint64_t random;        /* READ: for RANDOMKEY */
    uint64_t value_max;     /* bytes, proto-max-bulk-len; 0: the store's */
    uint64_t key_max;       /* bytes, max-key-len; 0: the store's */
    uint64_t memory_max;    /* WRITE: logical bytes, maxmemory; 0: no limit */
    struct qn_refbuf *keep; /* WRITE: as in struct qn_put */
    /** CONFIG SET, a WRITE: apply the pairs argv[2..argc), all or none, and
     *  write the reply. NULL in other calls. */
    void (*configure)(void *ctx, const struct qn_cmd_call *c);
    void *configure_ctx;
};

/** Find a command by name, in any case. NULL: unknown. O(1), wait-free. */
const struct qn_cmd *qn_cmd_find(struct qn_slice name);
/** Find a subcommand of a container by its own name ("list"), in any case.
 *  NULL: unknown. O(subcommands). */
const struct qn_cmd *qn_cmd_find_sub(const struct qn_cmd *container,
                                     struct qn_slice name);
/** Find a command by its id in the log. NULL: unknown (of a newer version).
 *  O(1). */
const struct qn_cmd *qn_cmd_by_id(uint16_t id);
/** The i-th row of the table, subcommands behind their container; NULL past
 *  the end. */
const struct qn_cmd *qn_cmd_at(uint32_t i);
/** The row's number i, below QN_CMD_ROWS_MAX: for counters per command. */
uint32_t qn_cmd_index(const struct qn_cmd *cmd);

/** The command that a request names, or the subcommand if it is a container;
 *  NULL: none. The arity is not checked. argc >= 1. */
const struct qn_cmd *qn_cmd_named(const struct qn_slice *argv, uint32_t argc);

/** A front end's first step with a request: find the command, or the subcommand
 * if it is a container, and check the arity. argc >= 1.
 *  @return NULL: the error reply was written. */
const struct qn_cmd *qn_cmd_resolve(const struct qn_slice *argv, uint32_t argc,
                                    struct qn_buf *reply);

/** True if argc fits the arity; else the error reply was written. */
bool qn_cmd_check_arity(const struct qn_cmd *cmd, uint32_t argc,
                        struct qn_buf *reply);

/** Write `-ERR unknown command ...` as Redis does. */
void qn_cmd_reply_unknown(struct qn_buf *reply, const struct qn_slice *argv,
                          uint32_t argc);

/** Write `-ERR unknown subcommand ...`; argc >= 2. */
void qn_cmd_reply_unknown_sub(struct qn_buf *reply,
                              const struct qn_cmd *container,
                              struct qn_slice sub);

/**
 * Execute: check the lengths of the keys, then cmd->run (not NULL).
 *
 * A command that would make the store grow beyond `memory_max` changes nothing
 * and is answered -OOM. The logical size of the store and the entries that the
 * command replaces decide that, so the log alone does.
 *
 * @return QN_OK: the reply, which may be an error, was written; QN_ENOMEM: the
 *         store could not take the write. Other replicas may have taken it, so
 *         this replica must not continue with its state. What was written of
 *         the reply is void.
 */
int qn_cmd_run(struct qn_store *s, const struct qn_cmd_call *c);

/** True if the reply is +OK whatever the store holds, unless it is an error. */
bool qn_cmd_says_ok(const struct qn_cmd_call *c);

/**
 * Encode a WRITE (or a READ, inside EXEC) for the log. The format is in
 * kvs/commands/cmd_codec.c.
 *
 * @param head   {version, db, id, argument count, lengths} is appended; in the
 *               log the bytes of the arguments follow.
 * @param parts  [argc + 1] Filled: parts[0] is what was appended, valid until
 *               head grows; the others borrow the arguments.
 * @return parts used; 0: no memory for head.
 */
uint32_t qn_cmd_encode(const struct qn_cmd_call *c, struct qn_buf *head,
                       struct qn_slice *parts);

/**
 * Decode a command of the log. Any bytes are safe; a result fits the arity of
 * its command and can be executed.
 *
 * @param bytes       Borrowed as long as the arguments are used.
 * @param argv_store  [argv_cap] Filled: the arguments, borrowed from bytes.
 * @param need        Filled if argv_cap is too small: the number of arguments.
 * @param c           cmd, argv, argc and db are set.
 * @return QN_OK; QN_ECORRUPT: malformed, or of a newer version; QN_ENOMEM:
 *         argv_cap is too small.
 */
int qn_cmd_decode(struct qn_slice bytes, struct qn_slice *argv_store,
                  uint32_t argv_cap, uint32_t *need, struct qn_cmd_call *c);

#define QN_CMD_ERR_SYNTAX "ERR syntax error"

/** True if argument `a` is `word` (lower case), in any case. */
bool qn_cmd_word_is(struct qn_slice a, const char *word);

#endif
