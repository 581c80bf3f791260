/* See adoptee.h. */
#include "kvs/server/machine/adoptee.h"

#include "core/base/assert.h"

static void check(const struct qn_adoptee *a)
{
    QN_ASSERT(a->alone || !a->listening);
    QN_ASSERT(a->reachable || !a->listening);
    QN_ASSERT(a->adopter == 0 || !a->listening);
}

void qn_adoptee_init(struct qn_adoptee *a, bool reachable)
{
    *a = (struct qn_adoptee){.reachable = reachable};
}

unsigned qn_adoptee_lost(struct qn_adoptee *a, bool stopping)
{
    unsigned actions = a->alone ? 0 : QN_ADOPTEE_LOG_ALONE;
    a->alone = true;
    a->adopter = 0;
    a->listening = a->reachable && !stopping;
    check(a);
    return actions | (a->listening ? QN_ADOPTEE_LISTEN : 0);
}

unsigned qn_adoptee_came(struct qn_adoptee *a, int pid)
{
    QN_ASSERT(a->listening);
    a->listening = false;
    a->adopter = pid;
    check(a);
    return QN_ADOPTEE_TALK;
}

unsigned qn_adoptee_greeted(const struct qn_adoptee *a, uint32_t version)
{
    if (!a->alone) {
        return 0;
    }
    QN_ASSERT(!a->listening);
    return QN_ADOPTEE_TELL | (version != 0 ? QN_ADOPTEE_TELL_ALL : 0);
}

unsigned qn_adoptee_told(const struct qn_adoptee *a, bool failed)
{
    QN_ASSERT(a->alone);
    return failed ? QN_ADOPTEE_HANG_UP : 0;
}

unsigned qn_adoptee_started(struct qn_adoptee *a)
{
    if (!a->alone) {
        return 0;
    }
    QN_ASSERT(!a->listening);
    a->alone = false;
    return QN_ADOPTEE_LOG_ADOPTED;
}
