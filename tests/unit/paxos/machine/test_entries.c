/*
 * Entries of the utility log that cannot be of this group, as a faulty peer may
 * send them. To node 2 of three, with the process acceptor.
 */
#include "core/base/bits.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/machine/fixture.h"

static struct fx c;

static void setup(void)
{
    struct qn_params v = fx_params();
    fx_make(&c, 2, 3, &v);
}

static void teardown(void)
{
    fx_end(&c);
    cr_assert_eq(fx_refbufs, 0);
}

#define ENTRIES(name) Test(entries, name, .init = setup, .fini = teardown)

/* To node 2, as entry 1, in a message of that kind. */
static int entry_comes(struct qn_ul_entry e, uint8_t kind)
{
    uint8_t ul[QN_UL_BYTES];
    e.index = 1;
    qn_ul_encode(&e, ul);
    const struct qn_msg m = {.kind = kind,
                             .flags = kind == QN_MSG_STAGE ? QN_MSG_UL : 0,
                             .epoch = 1,
                             .slot = kind == QN_MSG_SEAL ? 1 : 0,
                             .u = {.bal = {1, 0, 10}},
                             .body = {ul, sizeof ul}};
    return fx_recv(&c, 0, &m);
}

static const struct qn_ul_entry strangers[] = {
    {.kind = QN_UL_LEADER, .leader = 3, .acceptor = 1},
    {.kind = QN_UL_LEADER, .leader = 2, .acceptor = 3},
    {.kind = QN_UL_LEADER, .leader = 2, .acceptor = QN_NODES_MAX - 1},
    {.kind = QN_UL_VOTER, .leader = 2, .acceptor = 1, .voter = 3},
    {.kind = QN_UL_LEADER, .leader = 2, .acceptor = 2}, /* memory acceptor */
};

/* A peer is faulty that sends one: it is neither voted for nor learned. */
ENTRIES(an_entry_that_is_not_of_the_group_is_corrupt)
{
    static const uint8_t kinds[] = {
        QN_MSG_PREPARE,   QN_MSG_SEAL,     QN_MSG_STAGE,   QN_MSG_U_PREPARE,
        QN_MSG_U_PROMISE, QN_MSG_U_ACCEPT, QN_MSG_U_CHOSEN};
    for (size_t k = 0; k < sizeof kinds; k++) {
        for (size_t i = 0; i < QN_ARRAY_COUNT(strangers); i++) {
            cr_assert_eq(entry_comes(strangers[i], kinds[k]), QN_ECORRUPT,
                         "%s, entry %zu", qn_msg_name(kinds[k]), i);
        }
    }
    cr_assert_eq(fx_status(&c).epoch, 0u);
    const struct qn_ul_entry own = {.kind = QN_UL_LEADER,
                                    .leader = 2,
                                    .acceptor = 1,
                                    .leader_inc = 12,
                                    .acceptor_inc = 11};
    cr_assert_eq(entry_comes(own, QN_MSG_U_CHOSEN), QN_OK);
    cr_assert_eq(fx_status(&c).epoch, 1u);
}

/* Nor does a snapshot bring one. */
ENTRIES(a_snapshots_entry_that_is_not_of_the_group_is_refused)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(strangers); i++) {
        struct qn_ul_entry e = strangers[i];
        e.index = 1;
        cr_assert_eq(qn_onepaxos_adopt(c.p, &e, 1), QN_EINVAL, "%zu", i);
    }
    cr_assert_eq(qn_utility_len(qn_onepaxos_utility(c.p)), 1u);
}
