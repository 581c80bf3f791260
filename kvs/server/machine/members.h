#ifndef QN_KVS_SERVER_MACHINE_MEMBERS_H
#define QN_KVS_SERVER_MACHINE_MEMBERS_H

/**
 * The members of the group, as a replica knows them, and what it does when they
 * change.
 *
 *     voters     the replicas that decide, present or not: the utility log
 *                names them; those that began the group, before this replica
 *                knows an entry of it
 *     members    voters, and present replicas without a vote; this one
 *     vacant     all other seats
 *
 * A replica that was removed is no member for the others when its process has
 * ended, and it leaves by itself: it drains, and ends.
 *
 * Threads: one. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

/** What to do: a mask, in the order of the bits. */
enum qn_members_action {
    QN_MEMBERS_SEATS = 1,  /* other seats are taken: `members` */
    QN_MEMBERS_VOTERS = 2, /* `voters` are others than they were */
    QN_MEMBERS_TELL = 4,   /* the supervisor does not know `known` yet */
    QN_MEMBERS_LEAVE = 8,  /* this replica was removed: drain */
};

/** What is seen in a turn. */
struct qn_members_view {
    uint64_t founders; /* mask: they began the group */
    uint64_t voters;   /* mask, by the utility log; 0: no entry is known */
    uint64_t present;  /* mask: peers with a process, and this replica */
    bool removed;      /* the utility log says so, of this replica */
};

/** Private, except what others read: masks, `removed`. Zero it to begin. */
struct qn_members {
    uint64_t members, voters; /* masks, as of the last turn; 0: none yet */
    uint64_t known, told;     /* mask: voters by the utility log, and those that
                                 the supervisor was told; 0: none */
    bool removed;
};

uint64_t qn_members_voters(const struct qn_members_view *v);
uint64_t qn_members_all(const struct qn_members_view *v);

/** Once a turn; a compare if nothing has changed. @return actions. */
unsigned qn_members_turn(struct qn_members *m, const struct qn_members_view *v);

/** TELL was done, or there is no supervisor: a later one asks. Otherwise it is
 *  due again in the next turn. */
void qn_members_told(struct qn_members *m);

#endif
