/*
 * The state of what is shared is a time: until then it is taken. So a piece
 * costs a few additions, and copies that go on at once get equal shares, as
 * each has one piece under way.
 *
 * What a cache has is kept per page, of the size of a piece. An entry notes how
 * many bytes its cache had taken then, and how often the page had been written:
 * it is there while the first has not grown by what the cache holds, and the
 * second not at all. Nothing is ever searched for a victim.
 */
#include "core/machine/bulk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

#define LINE           64.0
#define STREAM         0.125 /* of a receive: a line after the other */
#define CORES_PER_NODE 4 /* that copy at once as fast as they can: assumed */
#define GHZ_USUAL      2.0
#define MIB            ((uint64_t)1 << 20)
#define ITSELF         0u /* of a page: its writes, and its last writer */
#define NO_MEMBER      UINT64_MAX
#define SLOTS_FIRST    4096u

struct slot {
    uint64_t page;
    uint32_t cache; /* its number plus 1; ITSELF */
    uint32_t writes;
    uint64_t taken; /* of a cache: bytes then; ITSELF: the last writer */
    bool used;
};

struct qn_bulk {
    uint32_t n, regions, caches;
    uint32_t *region, *cache;   /* [n] */
    double *line;               /* [n*n] ps that v takes for a line of u's */
    double given, memory, link; /* ps per line */
    double near;                /* ps per line */
    uint64_t holds;             /* bytes */
    uint64_t *given_free;       /* [caches] */
    uint64_t *taken;            /* [caches] bytes */
    uint64_t *memory_free, *in_free, *out_free; /* [regions] */
    uint64_t last;                              /* of the last request, ps */
    struct slot *slot;                          /* [slots] a power of two */
    uint32_t slots, count;
};

/* ---- what caches have ---- */

static uint32_t place_of(const struct qn_bulk *b, uint64_t page, uint32_t cache)
{
    const uint64_t x = (page * 1031 + cache) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t i = (uint32_t)(x >> 32) & (b->slots - 1);
    while (b->slot[i].used &&
           (b->slot[i].page != page || b->slot[i].cache != cache)) {
        i = (i + 1) & (b->slots - 1);
    }
    return i;
}

static void forget(struct qn_bulk *b)
{
    memset(b->slot, 0, b->slots * sizeof *b->slot);
    b->count = 0;
}

static void make_room(struct qn_bulk *b)
{
    struct slot *old = b->slot;
    const uint32_t slots = b->slots;
    if (b->count < slots / 2) {
        return;
    }
    b->slot = calloc((size_t)slots * 2, sizeof *old);
    if (b->slot == NULL) {
        b->slot = old;
        forget(b);
        return;
    }
    b->slots = slots * 2;
    for (uint32_t i = 0; i < slots; i++) {
        if (old[i].used) {
            b->slot[place_of(b, old[i].page, old[i].cache)] = old[i];
        }
    }
    free(old);
}

static struct slot *slot_of(struct qn_bulk *b, uint64_t page, uint32_t cache)
{
    make_room(b);
    struct slot *s = &b->slot[place_of(b, page, cache)];
    if (!s->used) {
        *s = (struct slot){
            .page = page, .cache = cache, .taken = NO_MEMBER, .used = true};
        b->count++;
    }
    return s;
}

static bool has(struct qn_bulk *b, uint32_t cache, uint64_t page)
{
    const uint32_t writes = slot_of(b, page, ITSELF)->writes;
    const struct slot *s = slot_of(b, page, cache + 1);
    return s->taken != NO_MEMBER && s->writes == writes &&
           b->taken[cache] - s->taken < b->holds;
}

/* @param there  It was there: nothing has to leave for it. */
static void put(struct qn_bulk *b, uint32_t cache, uint64_t page, bool there)
{
    const uint32_t writes = slot_of(b, page, ITSELF)->writes;
    struct slot *s = slot_of(b, page, cache + 1);
    b->taken[cache] += there ? 0 : QN_BULK_PIECE;
    s->taken = b->taken[cache];
    s->writes = writes;
}

static void note_written(struct qn_bulk *b, uint32_t by, uint64_t page,
                         bool there)
{
    struct slot *s = slot_of(b, page, ITSELF);
    s->writes++; /* no other cache has it now */
    s->taken = by;
    put(b, b->cache[by], page, there);
}

/* ---- a piece ---- */

struct piece {
    struct qn_bulk *b;
    uint64_t now, end;
    double lines;
};

static uint64_t times(const struct piece *p, double ps)
{
    const uint64_t all = (uint64_t)llround(p->lines * ps);
    return QN_MAX(all, (uint64_t)1);
}

static void take(struct piece *p, uint64_t *is_free, double ps)
{
    *is_free = QN_MAX(*is_free, p->now) + times(p, ps);
    p->end = QN_MAX(p->end, *is_free);
}

static void take_link(struct piece *p, uint32_t from, uint32_t to)
{
    if (from != to) {
        take(p, &p->b->out_free[from], p->b->link);
        take(p, &p->b->in_free[to], p->b->link);
    }
}

static void bring(struct piece *p, const struct qn_bulk_request *c)
{
    struct qn_bulk *b = p->b;
    const uint64_t page = c->from / QN_BULK_PIECE;
    const uint32_t own = b->cache[c->by];
    if (has(b, own, page)) {
        return;
    }
    const uint64_t writer = slot_of(b, page, ITSELF)->taken;
    uint32_t source = c->owner;
    if (writer != NO_MEMBER && has(b, b->cache[writer], page)) {
        source = (uint32_t)writer;
        take(p, &b->given_free[b->cache[source]], b->given);
    } else {
        take(p, &b->memory_free[b->region[source]], b->memory);
    }
    take_link(p, b->region[source], b->region[c->by]);
    p->end = QN_MAX(p->end,
                    p->now + times(p, b->line[(size_t)source * b->n + c->by]));
    put(b, own, page, false);
}

static void place(struct piece *p, const struct qn_bulk_request *c)
{
    struct qn_bulk *b = p->b;
    const uint64_t page = c->to / QN_BULK_PIECE;
    const uint32_t home = b->region[c->taker], own = b->region[c->by];
    const bool there = has(b, b->cache[c->by], page);
    if (!there) {
        take(p, &b->memory_free[home], 2 * b->memory);
        take_link(p, home, own);
        take_link(p, own, home);
        p->end =
            QN_MAX(p->end,
                   p->now + times(p, b->line[(size_t)c->taker * b->n + c->by]));
    }
    note_written(b, c->by, page, there);
}

uint64_t qn_bulk_piece(struct qn_bulk *b, const struct qn_bulk_request *c,
                       uint64_t now)
{
    struct piece p = {
        .b = b, .now = now, .lines = ceil((double)c->bytes / LINE)};
    QN_ASSERT(now >= b->last);
    b->last = now;
    p.end = now + times(&p, b->near);
    bring(&p, c);
    place(&p, c);
    return p.end;
}

/* ---- making ---- */

/* Number the groups of the members' cores. @return how many. */
static uint32_t number(const struct qn_machine *m, enum qn_level level,
                       const uint32_t *core, uint32_t n, uint32_t *to)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        to[i] = count;
        for (uint32_t j = 0; j < i; j++) {
            if (qn_machine_group(m, level, core[j]) ==
                qn_machine_group(m, level, core[i])) {
                to[i] = to[j];
            }
        }
        count += to[i] == count;
    }
    return count;
}

/* Cores of a group, in the mean. */
static double cores_of_group(const struct qn_machine *m, enum qn_level level)
{
    uint32_t groups = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        uint32_t j = 0;
        while (qn_machine_group(m, level, j) != qn_machine_group(m, level, i)) {
            j++;
        }
        groups += j == i;
    }
    return (double)m->n / groups;
}

static double least_receive(const struct qn_machine *m)
{
    double least = INFINITY;
    for (uint32_t u = 0; u < m->n; u++) {
        for (uint32_t v = 0; v < m->n; v++) {
            least = u != v ? QN_MIN(least, qn_receive_cost(m, u, v)) : least;
        }
    }
    return m->n > 1 ? least : 1 / STREAM;
}

static double ps_per_line(double gb_s, double usual)
{
    return gb_s > 0 ? LINE / gb_s * 1e3 : usual;
}

static void fill_prices(struct qn_bulk *b, const struct qn_machine *m,
                        const uint32_t *core)
{
    const double *gb_s = m->facts.bandwidth;
    const double ghz = m->facts.clock_ghz > 0 ? m->facts.clock_ghz : GHZ_USUAL;
    const double least = least_receive(m);
    const double many = cores_of_group(m, QN_LEVEL_NODE) / CORES_PER_NODE;
    b->near = ps_per_line(gb_s[QN_BANDWIDTH_COPY], least * STREAM / ghz * 1e3);
    b->memory =
        ps_per_line(gb_s[QN_BANDWIDTH_MEMORY], b->near / QN_MAX(many, 2.0));
    b->given = ps_per_line(gb_s[QN_BANDWIDTH_CACHE], b->memory);
    b->link = ps_per_line(gb_s[QN_BANDWIDTH_LINK], 2 * b->memory);
    const double mib = gb_s[QN_BANDWIDTH_HOLDS] > 0
                           ? gb_s[QN_BANDWIDTH_HOLDS]
                           : cores_of_group(m, QN_LEVEL_CACHE);
    b->holds = (uint64_t)(mib * (double)MIB);
    for (uint32_t u = 0; u < b->n; u++) {
        for (uint32_t v = 0; v < b->n; v++) {
            const double r = qn_receive_cost(m, core[u], core[v]);
            b->line[(size_t)u * b->n + v] = b->near * QN_MAX(r / least, 1.0);
        }
    }
}

static bool is_good(const struct qn_machine *m, const uint32_t *core,
                    uint32_t n)
{
    bool good = n > 0 && qn_machine_has_costs(m);
    for (uint32_t i = 0; i < n && good; i++) {
        good = core[i] < m->n;
    }
    return good;
}

int qn_bulk_create(struct qn_bulk **out, const struct qn_machine *m,
                   const uint32_t *core, uint32_t n)
{
    if (!is_good(m, core, n)) {
        return QN_EINVAL;
    }
    struct qn_bulk *b = calloc(1, sizeof *b);
    if (b == NULL) {
        return QN_ENOMEM;
    }
    b->n = n;
    b->slots = SLOTS_FIRST;
    b->slot = calloc(b->slots, sizeof *b->slot);
    b->region = calloc(2 * (size_t)n, sizeof *b->region);
    b->line = calloc((size_t)n * n, sizeof *b->line);
    b->given_free = calloc(5 * (size_t)n, sizeof *b->given_free);
    if (b->slot == NULL || b->region == NULL || b->line == NULL ||
        b->given_free == NULL) {
        qn_bulk_destroy(b);
        return QN_ENOMEM;
    }
    b->cache = b->region + n;
    b->taken = b->given_free + n;
    b->memory_free = b->taken + n;
    b->in_free = b->memory_free + n;
    b->out_free = b->in_free + n;
    b->regions = number(m, QN_LEVEL_NODE, core, n, b->region);
    b->caches = number(m, QN_LEVEL_CACHE, core, n, b->cache);
    fill_prices(b, m, core);
    *out = b;
    return QN_OK;
}

void qn_bulk_destroy(struct qn_bulk *b)
{
    if (b != NULL) {
        free(b->slot);
        free(b->region);
        free(b->line);
        free(b->given_free);
        free(b);
    }
}

void qn_bulk_rest(struct qn_bulk *b)
{
    b->last = 0;
    memset(b->given_free, 0, b->n * sizeof *b->given_free);
    memset(b->memory_free, 0, 3 * (size_t)b->n * sizeof *b->memory_free);
}

void qn_bulk_reset(struct qn_bulk *b)
{
    qn_bulk_rest(b);
    memset(b->taken, 0, b->n * sizeof *b->taken);
    forget(b);
}
