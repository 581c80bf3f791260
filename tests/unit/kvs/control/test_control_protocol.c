/* The codec of control messages: each kind, and each check of its table. */
#include "kvs/control/control_protocol.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"

enum {
    TO_REPLICA = 1 << QN_CTL_TO_REPLICA,
    TO_SUPERVISOR = 1 << QN_CTL_TO_SUPERVISOR,
    TO_HEIR = 1 << QN_CTL_TO_HEIR,
    FROM_HEIR = 1 << QN_CTL_FROM_HEIR,
    BOTH = TO_REPLICA | TO_SUPERVISOR,
    ALL = BOTH | TO_HEIR | FROM_HEIR,
};

/* Each kind with its least and greatest values, the directions that it travels
 * in, and those in which a descriptor comes along. */
struct sample {
    unsigned ways;
    unsigned with_fd;
    struct qn_control_msg m;
};

#define BARE(kind_, ways, with_fd)                                             \
    {                                                                          \
        ways, with_fd,                                                         \
        {                                                                      \
            .kind = (kind_)                                                    \
        }                                                                      \
    }

static const struct sample samples[] = {
    {TO_SUPERVISOR,
     TO_SUPERVISOR,
     {QN_CTL_HELLO, .u.hello = {.node = 0, .incarnation = 1}}},
    {TO_SUPERVISOR,
     TO_SUPERVISOR,
     {QN_CTL_HELLO, .u.hello = {.node = 63, .incarnation = UINT64_MAX}}},
    BARE(QN_CTL_READY, BOTH, 0),
    {TO_SUPERVISOR, 0, {QN_CTL_DRAINING, .u.draining = {0}}},
    {TO_SUPERVISOR, 0, {QN_CTL_DRAINING, .u.draining = {UINT32_MAX}}},
    {TO_SUPERVISOR, 0, {QN_CTL_DRAINED, .u.drained = {false, 0}}},
    {TO_SUPERVISOR, 0, {QN_CTL_DRAINED, .u.drained = {true, UINT64_MAX}}},
    {TO_SUPERVISOR | TO_HEIR, 0, {QN_CTL_FAILED, .u.failed = {-1}}},
    {TO_SUPERVISOR | TO_HEIR, 0, {QN_CTL_FAILED, .u.failed = {INT32_MIN}}},
    {BOTH,
     BOTH,
     {QN_CTL_PEER_UP, .u.peer_up = {.node = 0, .incarnation = 1, .pid = 0}}},
    {BOTH,
     BOTH,
     {QN_CTL_PEER_UP,
      .u.peer_up = {.node = 63, .incarnation = UINT64_MAX, .pid = INT32_MAX}}},
    {BOTH, 0, {QN_CTL_PEER_DOWN, .u.peer_down = {0, 0}}},
    {BOTH, 0, {QN_CTL_PEER_DOWN, .u.peer_down = {63, UINT64_MAX}}},
    BARE(QN_CTL_START, ALL, 0),
    {TO_SUPERVISOR,
     TO_SUPERVISOR,
     {QN_CTL_LISTEN, .u.listen = {0, QN_LISTEN_SOCKET}}},
    {TO_SUPERVISOR,
     TO_SUPERVISOR,
     {QN_CTL_LISTEN, .u.listen = {63, QN_LISTEN_PASS_TO}}},
    BARE(QN_CTL_DRAIN, TO_REPLICA, 0),
    BARE(QN_CTL_STOP, TO_REPLICA, 0),
    {ALL, TO_SUPERVISOR, {QN_CTL_ADOPT, .u.adopt = {0, 0, 0, 0}}},
    {ALL,
     TO_SUPERVISOR,
     {QN_CTL_ADOPT,
      .u.adopt = {UINT32_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}}},
    BARE(QN_CTL_CONFIG, TO_SUPERVISOR | TO_HEIR, TO_SUPERVISOR | TO_HEIR),
    BARE(QN_CTL_LOCK, TO_SUPERVISOR, TO_SUPERVISOR),
    BARE(QN_CTL_RECORD, TO_SUPERVISOR, TO_SUPERVISOR),
    {TO_SUPERVISOR, TO_SUPERVISOR, {QN_CTL_DOORBELL, .u.doorbell = {0}}},
    {TO_SUPERVISOR, TO_SUPERVISOR, {QN_CTL_DOORBELL, .u.doorbell = {63}}},
    {TO_SUPERVISOR | TO_HEIR, 0, {QN_CTL_FORMAT, .u.format = {0, 0}}},
    {TO_SUPERVISOR | TO_HEIR,
     0,
     {QN_CTL_FORMAT, .u.format = {QN_CTL_FORMATS_MAX - 1, UINT32_MAX}}},
    {TO_REPLICA, 0, {QN_CTL_ROLES_QUERY, .u.roles_query = {0}}},
    {TO_REPLICA, 0, {QN_CTL_ROLES_QUERY, .u.roles_query = {UINT32_MAX}}},
    {TO_SUPERVISOR, 0, {QN_CTL_ROLES, .u.roles = {0, 0, 0, 0, false, 0}}},
    {TO_SUPERVISOR,
     0,
     {QN_CTL_ROLES,
      .u.roles = {UINT32_MAX, UINT64_MAX, 63, 62, true, UINT64_MAX}}},
    {TO_REPLICA, 0, {QN_CTL_LEAD, .u.lead = {0}}},
    {TO_REPLICA, 0, {QN_CTL_LEAD, .u.lead = {63}}},
    {TO_SUPERVISOR, 0, {QN_CTL_RECOVER, .u.recover = {0, 0, 0, 0}}},
    {TO_SUPERVISOR,
     0,
     {QN_CTL_RECOVER,
      .u.recover = {63, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 2}}},
    {TO_REPLICA, 0, {QN_CTL_RECOVER_QUERY, .u.recover_query = {0, 0, 0}}},
    {TO_REPLICA,
     0,
     {QN_CTL_RECOVER_QUERY,
      .u.recover_query = {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 2}}},
    {TO_SUPERVISOR, 0, {QN_CTL_RECOVERABLE, .u.recoverable = {0, 0, 0}}},
    {TO_SUPERVISOR,
     0,
     {QN_CTL_RECOVERABLE,
      .u.recoverable = {UINT64_MAX, UINT32_MAX, UINT64_MAX - 1}}},
    BARE(QN_CTL_RECOVER_ORDER, TO_REPLICA, 0),
    {TO_SUPERVISOR, 0, {QN_CTL_RECOVERED, .u.recovered = {QN_OK, 0}}},
    {TO_SUPERVISOR,
     0,
     {QN_CTL_RECOVERED, .u.recovered = {INT32_MIN, UINT64_MAX}}},
    {TO_REPLICA, 0, {QN_CTL_RECOVER_REFUSED, .u.recover_refused = {0, 0, 0}}},
    {TO_REPLICA,
     0,
     {QN_CTL_RECOVER_REFUSED,
      .u.recover_refused = {63, UINT64_MAX, UINT32_MAX}}},
    {TO_SUPERVISOR, 0, {QN_CTL_MEMBER_LIST, .u.member_list = {0}}},
    {TO_SUPERVISOR, 0, {QN_CTL_MEMBER_LIST, .u.member_list = {UINT64_MAX}}},
    {TO_SUPERVISOR, 0, {QN_CTL_MEMBER_ADD, .u.member_add = {false, 0, 0}}},
    {TO_SUPERVISOR,
     0,
     {QN_CTL_MEMBER_ADD, .u.member_add = {true, UINT64_MAX, UINT64_MAX}}},
    {TO_SUPERVISOR,
     0,
     {QN_CTL_MEMBER_REMOVE, .u.member_remove = {0, false, 0}}},
    {TO_SUPERVISOR,
     0,
     {QN_CTL_MEMBER_REMOVE, .u.member_remove = {63, true, UINT64_MAX}}},
    {TO_REPLICA,
     0,
     {QN_CTL_MEMBER_SEAT,
      .u.member_seat = {0, QN_SEAT_STARTING, false, 0, 0, 0}}},
    {TO_REPLICA,
     0,
     {QN_CTL_MEMBER_SEAT, .u.member_seat = {63, QN_SEAT_ENDED, true, UINT64_MAX,
                                            UINT64_MAX - 1, INT32_MAX}}},
    {TO_REPLICA,
     0,
     {QN_CTL_MEMBER_ANSWER, .u.member_answer = {0, 0, 0, 0, 0, 0}}},
    {TO_REPLICA,
     0,
     {QN_CTL_MEMBER_ANSWER, .u.member_answer = {63, 62, UINT32_MAX, UINT32_MAX,
                                                UINT64_MAX, INT32_MIN}}},
    {TO_SUPERVISOR, 0, {QN_CTL_PEER_MET, .u.peer_met = {0, 1, 0}}},
    {TO_SUPERVISOR,
     0,
     {QN_CTL_PEER_MET, .u.peer_met = {63, UINT64_MAX, INT32_MIN}}},
    {TO_REPLICA,
     0,
     {QN_CTL_VOTER_CHANGE, .u.voter_change = {0, false, false, 0, 1}}},
    {TO_REPLICA,
     0,
     {QN_CTL_VOTER_CHANGE,
      .u.voter_change = {63, true, true, UINT32_MAX, UINT64_MAX}}},
    {TO_SUPERVISOR,
     0,
     {QN_CTL_VOTER_CHANGED, .u.voter_changed = {QN_VOTER_OK, 0, 0, 0, 0}}},
    {TO_SUPERVISOR,
     0,
     {QN_CTL_VOTER_CHANGED,
      .u.voter_changed = {QN_VOTER_UNKNOWN, UINT32_MAX, UINT32_MAX - 1,
                          UINT64_MAX, INT32_MIN}}},
    {TO_SUPERVISOR | TO_HEIR, 0, {QN_CTL_VOTERS, .u.voters = {0, 0}}},
    {TO_SUPERVISOR | TO_HEIR,
     0,
     {QN_CTL_VOTERS, .u.voters = {UINT32_MAX, UINT64_MAX}}},
};

static bool has(unsigned mask, unsigned direction)
{
    return (mask & (1U << direction)) != 0;
}

static int decode(const uint8_t *bytes, unsigned direction, bool with_fd,
                  uint32_t nodes, struct qn_control_msg *m)
{
    const struct qn_control_link link = {
        .direction = (enum qn_control_direction)direction, .nodes = nodes};
    return qn_control_decode(bytes, QN_CONTROL_BYTES, with_fd, &link, m);
}

Test(control_protocol, each_kind_comes_out_as_it_went_in)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(samples); i++) {
        const struct sample *s = &samples[i];
        uint8_t bytes[QN_CONTROL_BYTES];
        qn_control_encode(&s->m, bytes);
        for (unsigned d = 0; d < QN_CTL_DIRECTIONS; d++) {
            struct qn_control_msg m;
            if (has(s->ways, d)) {
                cr_expect_eq(decode(bytes, d, has(s->with_fd, d), 64, &m),
                             QN_OK, "row %zu, direction %u", i, d);
                cr_expect_eq(memcmp(&m, &s->m, sizeof m), 0, "row %zu", i);
            }
        }
    }
}

Test(control_protocol, each_kind_is_sampled_and_has_a_name_of_its_own)
{
    uint32_t kinds = 0;
    for (uint32_t k = 0; k < QN_CTL_KINDS; k++) {
        bool sampled = false;
        for (size_t i = 0; i < QN_ARRAY_COUNT(samples); i++) {
            sampled = sampled || (uint32_t)samples[i].m.kind == k;
        }
        cr_expect_eq(strcmp(qn_control_name(k), "?") != 0, sampled, "%u", k);
        for (uint32_t o = 0; sampled && o < k; o++) {
            cr_expect_neq(strcmp(qn_control_name(k), qn_control_name(o)), 0,
                          "%u", k);
        }
        kinds += sampled;
    }
    cr_assert_eq(kinds, 35);
}

Test(control_protocol, a_message_in_the_wrong_direction_is_refused)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(samples); i++) {
        const struct sample *s = &samples[i];
        uint8_t bytes[QN_CONTROL_BYTES];
        qn_control_encode(&s->m, bytes);
        for (unsigned d = 0; d < QN_CTL_DIRECTIONS; d++) {
            struct qn_control_msg m;
            if (!has(s->ways, d)) {
                cr_expect_eq(decode(bytes, d, false, 64, &m), QN_ECORRUPT);
                cr_expect_eq(m.kind, QN_CTL_INVALID);
                cr_expect_eq(m.u.invalid.type, (uint32_t)s->m.kind);
                cr_expect_str_eq(m.u.invalid.fault, QN_CTL_FAULT_DIRECTION);
            }
        }
    }
}

Test(control_protocol, a_missing_or_unexpected_descriptor_is_refused)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(samples); i++) {
        const struct sample *s = &samples[i];
        uint8_t bytes[QN_CONTROL_BYTES];
        qn_control_encode(&s->m, bytes);
        for (unsigned d = 0; d < QN_CTL_DIRECTIONS; d++) {
            struct qn_control_msg m;
            bool with_fd = has(s->with_fd, d);
            if (has(s->ways, d)) {
                cr_expect_eq(decode(bytes, d, !with_fd, 64, &m), QN_ECORRUPT);
                cr_expect_str_eq(m.u.invalid.fault,
                                 with_fd ? QN_CTL_FAULT_NO_DESCRIPTOR
                                         : QN_CTL_FAULT_DESCRIPTOR,
                                 "row %zu, direction %u", i, d);
            }
        }
    }
}

Test(control_protocol, senders_know_whether_a_descriptor_comes_along)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(samples); i++) {
        const struct sample *s = &samples[i];
        cr_expect_eq(qn_control_may_send(s->m.kind, true), s->with_fd != 0,
                     "row %zu", i);
        cr_expect_eq(qn_control_may_send(s->m.kind, false),
                     (s->ways & ~s->with_fd) != 0, "row %zu", i);
    }
    cr_assert(!qn_control_may_send(QN_CTL_INVALID, false));
    cr_assert(!qn_control_may_send(QN_CTL_KINDS, false));
}

/* ---- checks of values ----------------------------------------------------
 * Each test changes bytes of a valid message in a group of three, and expects
 * the name of the field. */

static const struct sample *valid(enum qn_control_kind kind)
{
    static const struct sample rows[] = {
        {TO_SUPERVISOR, TO_SUPERVISOR, {QN_CTL_HELLO, .u.hello = {2, 7}}},
        {TO_SUPERVISOR, 0, {QN_CTL_DRAINED, .u.drained = {true, 7}}},
        {TO_HEIR, 0, {QN_CTL_FAILED, .u.failed = {QN_EBUSY}}},
        {TO_REPLICA, TO_REPLICA, {QN_CTL_PEER_UP, .u.peer_up = {2, 7, 9}}},
        {TO_REPLICA, 0, {QN_CTL_PEER_DOWN, .u.peer_down = {2, 7}}},
        {TO_SUPERVISOR,
         TO_SUPERVISOR,
         {QN_CTL_LISTEN, .u.listen = {2, QN_LISTEN_PASS_FROM}}},
        {TO_SUPERVISOR, TO_SUPERVISOR, {QN_CTL_DOORBELL, .u.doorbell = {2}}},
        {TO_HEIR, 0, {QN_CTL_FORMAT, .u.format = {1, 3}}},
        {TO_SUPERVISOR, 0, {QN_CTL_ROLES, .u.roles = {1, 2, 2, 1, true, 7}}},
        {TO_REPLICA, 0, {QN_CTL_LEAD, .u.lead = {2}}},
        {TO_SUPERVISOR, 0, {QN_CTL_RECOVER, .u.recover = {2, 1, 65, 9}}},
        {TO_SUPERVISOR, 0, {QN_CTL_RECOVERED, .u.recovered = {QN_EIO, 9}}},
        {TO_REPLICA,
         0,
         {QN_CTL_RECOVER_REFUSED, .u.recover_refused = {2, 65, 1}}},
        {TO_SUPERVISOR, 0, {QN_CTL_MEMBER_ADD, .u.member_add = {true, 65, 9}}},
        {TO_SUPERVISOR,
         0,
         {QN_CTL_MEMBER_REMOVE, .u.member_remove = {2, true, 65}}},
        {TO_REPLICA,
         0,
         {QN_CTL_MEMBER_SEAT,
          .u.member_seat = {2, QN_SEAT_SERVING, true, 65, 7, 9}}},
        {TO_REPLICA,
         0,
         {QN_CTL_MEMBER_ANSWER, .u.member_answer = {2, 1, 1, 0, 65, QN_EIO}}},
        {TO_SUPERVISOR, 0, {QN_CTL_PEER_MET, .u.peer_met = {2, 7, QN_EIO}}},
        {TO_REPLICA,
         0,
         {QN_CTL_VOTER_CHANGE, .u.voter_change = {2, true, true, 1, 7}}},
        {TO_SUPERVISOR,
         0,
         {QN_CTL_VOTER_CHANGED,
          .u.voter_changed = {QN_VOTER_REFUSED, 1, 2, 7, QN_EIO}}},
        {TO_SUPERVISOR, 0, {QN_CTL_VOTERS, .u.voters = {1, 7}}},
        {TO_REPLICA, 0, {QN_CTL_STOP, .u = {{0}}}},
    };
    for (size_t i = 0; i < QN_ARRAY_COUNT(rows); i++) {
        if (rows[i].m.kind == kind) {
            return &rows[i];
        }
    }
    cr_assert_fail("no row of kind %u", kind);
    return NULL;
}

/* Decode a message of this kind whose bytes from `at` are those of `value`. */
static int changed(enum qn_control_kind kind, size_t at, const void *value,
                   size_t len, struct qn_control_msg *m)
{
    const struct sample *s = valid(kind);
    uint8_t bytes[QN_CONTROL_BYTES];
    unsigned d = 0;
    while (!has(s->ways, d)) {
        d++;
    }
    qn_control_encode(&s->m, bytes);
    cr_assert_eq(decode(bytes, d, s->with_fd != 0, 3, m), QN_OK);
    memcpy(bytes + at, value, len);
    return decode(bytes, d, s->with_fd != 0, 3, m);
}

static void expect_fault(enum qn_control_kind kind, size_t at,
                         const void *value, size_t len, const char *fault)
{
    struct qn_control_msg m;
    cr_expect_eq(changed(kind, at, value, len, &m), QN_ECORRUPT, "%s.%s",
                 qn_control_name(kind), fault);
    cr_expect_eq(m.kind, QN_CTL_INVALID);
    cr_expect_str_eq(m.u.invalid.fault, fault, "%s: %s instead of %s",
                     qn_control_name(kind), m.u.invalid.fault, fault);
}

Test(control_protocol, an_unknown_type_is_refused)
{
    static const uint8_t types[][4] = {{0},   {5},     {QN_CTL_KINDS},
                                       {255}, {12, 1}, {12, 0, 0, 1}};
    for (size_t i = 0; i < QN_ARRAY_COUNT(types); i++) {
        expect_fault(QN_CTL_STOP, 0, types[i], 4, QN_CTL_FAULT_TYPE);
    }
}

Test(control_protocol, a_message_of_another_length_is_refused)
{
    static const size_t lengths[] = {0, 3, 4, QN_CONTROL_BYTES - 1,
                                     QN_CONTROL_BYTES + 1};
    const struct qn_control_link link = {QN_CTL_TO_REPLICA, 3};
    uint8_t bytes[QN_CONTROL_BYTES + 1] = {QN_CTL_STOP};
    for (size_t i = 0; i < QN_ARRAY_COUNT(lengths); i++) {
        struct qn_control_msg m;
        cr_expect_eq(qn_control_decode(bytes, lengths[i], false, &link, &m),
                     QN_ECORRUPT);
        cr_expect_str_eq(m.u.invalid.fault, QN_CTL_FAULT_LENGTH);
        cr_expect_eq(m.u.invalid.type, 0);
    }
}

/* Kinds whose node is the u32 behind the type. */
Test(control_protocol, a_node_out_of_range_is_refused)
{
    static const enum qn_control_kind kinds[] = {
        QN_CTL_HELLO,   QN_CTL_PEER_UP,         QN_CTL_PEER_DOWN,
        QN_CTL_LISTEN,  QN_CTL_DOORBELL,        QN_CTL_LEAD,
        QN_CTL_RECOVER, QN_CTL_RECOVER_REFUSED, QN_CTL_MEMBER_REMOVE,
        QN_CTL_PEER_MET};
    static const uint8_t nodes[][4] = {{3}, {64}, {0, 1}, {0, 0, 0, 128}};
    for (size_t i = 0; i < QN_ARRAY_COUNT(kinds); i++) {
        for (size_t k = 0; k < QN_ARRAY_COUNT(nodes); k++) {
            expect_fault(kinds[i], 4, nodes[k], 4, "node");
        }
    }
}

/* ... and those where it is a byte. */
Test(control_protocol, a_seat_out_of_range_is_refused)
{
    expect_fault(QN_CTL_MEMBER_SEAT, 4, "\x03", 1, "node");
    expect_fault(QN_CTL_MEMBER_ANSWER, 4, "\x03", 1, "node");
    expect_fault(QN_CTL_MEMBER_ANSWER, 5, "\x03", 1, "peer");
    expect_fault(QN_CTL_VOTER_CHANGE, 4, "\xff", 1, "node");
}

Test(control_protocol, a_state_or_an_outcome_out_of_range_is_refused)
{
    expect_fault(QN_CTL_MEMBER_SEAT, 5, "\x04", 1, "state");
    expect_fault(QN_CTL_VOTER_CHANGED, 4, "\x03", 1, "outcome");
}

Test(control_protocol, a_leader_out_of_range_is_refused)
{
    expect_fault(QN_CTL_ROLES, 16, "\x03", 1, "leader");
    expect_fault(QN_CTL_ROLES, 16, "\xff", 1, "leader");
}

Test(control_protocol, an_acceptor_out_of_range_is_refused)
{
    expect_fault(QN_CTL_ROLES, 17, "\x03", 1, "acceptor");
    expect_fault(QN_CTL_ROLES, 17, "\xff", 1, "acceptor");
}

Test(control_protocol, a_mask_with_a_bit_outside_of_the_group_is_refused)
{
    expect_fault(QN_CTL_ROLES, 24, "\x08", 1, "in_sync");
    expect_fault(QN_CTL_ROLES, 31, "\x80", 1, "in_sync");
    expect_fault(QN_CTL_VOTERS, 8, "\x08", 1, "voters");
    expect_fault(QN_CTL_VOTER_CHANGED, 23, "\x80", 1, "voters");
}

Test(control_protocol, incarnation_0_of_a_living_node_is_refused)
{
    static const uint8_t zero[8];
    struct qn_control_msg m;
    expect_fault(QN_CTL_HELLO, 8, zero, 8, "incarnation");
    expect_fault(QN_CTL_PEER_UP, 8, zero, 8, "incarnation");
    expect_fault(QN_CTL_PEER_MET, 8, zero, 8, "incarnation");
    expect_fault(QN_CTL_VOTER_CHANGE, 16, zero, 8, "incarnation");
    cr_assert_eq(changed(QN_CTL_PEER_DOWN, 8, zero, 8, &m), QN_OK, "any");
}

Test(control_protocol, a_process_id_below_0_is_refused)
{
    expect_fault(QN_CTL_PEER_UP, 19, "\x80", 1, "pid");
    expect_fault(QN_CTL_MEMBER_SEAT, 11, "\x80", 1, "pid");
}

Test(control_protocol, a_flag_is_0_or_1)
{
    expect_fault(QN_CTL_DRAINED, 4, "\x02", 1, "group_stopped");
    expect_fault(QN_CTL_ROLES, 18, "\x02", 1, "active");
    expect_fault(QN_CTL_MEMBER_ADD, 8, "\x02", 1, "forced");
    expect_fault(QN_CTL_MEMBER_REMOVE, 8, "\x02", 1, "forced");
    expect_fault(QN_CTL_MEMBER_SEAT, 6, "\x02", 1, "votes");
    expect_fault(QN_CTL_VOTER_CHANGE, 5, "\x02", 1, "votes");
    expect_fault(QN_CTL_VOTER_CHANGE, 6, "\x02", 1, "forced");
}

Test(control_protocol, an_unknown_kind_of_listener_is_refused)
{
    expect_fault(QN_CTL_LISTEN, 8, "\x03", 1, "kind");
}

Test(control_protocol, a_format_beyond_all_that_can_be_counted_is_refused)
{
    expect_fault(QN_CTL_FORMAT, 4, "\x40", 1, "format");
    expect_fault(QN_CTL_FORMAT, 7, "\x01", 1, "format");
}

Test(control_protocol, a_failure_has_an_error)
{
    static const uint8_t below[8] = {255, 255, 255, 127, 255, 255, 255, 255};
    static const uint8_t zero[8];
    static const uint8_t one[8] = {1};
    expect_fault(QN_CTL_FAILED, 16, zero, 8, "error");
    expect_fault(QN_CTL_FAILED, 16, one, 8, "error");
    expect_fault(QN_CTL_FAILED, 16, below, 8, "error");
}

Test(control_protocol, a_result_is_ok_or_an_error)
{
    static const uint8_t below[8] = {255, 255, 255, 127, 255, 255, 255, 255};
    static const uint8_t zero[8];
    static const uint8_t one[8] = {1};
    struct qn_control_msg m;
    cr_assert_eq(changed(QN_CTL_RECOVERED, 16, zero, 8, &m), QN_OK);
    expect_fault(QN_CTL_RECOVERED, 16, one, 8, "error");
    expect_fault(QN_CTL_RECOVERED, 16, below, 8, "error");
    expect_fault(QN_CTL_PEER_MET, 16, one, 8, "error");
    expect_fault(QN_CTL_MEMBER_ANSWER, 24, one, 8, "error");
    expect_fault(QN_CTL_VOTER_CHANGED, 24, below, 8, "error");
}

Test(control_protocol, a_byte_that_belongs_to_no_field_is_0)
{
    for (size_t at = 4; at < QN_CONTROL_BYTES; at++) {
        expect_fault(QN_CTL_STOP, at, "\x01", 1, QN_CTL_FAULT_RESERVED);
    }
    expect_fault(QN_CTL_ROLES, 19, "\x01", 1, QN_CTL_FAULT_RESERVED);
    expect_fault(QN_CTL_PEER_UP, 20, "\x01", 1, QN_CTL_FAULT_RESERVED);
    expect_fault(QN_CTL_FORMAT, 28, "\x01", 1, QN_CTL_FAULT_RESERVED);
}

/* ---- damage -------------------------------------------------------------- */

/* What a receiver relies on, written a second time without the table. */
static bool is_safe(const struct qn_control_msg *m, uint32_t nodes)
{
    uint64_t group = nodes == 64 ? UINT64_MAX : (UINT64_C(1) << nodes) - 1;
    switch (m->kind) {
    case QN_CTL_HELLO:
        return m->u.hello.node < nodes && m->u.hello.incarnation != 0;
    case QN_CTL_PEER_UP:
        return m->u.peer_up.node < nodes && m->u.peer_up.incarnation != 0 &&
               m->u.peer_up.pid <= INT32_MAX;
    case QN_CTL_PEER_DOWN:
        return m->u.peer_down.node < nodes;
    case QN_CTL_LISTEN:
        return m->u.listen.node < nodes &&
               (uint32_t)m->u.listen.kind <= QN_LISTEN_PASS_TO;
    case QN_CTL_DOORBELL:
        return m->u.doorbell.node < nodes;
    case QN_CTL_FORMAT:
        return m->u.format.format < QN_CTL_FORMATS_MAX;
    case QN_CTL_ROLES:
        return m->u.roles.leader < nodes && m->u.roles.acceptor < nodes &&
               (m->u.roles.in_sync & ~group) == 0;
    case QN_CTL_LEAD:
        return m->u.lead.node < nodes;
    case QN_CTL_RECOVER:
        return m->u.recover.node < nodes;
    case QN_CTL_RECOVER_REFUSED:
        return m->u.recover_refused.node < nodes;
    case QN_CTL_FAILED:
        return m->u.failed.error < 0 && m->u.failed.error >= INT32_MIN;
    case QN_CTL_RECOVERED:
        return m->u.recovered.error <= 0 && m->u.recovered.error >= INT32_MIN;
    case QN_CTL_MEMBER_REMOVE:
        return m->u.member_remove.node < nodes;
    case QN_CTL_MEMBER_SEAT:
        return m->u.member_seat.node < nodes &&
               (uint32_t)m->u.member_seat.state <= QN_SEAT_ENDED;
    case QN_CTL_MEMBER_ANSWER:
        return m->u.member_answer.node < nodes &&
               m->u.member_answer.peer < nodes && m->u.member_answer.error <= 0;
    case QN_CTL_PEER_MET:
        return m->u.peer_met.node < nodes && m->u.peer_met.incarnation != 0 &&
               m->u.peer_met.error <= 0;
    case QN_CTL_VOTER_CHANGE:
        return m->u.voter_change.node < nodes &&
               m->u.voter_change.incarnation != 0;
    case QN_CTL_VOTER_CHANGED:
        return (m->u.voter_changed.voters & ~group) == 0 &&
               (uint32_t)m->u.voter_changed.outcome <= QN_VOTER_UNKNOWN;
    case QN_CTL_VOTERS:
        return (m->u.voters.voters & ~group) == 0;
    default:
        return qn_control_name((uint32_t)m->kind)[0] != '?';
    }
}

/* Either refused with a reason, or a message that encodes to just these bytes.
 * @return it was accepted. */
static bool accepted(const uint8_t *bytes, unsigned d, bool with_fd,
                     uint32_t nodes)
{
    uint8_t again[QN_CONTROL_BYTES];
    struct qn_control_msg m;
    int err = decode(bytes, d, with_fd, nodes, &m);
    if (err != QN_OK) {
        cr_assert_eq(err, QN_ECORRUPT);
        cr_assert_eq(m.kind, QN_CTL_INVALID);
        cr_assert(m.u.invalid.fault != NULL);
        return false;
    }
    cr_assert(is_safe(&m, nodes), "%s", qn_control_name((uint32_t)m.kind));
    qn_control_encode(&m, again);
    cr_assert_eq(memcmp(bytes, again, sizeof again), 0);
    return true;
}

/* Every byte of every sample takes every value, as every receiver sees it. */
Test(control_protocol, no_damaged_byte_yields_a_field_out_of_range)
{
    uint32_t count[2] = {0, 0};
    for (size_t i = 0; i < QN_ARRAY_COUNT(samples); i++) {
        uint8_t bytes[QN_CONTROL_BYTES];
        qn_control_encode(&samples[i].m, bytes);
        for (size_t at = 0; at < QN_CONTROL_BYTES; at++) {
            uint8_t old = bytes[at];
            for (unsigned v = 0; v < 256 * 2 * QN_CTL_DIRECTIONS; v++) {
                bytes[at] = (uint8_t)v;
                bool with_fd = (v / 256) % 2 != 0;
                uint32_t nodes = i % 2 == 0 ? 3 : 64;
                count[accepted(bytes, v / 512, with_fd, nodes)]++;
            }
            bytes[at] = old;
        }
    }
    cr_assert_gt(count[0], 10000);
    cr_assert_gt(count[1], 10000);
}

/* ---- what other builds rely on ------------------------------------------- */

/* Builds of versions 3 to 5 wrote the same. */
Test(control_protocol, bytes_of_adopt_never_change)
{
    static const uint8_t expected[QN_CONTROL_BYTES] = {
        13, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 1,
        3,  0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0};
    const struct qn_control_msg m = {
        .kind = QN_CTL_ADOPT,
        .u.adopt = {.node = 2,
                    .incarnation = (UINT64_C(1) << 56) + 7,
                    .oldest = 3,
                    .newest = 5}};
    uint8_t bytes[QN_CONTROL_BYTES];
    qn_control_encode(&m, bytes);
    cr_assert_eq(memcmp(bytes, expected, sizeof bytes), 0);
}

Test(control_protocol, bytes_of_failed_never_change)
{
    static const uint8_t expected[QN_CONTROL_BYTES] = {
        6,    0,    0,    0,    0,    0,    0,    0, /* QN_EBUSY at 16 */
        0,    0,    0,    0,    0,    0,    0,    0, /* */
        0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    const struct qn_control_msg m = {.kind = QN_CTL_FAILED,
                                     .u.failed.error = QN_EBUSY};
    uint8_t bytes[QN_CONTROL_BYTES];
    qn_control_encode(&m, bytes);
    cr_assert_eq(memcmp(bytes, expected, sizeof bytes), 0);
}

/* ---- lines of the log ---------------------------------------------------- */

Test(control_protocol, what_is_wrong_is_a_line)
{
    char text[QN_CONTROL_FAULT_MAX];
    struct qn_control_msg m = {.kind = QN_CTL_INVALID,
                               .u.invalid = {77, QN_CTL_FAULT_TYPE}};
    cr_assert_str_eq(qn_control_fault_text(&m, text),
                     "unknown control message type 77");
    m.u.invalid = (struct qn_ctl_invalid){QN_CTL_PEER_UP, "incarnation"};
    cr_assert_str_eq(qn_control_fault_text(&m, text),
                     "invalid control message PEER_UP (type 7): incarnation");
}

/* ---- what senders may not do --------------------------------------------- */

Test(control_protocol, a_field_out_of_range_is_never_sent, .signal = SIGABRT)
{
    const struct qn_control_msg m = {.kind = QN_CTL_LEAD,
                                     .u.lead.node = QN_NODES_MAX};
    uint8_t bytes[QN_CONTROL_BYTES];
    qn_control_encode(&m, bytes);
}

Test(control_protocol, an_unknown_kind_is_never_sent, .signal = SIGABRT)
{
    const struct qn_control_msg m = {.kind = QN_CTL_INVALID};
    uint8_t bytes[QN_CONTROL_BYTES];
    qn_control_encode(&m, bytes);
}
