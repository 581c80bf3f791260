#include "kvs/local/debug_command.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kvs/base/number.h"
#include "kvs/resp/reply.h"
#include "kvs/server/server.h"

/* True if DEBUG may be used; else the error was written. */
static bool allowed(struct qn_conn *c, struct qn_cmd_call *call)
{
    const struct qn_server *s = c->fe->o.ctx;
    if (s->boot->config->enable_debug_command) {
        return true;
    }
    qn_reply_error(call->reply,
                   "ERR DEBUG command not allowed. Start the server with "
                   "--enable-debug-command to use it");
    return false;
}

void qn_debug_digest(struct qn_conn *c, struct qn_cmd_call *call)
{
    struct qn_replica *r = c->fe->o.replica;
    struct qn_store *store = qn_replica_store(r);
    if (!allowed(c, call)) {
        return;
    }
    if (store == NULL) {
        qn_reply_error(call->reply, QN_REPLY_LOADING);
        return;
    }
    char text[64];
    uint64_t digest = qn_store_digest(store, qn_replica_stamp_ms(r));
    snprintf(text, sizeof text, "%llu %016llx",
             (unsigned long long)qn_replica_applied(r),
             (unsigned long long)digest);
    qn_reply_status(call->reply, text);
}

void qn_debug_sleep(struct qn_conn *c, struct qn_cmd_call *call)
{
    long double seconds = 0;
    if (!allowed(c, call)) {
        return;
    }
    if (!qn_number_parse_float(call->argv[2], &seconds) || seconds < 0 ||
        seconds > 3600) {
        qn_reply_error(call->reply, "ERR value is not a valid float");
        return;
    }
    uv_sleep((unsigned)(seconds * 1000));
    qn_reply_ok(call->reply);
}

void qn_debug_hold_learns(struct qn_conn *c, struct qn_cmd_call *call)
{
    int64_t on = 0;
    if (!allowed(c, call)) {
        return;
    }
    if (!qn_number_parse(call->argv[2], &on)) {
        qn_reply_error(call->reply,
                       "ERR value is not an integer or out of range");
        return;
    }
    qn_driver_hold_learns(qn_replica_driver(c->fe->o.replica), on != 0);
    qn_reply_ok(call->reply);
}

void qn_debug_overwrite_register(struct qn_conn *c, struct qn_cmd_call *call)
{
    int64_t epoch = 0;
    int64_t hi = 0;
    if (!allowed(c, call)) {
        return;
    }
    if (!qn_number_parse(call->argv[2], &epoch) ||
        !qn_number_parse(call->argv[3], &hi)) {
        qn_reply_error(call->reply,
                       "ERR value is not an integer or out of range");
        return;
    }
    if (!qn_driver_overwrite_register(qn_replica_driver(c->fe->o.replica),
                                      (uint64_t)epoch, (uint64_t)hi)) {
        qn_reply_error(call->reply,
                       "ERR the accept register is not in reach: name the "
                       "leader of a memory acceptor");
        return;
    }
    qn_reply_ok(call->reply);
}

/* All zeros, all ones, or garbage, different in each word. */
static uint64_t wreck_page(uint64_t *at, size_t page, uint64_t x)
{
    for (uint64_t *p = at; p < at + page / sizeof *p; p++) {
        *p = x;
        if (x != UINT64_MAX) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
    }
    return x;
}

/* Only existing pages: writing to the hole behind a ring would only use up
 * memory. */
static void wreck_range(unsigned long from, unsigned long to, uint64_t x)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (unsigned long at = from; at < to; at += page) {
        unsigned char there = 1;
        if (mincore((void *)at, page, &there) != 0 || (there & 1) != 0) {
            x = wreck_page((uint64_t *)at, page, x);
        }
    }
}

/* An outbox is tried even if it is read-only here: the kernel must refuse to
 * open it. A process could open the commons for writing, but a stray write
 * does not do that. */
static bool in_reach(const char *mode, const char *name, unsigned long from,
                     unsigned long to)
{
    return mode[3] == 's' &&
           (mode[1] == 'w' ||
            (strstr(name, "quoin-commons") == NULL &&
             mprotect((void *)from, to - from, PROT_READ | PROT_WRITE) == 0));
}

/* All shared memory that a stray write could reach, unless that includes the
 * accept register: the group may stop then, which tests nothing. */
void qn_debug_wreck(struct qn_conn *c, struct qn_cmd_call *call)
{
    int64_t seed = 0;
    if (!allowed(c, call)) {
        return;
    }
    if (!qn_number_parse(call->argv[2], &seed)) {
        qn_reply_error(call->reply,
                       "ERR value is not an integer or out of range");
        return;
    }
    if (qn_driver_claims(qn_replica_driver(c->fe->o.replica))) {
        qn_reply_error(call->reply,
                       "ERR this replica leads, and could stop the group: "
                       "name another one");
        return;
    }
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long from = 0;
        unsigned long to = 0;
        char mode[5] = "";
        if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) == 3 &&
            in_reach(mode, line, from, to)) {
            wreck_range(from, to, (uint64_t)seed);
        }
    }
    raise(SIGKILL);
}
