#include "core/rendezvous/rendezvous.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/rendezvous/fd_message.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

static char folder[] = "/tmp/quoin-rendezvous-XXXXXX";
static char name[64];

static void init(void)
{
    cr_assert_neq(mkdtemp(folder), NULL);
    snprintf(name, sizeof name, "%s/group", folder);
}

static void fini(void)
{
    unlink(name);
    rmdir(folder);
}

#define CASE(name)                                                             \
    Test(rendezvous, name, .init = init, .fini = fini, .timeout = 60)

/* Nothing tells a process that another one has founded, or has ended: it comes
 * again. */
static void rest(void)
{
    sched_yield();
}

static struct qn_rendezvous *opened(void)
{
    struct qn_rendezvous *r = NULL;
    cr_assert_eq(qn_rendezvous_open(&r, name), QN_OK);
    return r;
}

/* A child runs `body` and never returns. */
static pid_t child(void (*body)(int said), int *said)
{
    int pipes[2];
    cr_assert_eq(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(pipes[0]);
        body(pipes[1]);
        _exit(0);
    }
    close(pipes[1]);
    *said = pipes[0];
    return pid;
}

static char hear(int said)
{
    char c = 0;
    return read(said, &c, 1) == 1 ? c : '\0';
}

static void say(int said, char c)
{
    (void)!write(said, &c, 1);
}

/* Until the test has ended, or closes its end. */
static void stay(int said)
{
    poll(&(struct pollfd){.fd = said}, 1, -1);
    _exit(0);
}

static void end(pid_t pid)
{
    int status;
    kill(pid, SIGKILL);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
}

/* ---- roles --------------------------------------------------------------- */

static void found_and_stay(int said)
{
    struct qn_rendezvous *r;
    qn_node_t seat;
    int fd = -2;
    bool ok = qn_rendezvous_open(&r, name) == QN_OK &&
              qn_rendezvous_enter(r, 0, &seat, &fd) == QN_OK && fd == -1 &&
              qn_rendezvous_seat(r, 3) == QN_OK;
    say(said, ok ? 'y' : 'n');
    stay(said);
}

CASE(the_first_founds_and_the_next_finds_it)
{
    int said, fd = -1;
    qn_node_t seat = 99;
    pid_t pid = child(found_and_stay, &said);
    cr_assert_eq(hear(said), 'y');
    struct qn_rendezvous *r = opened();
    cr_assert_eq(qn_rendezvous_living(r), 1u << 3);
    cr_assert_eq(qn_rendezvous_enter(r, 0, &seat, &fd), QN_OK);
    cr_assert(fd >= 0 && seat == 3);
    cr_assert_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
    cr_assert_eq(qn_rendezvous_enter(r, 1u << 3, &seat, &fd), QN_EAGAIN,
                 "all that live are skipped");
    cr_assert_eq(qn_rendezvous_seat(r, 3), QN_EBUSY);
    cr_assert_eq(qn_rendezvous_fd(r), -1);
    cr_assert_eq(qn_rendezvous_seat(r, 4), QN_OK);
    cr_assert_eq(qn_rendezvous_seat(r, 5), QN_EEXIST);
    cr_assert_eq(qn_rendezvous_living(r), 3u << 3);
    end(pid);
    cr_assert_eq(qn_rendezvous_living(r), 1u << 4);
    qn_rendezvous_close(r);
}

CASE(a_member_reaches_another_one)
{
    int said, fd = -1, again = -1;
    qn_node_t seat;
    pid_t pid = child(found_and_stay, &said);
    cr_assert_eq(hear(said), 'y');
    struct qn_rendezvous *r = opened();
    cr_assert_eq(qn_rendezvous_enter(r, 0, &seat, &fd), QN_OK);
    cr_assert_eq(qn_rendezvous_seat(r, 4), QN_OK);
    cr_assert_eq(qn_rendezvous_reach(r, 5, &again), QN_ENOENT);
    cr_assert_eq(qn_rendezvous_reach(r, 4, &again), QN_ENOENT, "itself");
    cr_assert_eq(again, -1);
    cr_assert_eq(qn_rendezvous_reach(r, 3, &again), QN_OK);
    cr_assert_eq(fcntl(again, F_GETFD), FD_CLOEXEC);
    close(fd);
    close(again);
    end(pid);
    cr_assert_eq(qn_rendezvous_reach(r, 3, &again), QN_ENOENT);
    qn_rendezvous_close(r);
}

static void found_and_never_sit(int said)
{
    struct qn_rendezvous *r;
    qn_node_t seat;
    int fd = -2;
    bool ok = qn_rendezvous_open(&r, name) == QN_OK &&
              qn_rendezvous_enter(r, 0, &seat, &fd) == QN_OK && fd == -1;
    say(said, ok ? 'y' : 'n');
    stay(said);
}

CASE(one_founds_at_a_time_and_the_next_after_its_death)
{
    int said, fd = -2;
    qn_node_t seat;
    pid_t pid = child(found_and_never_sit, &said);
    cr_assert_eq(hear(said), 'y');
    struct qn_rendezvous *r = opened();
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(qn_rendezvous_enter(r, 0, &seat, &fd), QN_EAGAIN);
    }
    end(pid);
    cr_assert_eq(qn_rendezvous_enter(r, 0, &seat, &fd), QN_OK);
    cr_assert_eq(fd, -1, "the founder has ended");
    qn_rendezvous_close(r);
}

static off_t locked_at; /* by this process, the last time */

/* The child of a member has its file and its listening socket. */
static void found_fork_and_end(int said)
{
    struct qn_rendezvous *r;
    qn_node_t seat;
    int fd;
    if (qn_rendezvous_open(&r, name) != QN_OK ||
        qn_rendezvous_enter(r, 0, &seat, &fd) != QN_OK ||
        qn_rendezvous_seat(r, 0) != QN_OK || fork() != 0) {
        _exit(0);
    }
    bool ok = qn_rendezvous_seat(r, 1) == QN_EPERM &&
              qn_rendezvous_enter(r, 0, &seat, &fd) == QN_EPERM &&
              qn_rendezvous_reach(r, 0, &fd) == QN_EPERM &&
              qn_rendezvous_accept(r, &fd, &(pid_t){0}) == QN_EPERM;
    while (qn_rendezvous_living(r) != 0) {
        rest(); /* the parent ends: its locks may outlive its main thread */
    }
    say(said, ok ? 'y' : 'n');
    (void)!write(said, &locked_at, sizeof locked_at);
    stay(said);
}

CASE(a_child_that_has_inherited_all_makes_no_dead_member_alive)
{
    int said, fd = -2;
    qn_node_t seat;
    pid_t pid = child(found_fork_and_end, &said);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    cr_assert_eq(hear(said), 'y');
    struct qn_rendezvous *r = opened();
    cr_assert_eq(qn_rendezvous_living(r), 0);
    cr_assert_eq(qn_rendezvous_enter(r, 0, &seat, &fd), QN_OK);
    cr_assert_eq(fd, -1, "the name is free");
    cr_assert_eq(qn_rendezvous_seat(r, 0), QN_OK, "and so is the seat");
    qn_rendezvous_close(r);
    close(said);
}

/* ---- several in one process ---------------------------------------------- */

/* A process that looks at seats when it is told to; none, if it would not be a
 * guest of those that live. */
static int looks; /* of the child */

static void look_and_say(int said)
{
    struct qn_rendezvous *r = opened();
    while (hear(looks) == 'l') {
        qn_node_t seat;
        int fd;
        const uint64_t living = qn_rendezvous_living(r);
        const bool guest =
            living != 0 && qn_rendezvous_enter(r, 0, &seat, &fd) == QN_OK;
        say(said, (char)('a' + (guest ? living : 0)));
        if (guest) {
            close(fd);
        }
    }
    _exit(0);
}

static char seats_elsewhere(int looker, int said)
{
    say(looker, 'l');
    return (char)(hear(said) - 'a');
}

/* Of two members of one process each is alone in its seat, and one that leaves
 * takes nothing of the other with it; other processes see that, too. */
CASE(a_process_may_be_there_several_times)
{
    int before = open_descriptors(), fd = -2, back, said, pipes[2];
    qn_node_t seat = 99;
    pid_t pid;
    cr_assert_eq(pipe(pipes), 0);
    looks = pipes[0];
    pid_t looker = child(look_and_say, &said);
    struct qn_rendezvous *a = opened(), *b = opened(), *c = opened();
    cr_assert_eq(qn_rendezvous_enter(a, 0, &seat, &fd), QN_OK);
    cr_assert_eq(fd, -1);
    cr_assert_eq(qn_rendezvous_enter(b, 0, &seat, &fd), QN_EAGAIN,
                 "one founds");
    cr_assert_eq(qn_rendezvous_seat(a, 0), QN_OK);
    cr_assert_eq(qn_rendezvous_enter(b, 0, &seat, &fd), QN_OK);
    cr_assert(fd >= 0 && seat == 0);
    cr_assert_eq(qn_rendezvous_accept(a, &back, &pid), QN_OK);
    cr_assert_eq(pid, getpid());
    close(fd);
    close(back);
    cr_assert_eq(qn_rendezvous_seat(b, 0), QN_EBUSY);
    cr_assert_eq(qn_rendezvous_seat(b, 1), QN_OK);
    cr_assert_eq(qn_rendezvous_living(a), 3);
    cr_assert_eq(qn_rendezvous_living(c), 3);
    cr_assert_eq(seats_elsewhere(pipes[1], said), 3);
    cr_assert_eq(qn_rendezvous_enter(c, 0, &seat, &fd), QN_OK);
    close(fd);
    qn_rendezvous_close(a);
    cr_assert_eq(seats_elsewhere(pipes[1], said), 2);
    cr_assert_eq(qn_rendezvous_reach(c, 0, &fd), QN_ENOENT);
    cr_assert_eq(qn_rendezvous_reach(c, 1, &fd), QN_OK);
    close(fd);
    cr_assert_eq(qn_rendezvous_seat(c, 0), QN_OK, "of the same group");
    qn_rendezvous_close(b);
    cr_assert_eq(seats_elsewhere(pipes[1], said), 1);
    qn_rendezvous_close(c);
    cr_assert_eq(seats_elsewhere(pipes[1], said), 0);
    end(looker);
    close(pipes[0]);
    close(pipes[1]);
    close(said);
    cr_assert_eq(open_descriptors(), before);
}

CASE(the_next_one_founds_when_the_founder_gives_up)
{
    struct qn_rendezvous *a = opened(), *b = opened();
    qn_node_t seat;
    int fd;
    cr_assert_eq(qn_rendezvous_enter(a, 0, &seat, &fd), QN_OK);
    cr_assert_eq(qn_rendezvous_enter(b, 0, &seat, &fd), QN_EAGAIN);
    qn_rendezvous_close(a);
    cr_assert_eq(qn_rendezvous_enter(b, 0, &seat, &fd), QN_OK);
    cr_assert_eq(fd, -1);
    qn_rendezvous_close(b);
}

/* The first group of this process ends with its last member, though the process
 * goes on. */
CASE(a_guest_of_an_earlier_group_of_this_process_is_told_so)
{
    struct qn_rendezvous *a = opened(), *guest = opened(), *b = opened();
    qn_node_t seat;
    int fd;
    cr_assert_eq(qn_rendezvous_enter(a, 0, &seat, &fd), QN_OK);
    cr_assert_eq(qn_rendezvous_seat(a, 0), QN_OK);
    cr_assert_eq(qn_rendezvous_enter(guest, 0, &seat, &fd), QN_OK);
    close(fd);
    qn_rendezvous_close(a);
    cr_assert_eq(qn_rendezvous_seat(guest, 1), QN_ESTALE, "it has ended");
    cr_assert_eq(qn_rendezvous_enter(b, 0, &seat, &fd), QN_OK);
    cr_assert_eq(qn_rendezvous_seat(b, 0), QN_OK);
    cr_assert_eq(qn_rendezvous_seat(guest, 1), QN_ESTALE, "another group");
    qn_rendezvous_close(guest);
    qn_rendezvous_close(b);
}

static int go_on; /* of a child: the end of a pipe */

/* ---- a socket of the parent ---------------------------------------------- */

static int meeting; /* it, inherited */

static struct qn_rendezvous *opened_at(void)
{
    struct qn_rendezvous *r = NULL;
    cr_assert_eq(qn_rendezvous_open_at(&r, meeting), QN_OK);
    return r;
}

static void meet_and_stay(int said)
{
    struct qn_rendezvous *r = opened_at();
    qn_node_t seat = 0;
    int fd = -2, err;
    while ((err = qn_rendezvous_enter(r, 0, &seat, &fd)) == QN_EAGAIN) {
        rest();
    }
    const bool founds = err == QN_OK && fd < 0;
    while (err == QN_OK &&
           (err = qn_rendezvous_seat(r, founds ? 0 : 1)) == QN_EAGAIN) {
        err = QN_OK;
        rest();
    }
    say(said, err != QN_OK ? 'n' : founds ? 'f' : 'g');
    stay(said);
}

CASE(processes_meet_at_a_socket_that_they_have_inherited)
{
    int said[2], before = open_descriptors();
    pid_t pid[2];
    struct qn_rendezvous *r = NULL;
    cr_assert_eq(qn_rendezvous_open_at(&r, -1), QN_EINVAL);
    cr_assert_eq(pipe(said), 0);
    cr_assert_eq(qn_rendezvous_open_at(&r, said[0]), QN_EINVAL, "no socket");
    cr_assert_eq(r, NULL);
    close(said[0]);
    close(said[1]);
    meeting = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    cr_assert_geq(meeting, 0);
    r = opened_at();
    cr_assert_eq(qn_rendezvous_living(r), 0);
    for (int i = 0; i < 2; i++) {
        pid[i] = child(meet_and_stay, &said[i]);
        cr_assert_eq(hear(said[i]), i == 0 ? 'f' : 'g');
    }
    cr_assert_eq(qn_rendezvous_living(r), 3);
    end(pid[0]);
    cr_assert_eq(qn_rendezvous_living(r), 2);
    end(pid[1]);
    cr_assert_eq(qn_rendezvous_living(r), 0, "the place is free");
    close(said[0]);
    pid[0] = child(meet_and_stay, &said[0]);
    cr_assert_eq(hear(said[0]), 'f');
    end(pid[0]);
    close(said[0]);
    close(said[1]);
    qn_rendezvous_close(r);
    cr_assert_eq(open_descriptors(), before + 1, "it is the host's");
    close(meeting);
}

static void meet_and_exec(int said)
{
    struct qn_rendezvous *r = opened_at(), *other_one = opened_at();
    qn_node_t seat;
    int fd;
    const bool ok = qn_rendezvous_enter(r, 0, &seat, &fd) == QN_OK &&
                    qn_rendezvous_seat(r, 0) == QN_OK &&
                    qn_rendezvous_enter(other_one, 0, &seat, &fd) == QN_OK &&
                    qn_rendezvous_seat(other_one, 1) == QN_OK;
    say(said, ok ? 'y' : 'n');
    (void)hear(go_on);
    (void)execlp("sleep", "sleep", "60", (char *)NULL);
    _exit(1);
}

/* Which has the socket, and is no member. */
CASE(a_process_that_calls_exec_has_left_the_socket)
{
    int said, pipes[2];
    meeting = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    cr_assert_geq(meeting, 0);
    cr_assert_eq(pipe(pipes), 0);
    go_on = pipes[0];
    struct qn_rendezvous *r = opened_at();
    pid_t pid = child(meet_and_exec, &said);
    cr_assert_eq(hear(said), 'y');
    cr_assert_eq(qn_rendezvous_living(r), 3);
    say(pipes[1], 'g');
    while (qn_rendezvous_living(r) != 0) {
        rest();
    }
    cr_assert_eq(waitpid(pid, NULL, WNOHANG), 0, "it lives on");
    end(pid);
    qn_rendezvous_close(r);
    close(meeting);
}

/* ---- at the wrong moment ------------------------------------------------- */

/* Stands before the library's, so that something may happen right before this
 * process tries to get the lock of those who enter. */
static void (*before_lock)(void);

int fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *arg = va_arg(args, void *);
    va_end(args);
    const struct flock *l = arg;
    if (command == F_SETLK && l->l_type == F_WRLCK) {
        locked_at = l->l_start;
    }
    if (command == F_SETLK && l->l_type == F_WRLCK && before_lock != NULL) {
        void (*now)(void) = before_lock;
        before_lock = NULL;
        now();
    }
    return (int)syscall(SYS_fcntl, fd, command, arg);
}

/* Made before: a child of this process as it is in the middle of a call could
 * not call anything. */
static struct {
    pid_t pid;
    int said, go;
} others[2], other;

static void wait_and_found(int said)
{
    if (hear(go_on) == 'g') {
        found_and_stay(said);
    }
}

static void others_make(void)
{
    for (int i = 0; i < 2; i++) {
        int pipes[2];
        cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
        go_on = pipes[0];
        others[i].pid = child(wait_and_found, &others[i].said);
        others[i].go = pipes[1];
        close(pipes[0]);
    }
}

static void another_founds(void)
{
    other = others[0].pid != 0 ? others[0] : others[1];
    *(others[0].pid != 0 ? &others[0].pid : &others[1].pid) = 0;
    say(other.go, 'g');
    cr_assert_eq(hear(other.said), 'y');
    close(other.go);
}

CASE(a_founder_looks_for_members_again_when_it_has_the_lock)
{
    struct qn_rendezvous *r = opened();
    qn_node_t seat = 99;
    int fd = -2;
    others_make();
    before_lock = another_founds;
    cr_assert_eq(qn_rendezvous_enter(r, 0, &seat, &fd), QN_OK);
    cr_assert(fd >= 0 && seat == 3, "a guest of the one that was faster");
    close(fd);
    cr_assert_eq(qn_rendezvous_seat(r, 4), QN_OK);
    end(other.pid);
    end(others[1].pid);
    qn_rendezvous_close(r);
}

static void the_other_ends(void)
{
    end(other.pid);
}

static void the_other_ends_and_another_founds(void)
{
    end(other.pid);
    another_founds();
}

/* It has been told of a group that no member has any more. */
CASE(a_guest_whose_group_has_ended_is_told_so)
{
    static void (*const meanwhile[])(void) = {
        the_other_ends, the_other_ends_and_another_founds};
    for (size_t i = 0; i < 2; i++) {
        struct qn_rendezvous *r = opened();
        qn_node_t seat;
        int fd;
        others_make();
        another_founds();
        cr_assert_eq(qn_rendezvous_enter(r, 0, &seat, &fd), QN_OK);
        cr_assert_geq(fd, 0);
        close(fd);
        before_lock = meanwhile[i];
        cr_assert_eq(qn_rendezvous_seat(r, 4), QN_ESTALE, "%zu", i);
        cr_assert_eq(qn_rendezvous_living(r), i == 0 ? 0 : 1u << 3);
        cr_assert_eq(qn_rendezvous_enter(r, 0, &seat, &fd), QN_OK);
        cr_assert_eq(fd >= 0, i == 1, "founder, or guest of the new group");
        cr_assert_eq(qn_rendezvous_seat(r, 4), QN_OK);
        if (fd >= 0) {
            close(fd);
            end(other.pid);
        } else {
            end(others[1].pid);
        }
        qn_rendezvous_close(r);
    }
}

/* A process has the seat with the token of a member that has ended, whose child
 * listens. */
static void lock_and_stay(int said)
{
    struct flock l = {.l_type = F_WRLCK, .l_start = locked_at, .l_len = 1};
    int file = open(name, O_RDWR | O_CLOEXEC);
    say(said, file >= 0 && fcntl(file, F_SETLK, &l) == 0 ? 'y' : 'n');
    stay(said);
}

CASE(a_guest_talks_to_the_process_that_has_the_seat)
{
    int heir, said, fd = -2;
    qn_node_t seat;
    pid_t pid = child(found_fork_and_end, &heir);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    cr_assert_eq(hear(heir), 'y');
    cr_assert_eq(read(heir, &locked_at, sizeof locked_at),
                 (ssize_t)sizeof locked_at);
    pid = child(lock_and_stay, &said);
    cr_assert_eq(hear(said), 'y');
    struct qn_rendezvous *r = opened();
    cr_assert_eq(qn_rendezvous_living(r), 1);
    cr_assert_eq(qn_rendezvous_reach(r, 0, &fd), QN_EAGAIN);
    cr_assert_eq(qn_rendezvous_enter(r, 0, &seat, &fd), QN_EAGAIN);
    end(pid);
    close(heir);
    qn_rendezvous_close(r);
}

/* ---- a member that is slow ------------------------------------------------
 */

/* It comes again and again, as guest after guest: until there is no room, and
 * until there is room again. */
static void fill_the_queue(int said)
{
    struct qn_rendezvous *r;
    qn_node_t seat;
    int fd, err, guests = 0;
    if (qn_rendezvous_open(&r, name) != QN_OK) {
        _exit(1);
    }
    while ((err = qn_rendezvous_enter(r, 0, &seat, &fd)) == QN_OK) {
        guests++;
    }
    bool ok = err == QN_EAGAIN && guests >= QN_RENDEZVOUS_GUESTS_MAX &&
              guests <= QN_RENDEZVOUS_GUESTS_MAX + 1;
    say(said, ok ? 'y' : 'n');
    while (qn_rendezvous_enter(r, 0, &seat, &fd) == QN_EAGAIN) {
        rest();
    }
    say(said, 'y');
    stay(said);
}

CASE(so_many_guests_wait_for_a_member)
{
    int said, fd = -2;
    qn_node_t seat;
    pid_t pid;
    struct qn_rendezvous *r = opened();
    cr_assert_eq(qn_rendezvous_enter(r, 0, &seat, &fd), QN_OK);
    cr_assert_eq(qn_rendezvous_seat(r, 0), QN_OK);
    pid_t guest = child(fill_the_queue, &said);
    cr_assert_eq(hear(said), 'y', "the last one is told to come again");
    cr_assert_eq(qn_rendezvous_accept(r, &fd, &pid), QN_OK);
    cr_assert_eq(pid, guest);
    cr_assert_eq(hear(said), 'y', "there is room again");
    close(fd);
    end(guest);
    qn_rendezvous_close(r);
}

/* ---- ten at once --------------------------------------------------------- */

enum { TEN = 10 };

struct tally {
    int founders, members; /* of a round */
    int next_seat;         /* the founder counts */
};

static struct tally *tally; /* shared by all */

/* The founder gives seats; each member that has its seat may be asked. All
 * answers but the founder's are its number and "ask seat 0". */
static void one_of_ten(int said)
{
    struct qn_rendezvous *r;
    qn_node_t seat = 0;
    int fd = -2, err;
    pid_t pid;
    uint8_t byte = 0;
    if (qn_rendezvous_open(&r, name) != QN_OK) {
        _exit(1);
    }
    while ((err = qn_rendezvous_enter(r, 0, &seat, &fd)) == QN_EAGAIN) {
        rest();
    }
    if (err == QN_OK && fd >= 0) {
        struct qn_fd_message m = {.bytes = &byte, .cap = 1};
        if (qn_fd_message_recv(fd, &m, 0, false) == QN_EAGAIN) {
            poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
            err = qn_fd_message_recv(fd, &m, 0, false);
        }
    } else if (err == QN_OK) {
        __atomic_fetch_add(&tally->founders, 1, __ATOMIC_SEQ_CST);
    }
    while (err == QN_OK && (err = qn_rendezvous_seat(r, byte)) == QN_EAGAIN) {
        err = QN_OK;
        rest();
    }
    if (err != QN_OK) {
        say(said, 'n');
        stay(said);
    }
    __atomic_fetch_add(&tally->members, 1, __ATOMIC_SEQ_CST);
    say(said, 'y');
    for (;;) {
        poll(&(struct pollfd){.fd = qn_rendezvous_fd(r), .events = POLLIN}, 1,
             -1);
        while (qn_rendezvous_accept(r, &fd, &pid) == QN_OK) {
            byte = (uint8_t)__atomic_add_fetch(&tally->next_seat, 1,
                                               __ATOMIC_SEQ_CST);
            (void)qn_fd_message_send(fd, (struct qn_slice){&byte, 1}, NULL, 0);
        }
    }
}

static void ten_at_once(uint32_t round)
{
    pid_t pid[TEN];
    int said[TEN];
    *tally = (struct tally){0};
    for (int i = 0; i < TEN; i++) {
        pid[i] = child(one_of_ten, &said[i]);
    }
    for (int i = 0; i < TEN; i++) {
        cr_assert_eq(hear(said[i]), 'y', "round %u, process %d", round, i);
        close(said[i]);
    }
    cr_assert(tally->founders == 1 && tally->members == TEN,
              "round %u: %d founders, %d members", round, tally->founders,
              tally->members);
    struct qn_rendezvous *r = opened();
    cr_assert_eq(qn_rendezvous_living(r), (1u << TEN) - 1);
    qn_rendezvous_close(r);
    for (int i = 0; i < TEN; i++) {
        end(pid[i]); /* the name is free for the next round */
    }
}

CASE(ten_processes_at_once_are_one_group)
{
    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(tally, MAP_FAILED);
    for (uint32_t round = 0; round < 100; round++) {
        ten_at_once(round);
    }
}

/* ---- names --------------------------------------------------------------- */

CASE(a_seat_is_left)
{
    int before = open_descriptors();
    struct qn_rendezvous *r = opened();
    qn_node_t seat;
    int fd;
    cr_assert_eq(qn_rendezvous_seat(r, 0), QN_ESTALE, "of no group");
    cr_assert_eq(qn_rendezvous_enter(r, 0, &seat, &fd), QN_OK);
    cr_assert_eq(qn_rendezvous_seat(r, 0), QN_OK);
    cr_assert_eq(qn_rendezvous_living(r), 1);
    qn_rendezvous_close(r);
    cr_assert_eq(open_descriptors(), before);
    r = opened();
    cr_assert_eq(qn_rendezvous_living(r), 0, "the seat is left");
    qn_rendezvous_close(r);
    qn_rendezvous_close(NULL);
}

CASE(a_word_is_a_name_of_this_user)
{
    struct qn_rendezvous *r;
    char path[80];
    snprintf(name, sizeof name, "@test.%d", (int)getpid());
    snprintf(path, sizeof path, "/dev/shm/quoin-%u-%s", (unsigned)geteuid(),
             name + 1);
    cr_assert_eq(qn_rendezvous_open(&r, name), QN_OK);
    cr_assert_eq(access(path, F_OK), 0);
    qn_rendezvous_close(r);
    unlink(path);
}

CASE(a_name_that_cannot_be_is_refused)
{
    struct qn_rendezvous *r = NULL;
    char text[QN_RENDEZVOUS_NAME_MAX + 2];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    const char *bad[] = {"", "@", "@a/b", "@ ", text};
    int before = open_descriptors();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(qn_rendezvous_open(&r, bad[i]), QN_EINVAL, "%zu", i);
    }
    cr_assert_eq(qn_rendezvous_open(&r, "/nowhere/at/all"), QN_ENOENT);
    cr_assert_eq(qn_rendezvous_open(&r, folder), QN_ECORRUPT);
    cr_assert_eq(qn_rendezvous_open(&r, "/dev/null"), QN_ECORRUPT);
    cr_assert_eq(symlink("/dev/null", name), 0);
    cr_assert_eq(qn_rendezvous_open(&r, name), QN_ECORRUPT, "a link");
    unlink(name);
    int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    cr_assert_eq(write(fd, "something else of 24 byte", 24), 24);
    close(fd);
    cr_assert_eq(qn_rendezvous_open(&r, name), QN_ECORRUPT);
    cr_assert_eq(r, NULL);
    cr_assert_eq(open_descriptors(), before);
}

CASE(a_file_of_another_user_is_refused)
{
    struct qn_rendezvous *r = NULL;
    if (geteuid() != 0) {
        return; /* cannot make one */
    }
    qn_rendezvous_close(opened());
    cr_assert_eq(chown(name, 65534, 65534), 0);
    cr_assert_eq(qn_rendezvous_open(&r, name), QN_EPERM);
}

/* And no signal: a program of others may have set the limit. */
CASE(a_process_that_may_not_write_the_file_is_refused)
{
    struct qn_rendezvous *r = NULL;
    struct rlimit was, l;
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
    l = was;
    l.rlim_cur = 15;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &l), 0);
    const int less = qn_rendezvous_open(&r, name);
    l.rlim_cur = 16;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &l), 0);
    const int just = qn_rendezvous_open(&r, name);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &was), 0);
    cr_expect_eq(less, QN_EIO);
    cr_assert_eq(just, QN_OK);
    qn_rendezvous_close(r);
}
