#ifndef QN_PAXOS_GROUP_DIALOGUE_H
#define QN_PAXOS_GROUP_DIALOGUE_H

/**
 * What a guest and the members of a group say to each other until the guest is
 * a member (README.md), and the bytes of it.
 *
 *     guest                          the member that it has found
 *       HELLO {application, ..}  -->
 *       <--  WELCOME {layout, voters} + descriptors of commons and doorbells
 *            or REFUSE {why}
 *     guest, with a seat             each member
 *       PEER {itself} + outbox   -->   maps it
 *       <--  PEER {..} + outbox        each that the guest may need
 *       <--  DONE {first voters, voters}   or REFUSE
 *     the member that founds         all that have come
 *       BEGIN {incarnations}     -->   of the first voters, when they have come
 *
 * A message has QN_DIALOGUE_BYTES, little-endian: magic, version, kind, fields;
 * what no field covers is 0. The head and REFUSE are the same in all versions,
 * so that each build can refuse another.
 *
 * Received bytes are never asserted: QN_ECORRUPT.
 *
 * Pure, any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/bits.h"
#include "core/node.h"

#define QN_DIALOGUE_VERSION 4u
#define QN_DIALOGUE_BYTES   528u
#define QN_DIALOGUE_TEXT    160u /* of a refusal, with its zero */
#define QN_DIALOGUE_NAME    64u  /* of an application, likewise */

enum qn_dialogue_kind {
    QN_DIALOGUE_REFUSE = 1,
    QN_DIALOGUE_HELLO,
    QN_DIALOGUE_WELCOME,
    QN_DIALOGUE_PEER,
    QN_DIALOGUE_DONE,
    QN_DIALOGUE_BEGIN
};

/** What must be equal in all members. */
struct qn_dialogue_hello {
    char application[QN_DIALOGUE_NAME];
    uint64_t version; /* of the application */
    uint64_t formats; /* of what members share (paxos/member/member_formats.h)
                       */
    char transport[QN_DIALOGUE_NAME];
};

/** What the member that founds has chosen for all. */
struct qn_dialogue_layout {
    uint32_t nodes; /* seats, 1 .. QN_NODES_MAX */
    uint32_t cells; /* of a lane, a power of two from 16 */
    uint64_t log_bytes, command_max;
    bool process_acceptor;
};

/** The voters that a member knows. */
struct qn_dialogue_voters {
    uint64_t mask;    /* none: the group has not begun, as far as known there */
    uint32_t entries; /* of the utility log that it knows: of two, those of more
                         entries are the present ones */
};

struct qn_dialogue_msg {
    enum qn_dialogue_kind kind;
    union {
        struct {
            int err; /* QN_E* */
            char text[QN_DIALOGUE_TEXT];
        } refuse;
        struct qn_dialogue_hello hello;
        struct {
            struct qn_dialogue_layout layout;
            struct qn_dialogue_voters voters;
        } welcome;
        struct {
            qn_node_t node;       /* below QN_NODES_MAX */
            uint64_t incarnation; /* not 0 */
            uint32_t pid;         /* of its thread; 0: unknown */
            bool ended;
            bool observer; /* the group does not begin with it */
        } peer;
        struct {
            uint64_t first; /* mask: voters with which the group has begun;
                               none: it has not */
            struct qn_dialogue_voters voters;
        } done;
        struct {
            uint64_t incarnation[QN_NODES_MAX]; /* 0: none */
        } begin;
    };
};

/** @param bytes  [QN_DIALOGUE_BYTES] filled. Texts end with a zero. */
void qn_dialogue_encode(const struct qn_dialogue_msg *m, uint8_t *bytes);

/** @param fds  Descriptors that came with it: 1 + nodes with WELCOME, 1 with
 *              PEER, else none.
 *  @return QN_OK; QN_ECORRUPT; QN_ENOSYS: of another version. *m is filled with
 *          QN_OK only. */
int qn_dialogue_decode(struct qn_slice bytes, uint32_t fds,
                       struct qn_dialogue_msg *m);

/** May a guest with `guest` become a member beside one with `ours`?
 *  @param why  Filled if not: one line, for people.
 *  @return QN_OK; QN_EINVAL. */
int qn_dialogue_check(const struct qn_dialogue_hello *ours,
                      const struct qn_dialogue_hello *guest,
                      char why[QN_DIALOGUE_TEXT]);

#endif
