/* Executing a log: the same on every replica, heard or not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvs/commands/command.h"
#include "kvs/resp/reply.h"
#include "tests/support/test.h"

#define ENTRIES 20000
#define KEYS    50

struct entry {
    struct qn_buf bytes; /* as in the log; empty: a key gets a deadline */
    uint64_t stamp_ms;
};

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

/* Requests with a key (%k), a value (%v), a small number (%n). */
static const char *const shapes[] = {
    "set %k %v",        "set %k %v nx",
    "set %k %v xx get", "setnx %k %v",
    "getset %k %v",     "getdel %k",
    "mset %k %v %k %v", "msetnx %k %v %k %v",
    "del %k %k",        "unlink %k",
    "append %k %v",     "setrange %k %n %v",
    "setbit %k %n 1",   "incr %k",
    "decr %k",          "incrby %k %n",
    "decrby %k %n",     "incrbyfloat %k %n",
    "get %k",           "mget %k %k %k",
    "exists %k %k",     "strlen %k",
    "getrange %k 1 %n", "getbit %k %n",
    "type %k",          "dbsize",
    "keys *",           "set %k %n",
    "set %k %n",        "mset %k",
};

static size_t word(char *to, size_t size, char kind)
{
    switch (kind) {
    case 'k':
        return (size_t)snprintf(to, size, "key%u", draw(KEYS));
    case 'v':
        return (size_t)snprintf(to, size, "%.*s", (int)draw(30),
                                "abcdefghijklmnopqrstuvwxyz0123");
    default:
        return (size_t)snprintf(to, size, "%u", draw(100));
    }
}

static void entry_make(struct entry *e)
{
    static char text[16][64];
    struct qn_slice argv[16], parts[17];
    uint32_t argc = 0;
    const char *at = shapes[draw(QN_ARRAY_COUNT(shapes))];
    for (; *at != '\0'; at += *at == ' ') {
        size_t n;
        if (*at == '%') {
            n = word(text[argc], sizeof text[argc], at[1]);
            at += 2;
        } else {
            n = strcspn(at, " ");
            memcpy(text[argc], at, n);
            at += n;
        }
        argv[argc] = (struct qn_slice){(uint8_t *)text[argc], n};
        argc++;
    }
    struct qn_cmd_call c = {.argv = argv, .argc = argc, .db = draw(3)};
    c.cmd = qn_cmd_find(argv[0]);
    if (!qn_cmd_check_arity(c.cmd, argc, NULL)) {
        entry_make(e);
        return;
    }
    struct qn_buf head = {0};
    uint32_t n = qn_cmd_encode(&c, &head, parts);
    for (uint32_t i = 0; i < n; i++) {
        qn_buf_append(&e->bytes, parts[i].data, parts[i].len);
    }
    qn_buf_free(&head);
}

static struct entry *log_make(void)
{
    struct entry *log = calloc(ENTRIES, sizeof *log);
    uint64_t stamp = 1000;
    for (uint32_t i = 0; i < ENTRIES; i++) {
        stamp += draw(3);
        log[i].stamp_ms = stamp;
        if (i % 7 != 0) {
            entry_make(&log[i]);
        }
        if (i % 5000 == 2500) {
            log[i].bytes.len = 0;
            qn_buf_append(&log[i].bytes, "\x01\x1a\x00", 3); /* FLUSHDB */
        }
    }
    return log;
}

static void log_free(struct entry *log)
{
    for (uint32_t i = 0; i < ENTRIES; i++) {
        qn_buf_free(&log[i].bytes);
    }
    free(log);
}

/* Key i % KEYS gets a deadline soon. */
static void deadline_put(struct qn_store *s, uint32_t i, uint64_t stamp_ms)
{
    char key[16];
    int n = snprintf(key, sizeof key, "key%u", i % KEYS);
    const struct qn_slice value = {(const uint8_t *)"77", 2};
    const struct qn_put put = {.db = i % 3,
                               .key = {(uint8_t *)key, (size_t)n},
                               .parts = &value,
                               .part_count = 1,
                               .slot = i + 1,
                               .deadline_ms = stamp_ms + i % 20};
    cr_assert_eq(qn_store_put(s, &put), QN_OK);
}

/* What a replica may do to dead keys whenever it likes. */
static void dead_free(struct qn_store *s, uint32_t i, uint64_t stamp_ms)
{
    char key[16];
    int n = snprintf(key, sizeof key, "key%u", i % KEYS);
    struct qn_slice k = {(uint8_t *)key, (size_t)n};
    struct qn_found f;
    for (uint32_t db = 0; db < 3; db++) {
        if (qn_store_get(s, db, k, &f) && f.deadline_ms != 0 &&
            f.deadline_ms <= stamp_ms) {
            qn_store_del(s, db, k, 0);
        }
    }
}

struct outcome {
    uint64_t digest;
    struct qn_buf replies;
};

static struct outcome log_apply(const struct entry *log, bool heard, bool frees)
{
    struct qn_store *s = NULL;
    const struct qn_store_opts opts = {.seed = 99, .dbs = 16};
    cr_assert_eq(qn_store_create(&s, &opts), QN_OK);
    struct outcome out = {0};
    for (uint32_t i = 0; i < ENTRIES; i++) {
        if (log[i].bytes.len == 0) {
            deadline_put(s, i, log[i].stamp_ms);
            continue;
        }
        struct qn_slice argv[16];
        struct qn_slice bytes = {log[i].bytes.data, log[i].bytes.len};
        struct qn_cmd_call c = {.proto = 2,
                                .reply = heard ? &out.replies : NULL,
                                .slot = i + 1,
                                .stamp_ms = log[i].stamp_ms,
                                .value_max = 500};
        uint32_t need = 0;
        cr_assert_eq(qn_cmd_decode(bytes, argv, 16, &need, &c), QN_OK);
        cr_assert_eq(qn_cmd_run(s, &c), QN_OK);
        if (frees) {
            dead_free(s, i * 31, log[i].stamp_ms);
            qn_store_reclaim(s, 3);
        }
    }
    out.digest = qn_store_digest(s, log[ENTRIES - 1].stamp_ms);
    qn_store_destroy(s);
    return out;
}

Test(command_log, is_executed_alike_everywhere, .timeout = 60)
{
    seed = 3;
    struct entry *log = log_make();
    struct outcome a = log_apply(log, true, false);
    struct outcome b = log_apply(log, true, true);
    struct outcome c = log_apply(log, false, true);
    cr_assert_gt(a.replies.len, 100000);
    cr_expect_eq(a.digest, b.digest);
    cr_expect_eq(a.digest, c.digest);
    cr_assert_eq(a.replies.len, b.replies.len);
    cr_assert_arr_eq(a.replies.data, b.replies.data, a.replies.len);
    cr_assert_eq(c.replies.len, 0);
    qn_buf_free(&a.replies);
    qn_buf_free(&b.replies);
    log_free(log);
}

/* One entry more or less would be seen. */
Test(command_log, digest_tells_different_logs_apart, .timeout = 60)
{
    seed = 3;
    struct entry *log = log_make();
    struct outcome a = log_apply(log, false, false);
    log[ENTRIES - 2].bytes.len = 0;
    qn_buf_append(&log[ENTRIES - 2].bytes, "\x01\x02\x02\x01\x01zz", 7);
    struct outcome b = log_apply(log, false, false);
    cr_expect_neq(a.digest, b.digest);
    log_free(log);
}

/* ---- nobody waits -------------------------------------------------------- */

Test(command_log, every_command_runs_without_a_reply)
{
    struct qn_store *s = NULL;
    const struct qn_store_opts opts = {.seed = 1, .dbs = 1};
    cr_assert_eq(qn_store_create(&s, &opts), QN_OK);
    static const char *const values[] = {"1", "k", "", "FILTERBY", "nope"};
    for (uint32_t i = 0; qn_cmd_at(i) != NULL; i++) {
        const struct qn_cmd *cmd = qn_cmd_at(i);
        if (cmd->run == NULL || strcmp(cmd->name, "config|set") == 0) {
            continue;
        }
        for (uint32_t more = 0; more < 4; more++) {
            struct qn_slice argv[8];
            uint32_t argc = (uint32_t)abs(cmd->arity) + more;
            for (uint32_t a = 0; a < argc; a++) {
                const char *v = values[(a + i) % 5];
                argv[a] = (struct qn_slice){(const uint8_t *)v, strlen(v)};
            }
            struct qn_cmd_call c = {
                .cmd = cmd, .argv = argv, .argc = argc, .proto = 2, .slot = 1};
            if (!qn_cmd_check_arity(cmd, argc, NULL)) {
                continue;
            }
            cr_expect_eq(qn_cmd_run(s, &c), QN_OK, "%s", cmd->name);
            /* And with one, to the end of memory. */
            struct qn_buf full = {.oom = true};
            c.reply = &full;
            cr_expect_eq(qn_cmd_run(s, &c), QN_OK, "%s", cmd->name);
            cr_expect_eq(full.len, 0);
        }
    }
    qn_store_destroy(s);
}

/* ---- no memory ----------------------------------------------------------- */

static bool full;

static void *alloc_unless_full(size_t n)
{
    return full ? NULL : malloc(n);
}

Test(command_log, lack_of_memory_is_told_to_the_caller)
{
    static const struct {
        const char *words[6];
        int err;
    } cases[] = {
        {{"set", "k", "v"}, QN_ENOMEM},
        {{"set", "k", "v", "get"}, QN_ENOMEM},
        {{"setnx", "new", "v"}, QN_ENOMEM},
        {{"setnx", "k", "v"}, QN_OK},
        {{"getset", "k", "v"}, QN_ENOMEM},
        {{"mset", "k", "v"}, QN_ENOMEM},
        {{"msetnx", "new", "v"}, QN_ENOMEM},
        {{"append", "k", "v"}, QN_ENOMEM},
        {{"setrange", "k", "3", "v"}, QN_ENOMEM},
        {{"setrange", "k", "3", ""}, QN_OK},
        {{"setbit", "k", "3", "1"}, QN_ENOMEM},
        {{"incr", "k"}, QN_ENOMEM},
        {{"incrbyfloat", "k", "1"}, QN_ENOMEM},
        {{"get", "k"}, QN_OK},
    };
    struct qn_store *s = NULL;
    const struct qn_store_opts opts = {
        .seed = 1, .dbs = 1, .alloc = alloc_unless_full, .release = free};
    cr_assert_eq(qn_store_create(&s, &opts), QN_OK);
    const struct qn_slice one = {(const uint8_t *)"1", 1};
    const struct qn_put put = {.key = {(const uint8_t *)"k", 1},
                               .parts = &one,
                               .part_count = 1,
                               .slot = 1};
    cr_assert_eq(qn_store_put(s, &put), QN_OK);
    full = true;
    for (size_t i = 0; i < QN_ARRAY_COUNT(cases); i++) {
        struct qn_slice argv[6];
        uint32_t argc = 0;
        for (; argc < 6 && cases[i].words[argc] != NULL; argc++) {
            const char *text = cases[i].words[argc];
            argv[argc] = (struct qn_slice){(const uint8_t *)text, strlen(text)};
        }
        const struct qn_cmd_call c = {.cmd = qn_cmd_find(argv[0]),
                                      .argv = argv,
                                      .argc = argc,
                                      .proto = 2,
                                      .slot = 2};
        cr_expect_eq(qn_cmd_run(s, &c), cases[i].err, "%s", argv[0].data);
        struct qn_found f;
        cr_assert(qn_store_get(s, 0, put.key, &f));
        cr_expect(f.value.len == 1 && f.value.data[0] == '1');
    }
    qn_store_destroy(s);
}
