/*
 * A group that has stopped, or waits for a replica that does not go on: one
 * line for the whole group, by one of its replicas (PROTOCOL.md 6.5, 5.7).
 */
#include <stdio.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/place/process.h"
#include "kvs/server/server.h"

/* Who has learned most, as all of them say. */
static qn_slot_t longest(const struct qn_server *s, qn_slot_t own,
                         qn_node_t *who)
{
    *who = s->boot->self;
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        /* relaxed: a number for people. */
        qn_slot_t has =
            s->peer[i] == NULL
                ? 0
                : qn_load(&qn_outbox_state(s->peer[i]->outbox)->learned,
                          QN_RELAXED);
        if (has > own) {
            own = has;
            *who = i;
        }
    }
    return own;
}

static void stop_log(struct qn_server *s, const struct qn_driver_status *d)
{
    char beyond[96] = "nothing above is known to be decided";
    qn_node_t who;
    qn_slot_t has = longest(s, d->learned, &who);
    if (d->said > has) {
        snprintf(beyond, sizeof beyond,
                 "%llu to %llu are decided, and may be lost",
                 (unsigned long long)has + 1, (unsigned long long)d->said);
    }
    qn_log(
        QN_LOG_ERROR,
        "the group has stopped: its leader and its acceptor (replicas %u and "
        "%u) were lost%s. Replica %u has most, all positions up to "
        "%llu; %s. To go on from there: quoin recover",
        d->lost, d->acceptor,
        d->incomplete ? ", and a part of their log with them" : " together",
        who, (unsigned long long)has, beyond);
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

static bool stands_still(const struct qn_server *s, qn_node_t i)
{
    const struct qn_server_life *l = s->peer[i];
    return l != NULL && qn_process_stopped(l->pid);
}

static qn_node_t first_of(uint64_t mask)
{
    return (qn_node_t)__builtin_ctzll(mask);
}

/* Of those in the mask, the first that the kernel says is stopped; else the
 * first other one. */
static qn_node_t culprit(const struct qn_server *s, uint64_t mask)
{
    for (uint64_t m = mask; m != 0; m &= m - 1) {
        if (stands_still(s, first_of(m))) {
            return first_of(m);
        }
    }
    mask &= ~((uint64_t)1 << s->boot->self);
    return mask != 0 ? first_of(mask) : s->boot->self;
}

static void waiting_log(const struct qn_server *s,
                        const struct qn_driver_status *d)
{
    qn_node_t who = culprit(s, d->waiting);
    const struct qn_server_life *l = s->peer[who];
    qn_log(QN_LOG_WARN,
           "the group waits: its leader was lost, and replica %u (process %d), "
           "which does not go on, may have what the others lack (positions "
           "from %llu on). Let it go on, or end it",
           who, l != NULL ? l->pid : (int)getpid(),
           (unsigned long long)d->verdict.kept + 1);
}

/* Of a group of which all load the supervisor says that all is lost. */
static bool some_complete(const struct qn_server *s)
{
    bool some = s->ready;
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        /* relaxed: it only says whether a line is worth while. */
        some |= s->peer[i] != NULL &&
                qn_load(&qn_outbox_state(s->peer[i]->outbox)->phase,
                        QN_RELAXED) >= QN_SERVER_SERVING;
    }
    return some;
}

/* Memory acceptor. STOPPED: who has most. Else the first that is not
 * waited for; and if all are, the first that is not stopped. */
static bool speaks(const struct qn_server *s, const struct qn_driver_status *d)
{
    uint64_t able = d->alive & ~d->verdict.awaited;
    if (d->stopped) {
        return s->boot->self == d->verdict.longest;
    }
    for (uint64_t m = d->alive; able == 0 && m != 0; m &= m - 1) {
        bool runs = !stands_still(s, first_of(m));
        able = runs ? (uint64_t)1 << first_of(m) : 0;
    }
    return able != 0 && s->boot->self == first_of(able);
}

/* One of them says so: one line for the group. Process acceptor: its would-be
 * leader. */
void qn_server_stop_turn(struct qn_server *s)
{
    struct qn_driver_status d;
    const struct qn_driver *driver = qn_replica_driver(s->replica);
    bool stopped = qn_driver_stopped(driver);
    if (!stopped && qn_driver_waiting(driver) == 0) {
        return;
    }
    qn_driver_status(driver, &d);
    bool memory = qn_server_by_memory(s);
    uint64_t *logged = stopped ? &s->stop_logged : &s->wait_logged;
    if (*logged == d.epoch + 1 || !some_complete(s) ||
        (memory ? !speaks(s, &d) : d.leader != s->boot->self)) {
        return;
    }
    *logged = d.epoch + 1;
    if (!stopped) {
        waiting_log(s, &d);
    } else if (memory) {
        verdict_log(&d);
    } else {
        stop_log(s, &d);
    }
}
