#ifndef QN_KVS_COMMAND_H
#define QN_KVS_COMMAND_H

/**
 * Commands: one table, and what each does to the store.
 *
 * The table is the single source of names, arity, key positions, flags and
 * documentation (COMMAND COUNT, LIST, INFO, DOCS answer from it). A command's
 * `where` says who executes it (kvs/RESP.md, section 5):
 *
 *   QN_CMD_WRITE   encoded, put through the log, executed by qn_cmd_apply on
 *                  every replica; errors are decided there, so that all agree
 *   QN_CMD_READ    executed by qn_cmd_read on the connection's own replica
 *   QN_CMD_LOCAL   answered by the connection's process (kvs/local.h)
 *   QN_CMD_ALL     asked of all replicas by the process that got it
 *
 * Pure: no clock, no configuration, no randomness except what the caller
 * passes. Threads: apply belongs to the store's writer; read to any reader.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/bits.h"
#include "core/node.h"
#include "kvs/buf.h"
#include "kvs/store.h"

enum qn_cmd_where { QN_CMD_WRITE, QN_CMD_READ, QN_CMD_LOCAL, QN_CMD_ALL };

struct qn_cmd_call; /* below */

struct qn_cmd {
    const char *name; /* lower case */
    uint16_t id;      /* in the log; never reused, never changed */
    int16_t arity;    /* as in Redis: name included, negative: at least */
    enum qn_cmd_where where;
    int8_t key_first, key_last, key_step; /* as in COMMAND INFO */
    const char *flags; /* blank-separated, as in COMMAND INFO */
    const char *group; /* "string", "generic", ... for COMMAND DOCS */
    const char *since;
    const char *summary; /* one sentence */
    /** WRITE and READ: execute. LOCAL and ALL: NULL. */
    void (*run)(struct qn_store *s, const struct qn_cmd_call *c);
};

/** One execution. */
struct qn_cmd_call {
    const struct qn_cmd *cmd;
    const struct qn_slice *argv; /* [argc], argv[0] is the name. Borrowed */
    uint32_t argc;
    uint32_t db;
    uint8_t proto;        /* 2 or 3: how the reply is written */
    struct qn_buf *reply; /* NULL: nobody waits here */
    qn_slot_t slot;       /* WRITE: its position */
    uint64_t stamp_ms;    /* WRITE: its batch's stamp; READ: last applied */
    uint64_t random;      /* READ: for RANDOMKEY */
    uint64_t value_max;   /* proto-max-bulk-len in force */
};

/** Find by name, any case. NULL: unknown. O(1). */
const struct qn_cmd *qn_cmd_find(struct qn_slice name);
/** By id in the log; NULL: unknown (a newer peer's). */
const struct qn_cmd *qn_cmd_by_id(uint16_t id);
/** i-th of the table, NULL past the end. */
const struct qn_cmd *qn_cmd_at(uint32_t i);

/** True if argc fits the arity; else the error reply was written. */
bool qn_cmd_check_arity(const struct qn_cmd *cmd, uint32_t argc,
                        struct qn_buf *reply);

/** Write `-ERR unknown command ...` as Redis does. */
void qn_cmd_reply_unknown(struct qn_buf *reply, const struct qn_slice *argv,
                          uint32_t argc);

/** Encode a WRITE for the log: {id, db, argc, lengths} into head[], followed
 *  in the log by the argument bytes. parts[0] becomes head, the others borrow
 *  the arguments. parts has room for argc + 1. @return parts used. */
uint32_t qn_cmd_encode(const struct qn_cmd_call *c, struct qn_buf *head,
                       struct qn_slice *parts);

/** Decode; argv_store[argv_cap] filled, call's cmd, argv, argc, db set.
 *  @return QN_OK; QN_ECORRUPT; QN_ENOMEM if argv_cap is too small (*need
 *  filled). */
int qn_cmd_decode(struct qn_slice bytes, struct qn_slice *argv_store,
                  uint32_t argv_cap, uint32_t *need, struct qn_cmd_call *c);

#endif
