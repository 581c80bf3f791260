#ifndef QN_TESTS_SUPPORT_SMALL_SERVER_H
#define QN_TESTS_SUPPORT_SMALL_SERVER_H

/**
 * The supervisor with small replicas: they keep to
 * kvs/control/control_protocol.h, and answer each connection with one line:
 * their node, process and core, whom they know to be gone, their own
 * incarnation and the last one they know of nodes 0 to 2. The server runs in a
 * process of its own; the test reads its line of readiness and waits for its
 * end.
 */

#include <signal.h>
#include <sys/types.h>

#include "kvs/supervisor/supervisor.h"

#define SMALL_ALL 64

/** The behaviour of the replicas of servers launched from now on. */
struct small_mood {
    int fail_node;  /* cannot start; -1: all can */
    int crash_node; /* dies before it is ready; -1 */
    int stubborn;   /* does not drain; -1 */
    int owing;      /* drains, but has 7 outstanding replies; -1 */
    int weak;       /* later incarnations die before any message; -1 */
    int poor;       /* later incarnations report that they cannot start; -1 */
    int owner;      /* first incarnation owns the accept register; -1 */
    int successor;  /* owns it as soon as another one has ended; -1 */
    int slow;   /* later incarnations never become complete; SMALL_ALL; -1 */
    int narrow; /* 1: control sockets have room for few messages; -1 */
};
#define SMALL_MOOD                                                             \
    {                                                                          \
        -1, -1, -1, -1, -1, -1, -1, -1, -1, -1                                 \
    }
extern struct small_mood mood;

struct server {
    pid_t pid;
    int out; /* line of readiness */
    int log; /* log lines, and the reason why it could not start */
    char ready[4096];
    uint32_t port;
    uint32_t own[QN_NODES_MAX];
};

/** A server with `replicas` replicas, on free ports. */
struct qn_config small_config(uint32_t replicas);

/** Starts it; waits until it is ready. */
void launch(struct server *s, const struct qn_config *c);
void start(struct server *s, const struct qn_config *c);

/** Ends it by SIGTERM, normally. */
void end(struct server *s);

/** Waits for its end. */
int status_of(const struct server *s);

/** Reads up to the end of a line, or to the end. */
void read_line(int fd, char *text, size_t cap);

/** All log lines, until the last process that can write there has ended. */
const char *rest_of_log(const struct server *s);
uint32_t lines_in(const char *text);

struct reply {
    uint32_t node;
    int pid;
    int cpu;
    unsigned long long gone;
    unsigned long long life; /* its own */
    unsigned long long
        known[3];   /* by node; 0: none. Its own entry: a former incarnation */
    unsigned peers; /* number of incarnations it was introduced to */
};

/** false: no listener, or the connection was closed. */
bool ask(uint32_t port, struct reply *r);

/** It ends with status 2 and one line that contains `reason`. */
void expect_refusal(const struct qn_config *c, const char *reason);

#endif
