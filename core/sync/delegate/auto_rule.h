#ifndef QN_SYNC_DELEGATE_AUTO_RULE_H
#define QN_SYNC_DELEGATE_AUTO_RULE_H

/**
 * When `auto` takes another backend: a pure function of what executors see.
 * Inside of the folder only.
 *
 * How many clients make which backend the cheapest differs from machine to
 * machine, and no figure that an executor sees tells it on all of them. So the
 * rule measures: an *epoch* is a thousand operations in the backend in use,
 * its *cost* the time of one. Now and then comes a *trial* of another backend;
 * the cheaper one stays. What executors see says only which trials make sense:
 *
 *     lock -> cc_synch      attempts to get the lock have failed
 *     lock -> h_synch       many of them for each operation
 *     cc_synch -> lock      batches are short
 *     cc_synch -> h_synch   batches are not; with more than one domain
 *     h_synch -> lock       batches are of one, mostly
 *     h_synch -> cc_synch   always
 *
 * Behind each change the first operations do not count: clients come one by
 * one. A trial ends early when it is much worse. One that fails is repeated
 * when many times of what it has lost has passed, so that all trials cost a few
 * percent at first, and ever less.
 *
 * When the cost of two epochs in a row differs by a third, or their batches are
 * four times as long, or a fourth, the load has changed. Loads are told apart
 * by what an operation costs at home; all of one class of cost share their
 * trials. So a load that comes back, as where other processes take a core again
 * and again, does not begin anew. Such batches end an epoch early, and make
 * trials due. An epoch that differs begins no trial: the load may have changed
 * within it, and of two loads nothing is to be compared.
 *
 * Pure: no shared memory, no clock.
 */

#include <stdbool.h>
#include <stdint.h>

/** Backends, from few clients to many. */
enum qn_auto_part {
    QN_AUTO_LOCK,
    QN_AUTO_CC_SYNCH,
    QN_AUTO_H_SYNCH, /* with more than one domain */
    QN_AUTO_PARTS,
};

#define QN_AUTO_EPOCH        1024u /* operations */
/* Operations and failed attempts of a client until it tells them to the rule:
 * in a trial; at home, where only the end of an epoch matters; and where no
 * attempt fails, so that there is nothing to choose, which is the most. Where
 * attempts at a lock fail, the first two are operations, and the attempts that
 * fail for as many are added, unless they are a crowd's. */
#define QN_AUTO_WINDOW       32u
#define QN_AUTO_HOME         64u
#define QN_AUTO_CALM         512u
/* Of all clients together, until the rule looks: windows, and operations. */
#define QN_AUTO_LOOK_WINDOWS 4u
#define QN_AUTO_LOOK_MOST    (QN_AUTO_EPOCH / 4)

/* Loads are told apart by what they cost at home: two in each octave. Those
 * 2^16 apart have the same trials; with 2^4 a load that had become 16 times
 * cheaper was not tried for 2 M operations. */
#define QN_AUTO_COSTS 32u

/** What one client has seen as executor, or all of them. */
struct qn_auto_window {
    uint64_t operations; /* in its batches */
    uint64_t batches;
    uint64_t failed; /* attempts to get the lock */
};

/** When a backend is tried. */
struct qn_auto_trial {
    uint64_t due;     /* when it may be tried again, ns */
    uint32_t doubled; /* how often its trials have failed */
};

/** What the rule remembers; all zero at first. In front is what each window
 *  changes: one line. */
struct qn_auto_state {
    uint64_t begin;             /* of this epoch or trial, ns; 0: none yet */
    struct qn_auto_window seen; /* in it, by all */
    uint64_t changed;           /* the backend, ns */
    uint64_t cost;   /* at home: ns per 1024 operations, smoothed; 0: unknown */
    uint16_t window; /* of clients, from now on */
    bool warm;       /* operations count */
    uint8_t home;    /* the backend that was cheapest */
    uint8_t last;    /* before it */
    uint8_t odd;     /* epochs in a row with another cost */
    uint16_t batch;  /* at home: operations per batch, in eighths; 0: unknown */
    uint64_t uncounted; /* operations before `begin`, since `changed` */
    struct qn_auto_trial trial[QN_AUTO_COSTS][QN_AUTO_PARTS];
};

/**
 * A client tells what it has seen since it told last.
 *
 * @param parts  Backends that there are, 2 or 3.
 * @param now    The one in use, below `parts`.
 * @param time   ns, monotonic, above 0.
 * @param s      Updated.
 * @return the one to use from now on.
 */
uint32_t qn_auto_rule(uint32_t parts, uint32_t now,
                      const struct qn_auto_window *w, uint64_t time,
                      struct qn_auto_state *s);

#endif
