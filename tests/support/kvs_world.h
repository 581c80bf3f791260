#ifndef QN_TESTS_SUPPORT_KVS_WORLD_H
#define QN_TESTS_SUPPORT_KVS_WORLD_H

/**
 * A store and somebody who types commands at it.
 *
 * A request is resolved as a front end does; a WRITE is encoded, decoded and
 * executed as an applied log entry is, so that every test of a command is also
 * one of its encoding.
 */

#include "kvs/commands/command.h"
#include "kvs/resp/reply.h"

struct world {
    struct qn_store *store;
    struct qn_buf reply; /* of the last request */
    int err;             /* what qn_cmd_run returned */
    qn_slot_t slot;
    uint64_t stamp_ms;
    uint64_t random;
    uint64_t value_max, key_max;
    uint64_t memory_max; /* 0: none */
    uint32_t db;
    uint8_t proto;
    struct qn_buf config; /* what CONFIG SET was told: name=value; ... */
};

/** An empty store, RESP2, stamp 1000, limits 512 MiB and 64 KiB. */
void world_init(struct world *w);
void world_fini(struct world *w);

/** Execute one request. The reply is in w->reply. */
void world_run(struct world *w, const struct qn_slice *argv, uint32_t argc);

/** Split `line` at blanks ('...' keeps them; \xHH is a byte, quoted or not) and
 *  execute it. */
void world_type(struct world *w, const char *line);

/** Type it; the reply must be these bytes. */
void world_expect(struct world *w, const char *file, int line,
                  const char *request, const char *reply, size_t reply_len);

/** Put an entry with a deadline, which no command can do yet. */
void world_put(struct world *w, const char *key, const char *value,
               uint64_t deadline_ms);

/** sizeof, so that replies may contain NUL. */
#define EXPECT(w, request, reply)                                              \
    world_expect((w), __FILE__, __LINE__, (request), (reply), sizeof(reply) - 1)

#endif
