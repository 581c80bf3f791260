#include "loadgen/base/output_path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/bits.h"

bool qn_output_path_is_stdout(const char *path)
{
    return path == NULL || strcmp(path, "-") == 0;
}

const char *qn_output_path_name(const char *path)
{
    return qn_output_path_is_stdout(path) ? "standard output" : path;
}

const char *qn_output_path_ending(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *point = strrchr(name, '.');
    return point != NULL && point > name ? point + 1 : "";
}

FILE *qn_output_path_open(const char *path)
{
    return qn_output_path_is_stdout(path) ? stdout : fopen(path, "we");
}

int qn_output_path_close(FILE *to)
{
    int why = fflush(to) != 0 ? errno : ferror(to) != 0 ? EIO : 0;
    if (to != stdout && fclose(to) != 0 && why == 0) {
        why = errno;
    }
    return why;
}

/* The path must be a writable file, or lie in a folder in which it can be
 * created. */
int qn_output_path_check(const char *program, const char *option,
                         const char *path, const char *folder)
{
    struct stat st;
    char parent[PATH_MAX];
    if (qn_output_path_is_stdout(path)) {
        return 0;
    }
    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode)) {
            (void)fprintf(stderr, "%s: --%s: %s is a folder; %s\n", program,
                          option, path, folder);
            return 2;
        }
        if (access(path, W_OK) == 0) {
            return 0;
        }
    } else if (path[0] != '\0') {
        const char *slash = strrchr(path, '/');
        int n = slash == NULL ? 1 : (int)QN_MAX(slash - path, 1);
        (void)snprintf(parent, sizeof parent, "%.*s", n,
                       slash == NULL ? "." : path);
        if (access(parent, W_OK | X_OK) == 0) {
            return 0;
        }
    }
    (void)fprintf(stderr, "%s: --%s: %s: %s\n", program, option,
                  path[0] != '\0' ? path : "''", strerror(errno));
    return 2;
}
