#ifndef QN_PAXOS_GROUP_GROUP_INTERNAL_H
#define QN_PAXOS_GROUP_GROUP_INTERNAL_H

/** What the parts of a group share. One thread. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/place/commons.h"
#include "core/qp.h"
#include "core/rendezvous/rendezvous.h"
#include "paxos/driver/driver.h"
#include "paxos/feed/feed.h"
#include "paxos/group/dialogue.h"
#include "paxos/group/fork_mark.h"
#include "paxos/group/group.h"
#include "paxos/group/waits.h"
#include "paxos/member/member.h"

/** Connections of guests and members at once; a further guest is turned away
 *  and comes again. */
#define QN_GROUP_LINKS_MAX 128u
/** Incarnation of the process that has made the commons: the first one. */
#define QN_GROUP_FOUNDER   1u
/** Incarnations that a guest hears of before it starts, its own not counted. */
#define QN_GROUP_KNOWN_MAX 256u

/** Rounds of all donors in which a callback of a snapshot fails, until this
 *  process gives up: some seconds. */
#define QN_GROUP_ROUNDS_MAX 20u

/** How far this process is. */
enum qn_group_step {
    QN_STEP_ENTER,    /* it looks for a member, or founds */
    QN_STEP_ASK,      /* HELLO was said */
    QN_STEP_SIT,      /* it has the commons, and takes a seat */
    QN_STEP_MEET,     /* it tells all members of itself */
    QN_STEP_ASSEMBLE, /* the group has not begun */
    QN_STEP_RUN,
    QN_STEP_FAILED
};

/** What an event of the group's descriptor is of; links are behind. */
enum qn_group_watched {
    QN_WATCH_TIMER,
    QN_WATCH_LISTENER,
    QN_WATCH_DOORBELL,
    QN_WATCH_LINKS,
    QN_WATCH_ENDS = QN_WATCH_LINKS + QN_GROUP_LINKS_MAX /* of peers */
};

struct qn_group_link {
    int fd;          /* -1: free */
    bool ours;       /* this process has connected */
    bool asked;      /* HELLO was received */
    bool introduced; /* ours: PEER was said; and DONE not heard: */
    bool waits;
    qn_node_t node;       /* of the other end; QN_NODES_MAX: not known */
    uint64_t incarnation; /* not ours: which has introduced itself; 0 */
    qn_time_t since;
};

/** An incarnation that this one has heard of. */
struct qn_group_known {
    struct qn_member_peer peer; /* its fd is owned */
    bool ended;
    bool observer;
    bool seated; /* it has said so itself, so it has lanes for this one */
};

/** What the driver was ordered last, if its outcome was not taken yet. */
enum qn_group_ordered {
    QN_ORDERED_NOTHING,
    QN_ORDERED_VOTE,
    QN_ORDERED_CHANGE
};

/** A change of the voters, as the host has asked (qn_group_change). */
struct qn_group_order {
    bool open;
    bool begun; /* its outcome was unknown once */
    struct qn_driver_change change;
    qn_time_t deadline, again_at;
    qn_group_done *done;
    void *ctx;
};

struct qn_group {
    /* What a proposal and its apply touch, in a few lines. */
    struct qn_fork_mark own;  /* of the process that joined */
    struct qn_driver *driver; /* the member's; NULL: it does not run */
    enum qn_group_step step;
    enum qn_group_reason reason;
    bool jumped; /* its thread has ended inside of a callback */
    bool turning, applying;
    bool serving;
    bool open;   /* callbacks are told, which may propose: all else allows it */
    bool armed;  /* the last turn said so */
    bool kicked; /* and something was asked since */
    bool asked;  /* something, since the last turn */
    bool listed; /* its thread is known */
    int takes;   /* proposals, as of this turn: QN_OK; QN_ENOQUORUM: the group
                    has halted; QN_EAGAIN: the leader holds them back */
    uint32_t looks; /* turns of the driver only, before the next whole one */
    qn_time_t now;  /* of the turn; 0: there is none */
    uint64_t commands;
    struct qn_waits proposals;
    struct qn_dialogue_layout layout;
    struct qn_waits barriers;
    uint64_t barriers_new;       /* barriers without an index yet */
    struct qn_alloc_unmet alloc; /* of everything but this struct */
    struct qn_alloc_limit limit; /* below it, if the host has set one */
    struct qn_member *member;
    const struct qn_apply_failure *failure; /* the driver's */
    uint64_t unmet; /* requests of memory, for which something was given back */
    qn_time_t poll_at;    /* look at the descriptors, also if not armed */
    qn_time_t spin_until; /* it arms not before */
    uint32_t yields;      /* since it has done something */
    qn_time_t due;        /* `looks`: unless it is due before */

    struct qn_group_opts o; /* `feed` is the next field, or NULL */
    struct qn_feed_opts feed;
    char name[QN_RENDEZVOUS_NAME_MAX + 1]; /* or `socket_fd` of the options */
    struct qn_dialogue_hello hello;        /* application, version, .. */
    int epoll, timer;
    qn_time_t timer_at;    /* what the timer is set to; QN_TIME_NEVER */
    struct qn_group *next; /* of its thread */
    bool has_key; /* it counts among those that need the threads' key */

    int err;
    uint64_t failed_slot; /* of an apply that has ended it */
    int failed_err;
    char why[QN_GROUP_WHY_MAX];
    qn_time_t retry_at, deadline; /* of the step */
    struct qn_rendezvous *rendezvous;
    uint64_t skip;     /* seats not to ask */
    qn_node_t contact; /* the one that is asked */
    uint64_t untold;   /* from MEET on: seats not told of this member */

    int commons_fd; /* -1 */
    struct qn_commons *commons;
    int doorbell_fd[QN_NODES_MAX]; /* [layout.nodes]; -1 */
    bool founds;
    uint64_t first; /* mask: voters with which the group has begun; 0: as far as
                       known here it has not */
    struct qn_dialogue_voters seen; /* the newest that members have said */
    bool sat_for_vote; /* it has the seat of one of them, that had ended */
    bool has_begin;
    uint64_t begin[QN_NODES_MAX]; /* has_begin: the first incarnations; 0: of a
                                     seat that is vacant then */

    qn_time_t deaf_until; /* the listening socket is not watched; 0 */
    struct qn_group_link link[QN_GROUP_LINKS_MAX];
    uint32_t links; /* open ones */
    struct qn_group_known known[QN_GROUP_KNOWN_MAX];
    uint32_t known_count;

    qn_node_t self;
    uint64_t incarnation;
    bool complete;   /* there is a state, */
    bool catches_up; /* ... it serves when it has reached: */
    uint64_t serve_from;
    int end_fd[QN_NODES_MAX]; /* of each present peer's process; -1 */
    uint64_t unwatched;       /* mask: peers of which there is none */
    qn_time_t ends_at;        /* when to look at all peers */
    uint64_t failovers, members, epoch, voters; /* as `changed` has told */
    enum qn_group_phase phase;
    struct qn_group_order order;
    enum qn_group_ordered ordered;
    qn_time_t vote_at; /* it asks for its vote then */
};

/* ---- group.c ------------------------------------------------------------- */

/** The group has ended for this process. @return err. */
int qn_group_fail(struct qn_group *g, int err, const char *why);

/** A whole turn is due now, though the last one has armed. */
void qn_group_kick(struct qn_group *g);
/** So is a turn of the driver: something was asked of it. */
static inline void qn_group_ask(struct qn_group *g)
{
    g->asked = true;
    if (!__builtin_expect(g->kicked, true)) {
        qn_group_kick(g);
    }
}

/** What is 0 gets its default. */
void qn_group_defaults(struct qn_group_opts *o);

/** Has the service what a group of that number of seats needs? */
bool qn_group_can_serve(const struct qn_group_service *s, uint32_t seats);

/** Watch a descriptor. @return QN_OK; QN_ENOMEM. */
int qn_group_watch(struct qn_group *g, int fd, uint32_t what);

/** Close a descriptor that is watched, and set it to -1. Closed alone it would
 *  be watched as long as a forked child has it. -1: nothing. */
void qn_group_unwatch(struct qn_group *g, int *fd);

/** Open the place where the processes meet. @return as qn_rendezvous_open. */
int qn_group_open_place(struct qn_group *g);

/** Leave it, and with it the seat. */
void qn_group_part(struct qn_group *g);

/* ---- group_guest.c: what is the thread's --------------------------------- */

/** What a call sets in its thread, and gives back. */
struct qn_group_call {
    bool nested;                  /* in one of the same group: all is set */
    const struct qn_group *outer; /* the call of another one; NULL */
    int cancel;
    struct qn_assert_hook failed;
};
/** The group whose call the thread is in, the innermost one; NULL. */
extern _Thread_local const struct qn_group *qn_group_inside;
void qn_group_call_enter(const struct qn_group *g, struct qn_group_call *c);
void qn_group_call_leave(const struct qn_group_call *c);

static inline void qn_group_call_begin(const struct qn_group *g,
                                       struct qn_group_call *c)
{
    c->nested = qn_group_inside == g;
    if (!__builtin_expect(c->nested, true)) {
        qn_group_call_enter(g, c);
    }
}

static inline void qn_group_call_end(const struct qn_group_call *c)
{
    if (!__builtin_expect(c->nested, true)) {
        qn_group_call_leave(c);
    }
}

/** @return QN_OK; QN_ENOMEM: the process has too many keys of threads. */
int qn_group_threads_init(struct qn_group *g);
/** The group needs it no more. One that was not begun is fine. */
void qn_group_threads_fini(struct qn_group *g);
/** The calling thread is the member: the group ends with it. */
void qn_group_thread_add(struct qn_group *g);
/** That was said, and is not true any more. */
void qn_group_thread_remove(struct qn_group *g);

/* ---- group_enter.c: from the name to a seat ------------------------------ */

int qn_group_enter_turn(struct qn_group *g, qn_time_t now);

/** Members that were not told of this one are told now, it runs. @return when
 *  to come again. */
qn_time_t qn_group_tell_rest(struct qn_group *g, qn_time_t now);

/** Everything of the attempt is given back; a next one begins. */
int qn_group_enter_again(struct qn_group *g);

/** Everything but what qn_group_join has made is given back. */
void qn_group_drop(struct qn_group *g);

/** WELCOME came: take the descriptors. @return QN_OK; else they are closed. */
int qn_group_welcomed(struct qn_group *g, const struct qn_dialogue_layout *l,
                      const int *fds);

/** A member of these options. */
bool qn_group_by_memory(const struct qn_dialogue_layout *l);
struct qn_device_opts qn_group_device(const struct qn_dialogue_layout *l);
uint64_t qn_group_ring_bytes(const struct qn_dialogue_layout *l);
uint64_t qn_group_arena_bytes(const struct qn_dialogue_layout *l);
int qn_group_layout(const struct qn_group_opts *o,
                    struct qn_dialogue_layout *l);

/* ---- group_links.c: what guests and members say -------------------------- */

/** A connection; `fd` is taken. @return NULL: closed, there is no room. */
struct qn_group_link *qn_group_link_add(struct qn_group *g, int fd, bool ours,
                                        qn_time_t now);
void qn_group_link_close(struct qn_group *g, struct qn_group_link *l);
/** @return false: it is closed now. */
bool qn_group_link_say(struct qn_group *g, struct qn_group_link *l,
                       const struct qn_dialogue_msg *m, const int *fds,
                       uint32_t count);
/** Tell it of this member. */
bool qn_group_link_introduce(struct qn_group *g, struct qn_group_link *l);
void qn_group_links_accept(struct qn_group *g, qn_time_t now);
/** All that has arrived on a link. */
void qn_group_link_hear(struct qn_group *g, struct qn_group_link *l);
/** Close those that have said nothing for long. @return when to come again. */
qn_time_t qn_group_links_turn(struct qn_group *g, qn_time_t now);
/** BEGIN to all that are connected. */
void qn_group_links_begin(struct qn_group *g);
/** Close those that this process has made. */
void qn_group_links_close_ours(struct qn_group *g);

/* ---- group_start.c: from the peers to a member that runs ----------------- */

int qn_group_member_make(struct qn_group *g);
/** An incarnation; its fd is taken. @return QN_OK, also if it was known; else
 * as qn_member_peer_up; QN_EDQUOT: too many. */
int qn_group_acquaint(struct qn_group *g, const struct qn_group_known *like);
/** Mask of the seats in `begin`. */
uint64_t qn_group_first(const struct qn_group *g);
/** The group begins with this incarnation, among others, if all are there. */
int qn_group_assemble_turn(struct qn_group *g);
/** The group has begun before. */
int qn_group_start_later(struct qn_group *g);
/** Of seat 0, as its liveness word says. */
bool qn_group_founder_ended(const struct qn_group *g);
void qn_group_forget_known(struct qn_group *g);

/* ---- group_ends.c: ends of peers, seen at once --------------------------- */

/** It is present from here on: be told when its process ends. */
void qn_group_ends_watch(struct qn_group *g, qn_node_t node);
/** It is not present any more. */
void qn_group_ends_forget(struct qn_group *g, qn_node_t node);
/** The descriptor of its process is readable. */
void qn_group_ends_hear(struct qn_group *g, qn_node_t node);
/** @return when to come again, for what is not watched. */
qn_time_t qn_group_ends_turn(struct qn_group *g, qn_time_t now);
/** As seats are left: those that sleep may look. */
void qn_group_ends_tell(const struct qn_group *g);

/* ---- group_serve.c: a member that runs ----------------------------------- */

struct qn_service qn_group_driver_service(struct qn_group *g);
struct qn_member_state qn_group_member_state(struct qn_group *g);
/** @return when the next one is due. */
qn_time_t qn_group_serve_turn(struct qn_group *g, qn_time_t now);
/** A turn of the driver only. @return as qn_group_serve_turn. */
qn_time_t qn_group_serve_between(struct qn_group *g, qn_time_t now);

/** @return QN_OK: the host may ask for something. */
int qn_group_may_ask(const struct qn_group *g);
qn_time_t qn_group_deadline(const struct qn_group *g, uint64_t timeout);

/* ---- group_change.c: orders to change the voters ------------------------- */

/** Give orders to the driver, and tell of their ends. Not inside its turn.
 *  @return when to come again, unless the driver says so before. */
qn_time_t qn_group_change_turn(struct qn_group *g, qn_time_t now);
/** The driver has an outcome that was not taken yet, or was not given an order
 *  that may be given. */
bool qn_group_change_due(const struct qn_group *g, qn_time_t now);
/** This process is no member any more. @param removed  Because its seat has
 *  lost its vote. */
void qn_group_change_end(struct qn_group *g, bool removed);

#endif
