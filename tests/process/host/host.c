/*
 * The most difficult program that may embed a group: everything in it that a
 * guest could disturb is used, and everything that could disturb a guest
 * happens. It has one group or two, in a thread or in two, in a loop that calls
 * what is readable in a drawn order, late, or not yet; robust mutexes that its
 * threads have locked; a timer that interrupts each millisecond, and handlers
 * without SA_RESTART; and it forks wherever it can.
 *
 *     host FOLDER PLACE poll|epoll|libuv none|list|same|own|library|member SEED
 *
 * Of PLACE (0 to 2) one host runs at a time; in FOLDER are the names of the
 * groups and what the hosts share. The second group is in the same thread, in
 * one of its own, or in one of the library; or it is the first one, of which a
 * second thread is a member. With "list" there is none, and the first thread
 * has locked no robust mutex: the group may have its list. It answers lines, of
 * which the first word begins the answer; a and b are the groups:
 *
 *     1 do a 100       begin 100 proposals, barriers and changes at drawn
 *                      moments, and answer when all have ended
 *     2 digest b       of the state, by a barrier
 *     3 status a
 *     4 mutexes 2      of the threads of another host: locked, and of dead ones
 *     5 children       places in which a child was forked, in all hosts
 *     6 leave          and end, if nothing in the process has changed
 *
 * What is wrong it says on standard error, and ends with 1.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "tests/process/host/board.h"
#include "tests/process/host/child.h"
#include "tests/process/host/draw.h"
#include "tests/process/host/say.h"
#include "tests/process/host/station.h"
#include "tests/process/host/unchanged.h"

enum second {
    SECOND_NONE,
    SECOND_NONE_BY_LIST,
    SECOND_SAME,
    SECOND_OWN,
    SECOND_LIBRARY,
    SECOND_MEMBER
};

/* Its mutex (board.h). */
enum thread_number { THREAD_FIRST, THREAD_FORKS, THREAD_SECOND };

enum { LINE = 256 };

static char name[GUESTS_MAX][LINE]; /* of the groups */
static enum second second;
static bool second_runs; /* in a thread of its own */
static uint32_t members; /* of a group */
static struct station *first_station, *second_station; /* it may be the same */
static int second_index;                               /* in it */
static char leave_tag[16];

/* ---- signals ------------------------------------------------------------- */

static void on_alarm(int number)
{
    (void)number;
}

static void on_child(int number)
{
    const int before = errno;
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    errno = before;
}

static void signals_begin(void)
{
    struct sigaction a = {.sa_handler = on_alarm}; /* calls end with EINTR */
    const struct itimerval each_ms = {.it_interval = {.tv_usec = 1000},
                                      .it_value = {.tv_usec = 1000}};
    (void)sigaction(SIGALRM, &a, NULL);
    a.sa_handler = on_child;
    (void)sigaction(SIGCHLD, &a, NULL);
    (void)setitimer(ITIMER_REAL, &each_ms, NULL);
}

/* ---- other threads ------------------------------------------------------- */

static int stop[2]; /* children have it, too: so a byte says that it ends */

static pthread_barrier_t forks_begin;

static void *fork_some(void *arg)
{
    char byte;
    (void)arg;
    board_lock(THREAD_FORKS);
    (void)pthread_barrier_wait(&forks_begin);
    draw_pause(50000);
    child_maybe(CHILD_OTHER_THREAD);
    while (read(stop[0], &byte, 1) < 0) {
        QN_ASSERT(errno == EINTR);
    }
    return NULL;
}

static void *run_second(void *arg)
{
    struct station *s = arg;
    board_lock(THREAD_SECOND);
    unchanged_thread_begin();
    const struct guest_opts o = {.name = name[second == SECOND_OWN],
                                 .members = members};
    station_add(s, guest_make(1, &o));
    station_run(s);
    return NULL;
}

/* ---- orders -------------------------------------------------------------- */

static void order_guest(enum order_verb verb, const char *tag, char group,
                        uint64_t count)
{
    struct order o = {.verb = verb, .count = count};
    struct station *s = group == 'b' ? second_station : first_station;
    o.guest = group == 'b' ? second_index : 0;
    snprintf(o.tag, sizeof o.tag, "%s", tag);
    station_order(s, &o);
}

static void leave(const char *tag)
{
    snprintf(leave_tag, sizeof leave_tag, "%s", tag);
    order_guest(ORDER_LEAVE, tag, 'a', 0);
    if (second_runs) {
        order_guest(ORDER_LEAVE, tag, 'b', 0);
    }
}

static void obey(const char *line)
{
    char tag[16], verb[16], what = 'a';
    unsigned n = 0;
    if (sscanf(line, "%15s %15s %c %u", tag, verb, &what, &n) < 2) {
        say_wrong(line, 0);
    }
    if (strcmp(verb, "do") == 0) {
        order_guest(ORDER_DO, tag, what, n);
    } else if (strcmp(verb, "digest") == 0) {
        order_guest(ORDER_DIGEST, tag, what, 0);
    } else if (strcmp(verb, "status") == 0) {
        order_guest(ORDER_STATUS, tag, what, 0);
    } else if (strcmp(verb, "mutexes") == 0) {
        const struct board_mutexes m = board_try((uint32_t)(what - '0'));
        say("%s locked %u dead %u free %u\n", tag, m.locked, m.dead, m.free);
    } else if (strcmp(verb, "children") == 0) {
        say("%s %" PRIu64 "\n", tag, board_children());
    } else if (strcmp(verb, "leave") == 0) {
        leave(tag);
    } else {
        say_wrong(line, 0);
    }
}

static void on_input(void *ctx)
{
    static char in[LINE];
    static size_t have;
    char *line = in, *at;
    (void)ctx;
    ssize_t n = read(STDIN_FILENO, in + have, sizeof in - 1 - have);
    if (n <= 0) {
        if (n < 0 && errno == EINTR) {
            return;
        }
        _exit(1); /* the trial has ended */
    }
    have += (size_t)n;
    in[have] = '\0';
    while ((at = strchr(line, '\n')) != NULL) {
        *at = '\0';
        obey(line);
        line = at + 1;
    }
    have = (size_t)(in + have - line);
    memmove(in, line, have);
}

/* ---- begin and end ------------------------------------------------------- */

static int find(const char *word, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(word, words[i]) == 0) {
            return i;
        }
    }
    fprintf(stderr, "host: what is \"%s\"?\n", word);
    exit(2);
}

static void begin(char **argv, enum loop_kind *kind)
{
    static const char *const kinds[] = {"poll", "epoll", "libuv", NULL};
    static const char *const seconds[] = {"none",    "list",   "same", "own",
                                          "library", "member", NULL};
    static char path[LINE];
    const char *folder = argv[1];
    *kind = (enum loop_kind)find(argv[3], kinds);
    second = (enum second)find(argv[4], seconds);
    second_runs = second == SECOND_OWN || second == SECOND_MEMBER;
    members = second == SECOND_MEMBER ? 2 * BOARD_PLACES : BOARD_PLACES;
    draw_begin(strtoull(argv[5], NULL, 10));
    snprintf(name[0], sizeof name[0], "%s/a", folder);
    snprintf(name[1], sizeof name[1], "%s/b", folder);
    snprintf(path, sizeof path, "%s/board", folder);
    board_open(path, (uint32_t)atoi(argv[2]));
    snprintf(path, sizeof path, "%s/life", folder);
    child_begin(path, second <= SECOND_SAME);
    int err = pipe2(stop, 0);
    QN_ASSERT(err == 0);
    signals_begin();
}

static void run(enum loop_kind kind)
{
    pthread_t forks, seconds = 0;
    first_station = second_station = station_make(kind);
    if (second_runs) {
        second_station = station_make((enum loop_kind)draw(3));
    }
    unchanged_begin();
    unchanged_thread_begin();
    if (second != SECOND_NONE_BY_LIST) {
        board_lock(THREAD_FIRST);
    }
    pthread_barrier_init(&forks_begin, NULL, 2);
    int err = pthread_create(&forks, NULL, fork_some, NULL);
    QN_ASSERT(err == 0);
    (void)pthread_barrier_wait(&forks_begin);
    if (second_runs) {
        err = pthread_create(&seconds, NULL, run_second, second_station);
        QN_ASSERT(err == 0);
    }
    struct guest_opts o = {.name = name[0],
                           .members = members,
                           .robust_list = second == SECOND_NONE_BY_LIST};
    station_add(first_station, guest_make(0, &o));
    if (second == SECOND_SAME || second == SECOND_LIBRARY) {
        second_index = 1;
        o.name = name[1];
        o.thread = second == SECOND_LIBRARY ? THREAD_SECOND : 0;
        station_add(first_station, guest_make(1, &o));
    }
    station_hear(first_station, STDIN_FILENO, on_input, NULL);
    station_run(first_station);
    if (second_runs) {
        pthread_join(seconds, NULL);
        station_free(second_station);
    }
    ssize_t n = write(stop[1], "", 1);
    QN_ASSERT(n == 1);
    pthread_join(forks, NULL);
    station_free(first_station);
}

int main(int argc, char **argv)
{
    enum loop_kind kind;
    if (argc != 6) {
        fprintf(stderr, "usage: host FOLDER PLACE LOOP SECOND SEED\n");
        return 2;
    }
    begin(argv, &kind);
    run(kind);
    unchanged_check();
    say("%s well\n", leave_tag);
    return 0;
}
