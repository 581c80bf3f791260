#include "tests/unit/kvs/supervision/member_fixture.h"

#include "core/base/err.h"
#include "tests/support/test.h"

/* Nodes 0 .. n - 1 of four seats serve. */
void member_serve(struct bench *b, uint32_t n)
{
    struct qn_supervision_opts o = opts_of(SEATS);
    o.taken = ((uint64_t)1 << n) - 1;
    bench_init(b, SEATS);
    qn_supervision_init(&b->s, &o);
    step(b, (struct qn_supervision_event){.kind = QN_ON_START});
    for (qn_node_t i = 0; i < n; i++) {
        spawned(b, i);
    }
    for (qn_node_t i = 0; i < n; i++) {
        says_hello(b, i);
    }
    for (qn_node_t i = 0; i < n; i++) {
        says_kind(b, i, QN_CTL_READY);
    }
    b->now += 60 * QN_S;
}

void member_wants_one_more(struct bench *b, qn_node_t from)
{
    says(b, from,
         (struct qn_control_msg){.kind = QN_CTL_MEMBER_ADD,
                                 .u.member_add.client = CLIENT});
}

void member_wants_less(struct bench *b, qn_node_t from, qn_node_t node)
{
    says(b, from,
         (struct qn_control_msg){
             .kind = QN_CTL_MEMBER_REMOVE,
             .u.member_remove = {.node = node, .client = CLIENT}});
}

void member_met(struct bench *b, qn_node_t from, qn_node_t node, int err)
{
    says(b, from,
         (struct qn_control_msg){
             .kind = QN_CTL_PEER_MET,
             .u.peer_met = {.node = node,
                            .incarnation = b->s.replica[node].incarnation,
                            .error = err}});
}

void member_voters_are(struct bench *b, qn_node_t from, uint32_t entries,
                       uint64_t voters)
{
    says(b, from,
         (struct qn_control_msg){
             .kind = QN_CTL_VOTERS,
             .u.voters = {.entries = entries, .voters = voters}});
}

/* What has become of the last order; the voters are of `entries`. */
void member_changed(struct bench *b, qn_node_t from,
                    enum qn_voter_outcome outcome, int err, uint32_t entries,
                    uint64_t voters)
{
    says(b, from,
         (struct qn_control_msg){
             .kind = QN_CTL_VOTER_CHANGED,
             .u.voter_changed = {.outcome = outcome,
                                 .number = b->s.change.number,
                                 .entries = entries,
                                 .voters = voters,
                                 .error = err}});
}

/* @return why not, QN_MEMBER_ERRORS: not answered in this step. */
uint32_t member_answer(const struct bench *b, qn_node_t to)
{
    const struct qn_control_msg *m = message(b, to, QN_CTL_MEMBER_ANSWER);
    if (m == NULL) {
        return QN_MEMBER_ERRORS;
    }
    cr_expect_eq(m->u.member_answer.client, CLIENT);
    return m->u.member_answer.why;
}

const struct qn_ctl_voter_change *member_order(const struct bench *b,
                                               qn_node_t to)
{
    const struct qn_control_msg *m = message(b, to, QN_CTL_VOTER_CHANGE);
    return m == NULL ? NULL : &m->u.voter_change;
}

/* A newcomer of seat 3 has said HELLO. */
void member_comes_to_three(struct bench *b)
{
    member_serve(b, 3);
    member_wants_one_more(b, 1);
    cr_assert_not_null(find(b, QN_DO_SPAWN, 3));
    spawned(b, 3);
    says_hello(b, 3);
}

/* It is complete, and its vote was ordered of the asker. */
void member_loads_to_three(struct bench *b)
{
    member_comes_to_three(b);
    for (qn_node_t i = 0; i < 3; i++) {
        member_met(b, i, 3, QN_OK);
    }
    says_kind(b, 3, QN_CTL_READY);
    timer(b);
    cr_assert_not_null(member_order(b, 1));
}
