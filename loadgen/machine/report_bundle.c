/*
 * Reads files of /proc and /sys that every user may read. Each file is named in
 * a table with the lines or words that are taken, so that nothing else is
 * copied (the files contain more). A missing file leaves no line.
 */
#include "loadgen/machine/report_bundle.h"

#include <dirent.h>
#include <errno.h>
#include <hwloc.h>
#include <numa.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/discover/topology.h"
#include "core/place/place.h"
#include "loadgen/machine/describe.h"
#include "loadgen/machine/heatmap.h"

enum { LINE = 8192, PATH_BYTES = 4096 };

static void put(FILE *to, const char *key, const char *value)
{
    (void)fprintf(to, "%s: %s\n", key, value);
}

/* Write the first line of a file. */
static void put_file(FILE *to, const char *key, const char *path)
{
    char line[LINE];
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return;
    }
    if (fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        put(to, key, line);
    }
    (void)fclose(f);
}

/* Write the first line of a file that begins with `name`: the text after its
 * colon. */
static void put_line(FILE *to, const char *path, const char *name)
{
    char line[LINE];
    FILE *f = fopen(path, "re");
    bool found = false;
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL) {
        size_t n = strlen(name);
        char *colon = strchr(line, ':');
        found = strncmp(line, name, n) == 0 && colon != NULL &&
                strspn(line + n, " \t") == (size_t)(colon - line) - n;
        if (found) {
            char *value = colon + 1 + strspn(colon + 1, " \t");
            value[strcspn(value, "\n")] = '\0';
            put(to, name, value);
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}

static void put_processor(FILE *to)
{
    static const char *const lines[] = {
        "vendor_id",       "model name", "cpu family",  "model",   "stepping",
        "microcode",       "cpu MHz",    "cache size",  "flags",   "bugs",
        "CPU implementer", "CPU part",   "CPU variant", "Features"};
    for (size_t i = 0; i < QN_ARRAY_COUNT(lines); i++) {
        put_line(to, "/proc/cpuinfo", lines[i]);
    }
}

static void put_settings(FILE *to)
{
    static const struct {
        const char *key, *path;
    } files[] = {
        {"online cpus", "/sys/devices/system/cpu/online"},
        {"smt", "/sys/devices/system/cpu/smt/control"},
        {"frequency driver",
         "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"},
        {"frequency governor",
         "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"},
        {"frequency most, kHz",
         "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"},
        {"boost", "/sys/devices/system/cpu/cpufreq/boost"},
        {"idle driver", "/sys/devices/system/cpu/cpuidle/current_driver"},
        {"clock source",
         "/sys/devices/system/clocksource/clocksource0/current_clocksource"},
        {"huge pages", "/sys/kernel/mm/transparent_hugepage/enabled"},
        {"numa balancing", "/proc/sys/kernel/numa_balancing"},
        {"hypervisor", "/sys/hypervisor/type"},
        {"load", "/proc/loadavg"},
    };
    for (size_t i = 0; i < QN_ARRAY_COUNT(files); i++) {
        put_file(to, files[i].key, files[i].path);
    }
    put_line(to, "/proc/meminfo", "MemTotal");
}

/* Write distances such as "10 21; 21 10"; XML of hwloc has them only if the
 * firmware provides them. */
static void put_distances(FILE *to)
{
    if (numa_available() < 0) {
        return;
    }
    (void)fputs("numa distances:", to);
    int last = numa_max_node();
    for (int i = 0; i <= last; i++) {
        for (int j = 0; j <= last; j++) {
            (void)fprintf(to, " %d", numa_distance(i, j));
        }
        (void)fputs(i < last ? ";" : "\n", to);
    }
}

static void put_versions(FILE *to)
{
    struct utsname u;
    if (uname(&u) == 0) {
        (void)fprintf(to, "kernel: %s %s %s\n", u.sysname, u.release,
                      u.machine);
    }
    unsigned api = hwloc_get_api_version();
    put(to, "quoin", QN_VERSION);
    (void)fprintf(to, "hwloc interface: %u.%u.%u\n", api >> 16, api >> 8 & 255,
                  api & 255);
    (void)fprintf(to, "compiler: %s\n", __VERSION__);
}

static void put_places(FILE *to)
{
    static struct qn_places places; /* too large for the stack */
    if (qn_places_discover(&places) == QN_OK) {
        (void)fprintf(to, "usable cores: %u\n", places.count);
        (void)fprintf(to, "cpu quota, cores: %.3f\n",
                      places.quota_milli / 1000.0);
        put(to, "numa calls", places.numa_calls ? "permitted" : "refused");
    }
}

void qn_report_bundle_facts(FILE *to)
{
    put_versions(to);
    put_places(to);
    put_processor(to);
    put_settings(to);
    put_distances(to);
}

/* ---- the folder ---- */

static int cannot_write(struct qn_parse_error *parse_error, const char *path,
                        int cause)
{
    (void)qn_parse_error_set(parse_error, path, 0, NULL, "cannot write: %s",
                             strerror(cause));
    return cause == ENOENT ? QN_ENOENT : QN_EIO;
}

/* An existing folder must be empty. @return QN_OK, QN_ENOENT: it does not
 * exist. */
static int look_into(const char *folder, struct qn_parse_error *parse_error)
{
    DIR *d = opendir(folder);
    if (d == NULL) {
        return errno == ENOENT ? QN_ENOENT
                               : cannot_write(parse_error, folder, errno);
    }
    bool empty = true;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        empty = empty &&
                (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0);
    }
    (void)closedir(d);
    if (!empty) {
        (void)qn_parse_error_set(parse_error, folder, 0, NULL,
                                 "the folder is not empty; name a new one");
        return QN_EEXIST;
    }
    return access(folder, W_OK) == 0 ? QN_OK
                                     : cannot_write(parse_error, folder, errno);
}

int qn_report_bundle_check(const char *folder,
                           struct qn_parse_error *parse_error)
{
    int err = look_into(folder, parse_error);
    if (err != QN_ENOENT) {
        return err;
    }
    if (mkdir(folder, 0777) != 0) {
        return cannot_write(parse_error, folder, errno);
    }
    (void)rmdir(folder);
    return QN_OK;
}

static int write_file(const struct qn_machine *m, const char *folder,
                      const char *name,
                      int (*write)(const struct qn_machine *m, FILE *to),
                      struct qn_parse_error *parse_error)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "we");
    if (f == NULL) {
        return cannot_write(parse_error, path, errno);
    }
    int err = write(m, f);
    bool bad = ferror(f) != 0;
    bad = fclose(f) != 0 || bad;
    return err != QN_OK ? err
           : bad        ? cannot_write(parse_error, path, EIO)
                        : QN_OK;
}

static int write_facts(const struct qn_machine *m, FILE *to)
{
    (void)m;
    qn_report_bundle_facts(to);
    return QN_OK;
}

static int write_xml(const struct qn_machine *m, FILE *to)
{
    char *xml = NULL;
    int err = qn_machine_topology_xml(&xml, NULL);
    (void)m;
    if (err == QN_OK) {
        (void)fputs(xml, to);
        free(xml);
    }
    return err;
}

int qn_report_bundle_write(const struct qn_machine *m, const char *folder,
                           struct qn_parse_error *parse_error)
{
    static const struct {
        const char *name;
        int (*write)(const struct qn_machine *m, FILE *to);
    } files[] = {{"machine.json", qn_machine_write_json},
                 {"machine.txt", qn_machine_describe},
                 {"facts.txt", write_facts},
                 {"topology.xml", write_xml},
                 {"machine.svg", qn_heatmap_write}};
    int err = look_into(folder, parse_error);
    if (err == QN_ENOENT) {
        err = mkdir(folder, 0777) == 0
                  ? QN_OK
                  : cannot_write(parse_error, folder, errno);
    }
    /* The picture is last, since a machine of one core has none. */
    size_t count = QN_ARRAY_COUNT(files) - (m->n == 1);
    for (size_t i = 0; i < count && err == QN_OK; i++) {
        err = write_file(m, folder, files[i].name, files[i].write, parse_error);
    }
    return err;
}
