/*
 * The program `quoind`: parses the command line and runs the supervisor. All
 * code that prints or ends the process is here, in logger.c, or in the
 * supervisor's line of readiness.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/err.h"
#include "kvs/config/args.h"
#include "kvs/main/logger.h"
#include "kvs/main/replica_main.h"
#include "kvs/resources/huge_pages.h"
#include "kvs/supervisor/supervisor.h"
#include "transports/registry.h"

/* A quoted text may come from any file: replace control characters. */
static int complain(const char *why)
{
    fputs("quoind: ", stderr);
    for (; *why != '\0'; why++) {
        bool control = (unsigned char)*why < ' ' || *why == 0x7f;
        fputc(control ? '?' : *why, stderr);
    }
    fputc('\n', stderr);
    return QN_SUPERVISOR_NOT_BEGUN;
}

static int complain_transport(const char *name)
{
    char why[QN_CONFIG_WHY_MAX];
    size_t n = (size_t)snprintf(why, sizeof why,
                                "--transport '%.64s': must be one of:", name);
    for (uint32_t i = 0; qn_transport_at(i) != NULL && n < sizeof why; i++) {
        n += (size_t)snprintf(why + n, sizeof why - n, " %s",
                              qn_transport_at(i)->name);
    }
    return complain(why);
}

/* If 0, 1 or 2 is closed at start, the first file or socket opened would get
 * its number, and log lines would go there. */
static bool standard_descriptors(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    return fd >= 0 && close(fd) == 0;
}

/* A replica's process, after fork. */
static int replica_main(const struct qn_replica_spec *boot)
{
    (void)qn_logger_start(); /* without it, log lines may delay the replica,
                                no more */
    int status = qn_replica_main(boot);
    qn_logger_end();
    return status;
}

int main(int argc, char **argv)
{
    struct qn_config config;
    enum qn_args_ask ask;
    char why[QN_CONFIG_WHY_MAX];
    if (!standard_descriptors()) {
        return complain("cannot open /dev/null");
    }
    if (qn_args_parse(argc, argv, &config, &ask, why, sizeof why) != QN_OK) {
        return complain(why);
    }
    if (ask == QN_ARGS_HELP) {
        qn_args_help(stdout);
        return 0;
    }
    if (ask == QN_ARGS_VERSION) {
        puts("quoind " QN_VERSION);
        return 0;
    }
    qn_huge_pages_request(argv);
    if (qn_transport_find(config.transport) == NULL) {
        return complain_transport(config.transport);
    }
    qn_logger_init((enum qn_log_level)config.log_level);
    const struct qn_supervisor_opts opts = {.config = &config,
                                            .transport = qn_transport_find,
                                            .ready = stdout,
                                            .upgrade = ask == QN_ARGS_UPGRADE,
                                            .replica_main = replica_main};
    int status = qn_supervisor_run(&opts, why, sizeof why);
    return status == QN_SUPERVISOR_NOT_BEGUN ? complain(why) : status;
}
