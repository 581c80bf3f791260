#include "kvs/debug.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

#include "kvs/number.h"
#include "kvs/reply.h"
#include "kvs/server.h"

/* True if DEBUG may be used; else the error was written. */
static bool allowed(struct qn_conn *c, struct qn_cmd_call *call)
{
    if (c->fe->o.server->boot->config->enable_debug_command) {
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
        qn_reply_error(call->reply,
                       "LOADING Redis is loading the dataset in memory");
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

/* All zeros, all ones, or garbage, different in each word. */
static void wreck_range(unsigned long from, unsigned long to, uint64_t seed)
{
    uint64_t x = seed;
    for (uint64_t *p = (uint64_t *)from; p < (uint64_t *)to; p++) {
        *p = x;
        if (x != UINT64_MAX) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
    }
}

/* All mappings that are shared, those that are read-only too if the kernel can
 * be talked into it: what a wild pointer could reach of other processes. */
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
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long from = 0;
        unsigned long to = 0;
        char mode[5] = "";
        if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) == 3 &&
            mode[3] == 's' &&
            (mode[1] == 'w' ||
             mprotect((void *)from, to - from, PROT_READ | PROT_WRITE) == 0)) {
            wreck_range(from, to, (uint64_t)seed);
        }
    }
    raise(SIGKILL);
}
