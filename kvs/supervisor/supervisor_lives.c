/*
 * Lives of replicas: what is said about them, and the next one after a death.
 *
 * A replica that ends without having been told to is started again: after
 * PAUSE_FIRST_MS when it had lived for a while, in which the others have the
 * cores for themselves and a new leader; else after a pause that doubles, so
 * that one that cannot live costs little. But while no majority lives nobody
 * can take over from a dead leader: then it is started at once, and so is who
 * had been pausing. Its new life has a new incarnation and a new outbox, and
 * gets everything it holds from its peers. One that was stopped (SIGSTOP, a
 * debugger) is no help either: while somebody pauses the kernel is asked who
 * is.
 *
 *     on_end(i)      others: PEER_DOWN(i, old)        pause
 *     fork           i: STARTING
 *     HELLO + outbox i: PEER_UP for each living, PEER_DOWN for each dead, START
 *                    others: PEER_UP(i, new)
 *     READY          i: SERVING
 *
 * A stalled replica hears the news when it resumes
 * (kvs/control/control_backlog.h). Of a node that has had many incarnations
 * meanwhile it hears three things: the end of the one it knows, the one that is
 * still needed (below), and the newest one. A new incarnation in its place
 * would hear of no more.
 *
 * Descriptors of outboxes are kept, so that a new life can map those of the
 * living. One dead life's may be needed too: that of the owner of the accept
 * word, in whose ring the last decided slots lie until somebody has taken over.
 * There is never more than one such life, and it is asked of the commons, which
 * of the dead it is; when the word has moved on, it is let go (within a second,
 * or with the next event).
 *
 * When no complete replica is left, new lives that are on their way would wait
 * for a snapshot for ever: nobody has the data any more, unless all of it is in
 * the ring of the word's owner. They find out by themselves; when none is
 * complete after a while, that is the end (supervisor.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/log.h"
#include "core/place/liveness.h"
#include "kvs/supervisor/supervisor_internal.h"

enum {
    PAUSE_FIRST_MS = 30,
    PAUSE_MAX_MS = 5000,
    PAUSE_NEEDED_MS = 50, /* while no majority runs */
    LONG_LIFE_S = 10,     /* who lived so long has not died of being started */
    KEPT_LOOK_MS = 1000,
    RECOVER_LOOK_MS = 100,
};

/* ---- news ---------------------------------------------------------------- */

static void say_up(struct qn_supervisor *s, qn_node_t to, qn_node_t about,
                   uint64_t inc, int fd)
{
    const struct qn_supervised *r = &s->replica[about];
    bool newest = inc == r->incarnation && r->pid > 0;
    const struct qn_control_msg e = {
        .kind = QN_CTL_PEER_UP,
        .u.peer_up = {.node = about,
                      .incarnation = inc,
                      .pid = newest ? (uint32_t)r->pid : 0}};
    uint64_t *known = &s->replica[to].knows[about];
    *known = QN_MAX(*known, inc);
    qn_supervisor_send(s, to, &e, fd);
}

static void say_down(struct qn_supervisor *s, qn_node_t to, qn_node_t about,
                     uint64_t inc)
{
    const struct qn_control_msg e = {
        .kind = QN_CTL_PEER_DOWN,
        .u.peer_down = {.node = about, .incarnation = inc}};
    qn_supervisor_send(s, to, &e, -1);
}

/* The life of `about` that is dead and still needed; 0: none. */
static uint64_t needed(const struct qn_supervisor *s, qn_node_t about)
{
    const struct qn_kept *k = &s->kept;
    return k->outbox_fd >= 0 && k->node == about ? k->incarnation : 0;
}

/* To all that have been told of the others, or will hear of each when it
 * comes. */
static void say_others_up(struct qn_supervisor *s, qn_node_t about,
                          uint64_t inc, int fd)
{
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        struct qn_supervised *r = &s->replica[i];
        if (i != about && r->hears) {
            qn_control_backlog_skip(&r->news, about, needed(s, about));
            say_up(s, i, about, inc, fd);
        }
    }
}

void qn_supervisor_say_down(struct qn_supervisor *s, qn_node_t about,
                            uint64_t inc)
{
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        if (i != about && s->replica[i].hears) {
            say_down(s, i, about, inc);
        }
    }
}

static void say_go(struct qn_supervisor *s, qn_node_t to)
{
    qn_supervisor_say(s, to, QN_CTL_START);
}

static bool present(const struct qn_supervised *r)
{
    return r->state != QN_SUPERVISED_ENDED && r->outbox_fd >= 0;
}

/* What a later life is told of `about`. Of its own predecessor too. */
static void introduce(struct qn_supervisor *s, qn_node_t to, qn_node_t about)
{
    const struct qn_supervised *r = &s->replica[about];
    const struct qn_kept *k = &s->kept;
    if (k->outbox_fd >= 0 && k->node == about) {
        say_up(s, to, about, k->incarnation, k->outbox_fd);
        say_down(s, to, about, k->incarnation);
    }
    if (about == to) {
        return;
    }
    if (present(r)) {
        say_up(s, to, about, r->incarnation, r->outbox_fd);
    } else {
        say_down(s, to, about, r->ended);
    }
}

void qn_supervisor_catch_up(struct qn_supervisor *s, qn_node_t to)
{
    const struct qn_kept *k = &s->kept;
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        const struct qn_supervised *r = &s->replica[i];
        uint64_t known = s->replica[to].knows[i];
        if (i == to || r->incarnation <= known) {
            continue;
        }
        if (known != 0) {
            say_down(s, to, i, known);
        }
        if (needed(s, i) > known) {
            say_up(s, to, i, k->incarnation, k->outbox_fd);
            say_down(s, to, i, k->incarnation);
        }
        if (present(r)) {
            say_up(s, to, i, r->incarnation, r->outbox_fd);
        }
    }
}

static bool all_have_come(const struct qn_supervisor *s)
{
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        if (!present(&s->replica[i])) {
            return false;
        }
    }
    return true;
}

void qn_supervisor_hello(struct qn_supervisor *s, qn_node_t from, int fd)
{
    struct qn_supervised *r = &s->replica[from];
    r->outbox_fd = fd;
    say_others_up(s, from, r->incarnation, fd);
    if (!r->hears) {
        qn_supervisor_kept_look(s);
        for (qn_node_t i = 0; i < s->config.replicas; i++) {
            introduce(s, from, i);
        }
        r->hears = true;
        say_go(s, from);
    } else if (all_have_come(s)) {
        for (qn_node_t i = 0; i < s->config.replicas; i++) {
            say_go(s, i);
        }
    }
}

void qn_supervisor_ready(struct qn_supervisor *s, qn_node_t from)
{
    struct qn_supervised *r = &s->replica[from];
    r->state = QN_MAX(r->state, QN_SUPERVISED_SERVING);
}

/* ---- the owner of the accept word ---------------------------------------- */

bool qn_supervisor_owns_word(const struct qn_supervisor *s, qn_node_t node,
                             uint64_t inc)
{
    uint64_t epoch;
    uint64_t hi;
    qn_node_t owner;
    uint64_t life;
    qn_load_pair(qn_commons_word(s->commons), &epoch, &hi);
    return qn_commons_owner(s->commons, epoch, &owner, &life) &&
           owner == node && life == inc;
}

void qn_supervisor_kept_look(struct qn_supervisor *s)
{
    struct qn_kept *k = &s->kept;
    if (k->outbox_fd >= 0 &&
        !qn_supervisor_owns_word(s, k->node, k->incarnation)) {
        close(k->outbox_fd);
        k->outbox_fd = -1;
    }
}

/* Its outbox outlives it while the word names it. */
static void outbox_give_up(struct qn_supervisor *s, qn_node_t i)
{
    struct qn_supervised *r = &s->replica[i];
    qn_supervisor_kept_look(s);
    if (qn_supervisor_owns_word(s, i, r->incarnation)) {
        s->kept = (struct qn_kept){.node = i,
                                   .incarnation = r->incarnation,
                                   .outbox_fd = r->outbox_fd};
    } else {
        close(r->outbox_fd);
    }
    r->outbox_fd = -1;
}

/* ---- ends ---------------------------------------------------------------- */

uint32_t qn_supervisor_count(const struct qn_supervisor *s,
                             enum qn_supervised_state from,
                             enum qn_supervised_state to)
{
    uint32_t n = 0;
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        n += s->replica[i].state >= from && s->replica[i].state <= to;
    }
    return n;
}

/* It lives, and was stopped: `PID (name) T ...`. */
static bool is_stopped(const struct qn_supervised *r)
{
    char path[32];
    char text[128];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)r->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        close(fd);
    }
    text[QN_MAX(got, 0)] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end != NULL && (strncmp(name_end, ") T", 3) == 0 ||
                                strncmp(name_end, ") t", 3) == 0);
}

/* So few run that one more is needed for a majority. */
static bool is_needed(const struct qn_supervisor *s)
{
    uint32_t running = 0;
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        const struct qn_supervised *r = &s->replica[i];
        running += r->state != QN_SUPERVISED_ENDED && !is_stopped(r);
    }
    return 2 * running <= s->config.replicas;
}

/* When it is started again, relative to now; or never. */
static qn_time_t pause_of(struct qn_supervisor *s, struct qn_supervised *r,
                          bool left)
{
    if (!s->config.restart || s->draining || left || s->config.replicas == 1) {
        return QN_TIME_NEVER;
    }
    if (qn_clock_now() - r->born >= LONG_LIFE_S * QN_S) {
        r->pause_ms = 0;
    }
    bool first = r->pause_ms == 0;
    uint32_t pause_ms = first ? PAUSE_FIRST_MS : r->pause_ms;
    if (is_needed(s)) {
        pause_ms = first ? 0 : QN_MIN(pause_ms, PAUSE_NEEDED_MS);
    }
    r->pause_ms =
        first ? PAUSE_FIRST_MS : QN_MIN(2 * r->pause_ms, PAUSE_MAX_MS);
    return pause_ms * QN_MS;
}

/* Somebody pauses so long that it matters whether he is needed. */
static bool some_pause(const struct qn_supervisor *s)
{
    qn_time_t soon = qn_clock_now() + PAUSE_NEEDED_MS * QN_MS;
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        qn_time_t at = s->replica[i].restart_at;
        if (at != QN_TIME_NEVER && at > soon) {
            return true;
        }
    }
    return false;
}

/* No majority runs: who pauses is needed, since another died or was stopped. */
static void hurry(struct qn_supervisor *s)
{
    qn_time_t now = qn_clock_now();
    bool needed = is_needed(s);
    for (qn_node_t i = 0; needed && i < s->config.replicas; i++) {
        struct qn_supervised *r = &s->replica[i];
        if (r->restart_at != QN_TIME_NEVER) {
            qn_time_t most = r->pause_ms > PAUSE_FIRST_MS ? PAUSE_NEEDED_MS : 0;
            r->restart_at = QN_MIN(r->restart_at, now + most * QN_MS);
        }
    }
}

static void describe(char *text, size_t cap, const struct qn_supervised *r,
                     int status)
{
    if (r->error != QN_OK) {
        snprintf(text, cap, "cannot start: %s", qn_strerror(r->error));
    } else if (r->pidfd >= 0) { /* only its parent is told how */
        snprintf(text, cap, "has ended");
    } else if (WIFSIGNALED(status)) {
        snprintf(text, cap, "was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else {
        snprintf(text, cap, "has ended with status %d", WEXITSTATUS(status));
    }
}

static void report_end(const struct qn_supervisor *s, qn_node_t i, int status,
                       qn_time_t pause)
{
    char how[96];
    char next[64] = "";
    const struct qn_supervised *r = &s->replica[i];
    describe(how, sizeof how, r, status);
    if (pause != QN_TIME_NEVER && r->pause_ms <= PAUSE_FIRST_MS) {
        snprintf(next, sizeof next, "; starting it again");
    } else if (pause != QN_TIME_NEVER) {
        snprintf(next, sizeof next, "; starting it again in %u ms",
                 (unsigned)(pause / QN_MS));
    }
    qn_log(QN_LOG_WARN, "replica %u (process %d) %s; %u of %u go on%s", i,
           (int)r->pid, how,
           qn_supervisor_count(s, QN_SUPERVISED_SERVING, QN_SUPERVISED_DRAINED),
           s->config.replicas, next);
}

/* It may have been the last one. */
static void note_end(struct qn_supervisor *s, qn_node_t i, int status)
{
    char how[96];
    const struct qn_supervised *r = &s->replica[i];
    describe(how, sizeof how, r, status);
    snprintf(s->last_end, sizeof s->last_end, "replica %u (process %d) %s", i,
             (int)r->pid, how);
}

static void bury(struct qn_supervisor *s, qn_node_t i)
{
    struct qn_supervised *r = &s->replica[i];
    r->state = QN_SUPERVISED_ENDED;
    r->hears = false;
    qn_control_backlog_free(&r->news);
    if (r->control >= 0) {
        close(r->control);
        r->control = -1;
    }
    if (r->outbox_fd >= 0) { /* else nobody has heard of it */
        r->ended = r->incarnation;
        outbox_give_up(s, i);
        qn_supervisor_say_down(s, i, r->incarnation);
    }
}

void qn_supervisor_ended(struct qn_supervisor *s, qn_node_t i, int status)
{
    struct qn_supervised *r = &s->replica[i];
    enum qn_supervised_state was = r->state;
    bool stays = false;
    bool planned = qn_supervisor_upgrade_ended(s, i, &stays);
    /* One that could not be heard has left a mark. */
    bool left =
        stays || (was == QN_SUPERVISED_DRAINED && status == 0) ||
        (r->pidfd >= 0 && qn_liveness_left(s->commons, i, r->incarnation));
    /* One that was on its way had no clients. */
    bool wanted = s->draining && status == 0 && was != QN_SUPERVISED_SERVING;
    s->undrained =
        s->undrained || (s->draining && was == QN_SUPERVISED_SERVING);
    if (was == QN_SUPERVISED_SERVING || was == QN_SUPERVISED_DRAINED) {
        note_end(s, i, status);
    }
    bury(s, i);
    qn_time_t pause = planned ? 0 : pause_of(s, r, left);
    r->restart_at = QN_TIME_NEVER;
    if (pause == QN_TIME_NEVER) {
        qn_listen_close_node(&s->listen, i);
    } else {
        r->restart_at = qn_clock_now() + pause;
        hurry(s);
    }
    if (!wanted && !planned && !r->killed) {
        report_end(s, i, status, pause);
    }
    if (r->pidfd >= 0) {
        close(r->pidfd);
        r->pidfd = -1;
    }
}

/* ---- the next life ------------------------------------------------------- */

static void try_again(struct qn_supervisor *s, qn_node_t i)
{
    struct qn_supervised *r = &s->replica[i];
    r->restart_at = QN_TIME_NEVER;
    char why[QN_CONFIG_WHY_MAX];
    /* Lost if both it and the supervisor had died. */
    if (qn_listen_own(&s->listen, i, why, sizeof why) != QN_OK) {
        qn_log(QN_LOG_WARN, "replica %u has no port of its own: %s", i, why);
    }
    int err = qn_supervisor_bear(s, i);
    if (err != QN_OK) {
        qn_time_t pause = pause_of(s, r, false);
        r->restart_at = qn_clock_now() + QN_MAX(pause, PAUSE_FIRST_MS * QN_MS);
        qn_log(QN_LOG_ERROR, "replica %u cannot be started again: %s", i,
               qn_strerror(err));
    }
}

void qn_supervisor_lives_turn(struct qn_supervisor *s)
{
    qn_supervisor_kept_look(s);
    if (some_pause(s)) {
        hurry(s);
    }
    if (qn_supervisor_recover_holds(s)) {
        return;
    }
    for (qn_node_t i = 0; !s->over && i < s->config.replicas; i++) {
        const struct qn_supervised *r = &s->replica[i];
        if (r->restart_at != QN_TIME_NEVER &&
            (s->draining || r->restart_at <= qn_clock_now())) {
            if (s->draining) {
                s->replica[i].restart_at = QN_TIME_NEVER;
            } else {
                try_again(s, i);
            }
        }
    }
}

int qn_supervisor_lives_wait_ms(const struct qn_supervisor *s)
{
    if (qn_supervisor_recovers(s)) {
        return RECOVER_LOOK_MS;
    }
    int64_t wait = some_pause(s)            ? PAUSE_NEEDED_MS
                   : s->kept.outbox_fd >= 0 ? KEPT_LOOK_MS
                                            : -1;
    qn_time_t now = qn_clock_now();
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        qn_time_t at = s->replica[i].restart_at;
        if (at != QN_TIME_NEVER) {
            qn_time_t left = at - QN_MIN(now, at);
            int64_t ms = (int64_t)((left + QN_MS - 1) / QN_MS);
            wait = wait < 0 ? ms : QN_MIN(wait, ms);
        }
    }
    return (int)wait;
}
