#include "kvs/budget.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/err.h"
#include "core/place/commons.h"
#include "core/place/outbox.h"
#include "paxos/params.h"
#include "paxos/ring.h"

#define MIB ((uint64_t)1 << 20)

/* Program, libraries, stacks, and what malloc reserves for a second thread. */
#define PROGRAM_ADDRESS ((uint64_t)256 << 20)

/* Of a replica's share, for values on their way, at most. */
#define VALUES_SHARE 4u

/* Of a replica's share, for the log; as much again for the ring. */
#define LOG_SHARE 16u

/* Where the least comes from. */
struct source {
    const char *name;  /* "free on this machine" */
    uint64_t bytes;    /* of it, for one replica, lanes and all */
    uint64_t whole;    /* as the kernel says it */
    uint64_t overhead; /* of one replica, what its store does not take */
    uint64_t sharers;  /* processes that it is for */
};

uint64_t qn_budget_log_size(const struct qn_config *c)
{
    return c->log_size == QN_LOG_SIZE_AUTO ? QN_BUDGET_LOG : c->log_size;
}

static bool has_ring(const struct qn_config *c)
{
    return c->memory_acceptor && c->replicas > 1;
}

static uint64_t outbox_bytes(const struct qn_config *c, size_t lane_bytes)
{
    const struct qn_outbox_opts o = {.nodes = c->replicas,
                                     .lane_bytes = lane_bytes};
    return qn_outbox_bytes_fixed(&o);
}

static uint64_t logs_bytes(const struct qn_config *c)
{
    uint64_t log = c->replicas > 1 ? qn_budget_log_size(c) : 0;
    return has_ring(c) ? 2 * log + qn_ring_bytes(QN_RING, 0) : log;
}

static uint64_t values_bytes(const struct qn_config *c, uint64_t share)
{
    return QN_MIN(2 * c->proto_max_bulk_len, share / VALUES_SHARE);
}

/* Mapped beside the store: outboxes whole, and as many dead ones as peers. */
static uint64_t address_bytes(const struct qn_config *c, size_t lane_bytes)
{
    uint64_t ring = has_ring(c) ? qn_ring_bytes(QN_RING, QN_RING_ADDRESS) : 0;
    return PROGRAM_ADDRESS + qn_commons_bytes(c->replicas) +
           (2 * (uint64_t)c->replicas - 1) *
               (outbox_bytes(c, lane_bytes) + ring) +
           (c->replicas > 1 ? qn_budget_log_size(c) : 0) +
           2 * c->proto_max_bulk_len;
}

static struct source memory_source(const struct qn_limits *l,
                                   const struct qn_config *c, size_t lane_bytes)
{
    bool group = l->group < l->memory || l->memory == 0;
    uint64_t whole = group ? l->group : l->memory;
    uint64_t share = whole / c->replicas;
    return (struct source){
        .name = group ? "left by the control group" : "free on this machine",
        .bytes = share,
        .whole = whole,
        .overhead = QN_LIMITS_REPLICA + outbox_bytes(c, lane_bytes) +
                    qn_commons_bytes(c->replicas) / c->replicas +
                    logs_bytes(c) + values_bytes(c, share),
        .sharers = c->replicas};
}

static struct source address_source(const struct qn_limits *l,
                                    const struct qn_config *c,
                                    size_t lane_bytes)
{
    return (struct source){.name = "allowed by ulimit -v",
                           .bytes = l->address,
                           .whole = l->address,
                           .overhead = address_bytes(c, lane_bytes),
                           .sharers = 1};
}

static bool known(const struct qn_limits *l)
{
    return l->memory != 0 || l->group != QN_LIMITS_NONE;
}

/* NONE: no limit. */
static uint64_t store_of(const struct qn_config *c, const struct source *s)
{
    if (s->bytes == QN_LIMITS_NONE) {
        return QN_LIMITS_NONE;
    }
    uint64_t rest = s->bytes > s->overhead ? s->bytes - s->overhead : 0;
    return c->replicas > 1 ? rest / 11 * 4 : rest / 5 * 4;
}

static void log_size_auto(struct qn_config *c, uint64_t share)
{
    uint64_t size = share / LOG_SHARE / MIB * MIB;
    c->log_size =
        QN_MIN(QN_MAX(size, QN_BUDGET_LOG_MIN), (uint64_t)QN_BUDGET_LOG);
}

static int refuse(const struct qn_config *c, const struct source *s,
                  struct qn_budget *b)
{
    snprintf(b->said, sizeof b->said,
             "%" PRIu64 " MiB are %s, %" PRIu64
             " MiB for each replica, which needs %" PRIu64
             " MiB before its first key: allow more, or use fewer --replicas, "
             "a smaller --log-size or %s",
             s->whole / MIB, s->name, s->bytes / MIB,
             (s->overhead + QN_BUDGET_LEAST) / MIB + 1,
             s->sharers == 1 && has_ring(c) ? "--acceptor process"
                                            : "--proto-max-bulk-len");
    return QN_ENOMEM;
}

static void say_automatic(const struct qn_config *c, const struct source *s,
                          struct qn_budget *b)
{
    snprintf(b->said, sizeof b->said,
             "maxmemory: %" PRIu64 " MiB; %" PRIu64 " MiB are %s, %" PRIu64
             " MiB for each replica, of which %" PRIu64
             " MiB are for logs, rings and values on their way, the rest for "
             "its store, twice at times",
             c->maxmemory / MIB, s->whole / MIB, s->name, s->bytes / MIB,
             s->overhead / MIB);
}

static void say_beyond(const struct qn_config *c, const struct source *s,
                       uint64_t fits, struct qn_budget *b)
{
    b->beyond = true;
    snprintf(b->said, sizeof b->said,
             "maxmemory: %" PRIu64 " MiB as told, but only %" PRIu64
             " MiB fit for certain: %" PRIu64
             " MiB are %s; a replica for which memory is too short ends",
             c->maxmemory / MIB, fits / MIB, s->whole / MIB, s->name);
}

/* The tighter of memory and address space; without a limit: all NONE. */
static struct source tightest(const struct qn_limits *l,
                              const struct qn_config *c, size_t lane_bytes)
{
    struct source s = {
        .name = "unknown", .bytes = QN_LIMITS_NONE, .whole = QN_LIMITS_NONE};
    if (known(l)) {
        s = memory_source(l, c, lane_bytes);
    }
    const struct source address = address_source(l, c, lane_bytes);
    return store_of(c, &address) < store_of(c, &s) ? address : s;
}

int qn_budget_make(const struct qn_limits *l, struct qn_config *c,
                   size_t lane_bytes, struct qn_budget *b)
{
    *b = (struct qn_budget){0};
    if (c->log_size == QN_LOG_SIZE_AUTO && known(l)) {
        log_size_auto(c, memory_source(l, c, lane_bytes).bytes);
    }
    c->log_size = qn_budget_log_size(c);
    const struct source s = tightest(l, c, lane_bytes);
    const struct source address = address_source(l, c, lane_bytes);
    if (store_of(c, &address) < QN_BUDGET_LEAST) {
        return refuse(c, &address, b);
    }
    if (c->maxmemory == QN_MAXMEMORY_AUTO) {
        uint64_t fits = store_of(c, &s);
        if (fits < QN_BUDGET_LEAST) {
            return refuse(c, &s, b);
        }
        c->maxmemory = fits != QN_LIMITS_NONE ? fits : 0;
        if (c->maxmemory != 0) {
            say_automatic(c, &s, b);
        }
    } else if (c->maxmemory > store_of(c, &s)) {
        say_beyond(c, &s, store_of(c, &s), b);
    }
    return QN_OK;
}
