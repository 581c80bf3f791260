/*
 * The codec of control messages: see control_protocol.h.
 *
 * One table has a row per kind: its name, the directions in which it travels,
 * the directions in which it has a descriptor, and its fields. A field is a
 * member of struct qn_control_msg, its place and width on the wire, and its
 * valid values. Encoding, decoding and checking walk the same rows, so they
 * cannot disagree, and a new kind is a row.
 *
 * Bytes that no field covers must be 0. To check that, the decoded message is
 * encoded again, and the result must equal the received bytes. This also shows
 * that the table reads what it writes.
 *
 * The process at the other end may have overwritten its own memory, or be of
 * another build. Received messages are therefore never asserted; sent messages
 * are.
 */
#include "kvs/control/control_protocol.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/little_endian.h"
#include "core/base/member.h"

#define TYPE_BYTES 4u
#define FIELDS_MAX 6u

#define TO_REPLICA    (1u << QN_CTL_TO_REPLICA)
#define TO_SUPERVISOR (1u << QN_CTL_TO_SUPERVISOR)
#define TO_HEIR       (1u << QN_CTL_TO_HEIR)
#define FROM_HEIR     (1u << QN_CTL_FROM_HEIR)

enum check {
    UP_TO,    /* 0 to most */
    NOT_ZERO, /* 1 to most */
    NODE,     /* below the number of nodes */
    MASK,     /* only bits of existing nodes */
    FAILURE,  /* QN_E* */
    RESULT,   /* QN_OK or QN_E* */
};

struct field {
    const char *name;
    uint8_t member;       /* offset in struct qn_control_msg */
    uint8_t member_bytes; /* 1, 4 or 8; 0: end of the list */
    uint8_t at;           /* offset on the wire */
    uint8_t bytes;        /* there */
    uint8_t check;        /* enum check */
    uint64_t most;        /* UP_TO, NOT_ZERO */
};

struct format {
    const char *name;
    uint8_t travels; /* mask of 1 << enum qn_control_direction; 0: no kind */
    uint8_t with_fd; /* mask: directions with a descriptor; part of `travels` */
    struct field fields[FIELDS_MAX + 1];
};

#define F(of, field, at, bytes, ...)                                           \
    {                                                                          \
        (#field), offsetof(struct qn_control_msg, u.of.field),                 \
            sizeof(((struct qn_control_msg *)0)->u.of.field), at, bytes,       \
            __VA_ARGS__                                                        \
    }
#define ANY UP_TO, UINT64_MAX

static const struct format formats[QN_CTL_KINDS] = {
    [QN_CTL_HELLO] = {"HELLO",
                      TO_SUPERVISOR,
                      TO_SUPERVISOR,
                      {F(hello, node, 4, 4, NODE, 0),
                       F(hello, incarnation, 8, 8, NOT_ZERO, UINT64_MAX)}},
    [QN_CTL_READY] = {"READY", TO_REPLICA | TO_SUPERVISOR, 0, {{0}}},
    [QN_CTL_DRAINING] = {"DRAINING",
                         TO_SUPERVISOR,
                         0,
                         {F(draining, timeout_s, 4, 4, ANY)}},
    [QN_CTL_DRAINED] = {"DRAINED",
                        TO_SUPERVISOR,
                        0,
                        {F(drained, group_stopped, 4, 1, UP_TO, 1),
                         F(drained, unsent_replies, 8, 8, ANY)}},
    [QN_CTL_FAILED] = {"FAILED",
                       TO_SUPERVISOR | TO_HEIR,
                       0,
                       {F(failed, error, 16, 8, FAILURE, 0)}},
    [QN_CTL_PEER_UP] = {"PEER_UP",
                        TO_REPLICA | TO_SUPERVISOR,
                        TO_REPLICA | TO_SUPERVISOR,
                        {F(peer_up, node, 4, 4, NODE, 0),
                         F(peer_up, incarnation, 8, 8, NOT_ZERO, UINT64_MAX),
                         F(peer_up, pid, 16, 4, UP_TO, INT32_MAX)}},
    [QN_CTL_PEER_DOWN] = {"PEER_DOWN",
                          TO_REPLICA | TO_SUPERVISOR,
                          0,
                          {F(peer_down, node, 4, 4, NODE, 0),
                           F(peer_down, incarnation, 8, 8, ANY)}},
    [QN_CTL_START] = {"START",
                      TO_REPLICA | TO_SUPERVISOR | TO_HEIR | FROM_HEIR,
                      0,
                      {{0}}},
    [QN_CTL_LISTEN] = {"LISTEN",
                       TO_SUPERVISOR,
                       TO_SUPERVISOR,
                       {F(listen, node, 4, 4, NODE, 0),
                        F(listen, kind, 8, 1, UP_TO, QN_LISTEN_PASS_TO)}},
    [QN_CTL_DRAIN] = {"DRAIN", TO_REPLICA, 0, {{0}}},
    [QN_CTL_STOP] = {"STOP", TO_REPLICA, 0, {{0}}},
    [QN_CTL_ADOPT] = {"ADOPT",
                      TO_REPLICA | TO_SUPERVISOR | TO_HEIR | FROM_HEIR,
                      TO_SUPERVISOR,
                      {F(adopt, node, 4, 4, ANY),
                       F(adopt, incarnation, 8, 8, ANY),
                       F(adopt, oldest, 16, 8, ANY),
                       F(adopt, newest, 24, 8, ANY)}},
    [QN_CTL_CONFIG] = {"CONFIG",
                       TO_SUPERVISOR | TO_HEIR,
                       TO_SUPERVISOR | TO_HEIR,
                       {{0}}},
    [QN_CTL_LOCK] = {"LOCK", TO_SUPERVISOR, TO_SUPERVISOR, {{0}}},
    [QN_CTL_RECORD] = {"RECORD", TO_SUPERVISOR, TO_SUPERVISOR, {{0}}},
    [QN_CTL_DOORBELL] = {"DOORBELL",
                         TO_SUPERVISOR,
                         TO_SUPERVISOR,
                         {F(doorbell, node, 4, 4, NODE, 0)}},
    [QN_CTL_FORMAT] = {"FORMAT",
                       TO_SUPERVISOR | TO_HEIR,
                       0,
                       {F(format, format, 4, 4, UP_TO, QN_CTL_FORMATS_MAX - 1),
                        F(format, version, 24, 4, ANY)}},
    [QN_CTL_ROLES_QUERY] = {"ROLES_QUERY",
                            TO_REPLICA,
                            0,
                            {F(roles_query, token, 4, 4, ANY)}},
    [QN_CTL_ROLES] = {"ROLES",
                      TO_SUPERVISOR,
                      0,
                      {F(roles, token, 4, 4, ANY), F(roles, epoch, 8, 8, ANY),
                       F(roles, leader, 16, 1, NODE, 0),
                       F(roles, acceptor, 17, 1, NODE, 0),
                       F(roles, active, 18, 1, UP_TO, 1),
                       F(roles, in_sync, 24, 8, MASK, 0)}},
    [QN_CTL_LEAD] = {"LEAD", TO_REPLICA, 0, {F(lead, node, 4, 4, NODE, 0)}},
    [QN_CTL_RECOVER] = {"RECOVER",
                        TO_SUPERVISOR,
                        0,
                        {F(recover, node, 4, 4, NODE, 0),
                         F(recover, epoch, 8, 8, ANY),
                         F(recover, client, 16, 8, ANY),
                         F(recover, position, 24, 8, ANY)}},
    [QN_CTL_RECOVER_QUERY] = {"RECOVER_QUERY",
                              TO_REPLICA,
                              0,
                              {F(recover_query, epoch, 8, 8, ANY),
                               F(recover_query, question, 16, 8, ANY),
                               F(recover_query, position, 24, 8, ANY)}},
    [QN_CTL_RECOVERABLE] = {"RECOVERABLE",
                            TO_SUPERVISOR,
                            0,
                            {F(recoverable, refusal, 4, 4, ANY),
                             F(recoverable, question, 8, 8, ANY),
                             F(recoverable, position, 24, 8, ANY)}},
    [QN_CTL_RECOVER_ORDER] = {"RECOVER_ORDER", TO_REPLICA, 0, {{0}}},
    [QN_CTL_RECOVERED] = {"RECOVERED",
                          TO_SUPERVISOR,
                          0,
                          {F(recovered, error, 16, 8, RESULT, 0),
                           F(recovered, position, 24, 8, ANY)}},
    [QN_CTL_RECOVER_REFUSED] = {"RECOVER_REFUSED",
                                TO_REPLICA,
                                0,
                                {F(recover_refused, node, 4, 4, NODE, 0),
                                 F(recover_refused, client, 8, 8, ANY),
                                 F(recover_refused, refusal, 16, 4, ANY)}},
    [QN_CTL_MEMBER_LIST] = {"MEMBER_LIST",
                            TO_SUPERVISOR,
                            0,
                            {F(member_list, client, 16, 8, ANY)}},
    [QN_CTL_MEMBER_ADD] = {"MEMBER_ADD",
                           TO_SUPERVISOR,
                           0,
                           {F(member_add, forced, 8, 1, UP_TO, 1),
                            F(member_add, client, 16, 8, ANY),
                            F(member_add, maxmemory, 24, 8, ANY)}},
    [QN_CTL_MEMBER_REMOVE] = {"MEMBER_REMOVE",
                              TO_SUPERVISOR,
                              0,
                              {F(member_remove, node, 4, 4, NODE, 0),
                               F(member_remove, forced, 8, 1, UP_TO, 1),
                               F(member_remove, client, 16, 8, ANY)}},
    [QN_CTL_MEMBER_SEAT] = {"MEMBER_SEAT",
                            TO_REPLICA,
                            0,
                            {F(member_seat, node, 4, 1, NODE, 0),
                             F(member_seat, state, 5, 1, UP_TO, QN_SEAT_ENDED),
                             F(member_seat, votes, 6, 1, UP_TO, 1),
                             F(member_seat, pid, 8, 4, UP_TO, INT32_MAX),
                             F(member_seat, client, 16, 8, ANY),
                             F(member_seat, incarnation, 24, 8, ANY)}},
    [QN_CTL_MEMBER_ANSWER] = {"MEMBER_ANSWER",
                              TO_REPLICA,
                              0,
                              {F(member_answer, node, 4, 1, NODE, 0),
                               F(member_answer, peer, 5, 1, NODE, 0),
                               F(member_answer, why, 8, 4, ANY),
                               F(member_answer, fits, 12, 4, ANY),
                               F(member_answer, client, 16, 8, ANY),
                               F(member_answer, error, 24, 8, RESULT, 0)}},
    [QN_CTL_PEER_MET] = {"PEER_MET",
                         TO_SUPERVISOR,
                         0,
                         {F(peer_met, node, 4, 4, NODE, 0),
                          F(peer_met, incarnation, 8, 8, NOT_ZERO, UINT64_MAX),
                          F(peer_met, error, 16, 8, RESULT, 0)}},
    [QN_CTL_VOTER_CHANGE] = {"VOTER_CHANGE",
                             TO_REPLICA,
                             0,
                             {F(voter_change, node, 4, 1, NODE, 0),
                              F(voter_change, votes, 5, 1, UP_TO, 1),
                              F(voter_change, forced, 6, 1, UP_TO, 1),
                              F(voter_change, number, 8, 4, ANY),
                              F(voter_change, incarnation, 16, 8, NOT_ZERO,
                                UINT64_MAX)}},
    [QN_CTL_VOTER_CHANGED] = {"VOTER_CHANGED",
                              TO_SUPERVISOR,
                              0,
                              {F(voter_changed, outcome, 4, 1, UP_TO,
                                 QN_VOTER_UNKNOWN),
                               F(voter_changed, number, 8, 4, ANY),
                               F(voter_changed, entries, 12, 4, ANY),
                               F(voter_changed, voters, 16, 8, MASK, 0),
                               F(voter_changed, error, 24, 8, RESULT, 0)}},
    [QN_CTL_VOTERS] = {"VOTERS",
                       TO_SUPERVISOR | TO_HEIR,
                       0,
                       {F(voters, entries, 4, 4, ANY),
                        F(voters, voters, 8, 8, MASK, 0)}},
};

static_assert(sizeof(struct qn_control_msg) <= UINT8_MAX, "offsets fit");
static_assert(QN_NODES_MAX == 64, "a mask of nodes is one u64");
static_assert(QN_NODES_MAX <= UINT8_MAX, "a node fits one byte");

static const struct format *format_of(uint32_t type)
{
    bool known = type < QN_CTL_KINDS && formats[type].travels != 0;
    return known ? &formats[type] : NULL;
}

const char *qn_control_name(uint32_t type)
{
    const struct format *f = format_of(type);
    return f != NULL ? f->name : "?";
}

bool qn_control_may_send(enum qn_control_kind kind, bool with_fd)
{
    const struct format *f = format_of((uint32_t)kind);
    return f != NULL && (with_fd ? f->with_fd != 0 : f->with_fd != f->travels);
}

static uint64_t member(const struct qn_control_msg *m, const struct field *f)
{
    return qn_member_get((const uint8_t *)m + f->member, f->member_bytes);
}

/* -------------------------------------------------------------- checks -- */

static uint64_t mask_of(uint32_t nodes)
{
    return qn_low_bits(nodes);
}

static bool in_range(const struct field *f, uint64_t v, uint32_t nodes)
{
    const int64_t error = (int64_t)v;
    switch ((enum check)f->check) {
    case UP_TO:
        return v <= f->most;
    case NOT_ZERO:
        return v != 0 && v <= f->most;
    case NODE:
        return v < nodes;
    case MASK:
        return (v & ~mask_of(nodes)) == 0;
    case FAILURE:
        return error < QN_OK && error >= INT32_MIN;
    case RESULT:
        return error <= QN_OK && error >= INT32_MIN;
    }
    return false;
}

/* @return what is wrong with a message of `type`; NULL: nothing so far. */
static const char *arrival_fault(uint32_t type, bool with_fd,
                                 enum qn_control_direction direction)
{
    const struct format *f = format_of(type);
    const unsigned way = 1u << direction;
    if (f == NULL) {
        return QN_CTL_FAULT_TYPE;
    }
    if ((f->travels & way) == 0) {
        return QN_CTL_FAULT_DIRECTION;
    }
    if ((f->with_fd & way) != 0 && !with_fd) {
        return QN_CTL_FAULT_NO_DESCRIPTOR;
    }
    return (f->with_fd & way) == 0 && with_fd ? QN_CTL_FAULT_DESCRIPTOR : NULL;
}

/* -------------------------------------------------------------- encode -- */

static void put(const struct qn_control_msg *m, uint8_t *bytes)
{
    const struct format *format = format_of((uint32_t)m->kind);
    QN_ASSERT(format != NULL);
    memset(bytes, 0, QN_CONTROL_BYTES);
    qn_put_le(bytes, (uint64_t)m->kind, TYPE_BYTES);
    for (const struct field *f = format->fields; f->member_bytes != 0; f++) {
        QN_ASSERT(f->at >= TYPE_BYTES);
        QN_ASSERT(f->at + f->bytes <= QN_CONTROL_BYTES);
        qn_put_le(bytes + f->at, member(m, f), f->bytes);
    }
}

void qn_control_encode(const struct qn_control_msg *m, uint8_t *bytes)
{
    const struct format *format = format_of((uint32_t)m->kind);
    QN_ASSERT(format != NULL);
    for (const struct field *f = format->fields; f->member_bytes != 0; f++) {
        QN_ASSERT(in_range(f, member(m, f), QN_NODES_MAX));
    }
    put(m, bytes);
}

/* -------------------------------------------------------------- decode -- */

/* Decode the fields in the order of the table; the first one that is out of
 * range is named. */
static const char *get(const uint8_t *bytes, uint32_t nodes,
                       struct qn_control_msg *m)
{
    uint8_t again[QN_CONTROL_BYTES];
    const struct format *format = format_of((uint32_t)m->kind);
    QN_ASSERT(format != NULL);
    for (const struct field *f = format->fields; f->member_bytes != 0; f++) {
        uint64_t v = qn_get_le(bytes + f->at, f->bytes);
        if (!in_range(f, v, nodes)) {
            return f->name;
        }
        qn_member_set((uint8_t *)m + f->member, f->member_bytes, v);
    }
    put(m, again);
    return memcmp(bytes, again, QN_CONTROL_BYTES) == 0 ? NULL
                                                       : QN_CTL_FAULT_RESERVED;
}

int qn_control_decode(const uint8_t *bytes, size_t len, bool with_fd,
                      const struct qn_control_link *link,
                      struct qn_control_msg *m)
{
    QN_ASSERT(link->direction < QN_CTL_DIRECTIONS);
    QN_ASSERT(link->nodes >= 1 && link->nodes <= QN_NODES_MAX);
    bool whole = len == QN_CONTROL_BYTES;
    uint32_t type = whole ? (uint32_t)qn_get_le(bytes, TYPE_BYTES) : 0;
    const char *fault = whole ? arrival_fault(type, with_fd, link->direction)
                              : QN_CTL_FAULT_LENGTH;
    memset(m, 0, sizeof *m);
    if (fault == NULL) {
        m->kind = (enum qn_control_kind)type;
        fault = get(bytes, link->nodes, m);
    }
    if (fault != NULL) {
        *m = (struct qn_control_msg){
            .kind = QN_CTL_INVALID,
            .u.invalid = {.type = type, .fault = fault}};
        return QN_ECORRUPT;
    }
    return QN_OK;
}

const char *qn_control_fault_text(const struct qn_control_msg *m, char *text)
{
    const struct qn_ctl_invalid *i = &m->u.invalid;
    QN_ASSERT(m->kind == QN_CTL_INVALID);
    if (strcmp(i->fault, QN_CTL_FAULT_TYPE) == 0) {
        snprintf(text, QN_CONTROL_FAULT_MAX, "unknown control message type %u",
                 i->type);
    } else {
        snprintf(text, QN_CONTROL_FAULT_MAX,
                 "invalid control message %s (type %u): %s",
                 qn_control_name(i->type), i->type, i->fault);
    }
    return text;
}
