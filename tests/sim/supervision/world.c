#include "tests/sim/supervision/world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t world_random(struct world *w, uint64_t n)
{
    return mix(w->random += UINT64_C(0x9e3779b97f4a7c15)) % n;
}

bool world_chance(struct world *w, uint32_t percent)
{
    return world_random(w, 100) < percent;
}

qn_time_t world_ms(struct world *w, uint64_t least, uint64_t most)
{
    return w->now + least * QN_MS + world_random(w, (most - least) * QN_MS + 1);
}

void world_note(struct world *w, uint64_t what)
{
    w->hash = mix(w->hash ^ mix(what ^ w->now));
}

void world_trace(const struct world *w, const char *fmt, ...)
{
    va_list args;
    if (w->trace) {
        fprintf(stderr, "%10" PRIu64 " us: ", w->now / QN_US);
        va_start(args, fmt);
        vfprintf(stderr, fmt, args);
        va_end(args);
        fputc('\n', stderr);
    }
}

void world_fail(const struct world *w, const char *fmt, ...)
{
    va_list args;
    fprintf(stderr, "seed %" PRIu64 ", at %" PRIu64 " us: ", w->seed,
            w->now / QN_US);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    abort(); /* the test names the command that replays it */
}

void channel_push(struct world *w, struct channel *c, const struct letter *l)
{
    if (c->count == CHANNEL_MAX) {
        world_fail(w, "a channel has %u messages", c->count);
    }
    c->item[c->count++] = *l;
}

struct letter channel_pop(struct channel *c)
{
    const struct letter l = c->item[0];
    c->count--;
    memmove(c->item, c->item + 1, c->count * sizeof c->item[0]);
    return l;
}

bool runs(const struct world *w, const struct process *p)
{
    return p->alive && p->stopped_until <= w->now;
}

uint32_t complete_count(const struct world *w, bool running)
{
    uint32_t n = 0;
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        const struct process *p = &w->process[i];
        n += p->alive && p->complete && (!running || runs(w, p));
    }
    return n;
}
