#ifndef QN_TESTS_UNIT_KVS_SUPERVISION_MEMBER_FIXTURE_H
#define QN_TESTS_UNIT_KVS_SUPERVISION_MEMBER_FIXTURE_H

/** Orders of clients to change the members, and what replicas answer. */

#include "tests/unit/kvs/supervision/fixture.h"

enum { CLIENT = 77, SEATS = 4 };

/** Nodes 0 .. n - 1 of four seats serve. */
void member_serve(struct bench *b, uint32_t n);

/** A client asks at `from` for a member more, or less. */
void member_wants_one_more(struct bench *b, qn_node_t from);
void member_wants_less(struct bench *b, qn_node_t from, qn_node_t node);

/** `from` has met `node`, or could not. */
void member_met(struct bench *b, qn_node_t from, qn_node_t node, int err);

/** `from` says which the voters are; it knows `entries` entries. */
void member_voters_are(struct bench *b, qn_node_t from, uint32_t entries,
                       uint64_t voters);

/** What has become of the last order; the voters are of `entries`. */
void member_changed(struct bench *b, qn_node_t from,
                    enum qn_voter_outcome outcome, int err, uint32_t entries,
                    uint64_t voters);

/** @return why not, QN_MEMBER_ERRORS: not answered in this step. */
uint32_t member_answer(const struct bench *b, qn_node_t to);

/** The order that `to` was given in this step, or NULL. */
const struct qn_ctl_voter_change *member_order(const struct bench *b,
                                               qn_node_t to);

/** Three serve, and a newcomer of seat 3 has said HELLO. */
void member_comes_to_three(struct bench *b);

/** It is complete, and its vote was ordered of the asker. */
void member_loads_to_three(struct bench *b);

#endif
