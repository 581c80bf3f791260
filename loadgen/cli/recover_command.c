#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "kvs/base/buf.h"
#include "loadgen/base/options.h"
#include "loadgen/cli/quoin.h"
#include "loadgen/cli/recover.h"
#include "loadgen/net/address.h"
#include "loadgen/net/oneshot_request.h"

/*
 * `quoin recover`: a group that has stopped goes on from the longest log that
 * is left (PROTOCOL.md 9, 5.7). The plan is shown and must
 * be agreed to; the server does the rest (kvs/supervision/recovery.c),
 * or says why not. Then it is watched until all are complete.
 */

enum { LOOK_MS = 20, PATIENCE_S = 60 };

/* Read the state of the group from any replica. Returns QN_OK, errors of
 * qn_recover_make, or QN_EIO if no replica answers. */
static int look(const char *address, struct qn_recover_plan *p, char *why,
                size_t cap)
{
    struct qn_buf text = {0};
    int type = qn_oneshot_request(
        address, "*2\r\n$4\r\nINFO\r\n$5\r\nquoin\r\n", &text, why, cap);
    int err = QN_EIO;
    qn_buf_append(&text, "", 1);
    if (type == '$' && !text.oom) {
        err = qn_recover_make(p, (const char *)text.data, why, cap);
    } else if (type != 0) {
        snprintf(why, cap, "%.*s", (int)QN_MIN(text.len, cap - 1),
                 (const char *)text.data);
    }
    qn_buf_free(&text);
    return err;
}

static bool agreed(void)
{
    char answer[16] = "";
    fputs("Type yes to continue: ", stdout);
    fflush(stdout);
    return fgets(answer, sizeof answer, stdin) != NULL &&
           strcmp(answer, "yes\n") == 0;
}

/* Send the order. Returns 0, or 1 if it is refused. The replica may be ended
 * before its reply is sent; that is not a refusal. */
static int order(const char *address, const struct qn_recover_plan *p)
{
    char epoch[24];
    char node[8];
    char has[24];
    char request[160];
    char why[160] = "";
    struct qn_buf reply = {0};
    int epoch_len =
        snprintf(epoch, sizeof epoch, "%llu", (unsigned long long)p->epoch);
    int node_len = snprintf(node, sizeof node, "%u", p->from);
    int has_len = snprintf(has, sizeof has, "%llu",
                           (unsigned long long)p->part[p->from].has);
    snprintf(request, sizeof request,
             "*5\r\n$5\r\nQUOIN\r\n$7\r\nRECOVER\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n"
             "$%d\r\n%s\r\n",
             epoch_len, epoch, node_len, node, has_len, has);
    int type = qn_oneshot_request(address, request, &reply, why, sizeof why);
    bool refused = type != 0 && type != '+';
    if (refused) {
        fprintf(stderr, "quoin recover: %s: %.*s\n", address, (int)reply.len,
                (const char *)reply.data);
    }
    qn_buf_free(&reply);
    return refused ? 1 : 0;
}

static bool all_complete(const struct qn_recover_plan *p)
{
    return p->serving && p->complete == p->replicas;
}

static int watch(const char *address, qn_node_t from)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    struct qn_recover_plan p = {0};
    char why[160] = "";
    qn_time_t began = qn_clock_now();
    while (qn_clock_now() < began + PATIENCE_S * QN_S) {
        (void)look(address, &p, why,
                   sizeof why); /* the replica may be restarting */
        if (all_complete(&p)) {
            printf("Recovered from replica %u: all %u are complete after "
                   "%.2f s.\n",
                   from, p.replicas, (double)(qn_clock_now() - began) / 1e9);
            return 0;
        }
        nanosleep(&pause, NULL);
    }
    fprintf(stderr,
            "quoin recover: not complete after %d s (%u of %u replicas are "
            "complete); see the log of the server\n",
            PATIENCE_S, p.complete, p.replicas);
    return 1;
}

static int recover(const char *to, bool yes)
{
    struct qn_recover_plan p;
    char why[160] = "";
    if (look(to, &p, why, sizeof why) != QN_OK) {
        fprintf(stderr, "quoin recover: %s: %s\n", to, why);
        return 1;
    }
    if (!qn_recover_print(&p, stdout)) {
        return 1;
    }
    if (!yes && !isatty(STDIN_FILENO)) {
        fputs("quoin recover: cannot ask for confirmation without a terminal; "
              "give --yes\n",
              stderr);
        return 2;
    }
    if (!yes && !agreed()) {
        fputs("quoin recover: not confirmed; nothing was changed\n", stderr);
        return 1;
    }
    int status = order(to, &p);
    return status != 0 ? status : watch(to, p.from);
}

static int take_to(const struct qn_option *o, const char *text)
{
    int err = qn_address_check(text);
    if (err != QN_OK) {
        fprintf(stderr, "quoin recover: --to %s: %s\n", text,
                qn_address_refusal(err));
        return QN_ERANGE;
    }
    return qn_option_string(o, text);
}

struct command {
    const char *to;
    bool yes;
};

static const struct qn_option table[] = {
    QN_OPTION("to", "ADDR", take_to, offsetof(struct command, to),
              "HOST:PORT or unix:PATH of any replica of the running quoind"),
    QN_OPTION("yes", NULL, qn_option_flag, offsetof(struct command, yes),
              "do not ask for confirmation"),
};

int qn_recover_command(int argc, char **argv)
{
    struct command c = {0};
    const struct qn_options o = {
        "quoin recover",
        "Continue a stopped group from its longest remaining log. A group "
        "stops "
        "if all\n"
        "replicas that had the end of its log are lost: the leader while the "
        "others had\n"
        "fallen far behind; with --acceptor process leader and acceptor "
        "together. INFO\n"
        "then has group:stopped, and writes are refused. This command shows "
        "the data of\n"
        "each replica and the positions that may be lost, and asks for "
        "confirmation. It\n"
        "does not change a group that has not stopped. Status 1: not "
        "recovered.",
        table, QN_ARRAY_COUNT(table), &c};
    int status = 0;
    if (!qn_options_parse(&o, argc, argv, &status)) {
        return status;
    }
    if (c.to == NULL) {
        fprintf(stderr,
                "quoin recover: missing --to HOST:PORT (address of a running "
                "quoind)\n");
        return 2;
    }
    return recover(c.to, c.yes);
}
