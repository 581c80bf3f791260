/*
 * Defects of the library (core/sync/object/mutant.h, and of delegation, locks
 * and servers): each is convicted by runs of the subjects in which it is, by
 * threads that stall at any access (stall.h). A run that hangs or crashes is a
 * conviction, too, so each has a process of its own. What threads cannot show
 * here is in `unseen`, with the reason and the explorer's test that finds it,
 * which stress.sh runs. The library as it is comes first: it has no fault.
 *
 *     sync_mutants [SEEDS [NAME]]
 *
 * Exit status 1: some was not found in that number of runs of each subject, or
 * within BOUND_S; or a run without a defect was convicted.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/sync/delegate/delegate_mutant.h"
#include "core/sync/delegate/server_mutant.h"
#include "core/sync/lock/lock_mutant.h"
#include "core/sync/object/mutant.h"
#include "core/sync/sync_mutant.h"
#include "tests/conformance/sync/stall.h"
#include "tests/conformance/sync/stress.h"

enum {
    OPERATIONS = 20000,
    NESTED = 2000,
    SEEDS = 20,
    SEEDS_NONE = 3, /* without a defect */
    HANG_S = 10,   /* no operation ends; without a defect this is enough, too */
    CHILD_S = 120, /* a run, with its checks, which nothing watches */
    BOUND_S = 900  /* of a defect, but for its last run */
};

enum qn_object_mutant qn_object_mutant;
enum qn_delegate_mutant qn_delegate_mutant;
enum qn_server_mutant qn_server_mutant;
enum qn_lock_mutant qn_lock_mutant;
enum qn_sync_mutant qn_sync_mutant;

/* Nodes of HybComb for all objects. */
static alignas(QN_CACHELINE) uint8_t one_node[128 * QN_CACHELINE];
void *qn_sync_one_node = one_node;

/* Subjects by what the maps say. */
#define COUNTER "counter"
#define LCRQ    "lcrq"
#define TREIBER "treiber"
#define MS      "ms"
#define LIST    "list"

struct mutant {
    const char *name, *text;
    const char *begins; /* the names of its subjects; or the family */
    int object, delegate, server, lock, sync; /* of its enum; 0: none */
};

/* What threads here do not show. */
static const struct {
    const char *name, *program, *test, *why;
} unseen[] = {
    {"NO_LAST_FENCE", "test_server_explore",
     "server_mutants/streaming_without_the_last_fence_is_found",
     "a store would stay in its buffer while a client looks for 1 us, yields "
     "twice and parks; and a server follows, which wakes the client"},
    {"NO_LAST_WAKE", "test_server_explore",
     "server_mutants/a_server_that_leaves_and_wakes_none_is_found",
     "a server follows, whose first scan wakes the client"},
    {"WEAK_OPENING", "test_words_sync_explore",
     "words_sync_explore/each_defect_is_found",
     "x86 does not move a store in front of an earlier one"},
};

/* A row of a map. `as`: the field that chooses it. */
#define ROW(map, name, by, text, as)                                           \
    {                                                                          \
#name, text, by, .as = QN_##map##_MUTANT_##name                        \
    }

static const struct mutant all[] = {
#define X(name, by, text) ROW(OBJECT, name, by, text, object),
    QN_OBJECT_MUTANT_MAP(X)
#undef X
#define X(name, by, text) ROW(DELEGATE, name, by, text, delegate),
        QN_DELEGATE_MUTANT_MAP(X)
#undef X
#define X(name, text) ROW(SERVER, name, "shm_server", text, server),
            QN_SERVER_MUTANT_MAP(X)
#undef X
#define X(name, by, text) ROW(LOCK, name, by, text, lock),
                QN_LOCK_MUTANT_MAP(X)
#undef X
#define X(name, by, text) ROW(SYNC, name, by, text, sync),
                    QN_SYNC_MUTANT_MAP(X)
#undef X
                        ROW(DELEGATE, LATE_LINK, "h_synch",
                            "the same, with a list for each domain", delegate),
    ROW(SERVER, TWO_SERVERS, "mp_server", "the same, by words", server),
    ROW(LOCK, TAS_NO_WAKE, "ttas", "the same, of ttas", lock),
    ROW(LOCK, TAS_FORGETS, "ttas", "the same, of ttas", lock),
};

static const struct mutant none = {
    .name = "NONE", .text = "the library as it is", .begins = ""};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* A run in a child. @return how it was convicted; NULL: it was not. */
static const char *convicted(const struct stress_plan *p)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL) {
            _exit(0);
        }
        (void)alarm(CHILD_S);
        stress_stalls_begin(p->seed);
        _exit(stress_run(p) != NULL);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        abort();
    }
    if (status == 0 || WIFEXITED(status)) {
        return status == 0 ? NULL : "check";
    }
    return WTERMSIG(status) == SIGABRT   ? "hang or an assertion"
           : WTERMSIG(status) == SIGALRM ? "hang"
                                         : "crash";
}

/* @param smallest  Queues and batches, as of most seeds: other threads run
 *                  through them while one stalls. */
static const char *run(const struct mutant *m, struct qn_subject_name subject,
                       uint64_t seed, bool smallest)
{
    const bool nested = subject.type == &stress_nested;
    const bool words = m->sync == QN_SYNC_MUTANT_NO_OBJECT;
    return convicted(
        &(struct stress_plan){.subject = subject,
                              .seed = seed,
                              .operations = nested ? NESTED : OPERATIONS,
                              .lock = words ? "hyblock" : NULL,
                              .smallest = smallest,
                              .hang_s = HANG_S});
}

/* @param runs  Counts them.
 *  @return how it was found; NULL: it was not. */
static const char *find(const struct mutant *m, uint32_t seeds, uint32_t *runs)
{
    const qn_time_t end = qn_clock_now() + BOUND_S * QN_S;
    for (uint32_t k = 1; k <= seeds; k++) {
        const struct qn_subject_type *type;
        for (uint32_t t = 0; (type = stress_type(t)) != NULL; t++) {
            const char *name;
            for (uint32_t i = 0; (name = type->name(i)) != NULL; i++) {
                if (!begins(type->family, m->begins) &&
                    !begins(name, m->begins)) {
                    continue;
                }
                if (qn_clock_now() > end) {
                    return NULL;
                }
                ++*runs;
                const char *how = run(m, (struct qn_subject_name){type, name},
                                      k + 1000 * i, k % 4 != 0);
                if (how != NULL) {
                    return how;
                }
            }
        }
    }
    return NULL;
}

/* @return false: it is one that threads are to find. */
static bool is_unseen(const struct mutant *m)
{
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(unseen); i++) {
        if (strcmp(m->name, unseen[i].name) == 0) {
            printf("%-15s explorer %s %s: %s\n", m->name, unseen[i].program,
                   unseen[i].test, unseen[i].why);
            return true;
        }
    }
    return false;
}

/* @return is it as it should be? */
static bool judge(const struct mutant *m, uint32_t seeds)
{
    uint32_t runs = 0;
    qn_object_mutant = (enum qn_object_mutant)m->object;
    qn_delegate_mutant = (enum qn_delegate_mutant)m->delegate;
    qn_server_mutant = (enum qn_server_mutant)m->server;
    qn_lock_mutant = (enum qn_lock_mutant)m->lock;
    qn_sync_mutant = (enum qn_sync_mutant)m->sync;
    const char *how = find(m, m == &none ? SEEDS_NONE : seeds, &runs);
    const bool good = (how == NULL) == (m == &none);
    printf("%-15s %-9s %5u runs  %s%s%s\n", m->name,
           how == NULL ? (good ? "clean" : "NOT FOUND")
           : good      ? "found"
                       : "CONVICTED",
           runs, m->text, how == NULL ? "" : "; by a ", how == NULL ? "" : how);
    return good;
}

int main(int argc, char **argv)
{
    const uint32_t seeds =
        argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : SEEDS;
    const char *only = argc > 2 ? argv[2] : NULL;
    int status = 0;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    for (uint32_t i = 0; i <= QN_ARRAY_COUNT(all); i++) {
        const struct mutant *m = i == 0 ? &none : &all[i - 1];
        if (m->begins == NULL || /* a form */
            (only != NULL && strcmp(only, m->name) != 0)) {
            continue;
        }
        if (!is_unseen(m) && !judge(m, seeds)) {
            status = 1;
        }
    }
    return status;
}
