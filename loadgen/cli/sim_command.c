/*
 * `quoin sim`: executes quoin-sim, which lies beside this program. In it the
 * library is compiled for the simulated machine, under the names that it has
 * here for the real one (loadgen/simulate/main.c).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loadgen/cli/quoin.h"

#define NAME "quoin-sim"

int qn_sim_execute(const char *program, char *const *argv)
{
    char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - sizeof NAME);
    char *slash = len > 0 ? memrchr(path, '/', (size_t)len) : NULL;
    if (slash != NULL) {
        memcpy(slash + 1, NAME, sizeof NAME);
        execv(path, argv);
    }
    fprintf(stderr,
            "%s: cannot execute " NAME
            " beside quoin: %s; install it in the same folder\n",
            program, strerror(errno));
    return 1;
}

int qn_sim_command(int argc, char **argv)
{
    (void)argc;
    return qn_sim_execute("quoin sim", argv);
}
