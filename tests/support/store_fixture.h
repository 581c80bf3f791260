#ifndef QN_TESTS_SUPPORT_STORE_FIXTURE_H
#define QN_TESTS_SUPPORT_STORE_FIXTURE_H

/**
 * A store with a command line.
 *
 * A request is resolved as in the front end; a WRITE is encoded, decoded and
 * executed like an applied log entry, so that every test of a command also
 * tests its encoding.
 */

#include "kvs/commands/command.h"
#include "kvs/resp/reply.h"

struct store_fixture {
    struct qn_store *store;
    struct qn_buf reply; /* of the last request */
    int err;             /* result of qn_cmd_run */
    qn_slot_t slot;
    uint64_t stamp_ms;
    uint64_t random;
    uint64_t value_max, key_max;
    uint64_t memory_max; /* 0: none */
    uint32_t db;
    uint8_t proto;
    struct qn_buf config; /* settings of CONFIG SET: name=value; ... */
};

/** An empty store, RESP2, stamp 1000, limits 512 MiB and 64 KiB. */
void store_fixture_init(struct store_fixture *w);
void store_fixture_fini(struct store_fixture *w);

/** Executes one request. The reply is in w->reply. */
void store_fixture_run(struct store_fixture *w, const struct qn_slice *argv,
                       uint32_t argc);

/** Splits `line` at blanks ('...' keeps them; \xHH is a byte, quoted or not)
 *  and executes it. */
void store_fixture_type(struct store_fixture *w, const char *line);

/** Executes it; the reply must be these bytes. */
void store_fixture_expect(struct store_fixture *w, const char *file, int line,
                          const char *request, const char *reply,
                          size_t reply_len);

/** Puts an entry with a deadline, which no command can do yet. */
void store_fixture_put(struct store_fixture *w, const char *key,
                       const char *value, uint64_t deadline_ms);

/** sizeof, so that replies may contain NUL. */
#define EXPECT(w, request, reply)                                              \
    store_fixture_expect((w), __FILE__, __LINE__, (request), (reply),          \
                         sizeof(reply) - 1)

#endif
