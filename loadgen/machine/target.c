#include "loadgen/machine/target.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/bits.h"

/* A file that can be written, or a folder that it can be made in. */
int qn_target_check(const char *program, const char *option, const char *path,
                    const char *folder)
{
    struct stat st;
    char parent[PATH_MAX];
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
