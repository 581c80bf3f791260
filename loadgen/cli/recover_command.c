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
#include "loadgen/net/inquiry.h"

/*
 * `quoin recover`: a group that has stopped goes on from the longest log that
 * is left (PROTOCOL.md 9, 5.7). The plan is shown and must
 * be agreed to; the server does the rest (kvs/supervision/recovery.c),
 * or says why not. Then it is watched until all are complete.
 */

enum { LOOK_MS = 20, PATIENCE_S = 60 };

/* What any replica says. QN_OK, or as qn_recover_make; QN_EIO: nobody answers.
 */
static int look(const char *whom, struct qn_recover_plan *p, char *why,
                size_t cap)
{
    struct qn_buf text = {0};
    int type = qn_inquire(whom, "*2\r\n$4\r\nINFO\r\n$5\r\nquoin\r\n", &text,
                          why, cap);
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
    fputs("Type yes to go on: ", stdout);
    fflush(stdout);
    return fgets(answer, sizeof answer, stdin) != NULL &&
           strcmp(answer, "yes\n") == 0;
}

/* 0, or 1 if it is refused. Who is asked may be ended before its answer is
 * out. */
static int order(const char *whom, const struct qn_recover_plan *p)
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
    int type = qn_inquire(whom, request, &reply, why, sizeof why);
    bool refused = type != 0 && type != '+';
    if (refused) {
        fprintf(stderr, "quoin recover: %s: %.*s\n", whom, (int)reply.len,
                (const char *)reply.data);
    }
    qn_buf_free(&reply);
    return refused ? 1 : 0;
}

static bool all_complete(const struct qn_recover_plan *p)
{
    return p->serving && p->complete == p->replicas;
}

static int watch(const char *whom, qn_node_t from)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    struct qn_recover_plan p = {0};
    char why[160] = "";
    qn_time_t began = qn_clock_now();
    while (qn_clock_now() < began + PATIENCE_S * QN_S) {
        (void)look(whom, &p, why, sizeof why); /* it may be between two lives */
        if (all_complete(&p)) {
            printf("Recovered from replica %u: all %u are complete after "
                   "%.2f s.\n",
                   from, p.replicas, (double)(qn_clock_now() - began) / 1e9);
            return 0;
        }
        nanosleep(&pause, NULL);
    }
    fprintf(stderr,
            "quoin recover: not complete after %d s (%u of %u replicas are); "
            "the server's log says more\n",
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
        fputs("quoin recover: nothing is done without a yes: give --yes\n",
              stderr);
        return 2;
    }
    if (!yes && !agreed()) {
        fputs("quoin recover: nothing was done\n", stderr);
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

int qn_recover_command(int argc, char **argv)
{
    const char *to = NULL;
    bool yes = false;
    const struct qn_option table[] = {
        {"to", "ADDR", take_to, &to,
         "HOST:PORT or unix:PATH of the running quoind; any replica will do", 0,
         0},
        {"yes", NULL, qn_option_flag, &yes, "do it without asking", 0, 0},
    };
    const struct qn_options o = {
        "quoin recover",
        "Let a group that has stopped go on from the longest log that is "
        "left.\n"
        "A group stops if the last to have the newest of the log are lost: "
        "its leader\n"
        "while all others had fallen far behind; with --acceptor process "
        "leader and\n"
        "acceptor together. INFO says group:stopped then, and writes are "
        "refused. This\n"
        "shows what each replica has and which positions may be lost, and "
        "asks. Any\n"
        "other group is left alone. Status 1: not recovered.",
        table, QN_ARRAY_COUNT(table)};
    int status = 0;
    if (!qn_options_parse(&o, argc, argv, &status)) {
        return status;
    }
    if (to == NULL) {
        fprintf(stderr,
                "quoin recover: whom? --to HOST:PORT of a running quoind\n");
        return 2;
    }
    return recover(to, yes);
}
