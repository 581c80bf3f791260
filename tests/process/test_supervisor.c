/*
 * The supervisor with small replicas: they keep to kvs/boot.h, and answer each
 * connection with one line: their node, process and core, and whom they know
 * to be gone. The server runs in a process of its own; the test reads its line
 * of readiness and waits for its end.
 */
#include "kvs/supervisor.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/log.h"
#include "tests/support/test.h"

/* ---- a small replica ----------------------------------------------------- */

static struct {
    int fail_node;  /* this one cannot start; -1: all can */
    int crash_node; /* this one dies before it is ready; -1 */
    int stubborn;   /* this one does not drain; -1 */
} mood = {-1, -1, -1};

static void answer(const struct qn_boot *b, int listener, uint64_t gone)
{
    char line[64];
    int fd = accept(listener, NULL, NULL);
    if (fd >= 0) {
        int n =
            snprintf(line, sizeof line, "%u %d %d %llu\n", b->self,
                     (int)getpid(), sched_getcpu(), (unsigned long long)gone);
        ssize_t sent = write(fd, line, (size_t)n);
        (void)sent;
        close(fd);
    }
}

static int join(const struct qn_boot *b)
{
    static struct qn_outbox *own;
    static struct qn_outbox *peer[QN_NODES_MAX];
    const struct qn_outbox_opts shape = {.node = b->self,
                                         .nodes = b->nodes,
                                         .incarnation = b->incarnation,
                                         .lane_bytes = 4096,
                                         .numa_node = -1,
                                         .shared = true};
    int err = qn_outbox_create(&own, &shape);
    return err != QN_OK ? err : qn_boot_exchange(b, own, &shape, peer);
}

static void serve(const struct qn_boot *b)
{
    uint64_t gone = 0;
    bool drained = false;
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    int told_to_leave = signalfd(-1, &term, SFD_CLOEXEC);
    for (;;) {
        struct qn_boot_event e;
        struct pollfd p[4] = {
            {.fd = b->control, .events = POLLIN},
            {.fd = drained ? -1 : b->listen_shared, .events = POLLIN},
            {.fd = drained ? -1 : b->listen_own, .events = POLLIN},
            {.fd = drained ? -1 : told_to_leave, .events = POLLIN}};
        poll(p, 4, -1);
        bool leave = p[3].revents != 0;
        while (p[0].revents != 0 && qn_boot_next_event(b, &e) == QN_OK) {
            leave = leave || e.kind == QN_BOOT_DRAIN;
            if (e.kind == QN_BOOT_PEER_DOWN) {
                gone |= (uint64_t)1 << e.node;
            }
            if (e.kind == QN_BOOT_STOP) {
                _exit(0);
            }
        }
        if (leave && !drained && (int)b->self != mood.stubborn) {
            drained = true;
            qn_boot_notify(b, QN_BOOT_DRAINED);
        }
        for (int i = 1; i < 3; i++) {
            if (p[i].revents != 0) {
                answer(b, p[i].fd, gone);
            }
        }
    }
}

/* Never returns: what runs at exit belongs to the test runner. */
static int small_replica(const struct qn_boot *b)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* of a failed test nothing remains */
    if ((int)b->self == mood.crash_node) {
        abort();
    }
    int err = (int)b->self == mood.fail_node ? QN_ENOMEM : join(b);
    if (err != QN_OK) {
        qn_boot_failed(b, err);
        _exit(1);
    }
    qn_boot_notify(b, QN_BOOT_READY);
    serve(b);
    _exit(9);
}

/* ---- a server in its own process ----------------------------------------- */

struct server {
    pid_t pid;
    int out; /* line of readiness */
    int log; /* log lines, and why it could not begin */
    char ready[4096];
    uint32_t port;
    uint32_t own[QN_NODES_MAX];
};

static size_t lane_bytes(uint32_t cells)
{
    return (size_t)cells * 64;
}

static const struct qn_transport transport = {.name = "small",
                                              .lane_bytes = lane_bytes};

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
                                            .transport = &transport,
                                            .ready = stdout,
                                            .replica_main = small_replica};
    int status = qn_supervisor_run(&opts, why, sizeof why);
    if (why[0] != '\0') {
        dprintf(STDERR_FILENO, "%s\n", why);
    }
    _exit(status);
}

static void launch(struct server *s, const struct qn_config *c)
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

/* Read up to the end of a line, or to the end. */
static void read_line(int fd, char *text, size_t cap)
{
    size_t n = 0;
    while (n + 1 < cap && read(fd, text + n, 1) == 1) {
        if (text[n++] == '\n') {
            break;
        }
    }
    text[n] = '\0';
}

static void start(struct server *s, const struct qn_config *c)
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

static int status_of(const struct server *s)
{
    int status = -1;
    cr_assert_eq(waitpid(s->pid, &status, 0), s->pid);
    cr_assert(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* All log lines, up to the end of the last process that can write there. */
static const char *rest_of_log(const struct server *s)
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

static uint32_t lines_in(const char *text)
{
    uint32_t n = 0;
    for (; *text != '\0'; text++) {
        n += *text == '\n';
    }
    return n;
}

struct reply {
    uint32_t node;
    int pid;
    int cpu;
    unsigned long long gone;
};

/* false: nobody listens, or hung up on us. */
static bool ask(uint32_t port, struct reply *r)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char line[64] = "";
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0) {
        read_line(fd, line, sizeof line);
    }
    close(fd);
    return sscanf(line, "%u %d %d %llu", &r->node, &r->pid, &r->cpu,
                  &r->gone) == 4;
}

static struct qn_config config(uint32_t replicas)
{
    struct qn_config c;
    qn_config_init(&c);
    c.replicas = replicas;
    c.port = 0;
    c.cells = 16;
    return c;
}

static void end(struct server *s)
{
    kill(s->pid, SIGTERM);
    cr_assert_eq(status_of(s), 0);
    close(s->out);
    close(s->log);
}

/* ---- tests --------------------------------------------------------------- */

Test(supervisor, starts_three_replicas_that_answer_everywhere, .timeout = 20)
{
    struct server s;
    struct qn_config c = config(3);
    struct reply r;
    start(&s, &c);
    for (qn_node_t i = 0; i < 3; i++) {
        cr_assert(ask(s.own[i], &r));
        cr_assert_eq(r.node, i);
        cr_assert_neq(r.pid, s.pid);
    }
    cr_assert(ask(s.port, &r));
    end(&s);
    cr_assert_not(ask(s.port, &r));
}

Test(supervisor, replicas_are_named_and_pinned, .timeout = 20)
{
    struct server s;
    struct qn_config c = config(3);
    struct reply r;
    start(&s, &c);
    for (qn_node_t i = 0; i < 3; i++) {
        char path[64];
        char name[32] = "";
        char want[32];
        cpu_set_t mask;
        cr_assert(ask(s.own[i], &r));
        snprintf(path, sizeof path, "/proc/%d/comm", r.pid);
        int fd = open(path, O_RDONLY);
        read_line(fd, name, sizeof name);
        close(fd);
        snprintf(want, sizeof want, "quoind-%u\n", i);
        cr_expect_str_eq(name, want);
        sched_getaffinity(r.pid, sizeof mask, &mask);
        cr_expect_eq(CPU_COUNT(&mask), 1);
        snprintf(want, sizeof want, "replica %u on port", i);
        cr_expect(strstr(s.ready, want) != NULL, "%s", s.ready);
        snprintf(want, sizeof want, "at core %d", r.cpu);
        cr_expect(strstr(s.ready, want) != NULL, "%s", s.ready);
    }
    end(&s);
}

Test(supervisor, the_default_is_at_least_three, .timeout = 20)
{
    struct server s;
    struct qn_config c = config(QN_REPLICAS_AUTO);
    start(&s, &c);
    cr_assert(strstr(s.ready, "replica 2 on port") != NULL, "%s", s.ready);
    cr_assert(strstr(s.ready, "Try: redis-cli -p ") != NULL, "%s", s.ready);
    end(&s);
}

Test(supervisor, one_replica_says_that_nothing_is_replicated, .timeout = 20)
{
    struct server s;
    struct qn_config c = config(1);
    start(&s, &c);
    kill(s.pid, SIGTERM);
    cr_assert_eq(status_of(&s), 0);
    cr_assert(strstr(rest_of_log(&s), "one replica: nothing is replicated") !=
              NULL);
}

Test(supervisor, sixty_four_replicas_start_and_drain, .timeout = 60)
{
    struct server s;
    struct qn_config c = config(64);
    struct reply r;
    start(&s, &c);
    cr_assert(ask(s.own[63], &r));
    cr_assert_eq(r.node, 63);
    end(&s);
}

Test(supervisor, a_death_is_one_line_and_the_others_are_told, .timeout = 20)
{
    struct server s;
    struct qn_config c = config(3);
    struct reply r;
    char line[256];
    char want[128];
    start(&s, &c);
    cr_assert(ask(s.own[1], &r));
    kill(r.pid, SIGKILL);
    read_line(s.log, line, sizeof line);
    snprintf(want, sizeof want,
             "replica 1 (process %d) was ended by signal 9 (Killed); 2 of 3 go "
             "on\n",
             r.pid);
    cr_assert_str_eq(line, want);
    /* The news is on its way before the line is: within a few questions. */
    do {
        cr_assert(ask(s.own[2], &r));
    } while (r.gone == 0);
    cr_assert_eq(r.gone, 1u << 1);
    for (int i = 0; i < 50; i++) {
        cr_assert(ask(s.port, &r), "no connection goes to the dead");
        cr_assert_neq(r.node, 1);
    }
    end(&s);
}

Test(supervisor, ends_with_status_1_when_no_replica_is_left, .timeout = 20)
{
    struct server s;
    struct qn_config c = config(3);
    struct reply r;
    start(&s, &c);
    for (qn_node_t i = 0; i < 3; i++) {
        cr_assert(ask(s.own[i], &r));
        kill(r.pid, SIGKILL);
    }
    cr_assert_eq(status_of(&s), 1);
    cr_assert_eq(lines_in(rest_of_log(&s)), 3);
}

Test(supervisor, a_replica_told_to_leave_leaves_alone, .timeout = 20)
{
    struct server s;
    struct qn_config c = config(3);
    struct reply r;
    char line[256];
    start(&s, &c);
    cr_assert(ask(s.own[0], &r));
    kill(r.pid, SIGTERM);
    read_line(s.log, line, sizeof line);
    cr_assert(strstr(line, "has ended with status 0; 2 of 3 go on") != NULL,
              "%s", line);
    cr_assert(ask(s.own[1], &r));
    end(&s);
}

Test(supervisor, drains_on_each_signal_that_asks_for_it, .timeout = 20)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < 3; i++) {
        struct server s;
        struct qn_config c = config(3);
        start(&s, &c);
        kill(s.pid, signals[i]);
        cr_expect_eq(status_of(&s), 0, "signal %d", signals[i]);
        cr_expect_eq(lines_in(rest_of_log(&s)), 1, "one line: draining");
    }
}

/* As a service manager does it: everybody gets the signal. */
Test(supervisor, drains_when_the_replicas_get_the_signal_too, .timeout = 20)
{
    struct server s;
    struct qn_config c = config(3);
    struct reply r[3];
    start(&s, &c);
    for (qn_node_t i = 0; i < 3; i++) {
        cr_assert(ask(s.own[i], &r[i]));
    }
    kill(s.pid, SIGTERM);
    for (qn_node_t i = 0; i < 3; i++) {
        kill(r[i].pid, SIGTERM);
    }
    cr_assert_eq(status_of(&s), 0);
}

Test(supervisor, a_second_signal_ends_at_once, .timeout = 20)
{
    struct server s;
    struct qn_config c = config(3);
    struct reply r;
    char line[256];
    mood.stubborn = 2;
    start(&s, &c);
    cr_assert(ask(s.own[2], &r));
    kill(s.pid, SIGTERM);
    read_line(s.log, line, sizeof line);
    cr_assert(strstr(line, "draining") != NULL, "%s", line);
    kill(s.pid, SIGINT);
    cr_assert_eq(status_of(&s), 128 + SIGINT);
    cr_assert(kill(r.pid, 0) != 0 && errno == ESRCH);
}

Test(supervisor, nobody_stops_before_all_have_drained, .timeout = 20)
{
    struct server s;
    struct qn_config c = config(3);
    struct reply r;
    char line[256];
    mood.stubborn = 2;
    start(&s, &c);
    cr_assert(ask(s.own[2], &r));
    int stubborn = r.pid;
    cr_assert(ask(s.own[0], &r));
    kill(s.pid, SIGTERM);
    read_line(s.log, line, sizeof line);
    kill(stubborn, SIGKILL);
    read_line(s.log, line, sizeof line);
    cr_assert(strstr(line, "replica 2") != NULL &&
                  strstr(line, "2 of 3 go on") != NULL,
              "the drained ones had waited: %s", line);
    cr_assert_eq(status_of(&s), 0);
}

Test(supervisor, goes_on_serving_when_the_supervisor_is_killed, .timeout = 20)
{
    /* These replicas are told to die with it: only that they see it. The real
     * ones are tested with the real server. */
    struct server s;
    struct server second;
    struct qn_config c = config(3);
    start(&s, &c);
    kill(s.pid, SIGKILL);
    int status;
    waitpid(s.pid, &status, 0);
    rest_of_log(&s); /* until the last replica has ended */
    c.port = s.port;
    c.replica_ports = QN_REPLICA_PORTS_NONE;
    start(&second, &c);
    end(&second);
}

/* ---- what cannot start --------------------------------------------------- */

static void expect_refusal(const struct qn_config *c, const char *reason)
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

Test(supervisor, refuses_what_cannot_work_in_one_line, .timeout = 20)
{
    struct qn_config c = config(2);
    expect_refusal(&c, "the loss of either stops both");
    c = config(3);
    c.cells = 17;
    expect_refusal(&c, "power of two");
    c = config(64);
    c.cells = 65536; /* 63 x 64 x 2 lanes of 4 MiB */
    struct qn_config small = config(3);
    expect_refusal(&c, "use fewer --replicas or --cells");
    snprintf(small.bind, sizeof small.bind, "203.0.113.1");
    expect_refusal(&small, "203.0.113.1");
}

Test(supervisor, refuses_a_second_server_on_its_address, .timeout = 20)
{
    struct server s;
    struct qn_config c = config(3);
    struct reply r;
    start(&s, &c);
    c.port = s.port;
    c.replica_ports = QN_REPLICA_PORTS_NONE;
    expect_refusal(&c, "choose another port");
    for (int i = 0; i < 20; i++) {
        cr_assert(ask(s.port, &r), "the first one is unharmed");
    }
    end(&s);
}

Test(supervisor, a_replica_that_cannot_start_ends_all_in_one_line,
     .timeout = 20)
{
    struct qn_config c = config(3);
    mood.fail_node = 1;
    expect_refusal(&c, "replica 1 of 3 cannot start: not enough memory; use "
                       "fewer --replicas");
}

Test(supervisor, a_replica_that_crashes_at_start_ends_all, .timeout = 20)
{
    struct qn_config c = config(3);
    mood.crash_node = 2;
    expect_refusal(&c, "replica 2 of 3 cannot start: the peer has ended");
}

Test(supervisor, leaves_no_socket_behind, .timeout = 20)
{
    char dir[] = "/tmp/qn-sup-XXXXXX";
    struct qn_config c = config(3);
    struct server s;
    cr_assert_not_null(mkdtemp(dir));
    snprintf(c.unixsocket, sizeof c.unixsocket, "%s/s", dir);
    start(&s, &c);
    cr_assert(strstr(s.ready, "/s.2 at ") != NULL, "%s", s.ready);
    end(&s);
    mood.fail_node = 0;
    expect_refusal(&c, "replica 0 of 3");
    mood.fail_node = -1;
    mood.stubborn = 0;
    start(&s, &c);
    kill(s.pid, SIGTERM);
    read_line(s.log, s.ready, sizeof s.ready);
    kill(s.pid, SIGTERM);
    cr_assert_eq(status_of(&s), 128 + SIGTERM);
    cr_assert_eq(rmdir(dir), 0);
}
