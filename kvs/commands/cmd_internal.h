#ifndef QN_KVS_COMMANDS_CMD_INTERNAL_H
#define QN_KVS_COMMANDS_CMD_INTERNAL_H

/** What the files cmd_*.c share: the bodies of the commands, which the table
 *  names, and their access to the store. Threads: as kvs/commands/command.h
 *  says; nothing blocks. */

#include "core/base/err.h"
#include "kvs/commands/command.h"
#include "kvs/resp/reply.h"

extern const struct qn_cmd qn_cmd_table[];
extern const uint32_t qn_cmd_table_rows;

/* cmd_string.c */
qn_cmd_run_fn qn_cmd_get, qn_cmd_set, qn_cmd_setnx, qn_cmd_getset,
    qn_cmd_getdel, qn_cmd_mget, qn_cmd_mset, qn_cmd_msetnx, qn_cmd_strlen;
/* cmd_compare.c */
qn_cmd_run_fn qn_cmd_digest, qn_cmd_delex, qn_cmd_delifeq;
/* cmd_range.c */
qn_cmd_run_fn qn_cmd_append, qn_cmd_getrange, qn_cmd_setrange, qn_cmd_getbit,
    qn_cmd_setbit;
/* cmd_counter.c */
qn_cmd_run_fn qn_cmd_incr, qn_cmd_decr, qn_cmd_incrby, qn_cmd_decrby,
    qn_cmd_incrbyfloat;
/* cmd_generic.c */
qn_cmd_run_fn qn_cmd_del, qn_cmd_exists, qn_cmd_type, qn_cmd_dbsize,
    qn_cmd_flushall, qn_cmd_flushdb, qn_cmd_keys, qn_cmd_randomkey,
    qn_cmd_config_set;
/* cmd_introspect.c */
qn_cmd_run_fn qn_cmd_command, qn_cmd_command_count, qn_cmd_command_list,
    qn_cmd_command_info, qn_cmd_command_docs, qn_cmd_help;

#define QN_CMD_ERR_INTEGER "ERR value is not an integer or out of range"
#define QN_CMD_ERR_DIGEST  "ERR must be exactly 16 hexadecimal characters"
#define QN_CMD_ERR_OOM     "OOM command not allowed when used memory > 'maxmemory'."
#define QN_CMD_ERR_TOO_BIG                                                     \
    "ERR string exceeds maximum allowed size (proto-max-bulk-len)"

/** Does a request of `argc` words, the name included, fit the arity? */
static inline bool qn_cmd_arity_fits(const struct qn_cmd *cmd, uint32_t argc)
{
    return cmd->arity >= 0 ? argc == (uint32_t)cmd->arity
                           : argc >= (uint32_t)-cmd->arity;
}

/** Write "wrong number of arguments" for c->cmd. */
void qn_cmd_reply_arity(const struct qn_cmd_call *c);

/** What a value is compared with before a command does its work. */
enum qn_cmd_condition_kind {
    QN_CMD_ALWAYS,
    QN_CMD_IFEQ,
    QN_CMD_IFNE,
    QN_CMD_IFDEQ, /* by digest: XXH3-64, seed 0 */
    QN_CMD_IFDNE,
};

struct qn_cmd_condition {
    enum qn_cmd_condition_kind kind;
    struct qn_slice operand; /* borrowed */
    uint64_t digest;         /* IFDEQ, IFDNE */
};

/** Read an option and its operand. @return QN_OK; QN_ENOENT: `word` is no
 *  condition; QN_EINVAL: the operand is no digest (QN_CMD_ERR_DIGEST). */
int qn_cmd_condition_parse(struct qn_cmd_condition *out, struct qn_slice word,
                           struct qn_slice operand);

/** Does it hold for a key that was found with `value`, or not found? */
bool qn_cmd_condition_holds(const struct qn_cmd_condition *c, bool found,
                            struct qn_slice value);

/** True if a deadline has passed at the call's stamp: the key is invisible. */
static inline bool qn_cmd_dead(const struct qn_cmd_call *c,
                               uint64_t deadline_ms)
{
    return deadline_ms != 0 && deadline_ms <= c->stamp_ms;
}

/** Look a key up; a dead key is absent. If the result is false, *out has an
 *  empty value and no deadline. Wait-free. */
static inline bool qn_cmd_lookup(const struct qn_store *s,
                                 const struct qn_cmd_call *c,
                                 struct qn_slice key, struct qn_found *out)
{
    if (qn_store_get(s, c->db, key, out) && !qn_cmd_dead(c, out->deadline_ms)) {
        return true;
    }
    *out = (struct qn_found){0};
    return false;
}

/** Logical bytes of an entry. */
static inline uint64_t qn_cmd_entry_bytes(struct qn_slice key,
                                          uint64_t value_len)
{
    return key.len + value_len + QN_STORE_ENTRY_COST;
}

/** The logical bytes by which a value of `value_len` bytes at `key` makes the
 *  store grow; 0 also if it is shorter than the value it replaces. A dead
 *  entry that is not freed yet counts, as in the store's size. */
static inline uint64_t qn_cmd_growth(const struct qn_store *s,
                                     const struct qn_cmd_call *c,
                                     struct qn_slice key, uint64_t value_len)
{
    struct qn_found old;
    uint64_t more = qn_cmd_entry_bytes(key, value_len);
    uint64_t less = qn_store_get(s, c->db, key, &old)
                        ? qn_cmd_entry_bytes(key, old.value.len)
                        : 0;
    return more > less ? more - less : 0;
}

/** Is there room for the store to grow by `more` logical bytes? */
static inline bool qn_cmd_memory_has(const struct qn_store *s,
                                     const struct qn_cmd_call *c, uint64_t more)
{
    return c->memory_max == 0 || more == 0 ||
           qn_store_logical(s) + more <= c->memory_max;
}

/** Is there room for a value of `value_len` bytes at `key`? The key is looked
 *  up only if the limit is near. */
static inline bool qn_cmd_memory_fits(const struct qn_store *s,
                                      const struct qn_cmd_call *c,
                                      struct qn_slice key, uint64_t value_len)
{
    return qn_cmd_memory_has(s, c, qn_cmd_entry_bytes(key, value_len)) ||
           qn_cmd_memory_has(s, c, qn_cmd_growth(s, c, key, value_len));
}

/** Store the concatenation of parts at `key`. @return QN_OK; QN_ENOMEM,
 *  QN_EDQUOT (beyond maxmemory): nothing has changed. */
static inline int qn_cmd_put(struct qn_store *s, const struct qn_cmd_call *c,
                             struct qn_slice key, uint64_t deadline_ms,
                             const struct qn_slice *parts, uint32_t part_count)
{
    uint64_t value_len = 0;
    for (uint32_t i = 0; i < part_count; i++) {
        value_len += parts[i].len;
    }
    if (!qn_cmd_memory_fits(s, c, key, value_len)) {
        return QN_EDQUOT;
    }
    const struct qn_put put = {.db = c->db,
                               .key = key,
                               .parts = parts,
                               .part_count = part_count,
                               .slot = c->slot,
                               .deadline_ms = deadline_ms,
                               .keep = c->keep};
    return qn_store_put(s, &put);
}

/** The longest value allowed, in bytes. */
static inline uint64_t qn_cmd_value_max(const struct qn_cmd_call *c)
{
    return c->value_max != 0 && c->value_max < QN_STORE_VAL_MAX
               ? c->value_max
               : QN_STORE_VAL_MAX;
}

#endif
