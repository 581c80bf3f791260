#ifndef QN_TESTS_UNIT_KVS_SUPERVISION_FIXTURE_H
#define QN_TESTS_UNIT_KVS_SUPERVISION_FIXTURE_H

/**
 * A supervisor without processes: a test gives events and looks at the actions
 * of the last step. Time is a number. Processes have the ids 100 + node +
 * 10 * incarnation.
 */

#include "kvs/supervision/supervision.h"

struct bench {
    struct qn_supervision s;
    struct qn_supervision_actions out; /* of the last step */
    struct qn_supervision_facts facts; /* go with each event */
    qn_time_t now;
    int steps;
};

/** `n` replicas, restarted, with the memory acceptor. */
struct qn_supervision_opts opts_of(uint32_t n);

/** A new group, nothing has happened. */
void bench_init(struct bench *b, uint32_t n);

/** All `n` are serving. */
void bench_serve(struct bench *b, uint32_t n);

/** One step. */
void step(struct bench *b, struct qn_supervision_event e);

void timer(struct bench *b);
/** TIMER, `ms` later. */
void later(struct bench *b, uint64_t ms);
/** The result of an ordered spawn. */
void spawned(struct bench *b, qn_node_t i);
void spawn_failed(struct bench *b, qn_node_t i, int err);
/** The end of its process, with a status of waitpid. */
void ended(struct bench *b, qn_node_t i, int status);
/** Killed by SIGKILL. */
void killed(struct bench *b, qn_node_t i);
void signalled(struct bench *b, int signum);

void says(struct bench *b, qn_node_t from, struct qn_control_msg m);
void says_kind(struct bench *b, qn_node_t from, enum qn_control_kind kind);
/** With its outbox, as the incarnation that the supervisor knows. */
void says_hello(struct bench *b, qn_node_t from);
/** spawned, HELLO, READY. */
void comes(struct bench *b, qn_node_t i);

/** The register is owned by that incarnation; 0: by none. */
void owned_by(struct bench *b, qn_node_t node, uint64_t incarnation);

/** Actions of that kind in the last step; of that node. */
uint32_t count(const struct bench *b, enum qn_supervision_do kind);
const struct qn_supervision_action *find(const struct bench *b,
                                         enum qn_supervision_do kind,
                                         qn_node_t node);

/** Messages of that kind to `to` in the last step; its first one. */
uint32_t told(const struct bench *b, qn_node_t to, enum qn_control_kind kind);
const struct qn_control_msg *message(const struct bench *b, qn_node_t to,
                                     enum qn_control_kind kind);

/** A log line or line of progress of the last step that holds `text`. */
bool logged(const struct bench *b, const char *text);

/** ms from now to when the replica is started again; -1: it is not. */
int64_t restart_in_ms(const struct bench *b, qn_node_t i);

#define KILLED 9 /* a status of waitpid: by SIGKILL */

#endif
