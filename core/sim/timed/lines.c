#include "core/sim/timed/lines.h"

#include <stdbool.h>
#include <stdlib.h>

#include "core/base/err.h"

#define SLOTS_FIRST 4096u /* a power of two */
#define CHUNK_LINES 1024u

struct chunk {
    struct chunk *before;
    alignas(16) uint8_t bytes[];
};

struct qn_lines {
    struct qn_prices *prices;
    struct qn_line **slot; /* [slots], open addressing */
    uint32_t slots;        /* a power of two, at least twice `count` */
    uint32_t count;
    size_t entry_bytes;
    size_t bytes, bytes_max; /* of slots and chunks */
    struct chunk *chunk;     /* the newest */
    uint32_t used;           /* entries of it */
};

static uint32_t home(uintptr_t base, uint32_t slots)
{
    return (uint32_t)(((uint64_t)base * UINT64_C(0x9e3779b97f4a7c15)) >> 32) &
           (slots - 1);
}

/* @return false: these would be too many. */
static bool take_bytes(struct qn_lines *l, size_t bytes)
{
    bool fits = bytes <= l->bytes_max - l->bytes;
    l->bytes += fits ? bytes : 0;
    return fits;
}

static struct qn_line **make_slots(struct qn_lines *l, uint32_t slots)
{
    return take_bytes(l, slots * sizeof(struct qn_line *))
               ? calloc(slots, sizeof(struct qn_line *))
               : NULL;
}

int qn_lines_create(struct qn_lines **out, struct qn_prices *prices,
                    size_t bytes)
{
    struct qn_lines *l = calloc(1, sizeof *l);
    if (l == NULL) {
        return QN_ENOMEM;
    }
    l->bytes_max = bytes;
    struct qn_line **slot = make_slots(l, SLOTS_FIRST);
    if (slot == NULL) {
        free(l);
        return QN_ENOMEM;
    }
    l->prices = prices;
    l->slot = slot;
    l->slots = SLOTS_FIRST;
    l->entry_bytes =
        (sizeof(struct qn_line) + prices->line_bytes + 15) / 16 * 16;
    l->used = CHUNK_LINES;
    *out = l;
    return QN_OK;
}

void qn_lines_destroy(struct qn_lines *l)
{
    if (l == NULL) {
        return;
    }
    while (l->chunk != NULL) {
        struct chunk *c = l->chunk;
        l->chunk = c->before;
        free(c);
    }
    free(l->slot);
    free(l);
}

/* @return false: it cannot. */
static bool grow(struct qn_lines *l)
{
    uint32_t slots = l->slots * 2;
    struct qn_line **slot = make_slots(l, slots);
    if (slot == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < l->slots; i++) {
        if (l->slot[i] != NULL) {
            uint32_t at = home(l->slot[i]->base, slots);
            while (slot[at] != NULL) {
                at = (at + 1) & (slots - 1);
            }
            slot[at] = l->slot[i];
        }
    }
    free(l->slot);
    l->bytes -= l->slots * sizeof(struct qn_line *);
    l->slot = slot;
    l->slots = slots;
    return true;
}

static struct qn_line *make(struct qn_lines *l, uintptr_t base)
{
    if (l->used == CHUNK_LINES) {
        size_t bytes = sizeof(struct chunk) + CHUNK_LINES * l->entry_bytes;
        struct chunk *c = take_bytes(l, bytes) ? malloc(bytes) : NULL;
        if (c == NULL) {
            return NULL;
        }
        c->before = l->chunk;
        l->chunk = c;
        l->used = 0;
    }
    void *at = l->chunk->bytes + l->used++ * l->entry_bytes;
    struct qn_line *line = at;
    line->base = base;
    line->number = l->count++;
    line->version = 0;
    line->changed = 0;
    line->watchers = NULL;
    l->prices->line_init(l->prices, line->state, base);
    return line;
}

struct qn_line *qn_lines_at(struct qn_lines *l, uintptr_t base)
{
    uint32_t at = home(base, l->slots);
    while (l->slot[at] != NULL) {
        if (l->slot[at]->base == base) {
            return l->slot[at];
        }
        at = (at + 1) & (l->slots - 1);
    }
    if (2 * (l->count + 1) > l->slots) {
        return grow(l) ? qn_lines_at(l, base) : NULL;
    }
    l->slot[at] = make(l, base);
    return l->slot[at];
}

uint32_t qn_lines_count(const struct qn_lines *l)
{
    return l->count;
}
