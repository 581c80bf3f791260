#include "tests/unit/loadgen/verify/world.h"

#include "loadgen/verify/history/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The store executes operations in the order of the instants at which they take
 * effect; that alone makes its histories correct. The reference checker has one
 * rule per kind and tries every order; it shares no line with the checker.
 */

struct cell {
    bool present;
    int64_t value;
};

static const struct {
    const char *name;
    uint32_t weight[QN_RECORD_KIND_COUNT]; /* get set add cas del incr */
    int64_t values;
    int64_t steps;
} worlds[WORLD_COUNT] = {
    {"register", {5, 5, 0, 0, 0, 0}, 0, 1},
    {"exchanged", {4, 2, 2, 6, 0, 0}, 0, 1},
    {"deleted", {4, 4, 0, 0, 4, 0}, 0, 1},
    {"everything", {3, 2, 2, 4, 2, 0}, 0, 1},
    {"counter", {2, 0, 0, 0, 0, 4}, 0, 1},
    {"counter by steps", {2, 0, 0, 0, 0, 4}, 0, 3},
    {"few values", {3, 2, 2, 4, 2, 0}, 3, 1},
    {"mixed", {3, 2, 1, 2, 2, 3}, 3, 2},
    {"up and down", {3, 0, 1, 0, 1, 4}, 2, -2},
};

struct world_opts world_opts(size_t world, uint32_t ops)
{
    struct world_opts o = {.ops = ops,
                           .clients = 4,
                           .unknown = 15,
                           .gap_max = 10,
                           .length_max = 30,
                           .values = worlds[world].values,
                           .steps = worlds[world].steps};
    memcpy(o.weight, worlds[world].weight, sizeof o.weight);
    return o;
}

const char *world_name(size_t world)
{
    return worlds[world].name;
}

void world_show(const struct qn_record *records, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char text[QN_RECORD_TEXT_MAX];
        qn_record_text(&records[i], text);
        fprintf(stderr, "%s\n", text);
    }
}

/* ---- the store ---- */

struct event {
    struct qn_record record;
    qn_time_t instant; /* QN_TIME_NEVER: has no effect */
};

static enum qn_record_kind pick_kind(uint64_t *seed, const struct world_opts *o)
{
    uint32_t total = 0;
    for (int k = 0; k < QN_RECORD_KIND_COUNT; k++) {
        total += o->weight[k];
    }
    uint64_t r = qn_random_below(seed, total);
    int k = 0;
    while (r >= o->weight[k]) {
        r -= o->weight[k++];
    }
    return (enum qn_record_kind)k;
}

static void plan(uint64_t *seed, const struct world_opts *o, struct event *e)
{
    qn_time_t clock[64] = {0};
    assert(o->clients <= 64);
    for (uint32_t i = 0; i < o->ops; i++) {
        uint16_t client = (uint16_t)qn_random_below(seed, o->clients);
        qn_time_t inv = clock[client] + 1 + qn_random_below(seed, o->gap_max);
        qn_time_t length = 1 + qn_random_below(seed, o->length_max);
        bool unknown = qn_random_below(seed, 100) < o->unknown;
        e[i].record = (struct qn_record){.invoked = inv,
                                         .responded = unknown ? QN_TIME_NEVER
                                                              : inv + length,
                                         .client = client,
                                         .kind = (uint8_t)pick_kind(seed, o)};
        e[i].instant = inv + qn_random_below(seed, length + 1);
        if (unknown) {
            uint64_t late = qn_random_below(seed, 3);
            e[i].instant = late == 0 ? QN_TIME_NEVER
                           : late == 1
                               ? e[i].instant
                               : inv + qn_random_below(seed, 8 * length);
        }
        clock[client] = inv + length;
    }
}

static int by_instant(const void *a, const void *b)
{
    qn_time_t x = ((const struct event *)a)->instant;
    qn_time_t y = ((const struct event *)b)->instant;
    return (x > y) - (x < y);
}

/* Applies r to the cell and records the result. */
static void execute(struct cell *c, struct qn_record *r)
{
    r->outcome = QN_RECORD_OK;
    switch ((enum qn_record_kind)r->kind) {
    case QN_RECORD_GET:
        r->outcome = c->present ? QN_RECORD_OK : QN_RECORD_NIL;
        r->value = c->present ? c->value : 0;
        break;
    case QN_RECORD_SET:
        *c = (struct cell){true, r->value};
        break;
    case QN_RECORD_ADD:
        if (c->present) {
            r->outcome = QN_RECORD_FAILED;
        } else {
            *c = (struct cell){true, r->value};
        }
        break;
    case QN_RECORD_CAS:
        if (c->present && c->value == r->other) {
            c->value = r->value;
        } else {
            r->outcome = QN_RECORD_FAILED;
        }
        break;
    case QN_RECORD_DEL:
        r->outcome = c->present ? QN_RECORD_OK : QN_RECORD_NIL;
        c->present = false;
        break;
    case QN_RECORD_INCR:
        *c = (struct cell){true, (c->present ? c->value : 0) + r->value};
        r->other = c->value;
        break;
    case QN_RECORD_KIND_COUNT:
        break;
    }
}

static void fill_arguments(uint64_t *seed, const struct world_opts *o,
                           const struct cell *c, int64_t *fresh,
                           struct qn_record *r)
{
    if (r->kind == QN_RECORD_INCR) {
        int64_t steps = o->steps < 0 ? -o->steps : o->steps;
        r->value = 1 + (int64_t)qn_random_below(seed, (uint64_t)steps);
        if (o->steps < 0 && qn_random_below(seed, 2) == 0) {
            r->value = -r->value;
        }
    } else if (o->values == 0) {
        r->value = ++*fresh;
    } else {
        r->value = (int64_t)qn_random_below(seed, (uint64_t)o->values);
    }
    if (r->kind == QN_RECORD_CAS) {
        int64_t recent = *fresh - (int64_t)qn_random_below(seed, 4);
        int64_t any = (int64_t)qn_random_below(seed, 4);
        r->other = c->present && qn_random_below(seed, 2) == 0 ? c->value
                   : o->values == 0                            ? recent
                                                               : any;
    }
    if (r->kind == QN_RECORD_GET || r->kind == QN_RECORD_DEL) {
        r->value = 0;
    }
}

void world_good(uint64_t *seed, const struct world_opts *opts,
                struct qn_record *out)
{
    struct event *e = calloc(opts->ops, sizeof *e);
    struct cell c = {0};
    int64_t fresh = 0;
    assert(e != NULL);
    plan(seed, opts, e);
    qsort(e, opts->ops, sizeof *e, by_instant);
    for (uint32_t i = 0; i < opts->ops; i++) {
        struct qn_record *r = &e[i].record;
        fill_arguments(seed, opts, &c, &fresh, r);
        if (e[i].instant != QN_TIME_NEVER) {
            execute(&c, r);
        }
        if (r->responded == QN_TIME_NEVER) {
            r->outcome = QN_RECORD_UNKNOWN;
            r->other = r->kind == QN_RECORD_INCR ? 0 : r->other;
            r->value = r->kind == QN_RECORD_GET ? 0 : r->value;
        }
        out[i] = *r;
    }
    free(e);
    qn_records_sort(out, opts->ops);
}

/* ---- corrupting ---- */

static void spoil_answer(uint64_t *seed, struct qn_record *r,
                         const struct qn_record *other)
{
    switch ((enum qn_record_kind)r->kind) {
    case QN_RECORD_GET:
        r->outcome =
            qn_random_below(seed, 3) == 0 ? QN_RECORD_NIL : QN_RECORD_OK;
        r->value = other->value;
        break;
    case QN_RECORD_ADD:
    case QN_RECORD_CAS:
        r->outcome =
            r->outcome == QN_RECORD_OK ? QN_RECORD_FAILED : QN_RECORD_OK;
        break;
    case QN_RECORD_DEL:
        r->outcome = r->outcome == QN_RECORD_OK ? QN_RECORD_NIL : QN_RECORD_OK;
        break;
    case QN_RECORD_INCR:
        r->other += (int64_t)qn_random_below(seed, 3) - 1;
        break;
    case QN_RECORD_SET:
    case QN_RECORD_KIND_COUNT:
        break;
    }
}

void world_spoil(uint64_t *seed, struct qn_record *records, uint32_t n)
{
    struct qn_record *r = &records[qn_random_below(seed, n)];
    const struct qn_record *other = &records[qn_random_below(seed, n)];
    if (r->outcome == QN_RECORD_UNKNOWN) {
        return;
    }
    qn_time_t length = r->responded - r->invoked;
    switch (qn_random_below(seed, 4)) {
    case 0:
        r->invoked = other->invoked;
        r->responded = r->invoked + length;
        break;
    case 1:
        r->responded = r->invoked + length / 4;
        break;
    default:
        spoil_answer(seed, r, other);
    }
    qn_records_sort(records, n);
}

/* ---- the reference checker ---- */

/* Whether r may give its recorded result on this cell; if so, applies it. */
static bool answers(struct cell *c, const struct qn_record *r)
{
    struct qn_record would = *r;
    execute(c, &would);
    if (r->outcome == QN_RECORD_UNKNOWN) {
        return true;
    }
    bool reads = r->kind == QN_RECORD_GET && r->outcome == QN_RECORD_OK;
    return would.outcome == r->outcome && (!reads || would.value == r->value) &&
           (r->kind != QN_RECORD_INCR || would.other == r->other);
}

static bool complete(const struct qn_record *r, uint32_t n, uint32_t placed,
                     struct cell c)
{
    bool all = true;
    for (uint32_t i = 0; i < n; i++) {
        all &= (placed >> i & 1) || r[i].outcome == QN_RECORD_UNKNOWN;
    }
    if (all) {
        return true;
    }
    for (uint32_t i = 0; i < n; i++) {
        bool first = !(placed >> i & 1);
        for (uint32_t j = 0; j < n; j++) {
            first &= (placed >> j & 1) || r[j].outcome == QN_RECORD_UNKNOWN ||
                     r[j].responded >= r[i].invoked;
        }
        struct cell then = c;
        if (first && answers(&then, &r[i]) &&
            complete(r, n, placed | 1u << i, then)) {
            return true;
        }
    }
    return false;
}

bool world_linearizable(const struct qn_record *records, uint32_t n)
{
    return complete(records, n, 0, (struct cell){0});
}
