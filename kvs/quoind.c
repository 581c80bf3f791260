/*
 * The program `quoind`: command line in, supervisor on. Everything that prints
 * or ends the process is here or in the supervisor's one line of readiness.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/err.h"
#include "kvs/args.h"
#include "kvs/pages.h"
#include "kvs/supervisor.h"
#include "transports/registry.h"

/* One write per line, so that lines of several processes do not mix. */
static void log_line(void *ctx, enum qn_log_level level, const char *text)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    char line[1152];
    struct timespec now;
    struct tm tm;
    (void)ctx;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &tm);
    int n = snprintf(line, sizeof line, "%02d:%02d:%02d.%03ld quoind %s: %s\n",
                     tm.tm_hour, tm.tm_min, tm.tm_sec, now.tv_nsec / 1000000,
                     names[level], text);
    ssize_t written = write(STDERR_FILENO, line, (size_t)n);
    (void)written; /* where else could one complain? */
}

/* What is quoted may come from any file: no control characters. */
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

/* Started with one of 0, 1 and 2 closed: what is opened first would take its
 * number, and a log line would go to whoever that is. */
static bool standard_descriptors(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    return fd >= 0 && close(fd) == 0;
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
    qn_pages_ask(argv);
    const struct qn_transport *t = qn_transport_find(config.transport);
    if (t == NULL) {
        return complain_transport(config.transport);
    }
    qn_log_set(log_line, NULL, (enum qn_log_level)config.log_level);
    const struct qn_supervisor_opts opts = {.config = &config,
                                            .transport = t,
                                            .ready = stdout,
                                            .upgrade = ask == QN_ARGS_UPGRADE,
                                            .replica_main = qn_replica_main};
    int status = qn_supervisor_run(&opts, why, sizeof why);
    return status == QN_SUPERVISOR_NOT_BEGUN ? complain(why) : status;
}
