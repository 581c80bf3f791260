/*
 * Fuzzing log entries: what decodes must fit its command's arity, encode to
 * the same bytes again, and execute without a crash, with a reply and without.
 */
#include <stdlib.h>
#include <string.h>

#include "kvs/commands/command.h"
#include "kvs/resp/reply.h"
#include "tests/fuzz/fuzz.h"

#define ARGS_MAX 64

static struct qn_store *store;
static struct qn_buf reply;
static qn_slot_t slot;

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void configure(void *ctx, const struct qn_cmd_call *c)
{
    (void)ctx;
    qn_reply_ok(c->reply);
}

static void must_encode_to(const struct qn_cmd_call *c, struct qn_slice bytes)
{
    struct qn_buf head = {0};
    struct qn_slice parts[ARGS_MAX + 1];
    size_t at = 0;
    uint32_t n = qn_cmd_encode(c, &head, parts);
    for (uint32_t i = 0; i < n; i++) {
        must(parts[i].len <= bytes.len - at);
        must(parts[i].len == 0 ||
             memcmp(parts[i].data, bytes.data + at, parts[i].len) == 0);
        at += parts[i].len;
    }
    must(at == bytes.len);
    qn_buf_free(&head);
}

static void at_end(void)
{
    /* A leak checker cannot see through the store's tagged pointers. */
    qn_store_destroy(store);
    qn_buf_free(&reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (store == NULL) {
        const struct qn_store_opts opts = {.seed = 7, .dbs = 16};
        must(qn_store_create(&store, &opts) == QN_OK);
        atexit(at_end);
    }
    slot++;
    struct qn_slice bytes = {data, n}, argv[ARGS_MAX];
    struct qn_cmd_call c = {.proto = 3,
                            .slot = slot,
                            .stamp_ms = slot,
                            .value_max = 65536,
                            .key_max = 64,
                            .configure = configure};
    uint32_t need = 0;
    if (qn_cmd_decode(bytes, argv, ARGS_MAX, &need, &c) != QN_OK) {
        return 0;
    }
    must(qn_cmd_check_arity(c.cmd, c.argc, NULL));
    must_encode_to(&c, bytes);
    c.db %= 16;
    must(qn_cmd_run(store, &c) == QN_OK);
    reply.len = 0;
    c.reply = &reply;
    must(qn_cmd_run(store, &c) == QN_OK);
    must(reply.len > 0);
    qn_store_reclaim(store, 64);
    return 0;
}
