/*
 * A member in its process. Its state is static, as a process has one member; a
 * snapshot is built beside the state, as a service would. What the test asks is
 * answered between turns, so a report is that of a member at rest.
 */
#include "tests/unit/paxos/group/group_process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "paxos/group/group_internal.h"

static struct member {
    struct qn_group *group;
    struct group_world_state state, cut, built;
    bool cut_given;
    bool holds; /* a cut is not given yet */
    struct group_world_report r;
    uint64_t wanted, timeout;
    uint64_t bytes_at_barrier; /* proposed at the end of each; 0: nothing */
    uint64_t results; /* of the own apply, not told yet: what they must be */
    uint64_t expected[1 << 16];
    uint64_t told;
    bool reads_nothing, reads_no_feed;
    struct group_world_shared *shared;
    struct group_world_kept *kept; /* in it */
    bool subscribed;
    uint32_t subscription;
    int fail_err;       /* of `apply`, */
    uint64_t fail_left; /* ... so often more */
    int kept_before;    /* by exec */
    bool stays;         /* after it has left */
    struct group_faults faults;
} me;

static int on_apply(void *ctx, const struct qn_group_command *c,
                    uint64_t *result)
{
    struct member *m = ctx;
    const uint8_t *b = c->bytes;
    uint64_t h = m->state.digest;
    if (m->fail_left > 0) {
        m->fail_left--;
        m->r.failed++;
        return m->fail_err;
    }
    for (size_t i = 0; i < c->len; i += 1 + c->len / 64) {
        h = (h ^ b[i]) * 1099511628211u;
    }
    if (m->shared != NULL) {
        uint64_t number = 0;
        memcpy(&number, b, QN_MIN(c->len, sizeof number));
        m->shared->slot[number % GROUP_WORLD_COMMANDS] = c->slot;
    }
    m->state.digest = (h ^ (c->number << 8 | c->seat)) * 1099511628211u;
    m->state.commands++;
    m->state.of_seat[c->seat]++;
    if (c->mine) {
        m->expected[m->results++ & 0xffff] = m->state.digest;
    }
    *result = m->state.digest;
    return QN_OK;
}

static int on_begin(void *ctx)
{
    struct member *m = ctx;
    m->cut = m->state;
    m->cut_given = false;
    return QN_OK;
}

static int on_next(void *ctx, void *bytes, size_t cap, size_t *len)
{
    struct member *m = ctx;
    if (m->holds) {
        return QN_EAGAIN;
    }
    if (m->cut_given) {
        return QN_ENOENT;
    }
    QN_ASSERT(cap >= QN_GROUP_CUT_BYTES);
    memcpy(bytes, &m->cut, sizeof m->cut);
    *len = sizeof m->cut;
    m->cut_given = true;
    return QN_OK;
}

static void on_end(void *ctx)
{
    ((struct member *)ctx)->cut_given = true;
}

static int on_read(void *ctx, const void *bytes, size_t len)
{
    struct member *m = ctx;
    if (m->reads_nothing) {
        return QN_EIO;
    }
    QN_ASSERT(len == sizeof m->built);
    memcpy(&m->built, bytes, len);
    return QN_OK;
}

static int on_finish(void *ctx)
{
    (void)ctx;
    return QN_OK;
}

static void on_install(void *ctx)
{
    struct member *m = ctx;
    m->state = m->built;
}

static void on_abandon(void *ctx)
{
    ((struct member *)ctx)->built = (struct group_world_state){0};
}

static void on_done(void *ctx, int err, uint64_t result)
{
    struct member *m = ctx;
    if (err == QN_OK) {
        /* results of those that were given up were not told */
        while (m->told < m->results &&
               m->expected[m->told & 0xffff] != result) {
            m->told++;
        }
        m->r.wrong += m->told == m->results;
        m->told++;
        m->r.applied++;
    } else {
        QN_ASSERT(err == QN_EUNKNOWN);
        m->r.unknown++;
    }
}

static void on_change(void *ctx, int err, uint64_t result)
{
    struct member *m = ctx;
    (void)result;
    m->r.changes++;
    m->r.change = err;
}

static int propose_one(struct member *m, size_t bytes, uint64_t timeout)
{
    static uint8_t zeros[1 << 21];
    QN_ASSERT(bytes <= sizeof zeros);
    const uint64_t number =
        m->shared != NULL
            ? __atomic_fetch_add(&m->shared->next, 1, __ATOMIC_RELAXED)
            : m->r.asked;
    memcpy(zeros, &number, QN_MIN(bytes, sizeof number));
    int err = qn_group_propose(m->group, zeros, bytes, timeout, on_done, m);
    m->r.last = err;
    m->r.reason = qn_group_reason(m->group);
    m->r.asked += err == QN_OK;
    m->r.refused += err != QN_OK;
    return err;
}

static void on_barrier(void *ctx, int err, uint64_t result)
{
    struct member *m = ctx;
    m->r.barriers += err == QN_OK && result == 0;
    if (m->bytes_at_barrier > 0) {
        (void)propose_one(m, m->bytes_at_barrier, QN_GROUP_FOREVER);
    }
}

static void propose(struct member *m)
{
    while (m->wanted > 0 &&
           propose_one(m, 8 + m->wanted % 32, m->timeout) == QN_OK) {
        m->wanted--;
    }
}

/* ---- its subscriber ------------------------------------------------------ */

static void keep_gap(struct group_world_kept *k, struct qn_feed_position to)
{
    QN_ASSERT(k->gaps < GROUP_WORLD_GAPS);
    k->gap[k->gaps++] =
        (struct qn_feed_record){.kind = QN_FEED_GAP, .at = k->at, .to = to};
    k->at = to;
}

static void keep(struct group_world_kept *k, const struct qn_feed_record *r)
{
    uint64_t number = 0;
    if (r->kind == QN_FEED_GAP) {
        keep_gap(k, r->to);
        return;
    }
    memcpy(&number, r->bytes.data, QN_MIN(r->bytes.len, sizeof number));
    number %= GROUP_WORLD_COMMANDS;
    k->disorder += qn_feed_compare(r->at, k->at) < 0;
    k->again += k->has[number];
    k->has[number] = 1;
    k->seen++;
    k->at = r->to; /* after its work */
}

static int subscribe(struct member *m)
{
    int err = qn_group_feed_subscribe(m->group, &m->kept->at, &m->subscription);
    struct qn_feed_status s;
    if (err == QN_EGONE && qn_group_feed_status(m->group, &s) == QN_OK) {
        keep_gap(m->kept, s.first);
        err = qn_group_feed_subscribe(m->group, &s.first, &m->subscription);
    }
    m->subscribed = err == QN_OK;
    return err;
}

static void follow(struct member *m)
{
    struct qn_feed_record r;
    struct qn_feed_status s;
    if (m->shared == NULL || (!m->subscribed && subscribe(m) != QN_OK) ||
        m->reads_no_feed) {
        return;
    }
    int err = QN_OK;
    while (err == QN_OK) {
        err = qn_group_feed_read(m->group, m->subscription, &r);
        if (err == QN_OK) {
            keep(m->kept, &r);
        } else if (err == QN_EGONE &&
                   qn_group_feed_status(m->group, &s) == QN_OK) {
            keep_gap(m->kept, s.first);
            err = qn_group_feed_seek(m->group, m->subscription, &s.first);
        }
    }
}

/* Descriptors that a program would inherit. */
static int open_after_exec(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        const int flags = fcntl(fd, F_GETFD);
        count += flags >= 0 && (flags & FD_CLOEXEC) == 0;
    }
    return count;
}

/* Mappings that the members share. */
static int shared_mappings(void)
{
    char line[512];
    int count = 0;
    FILE *f = fopen("/proc/self/maps", "re");
    QN_ASSERT(f != NULL);
    while (fgets(line, sizeof line, f) != NULL) {
        count += strstr(line, "memfd:quoin") != NULL;
    }
    fclose(f);
    return count;
}

/* What a child of fork is told: 0 if that is right. */
static int child_is_told(struct member *m)
{
    struct qn_group_status st;
    int wrong = 0;
    wrong += shared_mappings() != 0;
    wrong += qn_group_turn(m->group) != QN_EPERM;
    wrong += qn_group_propose(m->group, "x", 1, 1, on_done, m) != QN_EPERM;
    wrong += qn_group_barrier(m->group, 1, on_done, m) != QN_EPERM;
    wrong += qn_group_change(m->group, &(struct qn_group_change){.seat = 0}, 1,
                             on_change, m) != QN_EPERM;
    qn_group_status(m->group, &st);
    qn_group_leave(m->group);
    return wrong;
}

static void obey_fork(struct member *m, int control)
{
    int pids[2];
    QN_ASSERT(shared_mappings() > 0);
    QN_ASSERT(pipe2(pids, O_CLOEXEC) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(control); /* the test's end says when it is over */
        char wrong = (char)child_is_told(m);
        QN_ASSERT(write(pids[1], &wrong, 1) == 1);
        pause(); /* with all descriptors, until it is killed */
        _exit(0);
    }
    char wrong = 1;
    QN_ASSERT(read(pids[0], &wrong, 1) == 1);
    const int said[2] = {pid, wrong};
    QN_ASSERT(write(control, said, sizeof said) == sizeof said);
}

static uint64_t guests(const struct qn_group *g)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < QN_GROUP_LINKS_MAX; i++) {
        n += g->link[i].fd >= 0 && g->link[i].incarnation != 0;
    }
    return n;
}

/* @return false: the process ends. */
static bool obey(struct member *m, int control)
{
    struct group_order o;
    ssize_t n = recv(control, &o, sizeof o, MSG_DONTWAIT);
    if (n != sizeof o) {
        return n != 0; /* 0: the test has ended */
    }
    switch (o.kind) {
    case ORDER_PROPOSE:
        m->wanted += o.n;
        m->timeout = o.timeout;
        break;
    case ORDER_PROPOSE_ONCE:
        (void)propose_one(m, o.n, o.timeout);
        break;
    case ORDER_BARRIER:
        m->bytes_at_barrier = o.bytes;
        for (uint64_t i = 0; i < o.n; i++) {
            m->r.last =
                qn_group_barrier(m->group, QN_GROUP_FOREVER, on_barrier, m);
            m->r.reason = qn_group_reason(m->group);
        }
        break;
    case ORDER_CHANGE:
        m->r.last =
            qn_group_change(m->group, &o.change, o.timeout, on_change, m);
        if (m->r.last != QN_OK) {
            on_change(m, m->r.last, 0);
        }
        break;
    case ORDER_REPORT:
        m->r.founds = m->group->founds;
        m->r.guests = guests(m->group);
        qn_group_status(m->group, &m->r.status);
        for (uint32_t s = 0; s < QN_GROUP_MEMBERS_MAX; s++) {
            qn_group_seat(m->group, s, &m->r.seat[s]);
        }
        m->r.state = m->state;
        m->r.kept_by_exec = open_after_exec() - m->kept_before;
        snprintf(m->r.why, sizeof m->r.why, "%s", qn_group_why(m->group));
        QN_ASSERT(write(control, &m->r, sizeof m->r) == sizeof m->r);
        break;
    case ORDER_FAIL:
        m->fail_err = (int)(int64_t)o.n;
        m->fail_left = o.timeout;
        break;
    case ORDER_HOLD:
        m->holds = o.n != 0;
        break;
    case ORDER_FORK:
        obey_fork(m, control);
        break;
    case ORDER_EXEC:
        (void)execlp("sleep", "sleep", "1000", (char *)NULL);
        QN_ASSERT(false);
        break;
    case ORDER_PART:
        m->stays = true;
        return false;
    default:
        return false;
    }
    return true;
}

/* As a host does that waits for edges: it looks at the group's descriptor only
 * when epoll says so. */
static void wait_edge(int epoll, bool *due, bool *told)
{
    struct epoll_event e[2];
    int n = epoll_wait(epoll, e, 2, -1);
    for (int i = 0; i < n; i++) {
        *(e[i].data.u32 == 0 ? due : told) = true;
    }
}

static int edges(int group, int control)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data = {.u32 = 0}};
    QN_ASSERT(epoll_ctl(epoll, EPOLL_CTL_ADD, group, &e) == 0);
    e = (struct epoll_event){.events = EPOLLIN, .data = {.u32 = 1}};
    QN_ASSERT(epoll_ctl(epoll, EPOLL_CTL_ADD, control, &e) == 0);
    return epoll;
}

static void loop(struct member *m, int control, enum group_world_loop how)
{
    const int fd = qn_group_fd(m->group);
    const int epoll = how == LOOP_EPOLL_EDGE ? edges(fd, control) : -1;
    bool due = true, told = true;
    for (;;) {
        if (told && !obey(m, control)) {
            break;
        }
        while (due && (m->r.turn = qn_group_turn(m->group)) == QN_GROUP_AGAIN) {
            propose(m);
            follow(m);
            m->r.turns++;
        }
        m->r.turns += due;
        follow(m);
        propose(m); /* after "armed" */
        due = told = false;
        if (epoll >= 0) {
            wait_edge(epoll, &due, &told);
            continue;
        }
        struct pollfd p[2] = {{.fd = m->r.turn < 0 ? -1 : fd, .events = POLLIN},
                              {.fd = control, .events = POLLIN}};
        QN_ASSERT(poll(p, 2, -1) > 0);
        due = p[0].revents != 0;
        told = p[1].revents != 0;
    }
    qn_group_leave(m->group);
    while (m->stays) {
        pause();
    }
}

/* As with a kernel before Linux 5.3. */
static void forbid_pidfd(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog filter = {.len = sizeof code / sizeof *code,
                                .filter = code};
    QN_ASSERT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    QN_ASSERT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

void group_process_limit(pid_t pid, uint32_t spare)
{
    struct rlimit limit;
    char path[64];
    rlim_t n = 0;
    QN_ASSERT(prlimit(pid, RLIMIT_NOFILE, NULL, &limit) == 0);
    for (spare++; spare > 0; n++) {
        struct stat any;
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, (int)n);
        spare -= lstat(path, &any) != 0;
    }
    limit.rlim_cur = n - 1;
    QN_ASSERT(prlimit(pid, RLIMIT_NOFILE, &limit, NULL) == 0);
}

/* What is refused memory has left nothing, and comes again when there is some.
 */
static void join(struct member *m, const struct qn_group_opts *o)
{
    int err = qn_group_join(&m->group, o);
    while (err == QN_ENOMEM && m->faults.plan != NULL) {
        QN_ASSERT(m->faults.plan->blocks == 0);
        m->faults.plan->at = 0;
        err = qn_group_join(&m->group, o);
    }
    QN_ASSERT(err == QN_OK);
}

void group_process_run(const struct group_world *w, uint32_t i, int control)
{
    struct qn_group_opts o = w->opts;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    me.reads_nothing = w->reads_nothing;
    me.reads_no_feed = w->reads_no_feed;
    if (w->no_pidfd) {
        forbid_pidfd();
    }
    if (w->robust != NULL) {
        QN_ASSERT(pthread_mutex_lock(&w->robust[i]) == 0);
    }
    me.shared = w->shared;
    me.kept = me.shared != NULL ? &me.shared->kept[i] : NULL;
    o.service = (struct qn_group_service){.apply = on_apply,
                                          .begin = on_begin,
                                          .next = on_next,
                                          .end = on_end,
                                          .keeps_cut = true,
                                          .read = on_read,
                                          .finish = on_finish,
                                          .install = on_install,
                                          .abandon = on_abandon,
                                          .ctx = &me};
    me.kept_before = open_after_exec();
    if (w->faults != NULL) {
        group_faults_begin(&me.faults, &w->faults[i], &o);
    }
    join(&me, &o);
    if (w->spare > 0) {
        group_process_limit(getpid(), w->spare - 1);
    }
    loop(&me, control, w->loop);
}
