/*
 * The memory of the machine, and the limits of control groups. Version 2 has
 * `memory.max` ("max": none), `memory.current`; version 1, often mounted beside
 * it, `memory.limit_in_bytes` (none: the largest multiple of a page) and
 * `memory.usage_in_bytes`. Both have `memory.stat`, where version 1 marks sums
 * over the groups below by `total_`.
 *
 * Every group above limits too. A container may see the path that its group has
 * outside, and its own group as the root of the mount: what does not exist is
 * no limit, and the root is always looked at.
 */
#include "core/place/quota.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/place/place_internal.h"

/* No machine has so much: version 1's way to say that there is no limit. */
#define NO_LIMIT (UINT64_C(1) << 60)

struct names {
    const char *limit, *usage, *file[2];
};

static const struct names by_version[2] = {
    {"memory.max", "memory.current", {"inactive_file", "active_file"}},
    {"memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}}};

static FILE *file_of(const char *dir, const char *name)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return fopen(path, "re");
}

static uint64_t number_in(const char *dir, const char *name, uint64_t otherwise)
{
    uint64_t v = otherwise;
    FILE *f = file_of(dir, name);
    if (f != NULL) {
        if (fscanf(f, "%" SCNu64, &v) != 1) {
            v = otherwise;
        }
        fclose(f);
    }
    return v;
}

/* File pages, which the kernel drops when memory is short. */
static uint64_t cache_in(const char *dir, const struct names *n)
{
    char name[64];
    uint64_t v, sum = 0;
    FILE *f = file_of(dir, "memory.stat");
    while (f != NULL && fscanf(f, "%63s %" SCNu64, name, &v) == 2) {
        if (strcmp(name, n->file[0]) == 0 || strcmp(name, n->file[1]) == 0) {
            sum += v;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return sum;
}

static uint64_t free_here(const char *dir, const struct names *n)
{
    uint64_t limit = number_in(dir, n->limit, QN_QUOTA_NONE);
    if (limit >= NO_LIMIT) {
        return QN_QUOTA_NONE;
    }
    uint64_t usage = number_in(dir, n->usage, 0);
    uint64_t cache = cache_in(dir, n);
    uint64_t used = usage > cache ? usage - cache : 0;
    return limit > used ? limit - used : 0;
}

uint64_t qn_quota_memory_of(const char *mount, const char *path,
                            unsigned version)
{
    char dir[PATH_MAX];
    uint64_t least = QN_QUOTA_NONE;
    int n = snprintf(dir, sizeof dir, "%s%s", mount, path);
    if (n < 0 || (size_t)n >= sizeof dir) {
        return least;
    }
    for (;;) {
        uint64_t here = free_here(dir, &by_version[version == 1]);
        least = here < least ? here : least;
        if (strlen(dir) <= strlen(mount)) {
            return least;
        }
        *strrchr(dir, '/') = '\0';
    }
}

uint64_t qn_quota_memory(void)
{
    static const struct {
        const char *mount, *controller;
    } where[] = {{"/sys/fs/cgroup", NULL},
                 {"/sys/fs/cgroup/unified", NULL},
                 {"/sys/fs/cgroup/memory", "memory"}};
    uint64_t least = QN_QUOTA_NONE;
    for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
        char path[PATH_MAX];
        if (qn_quota_group(where[i].controller, path)) {
            unsigned version = where[i].controller != NULL ? 1 : 2;
            uint64_t here = qn_quota_memory_of(where[i].mount, path, version);
            least = here < least ? here : least;
        }
    }
    return least;
}

uint64_t qn_quota_machine_memory(void)
{
    char line[128];
    uint64_t kib = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL &&
           sscanf(line, "MemAvailable: %" SCNu64, &kib) != 1) {
    }
    if (f != NULL) {
        fclose(f);
    }
    return kib << 10;
}
