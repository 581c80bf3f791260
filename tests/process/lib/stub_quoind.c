/*
 * A defective quoind: its supervisor is the real one, its replicas never become
 * complete. QN_STUB selects how: "ends" at once, or "hangs".
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/base/err.h"
#include "kvs/config/args.h"
#include "kvs/supervisor/supervisor.h"
#include "transports/registry.h"

static int stub(const struct qn_replica_spec *spec)
{
    const char *how = getenv("QN_STUB");
    (void)spec;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* of a failed test no process remains */
    while (how != NULL && strcmp(how, "hangs") == 0) {
        pause();
    }
    _exit(7);
}

int main(int argc, char **argv)
{
    struct qn_config config;
    enum qn_args_ask ask;
    char why[QN_CONFIG_WHY_MAX] = "";
    if (qn_args_parse(argc, argv, &config, &ask, why, sizeof why) != QN_OK) {
        return 2;
    }
    const struct qn_supervisor_opts opts = {.config = &config,
                                            .transport = qn_transport_find,
                                            .ready = stdout,
                                            .upgrade = ask == QN_ARGS_UPGRADE,
                                            .replica_main = stub};
    int status = qn_supervisor_run(&opts, why, sizeof why);
    fputs(why, stderr);
    return status;
}
