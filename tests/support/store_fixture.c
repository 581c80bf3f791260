#include "tests/support/store_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "tests/support/test.h"

#define ARGS_MAX 64

void store_fixture_init(struct store_fixture *w)
{
    *w = (struct store_fixture){.stamp_ms = 1000,
                                .slot = 1,
                                .value_max = (uint64_t)512 << 20,
                                .key_max = (uint64_t)64 << 10,
                                .proto = 2};
    const struct qn_store_opts opts = {.seed = 7, .dbs = 16};
    int err = qn_store_create(&w->store, &opts);
    QN_ASSERT(err == QN_OK);
}

void store_fixture_fini(struct store_fixture *w)
{
    qn_store_destroy(w->store);
    qn_buf_free(&w->reply);
    qn_buf_free(&w->config);
}

static void configure(void *ctx, const struct qn_cmd_call *c)
{
    struct store_fixture *w = ctx;
    for (uint32_t i = 2; i < c->argc; i += 2) {
        qn_buf_append(&w->config, c->argv[i].data, c->argv[i].len);
        qn_buf_append(&w->config, "=", 1);
        qn_buf_append(&w->config, c->argv[i + 1].data, c->argv[i + 1].len);
        qn_buf_append(&w->config, ";", 1);
    }
    qn_reply_ok(c->reply);
}

/* Through the log: encode, join the parts, decode, apply. */
static void apply(struct store_fixture *w, struct qn_cmd_call *c)
{
    struct qn_buf head = {0}, entry = {0};
    struct qn_slice *parts = malloc((c->argc + 1) * sizeof *parts);
    struct qn_slice *argv = malloc(c->argc * sizeof *argv);
    uint32_t n = qn_cmd_encode(c, &head, parts), need = 0;
    for (uint32_t i = 0; i < n; i++) {
        qn_buf_append(&entry, parts[i].data, parts[i].len);
    }
    struct qn_slice bytes = {entry.data, entry.len};
    int err = qn_cmd_decode(bytes, argv, c->argc, &need, c);
    QN_ASSERT(err == QN_OK);
    w->err = qn_cmd_run(w->store, c);
    qn_store_reclaim(w->store, 64);
    qn_buf_free(&head);
    qn_buf_free(&entry);
    free(parts);
    free(argv);
}

void store_fixture_run(struct store_fixture *w, const struct qn_slice *argv,
                       uint32_t argc)
{
    w->reply.len = 0;
    w->err = QN_OK;
    struct qn_cmd_call c = {.cmd = qn_cmd_resolve(argv, argc, &w->reply),
                            .argv = argv,
                            .argc = argc,
                            .db = w->db,
                            .proto = w->proto,
                            .reply = &w->reply,
                            .slot = w->slot,
                            .stamp_ms = w->stamp_ms,
                            .random = w->random,
                            .value_max = w->value_max,
                            .key_max = w->key_max,
                            .memory_max = w->memory_max,
                            .configure = configure,
                            .configure_ctx = w};
    if (c.cmd == NULL) {
        return;
    }
    QN_ASSERT(c.cmd->run != NULL);
    switch (c.cmd->where) {
    case QN_CMD_WRITE:
        apply(w, &c);
        w->slot++;
        break;
    case QN_CMD_READ:
        w->err = qn_cmd_run(w->store, &c);
        break;
    default:
        w->err = qn_cmd_run(NULL, &c);
    }
}

/* The byte at *at, which may be written as \xHH. */
static uint8_t next_byte(const char **at)
{
    if (strncmp(*at, "\\x", 2) == 0) {
        const char hex[3] = {(*at)[2], (*at)[3], '\0'};
        *at += 4;
        return (uint8_t)strtoul(hex, NULL, 16);
    }
    return (uint8_t) * (*at)++;
}

void store_fixture_type(struct store_fixture *w, const char *line)
{
    static uint8_t bytes[4096];
    struct qn_slice argv[ARGS_MAX];
    uint32_t argc = 0;
    size_t n = 0;
    while (*line != '\0') {
        if (*line == ' ') {
            line++;
            continue;
        }
        QN_ASSERT(argc < ARGS_MAX);
        argv[argc] = (struct qn_slice){bytes + n, 0};
        bool quoted = *line == '\'';
        for (line += quoted; *line != (quoted ? '\'' : ' ') && *line != '\0';) {
            bytes[n++] = next_byte(&line);
            argv[argc].len++;
        }
        line += quoted;
        argc++;
    }
    store_fixture_run(w, argv, argc);
}

void store_fixture_expect(struct store_fixture *w, const char *file, int line,
                          const char *request, const char *reply,
                          size_t reply_len)
{
    store_fixture_type(w, request);
    cr_assert(
        w->reply.len == reply_len &&
            (reply_len == 0 || memcmp(w->reply.data, reply, reply_len) == 0),
        "%s:%d: %s\ngot:      %.*s\nexpected: %s", file, line, request,
        (int)w->reply.len, (const char *)w->reply.data, reply);
}

void store_fixture_put(struct store_fixture *w, const char *key,
                       const char *value, uint64_t deadline_ms)
{
    const struct qn_slice part = {(const uint8_t *)value, strlen(value)};
    const struct qn_put put = {
        .db = w->db,
        .key = {(const uint8_t *)key, strlen(key)},
        .parts = &part,
        .part_count = 1,
        .slot = w->slot++,
        .deadline_ms = deadline_ms,
    };
    int err = qn_store_put(w->store, &put);
    QN_ASSERT(err == QN_OK);
}
