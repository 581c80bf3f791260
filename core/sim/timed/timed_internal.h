#ifndef QN_SIM_TIMED_INTERNAL_H
#define QN_SIM_TIMED_INTERNAL_H

/**
 * The timed machine of the run in progress, shared by the files of this folder:
 * turn.c says which node runs, and until when it waits; access.c what an access
 * costs and sees; device.c what a device costs, queue.c when words arrive;
 * timed.c begins and ends a run.
 */

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/sim/timed/lines.h"
#include "core/sim/timed/time_queue.h"
#include "core/sim/timed/timed.h"

#define QN_TIMED_ORIGIN_NS QN_S /* no clock reads 0 */
#define QN_TIMED_WATCHES   512u /* of a node; the oldest are forgotten */
#define QN_TIMED_TRANSITS  128u /* to a node: a core has room for 118 words */

struct qn_line_watch {
    struct qn_line *line;
    uint32_t node;
    uint32_t seen;                      /* version */
    struct qn_line_watch *next, **from; /* in line->watchers, while it pauses */
};

/* A message of words, until it has arrived. */
struct qn_transit {
    uint32_t queue, position;
    qn_ps_t arrives;
};

struct qn_actor {
    struct qn_timed_node *out;
    struct qn_line *run;           /* of a run of stores; NULL */
    const struct qn_line *awaited; /* that is in use; NULL */
    uint64_t ticket;     /* of those that wait for a line: the order in which
                            they came */
    uint32_t overtaken;  /* while it waits */
    qn_ps_t horizon;     /* of the next pause */
    qn_ps_t looks_until; /* announced; QN_PS_NEVER */
    qn_ps_t stop_from, stop_until;
    qn_ps_t kill_from;
    uint64_t kill_access; /* 0: none */
    double slow, far;     /* factors */
    qn_ps_t slow_from, slow_until, far_from, far_until;
    uint32_t looks;       /* since the last pause */
    uint32_t spins;       /* looks at nothing new, without a pause */
    bool changed;         /* a line changed while it paused */
    bool polls;           /* it has looked at lines since the pause before the
                             one under way */
    bool read_clock;      /* since the last pause */
    qn_ps_t resumed;      /* the last pause ended then */
    qn_ps_t paused_at;    /* the pause under way began then, */
    qn_ps_t look_every;   /* and the node looks at such intervals, which is how
                             long its last turn took; 0: sees a change at once */
    qn_ps_t expected;     /* its next pause ends then; 0: nothing */
    bool paused, blocked; /* in a pause, in qn_timed_wait */
    bool in_queue;        /* its accesses emulate what is hardware */
    bool charged;         /* that operation was */
    uint32_t transits;    /* messages of words on their way to it */
    struct qn_transit *transit;  /* [QN_TIMED_TRANSITS]; NULL: none was sent */
    bool signalled;              /* that is why it continues */
    uint32_t watches;            /* of watch */
    uint32_t next;               /* watch to be replaced when it is full */
    struct qn_line_watch *watch; /* [QN_TIMED_WATCHES] */
};

struct qn_timed_machine {
    const struct qn_timed_opts *o;
    struct qn_timed_result *out;
    struct qn_prices *prices;
    struct qn_lines *lines;
    struct qn_time_queue queue;
    struct qn_actor *actor;      /* [nodes] */
    const struct qn_line *stale; /* the load that is due sees its `before` */
    uint64_t tickets;            /* that were drawn */
    qn_ps_t until;
};

extern struct qn_timed_machine qn_timed;

static inline struct qn_actor *qn_timed_self(void)
{
    return &qn_timed.actor[qn_sim.self];
}

static inline void qn_timed_tell(struct qn_timed_event e)
{
    if (qn_timed.o->event != NULL) {
        e.node = qn_sim.self;
        qn_timed.o->event(qn_timed.o->event_ctx != NULL ? qn_timed.o->event_ctx
                                                        : qn_timed.o->ctx,
                          &e);
    }
}

static inline void qn_timed_hash(uint64_t x)
{
    qn_timed.out->hash = qn_time_queue_mix(qn_timed.out->hash ^ x) +
                         UINT64_C(0x9e3779b97f4a7c15);
}

static inline qn_ps_t qn_timed_times(qn_ps_t price, double factor)
{
    return factor == 1 ? price : (qn_ps_t)((double)price * factor);
}

static inline bool qn_timed_within(qn_ps_t now, qn_ps_t from, qn_ps_t until)
{
    return now >= from && now < until;
}

/* ---- turn.c ---- */

/** Each price is up to `jitter` larger, drawn for the access. */
qn_ps_t qn_timed_jittered(const struct qn_actor *a, qn_ps_t price);

/** The node's run of stores is over: wake those that watch its line. */
void qn_timed_close_run(struct qn_actor *a);

/** The node at the head of the queue is due. @return false: it has to wait. */
bool qn_timed_begins(uint32_t node, qn_ps_t time);

/** Wait in the queue until `time`, or until a change comes earlier. @return
 *  when: the node's clock from now on. */
qn_ps_t qn_timed_wait_until(qn_ps_t time);

/** Others run; returns when this node was made to run again. */
void qn_timed_yield(void);

/** Time that no other node sees, but those on the same core. */
void qn_timed_spend(qn_ps_t ps, qn_ps_t *account);

/** In front of each access: it is this node's turn. May not return: kill. */
void qn_timed_take_turn(struct qn_actor *a);

void qn_timed_watch(struct qn_actor *a, struct qn_line *line, uint32_t version);
void qn_timed_forget_watches(struct qn_actor *a);

/* For struct qn_sim_scheduler. */
void qn_timed_pause(void);
void qn_timed_leave(void);
void qn_timed_woken(uint32_t node);

/* ---- queue.c ---- */

bool qn_timed_queue(const struct qn_queue_op *op);

/* ---- bulk.c ---- */

bool qn_timed_bulk(void *to, const void *from, size_t n, bool moves);

/* ---- access.c ---- */

void qn_timed_point(const struct qn_sim_access *x);
struct qn_sim_memory qn_timed_memory(void);

#endif
