#ifndef QN_TESTS_SUPPORT_SMALL_SERVER_H
#define QN_TESTS_SUPPORT_SMALL_SERVER_H

/**
 * The supervisor with small replicas: they keep to
 * kvs/control/control_protocol.h, and answer each connection with one line:
 * their node, process and core, whom they know to be gone, their own life and
 * the last one they know of nodes 0 to 2. The server runs in a process of its
 * own; the test reads its line of readiness and waits for its end.
 */

#include <signal.h>
#include <sys/types.h>

#include "kvs/supervisor/supervisor.h"

#define SMALL_ALL 64

/** How the replicas of the servers launched from now on behave. */
struct small_mood {
    int fail_node;  /* this one cannot start; -1: all can */
    int crash_node; /* this one dies before it is ready; -1 */
    int stubborn;   /* this one does not drain; -1 */
    int owing;      /* this one drains, but owes 7 replies; -1 */
    int weak;       /* its later lives die before they say anything; -1 */
    int poor;       /* its later lives say that they cannot start; -1 */
    int owner;      /* its first life owns the accept word; -1 */
    int heir;       /* owns it as soon as somebody has ended; -1 */
    int slow;       /* its later lives never become complete; SMALL_ALL; -1 */
    int narrow;     /* 1: control sockets have room for few messages; -1 */
};
#define SMALL_MOOD                                                             \
    {                                                                          \
        -1, -1, -1, -1, -1, -1, -1, -1, -1, -1                                 \
    }
extern struct small_mood mood;

struct server {
    pid_t pid;
    int out; /* line of readiness */
    int log; /* log lines, and why it could not begin */
    char ready[4096];
    uint32_t port;
    uint32_t own[QN_NODES_MAX];
};

/** `replicas` of them, on free ports. */
struct qn_config small_config(uint32_t replicas);

/** Start it; and wait until it is ready. */
void launch(struct server *s, const struct qn_config *c);
void start(struct server *s, const struct qn_config *c);

/** End it by SIGTERM, in order. */
void end(struct server *s);

/** Wait for its end. */
int status_of(const struct server *s);

/** Read up to the end of a line, or to the end. */
void read_line(int fd, char *text, size_t cap);

/** All log lines, up to the end of the last process that can write there. */
const char *rest_of_log(const struct server *s);
uint32_t lines_in(const char *text);

struct reply {
    uint32_t node;
    int pid;
    int cpu;
    unsigned long long gone;
    unsigned long long life;     /* its own */
    unsigned long long known[3]; /* by node; 0: none. Of itself: a former one */
    unsigned peers;              /* how many lives it was introduced to */
};

/** false: nobody listens, or hung up on us. */
bool ask(uint32_t port, struct reply *r);

/** It ends with status 2 and one line that holds `reason`. */
void expect_refusal(const struct qn_config *c, const char *reason);

#endif
