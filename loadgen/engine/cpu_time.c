#include "loadgen/engine/cpu_time.h"

#include "core/base/bits.h"
#include "core/base/err.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * The time is read from the process's CPU clock (clock_getcpuclockid), which
 * counts ns; utime and stime of /proc/PID/stat count ticks of 10 ms.
 */

int qn_cpu_time_read(pid_t pid, uint64_t *ns)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 ||
        clock_gettime(clock, &t) != 0) {
        return QN_ENOENT;
    }
    *ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    return QN_OK;
}

/* Parent of a process; 0 if the process has ended. */
static pid_t parent_of(pid_t pid)
{
    char path[64];
    char line[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return 0;
    }
    char *got = fgets(line, sizeof line, f);
    fclose(f);
    /* the name may contain any character */
    const char *after = got != NULL ? strrchr(line, ')') : NULL;
    long ppid = 0;
    if (after != NULL && strlen(after) > 4) {
        ppid = strtol(after + 4, NULL, 10);
    }
    return (pid_t)ppid;
}

struct pair {
    pid_t pid;
    pid_t parent;
};

/* All processes and their parents; the caller frees *pairs. */
static int snapshot(struct pair **pairs)
{
    DIR *dir = opendir("/proc");
    if (dir == NULL) {
        return QN_ENOENT;
    }
    int count = 0;
    int cap = 0;
    *pairs = NULL;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
        if (pid <= 0) {
            continue;
        }
        if (count == cap) {
            cap = cap == 0 ? 256 : 2 * cap;
            struct pair *grown = realloc(*pairs, (size_t)cap * sizeof *grown);
            if (grown == NULL) {
                free(*pairs);
                closedir(dir);
                return QN_ENOMEM;
            }
            *pairs = grown;
        }
        (*pairs)[count++] = (struct pair){pid, parent_of(pid)};
    }
    closedir(dir);
    return count;
}

int qn_cpu_time_tree(pid_t root, pid_t *pids, size_t max)
{
    if (max == 0) {
        return QN_ERANGE;
    }
    uint64_t ns;
    struct pair *pairs;
    int all =
        qn_cpu_time_read(root, &ns) == QN_OK ? snapshot(&pairs) : QN_ENOENT;
    if (all < 0) {
        return all;
    }
    size_t count = 0;
    pids[count++] = root;
    /* Breadth first: the children of each listed process are appended. */
    for (size_t i = 0; i < count; i++) {
        for (int j = 0; j < all; j++) {
            if (pairs[j].parent != pids[i]) {
                continue;
            }
            if (count == max) {
                free(pairs);
                return QN_ERANGE;
            }
            pids[count++] = pairs[j].pid;
        }
    }
    free(pairs);
    return (int)count;
}
