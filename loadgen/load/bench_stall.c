#include "core/base/atomic.h"
#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "loadgen/base/options.h"
#include "loadgen/cli/quoin.h"
#include "loadgen/load/load_internal.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/*
 * Does the generator measure what a user would see while a server is stalled?
 *
 * A server in this file answers PING at once, except for 100 ms in each second.
 * It records its actual stalls, so the true latencies are known: a request that
 * is due during a stall waits for its end, all others do not wait. The same
 * load runs twice through the code of `quoin load`: as an open and as a closed
 * loop. test_load_stall.c checks both in virtual time; here the clock is real,
 * and the scheduler adds to both.
 */

enum { STALLS_MAX = 3600, SECONDS_MAX = 1200, CONNECTIONS = 20, RATE = 10000 };

static const qn_time_t stall_ns = 100 * QN_MS;
/* Bytes of a PING ("*1 $4 PING"); the reply follows. */
enum { PING_BYTES = 14, BATCH = 1024 };
static const char pong[] = "+PONG\r\n";

struct stalling {
    int listener;
    int epoll;
    uint16_t port;
    qn_a32 stop;
    pthread_t thread;
    uint32_t stalls; /* read after the thread has ended */
    struct {
        qn_time_t from;
        qn_time_t to;
    } stall[STALLS_MAX];
};

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "quoin bench stall: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- the server ---- */

static void watch(struct stalling *s, int fd)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) != 0) {
        fail("epoll");
    }
}

static void accept_one(struct stalling *s)
{
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
        fail("accept");
    }
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    watch(s, fd);
}

/* Answer the PINGs of one read. A read ends between two of them, since each
 * write of the generator holds whole requests and is far smaller than the
 * socket buffer. */
static void answer(int fd)
{
    char in[PING_BYTES * BATCH];
    char out[sizeof pong * BATCH];
    size_t len = 0;
    ssize_t n = read(fd, in, sizeof in);
    if (n <= 0) {
        close(fd);
        return;
    }
    for (ssize_t i = 0; i < n / PING_BYTES; i++) {
        memcpy(out + len, pong, sizeof pong - 1);
        len += sizeof pong - 1;
    }
    if (write(fd, out, len) != (ssize_t)len) {
        close(fd);
    }
}

static void stall(struct stalling *s)
{
    qn_time_t from = qn_clock_now();
    qn_time_t to = from + stall_ns;
    const struct timespec until = {.tv_sec = (time_t)(to / QN_S),
                                   .tv_nsec = (long)(to % QN_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
    }
    if (s->stalls < STALLS_MAX) {
        s->stall[s->stalls].from = from;
        s->stall[s->stalls++].to = qn_clock_now();
    }
}

static void *serve(void *stalling)
{
    struct stalling *s = stalling;
    qn_time_t next = qn_clock_now() + QN_S;
    while (qn_load(&s->stop, QN_RELAXED) == 0) {
        struct epoll_event ev[64];
        qn_time_t now = qn_clock_now();
        if (now >= next) {
            stall(s);
            next += QN_S;
        }
        int timeout = now >= next ? 0 : (int)((next - now) / QN_MS) + 1;
        int n = epoll_wait(s->epoll, ev, QN_ARRAY_COUNT(ev), timeout);
        for (int i = 0; i < n; i++) {
            if (ev[i].data.fd == s->listener) {
                accept_one(s);
            } else {
                answer(ev[i].data.fd);
            }
        }
    }
    return NULL;
}

static void start_server(struct stalling *s)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t len = sizeof addr;
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (s->listener < 0 || s->epoll < 0 ||
        bind(s->listener, (struct sockaddr *)&addr, len) != 0 ||
        listen(s->listener, CONNECTIONS * 4) != 0 ||
        getsockname(s->listener, (struct sockaddr *)&addr, &len) != 0) {
        fail("cannot listen");
    }
    s->port = ntohs(addr.sin_port);
    watch(s, s->listener);
    if (pthread_create(&s->thread, NULL, serve, s) != 0) {
        fail("cannot start a thread");
    }
}

static void stop_server(struct stalling *s)
{
    /* relaxed: only the flag is read. The thread checks it within a second. */
    qn_store(&s->stop, 1, QN_RELAXED);
    pthread_join(s->thread, NULL);
    close(s->epoll);
    close(s->listener);
}

/* ---- true and measured latencies ---- */

static int compare(const void *a, const void *b)
{
    qn_time_t x = *(const qn_time_t *)a;
    qn_time_t y = *(const qn_time_t *)b;
    return (x > y) - (x < y);
}

/* True p99 of requests at RATE in [from, to): each waits for the end of a
 * stall. */
static qn_time_t true_p99(const struct stalling *s, qn_time_t from,
                          qn_time_t to)
{
    size_t n = (size_t)((double)(to - from) / 1e9 * RATE);
    qn_time_t *wait = calloc(n + 1, sizeof *wait);
    if (wait == NULL) {
        fail("cannot compute the true latencies");
    }
    uint32_t k = 0;
    for (size_t i = 0; i < n; i++) {
        qn_time_t at = from + (2 * i + 1) * QN_S / (2 * RATE);
        while (k < s->stalls && s->stall[k].to <= at) {
            k++;
        }
        wait[i] =
            k < s->stalls && s->stall[k].from <= at ? s->stall[k].to - at : 0;
    }
    qsort(wait, n, sizeof *wait, compare);
    qn_time_t p99 = n > 0 ? wait[n - 1 - n / 100] : 0;
    free(wait);
    return p99;
}

struct seen {
    double ops_per_s;
    uint64_t p99;
    uint64_t max;
    qn_time_t from;
    qn_time_t to;
};

static void drive(struct seen *seen, uint16_t port, bool open, double seconds)
{
    static struct qn_load l;
    char to[32];
    char time[32];
    char connections[16];
    char rate[16];
    snprintf(to, sizeof to, "127.0.0.1:%u", port);
    snprintf(time, sizeof time, "%f", seconds);
    snprintf(connections, sizeof connections, "%d", CONNECTIONS);
    snprintf(rate, sizeof rate, "%d", RATE);
    char *argv[] = {"load",      "--to",     to,     "--connections",
                    connections, "--mix",    "ping", "--keys",
                    "1",         "--warmup", "0.2",  "--seconds",
                    time,        "--rate",   rate};
    int argc = (int)QN_ARRAY_COUNT(argv) - (open ? 0 : 2);
    int status;
    if (!qn_load_options(&l, argc, argv, &status)) {
        exit(1);
    }
    l.output.live = false;
    if (qn_load_prepare(&l) != QN_OK || qn_load_run(&l) != QN_OK) {
        fail("the load failed");
    }
    const struct qn_op_stats *op = &l.total->op[QN_OP_PING];
    *seen = (struct seen){
        .ops_per_s = (double)op->ops / l.measured,
        .p99 = qn_histogram_quantile(&op->latency, 0.99),
        .max = op->latency.max,
        .from = l.plan.measure_from,
        .to = l.plan.measure_to,
    };
    qn_load_clean_up(&l);
}

static void print_row(const char *name, const struct seen *s, qn_time_t truth)
{
    fprintf(stderr, "%-11s %9.0f %12.2f %12.2f %12.2f\n", name, s->ops_per_s,
            (double)s->p99 / 1e6, (double)truth / 1e6, (double)s->max / 1e6);
    printf("  \"%s\": {\"ops_per_s\": %.0f, \"p99_ms\": %.3f, "
           "\"true_p99_ms\": %.3f, \"max_ms\": %.3f}",
           name, s->ops_per_s, (double)s->p99 / 1e6, (double)truth / 1e6,
           (double)s->max / 1e6);
}

static const char summary[] =
    "Does the generator measure what a user would see? Drives a server that\n"
    "stalls for 100 ms in each second, with an open and with a closed loop, "
    "and\n"
    "compares their p99 with the true one at 10000 requests per second.";

static const struct qn_option table[] = {QN_OPTION(
    "seconds", "S", qn_option_double, 0, "duration of each load (5)")};

int qn_bench_stall(int argc, char **argv)
{
    static struct stalling server;
    double seconds = 5;
    const struct qn_options o = {"quoin bench stall", summary, table,
                                 QN_ARRAY_COUNT(table), &seconds};
    int status;
    if (!qn_options_parse(&o, argc, argv, &status)) {
        return status;
    }
    if (seconds == 0 || seconds > SECONDS_MAX) {
        fprintf(
            stderr,
            "quoin bench stall: --seconds must be more than 0 and at most %d\n",
            SECONDS_MAX);
        return 2;
    }
    struct seen open;
    struct seen closed;
    start_server(&server);
    drive(&open, server.port, true, seconds);
    drive(&closed, server.port, false, seconds);
    stop_server(&server);
    fprintf(stderr, "loop            ops/s       p99 ms   true p99 ms"
                    "       max ms\n");
    printf("{\n");
    print_row("open", &open, true_p99(&server, open.from, open.to));
    printf(",\n");
    print_row("closed", &closed, true_p99(&server, closed.from, closed.to));
    printf("\n}\n");
    return fflush(stdout) == 0 ? 0 : 1;
}
