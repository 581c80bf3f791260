/*
 * The history of the group, and whether all replicas have applied it.
 *
 * Replicas run in the order of virtual time only from access to access, so what
 * they note here may come a little out of that order. The history itself does
 * not care: the first to apply a command enters it, and the others must find
 * the same one in its place. What depends on time (a read that misses a write)
 * is judged after the run, from the times of both.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/sim/machine.h"
#include "loadgen/simulate/commit/commit_internal.h"

#define ROOM_FIRST 4096u

static void break_run(struct qn_sim_group *g, const char *what)
{
    if (g->out->broken == NULL) {
        g->out->broken = what;
    }
}

/* ---- bytes of a command -------------------------------------------------- */

static uint64_t pattern(qn_node_t origin, uint64_t seq)
{
    uint64_t x = (seq ^ (uint64_t)origin << 56) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 29;
}

void qn_sim_command_fill(uint8_t *bytes, uint32_t len, qn_node_t origin,
                         uint64_t seq)
{
    uint64_t word = pattern(origin, seq);
    for (uint32_t at = 0; at < len; at++) {
        bytes[at] = (uint8_t)(word >> at % 8 * 8) ^ (uint8_t)(at / 8);
    }
}

static bool is_intact(const struct qn_applied *a)
{
    uint8_t want[QN_SIM_COMMAND_MAX];
    if (a->bytes.len > sizeof want) {
        return false;
    }
    qn_sim_command_fill(want, (uint32_t)a->bytes.len, a->origin, a->seq);
    return memcmp(want, a->bytes.data, a->bytes.len) == 0;
}

/* ---- applying ------------------------------------------------------------ */

/* @return false: there is no memory. */
static bool make_room(void **list, uint64_t *room, uint64_t count, size_t size)
{
    if (count < *room) {
        return true;
    }
    uint64_t more = *room == 0 ? ROOM_FIRST : 2 * *room;
    void *bigger = realloc(*list, more * size);
    if (bigger == NULL) {
        return false;
    }
    *list = bigger;
    *room = more;
    return true;
}

/* Something new was applied: how long after the last time? */
static void note_progress(struct qn_sim_group *g, qn_ps_t now)
{
    qn_ps_t from = QN_MAX(g->applied_at, g->load_from);
    qn_ps_t until = QN_MIN(now, g->load_until);
    if (until > from) {
        g->out->outage_ns =
            QN_MAX(g->out->outage_ns, (until - from) / QN_PS_PER_NS);
    }
    g->applied_at = QN_MAX(g->applied_at, now);
}

static void enter(struct qn_sim_group *g, const struct qn_applied *a)
{
    const struct qn_sim_replica *from = &g->replica[a->origin];
    uint32_t writer = from->of_seq[a->seq % QN_SIM_CLIENTS_MAX];
    if (!make_room((void **)&g->history, &g->history_room, g->history_count,
                   sizeof *g->history)) {
        break_run(g, "no memory for the history");
        return;
    }
    g->history[g->history_count++] =
        (struct qn_sim_command){.origin = a->origin,
                                .seq = a->seq,
                                .slot = a->slot,
                                .since = from->client[writer].since};
    note_progress(g, qn_timed_clock());
}

/* One more replica has applied it. */
static void spread(struct qn_sim_group *g, struct qn_sim_command *c)
{
    c->applied++;
    c->until = QN_MAX(c->until, qn_timed_clock());
    if (c->applied == g->o.replicas && c->since >= g->load_from &&
        c->until < g->load_until) {
        qn_histogram_record(g->out->everywhere,
                            (c->until - c->since) / QN_PS_PER_NS);
    }
}

static const char *check_applied(const struct qn_sim_replica *r,
                                 const struct qn_applied *a)
{
    const struct qn_sim_group *g = r->group;
    if (a->origin >= g->o.replicas || a->seq != r->last[a->origin] + 1) {
        return "a command is applied twice, or out of its origin's order";
    }
    if (a->mine != (a->origin == r->self)) {
        return "a replica takes a command for its own that is not";
    }
    if (a->slot != r->slot + 1) {
        return "a slot is left out";
    }
    if (a->stamp_ms < r->stamp_ms) {
        return "a stamp falls";
    }
    if (a->seq > g->replica[a->origin].submitted) {
        return "a command is applied that was not submitted";
    }
    return is_intact(a) ? NULL : "the bytes of a command are not its client's";
}

uint32_t qn_sim_history_apply(void *ctx, const struct qn_applied *a)
{
    struct qn_sim_replica *r = ctx;
    struct qn_sim_group *g = r->group;
    const char *wrong = check_applied(r, a);
    if (wrong != NULL) {
        break_run(g, wrong);
        return 1;
    }
    if (r->count == g->history_count) {
        enter(g, a);
    }
    struct qn_sim_command *c = &g->history[r->count];
    if (r->count >= g->history_count || c->origin != a->origin ||
        c->seq != a->seq || c->slot != a->slot) {
        break_run(g, "two replicas apply different commands in one place");
        return 1;
    }
    spread(g, c);
    r->count++;
    r->last[a->origin] = a->seq;
    r->stamp_ms = a->stamp_ms;
    if (a->mine) {
        qn_sim_clients_applied(r, a->seq);
    }
    return 1;
}

void qn_sim_history_applied(void *ctx, qn_slot_t slot, uint64_t stamp_ms)
{
    struct qn_sim_replica *r = ctx;
    if (slot != r->slot + 1 || stamp_ms < r->stamp_ms) {
        break_run(r->group, "slots do not end in order");
    }
    r->slot = slot;
    r->stamp_ms = stamp_ms;
}

void qn_sim_history_published(struct qn_sim_replica *r)
{
    uint64_t index;
    /* Without a price: production does not look here. */
    qn_sim_direct.load(&index, qn_commons_read_index(r->group->commons),
                       sizeof index, memory_order_seq_cst);
    if (index < r->slot) {
        break_run(r->group, "what is applied was not published before");
    }
}

/* ---- what clients have seen ---------------------------------------------- */

static void record(struct qn_sim_group *g, const struct qn_sim_observation *s)
{
    struct qn_sim_commit_result *out = g->out;
    uint64_t ns = (s->until - s->from) / QN_PS_PER_NS;
    if (s->until < g->load_from || s->until >= g->load_until) {
        return;
    }
    out->commits += !s->read;
    out->reads += s->read;
    if (s->from >= g->load_from) {
        qn_histogram_record(s->read ? out->read : out->commit, ns);
    }
}

void qn_sim_history_observe(struct qn_sim_replica *r,
                            const struct qn_sim_client *c)
{
    struct qn_sim_group *g = r->group;
    qn_ps_t now = qn_timed_clock();
    struct qn_sim_observation s = {.from = c->since,
                                   .until = c->applied_at,
                                   .position = c->position,
                                   .read = c->does == QN_SIM_READS};
    record(g, &s);
    /* Others may rely on it from here on, when it is published. */
    s.until = now;
    if (!make_room((void **)&g->seen, &g->seen_room, g->seen_count,
                   sizeof *g->seen)) {
        break_run(g, "no memory for what clients have seen");
        return;
    }
    g->seen[g->seen_count++] = s;
}

/* ---- at the end ---------------------------------------------------------- */

/* It was stopped for good: it counts as dead. */
static bool never_continues(const struct qn_sim_group *g, qn_node_t i)
{
    bool never = false;
    for (uint32_t k = 0; k < g->o.faults; k++) {
        const struct qn_sim_fault *f = &g->o.fault[k];
        never |=
            f->node == i && f->kind == QN_SIM_FAULT_STOP && f->until_ns == 0;
    }
    return never;
}

bool qn_sim_history_settled(const struct qn_sim_group *g)
{
    for (qn_node_t i = 0; i < g->o.replicas; i++) {
        const struct qn_sim_replica *r = &g->replica[i];
        if (r->ended || never_continues(g, i)) {
            continue;
        }
        if (r->under_way > 0 || r->count != g->history_count ||
            r->last[i] != r->submitted) {
            return false;
        }
    }
    return true;
}

static int by_end(const void *a, const void *b)
{
    const struct qn_sim_observation *x = a;
    const struct qn_sim_observation *y = b;
    return (x->until > y->until) - (x->until < y->until);
}

static int by_begin(const void *a, const void *b)
{
    const struct qn_sim_observation *x = a;
    const struct qn_sim_observation *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* A read that began after an operation had ended finds at least as much. */
static const char *check_reads(struct qn_sim_group *g)
{
    uint64_t n = g->seen_count;
    struct qn_sim_observation *ended = malloc((n + 1) * sizeof *ended);
    const char *broken = ended == NULL ? "no memory for the check" : NULL;
    uint64_t most = 0;
    uint64_t k = 0;
    if (ended != NULL && n > 0) {
        memcpy(ended, g->seen, n * sizeof *ended);
        qsort(ended, n, sizeof *ended, by_end);
        qsort(g->seen, n, sizeof *g->seen, by_begin);
    }
    for (uint64_t i = 0; i < n && broken == NULL; i++) {
        const struct qn_sim_observation *s = &g->seen[i];
        for (; k < n && ended[k].until < s->from; k++) {
            most = QN_MAX(most, ended[k].position);
        }
        broken = s->position < most ? "a read misses a write" : NULL;
    }
    free(ended);
    return broken;
}

const char *qn_sim_history_check(struct qn_sim_group *g)
{
    note_progress(g, g->load_until);
    if (g->out->broken != NULL) {
        return g->out->broken;
    }
    if (!g->settled) {
        return "what was begun is not applied everywhere";
    }
    return check_reads(g);
}
