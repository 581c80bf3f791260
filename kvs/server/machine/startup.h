#ifndef QN_KVS_SERVER_MACHINE_STARTUP_H
#define QN_KVS_SERVER_MACHINE_STARTUP_H

/**
 * When a replica process begins to serve.
 *
 * It is ready when it has a store: at once as an initial member of the group,
 * else with the snapshot of a donor. It accepts connections of the common
 * address when it is ready and all initial members have joined, because until
 * then the end of one of them ends the group, and what a client was told would
 * be lost. A group without a supervisor does not wait for initial members.
 *
 * Threads: one. Pure.
 */

#include <stdbool.h>

/** What to do: a mask, in the order of the bits. */
enum qn_startup_action {
    QN_STARTUP_SERVING = 1, /* the phase is SERVING (not while draining) */
    QN_STARTUP_READY = 2,   /* take the time slice of a serving replica, and
                               tell the supervisor */
    QN_STARTUP_ACCEPT = 4,  /* accept connections of the common address */
};

/** Private, except what others read: `ready`, `accepting`. */
struct qn_startup {
    bool ready;      /* has a store */
    bool all_joined; /* all initial members of the group have joined */
    bool accepting; /* connections of the common address; an initial member: any
                     */
};

/** @param initial_member  Of the group; any other replica joins a complete
 * group. */
void qn_startup_init(struct qn_startup *s, bool initial_member);

/** All initial members have joined; or there is no supervisor to say so. */
void qn_startup_all_joined(struct qn_startup *s);

/** Once a turn. @param store  The replica has one. @return actions. */
unsigned qn_startup_turn(struct qn_startup *s, bool store, bool draining);

#endif
