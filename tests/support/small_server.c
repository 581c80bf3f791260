/* See small_server.h. */
#include "tests/support/small_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/log.h"
#include "core/place/commons.h"
#include "core/place/outbox.h"
#include "kvs/control/control_channel.h"
#include "tests/support/test.h"

/* ---- a small replica ----------------------------------------------------- */

struct small_mood mood = SMALL_MOOD;

static uint64_t gone;
static uint64_t known[QN_NODES_MAX];
static unsigned peers;

static void answer(const struct qn_replica_spec *b, int listener)
{
    char line[160];
    int fd = accept(listener, NULL, NULL);
    if (fd >= 0) {
        int n = snprintf(
            line, sizeof line, "%u %d %d %llu %llu %llu %llu %llu %u\n",
            b->self, (int)getpid(), sched_getcpu(), (unsigned long long)gone,
            (unsigned long long)b->incarnation, (unsigned long long)known[0],
            (unsigned long long)known[1], (unsigned long long)known[2], peers);
        ssize_t sent = write(fd, line, (size_t)n);
        (void)sent;
        close(fd);
    }
}

/* News of a node come in the order of its incarnations; anything else ends this
 * replica. */
static void peer_up(const struct qn_ctl_peer_up *e)
{
    uint64_t bit = (uint64_t)1 << e->node;
    if (e->incarnation <= known[e->node] ||
        (known[e->node] != 0 && (gone & bit) == 0)) {
        abort();
    }
    gone &= ~bit;
    known[e->node] = e->incarnation;
    peers++;
}

static void peer_down(const struct qn_ctl_peer_down *e)
{
    if (known[e->node] != 0 && e->incarnation != known[e->node]) {
        abort();
    }
    gone |= (uint64_t)1 << e->node;
    known[e->node] = e->incarnation;
}

static void news(const struct qn_control_msg *m)
{
    if (m->kind == QN_CTL_PEER_UP) {
        peer_up(&m->u.peer_up);
    } else if (m->kind == QN_CTL_PEER_DOWN) {
        peer_down(&m->u.peer_down);
    }
}

static int heard(void *ctx, const struct qn_control_msg *e, int fd)
{
    (void)fd;
    (void)ctx;
    news(e);
    return QN_OK;
}

static int join(const struct qn_replica_spec *b)
{
    static struct qn_outbox *own;
    const struct qn_outbox_opts shape = {.node = b->self,
                                         .nodes = b->nodes,
                                         .incarnation = b->incarnation,
                                         .lane_bytes = 4096,
                                         .numa_node = -1,
                                         .shared = true};
    int err = qn_outbox_create(&own, &shape);
    return err != QN_OK
               ? err
               : qn_control_exchange(b, qn_outbox_fd(own), heard, NULL);
}

static bool is(int moody, const struct qn_replica_spec *b)
{
    return (int)b->self == moody || moody == SMALL_ALL;
}

/* This life owns the accept register from now on. */
static void take_word(const struct qn_replica_spec *b)
{
    struct qn_commons *c = NULL;
    uint64_t epoch;
    uint64_t hi;
    if (qn_commons_map(&c, b->commons_fd, b->nodes, 0) != QN_OK) {
        abort();
    }
    qn_commons_claim(c, true);
    qn_load_pair(qn_commons_word(c), &epoch, &hi);
    qn_commons_owner_set(c, epoch + 1, b->self, b->incarnation);
    if (!qn_cas_pair(qn_commons_word(c), epoch, hi, epoch + 1, hi)) {
        abort();
    }
    qn_commons_destroy(c);
}

/* What the supervisor says. @return true: leave. */
static bool listen_to(const struct qn_replica_spec *b)
{
    struct qn_control_msg e;
    bool leave = false;
    int fd;
    while (qn_control_next(b, &e, &fd) == QN_OK) {
        leave = leave || e.kind == QN_CTL_DRAIN;
        news(&e);
        if (e.kind == QN_CTL_PEER_DOWN && is(mood.successor, b)) {
            take_word(b);
        }
        if (e.kind == QN_CTL_STOP) {
            _exit(0);
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    return leave;
}

static void serve(const struct qn_replica_spec *b)
{
    bool drained = false;
    /* It accepts from all shared sockets, as if all others were stopped. */
    bool complete = b->first || !is(mood.slow, b);
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    int told_to_leave = signalfd(-1, &term, SFD_CLOEXEC);
    for (;;) {
        struct pollfd p[3 + QN_NODES_MAX] = {
            {.fd = b->control, .events = POLLIN},
            {.fd = drained ? -1 : told_to_leave, .events = POLLIN},
            {.fd = drained ? -1 : b->listen_own, .events = POLLIN}};
        for (uint32_t i = 0; i < b->nodes; i++) {
            p[3 + i] = (struct pollfd){
                .fd = drained || !complete ? -1 : b->listen_shared[i],
                .events = POLLIN};
        }
        poll(p, 3 + b->nodes, -1);
        bool leave = p[1].revents != 0;
        if (p[0].revents != 0) {
            leave = listen_to(b) || leave;
        }
        if (leave && !drained && (int)b->self != mood.stubborn) {
            drained = true;
            qn_control_drained(b, (int)b->self == mood.owing ? 7 : 0, false);
        }
        for (uint32_t i = 2; i < 3 + b->nodes; i++) {
            if (p[i].revents != 0) {
                answer(b, p[i].fd);
            }
        }
    }
}

/* Never returns: what runs at exit belongs to the test runner. */
static int small_replica(const struct qn_replica_spec *b)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* no process of a failed test remains */
    if (is(mood.crash_node, b) || (is(mood.weak, b) && !b->first)) {
        _exit(3);
    }
    bool fails = is(mood.fail_node, b) || (is(mood.poor, b) && !b->first);
    int err = fails ? QN_ENOMEM : join(b);
    if (err != QN_OK) {
        if (err != QN_EABORTED) {
            qn_control_failed(b, err);
        }
        _exit(err != QN_EABORTED);
    }
    if (b->first && is(mood.owner, b)) {
        take_word(b);
    }
    if (b->first || !is(mood.slow, b)) {
        qn_control_ready(b);
    }
    serve(b);
    _exit(9);
}

/* ---- the supervisor's sockets -------------------------------------------- */

int __real_socketpair(int domain, int type, int protocol, int pair[2]);
int __wrap_socketpair(int domain, int type, int protocol, int pair[2]);

int __wrap_socketpair(int domain, int type, int protocol, int pair[2])
{
    int least = 1; /* the kernel has a minimum, of some messages */
    int err = __real_socketpair(domain, type, protocol, pair);
    if (err == 0 && mood.narrow == 1) {
        (void)setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
    }
    return err;
}

/* ---- a server in its own process ----------------------------------------- */

static size_t lane_bytes(uint32_t cells)
{
    return (size_t)cells * 64;
}

static const struct qn_transport small_transport = {.name = "small",
                                                    .lane_bytes = lane_bytes};

static const struct qn_transport *find(const char *name)
{
    (void)name;
    return &small_transport;
}

static void log_line(void *ctx, enum qn_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    dprintf(STDERR_FILENO, "%s\n", line);
}

static void run_server(const struct qn_config *c)
{
    char why[QN_CONFIG_WHY_MAX] = "";
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    qn_log_set(log_line, NULL, QN_LOG_DEBUG);
    const struct qn_supervisor_opts opts = {.config = c,
                                            .transport = find,
                                            .ready = stdout,
                                            .replica_main = small_replica};
    int status = qn_supervisor_run(&opts, why, sizeof why);
    if (why[0] != '\0') {
        dprintf(STDERR_FILENO, "%s\n", why);
    }
    _exit(status);
}

void launch(struct server *s, const struct qn_config *c)
{
    int out[2];
    int log[2];
    memset(s, 0, sizeof *s);
    cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
    cr_assert_eq(pipe2(log, O_CLOEXEC), 0);
    fflush(NULL);
    s->pid = fork();
    if (s->pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(log[1], STDERR_FILENO);
        run_server(c);
    }
    close(out[1]);
    close(log[1]);
    s->out = out[0];
    s->log = log[0];
}

void read_line(int fd, char *text, size_t cap)
{
    size_t n = 0;
    while (n + 1 < cap && read(fd, text + n, 1) == 1) {
        if (text[n++] == '\n') {
            break;
        }
    }
    text[n] = '\0';
}

void start(struct server *s, const struct qn_config *c)
{
    launch(s, c);
    read_line(s->out, s->ready, sizeof s->ready);
    cr_assert(strstr(s->ready, "quoind is ready on ") != NULL, "'%s'",
              s->ready);
    sscanf(s->ready, "quoind is ready on 127.0.0.1:%u", &s->port);
    const char *at = s->ready;
    for (qn_node_t i = 0; (at = strstr(at, "on port ")) != NULL; i++) {
        sscanf(at, "on port %u", &s->own[i]);
        at++;
    }
}

int status_of(const struct server *s)
{
    int status = -1;
    cr_assert_eq(waitpid(s->pid, &status, 0), s->pid);
    cr_assert(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

const char *rest_of_log(const struct server *s)
{
    static char text[8192];
    size_t n = 0;
    ssize_t got;
    while ((got = read(s->log, text + n, sizeof text - 1 - n)) > 0) {
        n += (size_t)got;
    }
    text[n] = '\0';
    return text;
}

uint32_t lines_in(const char *text)
{
    uint32_t n = 0;
    for (; *text != '\0'; text++) {
        n += *text == '\n';
    }
    return n;
}

bool ask(uint32_t port, struct reply *r)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char line[160] = "";
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0) {
        read_line(fd, line, sizeof line);
    }
    close(fd);
    return sscanf(line, "%u %d %d %llu %llu %llu %llu %llu %u", &r->node,
                  &r->pid, &r->cpu, &r->gone, &r->life, &r->known[0],
                  &r->known[1], &r->known[2], &r->peers) == 9;
}

struct qn_config small_config(uint32_t replicas)
{
    struct qn_config c;
    qn_config_init(&c);
    c.maxmemory = 1 << 20; /* no line in the log explains it */
    c.replicas = c.replicas_max = replicas;
    c.port = 0;
    c.cells = 16;
    c.restart = false;
    c.commit_timeout = 0; /* a slow machine */
    return c;
}

void end(struct server *s)
{
    kill(s->pid, SIGTERM);
    cr_assert_eq(status_of(s), 0);
    close(s->out);
    close(s->log);
}

void expect_refusal(const struct qn_config *c, const char *reason)
{
    struct server s;
    launch(&s, c);
    cr_expect_eq(status_of(&s), 2, "%s", reason);
    read_line(s.out, s.ready, sizeof s.ready);
    cr_expect_str_eq(s.ready, "");
    const char *log = rest_of_log(&s);
    cr_expect_eq(lines_in(log), 1, "%s", log);
    cr_expect(strstr(log, reason) != NULL, "%s", log);
    close(s.out);
    close(s.log);
}
