/*
 * The members of the group: the shell of kvs/server/machine/members.h.
 *
 * What the driver and the member know is looked at once a turn. A peer that has
 * ended, or begun, changes the seats that are taken; an entry of the utility
 * log changes the voters. The supervisor hears of them, and orders changes
 * (kvs/server/machine/voter_order.h).
 */
#include <inttypes.h>
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/log.h"
#include "kvs/server/server.h"
#include "kvs/server/server_settings.h"

static struct qn_members_view view_of(const struct qn_server *s)
{
    const struct qn_driver *driver = qn_replica_driver(s->replica);
    return (struct qn_members_view){
        .founders = qn_config_taken(s->boot->config),
        .voters = qn_driver_voters(driver),
        .present = qn_member_peers(s->member) | (uint64_t)1 << s->boot->self,
        .removed = qn_driver_removed(driver)};
}

uint64_t qn_server_voters(const struct qn_server *s)
{
    const struct qn_members_view v = view_of(s);
    return qn_members_voters(&v);
}

uint64_t qn_server_members(const struct qn_server *s)
{
    const struct qn_members_view v = view_of(s);
    return qn_members_all(&v);
}

bool qn_server_own_cores(const struct qn_server *s, uint64_t members)
{
    return (uint32_t)__builtin_popcountll(members) <= s->boot->cores;
}

/* "0,2". */
static const char *nodes_text(uint64_t mask, char *text, size_t cap)
{
    size_t n = 0;
    text[0] = '\0';
    for (; mask != 0 && n < cap; mask &= mask - 1) {
        n += (size_t)snprintf(text + n, cap - n, "%s%d", n == 0 ? "" : ",",
                              __builtin_ctzll(mask));
    }
    return text;
}

/* One line for the whole group: the leader's. */
static void log_voters(const struct qn_server *s)
{
    char text[4 * QN_NODES_MAX];
    struct qn_driver_status d;
    qn_driver_status(qn_replica_driver(s->replica), &d);
    if (d.leader == s->boot->self && d.role == QN_ACTIVE) {
        qn_log(QN_LOG_INFO, "replica %u: the voters are replicas %s now",
               s->boot->self, nodes_text(s->members.voters, text, sizeof text));
    }
}

/* ---- what the supervisor hears ------------------------------------------- */

int qn_server_voters_tell(struct qn_server *s)
{
    struct qn_driver_status d;
    qn_driver_status(qn_replica_driver(s->replica), &d);
    const struct qn_control_msg e = {
        .kind = QN_CTL_VOTERS,
        .u.voters = {.entries = d.entries, .voters = d.voters}};
    return d.voters != 0 ? qn_control_send(s->boot->control, &e, -1) : QN_OK;
}

enum { TELL_AGAIN_MS = 20 };

/* A supervisor that has ended is told nothing: the next one asks.
 * @return when to try again: its channel may be full. */
static qn_time_t tell(struct qn_server *s, qn_time_t now)
{
    if (qn_server_voters_tell(s) == QN_EAGAIN) {
        return now + TELL_AGAIN_MS * QN_MS;
    }
    qn_members_told(&s->members);
    return QN_TIME_NEVER;
}

static void order_answer(struct qn_server *s, struct qn_ctl_voter_changed *a,
                         const struct qn_driver_status *d)
{
    a->entries = d->entries;
    a->voters = d->voters;
    const struct qn_control_msg e = {.kind = QN_CTL_VOTER_CHANGED,
                                     .u.voter_changed = *a};
    (void)qn_control_send(s->boot->control, &e, -1); /* it asks again */
}

void qn_server_voter_change(struct qn_server *s,
                            const struct qn_ctl_voter_change *e)
{
    struct qn_driver *driver = qn_replica_driver(s->replica);
    const struct qn_driver_change c = {.node = e->node,
                                       .inc = e->incarnation,
                                       .votes = e->votes,
                                       .forced = e->forced};
    struct qn_ctl_voter_changed answer;
    struct qn_driver_status d;
    const int err = qn_driver_change(driver, &c, qn_clock_now());
    if (qn_voter_order_begin(&s->order, e->number, err, &answer)) {
        qn_driver_status(driver, &d);
        order_answer(s, &answer, &d);
    }
    s->turn_wanted = true;
}

static enum qn_voter_outcome outcome_of(enum qn_change_state state)
{
    QN_ASSERT(state != QN_CHANGE_NONE); /* the driver has taken it */
    return state == QN_CHANGE_DONE      ? QN_VOTER_OK
           : state == QN_CHANGE_REFUSED ? QN_VOTER_REFUSED
                                        : QN_VOTER_UNKNOWN;
}

static void order_turn(struct qn_server *s)
{
    struct qn_ctl_voter_changed answer;
    struct qn_driver_status d;
    if (!s->order.pending) {
        return;
    }
    qn_driver_status(qn_replica_driver(s->replica), &d);
    if (d.change != QN_CHANGE_PENDING) {
        qn_voter_order_end(&s->order, outcome_of(d.change), d.change_error,
                           &answer);
        order_answer(s, &answer, &d);
    }
}

/* ---- turns --------------------------------------------------------------- */

qn_time_t qn_server_members_turn(struct qn_server *s, qn_time_t now)
{
    qn_time_t at = QN_TIME_NEVER;
    const struct qn_members_view v = view_of(s);
    const bool begins = s->members.voters == 0;
    const unsigned actions = qn_members_turn(&s->members, &v);
    if ((actions & QN_MEMBERS_SEATS) != 0) {
        qn_fanout_vacant(s->ask, ~s->members.members);
        qn_member_own_cores(s->member,
                            qn_server_own_cores(s, s->members.members));
    }
    if ((actions & QN_MEMBERS_VOTERS) != 0) {
        qn_settings_voters(s,
                           (uint32_t)__builtin_popcountll(s->members.voters));
    }
    if ((actions & QN_MEMBERS_VOTERS) != 0 && !begins) {
        log_voters(s);
    }
    if ((actions & QN_MEMBERS_TELL) != 0) {
        at = tell(s, now);
    }
    order_turn(s); /* behind VOTERS: its answer says no less */
    if ((actions & QN_MEMBERS_LEAVE) != 0) {
        qn_log(QN_LOG_WARN,
               "replica %u was removed from the group: it answers what was "
               "asked, as far as it can, and ends",
               s->boot->self);
        qn_server_member_left(s);
        qn_server_drain(s);
    }
    return at;
}
