/*
 * Events: one table says what each kind is called and what its fields mean, so
 * that the line, the recorder and the enum cannot drift apart.
 *
 * Damping: a table of sorts (kind, node, b), direct mapped, so that it has a
 * bound and no search. Two sorts that share a place replace each other. Then a
 * few events more are recorded than necessary, and only the counts of left out
 * events are lost.
 */
#include "paxos/driver/event.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "paxos/machine/onepaxos.h"
#include "paxos/wire/msg.h"

enum { EPOCH = 1, OFTEN = 2 };

struct shape {
    const char *name, *node, *b, *slot, *a;
    int flags;
};

static const struct shape shapes[QN_EVENT_KINDS] = {
#define SHAPE(kind, name, node, b, slot, a, flags)                             \
    [QN_EVENT_##kind] = {name, node, b, slot, a, flags},
    QN_EVENT_MAP(SHAPE)
#undef SHAPE
};

/* ---- noting -------------------------------------------------------------- */

void qn_events_init(struct qn_events *v, void *mem, qn_time_t (*clock)(void),
                    uint64_t born_ms)
{
    *v = (struct qn_events){.on = mem != NULL, .clock = clock};
    if (v->on) {
        qn_flight_recorder_init(&v->flight, mem, QN_FLIGHT_ENTRIES, born_ms);
    }
}

/* True if `e` is one too many; else e->a says how many were. */
static bool damped(struct qn_events *v, struct qn_flight_event *e)
{
    uint32_t sort = (uint32_t)e->kind << 24 | (uint32_t)e->node << 16 | e->b;
    uint32_t at = sort * UINT32_C(2654435761) >> 26;
    struct qn_event_damp *d = &v->damp[at % QN_ARRAY_COUNT(v->damp)];
    if (d->sort != sort) {
        *d = (struct qn_event_damp){.sort = sort};
    }
    if (e->time >= d->until) {
        d->until = e->time + QN_S;
        d->noted = 0;
    }
    QN_ASSERT(d->noted <= QN_EVENTS_PER_S);
    if (d->noted == QN_EVENTS_PER_S) {
        d->left_out++;
        return true;
    }
    d->noted++;
    e->a = d->left_out;
    d->left_out = 0;
    return false;
}

void qn_events_note(struct qn_events *v, const struct qn_flight_event *e)
{
    struct qn_flight_event one = *e;
    QN_ASSERT(e->kind > QN_EVENT_NONE);
    QN_ASSERT(e->kind < QN_EVENT_KINDS);
    if (!v->on) {
        return;
    }
    if (v->clock != NULL) {
        one.time = v->clock();
    }
    if ((shapes[e->kind].flags & OFTEN) == 0 || !damped(v, &one)) {
        qn_flight_recorder_note(&v->flight, &one);
    }
}

/* ---- text ---------------------------------------------------------------- */

static const char *const roles[] = {[QN_FOLLOWER] = "follower",
                                    [QN_PREPARING] = "preparing",
                                    [QN_ACTIVE] = "leader",
                                    [QN_HANDING_OVER] = "handing-over"};

static const char *const messages[QN_MSG_KINDS] = {
    [QN_MSG_REQUEST] = "REQUEST",
    [QN_MSG_REDIRECT] = "REDIRECT",
    [QN_MSG_ACCEPT] = "ACCEPT",
    [QN_MSG_LEARN] = "LEARN",
    [QN_MSG_NACK] = "NACK",
    [QN_MSG_PREPARE] = "PREPARE",
    [QN_MSG_PREPARED] = "PREPARED",
    [QN_MSG_STAGE] = "STAGE",
    [QN_MSG_STAGED] = "STAGED",
    [QN_MSG_SEAL] = "SEAL",
    [QN_MSG_SEALED] = "SEALED",
    [QN_MSG_FETCH] = "FETCH",
    [QN_MSG_FILL] = "FILL",
    [QN_MSG_SNAP_REQ] = "SNAP_REQ",
    [QN_MSG_SNAP] = "SNAP",
    [QN_MSG_BEAT] = "BEAT",
    [QN_MSG_U_PREPARE] = "U_PREPARE",
    [QN_MSG_U_PROMISE] = "U_PROMISE",
    [QN_MSG_U_REJECT] = "U_REJECT",
    [QN_MSG_U_ACCEPT] = "U_ACCEPT",
    [QN_MSG_U_ACCEPTED] = "U_ACCEPTED",
    [QN_MSG_U_CHOSEN] = "U_CHOSEN",
    [QN_MSG_U_NEED] = "U_NEED",
    [QN_MSG_ACCEPTED] = "ACCEPTED",
    [QN_MSG_STATE] = "STATE",
    [QN_MSG_READ_INDEX] = "READ_INDEX",
    [QN_MSG_READ_AT] = "READ_AT",
    [QN_MSG_ORDER] = "ORDER",
    [QN_MSG_TAKEN] = "TAKEN",
};

/* A line that grows; what does not fit (it does) is cut. */
struct line {
    char *to;
    size_t len;
};

/* printf to its end. */
#define ADD(l, ...)                                                            \
    grown((l), snprintf((l)->to + (l)->len, QN_EVENT_LINE_MAX - (l)->len,      \
                        __VA_ARGS__))

static void grown(struct line *l, int n)
{
    QN_ASSERT(l->len < QN_EVENT_LINE_MAX);
    l->len += n < 0 ? 0 : QN_MIN((size_t)n, QN_EVENT_LINE_MAX - 1 - l->len);
    QN_ASSERT(l->len < QN_EVENT_LINE_MAX);
}

static void add_number(struct line *l, const char *key, uint64_t value)
{
    if (key != NULL) {
        ADD(l, " %s=%llu", key, (unsigned long long)value);
    }
}

static void add_node(struct line *l, const char *key, uint8_t node)
{
    if (key != NULL && node == QN_EVENT_ALL) {
        ADD(l, " %s=all", key);
    } else {
        add_number(l, key, node);
    }
}

/* The name of b, if it has one. */
static const char *b_name(const struct qn_flight_event *e)
{
    if (e->kind == QN_EVENT_ROLE) {
        return e->b < QN_ARRAY_COUNT(roles) ? roles[e->b] : NULL;
    }
    if (e->kind == QN_EVENT_SENT || e->kind == QN_EVENT_GOT) {
        return e->b < QN_ARRAY_COUNT(messages) ? messages[e->b] : NULL;
    }
    return NULL;
}

static void add_b(struct line *l, const char *key,
                  const struct qn_flight_event *e)
{
    const char *name = b_name(e);
    if (key != NULL && name != NULL) {
        ADD(l, " %s=%s", key, name);
    } else {
        add_number(l, key, e->b);
    }
}

static void add_head(struct line *l, const struct qn_event_source *s,
                     const struct qn_flight_event *e)
{
    uint64_t wall = e->time + (uint64_t)s->wall;
    time_t seconds = (time_t)(wall / QN_S);
    struct tm tm = {0};
    char date[32] = "";
    (void)gmtime_r(&seconds, &tm);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
    ADD(l, "%s.%09lluZ %llu.%09llu %u.%llu#%llu ", date,
        (unsigned long long)(wall % QN_S), (unsigned long long)(e->time / QN_S),
        (unsigned long long)(e->time % QN_S), (unsigned)s->node,
        (unsigned long long)s->incarnation, (unsigned long long)e->index);
}

size_t qn_event_print(char *to, const struct qn_event_source *s,
                      const struct qn_flight_event *e)
{
    static const struct shape unknown = {NULL, "node", "b", "slot", "a", EPOCH};
    bool known = e->kind < QN_EVENT_KINDS && shapes[e->kind].name != NULL;
    const struct shape *h = known ? &shapes[e->kind] : &unknown;
    struct line l = {.to = to};
    add_head(&l, s, e);
    if (known) {
        ADD(&l, "%s", h->name);
    } else {
        ADD(&l, "kind-%u", e->kind);
    }
    add_node(&l, h->node, e->node);
    add_b(&l, h->b, e);
    if ((h->flags & OFTEN) == 0 || e->a != 0) {
        add_number(&l, h->a, e->a);
    }
    add_number(&l, (h->flags & EPOCH) != 0 ? "epoch" : NULL, e->epoch);
    add_number(&l, h->slot, e->slot);
    ADD(&l, "\n");
    return l.len;
}

int64_t qn_event_wall(void)
{
    struct timespec wall;
    qn_time_t now = qn_clock_now();
    clock_gettime(CLOCK_REALTIME, &wall);
    return (int64_t)wall.tv_sec * (int64_t)QN_S + wall.tv_nsec - (int64_t)now;
}
