#ifndef QN_KVS_SUPERVISION_SUPERVISION_ACTION_H
#define QN_KVS_SUPERVISION_SUPERVISION_ACTION_H

/**
 * What a supervisor does: the output of qn_supervision_step, to be done in
 * order.
 *
 * Descriptors are named by their role: the outbox of an incarnation of a node,
 * the control channel of a node, the listening sockets of a node. The shell
 * holds the descriptors of these names.
 *
 * The struct is large enough for the largest step, which is counted below, and
 * each append asserts it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/node.h"
#include "kvs/control/control_protocol.h"

enum qn_supervision_do {
    QN_DO_SPAWN,            /* a process of `node`, `incarnation` at least; ends
                               in SPAWNED or SPAWN_FAILED */
    QN_DO_KILL,             /* send it the signal `number` */
    QN_DO_SEND,             /* `message` to `node`, with `outbox`; kept in order
                               if there is no room */
    QN_DO_SKIP_OBSOLETE,    /* `node` need not hear of incarnations of
                               outbox.node that began and ended while messages
                               wait, but of outbox.incarnation */
    QN_DO_CLOSE_CONTROL,    /* of `node`, and drop what waits for it */
    QN_DO_CLOSE_LISTENER,   /* those of `node` */
    QN_DO_CLOSE_LISTENERS,  /* all */
    QN_DO_KEEP_OUTBOX,      /* the descriptor that came with the message */
    QN_DO_DROP_OUTBOX,      /* `outbox` */
    QN_DO_LOG,              /* `number`: a level; `text` */
    QN_DO_PROGRESS,         /* `text`: a line for the operator of an upgrade */
    QN_DO_ANNOUNCE,         /* the line of readiness */
    QN_DO_BLAME,            /* the server cannot start because of `node`:
                               `number`, a QN_E* */
    QN_DO_ANSWER_SUCCESSOR, /* with the group's formats and options */
    QN_DO_REFUSE_SUCCESSOR, /* try again */
    QN_DO_HANG_UP_SUCCESSOR,
    QN_DO_HAND_OVER, /* leave all to the successor */
    QN_DO_FINISH,    /* end with status `number`; the last action */
};

/** The memory that one incarnation of a node writes. incarnation 0: none. */
struct qn_outbox_name {
    qn_node_t node;
    uint64_t incarnation;
};

struct qn_supervision_action {
    enum qn_supervision_do kind;
    qn_node_t node;
    uint64_t incarnation;
    int number;
    uint32_t text; /* index into qn_supervision_actions.text */
    struct qn_outbox_name outbox;
    struct qn_control_msg message;
};

#define QN_SUPERVISION_TEXT_MAX 256u

/* The largest step is the HELLO of a new incarnation: each peer hears of it
 * (SKIP_OBSOLETE, SEND), and it hears of each peer and of the retained outbox
 * of each (three SENDs), then START. What a step does beside is a constant. */
#define QN_SUPERVISION_ACTIONS_MAX (6u * QN_NODES_MAX + 16u)

/* One line for each replica (TAKE_OVER, UPGRADE), and a constant. */
#define QN_SUPERVISION_TEXTS_MAX (QN_NODES_MAX + 8u)

struct qn_supervision_actions {
    uint32_t count;
    uint32_t texts;
    qn_time_t deadline; /* ns; TIMER is due; QN_TIME_NEVER: not at all */
    struct qn_supervision_action action[QN_SUPERVISION_ACTIONS_MAX];
    char text[QN_SUPERVISION_TEXTS_MAX][QN_SUPERVISION_TEXT_MAX];
};

/** Empty. O(1). */
void qn_supervision_actions_clear(struct qn_supervision_actions *out);

/** Append one. `a` is copied. */
void qn_supervision_do(struct qn_supervision_actions *out,
                       const struct qn_supervision_action *a);

/** Append a log line, printf style. */
void qn_supervision_log(struct qn_supervision_actions *out,
                        enum qn_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** Append a line of progress, printf style. */
void qn_supervision_progress(struct qn_supervision_actions *out,
                             const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
