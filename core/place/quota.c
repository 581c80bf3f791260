/*
 * The CPU quota of control groups, version 2: `cpu.max` holds "MAX PERIOD" in
 * microseconds or "max PERIOD". Every group above limits too, so the smallest
 * on the way to the root counts. A container sees its own group as the root of
 * the mount. Version 1 hierarchies are not asked: where both exist and the
 * controller is version 1's, there is simply no cpu.max to find.
 */
#include "core/place/place_internal.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* One group's own limit; 0: none. */
static uint32_t quota_here(const char *mount, const char *path)
{
    char name[2 * PATH_MAX];
    snprintf(name, sizeof name, "%s%s/cpu.max", mount, path);
    FILE *f = fopen(name, "re");
    if (f == NULL) {
        return 0;
    }
    uint64_t max = 0;
    uint64_t period = 0;
    int fields = fscanf(f, "%" SCNu64 " %" SCNu64, &max, &period);
    fclose(f);
    if (fields != 2 || period == 0 || max > UINT64_MAX / 1000) {
        return 0; /* "max", or nothing we understand */
    }
    uint64_t milli = max * 1000 / period;
    return milli == 0 ? 1 : milli > UINT32_MAX ? 0 : (uint32_t)milli;
}

uint32_t qn_quota_of(const char *mount, const char *path)
{
    char group[PATH_MAX];
    snprintf(group, sizeof group, "%s", strcmp(path, "/") == 0 ? "" : path);
    uint32_t least = 0;
    for (;;) {
        uint32_t here = quota_here(mount, group);
        if (here != 0 && (least == 0 || here < least)) {
            least = here;
        }
        char *slash = strrchr(group, '/');
        if (slash == NULL) {
            return least;
        }
        *slash = '\0';
    }
}

/* The line "0::/path" of /proc/self/cgroup; false: no version 2 hierarchy. */
static bool own_group(char path[PATH_MAX])
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (f == NULL) {
        return false;
    }
    char line[PATH_MAX + 8];
    bool found = false;
    while (!found && fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        found = strncmp(line, "0::", 3) == 0;
    }
    fclose(f);
    if (found) {
        snprintf(path, PATH_MAX, "%.*s", PATH_MAX - 1, line + 3);
    }
    return found;
}

uint32_t qn_quota_self(void)
{
    static const char *const mounts[] = {"/sys/fs/cgroup",
                                         "/sys/fs/cgroup/unified"};
    char path[PATH_MAX];
    if (!own_group(path)) {
        return 0;
    }
    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++) {
        uint32_t quota = qn_quota_of(mounts[i], path);
        if (quota != 0) {
            return quota;
        }
    }
    return 0;
}
