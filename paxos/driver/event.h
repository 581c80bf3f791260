#ifndef QN_PAXOS_DRIVER_EVENT_H
#define QN_PAXOS_DRIVER_EVENT_H

/**
 * What the flight recorder of a replica holds: the events of agreement and of
 * the service above it, and each as a line of text.
 *
 * Nothing is recorded per command or batch. Events that a bad moment can
 * produce by the thousand (messages of elections, FETCHes, children left
 * behind) are damped: QN_EVENTS_PER_S per second of each sort and peer are
 * recorded, and the next recorded one says how many were left out.
 *
 * The line, for `quoin events` and for people (here in three parts):
 *
 *     2026-11-21T18:02:35.123456789Z      wall clock, UTC
 *     5123.000456789 2.7#41               monotonic clock, s; replica 2 in its
 *                                         incarnation 7, event 41 of that one
 *     down node=1 incarnation=3 epoch=4   kind, and KEY=VALUE
 *
 * Threads: noting, those of the flight recorder (core/place/flight_recorder.h);
 * text, any.
 */

#include <stddef.h>

#include "core/place/flight_recorder.h"

/*
 * kind, name, and what node, b, slot and a are called in the line (NULL: not
 * shown); EPOCH: it is shown, OFTEN: damped, `a` is what was left out.
 */
#define QN_EVENT_MAP(X)                                                        \
    /* incarnation */                                                          \
    X(BEGIN, "begin", NULL, "seats", "applied", "pid", 0)                      \
    X(SERVING, "serving", NULL, NULL, "applied", NULL, EPOCH)                  \
    X(DRAINING, "draining", NULL, NULL, "applied", NULL, EPOCH)                \
    /* the others, as this one sees them */                                    \
    X(UP, "up", "node", NULL, "applied", "incarnation", EPOCH)                 \
    X(DOWN, "down", "node", NULL, "applied", "incarnation", EPOCH)             \
    X(SUSPECT, "suspect", "node", NULL, "applied", NULL, EPOCH)                \
    X(TRUST, "trust", "node", NULL, "applied", NULL, EPOCH)                    \
    X(CORRUPT, "corrupt", "node", NULL, "applied", NULL, EPOCH)                \
    /* roles */                                                                \
    X(EPOCH, "epoch", "leader", "acceptor", "applied", "incarnation", EPOCH)   \
    X(ROLE, "role", NULL, "role", "applied", NULL, EPOCH)                      \
    X(VOTE, "vote", "ballot_of", NULL, "ballot", NULL, EPOCH)                  \
    X(SENT, "sent", "to", "message", "slot", "left_out", EPOCH | OFTEN)        \
    X(GOT, "got", "from", "message", "slot", "left_out", EPOCH | OFTEN)        \
    /* take-over of the word in memory */                                      \
    X(CLAIM, "claim", NULL, NULL, "applied", NULL, EPOCH)                      \
    X(RELEASE, "release", NULL, NULL, "applied", NULL, EPOCH)                  \
    X(COPIED, "copied", NULL, NULL, "applied", NULL, EPOCH)                    \
    /* trouble */                                                              \
    X(BEHIND, "behind", "node", NULL, "applied", "left_out", EPOCH | OFTEN)    \
    X(BACK, "back", "node", NULL, "applied", "left_out", EPOCH | OFTEN)        \
    X(RING, "ring", "node", "arity", "applied", "left_out", EPOCH | OFTEN)     \
    X(PAUSE, "pause", NULL, NULL, "applied", "us", EPOCH)                      \
    /* rejoin */                                                               \
    X(NEED_SNAPSHOT, "need-snapshot", NULL, NULL, "slot", NULL, EPOCH)         \
    X(SNAPSHOT_ASKED, "snapshot-asked", "of", NULL, "applied", NULL, EPOCH)    \
    X(SNAPSHOT_BEGUN, "snapshot-begun", "to", NULL, "applied", NULL, EPOCH)    \
    X(SNAPSHOT_SERVED, "snapshot-served", "to", NULL, "applied", NULL, EPOCH)  \
    X(INSTALLED, "installed", NULL, NULL, "position", NULL, EPOCH)             \
    /* the end of a group, and what follows (process acceptor) */              \
    X(STOPPED, "stopped", "acceptor", NULL, "applied", "said", EPOCH)          \
    X(RECOVERED, "recovered", NULL, NULL, "applied", "said", EPOCH)

enum qn_event_kind {
    QN_EVENT_NONE,
#define QN_EVENT_ENUM(kind, name, node, b, slot, a, flags) QN_EVENT_##kind,
    QN_EVENT_MAP(QN_EVENT_ENUM)
#undef QN_EVENT_ENUM
        QN_EVENT_KINDS
};

#define QN_EVENTS_PER_S   8u   /* recorded of one sort and peer, if damped */
#define QN_EVENT_ALL      255u /* node: all others */
#define QN_EVENT_LINE_MAX 256u /* bytes of a line, NUL included */

/** A recorder and what damping needs. Private. */
struct qn_events {
    bool on;
    struct qn_flight_recorder flight;
    qn_time_t (*clock)(void);
    struct qn_event_damp {
        uint32_t sort; /* kind, node, b; 0: free */
        uint32_t noted;
        uint64_t left_out;
        qn_time_t until; /* of this second */
    } damp[64];
};

/**
 * Begin to record an incarnation.
 *
 * @param mem    [QN_FLIGHT_BYTES(QN_FLIGHT_ENTRIES)] as for
 * qn_flight_recorder_init; NULL: nothing is recorded, every note is harmless.
 * @param clock  qn_clock_now: events are rare enough for a time of their own;
 *               kept. NULL: they come with one.
 */
void qn_events_init(struct qn_events *v, void *mem, qn_time_t (*clock)(void),
                    uint64_t born_ms);

/** Record. `e` borrowed; index is ignored; time is, too, if there is a clock.
 */
void qn_events_note(struct qn_events *v, const struct qn_flight_event *e);

/** The replica that recorded the events, and how its clock becomes wall time.
 */
struct qn_event_source {
    qn_node_t node;
    uint64_t incarnation; /* incarnation */
    int64_t wall;         /* ns since 1970 minus monotonic ns */
};

/** The difference of the clocks now, ns. */
int64_t qn_event_wall(void);

/**
 * The line of one event, with newline.
 *
 * @param to  [QN_EVENT_LINE_MAX] filled, NUL-terminated.
 * @return its bytes. Any content of `e` gives a line: unknown kinds, roles and
 *         messages are numbers.
 */
size_t qn_event_print(char *to, const struct qn_event_source *s,
                      const struct qn_flight_event *e);

#endif
