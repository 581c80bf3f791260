#include "kvs/resources/budget.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/err.h"
#include "paxos/member/member_needs.h"

#define MIB ((uint64_t)1 << 20)

/* Program, libraries, stacks. (Without what malloc would reserve for another
 * thread: it can do without.) */
#define PROGRAM_ADDRESS ((uint64_t)48 << 20)

/* Of a replica's share, for values on their way, at most. */
#define VALUES_SHARE 4u

/* Of a replica's share, for what is kept of the log. */
#define BACKLOG_SHARE 16u

/* A ring has room for the longest batch, whatever the backlog. */
#define RING_LONGEST ((uint64_t)768 << 20)

/* An arena, as a part of repl-backlog-size, and at least: commands that wait
 * until the leader copies them. */
#define ARENA_SHARE 2u
#define ARENA_LEAST ((uint64_t)4 << 20)

/* Where the least comes from. */
struct source {
    const char *name;  /* "free on this machine" */
    uint64_t bytes;    /* of it, for one replica, lanes and all */
    uint64_t whole;    /* as the kernel says it */
    uint64_t overhead; /* of one replica, what its store does not take */
    uint64_t sharers;  /* processes that it is for */
};

uint64_t qn_budget_ring(const struct qn_config *c)
{
    return c->repl_backlog_size + RING_LONGEST;
}

uint64_t qn_budget_arena(const struct qn_config *c)
{
    return QN_MAX(c->repl_backlog_size / ARENA_SHARE, ARENA_LEAST);
}

struct qn_device_opts qn_budget_device(const struct qn_config *c)
{
    return (struct qn_device_opts){.nodes = qn_config_seats(c),
                                   .lanes = QN_LANES,
                                   .strict = true,
                                   .seed = 1};
}

/* What each replica needs in a group of `replicas`. */
static struct qn_member_needs needs_of(
    const struct qn_config *c, const struct qn_transport_bytes *channels,
    uint32_t replicas)
{
    const struct qn_member_size s = {.nodes = qn_config_seats(c),
                                     .seats = qn_low_bits(replicas),
                                     .memory_acceptor = c->memory_acceptor,
                                     .ring_bytes = qn_budget_ring(c),
                                     .arena_bytes = qn_budget_arena(c),
                                     .backlog_bytes = c->repl_backlog_size,
                                     .channels = *channels};
    return qn_member_needs(&s);
}

static uint64_t values_bytes(const struct qn_config *c, uint64_t share)
{
    return QN_MIN(2 * c->proto_max_bulk_len, share / VALUES_SHARE);
}

/* Mapped beside the store: whole outboxes, and one of an ended process per
 * peer. */
static uint64_t address_bytes(const struct qn_config *c,
                              const struct qn_transport_bytes *channels)
{
    const struct qn_member_needs n = needs_of(c, channels, c->replicas);
    return PROGRAM_ADDRESS + n.commons +
           (2 * (uint64_t)qn_config_seats(c) - 1) * n.mapped + n.log +
           2 * c->proto_max_bulk_len;
}

/* Replicas that memory is planned for: one for each seat that a member can
 * take, if the operator wants that many. */
static uint32_t most_replicas(const struct qn_config *c)
{
    return c->memory_acceptor && !c->replicas_max_auto ? qn_config_seats(c)
                                                       : c->replicas;
}

/* Of one replica, what its store does not take. */
static uint64_t overhead_of(const struct qn_config *c,
                            const struct qn_transport_bytes *channels,
                            uint32_t replicas, uint64_t share)
{
    const struct qn_member_needs n = needs_of(c, channels, replicas);
    return QN_LIMITS_REPLICA + n.outbox + n.commons / replicas + n.ring +
           n.log + values_bytes(c, share);
}

static struct source memory_source(const struct qn_resource_limits *l,
                                   const struct qn_config *c,
                                   const struct qn_transport_bytes *channels)
{
    bool group = l->group < l->memory || l->memory == 0;
    uint64_t whole = group ? l->group : l->memory;
    const uint32_t sharers = most_replicas(c);
    uint64_t share = whole / sharers;
    return (struct source){.name = group ? "left by the control group"
                                         : "free on this machine",
                           .bytes = share,
                           .whole = whole,
                           .overhead = overhead_of(c, channels, sharers, share),
                           .sharers = sharers};
}

static struct source address_source(const struct qn_resource_limits *l,
                                    const struct qn_config *c,
                                    const struct qn_transport_bytes *channels)
{
    return (struct source){.name = "allowed by ulimit -v",
                           .bytes = l->address,
                           .whole = l->address,
                           .overhead = address_bytes(c, channels),
                           .sharers = 1};
}

static bool known(const struct qn_resource_limits *l)
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
    return most_replicas(c) > 1 ? rest / 11 * 4 : rest / 5 * 4;
}

/* By memory; the least, if address space would not hold all rings else. */
static void backlog_auto(const struct qn_resource_limits *l,
                         struct qn_config *c,
                         const struct qn_transport_bytes *channels)
{
    c->repl_backlog_size = QN_BUDGET_BACKLOG;
    if (known(l)) {
        uint64_t share = memory_source(l, c, channels).bytes;
        uint64_t size = share / BACKLOG_SHARE / MIB * MIB;
        c->repl_backlog_size =
            QN_MIN(QN_MAX(size, QN_BUDGET_BACKLOG_MIN), QN_BUDGET_BACKLOG);
    }
    const struct source address = address_source(l, c, channels);
    if (store_of(c, &address) < QN_BUDGET_LEAST) {
        c->repl_backlog_size = QN_BUDGET_BACKLOG_MIN;
    }
}

static int refuse(const struct qn_config *c, const struct source *s,
                  struct qn_budget *b)
{
    snprintf(b->said, sizeof b->said,
             "%" PRIu64 " MiB are %s, %" PRIu64
             " MiB for each replica, which needs %" PRIu64
             " MiB before its first key: allow more, or use fewer --replicas, "
             "a smaller --repl-backlog-size or %s",
             s->whole / MIB, s->name, s->bytes / MIB,
             (s->overhead + QN_BUDGET_LEAST) / MIB + 1,
             s->sharers == 1 && (c->memory_acceptor && c->replicas > 1)
                 ? "--acceptor process"
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
static struct source tightest(const struct qn_resource_limits *l,
                              const struct qn_config *c,
                              const struct qn_transport_bytes *channels)
{
    struct source s = {
        .name = "unknown", .bytes = QN_LIMITS_NONE, .whole = QN_LIMITS_NONE};
    if (known(l)) {
        s = memory_source(l, c, channels);
    }
    const struct source address = address_source(l, c, channels);
    return store_of(c, &address) < store_of(c, &s) ? address : s;
}

int qn_budget_make(const struct qn_resource_limits *l, struct qn_config *c,
                   const struct qn_transport_bytes *channels,
                   struct qn_budget *b)
{
    *b = (struct qn_budget){0};
    if (c->repl_backlog_size == QN_BACKLOG_AUTO) {
        backlog_auto(l, c, channels);
    }
    const struct source s = tightest(l, c, channels);
    const struct source address = address_source(l, c, channels);
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

void qn_budget_seats(const struct qn_resource_limits *l, struct qn_config *c,
                     const struct qn_transport_bytes *channels)
{
    struct qn_config whole = *c;
    if (c->repl_backlog_size == QN_BACKLOG_AUTO) {
        whole.repl_backlog_size = QN_BUDGET_BACKLOG;
    }
    for (; c->replicas_max > c->replicas; c->replicas_max--) {
        whole.replicas_max = c->replicas_max;
        const struct source s = address_source(l, &whole, channels);
        if (store_of(c, &s) >= QN_BUDGET_LEAST) {
            return;
        }
    }
}

/* A full store takes 5/4 of the limit; the newcomer's at worst 11/4, as any
 * joiner's, and its donor 1/4 more. */
enum { FULL_QUARTERS = 5, JOINS_QUARTERS = 11 + 1 };

bool qn_budget_one_more(const struct qn_resource_limits *l,
                        const struct qn_config *c,
                        const struct qn_transport_bytes *channels,
                        const struct qn_budget_group *g, uint64_t *fits)
{
    const struct source s = memory_source(l, c, channels);
    const uint32_t all = g->members + 1;
    uint64_t used = 0;
    for (uint32_t i = 0; i < g->members; i++) {
        used += g->used[i];
    }
    const uint64_t share = (s.whole + used) / all;
    const uint64_t each = overhead_of(c, channels, all, share);
    const uint64_t full = each + g->maxmemory / 4 * FULL_QUARTERS;
    uint64_t need = each + g->maxmemory / 4 * JOINS_QUARTERS;
    for (uint32_t i = 0; i < g->members && g->maxmemory != 0; i++) {
        need += full > g->used[i] ? full - g->used[i] : 0;
    }
    if (!known(l) || s.whole == QN_LIMITS_NONE || need <= s.whole) {
        return true;
    }
    const uint64_t rest =
        s.whole + used > all * each ? s.whole + used - all * each : 0;
    *fits = rest / (g->members * FULL_QUARTERS + JOINS_QUARTERS) * 4;
    return false;
}
