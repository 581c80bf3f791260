/*
 * Transports between real threads and real processes, 2 to 16 of them on
 * whatever cores there are: every pair talks on both lanes, sleeping whenever
 * there is nothing to do, so that a lost wake-up or lost room is a hang, which
 * the timeout turns into a failure. Nothing here waits by sleeping for a time.
 *
 * QN_STRESS_MS=n repeats the traffic for about n ms.
 */
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/mesh_of.h"
#include "tests/support/sanitized.h"

static qn_time_t stress_until(void)
{
    const char *ms = getenv("QN_STRESS_MS");
    return ms == NULL ? 0 : qn_clock_now() + (qn_time_t)atoll(ms) * QN_MS;
}

/* What one node has sent to and received from each other one. */
struct traffic {
    struct qn_mesh_end *end;
    uint32_t messages; /* per pair and lane */
    uint32_t sent[QN_NODES_MAX][QN_LANES];
    uint32_t got[QN_NODES_MAX][QN_LANES];
    bool wrong;
};

/* Mostly small, now and then longer than the smallest ring. */
static uint32_t size_of(uint32_t i, enum qn_lane lane)
{
    return i % 50 == 49 ? 3000 : lane == QN_LANE_DIRECT ? i % 57 : i % 200;
}

static bool send_next(struct traffic *t, qn_node_t to, enum qn_lane lane)
{
    uint8_t buf[3000];
    uint32_t i = t->sent[to][lane];
    if (i == t->messages) {
        return false;
    }
    uint32_t len = size_of(i, lane);
    pattern(buf, len, i * QN_NODES_MAX + t->end->self);
    if (qn_qp_try_send(t->end->qp[to][lane], buf, len) != QN_OK) {
        return false;
    }
    t->sent[to][lane]++;
    return true;
}

static bool recv_next(struct traffic *t, qn_node_t from, enum qn_lane lane)
{
    const void *msg;
    size_t len;
    struct qn_qp *qp = t->end->qp[from][lane];
    int rc = qn_qp_peek(qp, &msg, &len);
    if (rc == QN_EAGAIN) {
        return false;
    }
    uint32_t i = t->got[from][lane];
    if (rc != QN_OK || i == t->messages || len != size_of(i, lane) ||
        !pattern_is(msg, len, i * QN_NODES_MAX + from)) {
        fprintf(stderr, "node %u: bad message %u from %u (%s)\n", t->end->self,
                i, from, qn_strerror(rc));
        t->wrong = true;
        return false;
    }
    qn_qp_release(qp);
    t->got[from][lane]++;
    return true;
}

static enum qn_mesh_poll poll_traffic(void *arg)
{
    struct traffic *t = arg;
    bool did = false;
    bool all = true;
    for (qn_node_t i = 0; i < t->end->nodes; i++) {
        for (enum qn_lane l = 0; l < QN_LANES && i != t->end->self; l++) {
            did = send_next(t, i, l) || did;
            did = recv_next(t, i, l) || did;
            all = all && t->sent[i][l] == t->messages &&
                  t->got[i][l] == t->messages;
        }
    }
    return all || t->wrong ? QN_MESH_DONE : did ? QN_MESH_BUSY : QN_MESH_IDLE;
}

/* The last message may still be staged when all has been taken. */
static enum qn_mesh_poll poll_staged(void *arg)
{
    struct traffic *t = arg;
    return qn_mesh_flush(t->end) ? QN_MESH_IDLE : QN_MESH_DONE;
}

static int all_to_all(struct qn_mesh_end *end, void *arg)
{
    struct traffic *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return 1;
    }
    *t = (struct traffic){.end = end, .messages = *(uint32_t *)arg};
    int rc = qn_mesh_wait(end, poll_traffic, t, QN_TIME_NEVER);
    rc = rc != QN_OK ? rc : qn_mesh_wait(end, poll_staged, t, QN_TIME_NEVER);
    bool wrong = t->wrong;
    free(t);
    return rc != QN_OK || wrong;
}

static void run_all_to_all(uint32_t nodes, uint32_t cells, bool processes,
                           uint32_t messages)
{
    qn_time_t until = stress_until();
    FOR_EACH_TRANSPORT(t)
    {
        do {
            struct qn_mesh m;
            if (!make_mesh(&m, t, nodes, cells, processes)) {
                break;
            }
            uint32_t failed = qn_mesh_run(&m, all_to_all, &messages);
            qn_mesh_destroy(&m);
            cr_assert_eq(failed, 0, "%s: %u of %u nodes", t->name, failed,
                         nodes);
        } while (qn_clock_now() < until);
    }
}

Test(transport_threads, two_talk_on_the_smallest_ring, .timeout = 60)
{
    run_all_to_all(2, 16, false, QN_UNSANITIZED(3000, 300));
}

Test(transport_threads, two_talk_on_the_usual_ring, .timeout = 60)
{
    run_all_to_all(2, QN_CELLS_DEFAULT, false, QN_UNSANITIZED(10000, 1000));
}

Test(transport_threads, five_talk_all_to_all, .timeout = 60)
{
    run_all_to_all(5, 16, false, QN_UNSANITIZED(400, 100));
}

Test(transport_threads, sixteen_talk_all_to_all, .timeout = 90)
{
    run_all_to_all(16, 16, false, QN_UNSANITIZED(60, 10));
}

Test(transport_processes, two_talk_on_the_smallest_ring, .timeout = 60)
{
    run_all_to_all(2, 16, true, QN_UNSANITIZED(3000, 300));
}

Test(transport_processes, five_talk_all_to_all, .timeout = 60)
{
    run_all_to_all(5, 16, true, QN_UNSANITIZED(400, 100));
}

Test(transport_processes, sixteen_talk_all_to_all, .timeout = 90)
{
    run_all_to_all(16, 16, true, QN_UNSANITIZED(60, 10));
}

/* A million messages each way (over a device a tenth of it), nearly all of them
 * short: their lengths are those of one generator, which sender and receiver
 * both run. */
#define MANY      1000000u
#define MANY_LONG 5000u /* bytes of the longest */

#define MANY_LESS QN_UNSANITIZED(1u, 100u) /* QN_STRESS_MS: all */

struct many {
    struct qn_qp *qp;
    uint32_t messages, sent, got;
    uint32_t rng_sent, rng_got;
    bool wrong;
};

static uint32_t many_length(uint32_t *rng)
{
    *rng = *rng * 1664525u + 1013904223u;
    uint32_t dice = *rng >> 8;
    return dice % 1024 == 0 ? dice / 1024 % MANY_LONG : dice / 1024 % 64;
}

/* Message `i` ends with its number. */
static bool many_is(const uint8_t *msg, size_t len, uint32_t i)
{
    size_t n = QN_MIN(len, sizeof i);
    return memcmp(msg + len - n, &i, n) == 0;
}

static bool many_send(struct many *m)
{
    uint8_t msg[MANY_LONG] = {0};
    uint32_t rng = m->rng_sent;
    uint32_t len = many_length(&rng);
    size_t n = QN_MIN((size_t)len, sizeof m->sent);
    if (m->sent == m->messages) {
        return false;
    }
    memcpy(msg + len - n, &m->sent, n);
    if (qn_qp_try_send(m->qp, msg, len) != QN_OK) {
        return false;
    }
    m->rng_sent = rng;
    m->sent++;
    return true;
}

static bool many_take(struct many *m)
{
    const void *msg;
    size_t len;
    int rc = qn_qp_peek(m->qp, &msg, &len);
    if (rc == QN_EAGAIN) {
        return false;
    }
    m->wrong = rc != QN_OK || m->got == m->messages ||
               len != many_length(&m->rng_got) || !many_is(msg, len, m->got);
    if (!m->wrong) {
        qn_qp_release(m->qp);
        m->got++;
    }
    return !m->wrong;
}

static enum qn_mesh_poll poll_many(void *arg)
{
    struct many *m = arg;
    bool did = false;
    for (uint32_t i = 0; i < 32; i++) {
        bool sent = many_send(m);
        did = many_take(m) || sent || did;
    }
    bool all = m->sent == m->messages && m->got == m->messages;
    return all || m->wrong ? QN_MESH_DONE : did ? QN_MESH_BUSY : QN_MESH_IDLE;
}

static int exchange_many(struct qn_mesh_end *end, void *arg)
{
    uint32_t all = getenv("QN_STRESS_MS") != NULL ? MANY : MANY / MANY_LESS;
    struct many m = {.qp = end->qp[1 - end->self][QN_LANE_DIRECT],
                     .messages = end->device != NULL ? all / 10 : all};
    (void)arg;
    int rc = qn_mesh_wait(end, poll_many, &m, QN_TIME_NEVER);
    rc = rc != QN_OK ? rc : qn_qp_drain(m.qp, QN_TIME_NEVER);
    return rc != QN_OK || m.wrong;
}

#define ROUNDS QN_UNSANITIZED(200u, 30u)

/* Both send before they receive: neither may wait for the other to read. */
static int exchange_long(struct qn_mesh_end *end, void *arg)
{
    static const uint32_t sizes[] = {QN_MSG_MAX, 0, 56, 57, 20000};
    qn_node_t peer = 1 - end->self;
    struct qn_qp *qp = end->qp[peer][QN_LANE_DIRECT];
    uint8_t *buf = malloc(QN_MSG_MAX);
    int bad = buf == NULL;
    (void)arg;
    for (uint32_t i = 0; i < ROUNDS && !bad; i++) {
        uint32_t size = sizes[i % 5];
        size_t len = 0;
        pattern(buf, size, i);
        bad = qn_qp_send(qp, buf, size, QN_TIME_NEVER) != QN_OK ||
              qn_qp_recv(qp, buf, QN_MSG_MAX, &len, QN_TIME_NEVER) != QN_OK ||
              len != size || !pattern_is(buf, len, i);
    }
    free(buf);
    return bad || qn_qp_drain(qp, QN_TIME_NEVER) != QN_OK;
}

static void run_pair(qn_mesh_fn *fn, uint32_t cells, bool processes)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct qn_mesh m;
        if (make_mesh(&m, t, 2, cells, processes)) {
            cr_assert_eq(qn_mesh_run(&m, fn, NULL), 0, "%s", t->name);
            qn_mesh_destroy(&m);
        }
    }
}

static void run_many(uint32_t cells, bool processes)
{
    run_pair(exchange_many, cells, processes);
}

Test(transport_threads, a_million_messages_of_random_length, .timeout = 120)
{
    run_many(64, false);
}

Test(transport_processes, a_million_messages_of_random_length, .timeout = 120)
{
    run_many(QN_CELLS_DEFAULT, true);
}

Test(transport_threads, waiting_forms_exchange_long_messages, .timeout = 60)
{
    run_pair(exchange_long, 16, false);
    run_pair(exchange_long, QN_CELLS_DEFAULT, false);
}

Test(transport_processes, waiting_forms_exchange_long_messages, .timeout = 60)
{
    run_pair(exchange_long, 16, true);
}

/* One waits for room, the other drains only when it is asked to. */
static int one_way(struct qn_mesh_end *end, void *arg)
{
    struct qn_qp *qp = end->qp[1 - end->self][QN_LANE_TREE];
    uint32_t got = 0;
    size_t len;
    (void)arg;
    for (uint32_t i = 0; i < QN_UNSANITIZED(5000u, 500u); i++) {
        if (end->self == 0) {
            if (qn_qp_send(qp, &i, sizeof i, QN_TIME_NEVER) != QN_OK) {
                return 1;
            }
        } else if (qn_qp_recv(qp, &got, sizeof got, &len, QN_TIME_NEVER) !=
                       QN_OK ||
                   got != i) {
            return 1;
        }
    }
    return 0;
}

Test(transport_threads, a_sender_waits_for_room_and_is_woken, .timeout = 60)
{
    run_pair(one_way, 16, false);
}

Test(transport_processes, a_sender_waits_for_room_and_is_woken, .timeout = 60)
{
    run_pair(one_way, 16, true);
}

Test(transport_threads, waiting_ends_at_the_deadline, .timeout = 20)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct qn_mesh m;
        struct qn_mesh_end end;
        uint8_t buf[8];
        size_t len;
        cr_assert(make_mesh(&m, t, 2, 16, false));
        cr_assert_eq(qn_mesh_open(&m, 0, &end), QN_OK);
        struct qn_qp *qp = end.qp[1][QN_LANE_DIRECT];
        qn_time_t soon = qn_clock_now() + 5 * QN_MS;
        cr_assert_eq(qn_qp_recv(qp, buf, sizeof buf, &len, soon), QN_ETIMEDOUT);
        cr_assert_geq(qn_clock_now(), soon);
        while (qn_qp_try_send(qp, "x", 1) == QN_OK) {
        }
        cr_assert_eq(qn_qp_send(qp, "x", 1, qn_clock_now() + QN_MS),
                     QN_ETIMEDOUT);
        qn_mesh_close(&end);
        qn_mesh_destroy(&m);
    }
}

/* The child of a mesh of processes: node 1. */
static pid_t fork_node_1(struct qn_mesh *m,
                         void (*run)(struct qn_mesh_end *end))
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct qn_mesh_end end;
        if (qn_mesh_open(m, 1, &end) == QN_OK) {
            run(&end);
        }
        _exit(1);
    }
    return pid;
}

/* Sends for ever, long and short. */
static void send_for_ever(struct qn_mesh_end *end)
{
    struct qn_qp *qp = end->qp[0][QN_LANE_DIRECT];
    uint8_t *buf = malloc(QN_MSG_MAX);
    cr_assert_not_null(buf);
    for (uint32_t i = 0;; i++) {
        uint32_t len = (i * 7919) % (i % 8 == 0 ? 60000 : 300);
        pattern(buf, len, i);
        (void)qn_qp_send(qp, buf, len, QN_TIME_NEVER);
    }
}

struct sink {
    struct qn_qp *qp;
    uint8_t *buf;
    uint32_t got;
    uint32_t until;
    int rc;
};

static enum qn_mesh_poll poll_sink(void *arg)
{
    struct sink *s = arg;
    size_t len = 0;
    s->rc = qn_qp_try_recv(s->qp, s->buf, QN_MSG_MAX, &len);
    if (s->rc == QN_EAGAIN) {
        return QN_MESH_IDLE;
    }
    if (s->rc == QN_OK) {
        uint32_t i = s->got;
        cr_assert_eq(len, (i * 7919) % (i % 8 == 0 ? 60000 : 300));
        cr_assert(pattern_is(s->buf, len, i), "message %u", i);
        s->got++;
    }
    return s->rc != QN_OK || s->got == s->until ? QN_MESH_DONE : QN_MESH_BUSY;
}

/* Killed anywhere, it leaves whole messages in order and then nothing. */
Test(transport_processes, killed_in_the_middle_leaves_whole_messages_only,
     .timeout = 60)
{
    FOR_EACH_TRANSPORT(t)
    {
        for (uint32_t round = 0; round < 12; round++) {
            struct qn_mesh m;
            struct qn_mesh_end end;
            if (!make_mesh(&m, t, 2, round % 2 ? 16 : 1024, true)) {
                break;
            }
            cr_assert_eq(qn_mesh_open(&m, 0, &end), QN_OK);
            pid_t pid = fork_node_1(&m, send_for_ever);
            struct sink s = {.qp = end.qp[1][QN_LANE_DIRECT],
                             .buf = malloc(QN_MSG_MAX),
                             .until = 1 + round * 37};
            cr_assert_eq(qn_mesh_wait(&end, poll_sink, &s, QN_TIME_NEVER),
                         QN_OK);
            cr_assert_eq(s.rc, QN_OK);
            kill(pid, SIGKILL);
            cr_assert_eq(waitpid(pid, NULL, 0), pid);
            qn_mesh_down(&end, 1);
            s.until = UINT32_MAX;
            while (poll_sink(&s) != QN_MESH_DONE) {
            }
            cr_assert_eq(s.rc, QN_EPEERDEAD);
            free(s.buf);
            qn_mesh_close(&end);
            qn_mesh_destroy(&m);
        }
    }
}

/* Overwrites all shared memory it can reach, then dies. */
static void run_amok(struct qn_mesh_end *end)
{
    uint32_t x = 77;
    uint8_t *lane = qn_outbox_lane(end->view[1], 0, QN_LANE_DIRECT);
    uint8_t *from = (uint8_t *)qn_outbox_doorbell(end->view[1]);
    uint8_t *to = lane + 16384;
    for (int i = 0; i < 100; i++) {
        (void)qn_qp_try_send(end->qp[0][QN_LANE_DIRECT], "before", 6);
    }
    for (uint8_t *b = from; b < to; b++) {
        x = x * 1664525u + 1013904223u;
        *b = (uint8_t)(x >> 24);
    }
    _exit(0);
}

/* Its peers see damage or silence, and go on with each other. */
Test(transport_processes, one_that_runs_amok_takes_nobody_with_it,
     .timeout = 60)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct qn_mesh m;
        struct qn_mesh_end end[3];
        uint8_t buf[300];
        size_t len;
        if (!is_isolated(t) || !make_mesh(&m, t, 3, 16, true)) {
            continue;
        }
        cr_assert_eq(qn_mesh_open(&m, 0, &end[0]), QN_OK);
        cr_assert_eq(qn_mesh_open(&m, 2, &end[2]), QN_OK);
        pid_t pid = fork_node_1(&m, run_amok);
        int status = 0;
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        for (uint32_t i = 0; i < 2000; i++) {
            struct qn_qp *mad = end[0].qp[1][i % QN_LANES];
            (void)qn_qp_try_recv(mad, buf, sizeof buf, &len);
            (void)qn_qp_try_send(mad, buf, i % 300);
            (void)qn_mesh_flush(&end[0]);
            struct qn_qp *a = end[0].qp[2][QN_LANE_DIRECT];
            struct qn_qp *b = end[2].qp[0][QN_LANE_DIRECT];
            cr_assert_eq(qn_qp_try_send(a, &i, sizeof i), QN_OK);
            cr_assert_eq(qn_qp_try_recv(b, buf, sizeof buf, &len), QN_OK);
            cr_assert(len == sizeof i && memcmp(buf, &i, sizeof i) == 0);
        }
        qn_mesh_close(&end[0]);
        qn_mesh_close(&end[2]);
        qn_mesh_destroy(&m);
    }
}
