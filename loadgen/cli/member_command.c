#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/node.h"
#include "kvs/base/buf.h"
#include "loadgen/base/options.h"
#include "loadgen/cli/quoin.h"
#include "loadgen/net/address.h"
#include "loadgen/net/oneshot_request.h"

/*
 * `quoin member list|add|remove`: any replica passes the order on to the
 * supervisor (kvs/supervision/member_change.c), and answers when it is done, or
 * why it is not. An order takes as long as the newcomer needs to become
 * complete, or the removed one to drain. A replica that is removed answers
 * itself before it has ended, and the next order waits for that: so one that
 * comes too early is given again.
 */

enum { PATIENCE_S = 600, NO_REPLICA = 1000, AGAIN_MS = 20, AGAIN_MOST = 500 };

struct command {
    const char *to;
    uint64_t replica;
    bool force;
};

enum action { LIST, ADD, REMOVE, ACTIONS };

static const char *const action_name[ACTIONS] = {"list", "add", "remove"};

/* ---- requests ------------------------------------------------------------ */

static void append_word(char *request, size_t cap, const char *word)
{
    size_t n = strlen(request);
    snprintf(request + n, cap - n, "$%zu\r\n%s\r\n", strlen(word), word);
}

static void request_make(char *request, size_t cap, enum action a,
                         const struct command *c)
{
    static const char *const word[ACTIONS] = {"LIST", "ADD", "REMOVE"};
    char number[24];
    const unsigned words = 3U + (a == REMOVE) + c->force;
    snprintf(request, cap, "*%u\r\n", words);
    append_word(request, cap, "QUOIN");
    append_word(request, cap, "MEMBER");
    append_word(request, cap, word[a]);
    if (a == REMOVE) {
        snprintf(number, sizeof number, "%llu", (unsigned long long)c->replica);
        append_word(request, cap, number);
    }
    if (c->force) {
        append_word(request, cap, "FORCE");
    }
}

/* Of an error reply, without "ERR ". */
static void print_error(const char *to, const char *text, size_t len)
{
    const size_t skip = len > 4 && memcmp(text, "ERR ", 4) == 0 ? 4 : 0;
    fprintf(stderr, "quoin member: %s: %.*s\n", to, (int)(len - skip),
            text + skip);
}

static int answered(enum action a, const struct command *c, int type,
                    const struct qn_buf *reply)
{
    static const char expected[ACTIONS] = {'$', ':', '+'};
    const char *text = reply->data != NULL ? (const char *)reply->data : "";
    const int len = (int)reply->len;
    if (type == '-') {
        print_error(c->to, text, reply->len);
        return 1;
    }
    if (type != expected[a]) {
        fprintf(stderr, "quoin member: %s: not a quoind, or another version\n",
                c->to);
        return 1;
    }
    if (a == LIST) {
        fwrite(text, 1, reply->len, stdout);
    } else if (a == ADD) {
        printf("Replica %.*s is a member.\n", len, text);
    } else {
        printf("Replica %llu is a member no more.\n",
               (unsigned long long)c->replica);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

static bool is_early(int type, const struct qn_buf *reply)
{
    static const char text[] = "another change is under way";
    return type == '-' && reply->data != NULL &&
           memmem(reply->data, reply->len, text, sizeof text - 1) != NULL;
}

static int run(enum action a, const struct command *c)
{
    char request[160];
    char why[160] = "";
    struct qn_buf reply = {0};
    int status = 1;
    request_make(request, sizeof request, a, c);
    int type = qn_oneshot_request_within(c->to, request, PATIENCE_S, &reply,
                                         why, sizeof why);
    for (int i = 0; i < AGAIN_MOST && is_early(type, &reply); i++) {
        (void)poll(NULL, 0, AGAIN_MS);
        qn_buf_free(&reply);
        reply = (struct qn_buf){0};
        type = qn_oneshot_request_within(c->to, request, PATIENCE_S, &reply,
                                         why, sizeof why);
    }
    if (type == 0) {
        fprintf(stderr, "quoin member: %s: %s\n", c->to, why);
    } else {
        status = answered(a, c, type, &reply);
    }
    qn_buf_free(&reply);
    return status;
}

/* ---- the command line ---------------------------------------------------- */

static int take_server(const struct qn_option *o, const char *text)
{
    int err = qn_address_check(text);
    if (err != QN_OK) {
        fprintf(stderr, "quoin member: --to %s: %s\n", text,
                qn_address_refusal(err));
        return QN_ERANGE;
    }
    return qn_option_string(o, text);
}

static const struct qn_option table[] = {
    QN_OPTION("to", "ADDR", take_server, offsetof(struct command, to),
              "HOST:PORT or unix:PATH of any replica of the running quoind"),
    QN_OPTION_COUNT("replica", "N", offsetof(struct command, replica),
                    "remove: its number, as list shows it", 0,
                    QN_NODES_MAX - 1),
    QN_OPTION("force", NULL, qn_option_flag, offsetof(struct command, force),
              "add, remove: although the voters that live are no majority "
              "then, or fewer followers than min-replicas-to-write are left"),
};

static int wrong(const char *line)
{
    fprintf(stderr, "quoin member: %s\n", line);
    return 2;
}

static int check(enum action a, const struct command *c)
{
    if (c->to == NULL) {
        return wrong("missing --to HOST:PORT (address of a running quoind)");
    }
    if (a == REMOVE && c->replica == NO_REPLICA) {
        return wrong("missing --replica N (see quoin member list)");
    }
    if (a != REMOVE && c->replica != NO_REPLICA) {
        return wrong("--replica is for remove only");
    }
    if (a == LIST && c->force) {
        return wrong("--force is for add and remove only");
    }
    return 0;
}

int qn_member_command(int argc, char **argv)
{
    struct command c = {.replica = NO_REPLICA};
    const struct qn_options o = {
        "quoin member",
        "quoin member list|add|remove --to ADDR: show, add or remove members "
        "of a running\n"
        "group. add: a new replica takes the lowest vacant seat (quoind "
        "--replicas-max),\n"
        "gets all data and then a vote. remove: the replica loses its vote, "
        "drains its\n"
        "clients and ends; one that has ended or is stalled is removed, too. "
        "Status 1:\n"
        "not done, and one line says why. One change at a time: another one is "
        "waited for,\n"
        "up to 10 s.",
        table, QN_ARRAY_COUNT(table), &c};
    enum action a = LIST;
    int status = 0;
    const bool named = argc > 1 && argv[1][0] != '-';
    while (named && a < ACTIONS && strcmp(argv[1], action_name[a]) != 0) {
        a++;
    }
    if (a == ACTIONS) {
        return wrong("which of list, add, remove? See quoin member --help");
    }
    if (!qn_options_parse(&o, argc - named, argv + named, &status)) {
        return status;
    }
    if (!named) {
        return wrong("which of list, add, remove? See quoin member --help");
    }
    status = check(a, &c);
    return status != 0 ? status : run(a, &c);
}
