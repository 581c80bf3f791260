#ifndef QN_PAXOS_MEMBER_MEMBER_NEEDS_H
#define QN_PAXOS_MEMBER_MEMBER_NEEDS_H

/**
 * Memory and address space that the members of a group need, told before there
 * is one. Pure, any thread.
 */

#include "core/qp.h"

/** As in struct qn_member_opts. */
struct qn_member_size {
    uint32_t nodes;
    uint64_t seats; /* those that are taken from the beginning; 0: all */
    bool memory_acceptor;
    uint64_t ring_bytes, arena_bytes, backlog_bytes;
    struct qn_transport_bytes channels; /* qn_transport_needs */
};

/** Bytes. */
struct qn_member_needs {
    uint64_t commons; /* shared, once for the group */
    uint64_t outbox;  /* shared, of each member, when it begins */
    uint64_t seat;    /* shared, of each member, for each seat that is taken
                         later */
    uint64_t ring;    /* shared, of each member, that its ring grows to for the
                         backlog; a longer batch needs more */
    uint64_t log;     /* private, of each member, for the log */
    uint64_t mapped;  /* address space of one outbox, the own one or a peer's;
                         after a death the former one is mapped for a while */
};

struct qn_member_needs qn_member_needs(const struct qn_member_size *s);

#endif
