/*
 * A strict chip: whatever the hardware may do, chosen by a seed.
 *
 * L1. A line that was loaded is held, and may be what all later loads see until
 * the core invalidates. Or it is lost at any time, and loaded again. How often
 * is drawn per attachment, and one attachment of four loses nothing: a loop
 * that forgets to invalidate then never ends, where otherwise it would only be
 * slow. A store to a line that is held changes it, too.
 *
 * The write buffer holds one line. Its words leave it in ascending order, when
 * the last one is there, when another line is stored to, or when it is drained.
 * A load of a word in it is a fault: on the hardware it may or may not show
 * what was stored.
 *
 * Interrupts. A request stays on its way for some safe points.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "transports/mpb/chip.h"

#define ALL_WORDS ((1u << QN_MPB_LINE_WORDS) - 1)

struct held {
    uint64_t word[QN_MPB_LINE_WORDS];
    uint64_t epoch; /* of `strict`; else it is not held */
};

struct strict {
    struct qn_mpb mpb; /* its first member */
    uint64_t random;
    uint32_t loses; /* of 256 loads of lines that are held */
    uint64_t epoch; /* of what L1 holds, from 1 */
    uint32_t words; /* of the write buffer: bits; 0: it is empty */
    uint32_t core, line;
    uint64_t word[QN_MPB_LINE_WORDS];
    bool delayed;       /* a request is on its way */
    struct held held[]; /* [nodes][QN_MPB_LINES] */
};

static struct strict *of(struct qn_mpb *m)
{
    return (struct strict *)(void *)m; /* its first member */
}

/* splitmix64 */
static uint32_t draw(struct strict *s)
{
    uint64_t x = s->random += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(x ^ x >> 31) & 0xffu;
}

static struct held *held_of(struct strict *s, uint32_t core, uint32_t line)
{
    QN_ASSERT(core < s->mpb.nodes);
    QN_ASSERT(line < QN_MPB_LINES);
    return &s->held[core * QN_MPB_LINES + line];
}

static void invalidate(struct qn_mpb *m)
{
    of(m)->epoch++;
}

/* The line as L1 shows it, which has it then. */
static struct held *look(struct strict *s, uint32_t core, uint32_t line)
{
    struct held *h = held_of(s, core, line);
    if (h->epoch != s->epoch || draw(s) < s->loses) {
        const struct qn_mpb_line *from = &s->mpb.chip->core[core].line[line];
        h->epoch = s->epoch;
        for (uint32_t i = 0; i < QN_MPB_LINE_WORDS; i++) {
            /* seq_cst: as on a plain chip (chip.c). */
            h->word[i] = qn_load(&from->word[i], QN_SEQ_CST);
        }
    }
    return h;
}

static uint64_t load(struct qn_mpb *m, uint32_t core, uint32_t line,
                     uint32_t word)
{
    struct strict *s = of(m);
    if ((s->words >> word & 1) != 0 && s->core == core && s->line == line) {
        m->fault =
            m->fault != NULL ? m->fault : "loads what it has not drained";
    }
    return look(s, core, line)->word[word];
}

static void drain(struct qn_mpb *m)
{
    struct strict *s = of(m);
    for (uint32_t i = 0; i < QN_MPB_LINE_WORDS && s->words != 0; i++) {
        if ((s->words >> i & 1) != 0) {
            qn_store(&m->chip->core[s->core].line[s->line].word[i], s->word[i],
                     QN_SEQ_CST);
        }
    }
    s->words = 0;
}

static void store(struct qn_mpb *m, uint32_t core, uint32_t line, uint32_t word,
                  uint64_t value)
{
    struct strict *s = of(m);
    struct held *h = held_of(s, core, line);
    if (s->words != 0 && (s->core != core || s->line != line)) {
        drain(m);
    }
    s->core = core;
    s->line = line;
    s->word[word] = value;
    s->words |= 1u << word;
    if (h->epoch == s->epoch) {
        h->word[word] = value;
    }
    if (s->words == ALL_WORDS) {
        drain(m);
    }
}

static void get(struct qn_mpb *m, void *to, uint32_t core, uint32_t first,
                uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint32_t word = at / (uint32_t)sizeof(uint64_t);
        uint64_t v = load(m, core, first + word / QN_MPB_LINE_WORDS,
                          word % QN_MPB_LINE_WORDS);
        memcpy((uint8_t *)to + at, &v, QN_MIN(sizeof v, bytes - at));
    }
}

static void put(struct qn_mpb *m, uint32_t core, uint32_t first,
                const void *from, uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint32_t word = at / (uint32_t)sizeof(uint64_t);
        uint64_t v = 0;
        memcpy(&v, (const uint8_t *)from + at, QN_MIN(sizeof v, bytes - at));
        store(m, core, first + word / QN_MPB_LINE_WORDS,
              word % QN_MPB_LINE_WORDS, v);
    }
}

static void move(struct qn_mpb *m, uint32_t to, uint32_t core, uint32_t first,
                 uint32_t lines)
{
    for (uint32_t i = 0; i < lines; i++) {
        uint64_t line[QN_MPB_LINE_WORDS];
        get(m, line, core, first + i, sizeof line);
        put(m, m->self, to + i, line, sizeof line);
    }
}

static void settle(struct qn_mpb *m)
{
    struct strict *s = of(m);
    s->delayed = false;
    qn_mpb_serve(m);
}

/* A safe point: half of what is on its way arrives. */
static void pass_time(struct strict *s)
{
    if (s->delayed && draw(s) < 128) {
        settle(&s->mpb);
    }
}

static void interrupt(struct qn_mpb *m, uint64_t cores)
{
    struct strict *s = of(m);
    qn_mpb_request(m, cores);
    s->delayed = true;
    pass_time(s);
}

static uint64_t take(struct qn_mpb *m)
{
    pass_time(of(m));
    return qn_exchange(&m->chip->core[m->self].status, 0, QN_SEQ_CST);
}

static void free_strict(struct qn_mpb *m)
{
    free(of(m));
}

static const struct qn_mpb_access access = {
    .invalidate = invalidate,
    .load = load,
    .store = store,
    .drain = drain,
    .get = get,
    .put = put,
    .move = move,
    .interrupt = interrupt,
    .take = take,
    .settle = settle,
    .free = free_strict,
};

struct qn_mpb *qn_mpb_strict_create(uint32_t nodes, uint64_t seed)
{
    static const uint32_t loses[] = {0, 8, 64, 255};
    struct strict *s =
        calloc(1, sizeof *s + (size_t)nodes * QN_MPB_LINES * sizeof *s->held);
    if (s == NULL) {
        return NULL;
    }
    s->mpb.access = &access;
    s->random = seed;
    s->loses = loses[draw(s) % QN_ARRAY_COUNT(loses)];
    s->epoch = 1;
    return &s->mpb;
}
