#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/client/request_generator.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The requests of a client, byte by byte, and its checks of replies. A workload
 * and one generator live in this file; text() is what would be sent.
 */

enum { BYTES_MAX = 1 << 21 };

static struct qn_workload workload;
static struct qn_request_generator generator;
static struct qn_outgoing out;
static char bytes[BYTES_MAX];

static struct qn_workload_opts opts_of(const char *mix, uint64_t key_size,
                                       uint64_t value_size)
{
    char error[160];
    struct qn_workload_opts o = {.keys = 1000,
                                 .key_size = qn_sizes_fixed(key_size),
                                 .value_size = qn_sizes_fixed(value_size),
                                 .mset_keys = 2};
    cr_assert_eq(qn_mix_parse(&o.mix, mix, error, sizeof error), QN_OK);
    return o;
}

static void set_up(const struct qn_workload_opts *o, uint64_t number,
                   uint64_t seed)
{
    cr_assert_eq(qn_workload_init(&workload, o), QN_OK);
    const struct qn_request_generator_opts ao = {.workload = &workload,
                                                 .number = number,
                                                 .clients = 10,
                                                 .seed = seed,
                                                 .open_max = 4};
    cr_assert_eq(qn_request_generator_init(&generator, &ao), QN_OK);
    cr_assert_eq(qn_outgoing_init(&out, &workload, 1), QN_OK);
}

static void tear_down(void)
{
    qn_outgoing_fini(&out);
    qn_request_generator_fini(&generator);
    qn_workload_fini(&workload);
}

/* The bytes of a request; checks the limits of its buffer. */
static const char *text(const struct qn_request *r)
{
    size_t len = 0;
    qn_outgoing_clear(&out);
    qn_request_generator_write(&generator, r, &out);
    cr_assert_leq(out.len, workload.copy_max - QN_REQUEST_SLACK);
    cr_assert_leq(out.iov_count, (int)workload.iov_max);
    for (int i = 0; i < out.iov_count; i++) {
        cr_assert_lt(len + out.iov[i].iov_len, sizeof bytes);
        memcpy(bytes + len, out.iov[i].iov_base, out.iov[i].iov_len);
        len += out.iov[i].iov_len;
    }
    bytes[len] = '\0';
    cr_assert_eq(strlen(bytes), len);
    return bytes;
}

/* Each operation of one client that uses key 0 only. */
static const char *text_of_op(const char *mix, enum qn_cas_form cas)
{
    struct qn_workload_opts o = opts_of(mix, 8, 10);
    struct qn_request r;
    o.keys = 1;
    o.cas = cas;
    set_up(&o, 0, 1);
    qn_request_generator_next(&generator, &r);
    r.key = r.command == QN_COMMAND_SCAN ? 9007199254740991 : r.key;
    text(&r);
    tear_down();
    return bytes;
}

#define KEY   "$8\r\nk0000000\r\n"
#define VALUE "$10\r\n00000000n \r\n"

Test(request_generator, every_operation_has_its_bytes)
{
    static const struct {
        const char *mix;
        const char *text;
    } cases[] = {
        {"get", "*2\r\n$3\r\nGET\r\n" KEY},
        {"rmw", "*2\r\n$3\r\nGET\r\n" KEY},
        {"set", "*3\r\n$3\r\nSET\r\n" KEY VALUE},
        {"del", "*2\r\n$3\r\nDEL\r\n" KEY},
        {"incr", "*2\r\n$4\r\nINCR\r\n$8\r\nc0000000\r\n"},
        {"ping", "*1\r\n$4\r\nPING\r\n"},
        {"mset", "*5\r\n$4\r\nMSET\r\n" KEY VALUE KEY VALUE},
        {"cas", "*5\r\n$3\r\nSET\r\n" KEY VALUE "$4\r\nIFEQ\r\n" VALUE},
        {"scan", "*4\r\n$4\r\nSCAN\r\n$16\r\n9007199254740991\r\n"
                 "$5\r\nCOUNT\r\n$2\r\n10\r\n"},
    };
    for (size_t i = 0; i < QN_ARRAY_COUNT(cases); i++) {
        cr_assert_str_eq(text_of_op(cases[i].mix, QN_CAS_IFEQ), cases[i].text);
    }
}

Test(request_generator, a_cas_can_be_a_script)
{
    const char *got = text_of_op("cas", QN_CAS_EVAL);
    unsigned script;
    cr_assert_eq(sscanf(got, "*6\r\n$4\r\nEVAL\r\n$%u\r\n", &script), 1);
    const char *begin = strstr(got, "if redis.call");
    cr_assert_str_eq(begin + script, "\r\n$1\r\n1\r\n" KEY VALUE VALUE);
}

/* Variable sizes use another code path than fixed ones: a range of one size
 * writes the same bytes as that size. */
Test(request_generator, templates_and_parts_write_the_same)
{
    static const uint64_t key_sizes[] = {4, 8, 9, 10, 16, 17, 18, 100, 1024};
    static const uint64_t sizes[] = {0,  1,   7,   8,   9,   10,
                                     99, 100, 256, 257, 5000};
    static char first[BYTES_MAX];
    for (size_t k = 0; k < QN_ARRAY_COUNT(key_sizes); k++) {
        for (size_t v = 0; v < 2 * QN_ARRAY_COUNT(sizes); v++) {
            struct qn_workload_opts o =
                opts_of("set,get,incr,del", key_sizes[k], sizes[v / 2]);
            struct qn_request r = {.key = 987, .value = 0xabcdef0123456789};
            o.unique = v % 2;
            for (int command = 0; command <= QN_COMMAND_DEL; command++) {
                bool one_key =
                    command != QN_COMMAND_MSET && command != QN_COMMAND_PING;
                r.command = one_key ? (uint8_t)command : QN_COMMAND_GET;
                o.key_size.kind = QN_SIZES_FIXED;
                o.value_size.kind = QN_SIZES_FIXED;
                set_up(&o, 0, 1);
                strcpy(first, text(&r));
                tear_down();
                o.key_size.kind = QN_SIZES_RANGE;
                o.value_size.kind = QN_SIZES_RANGE;
                set_up(&o, 0, 1);
                cr_assert_str_eq(text(&r), first);
                tear_down();
            }
        }
    }
}

/* Numbers of more than eight digits, with and without a template. */
Test(request_generator, large_key_numbers_are_written_whole)
{
    struct qn_workload_opts o = opts_of("get", 11, 0);
    struct qn_request r = {.key = 3999999998, .command = QN_COMMAND_GET};
    o.keys = QN_KEYS_MAX;
    set_up(&o, 0, 1);
    cr_assert_str_eq(text(&r), "*2\r\n$3\r\nGET\r\n$11\r\nk3999999998\r\n");
    tear_down();
    o = opts_of("insert", 20, 0);
    set_up(&o, 7, 1);
    qn_request_generator_next(&generator, &r);
    cr_assert_eq(r.key, 1007);
    r.key = 123456789012;
    cr_assert_str_eq(text(&r), "*3\r\n$3\r\nSET\r\n$20\r\nk0000000123456789012"
                               "\r\n$0\r\n\r\n");
    tear_down();
}

/* With and without a template, from the smallest number of digits on. */
Test(request_generator, a_tag_is_complete_in_every_key)
{
    struct qn_workload_opts o = opts_of("get,set", 0, 16);
    strcpy(o.tag, "abcdefghijkl");
    for (uint64_t size = 1 + 12 + 3; size < 40; size++) {
        struct qn_request r = {.key = 987, .command = QN_COMMAND_GET};
        char expected[128];
        snprintf(expected, sizeof expected,
                 "*2\r\n$3\r\nGET\r\n$%d\r\nkabcdefghijkl%0*d\r\n", (int)size,
                 (int)size - 13, 987);
        o.key_size = qn_sizes_fixed(size);
        set_up(&o, 0, 1);
        cr_assert_str_eq(text(&r), expected);
        tear_down();
        o.key_size.kind = QN_SIZES_RANGE;
        set_up(&o, 0, 1);
        cr_assert_str_eq(text(&r), expected);
        tear_down();
    }
}

/* The value of a SET as the reply to a GET. */
static struct qn_reply value_of(const struct qn_request *set)
{
    const char *p = text(set);
    for (int i = 0; i < 5; i++) { /* *3, $3, SET, $key, key */
        p = strstr(p, "\r\n") + 2;
    }
    unsigned long len = strtoul(p + 1, NULL, 10);
    return (struct qn_reply){.type = '$',
                             .number = (int64_t)len,
                             .head = (const uint8_t *)strstr(p, "\r\n") + 2,
                             .head_len =
                                 QN_MIN(len, (unsigned long)QN_REPLY_HEAD_MAX)};
}

/* What the scanner computes while a value arrives. */
static void make_sum(struct qn_reply *reply)
{
    reply->sum = (struct qn_reply_sum){0, 0};
    qn_reply_sum_add(&reply->sum, reply->head, (size_t)reply->number);
}

static void check_sizes(struct qn_sizes key_size, struct qn_sizes value_size,
                        bool unique)
{
    struct qn_workload_opts o = opts_of("set", 16, 16);
    o.key_size = key_size;
    o.value_size = value_size;
    o.unique = unique;
    set_up(&o, 3, 1);
    for (uint64_t key = 0; key < 1000; key++) {
        struct qn_request r;
        uint64_t value = 0;
        qn_request_generator_store(&generator, key, &r);
        struct qn_reply reply = value_of(&r);
        make_sum(&reply);
        cr_assert(qn_request_check_value(&workload, key, &reply, &value));
        cr_assert_eq(value, r.value);
        reply.number++;
        cr_assert(!qn_request_check_value(&workload, key, &reply, &value));
        reply.number--;
        /* For unique values every byte counts, for others the head. */
        size_t len = unique ? (size_t)reply.number : reply.head_len;
        for (size_t i = 0; i < len; i += 1 + len / 20) {
            uint8_t *byte = (uint8_t *)(uintptr_t)&reply.head[i];
            *byte ^= 1;
            make_sum(&reply);
            bool same = qn_request_check_value(&workload, key, &reply, &value);
            cr_assert(!same || value != r.value, "key %d, byte %d", (int)key,
                      (int)i);
            *byte ^= 1;
        }
    }
    tear_down();
}

Test(request_generator, the_written_value_is_correct_and_no_other)
{
    const struct qn_sizes keys[] = {qn_sizes_fixed(16),
                                    {QN_SIZES_RANGE, 4, 40},
                                    qn_sizes_etc(QN_SIZES_ETC_KEY)};
    const struct qn_sizes values[] = {qn_sizes_fixed(0),
                                      qn_sizes_fixed(100),
                                      {QN_SIZES_RANGE, 0, 600},
                                      {QN_SIZES_MIXED, 16, 30000},
                                      qn_sizes_etc(QN_SIZES_ETC_VALUE)};
    for (size_t k = 0; k < QN_ARRAY_COUNT(keys); k++) {
        for (size_t v = 0; v < QN_ARRAY_COUNT(values); v++) {
            check_sizes(keys[k], values[v], false);
            check_sizes(keys[k], values[v], true);
        }
    }
}

/* Two writes of one key: the first half of one, the rest of the other. */
Test(request_generator, a_value_made_of_parts_of_two_is_wrong)
{
    struct qn_workload_opts o = opts_of("set", 16, 5000);
    static uint8_t one[5000];
    o.unique = true;
    set_up(&o, 3, 1);
    struct qn_request r;
    uint64_t value;
    qn_request_generator_store(&generator, 1, &r);
    struct qn_reply reply = value_of(&r);
    memcpy(one, reply.head, sizeof one);
    qn_request_generator_store(&generator, 1, &r);
    reply = value_of(&r);
    memcpy(one + 2500, reply.head + 2500, 2500);
    reply.head = one;
    make_sum(&reply);
    cr_assert(!qn_request_check_value(&workload, 1, &reply, &value));
    tear_down();
}

/* The size follows from the written value, so a key changes its size. */
Test(request_generator, unique_values_of_one_key_have_many_sizes)
{
    struct qn_workload_opts o = opts_of("set", 16, 16);
    o.value_size = (struct qn_sizes){QN_SIZES_MIXED, 16, 4000};
    o.unique = true;
    set_up(&o, 3, 1);
    uint32_t small = 0;
    uint32_t large = 0;
    for (int i = 0; i < 1000; i++) {
        struct qn_request r;
        qn_request_generator_store(&generator, 1, &r);
        uint64_t size = qn_workload_value_size(&workload, 1, r.value);
        small += size < 64;
        large += size > 1000;
    }
    cr_assert_gt(small, 200);
    cr_assert_gt(large, 20);
    tear_down();
}

Test(request_generator, sizes_do_not_depend_on_the_seed)
{
    struct qn_workload_opts o = opts_of("set", 16, 16);
    o.value_size = (struct qn_sizes){QN_SIZES_RANGE, 1, 1000};
    static uint64_t first[1000];
    bool vary = false;
    set_up(&o, 0, 1);
    for (uint64_t key = 0; key < 1000; key++) {
        first[key] = qn_workload_value_size(&workload, key, 0);
        vary |= first[key] != first[0];
    }
    cr_assert(vary);
    tear_down();
    set_up(&o, 0, 2);
    for (uint64_t key = 0; key < 1000; key++) {
        cr_assert_eq(qn_workload_value_size(&workload, key, 7), first[key]);
    }
    tear_down();
}

/* The other bytes are a function of these. */
static void ask_many(const char *mix, uint64_t number, uint64_t seed,
                     uint64_t keys[200])
{
    struct qn_workload_opts o = opts_of(mix, 16, 16);
    set_up(&o, number, seed);
    for (int i = 0; i < 200; i++) {
        struct qn_request r;
        qn_request_generator_next(&generator, &r);
        text(&r); /* also draws keys, for MSET */
        keys[i] = r.key * 16 + r.op;
    }
    tear_down();
}

Test(request_generator, the_seed_repeats_the_requests_of_a_client)
{
    const char *mix = "get,set,incr,mset,ping,del,cas,insert,rmw,scan";
    uint64_t a[200];
    uint64_t b[200];
    struct qn_workload_opts o = opts_of(mix, 16, 16);
    cr_assert_eq(qn_mix_weight(&o.mix, QN_OP_SCAN), 1);
    ask_many(mix, 3, 42, a);
    ask_many(mix, 3, 42, b);
    cr_assert_arr_eq(a, b, sizeof a);
    ask_many(mix, 3, 43, b);
    cr_assert_neq(memcmp(a, b, sizeof a), 0);
}

static const struct qn_reply null = {.type = '_'};
static const struct qn_reply ok = {
    .type = '+', .head = (const uint8_t *)"OK", .head_len = 2};

Test(request_generator, rmw_writes_the_key_that_it_has_read)
{
    struct qn_workload_opts o = opts_of("rmw", 16, 16);
    struct qn_request r[3];
    uint64_t value;
    set_up(&o, 0, 1);
    for (int i = 0; i < 3; i++) {
        qn_request_generator_next(&generator, &r[i]);
        r[i].since = 100 + (uint64_t)i;
        cr_assert_eq(r[i].command, QN_COMMAND_GET);
        cr_assert(!r[i].follows);
    }
    /* Found or not, in the order of the replies. */
    struct qn_request store;
    qn_request_generator_store(&generator, r[1].key, &store);
    struct qn_reply found = value_of(&store);
    cr_assert_eq(
        qn_request_generator_check_reply(&generator, &r[1], &found, &value),
        QN_REPLY_CONTINUES);
    cr_assert_eq(
        qn_request_generator_check_reply(&generator, &r[0], &null, &value),
        QN_REPLY_CONTINUES);
    cr_assert_eq(qn_request_generator_waiting(&generator), 2);
    for (int i = 1; i >= 0; i--) {
        struct qn_request w;
        qn_request_generator_next(&generator, &w);
        cr_assert_eq(w.command, QN_COMMAND_SET);
        cr_assert_eq(w.op, QN_OP_RMW);
        cr_assert_eq(w.key, r[i].key);
        cr_assert_eq(w.since, r[i].since);
        cr_assert(w.follows);
        cr_assert_eq(
            qn_request_generator_check_reply(&generator, &w, &ok, &value),
            QN_REPLY_RIGHT);
    }
    cr_assert_eq(qn_request_generator_waiting(&generator), 0);
    tear_down();
}

Test(request_generator, an_error_ends_an_operation)
{
    const struct qn_reply error = {.type = '-'};
    struct qn_workload_opts o = opts_of("rmw", 16, 16);
    struct qn_request r;
    uint64_t value;
    set_up(&o, 0, 1);
    qn_request_generator_next(&generator, &r);
    cr_assert_eq(
        qn_request_generator_check_reply(&generator, &r, &error, &value),
        QN_REPLY_ERROR);
    cr_assert_eq(qn_request_generator_check_reply(&generator, &r, &ok, &value),
                 QN_REPLY_WRONG);
    cr_assert_eq(qn_request_generator_waiting(&generator), 0);
    tear_down();
}

Test(request_generator, unique_values_never_repeat_and_name_their_writer)
{
    struct qn_workload_opts o = opts_of("set,insert,rmw,get", 16, 4);
    o.unique = true;
    set_up(&o, 9, 1);
    uint64_t sequence = 0;
    for (int i = 0; i < 1000; i++) {
        struct qn_request r;
        uint64_t value;
        qn_request_generator_next(&generator, &r);
        if (r.command == QN_COMMAND_GET) {
            cr_assert_eq(r.value, 0);
            qn_request_generator_check_reply(&generator, &r, &null, &value);
            continue;
        }
        cr_assert_eq(qn_value_writer(r.value), 9);
        cr_assert_eq(qn_value_sequence(r.value), ++sequence);
        cr_assert_eq(value_of(&r).number, QN_MARK_UNIQUE);
    }
    cr_assert_gt(sequence, 500);
    tear_down();
}

Test(request_generator, a_unique_cas_expects_what_it_has_read)
{
    struct qn_workload_opts o = opts_of("cas", 8, 16);
    o.unique = true;
    o.keys = 1;
    set_up(&o, 1, 1);
    struct qn_request other;
    struct qn_request get;
    struct qn_request cas;
    uint64_t value = 0;
    qn_request_generator_store(&generator, 0, &other);
    struct qn_reply found = value_of(&other);
    char kept[QN_MARK_UNIQUE];
    memcpy(kept, found.head, sizeof kept);
    make_sum(&found);
    found.head = (const uint8_t *)kept;
    qn_request_generator_next(&generator, &get);
    cr_assert_eq(get.command, QN_COMMAND_GET);
    cr_assert_eq(
        qn_request_generator_check_reply(&generator, &get, &found, &value),
        QN_REPLY_CONTINUES);
    cr_assert_eq(value, other.value);
    qn_request_generator_next(&generator, &cas);
    cr_assert_eq(cas.command, QN_COMMAND_CAS);
    cr_assert_eq(cas.expected, other.value);
    cr_assert_str_eq(text(&cas),
                     "*5\r\n$3\r\nSET\r\n" KEY "$16\r\n0000010000000002\r\n"
                     "$4\r\nIFEQ\r\n$16\r\n0000010000000001\r\n");
    cr_assert_eq(
        qn_request_generator_check_reply(&generator, &cas, &null, &value),
        QN_REPLY_MISS);
    /* No value read: nothing to compare with. */
    qn_request_generator_next(&generator, &get);
    cr_assert_eq(
        qn_request_generator_check_reply(&generator, &get, &null, &value),
        QN_REPLY_MISS);
    cr_assert_eq(qn_request_generator_waiting(&generator), 0);
    tear_down();
}

Test(request_generator, replies_are_checked_by_their_command)
{
    static const struct {
        enum qn_command command;
        struct qn_reply reply;
        enum qn_reply_check answer;
    } cases[] = {
        {QN_COMMAND_GET, {.type = '_'}, QN_REPLY_MISS},
        {QN_COMMAND_GET, {.type = ':'}, QN_REPLY_WRONG},
        {QN_COMMAND_GET, {.type = '!'}, QN_REPLY_ERROR},
        {QN_COMMAND_DEL, {.type = ':', .number = 1}, QN_REPLY_RIGHT},
        {QN_COMMAND_DEL, {.type = ':', .number = 0}, QN_REPLY_MISS},
        {QN_COMMAND_DEL, {.type = ':', .number = 2}, QN_REPLY_WRONG},
        {QN_COMMAND_DEL, {.type = '_'}, QN_REPLY_WRONG},
        {QN_COMMAND_CAS, {.type = '_'}, QN_REPLY_MISS},
        {QN_COMMAND_CAS, {.type = ':', .number = 1}, QN_REPLY_WRONG},
        {QN_COMMAND_SCAN, {.type = '*', .number = 2}, QN_REPLY_RIGHT},
        {QN_COMMAND_SCAN, {.type = '*', .number = 1}, QN_REPLY_WRONG},
        {QN_COMMAND_SET, {.type = '_'}, QN_REPLY_WRONG},
        {QN_COMMAND_INCR, {.type = ':', .number = -7}, QN_REPLY_RIGHT},
    };
    struct qn_workload_opts o = opts_of("get", 16, 16);
    set_up(&o, 0, 1);
    for (size_t i = 0; i < QN_ARRAY_COUNT(cases); i++) {
        const struct qn_request r = {.command = (uint8_t)cases[i].command};
        uint64_t value;
        cr_assert_eq(qn_request_generator_check_reply(&generator, &r,
                                                      &cases[i].reply, &value),
                     cases[i].answer, "case %d", (int)i);
    }
    tear_down();
}

Test(workload, refuses_impossible_settings)
{
    struct qn_workload w;
    struct qn_workload_opts good = opts_of("get", 4, 0);
    cr_assert_eq(qn_workload_init(&w, &good), QN_OK);
    qn_workload_fini(&w);
    struct qn_workload_opts o = good;
    o.key_size = qn_sizes_fixed(3); /* a letter and three digits need four */
    cr_assert_eq(qn_workload_init(&w, &o), QN_EINVAL);
    o = good;
    o.key_size = qn_sizes_fixed(QN_KEY_SIZE_MAX + 1);
    cr_assert_eq(qn_workload_init(&w, &o), QN_EINVAL);
    o = good;
    o.keys = 0;
    cr_assert_eq(qn_workload_init(&w, &o), QN_EINVAL);
    o = good;
    o.value_size = qn_sizes_fixed(QN_VALUE_SIZE_MAX + 1);
    cr_assert_eq(qn_workload_init(&w, &o), QN_EINVAL);
    o = good;
    o.mset_keys = 0;
    cr_assert_eq(qn_workload_init(&w, &o), QN_EINVAL);
    o = opts_of("mset", 4, 0);
    o.unique = true;
    cr_assert_eq(qn_workload_init(&w, &o), QN_EINVAL);
}

Test(workload, the_smallest_key_holds_all_keys)
{
    static const struct {
        uint64_t keys;
        uint64_t size;
    } cases[] = {{1, 2}, {10, 2}, {11, 3}, {QN_KEYS_MAX, 11}};
    struct qn_workload_opts o = opts_of("get", 16, 16);
    for (size_t i = 0; i < QN_ARRAY_COUNT(cases); i++) {
        o.keys = cases[i].keys;
        cr_assert_eq(qn_workload_key_size_min(&o), cases[i].size);
    }
    o = opts_of("get,insert", 16, 16);
    cr_assert_eq(qn_workload_key_size_min(&o), 13);
}
