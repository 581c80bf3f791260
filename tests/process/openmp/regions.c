/*
 * Parallel regions without tasks and cancellation: barriers, loops, single, in
 * teams of all sizes, nested, of two threads at once, in a forked child, and
 * beside a library with tasks that is loaded later (late.so, the variable
 * OPENMP_LATE).
 *
 * What is written in front of a barrier is plain memory, read by all behind it.
 */
#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/process/openmp/case.h"

#define THREADS_MAX 257 /* one more than a team with a barrier of ours */
#define LENGTH      64

static int value[2][THREADS_MAX]; /* of each of two teams */

/* Each writes, and sees behind the barrier what all have written. */
static int episode(int *values, int number)
{
    const int size = omp_get_num_threads();
    int wrong = 0;
    values[omp_get_thread_num()] = number;
#pragma omp barrier
    for (int i = 0; i < size; i++) {
        wrong += values[i] != number;
    }
#pragma omp barrier
    return wrong;
}

static int region(int *values, int threads, int episodes)
{
    int wrong = 0;
#pragma omp parallel num_threads(threads) reduction(+ : wrong)
    for (int e = 1; e <= episodes; e++) {
        wrong += episode(values, e);
    }
    return wrong;
}

static int barriers(void)
{
    static const int sizes[] = {2, 3, 4, 8, 16};
    int wrong = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        wrong += region(value[0], sizes[i], 160 / sizes[i]);
    }
    return wrong;
}

/* The same barrier serves many regions, and each size has its own. */
static int sizes_that_change(void)
{
    int wrong = 0;
    for (int round = 0; round < 4; round++) {
        for (int size = 2; size <= 6; size++) {
            omp_set_num_threads(size);
            wrong += region(value[0], omp_get_max_threads(), 1 + round % 2);
        }
    }
    return wrong;
}

/* Barriers of both kinds, one behind the other. */
static int loops(int *written, int round)
{
    static int once;
    int wrong = 0, copied = 0;
#pragma omp for schedule(static)
    for (int i = 0; i < LENGTH; i++) {
        written[i] = round;
    }
    for (int i = 0; i < LENGTH; i++) {
        wrong += written[i] != round;
    }
#pragma omp barrier
#pragma omp for schedule(dynamic, 3)
    for (int i = 0; i < LENGTH; i++) {
        written[i] = -round;
    }
    for (int i = 0; i < LENGTH; i++) {
        wrong += written[i] != -round;
    }
#pragma omp single
    once = round;
    wrong += once != round;
#pragma omp single copyprivate(copied)
    copied = round;
    wrong += copied != round;
#pragma omp barrier
    return wrong;
}

static int mixed(void)
{
    static int written[LENGTH];
    int wrong = 0, sum = 0;
    for (int threads = 2; threads <= 8; threads *= 2) {
#pragma omp parallel num_threads(threads) reduction(+ : wrong)
        for (int round = 1; round <= 5; round++) {
            wrong += loops(written, round);
#pragma omp for schedule(static) reduction(+ : sum)
            for (int i = 0; i < LENGTH; i++) {
                sum += 1;
            }
#pragma omp critical
            sum += 1;
        }
    }
    return wrong + (sum != 3 * 5 * LENGTH + 5 * (2 + 4 + 8));
}

/* Alone in its team, outside of any, and in one that was not made. */
static int one(void)
{
    int wrong = region(value[0], 1, 3);
#pragma omp barrier
#pragma omp parallel num_threads(4) if (omp_get_level() > 0) reduction(+ : wrong)
    wrong += episode(value[0], 1);
    return wrong;
}

static int most(void)
{
    return region(value[0], THREADS_MAX - 1, 1);
}

static int many(void)
{
    return region(value[0], THREADS_MAX, 1);
}

/* OMP_THREAD_LIMIT=3: the team is smaller than the one that is asked for. */
static int limited(void)
{
    return region(value[0], 4, 2);
}

/* Only inner teams pass barriers: all are nested. */
static int nested(void)
{
    int wrong = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2) reduction(+ : wrong)
    wrong += region(value[omp_get_thread_num()], 3, 5);
    return wrong;
}

/* The outer team's barriers, around inner teams. */
static int around_nested(void)
{
    static int outer[2];
    int wrong = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2) reduction(+ : wrong)
    for (int round = 1; round <= 3; round++) {
        wrong += episode(outer, round);
        wrong += region(value[omp_get_thread_num()], 2, 2);
        wrong += episode(outer, -round);
    }
    return wrong;
}

static void *master(void *arg)
{
    int *values = arg, wrong = 0;
    for (int round = 0; round < 10; round++) {
        wrong += region(values, 2 + round % 2, 2);
    }
    values[0] = wrong;
    return NULL;
}

/* Two threads with a team each, three times: their barriers end with them. */
static int two_masters(void)
{
    int wrong = 0;
    for (int round = 0; round < 3; round++) {
        pthread_t thread[2];
        for (int i = 0; i < 2; i++) {
            if (pthread_create(&thread[i], NULL, master, value[i]) != 0) {
                return 1;
            }
        }
        for (int i = 0; i < 2; i++) {
            (void)pthread_join(thread[i], NULL);
            wrong += value[i][0];
        }
    }
    return wrong;
}

static pthread_key_t last_key;

static void last_region(void *values)
{
    int wrong = region(values, 2, 2);
    ((int *)values)[0] = wrong;
}

static void *master_with_key(void *values)
{
    if (pthread_setspecific(last_key, values) == 0) {
        (void)region(values, 2, 2);
    }
    return NULL;
}

/* A region in a destructor that runs behind that of the barriers, whose key was
 * made before. */
static int behind_the_end(void)
{
    int wrong = region(value[0], 2, 1);
    pthread_t thread;
    value[1][0] = 1;
    if (pthread_key_create(&last_key, last_region) != 0 ||
        pthread_create(&thread, NULL, master_with_key, value[1]) != 0) {
        return 1;
    }
    (void)pthread_join(thread, NULL);
    (void)pthread_key_delete(last_key);
    return wrong + value[1][0];
}

/* libgomp itself serves a child only if its parent had no team before: so the
 * parent is a child, too. */
static int child_of_child(void)
{
    int status = 1;
    const pid_t child = fork();
    if (child == 0) {
        _exit(region(value[0], 3, 3) != 0);
    }
    (void)waitpid(child, &status, 0);
    return region(value[0], 2, 3) + (status != 0);
}

static int forked(void)
{
    const uint64_t before = openmp_spy_calls != NULL ? openmp_spy_calls() : 0;
    int status = 1;
    const pid_t child = fork();
    if (child == 0) {
        const int wrong = child_of_child();
        _exit(wrong != 0 ||
              (openmp_spy_calls != NULL && openmp_spy_calls() != before));
    }
    (void)waitpid(child, &status, 0);
    return status != 0;
}

/* Loaded within a region, which keeps its barriers, though a member begins a
 * region of its own behind that. @return NULL: it cannot be loaded. */
static void *load(const char *path, int *wrong)
{
    void *library = NULL;
    int found = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(3) reduction(+ : found)
    {
        found += episode(value[0], 1);
#pragma omp master
        {
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            found += region(value[1], 2, 1);
        }
        found += episode(value[0], 2);
    }
    *wrong += found;
    return library;
}

/* A library with tasks: its barriers run them, and from the next region on all
 * barriers are those of libgomp. */
static int late(void)
{
    const char *path = getenv("OPENMP_LATE");
    int wrong = 0;
    void *library = path == NULL ? NULL : load(path, &wrong);
    if (library == NULL) {
        fprintf(stderr, "late: %s\n", path == NULL ? "OPENMP_LATE" : dlerror());
        return 1;
    }
    int (*run)(void);
    const void *address = dlsym(library, "openmp_tasks");
    if (address == NULL) {
        return 1;
    }
    memcpy(&run, &address, sizeof address);
    return wrong + run();
}

int main(int argc, char **argv)
{
    static const struct openmp_case all[] = {
        {"forked", forked, 0}, /* while there is no team */
        {"barriers", barriers, 0},
        {"sizes", sizes_that_change, 0},
        {"mixed", mixed, 0},
        {"masters", two_masters, 0},
        {"behind_the_end", behind_the_end, 0},
        {"one", one, 2 * 3 + 1 + 2},
        {"most", most, 0},
        {"many", many, 2 * THREADS_MAX},
        {"nested", nested, 2 * 3 * 5 * 2},
        {"around", around_nested, 3 * 2 * 2 * 2 * 2},
        {"late", late, 2 * 2 + 2 * (1 + 2 + 3 + 4)},
    };
    static const struct openmp_case limit = {"limited", limited, 0};
    if (getenv("OMP_THREAD_LIMIT") != NULL) {
        return openmp_cases(&limit, 1, argc, argv);
    }
    return openmp_cases(all, sizeof all / sizeof all[0], argc, argv);
}
