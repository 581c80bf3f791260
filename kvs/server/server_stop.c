/*
 * A group that has stopped, or waits for a replica that does not make turns
 * (PROTOCOL.md 6.5, 5.7): the lines. kvs/server/machine/role_log.h decides
 * which one is logged, when, and by which replica.
 */
#include <stdio.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/log.h"
#include "kvs/server/server.h"

/* The replica that has learned most, by what all of them say. */
static qn_node_t longest(const struct qn_server *s, qn_slot_t own,
                         qn_slot_t *has)
{
    qn_slot_t learned[QN_NODES_MAX] = {0};
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        struct qn_position at;
        if (qn_driver_peer_says(qn_replica_driver(s->replica), i, &at)) {
            learned[i] = at.learned;
        }
    }
    learned[s->boot->self] = own;
    qn_node_t node = qn_halt_longest(learned, s->boot->nodes, s->boot->self);
    *has = learned[node];
    QN_ASSERT(*has >= own);
    return node;
}

static void lost_together_log(const struct qn_server *s,
                              const struct qn_driver_status *d)
{
    char beyond[96] = "nothing above is known to be decided";
    qn_slot_t has;
    qn_node_t node = longest(s, d->learned, &has);
    if (d->highest_announced > has) {
        snprintf(beyond, sizeof beyond,
                 "%llu to %llu are decided, and may be lost",
                 (unsigned long long)has + 1,
                 (unsigned long long)d->highest_announced);
    }
    qn_log(
        QN_LOG_ERROR,
        "the group has stopped: its leader and its acceptor (replicas %u and "
        "%u) were lost%s. Replica %u has most, all positions up to "
        "%llu; %s. To go on from there: quoin recover",
        d->lost, d->acceptor,
        d->log_incomplete ? ", and a part of their log with them" : " together",
        node, (unsigned long long)has, beyond);
}

static void verdict_log(const struct qn_driver_status *d)
{
    const struct qn_verdict *v = &d->verdict;
    qn_log(QN_LOG_ERROR,
           "the group has stopped: its leader was lost, and no replica has all "
           "that its memory does not keep any more. Replica %u has most, all "
           "positions up to %llu; %llu to %llu are decided, and lost; %llu to "
           "%llu are in the lost leader's memory, and of no use without them. "
           "To go on without all of these: quoin recover",
           v->longest, (unsigned long long)v->kept,
           (unsigned long long)v->kept + 1, (unsigned long long)v->lo - 1,
           (unsigned long long)v->lo, (unsigned long long)v->hi);
}

static void overwritten_log(const struct qn_driver_status *d)
{
    qn_log(QN_LOG_ERROR,
           "the group has stopped: its leader, replica %u, has overwritten the "
           "accept register in shared memory, so it is not known what is "
           "decided above position %llu. No write is taken any more, and quoin "
           "recover cannot help. Reads go on: copy what you need, end quoind, "
           "and start it again",
           d->leader, (unsigned long long)d->learned);
}

static void waits_log(const struct qn_server *s,
                      const struct qn_driver_status *d,
                      const struct qn_peer_facts *facts)
{
    qn_node_t node = qn_halt_culprit(d->waiting, s->boot->self, facts);
    struct qn_member_peer p;
    bool peer = qn_member_peer(s->member, node, &p);
    qn_log(QN_LOG_WARN,
           "the group waits: its leader was lost, and replica %u (process %d), "
           "which does not go on, may have what the others lack (positions "
           "from %llu on). Let it go on, or end it",
           node, peer ? p.pid : (int)getpid(),
           (unsigned long long)d->verdict.kept + 1);
}

/* A present replica has a store. */
static bool some_complete(const struct qn_server *s)
{
    bool some = s->startup.ready;
    for (uint64_t m = qn_member_peers(s->member); m != 0; m &= m - 1) {
        qn_node_t i = (qn_node_t)__builtin_ctzll(m);
        some |= qn_member_phase(s->member, i) >= QN_SERVER_SERVING;
    }
    return some;
}

static struct qn_role_log_view view_of(const struct qn_server *s,
                                       const struct qn_driver_status *d,
                                       bool stopped)
{
    return (struct qn_role_log_view){.self = s->boot->self,
                                     .memory = qn_server_by_memory(s),
                                     .stopped = stopped,
                                     .overwritten =
                                         d->verdict.kind == QN_VERDICT_DAMAGED,
                                     .some_complete = some_complete(s),
                                     .epoch = d->epoch,
                                     .leader = d->leader,
                                     .alive = d->alive,
                                     .awaited = d->verdict.awaited,
                                     .longest = d->verdict.longest};
}

void qn_server_stop_turn(struct qn_server *s)
{
    struct qn_driver_status d;
    const struct qn_driver *driver = qn_replica_driver(s->replica);
    bool stopped = qn_driver_halted(driver);
    if (!stopped && qn_driver_waiting(driver) == 0) {
        return;
    }
    qn_driver_status(driver, &d);
    const struct qn_role_log_view v = view_of(s, &d, stopped);
    const struct qn_peer_facts facts = qn_member_facts(s->member);
    switch (qn_role_log_halt(&s->role_log, &v, &facts)) {
    case QN_HALT_LINE_LOST_TOGETHER:
        lost_together_log(s, &d);
        break;
    case QN_HALT_LINE_VERDICT:
        verdict_log(&d);
        break;
    case QN_HALT_LINE_WAITS:
        waits_log(s, &d, &facts);
        break;
    case QN_HALT_LINE_OVERWRITTEN:
        overwritten_log(&d);
        break;
    case QN_HALT_LINE_NONE:
        break;
    }
}
