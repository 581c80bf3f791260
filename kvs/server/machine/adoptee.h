#ifndef QN_KVS_SERVER_MACHINE_ADOPTEE_H
#define QN_KVS_SERVER_MACHINE_ADOPTEE_H

/**
 * A replica without a supervisor, and how it gets the next one
 * (kvs/control/adopt.h has the messages).
 *
 *     supervised --supervisor lost--> alone, listens for an adopter
 *                                       |        ^
 *                          adopter comes|        | the adopter hangs up
 *                                       v        |
 *                                     alone, talks to one adopter
 *                                       |
 *                                       | START of the adopter
 *                                       v
 *                                     supervised
 *
 * One adopter at a time: others wait in the socket's queue. No adopter is let
 * in while the supervisor lives. Until its START has come the replica is none
 * of the adopter's.
 *
 * Threads: one. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

/** What to do: a mask, in the order of the bits. */
enum qn_adoptee_action {
    QN_ADOPTEE_LOG_ALONE = 1,
    QN_ADOPTEE_LISTEN = 2,      /* for adopters */
    QN_ADOPTEE_TALK = 4,        /* listen no more; hear the adopter */
    QN_ADOPTEE_TELL = 8,        /* which version this replica speaks */
    QN_ADOPTEE_TELL_ALL = 16,   /* and what a supervisor must know */
    QN_ADOPTEE_HANG_UP = 32,    /* the adopter could not be told all */
    QN_ADOPTEE_LOG_ADOPTED = 64 /* `adopter` is the supervisor */
};

/** Private, except what others read: `alone`, `adopter`. */
struct qn_adoptee {
    bool reachable; /* it has a socket for adopters */
    bool alone;     /* the supervisor has ended */
    bool listening; /* for adopters */
    int adopter;    /* process at the control socket; 0: none */
};

/** Supervised. @param reachable  There is a socket for adopters. */
void qn_adoptee_init(struct qn_adoptee *a, bool reachable);

/** The supervisor, or an adopter before its START, has hung up.
 *  @param stopping  This process ends. @return actions. */
unsigned qn_adoptee_lost(struct qn_adoptee *a, bool stopping);

/** An adopter has connected. @return actions. */
unsigned qn_adoptee_came(struct qn_adoptee *a, int pid);

/** The adopter says which versions it speaks. @param version  The newest that
 *  both speak; 0: none. @return actions; 0: it is no adopter, ignore it. */
unsigned qn_adoptee_greeted(const struct qn_adoptee *a, uint32_t version);

/** TELL and TELL_ALL were done. @param failed  Not everything was sent, though
 *  the adopter is there. @return actions. */
unsigned qn_adoptee_told(const struct qn_adoptee *a, bool failed);

/** The adopter's START. @return actions; 0: it is no adopter, ignore it. */
unsigned qn_adoptee_started(struct qn_adoptee *a);

#endif
