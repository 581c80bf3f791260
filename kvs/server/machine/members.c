/* See members.h. */
#include "kvs/server/machine/members.h"

#include "core/base/assert.h"

uint64_t qn_members_voters(const struct qn_members_view *v)
{
    return v->voters != 0 ? v->voters : v->founders;
}

uint64_t qn_members_all(const struct qn_members_view *v)
{
    return qn_members_voters(v) | v->present;
}

unsigned qn_members_turn(struct qn_members *m, const struct qn_members_view *v)
{
    const uint64_t voters = qn_members_voters(v);
    const uint64_t members = qn_members_all(v);
    unsigned actions = 0;
    QN_ASSERT(v->founders != 0);
    QN_ASSERT(v->present != 0);
    QN_ASSERT(v->removed || !m->removed); /* for ever */
    actions |= members != m->members ? QN_MEMBERS_SEATS : 0u;
    actions |= voters != m->voters ? QN_MEMBERS_VOTERS : 0u;
    actions |= v->voters != 0 && v->voters != m->told ? QN_MEMBERS_TELL : 0u;
    actions |= v->removed && !m->removed ? QN_MEMBERS_LEAVE : 0u;
    *m = (struct qn_members){.members = members,
                             .voters = voters,
                             .known = v->voters,
                             .told = m->told,
                             .removed = v->removed};
    return actions;
}

void qn_members_told(struct qn_members *m)
{
    m->told = m->known;
}
