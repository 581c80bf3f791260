/*
 * The members of the group: the shell of kvs/server/machine/members.h.
 *
 * What the driver and the member know is looked at once a turn. A peer that has
 * ended, or begun, changes the seats that are taken; an entry of the utility
 * log changes the voters.
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

void qn_server_members_turn(struct qn_server *s)
{
    const struct qn_members_view v = view_of(s);
    const bool begins = s->members.voters == 0;
    const unsigned actions = qn_members_turn(&s->members, &v);
    if ((actions & QN_MEMBERS_SEATS) != 0) {
        qn_fanout_vacant(s->ask, ~s->members.members);
    }
    if ((actions & QN_MEMBERS_VOTERS) != 0) {
        qn_settings_voters(s,
                           (uint32_t)__builtin_popcountll(s->members.voters));
    }
    if ((actions & QN_MEMBERS_VOTERS) != 0 && !begins) {
        log_voters(s);
    }
    if ((actions & QN_MEMBERS_LEAVE) != 0) {
        qn_log(QN_LOG_WARN,
               "replica %u was removed from the group: it answers what was "
               "asked, as far as it can, and ends",
               s->boot->self);
        qn_server_drain(s);
    }
}
