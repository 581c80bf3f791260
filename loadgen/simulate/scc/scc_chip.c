/*
 * An operation of a device acts at the instant of its turn, but what it writes
 * is visible a little later: a word keeps what it held before until then. Two
 * writes of one word are never both on their way, since a word has one writer
 * at a time and that waits for its operation.
 *
 * A core has in its caches what it has moved since the memory of its message
 * was named: a message that it got and sends on, or sends a second time, is
 * read at no cost. That the caches hold all of it is assumed, as in print.
 *
 * The programs in print reset each flag when they have seen it. Those of
 * transports/mpb need not, for their flags count; but what is compared with
 * print pays for it: one more write of a flag when a new value is seen.
 */
#include "loadgen/simulate/scc/scc_chip.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sim/timed/timed.h"

struct line {
    uint64_t before[QN_MPB_LINE_WORDS], word[QN_MPB_LINE_WORDS];
    qn_ps_t visible[QN_MPB_LINE_WORDS];
};

struct core {
    struct qn_mpb mpb; /* its first member */
    struct qn_scc_chip *chip;
    struct line line[QN_MPB_LINES];
    uint64_t seen[QN_MPB_LINES][QN_MPB_LINE_WORDS]; /* of own flags */
    qn_ps_t came[QN_MPB_CORES]; /* interrupt of that source: when, or NEVER */
    uint32_t words;             /* of the write buffer: bits */
    uint32_t to, at;            /* core and line of it */
    uint64_t word[QN_MPB_LINE_WORDS];
    const uint8_t *message; /* private; NULL: none was named */
    uint32_t lines;         /* of it */
    bool *cached;           /* [lines] */
};

struct qn_scc_chip {
    uint32_t nodes;
    struct core core[];
};

static struct core *of(struct qn_mpb *m)
{
    return (struct core *)(void *)m; /* its first member */
}

static void write_line(struct line *l, const uint64_t *word, uint32_t words,
                       const struct qn_price *p)
{
    for (uint32_t i = 0; i < QN_MPB_LINE_WORDS; i++) {
        if ((words >> i & 1) != 0) {
            l->before[i] = l->word[i];
            l->word[i] = word[i];
            l->visible[i] = p->visible;
        }
    }
}

static uint64_t read_word(const struct line *l, uint32_t word,
                          const struct qn_price *p)
{
    return p->start < l->visible[word] ? l->before[word] : l->word[word];
}

static void invalidate(struct qn_mpb *m)
{
    (void)m; /* an instruction of a few cycles */
}

static uint64_t load(struct qn_mpb *m, uint32_t core, uint32_t line,
                     uint32_t word)
{
    struct core *c = of(m);
    const struct qn_price p = qn_scc_flag_read(core);
    uint64_t value = read_word(&c->chip->core[core].line[line], word, &p);
    if (core == m->self && c->seen[line][word] != value) {
        c->seen[line][word] = value;
        (void)qn_scc_flag_write(core); /* the reset */
    }
    return value;
}

static void drain(struct qn_mpb *m)
{
    struct core *c = of(m);
    if (c->words != 0) {
        const struct qn_price p = qn_scc_flag_write(c->to);
        write_line(&c->chip->core[c->to].line[c->at], c->word, c->words, &p);
        c->words = 0;
    }
}

static void store(struct qn_mpb *m, uint32_t core, uint32_t line, uint32_t word,
                  uint64_t value)
{
    struct core *c = of(m);
    if (c->words != 0 && (c->to != core || c->at != line)) {
        drain(m);
    }
    c->to = core;
    c->at = line;
    c->word[word] = value;
    c->words |= 1u << word;
}

/* ---- the caches ---- */

/* The mark of a line of the core's message; NULL: it is no line of it. */
static bool *mark_of(struct core *c, const uint8_t *at)
{
    if (c->message == NULL || at < c->message ||
        at >= c->message + (size_t)c->lines * QN_MPB_LINE_BYTES) {
        return NULL;
    }
    return &c->cached[(size_t)(at - c->message) / QN_MPB_LINE_BYTES];
}

int qn_scc_chip_message(struct qn_mpb *m, const void *message, uint32_t lines)
{
    struct core *c = of(m);
    free(c->cached);
    c->cached = calloc(lines, sizeof *c->cached);
    c->message = c->cached != NULL ? message : NULL;
    c->lines = lines;
    return c->cached != NULL ? QN_OK : QN_ENOMEM;
}

/* ---- put and get ---- */

struct copy {
    struct core *core;
    uint8_t *bytes;    /* private; NULL: buffer to buffer */
    uint32_t len;      /* of it */
    struct line *from; /* lines; NULL: private */
    struct line *to;
    uint64_t line[QN_MPB_LINE_WORDS]; /* the one that was read last */
};

static void taken(void *ctx, uint32_t i, const struct qn_price *p)
{
    struct copy *c = ctx;
    for (uint32_t w = 0; c->from != NULL && w < QN_MPB_LINE_WORDS; w++) {
        c->line[w] = read_word(&c->from[i], w, p);
    }
    if (c->from != NULL && c->bytes != NULL) {
        uint32_t at = i * QN_MPB_LINE_BYTES;
        memcpy(c->bytes + at, c->line, QN_MIN(QN_MPB_LINE_BYTES, c->len - at));
    }
}

/* Whether it was; from now on it is. */
static bool cached(void *ctx, uint32_t i)
{
    struct copy *c = ctx;
    bool *mark = mark_of(c->core, c->bytes + i * QN_MPB_LINE_BYTES);
    bool was = mark != NULL && *mark;
    if (mark != NULL) {
        *mark = true;
    }
    return was;
}

static void placed(void *ctx, uint32_t i, const struct qn_price *p)
{
    struct copy *c = ctx;
    if (c->to != NULL && c->bytes != NULL) {
        uint32_t at = i * QN_MPB_LINE_BYTES;
        memset(c->line, 0, sizeof c->line);
        memcpy(c->line, c->bytes + at, QN_MIN(QN_MPB_LINE_BYTES, c->len - at));
    }
    if (c->to == NULL) {
        (void)cached(c, i); /* it came to memory through them */
    } else {
        write_line(&c->to[i], c->line, (1u << QN_MPB_LINE_WORDS) - 1, p);
    }
}

static struct qn_scc_copy copy_of(struct copy *c, uint32_t peer, uint32_t lines,
                                  bool memory)
{
    return (struct qn_scc_copy){.peer = peer,
                                .lines = lines,
                                .memory = memory,
                                .taken = taken,
                                .placed = placed,
                                .cached = cached,
                                .ctx = c};
}

static uint32_t lines_of(uint32_t bytes)
{
    return (bytes + QN_MPB_LINE_BYTES - 1) / QN_MPB_LINE_BYTES;
}

static void get(struct qn_mpb *m, void *to, uint32_t core, uint32_t first,
                uint32_t bytes)
{
    struct copy c = {.core = of(m),
                     .bytes = to,
                     .len = bytes,
                     .from = &of(m)->chip->core[core].line[first]};
    const struct qn_scc_copy x = copy_of(&c, core, lines_of(bytes), true);
    if (bytes > 0) {
        qn_scc_get(&x);
    }
}

static void put(struct qn_mpb *m, uint32_t core, uint32_t first,
                const void *from, uint32_t bytes)
{
    struct copy c = {.core = of(m),
                     .bytes = (uint8_t *)(uintptr_t)from, /* read only */
                     .len = bytes,
                     .to = &of(m)->chip->core[core].line[first]};
    const struct qn_scc_copy x = copy_of(&c, core, lines_of(bytes), true);
    drain(m);
    if (bytes > 0) {
        qn_scc_put(&x);
    }
}

static void move(struct qn_mpb *m, uint32_t to, uint32_t core, uint32_t first,
                 uint32_t lines)
{
    struct qn_scc_chip *chip = of(m)->chip;
    struct copy c = {.core = of(m),
                     .from = &chip->core[core].line[first],
                     .to = &of(m)->line[to]};
    const struct qn_scc_copy x = copy_of(&c, core, lines, false);
    drain(m);
    if (lines > 0) {
        qn_scc_get(&x);
    }
}

/* ---- interrupts ---- */

/* One store reaches 32 cores. */
static void interrupt(struct qn_mpb *m, uint64_t cores)
{
    struct qn_scc_chip *chip = of(m)->chip;
    for (uint32_t half = 0; half < 64; half += QN_SCC_INTERRUPTS) {
        uint32_t some = (uint32_t)(cores >> half);
        if (some == 0) {
            continue;
        }
        const struct qn_price p = qn_timed_device(
            &(struct qn_device_access){.kind = QN_DEVICE_INTERRUPT});
        for (; some != 0; some &= some - 1) {
            uint32_t to = half + (uint32_t)__builtin_ctz(some);
            qn_ps_t *came = &chip->core[to].came[m->self];
            *came = QN_MIN(*came, p.visible);
            qn_timed_signal(to, p.visible);
        }
    }
}

/* The handler reads its cause and clears it. */
static uint64_t take(struct qn_mpb *m)
{
    struct core *c = of(m);
    uint64_t cores = 0;
    qn_timed_turn();
    for (uint32_t i = 0; i < m->nodes; i++) {
        if (c->came[i] <= qn_timed_clock()) {
            cores |= UINT64_C(1) << i;
            c->came[i] = QN_PS_NEVER;
        }
    }
    for (uint32_t i = 0; i < 2 && cores != 0; i++) {
        (void)qn_timed_device(
            &(struct qn_device_access){.kind = QN_DEVICE_INTERRUPT_REGISTER});
    }
    return cores;
}

void qn_scc_chip_wait(struct qn_mpb *m, qn_ps_t until)
{
    qn_ps_t next = until;
    qn_timed_turn();
    for (uint32_t i = 0; i < m->nodes; i++) {
        next = QN_MIN(next, of(m)->came[i]);
    }
    (void)qn_timed_wait(next);
}

static void settle(struct qn_mpb *m)
{
    (void)m;
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
    .free = settle,
};

struct qn_scc_chip *qn_scc_chip_create(uint32_t nodes)
{
    QN_ASSERT(nodes <= QN_MPB_CORES);
    struct qn_scc_chip *c = calloc(1, sizeof *c + nodes * sizeof c->core[0]);
    for (qn_node_t v = 0; c != NULL && v < nodes; v++) {
        struct core *core = &c->core[v];
        c->nodes = nodes;
        core->chip = c;
        core->mpb =
            (struct qn_mpb){.device = {.type = &qn_mpb_device, .self = v},
                            .access = &access,
                            .nodes = nodes,
                            .lanes = 1,
                            .self = v};
        for (qn_node_t i = 0; i < nodes; i++) {
            core->mpb.incarnation[i] = 1 + i;
            core->came[i] = QN_PS_NEVER;
        }
    }
    return c;
}

void qn_scc_chip_free(struct qn_scc_chip *c)
{
    for (uint32_t v = 0; c != NULL && v < c->nodes; v++) {
        free(c->core[v].cached);
    }
    free(c);
}

struct qn_mpb *qn_scc_chip_core(struct qn_scc_chip *c, qn_node_t node)
{
    QN_ASSERT(node < c->nodes);
    return &c->core[node].mpb;
}
