#include "paxos/group/dialogue.h"

#include <string.h>

#include "core/base/err.h"
#include "core/base/little_endian.h"
#include "tests/support/test.h"

static uint8_t bytes[QN_DIALOGUE_BYTES];

static int decode(uint32_t fds, struct qn_dialogue_msg *m)
{
    return qn_dialogue_decode((struct qn_slice){bytes, sizeof bytes}, fds, m);
}

static const struct qn_dialogue_msg all[] = {
    {.kind = QN_DIALOGUE_REFUSE, .refuse = {.err = QN_EBUSY, .text = "no"}},
    {.kind = QN_DIALOGUE_HELLO,
     .hello =
         {.application = "a", .version = 7, .formats = 9, .transport = "t"}},
    {.kind = QN_DIALOGUE_WELCOME,
     .welcome = {.layout = {.nodes = 3,
                            .cells = 64,
                            .log_bytes = 5,
                            .command_max = 6,
                            .process_acceptor = true},
                 .voters = {.mask = 5, .entries = 8}}},
    {.kind = QN_DIALOGUE_PEER,
     .peer = {.node = 63,
              .incarnation = 1u << 31,
              .pid = 4,
              .ended = true,
              .observer = true}},
    {.kind = QN_DIALOGUE_DONE,
     .done = {.first = UINT64_MAX, .voters = {.mask = 1, .entries = 2}}},
    {.kind = QN_DIALOGUE_BEGIN, .begin = {.incarnation = {1, [63] = 2}}},
};
static const uint32_t fds_of[] = {0, 0, 4, 1, 0, 0};

Test(dialogue, each_message_comes_back)
{
    for (uint32_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct qn_dialogue_msg m;
        qn_dialogue_encode(&all[i], bytes);
        cr_assert_eq(decode(fds_of[i], &m), QN_OK, "message %u", i);
        cr_assert_eq(m.kind, all[i].kind);
        uint8_t again[QN_DIALOGUE_BYTES];
        qn_dialogue_encode(&m, again);
        cr_assert_arr_eq(again, bytes, sizeof bytes);
        cr_expect_eq(decode(fds_of[i] + 1, &m), QN_ECORRUPT);
    }
}

/* Not one byte is ignored. */
Test(dialogue, no_byte_that_no_field_covers_is_taken)
{
    for (uint32_t i = 0; i < sizeof all / sizeof *all; i++) {
        qn_dialogue_encode(&all[i], bytes);
        for (uint32_t at = 0; at < sizeof bytes; at++) {
            struct qn_dialogue_msg m;
            uint8_t again[QN_DIALOGUE_BYTES];
            bytes[at] ^= 0x81;
            if (decode(fds_of[i], &m) == QN_OK) {
                qn_dialogue_encode(&m, again);
                qn_put_le(again + 4, qn_get_le(bytes + 4, 2), 2);
                cr_assert_arr_eq(again, bytes, sizeof bytes,
                                 "message %u, byte %u", i, at);
            }
            bytes[at] ^= 0x81;
        }
    }
}

Test(dialogue, a_refusal_is_read_whatever_its_version)
{
    struct qn_dialogue_msg m;
    qn_dialogue_encode(&all[0], bytes);
    qn_put_le(bytes + 4, QN_DIALOGUE_VERSION + 1, 2);
    cr_expect_eq(decode(0, &m), QN_OK);
    cr_expect_str_eq(m.refuse.text, "no");
    qn_dialogue_encode(&all[1], bytes);
    qn_put_le(bytes + 4, QN_DIALOGUE_VERSION + 1, 2);
    cr_expect_eq(decode(0, &m), QN_ENOSYS);
}

static int with(uint32_t i, uint32_t at, uint64_t v, unsigned width)
{
    struct qn_dialogue_msg m;
    qn_dialogue_encode(&all[i], bytes);
    qn_put_le(bytes + 8 + at, v, width);
    return decode(fds_of[i], &m);
}

Test(dialogue, fields_out_of_range_are_refused)
{
    struct qn_dialogue_msg m;
    cr_expect_eq(with(0, 0, 1, 4), QN_ECORRUPT, "no error");
    cr_expect_eq(with(0, 4, '\n', 1), QN_ECORRUPT, "not printable");
    cr_expect_eq(with(2, 0, 0, 4), QN_ECORRUPT, "no nodes");
    cr_expect_eq(with(2, 4, 8, 4), QN_ECORRUPT, "few cells");
    cr_expect_eq(with(2, 4, 65, 4), QN_ECORRUPT, "no power of two");
    cr_expect_eq(with(2, 24, 8, 8), QN_ECORRUPT, "no such voter");
    cr_expect_eq(with(3, 0, 64, 4), QN_ECORRUPT, "no such node");
    cr_expect_eq(with(3, 17, 2, 1), QN_ECORRUPT, "neither of both");
    cr_expect_eq(with(3, 8, 0, 8), QN_ECORRUPT, "no incarnation");
    memset(bytes + 8, 'x', 64);
    qn_dialogue_encode(&all[1], bytes);
    memset(bytes + 8, 'x', 64);
    cr_expect_eq(decode(0, &m), QN_ECORRUPT, "no end of the text");
    cr_expect_eq(qn_dialogue_decode((struct qn_slice){bytes, 8}, 0, &m),
                 QN_ECORRUPT);
    qn_dialogue_encode(&all[2], bytes);
    qn_put_le(bytes + 8, 65, 4);
    cr_expect_eq(decode(66, &m), QN_ECORRUPT, "too many nodes");
}

Test(dialogue, another_program_may_not_come_in)
{
    const struct qn_dialogue_hello ours = {
        .application = "a", .version = 1, .formats = 2, .transport = "t"};
    struct qn_dialogue_hello guest = ours;
    char why[QN_DIALOGUE_TEXT];
    cr_expect_eq(qn_dialogue_check(&ours, &guest, why), QN_OK);
    guest.formats = 3;
    cr_expect_eq(qn_dialogue_check(&ours, &guest, why), QN_EINVAL);
    cr_expect_str_eq(why, "the group has another version of the library");
    guest = ours;
    memset(guest.application, 'y', QN_DIALOGUE_NAME - 1);
    struct qn_dialogue_hello longest = guest;
    longest.application[0] = 'z';
    cr_expect_eq(qn_dialogue_check(&longest, &guest, why), QN_EINVAL);
    cr_expect_eq(strlen(why), strlen("the group is of , not of ") + 126);
}
