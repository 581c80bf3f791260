/*
 * CC-Synch: one combining list for all clients. The combiner needs no other
 * exclusion than its turn.
 *
 * A call alone costs two exchanges. Under load each request costs two transfers
 * of its node's line, and the data stay with the combiner.
 */
#include "core/sync/delegate/backends.h"
#include "core/sync/delegate/combining.h"

static size_t bytes(const struct qn_delegate_opts *o)
{
    return qn_combining_bytes(o->clients, 1);
}

static int format(void *memory, const struct qn_delegate_opts *o)
{
    qn_combining_format(memory, o->clients, 1);
    return QN_OK;
}

static int join(const struct qn_backend *b, struct qn_backend_client *c,
                const struct qn_delegate_join_opts *o)
{
    (void)o;
    return qn_combining_join(b, c);
}

static uint64_t call(const struct qn_backend *b, struct qn_backend_client *c,
                     uint32_t op, uint64_t arg)
{
    struct qn_combining_call r = {.op = op, .arg = arg};
    if (!qn_combining_enter(b, c, &r)) {
        qn_combining_run(b, c, &r);
    }
    return r.result;
}

const struct qn_delegate_type qn_delegate_cc_synch = {
    .name = "cc_synch",
    .bytes = bytes,
    .format = format,
    .join = join,
    .leave = qn_combining_leave,
    .call = call,
};
