#include "kvs/commands/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#define ARGS_MAX 300

static struct qn_slice slice(const char *text)
{
    return (struct qn_slice){(const uint8_t *)text, strlen(text)};
}

/* The entry as it stands in the log. */
static struct qn_buf encode(const struct qn_cmd_call *c)
{
    struct qn_buf head = {0}, entry = {0};
    struct qn_slice *parts = malloc((c->argc + 1) * sizeof *parts);
    uint32_t n = qn_cmd_encode(c, &head, parts);
    cr_assert(n >= 1 && n <= c->argc + 1);
    cr_assert_eq(parts[0].data, head.data);
    for (uint32_t i = 0; i < n; i++) {
        qn_buf_append(&entry, parts[i].data, parts[i].len);
    }
    qn_buf_free(&head);
    free(parts);
    return entry;
}

static int decode(const uint8_t *bytes, size_t len, struct qn_slice *argv,
                  struct qn_cmd_call *c)
{
    uint32_t need = 0;
    return qn_cmd_decode((struct qn_slice){bytes, len}, argv, ARGS_MAX, &need,
                         c);
}

static void expect_corrupt(const char *what, const char *bytes, size_t len)
{
    struct qn_slice argv[ARGS_MAX];
    struct qn_cmd_call c = {0};
    cr_expect_eq(decode((const uint8_t *)bytes, len, argv, &c), QN_ECORRUPT,
                 "%s", what);
    cr_expect(c.cmd == NULL && c.argv == NULL, "%s: touched", what);
}

#define CORRUPT(what, bytes) expect_corrupt((what), (bytes), sizeof(bytes) - 1)

Test(command_codec, set_of_8_and_16_bytes_takes_29)
{
    const struct qn_slice argv[] = {slice("SET"), slice("key-0001"),
                                    slice("value-0123456789")};
    const struct qn_cmd_call c = {
        .cmd = qn_cmd_find(argv[0]), .argv = argv, .argc = 3};
    struct qn_buf entry = encode(&c);
    cr_assert_eq(entry.len, 29);
    cr_assert_arr_eq(entry.data, "\x01\x02\x02\x08\x10key-0001value-0123456789",
                     29);
    qn_buf_free(&entry);
}

/* What logs of this version hold, byte for byte. */
Test(command_codec, format_stays)
{
    const struct qn_slice set[] = {slice("config"), slice("set"), slice("a"),
                                   slice("")};
    struct qn_cmd_call c = {.cmd = qn_cmd_find_sub(qn_cmd_find(set[0]), set[1]),
                            .argv = set,
                            .argc = 4,
                            .db = 30};
    struct qn_buf entry = encode(&c);
    cr_assert_eq(entry.len, 6);
    cr_assert_arr_eq(entry.data,
                     "\xf1\x1d\x02\x01\x00"
                     "a",
                     6);
    qn_buf_free(&entry);
    const struct qn_slice flush[] = {slice("flushdb")};
    c = (struct qn_cmd_call){
        .cmd = qn_cmd_find(flush[0]), .argv = flush, .argc = 1, .db = 200};
    entry = encode(&c);
    cr_assert_eq(entry.len, 5);
    cr_assert_arr_eq(entry.data, "\xf9\xc8\x01\x1a\x00", 5);
    qn_buf_free(&entry);
}

static void expect_round_trip(const struct qn_cmd_call *c)
{
    struct qn_slice argv[ARGS_MAX];
    struct qn_cmd_call d = {.slot = 7};
    struct qn_buf entry = encode(c);
    cr_assert_eq(decode(entry.data, entry.len, argv, &d), QN_OK);
    cr_assert_eq(d.cmd, c->cmd);
    cr_assert_eq(d.argc, c->argc);
    cr_assert_eq(d.db, c->db);
    cr_assert_eq(d.slot, 7);
    for (uint32_t i = 0; i < c->argc; i++) {
        cr_assert_eq(d.argv[i].len, c->argv[i].len, "%s arg %u", c->cmd->name,
                     i);
        cr_assert(d.argv[i].len == 0 ||
                  memcmp(d.argv[i].data, c->argv[i].data, d.argv[i].len) == 0);
    }
    qn_buf_free(&entry);
}

Test(command_codec, every_logged_command_comes_back)
{
    static uint8_t big[16400];
    for (size_t i = 0; i < sizeof big; i++) {
        big[i] = (uint8_t)(i * 7);
    }
    static const size_t lengths[] = {0, 1, 127, 128, 16383, 16384};
    static const uint32_t dbs[] = {0, 1, 15, 30, 31, 32, 127, 128, 255};
    for (uint32_t i = 0; qn_cmd_at(i) != NULL; i++) {
        const struct qn_cmd *cmd = qn_cmd_at(i);
        if (cmd->id == 0) {
            continue;
        }
        struct qn_slice argv[8];
        char name[32];
        strcpy(name, cmd->name);
        uint32_t argc = (uint32_t)abs(cmd->arity) + (cmd->arity < 0);
        for (uint32_t a = 0; a < argc; a++) {
            argv[a] = (struct qn_slice){big + a, lengths[(i + a) % 6]};
        }
        char *rest = name;
        for (uint32_t a = 0; rest != NULL; a++) {
            argv[a] = slice(strsep(&rest, "|"));
        }
        const struct qn_cmd_call c = {
            .cmd = cmd, .argv = argv, .argc = argc, .db = dbs[i % 9]};
        expect_round_trip(&c);
    }
}

Test(command_codec, many_arguments_come_back)
{
    struct qn_slice argv[ARGS_MAX];
    argv[0] = slice("del");
    for (uint32_t i = 1; i < ARGS_MAX; i++) {
        argv[i] = slice("key");
    }
    for (uint32_t argc = 2; argc <= ARGS_MAX; argc++) {
        const struct qn_cmd_call c = {
            .cmd = qn_cmd_find(argv[0]), .argv = argv, .argc = argc};
        expect_round_trip(&c);
    }
}

Test(command_codec, encoding_appends_to_the_head)
{
    const struct qn_slice argv[] = {slice("get"), slice("k")};
    const struct qn_cmd_call c = {
        .cmd = qn_cmd_find(argv[0]), .argv = argv, .argc = 2};
    struct qn_buf head = {0};
    struct qn_slice parts[3];
    qn_buf_append(&head, "xy", 2);
    cr_assert_eq(qn_cmd_encode(&c, &head, parts), 2);
    cr_assert_eq(head.len, 6);
    cr_assert_arr_eq(head.data, "xy\x01\x01\x01\x01", 6);
    cr_assert_eq(parts[0].data, head.data + 2);
    cr_assert_eq(parts[1].data, argv[1].data);
    head.oom = true;
    cr_assert_eq(qn_cmd_encode(&c, &head, parts), 0);
    qn_buf_free(&head);
}

Test(command_codec, too_few_places_are_reported_with_the_need)
{
    const struct qn_slice args[] = {slice("mset"), slice("a"), slice("b"),
                                    slice("c"), slice("d")};
    const struct qn_cmd_call c = {
        .cmd = qn_cmd_find(args[0]), .argv = args, .argc = 5};
    struct qn_buf entry = encode(&c);
    struct qn_slice bytes = {entry.data, entry.len}, argv[5];
    struct qn_cmd_call d = {0};
    for (uint32_t cap = 0; cap < 5; cap++) {
        uint32_t need = 0;
        cr_assert_eq(qn_cmd_decode(bytes, argv, cap, &need, &d), QN_ENOMEM);
        cr_assert_eq(need, 5);
        cr_assert_null(d.cmd);
    }
    uint32_t need = 42;
    cr_assert_eq(qn_cmd_decode(bytes, argv, 5, &need, &d), QN_OK);
    cr_assert_eq(need, 42);
    qn_buf_free(&entry);
}

Test(command_codec, every_truncation_and_every_extension_is_refused)
{
    const struct qn_slice args[] = {slice("set"), slice("key"), slice("value"),
                                    slice(""), slice("nx")};
    const struct qn_cmd_call c = {
        .cmd = qn_cmd_find(args[0]), .argv = args, .argc = 5, .db = 99};
    struct qn_buf entry = encode(&c);
    for (size_t n = 0; n < entry.len; n++) {
        uint8_t *exact = malloc(n + (n == 0));
        memcpy(exact, entry.data, n);
        expect_corrupt("truncated", (const char *)exact, n);
        free(exact);
    }
    qn_buf_append(&entry, "", 1);
    expect_corrupt("one byte more", (const char *)entry.data, entry.len);
    qn_buf_free(&entry);
}

Test(command_codec, malformed_entries_are_refused)
{
    CORRUPT("version 0", "\x00\x01\x01\x01k");
    CORRUPT("version 2", "\x02\x01\x01\x01k");
    CORRUPT("no such id", "\x01\x7f\x01\x01k");
    CORRUPT("id 0", "\x01\x00\x01\x01k");
    CORRUPT("id above all", "\x01\x80\x02\x01\x01k");
    CORRUPT("too few arguments", "\x01\x01\x00");
    CORRUPT("too many arguments", "\x01\x01\x02\x01\x01kk");
    CORRUPT("more arguments than bytes", "\x01\x06\x7f\x01\x01kk");
    CORRUPT("2^32 arguments", "\x01\x06\x80\x80\x80\x80\x10kk");
    CORRUPT("database 256", "\xf9\x80\x02\x01\x01\x01k");
    CORRUPT("database 30 with escape", "\xf9\x1e\x01\x01\x01k");
    CORRUPT("id not in the shortest form", "\x01\x81\x00\x01\x01k");
    CORRUPT("length not in the shortest form", "\x01\x01\x01\x81\x00k");
    CORRUPT("length of 2^64 - 1 and 2",
            "\x01\x07\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02");
    CORRUPT("length above 64 bits",
            "\x01\x01\x01\x81\x80\x80\x80\x80\x80\x80\x80\x80\x02k");
    CORRUPT("length without end",
            "\x01\x01\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
    CORRUPT("length above the bytes", "\x01\x01\x01\x02k");
    CORRUPT("nothing", "");
}

/* What decodes is the encoding of what it decodes to. */
Test(command_codec, random_bytes_are_refused_or_canonical, .timeout = 30)
{
    uint64_t seed = 1;
    uint32_t good = 0;
    for (int round = 0; round < 1000000; round++) {
        uint8_t bytes[12];
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] =
                (uint8_t)((seed >> (8 + 4 * i)) & (round & 1 ? 0x0f : 0xff));
        }
        bytes[0] = round & 2 ? 1 : bytes[0];
        size_t len = (seed >> 60) % (sizeof bytes + 1);
        struct qn_slice argv[ARGS_MAX];
        struct qn_cmd_call c = {0};
        int err = decode(bytes, len, argv, &c);
        if (err == QN_OK) {
            struct qn_buf entry = encode(&c);
            cr_assert_eq(entry.len, len);
            cr_assert_arr_eq(entry.data, bytes, len);
            qn_buf_free(&entry);
            good++;
        } else {
            cr_assert_eq(err, QN_ECORRUPT);
        }
    }
    cr_assert_gt(good, 100, "only %u inputs decoded", good);
}
