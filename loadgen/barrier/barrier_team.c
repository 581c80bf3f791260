/*
 * The control lies at the beginning of an area, the memory of all subjects
 * behind it. Members join each subject once and keep their places from round to
 * round.
 *
 * The bench waits for members with an end: a program may die. What they take in
 * a round is bounded by the bench, which asks for one barrier first.
 */
#include "loadgen/barrier/barrier_team_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/bits.h"
#include "core/base/err.h"

#define LOOK_S 1   /* between two looks whether a member has died */
#define WAIT_S 120 /* for a round */

/* What a member's thread gets. */
struct member {
    struct qn_barrier_team *team;
    uint32_t index;
};

static size_t control_bytes(void)
{
    return qn_align_up(sizeof(struct qn_barrier_control), QN_CACHELINE);
}

static int make_area(struct qn_barrier_team *t, size_t bytes)
{
    int rc = qn_area_create(&t->area, "quoin-barrier", bytes, true);
    if (rc != QN_OK) {
        return rc;
    }
    t->control = t->area.memory;
    t->control->members = t->members;
    bool good = sem_init(&t->control->done, 1, 0) == 0;
    for (uint32_t i = 0; i < t->members; i++) {
        good = sem_init(&t->control->start[i], 1, 0) == 0 && good;
    }
    return good ? QN_OK : QN_ENOSYS;
}

/* ---- members ------------------------------------------------------------- */

static void run_member(struct qn_barrier_team *t, uint32_t index)
{
    struct qn_barrier_control *c = t->control;
    /* Lines, as a member wants. NULL: as one that has died. */
    struct qn_barrier_client *client =
        qn_alloc_lines(&qn_alloc_malloc, t->subjects * sizeof *client);
    qn_barrier_bind(index);
    for (uint32_t i = 0; client != NULL && i < t->subjects; i++) {
        if (t->refused[i] == QN_OK &&
            qn_barrier_subject_join(&t->subject[i], t->memory[i], index,
                                    t->members, &client[i]) != QN_OK) {
            abort(); /* formatted for this member, which joins once */
        }
    }
    while (client != NULL && qn_barrier_next(c, index)) {
        qn_barrier_round(c, index, qn_barrier_subject_pass,
                         &client[c->subject]);
    }
    qn_alloc_free_lines(&qn_alloc_malloc, client);
}

static void *run_thread(void *arg)
{
    const struct member *m = arg;
    struct qn_barrier_team *t = m->team;
    const uint32_t index = m->index;
    free(arg);
    run_member(t, index);
    return NULL;
}

static int start_thread(struct qn_barrier_team *t, uint32_t index)
{
    struct member *m = malloc(sizeof *m);
    if (m == NULL) {
        return QN_ENOMEM;
    }
    *m = (struct member){t, index};
    if (pthread_create(&t->thread[index], NULL, run_thread, m) != 0) {
        free(m);
        return QN_EAGAIN;
    }
    return QN_OK;
}

static int start_process(struct qn_barrier_team *t, uint32_t index)
{
    const pid_t parent = getpid();
    t->process[index] = fork();
    if (t->process[index] == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) {
            run_member(t, index);
        }
        _exit(0);
    }
    return t->process[index] > 0 ? QN_OK : QN_EAGAIN;
}

/* ---- rounds -------------------------------------------------------------- */

static bool one_has_died(struct qn_barrier_team *t)
{
    const uint32_t n = t->processes ? t->started : 0;
    for (uint32_t i = 0; i < n; i++) {
        if (waitpid(t->process[i], NULL, WNOHANG) != 0) {
            t->process[i] = 0;
            return true;
        }
    }
    return false;
}

/* Until all members are done. */
static int wait_for_all(struct qn_barrier_team *t)
{
    uint32_t done = 0, looks = 0;
    while (done < t->members) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += LOOK_S;
        if (sem_timedwait(&t->control->done, &until) == 0) {
            done++;
        } else if (errno == ETIMEDOUT &&
                   (one_has_died(t) || ++looks == WAIT_S / LOOK_S)) {
            return QN_EIO;
        }
    }
    return QN_OK;
}

static void start_all(struct qn_barrier_team *t)
{
    for (uint32_t i = 0; i < t->members; i++) {
        (void)sem_post(&t->control->start[i]);
    }
}

int qn_barrier_team_round(struct qn_barrier_team *t, uint32_t subject,
                          uint64_t count, bool check, double *ns)
{
    struct qn_barrier_control *c = t->control;
    c->subject = subject;
    c->count = count;
    c->check = check;
    start_all(t);
    const int rc = wait_for_all(t);
    *ns = c->ns;
    return rc != QN_OK                           ? rc
           : qn_load(&c->wrong, QN_SEQ_CST) != 0 ? QN_ECORRUPT
                                                 : QN_OK;
}

/* ---- start and end ------------------------------------------------------- */

static void lay_out(struct qn_barrier_team *t, uint32_t cores)
{
    uint8_t *at = (uint8_t *)t->area.memory + control_bytes();
    for (uint32_t i = 0; i < t->subjects; i++) {
        t->memory[i] = at;
        t->refused[i] =
            qn_barrier_subject_format(&t->subject[i], at, t->members, cores);
        at += qn_barrier_subject_bytes(&t->subject[i], t->members);
    }
}

int qn_barrier_team_start(struct qn_barrier_team *t,
                          const struct qn_barrier_subject *subject,
                          uint32_t subjects, uint32_t members, uint32_t cores,
                          bool processes)
{
    size_t bytes = control_bytes();
    *t = (struct qn_barrier_team){.area = QN_AREA_NONE,
                                  .members = members,
                                  .processes = processes,
                                  .subject = subject,
                                  .subjects = subjects};
    for (uint32_t i = 0; i < subjects; i++) {
        bytes += qn_barrier_subject_bytes(&subject[i], members);
    }
    int rc = make_area(t, bytes);
    if (rc == QN_OK) {
        lay_out(t, cores);
    }
    while (rc == QN_OK && t->started < members) {
        rc = processes ? start_process(t, t->started)
                       : start_thread(t, t->started);
        t->started += rc == QN_OK;
    }
    rc = rc == QN_OK ? wait_for_all(t) : rc;
    if (rc != QN_OK) {
        qn_barrier_team_end(t);
    }
    return rc;
}

int qn_barrier_team_prepare(struct qn_barrier_team *t, uint32_t members)
{
    *t = (struct qn_barrier_team){
        .area = QN_AREA_NONE, .members = members, .processes = true};
    const int rc = make_area(t, control_bytes());
    if (rc != QN_OK) {
        qn_barrier_team_end(t);
    }
    return rc;
}

int qn_barrier_team_ready(struct qn_barrier_team *t)
{
    t->started = t->process[0] > 0;
    const int rc = t->started > 0 ? wait_for_all(t) : QN_EAGAIN;
    if (rc != QN_OK) {
        if (t->process[0] > 0) { /* it may never look at the control */
            (void)kill(t->process[0], SIGKILL);
        }
        qn_barrier_team_end(t);
    }
    return rc;
}

/* In the child. stdout is that of the result. */
static void execute(const struct qn_barrier_team *t, pid_t bench, char **argv)
{
    char path[64], number[16];
    uint32_t args = 0;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)bench, t->area.fd);
    snprintf(number, sizeof number, "%u", t->members);
    while (argv[args] != NULL) {
        args++;
    }
    argv[args] = path;
    argv[args + 1] = number;
    argv[args + 2] = NULL;
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    (void)execvp(argv[0], argv);
    _exit(127);
}

int qn_barrier_team_of_program(struct qn_barrier_team *t, uint32_t members,
                               char **argv)
{
    const pid_t bench = getpid();
    int rc = qn_barrier_team_prepare(t, members);
    if (rc == QN_OK) {
        t->process[0] = fork();
        if (t->process[0] == 0) {
            execute(t, bench, argv);
        }
        rc = qn_barrier_team_ready(t);
    }
    return rc;
}

void qn_barrier_team_end(struct qn_barrier_team *t)
{
    if (t->control != NULL) {
        t->control->count = 0;
        start_all(t);
    }
    for (uint32_t i = 0; i < t->started; i++) {
        if (!t->processes) {
            (void)pthread_join(t->thread[i], NULL);
        } else if (t->process[i] > 0) {
            (void)waitpid(t->process[i], NULL, 0);
        }
    }
    qn_area_destroy(&t->area);
    t->control = NULL;
}
