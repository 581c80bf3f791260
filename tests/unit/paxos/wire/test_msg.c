/*
 * The codec. One sample of each kind, with every field different from zero,
 * is the source of all tests: round trip, every truncation, every changed
 * byte, fragments.
 */
#include "paxos/log/batch.h"
#include "paxos/wire/msg.h"
#include "paxos/wire/peer_state.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static uint8_t ul[2 * QN_UL_BYTES];
static uint8_t state[QN_PEER_STATE_BYTES];
static struct qn_refbuf *batch, *list;

static void setup(void)
{
    struct qn_ul_entry e = {.index = 7,
                            .tenure = 5,
                            .from = 6,
                            .kind = QN_UL_ACCEPTOR,
                            .leader = 3,
                            .acceptor = 63,
                            .voter = 1,
                            .leader_inc = 0x1111111111,
                            .acceptor_inc = 0x2222222222,
                            .voter_inc = UINT64_MAX};
    qn_ul_encode(&e, ul);
    e.index = 8;
    qn_ul_encode(&e, ul + QN_UL_BYTES);
    const struct qn_peer_state s = {.inc = 1,
                                    .applied = 2,
                                    .learned = 3,
                                    .counters = {4, 5, 6, 7},
                                    .answer = 11};
    qn_peer_state_encode(&s, state, sizeof state);
    list = qn_refbuf_create(&qn_alloc_malloc, 0);
    struct qn_slice c = {(const uint8_t *)"command", 7};
    cr_assert_eq(qn_commands_add(&list, &c, 1), QN_OK);
    batch = qn_batch_create(&qn_alloc_malloc, 0);
    struct qn_command_run g = {2, 5, 1, 1, {list->bytes, list->len}};
    cr_assert_eq(qn_batch_add(&batch, &g), QN_OK);
}

static void teardown(void)
{
    qn_refbuf_unref(batch);
    qn_refbuf_unref(list);
}

#define SLOT  UINT64_C(0x0000a1b2c3d4e5f6)
#define EPOCH 0xdeadbeefu

static struct qn_slice body_of(uint8_t kind)
{
    switch (kind) {
    case QN_MSG_REQUEST:
        return (struct qn_slice){list->bytes, list->len};
    case QN_MSG_ACCEPT:
    case QN_MSG_LEARN:
    case QN_MSG_PREPARED:
    case QN_MSG_STAGE:
    case QN_MSG_SEALED:
    case QN_MSG_FILL:
        return (struct qn_slice){batch->bytes, batch->len};
    case QN_MSG_PREPARE:
    case QN_MSG_SEAL:
    case QN_MSG_U_CHOSEN:
        return (struct qn_slice){ul, sizeof ul};
    case QN_MSG_U_PREPARE:
    case QN_MSG_U_PROMISE:
    case QN_MSG_U_ACCEPT:
        return (struct qn_slice){ul, QN_UL_BYTES};
    case QN_MSG_STATE:
        return (struct qn_slice){state, sizeof state};
    case QN_MSG_SNAP:
        return (struct qn_slice){(const uint8_t *)"state", 5};
    default:
        return (struct qn_slice){NULL, 0};
    }
}

static struct qn_msg sample(uint8_t kind)
{
    struct qn_msg m = {.kind = kind, .epoch = EPOCH, .slot = SLOT};
    m.body = body_of(kind);
    m.total = (uint32_t)m.body.len;
    switch (kind) {
    case QN_MSG_REDIRECT:
    case QN_MSG_NACK:
        m.redirect.leader = 63;
        m.redirect.leader_inc = UINT64_MAX;
        break;
    case QN_MSG_LEARN:
        m.learn.hi = SLOT;
        m.learn.alive = UINT64_MAX;
        m.learn.tree = 0x05;
        break;
    case QN_MSG_PREPARED:
    case QN_MSG_FILL:
        m.flags = QN_MSG_LAST;
        m.fill.log_lo = SLOT - 1;
        m.fill.hi = SLOT + 1;
        break;
    case QN_MSG_STAGE:
        m.flags = QN_MSG_LAST;
        m.stage.base = SLOT - 1;
        m.stage.hi = SLOT + 1;
        break;
    case QN_MSG_STAGED:
        m.flags = QN_MSG_OK;
        m.staged.have = SLOT;
        break;
    case QN_MSG_SEAL:
        m.seal.target = 0x01020304;
        break;
    case QN_MSG_SEALED:
        m.flags = QN_MSG_LAST | QN_MSG_OK;
        m.sealed.log_lo = 5;
        m.sealed.hi = SLOT;
        m.sealed.target = 0x01020304;
        break;
    case QN_MSG_FETCH:
        m.fetch.last = SLOT + 100;
        break;
    case QN_MSG_READ_INDEX:
        m.read_index.number = UINT64_MAX;
        m.read_index.inc = 0x1122334455667788;
        m.read_index.origin = 63;
        break;
    case QN_MSG_READ_AT:
        m.read_at.number = UINT64_MAX;
        m.read_at.inc = 0x1122334455667788;
        break;
    case QN_MSG_ORDER:
        m.order.inc = 0x1122334455667788;
        m.order.number = 0x05060708;
        m.order.node = 63;
        m.order.what = QN_ORDER_LEAD;
        m.order.forced = 1;
        break;
    case QN_MSG_TAKEN:
        m.order.inc = 0x1122334455667788;
        m.order.number = 0x05060708;
        m.order.node = 63;
        m.order.what = QN_ORDER_REMOVE;
        m.order.error = 0x01020304;
        break;
    case QN_MSG_SNAP:
        m.flags = QN_MSG_LAST;
        m.snap.offset = UINT64_C(0x1122334455);
        m.snap.part = QN_SNAP_UL;
        break;
    case QN_MSG_BEAT:
        m.beat.applied = 100;
        m.beat.learned = 101;
        m.beat.decided = SLOT;
        m.beat.ul_len = 0x01020304;
        break;
    case QN_MSG_U_PROMISE:
        m.u.vbal = (struct qn_ballot){0x0a0b0c0d, 7, 0x1112131415161718};
        m.u.bal = (struct qn_ballot){0xffffffff, 63, UINT64_MAX};
        break;
    case QN_MSG_U_PREPARE:
    case QN_MSG_U_REJECT:
    case QN_MSG_U_ACCEPT:
    case QN_MSG_U_ACCEPTED:
        m.u.bal = (struct qn_ballot){0xffffffff, 63, UINT64_MAX};
        break;
    default:
        break;
    }
    return m;
}

/* @return bytes written to a malloced buffer of exactly that size. */
static uint8_t *encode(const struct qn_msg *m, size_t *len)
{
    uint8_t head[QN_HEAD_MAX];
    size_t n = qn_msg_head(m, head);
    cr_assert_eq(n, qn_msg_head_size(m));
    *len = n + m->body.len;
    uint8_t *bytes = malloc(*len);
    memcpy(bytes, head, n);
    if (m->body.len != 0) {
        memcpy(bytes + n, m->body.data, m->body.len);
    }
    return bytes;
}

static bool same_union(const struct qn_msg *a, const struct qn_msg *b)
{
    return memcmp(&a->u, &b->u, sizeof a->u) == 0;
}

Test(msg, every_kind_comes_back_as_it_was, .init = setup, .fini = teardown)
{
    for (uint8_t kind = 1; kind < QN_MSG_KINDS; kind++) {
        struct qn_msg m = sample(kind), got;
        size_t len;
        uint8_t *bytes = encode(&m, &len);
        cr_assert_eq(qn_msg_decode(&got, bytes, len), QN_OK, "%s",
                     qn_msg_name(kind));
        cr_expect_eq(got.kind, kind);
        cr_expect_eq(got.flags, m.flags);
        cr_expect_eq(got.epoch, EPOCH);
        cr_expect_eq(got.slot, SLOT);
        cr_expect(same_union(&got, &m), "%s", qn_msg_name(kind));
        cr_assert_eq(got.body.len, m.body.len);
        cr_expect(m.body.len == 0 ||
                  memcmp(got.body.data, m.body.data, m.body.len) == 0);
        cr_expect_eq(got.total, m.body.len);
        cr_expect(got.refbuf == NULL);
        free(bytes);
    }
}

Test(msg, the_bytes_of_the_hot_kinds_are_these, .init = setup, .fini = teardown)
{
    uint8_t head[QN_HEAD_MAX];
    struct qn_msg m = sample(QN_MSG_ACCEPT);
    cr_assert_eq(qn_msg_head(&m, head), 16u);
    const uint8_t expected[16] = {QN_MSG_ACCEPT,
                                  0,
                                  0xf6,
                                  0xe5,
                                  0xd4,
                                  0xc3,
                                  0xb2,
                                  0xa1,
                                  0xef,
                                  0xbe,
                                  0xad,
                                  0xde,
                                  (uint8_t)batch->len,
                                  0,
                                  0,
                                  0};
    cr_assert_arr_eq(head, expected, 16);
    m = sample(QN_MSG_REQUEST);
    cr_assert_eq(qn_msg_head(&m, head), 16u);
    m = sample(QN_MSG_LEARN);
    cr_assert_eq(qn_msg_head(&m, head), 18u);
    cr_assert(head[1] == QN_MSG_FIRST && head[17] == 64);
    m.learn.alive = UINT64_MAX - 1;
    cr_assert_eq(qn_msg_head(&m, head), 25u);
    m.learn.alive = 0xff;
    cr_assert_eq(qn_msg_head(&m, head), 18u);
    cr_assert(head[1] == 0 && head[16] == 0x05 && head[17] == 0xff);
}

/* Every form that a head has, around each bound. */
Test(msg, every_brief_head_comes_back_as_it_was, .init = setup,
     .fini = teardown)
{
    static const struct {
        uint64_t alive;
        size_t more; /* bytes */
    } a[] = {{0, 0},     {1, 0},     {0xfe, 0},       {0xff, 0},
             {0x100, 7}, {0x1fe, 7}, {0x1ff, 0},      {UINT64_MAX / 2, 0},
             {3, 0},     {~3ull, 7}, {UINT64_MAX, 0}, {UINT64_MAX - 1, 7}};
    static const uint64_t hi[] = {SLOT, SLOT - 1, SLOT + 1, 0, QN_SLOT_MAX};
    static const uint32_t epoch[] = {0, 0xffff, 0x10000, UINT32_MAX};
    for (size_t i = 0; i < QN_ARRAY_COUNT(a) * 20; i++) {
        struct qn_msg m = sample(QN_MSG_LEARN), got;
        m.learn.alive = a[i / 20].alive;
        m.learn.hi = hi[i % 5];
        m.epoch = epoch[i / 5 % 4];
        size_t len;
        uint8_t *bytes = encode(&m, &len);
        cr_assert_eq(len - m.body.len, (m.epoch <= 0xffff ? 13u : 18u) +
                                           a[i / 20].more +
                                           (i % 5 != 0 ? 8u : 0u));
        cr_assert_eq(qn_msg_decode(&got, bytes, len), QN_OK);
        cr_assert(same_union(&got, &m) && got.epoch == m.epoch);
        cr_assert_eq(got.flags, 0);
        free(bytes);
    }
}

Test(msg, a_body_of_255_bytes_has_a_brief_header_and_no_longer_one)
{
    uint8_t body[256] = {0}, bytes[QN_HEAD_MAX + sizeof body];
    for (size_t len = 250; len <= 256; len++) {
        struct qn_msg m = {.kind = QN_MSG_SNAP, .body = {body, len}}, got;
        size_t n = qn_msg_head(&m, bytes);
        cr_assert_eq(n, 9 + (len <= 255 ? QN_HEADER_BRIEF : QN_HEADER_BYTES));
        memcpy(bytes + n, body, len);
        cr_assert_eq(qn_msg_decode(&got, bytes, n + len), QN_OK);
        cr_assert_eq(got.body.len, len);
        cr_assert_eq(got.total, len);
    }
}

/* A command of 24 bytes in one UMP cell, also after many. */
Test(msg, a_learn_of_a_small_command_is_one_cell)
{
    enum { CELL = 56 };
    static const uint64_t members[] = {7, 0xff, UINT64_MAX >> 1, UINT64_MAX};
    uint8_t command[24] = {0};
    const struct qn_slice part = {command, sizeof command};
    for (size_t i = 0; i < QN_ARRAY_COUNT(members); i++) {
        struct qn_refbuf *commands = qn_refbuf_create(&qn_alloc_malloc, 64);
        struct qn_refbuf *b = qn_batch_create(&qn_alloc_malloc, 64);
        cr_assert_eq(qn_commands_add(&commands, &part, 1), QN_OK);
        const struct qn_command_run run = {
            .inc = 9,
            .first = 9999,
            .count = 1,
            .commands = {commands->bytes, commands->len}};
        cr_assert_eq(qn_batch_add(&b, &run), QN_OK);
        struct qn_msg m = {.kind = QN_MSG_LEARN,
                           .slot = SLOT,
                           .epoch = 999,
                           .learn = {.hi = SLOT, .alive = members[i]},
                           .body = {b->bytes, b->len}};
        cr_assert_leq(qn_msg_head_size(&m) + b->len, CELL);
        qn_refbuf_unref(commands);
        qn_refbuf_unref(b);
    }
}

static int decode_again(uint8_t *bytes, size_t n)
{
    struct qn_msg got;
    return qn_msg_decode(&got, bytes, n);
}

/* Equal messages have equal bytes. */
Test(msg, a_longer_head_than_is_needed_is_malformed, .init = setup,
     .fini = teardown)
{
    uint8_t bytes[512] = {0};
    struct qn_msg m = sample(QN_MSG_LEARN);
    m.learn.alive = 0x100;
    m.learn.hi = SLOT + 1;
    size_t n = qn_msg_head(&m, bytes);
    memcpy(bytes + n, m.body.data, m.body.len);
    n += m.body.len;
    cr_assert_eq(decode_again(bytes, n), QN_OK);
    bytes[18] = 0; /* the second byte of `alive` */
    cr_assert_eq(decode_again(bytes, n), QN_ECORRUPT);
    bytes[17] = 0xff, bytes[18] = 1; /* the first 9 nodes */
    cr_assert_eq(decode_again(bytes, n), QN_ECORRUPT);
    bytes[17] = 0;
    cr_assert_eq(decode_again(bytes, n), QN_OK);
    bytes[10] = bytes[11] = 0; /* an epoch of two bytes */
    cr_assert_eq(decode_again(bytes, n), QN_ECORRUPT);
    bytes[10] = 1;
    memcpy(bytes + 25, bytes + 2, 6); /* hi becomes the slot */
    cr_assert_eq(decode_again(bytes, n), QN_ECORRUPT);
    m = sample(QN_MSG_LEARN); /* the first 64 nodes */
    n = qn_msg_head(&m, bytes);
    memcpy(bytes + n, m.body.data, m.body.len);
    n += m.body.len;
    for (unsigned first = 0; first < 256; first++) {
        bytes[17] = (uint8_t)first;
        cr_assert_eq(decode_again(bytes, n),
                     first > 8 && first <= 64 ? QN_OK : QN_ECORRUPT, "%u",
                     first);
    }
    m = sample(QN_MSG_ACCEPT);
    n = qn_msg_head(&m, bytes);
    memcpy(bytes + n, m.body.data, m.body.len);
    bytes[1] = QN_MSG_MANY;
    cr_assert_eq(decode_again(bytes, n + m.body.len), QN_ECORRUPT);
}

Test(msg, every_truncation_is_malformed, .init = setup, .fini = teardown)
{
    for (uint8_t kind = 1; kind < QN_MSG_KINDS; kind++) {
        struct qn_msg m = sample(kind), got;
        size_t len;
        uint8_t *bytes = encode(&m, &len);
        for (size_t n = 0; n < len; n++) {
            uint8_t *cut = malloc(n + 1); /* exact, for the sanitizer */
            memcpy(cut, bytes, n);
            cr_expect_eq(qn_msg_decode(&got, cut, n), QN_ECORRUPT,
                         "%s cut to %zu", qn_msg_name(kind), n);
            free(cut);
        }
        free(bytes);
    }
}

/* Any byte may be anything; what is accepted has a sound shape. */
Test(msg, every_changed_byte_is_refused_or_sound, .init = setup,
     .fini = teardown)
{
    for (uint8_t kind = 1; kind < QN_MSG_KINDS; kind++) {
        struct qn_msg m = sample(kind), got;
        size_t len;
        uint8_t *bytes = encode(&m, &len);
        for (size_t i = 0; i < len; i++) {
            uint8_t was = bytes[i];
            for (unsigned v = 0; v < 256; v++) {
                bytes[i] = (uint8_t)v;
                if (qn_msg_decode(&got, bytes, len) == QN_OK &&
                    (got.flags & QN_MSG_FRAGMENT) == 0) {
                    cr_assert_eq(qn_msg_check_body(&got), QN_OK);
                    cr_assert(got.body.data + got.body.len == bytes + len);
                }
            }
            bytes[i] = was;
        }
        free(bytes);
    }
}

Test(msg, extra_bytes_are_malformed, .init = setup, .fini = teardown)
{
    for (uint8_t kind = 1; kind < QN_MSG_KINDS; kind++) {
        struct qn_msg m = sample(kind), got;
        uint8_t bytes[512] = {0};
        size_t n = qn_msg_head(&m, bytes);
        if (m.body.len != 0) {
            memcpy(bytes + n, m.body.data, m.body.len);
        }
        cr_expect_eq(qn_msg_decode(&got, bytes, n + m.body.len + 1),
                     QN_ECORRUPT);
    }
}

Test(msg, unknown_and_reserved_kinds_are_malformed)
{
    uint8_t bytes[64] = {0};
    struct qn_msg m;
    for (unsigned kind = 0; kind < 256; kind++) {
        bytes[0] = (uint8_t)kind;
        if (kind == 0 || kind >= QN_MSG_KINDS) {
            cr_expect_eq(qn_msg_decode(&m, bytes, sizeof bytes), QN_ECORRUPT);
            cr_expect_str_eq(qn_msg_name((uint8_t)kind), "?");
        }
    }
}

/* kind, a change to a sound sample; all must be refused */
Test(msg, fields_out_of_range_are_malformed, .init = setup, .fini = teardown)
{
    struct qn_msg m[17], got;
    size_t n = 0;
    m[n] = sample(QN_MSG_ACCEPT), m[n++].slot = 0;
    m[n] = sample(QN_MSG_LEARN), m[n++].slot = 0;
    m[n] = sample(QN_MSG_LEARN), m[n++].learn.hi = UINT64_C(1) << 48;
    m[n] = sample(QN_MSG_REQUEST), m[n++].slot = 0;
    m[n] = sample(QN_MSG_FETCH), m[n++].fetch.last = SLOT - 1;
    m[n] = sample(QN_MSG_FETCH), m[n++].fetch.last = UINT64_C(1) << 48;
    m[n] = sample(QN_MSG_FILL), m[n++].fill.hi = UINT64_MAX;
    m[n] = sample(QN_MSG_REDIRECT), m[n++].redirect.leader = 64;
    m[n] = sample(QN_MSG_NACK), m[n++].nack.leader = 64;
    m[n] = sample(QN_MSG_BEAT), m[n++].beat.learned = 99;
    m[n] = sample(QN_MSG_SNAP), m[n++].snap.part = QN_SNAP_PARTS;
    m[n] = sample(QN_MSG_U_ACCEPT), m[n++].body.len = 0;
    m[n] = sample(QN_MSG_ORDER), m[n++].order.node = 64;
    m[n] = sample(QN_MSG_ORDER), m[n++].order.what = QN_ORDERS;
    m[n] = sample(QN_MSG_ORDER), m[n++].order.forced = 2;
    m[n] = sample(QN_MSG_TAKEN), m[n++].order.node = 64;
    m[n] = sample(QN_MSG_TAKEN), m[n++].order.error = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        size_t len;
        uint8_t *bytes = encode(&m[i], &len);
        cr_expect_eq(qn_msg_decode(&got, bytes, len), QN_ECORRUPT, "case %zu",
                     i);
        free(bytes);
    }
}

Test(msg, answers_without_an_entry_have_no_body, .init = setup,
     .fini = teardown)
{
    const uint8_t kinds[] = {QN_MSG_PREPARED, QN_MSG_STAGE, QN_MSG_SEALED,
                             QN_MSG_FILL, QN_MSG_REQUEST};
    for (size_t i = 0; i < QN_ARRAY_COUNT(kinds); i++) {
        struct qn_msg m = sample(kinds[i]), got;
        m.body.len = 0;
        m.slot = 0;
        uint8_t head[QN_HEAD_MAX];
        size_t n = qn_msg_head(&m, head);
        cr_expect_eq(qn_msg_decode(&got, head, n), QN_OK);
        cr_expect_eq(got.body.len, 0u);
    }
}

/* What a peer would refuse is not sent. */
Test(msg, an_entry_out_of_range_is_not_encoded, .signal = SIGABRT)
{
    const struct qn_ul_entry e = {.index = 7, .tenure = 8};
    uint8_t bytes[QN_UL_BYTES];
    qn_ul_encode(&e, bytes);
}

Test(msg, a_fragment_beyond_its_whole_is_not_encoded, .init = setup,
     .fini = teardown, .signal = SIGABRT)
{
    uint8_t head[QN_HEAD_MAX];
    struct qn_msg m = sample(QN_MSG_LEARN);
    m.flags |= QN_MSG_FRAGMENT;
    m.total = (uint32_t)m.body.len;
    m.offset = 1;
    (void)qn_msg_head(&m, head);
}

Test(msg, ul_entries_are_read_by_index, .init = setup, .fini = teardown)
{
    struct qn_ul_entry e;
    struct qn_slice body = {ul, sizeof ul};
    cr_assert_eq(qn_ul_decode(&e, body, 1), QN_OK);
    cr_assert(e.index == 8 && e.tenure == 5 && e.from == 6);
    cr_assert(e.kind == QN_UL_ACCEPTOR && e.leader == 3 && e.acceptor == 63);
    cr_assert(e.voter == 1 && e.leader_inc == 0x1111111111);
    cr_assert(e.acceptor_inc == 0x2222222222 && e.voter_inc == UINT64_MAX);
    cr_assert_eq(qn_ul_decode(&e, body, 2), QN_ENOENT);
    ul[12] = QN_UL_SEAT + 1; /* kind */
    cr_assert_eq(qn_ul_decode(&e, body, 0), QN_ECORRUPT);
}

Test(msg, an_entry_is_within_a_group_that_has_all_its_nodes)
{
    struct qn_ul_entry e = {.leader = 2, .acceptor = 1};
    cr_assert(qn_ul_within(&e, 3));
    cr_assert_not(qn_ul_within(&e, 2));
    e = (struct qn_ul_entry){.acceptor = 2};
    cr_assert_not(qn_ul_within(&e, 2));
    e = (struct qn_ul_entry){.voter = 2};
    cr_assert_not(qn_ul_within(&e, 2));
    e.voter = QN_NODES_MAX - 1;
    cr_assert(qn_ul_within(&e, QN_NODES_MAX));
}

/* The leader is one of the voters that an entry names. Entries of a group that
 * never changes name none; one that changes them does. */
Test(msg, an_entry_names_voters_and_its_leader_is_one)
{
    static const struct {
        uint8_t kind, leader;
        uint64_t voters;
        int rc;
    } rows[] = {
        {QN_UL_LEADER, 2, 0, QN_OK},
        {QN_UL_LEADER, 2, 0x4, QN_OK},
        {QN_UL_LEADER, 63, UINT64_MAX, QN_OK},
        {QN_UL_LEADER, 2, 0x3, QN_ECORRUPT},
        {QN_UL_SEAT, 0, 0, QN_ECORRUPT},
        {QN_UL_SEAT, 0, 0x7, QN_OK},
        {QN_UL_SEAT, 0, 0x6, QN_ECORRUPT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct qn_ul_entry e = {.kind = QN_UL_LEADER, .voter = 1}, got;
        uint8_t bytes[QN_UL_BYTES];
        qn_ul_encode(&e, bytes);
        bytes[12] = rows[i].kind;
        bytes[13] = rows[i].leader;
        memcpy(bytes + 40, &rows[i].voters, 8);
        struct qn_slice body = {bytes, sizeof bytes};
        cr_expect_eq(qn_ul_decode(&got, body, 0), rows[i].rc, "row %zu", i);
        cr_expect_eq(got.voters, rows[i].voters);
    }
}

Test(msg, an_entry_is_within_a_group_that_has_all_its_voters)
{
    struct qn_ul_entry e = {.voters = 0x7};
    cr_assert(qn_ul_within(&e, 3));
    cr_assert_not(qn_ul_within(&e, 2));
    e.voters = UINT64_MAX;
    cr_assert_not(qn_ul_within(&e, QN_NODES_MAX - 1));
    cr_assert(qn_ul_within(&e, QN_NODES_MAX));
}

/* ----------------------------------------------------------- fragments -- */

static struct qn_refbuf *long_batch(size_t bytes)
{
    uint8_t *text = malloc(bytes);
    for (size_t i = 0; i < bytes; i++) {
        text[i] = (uint8_t)(i * 7);
    }
    struct qn_refbuf *l = qn_refbuf_create(&qn_alloc_malloc, 0);
    struct qn_slice c = {text, bytes};
    cr_assert_eq(qn_commands_add(&l, &c, 1), QN_OK);
    struct qn_refbuf *b = qn_batch_create(&qn_alloc_malloc, 0);
    struct qn_command_run g = {2, 5, 1, 1, {l->bytes, l->len}};
    cr_assert_eq(qn_batch_add(&b, &g), QN_OK);
    qn_refbuf_unref(l);
    free(text);
    return b;
}

static struct qn_msg long_learn(const struct qn_refbuf *b)
{
    struct qn_msg m = sample(QN_MSG_LEARN);
    m.body = (struct qn_slice){b->bytes, b->len};
    return m;
}

/* Send through bytes, skipping fragment number `lost`; true if joined. */
static bool transfer(const struct qn_msg *m, size_t max, int lost,
                     struct qn_joiner *j, struct qn_msg *got)
{
    struct qn_msg fragment;
    uint32_t at = 0;
    int err = QN_EAGAIN;
    for (int i = 0; qn_msg_cut(m, max, &at, &fragment); i++) {
        static uint8_t bytes[QN_REFBUF_MAX / 4096];
        size_t n = qn_msg_head(&fragment, bytes);
        cr_assert_leq(n + fragment.body.len, max);
        if (fragment.body.len != 0) {
            memcpy(bytes + n, fragment.body.data, fragment.body.len);
        }
        if (i == lost) {
            continue;
        }
        cr_assert_eq(qn_msg_decode(got, bytes, n + fragment.body.len), QN_OK);
        err = qn_joiner_take(j, &qn_alloc_malloc, got);
    }
    return err == QN_OK;
}

Test(msg, fragments_join_at_every_length_around_the_limit, .init = setup,
     .fini = teardown)
{
    for (size_t bytes = 60; bytes < 400; bytes++) {
        struct qn_refbuf *b = long_batch(bytes);
        struct qn_msg m = long_learn(b), got;
        struct qn_joiner j = {0};
        cr_assert(transfer(&m, 128, -1, &j, &got));
        cr_assert_eq(got.flags & QN_MSG_FRAGMENT, 0);
        cr_assert_eq(got.body.len, b->len);
        cr_assert_eq(memcmp(got.body.data, b->bytes, b->len), 0);
        cr_assert(got.slot == SLOT && got.learn.hi == SLOT);
        cr_assert_eq(got.refbuf != NULL, 25 + b->len > 128);
        qn_joiner_reset(&j);
        qn_refbuf_unref(b);
    }
}

Test(msg, a_short_message_is_its_own_only_fragment, .init = setup,
     .fini = teardown)
{
    struct qn_msg m = sample(QN_MSG_FETCH), fragment;
    uint32_t at = 0;
    cr_assert(qn_msg_cut(&m, 128, &at, &fragment));
    cr_assert_eq(fragment.flags, 0);
    cr_assert(!qn_msg_cut(&m, 128, &at, &fragment));
}

Test(msg, a_lost_fragment_loses_the_message_and_not_the_next, .init = setup,
     .fini = teardown)
{
    struct qn_refbuf *b = long_batch(500);
    struct qn_msg m = long_learn(b), got;
    struct qn_joiner j = {0};
    for (int lost = 0; lost < 6; lost++) {
        cr_assert(!transfer(&m, 128, lost, &j, &got), "lost %d", lost);
        cr_assert(transfer(&m, 128, -1, &j, &got));
    }
    qn_joiner_reset(&j);
    qn_refbuf_unref(b);
}

Test(msg, short_messages_pass_between_fragments, .init = setup,
     .fini = teardown)
{
    struct qn_refbuf *b = long_batch(300);
    struct qn_msg m = long_learn(b), fragment, beat;
    struct qn_joiner j = {0};
    uint32_t at = 0;
    int err = QN_EAGAIN;
    while (qn_msg_cut(&m, 128, &at, &fragment)) {
        err = qn_joiner_take(&j, &qn_alloc_malloc, &fragment);
        if (err == QN_EAGAIN) {
            beat = sample(QN_MSG_BEAT);
            cr_assert_eq(qn_joiner_take(&j, &qn_alloc_malloc, &beat), QN_OK);
        }
    }
    cr_assert_eq(err, QN_OK);
    qn_joiner_reset(&j);
    qn_refbuf_unref(b);
}

static void *no_memory(void *ctx, void *p, size_t bytes)
{
    (void)ctx;
    (void)p;
    (void)bytes;
    return NULL;
}

Test(msg, a_fragment_without_memory_can_be_given_again, .init = setup,
     .fini = teardown)
{
    struct qn_refbuf *b = long_batch(150);
    struct qn_msg m = long_learn(b), fragment, twice;
    struct qn_joiner j = {0};
    const struct qn_alloc none = {no_memory, NULL};
    uint32_t at = 0;
    cr_assert(qn_msg_cut(&m, 128, &at, &fragment));
    twice = fragment;
    cr_assert_eq(qn_joiner_take(&j, &none, &fragment), QN_ENOMEM);
    cr_assert_eq(qn_joiner_take(&j, &qn_alloc_malloc, &twice), QN_EAGAIN);
    qn_joiner_reset(&j);
    qn_refbuf_unref(b);
}

Test(msg, joined_bytes_are_checked, .init = setup, .fini = teardown)
{
    struct qn_refbuf *b = long_batch(150);
    b->bytes[8] ^= 1; /* the count of commands */
    struct qn_msg m = long_learn(b), fragment;
    struct qn_joiner j = {0};
    uint32_t at = 0;
    int err = QN_OK;
    while (qn_msg_cut(&m, 128, &at, &fragment)) {
        err = qn_joiner_take(&j, &qn_alloc_malloc, &fragment);
    }
    cr_assert_eq(err, QN_ECORRUPT);
    qn_joiner_reset(&j);
    qn_refbuf_unref(b);
}
