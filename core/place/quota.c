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

/* A line of /proc/self/cgroup is NUMBER:CONTROLLERS:PATH; version 2's has
 * number 0 and no controllers. @return the path; NULL: another hierarchy's. */
static const char *path_in(char *line, const char *controller)
{
    char *names = strchr(line, ':');
    char *path = names != NULL ? strchr(names + 1, ':') : NULL;
    if (path == NULL) {
        return NULL;
    }
    *path++ = '\0';
    if (controller == NULL) {
        return strcmp(line, "0:") == 0 ? path : NULL;
    }
    char *rest = NULL;
    for (char *name = strtok_r(names + 1, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest)) {
        if (strcmp(name, controller) == 0) {
            return path;
        }
    }
    return NULL;
}

bool qn_quota_group(const char *controller, char *path)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (f == NULL) {
        return false;
    }
    char line[PATH_MAX + 64];
    const char *found = NULL;
    while (found == NULL && fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        found = path_in(line, controller);
    }
    fclose(f);
    if (found != NULL) {
        snprintf(path, PATH_MAX, "%.*s", PATH_MAX - 1, found);
    }
    return found != NULL;
}

uint32_t qn_quota_self(void)
{
    static const char *const mounts[] = {"/sys/fs/cgroup",
                                         "/sys/fs/cgroup/unified"};
    char path[PATH_MAX];
    if (!qn_quota_group(NULL, path)) {
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
