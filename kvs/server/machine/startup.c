/* See startup.h. */
#include "kvs/server/machine/startup.h"

#include "core/base/assert.h"

void qn_startup_init(struct qn_startup *s, bool initial_member)
{
    *s = (struct qn_startup){.all_joined = !initial_member};
}

void qn_startup_all_joined(struct qn_startup *s)
{
    s->all_joined = true;
}

unsigned qn_startup_turn(struct qn_startup *s, bool store, bool draining)
{
    unsigned actions = 0;
    if (!s->ready && store) {
        s->ready = true;
        actions |= QN_STARTUP_READY | (draining ? 0 : QN_STARTUP_SERVING);
    }
    if (s->ready && s->all_joined && !s->accepting && !draining) {
        s->accepting = true;
        actions |= QN_STARTUP_ACCEPT;
    }
    QN_ASSERT(s->ready || !s->accepting);
    QN_ASSERT(s->all_joined || !s->accepting);
    return actions;
}
