/*
 * All memory is one mapping, made before the members start: the lines, how
 * many operations a row has in the next turn, and an arena for each member,
 * with its input, its output and its intermediate memory. Processes make the
 * arenas of others read-only, unless the group pushes.
 *
 * The root says before each turn how often each row is run, so that it takes
 * about QN_LARGE_ROW_NS, or a part of that if `seconds` are few; the first turn
 * runs each once and is not counted. Short turns are better than few: a member
 * that loses its core spoils one turn, and the median of three with it. So only
 * the first turn fills and checks each word; later ones do so with a word of
 * each page, which no lost fragment leaves out. (All words of 16 MiB took
 * longer than what is measured.)
 *
 * Receivers of a core copy in turns with memcpy, too, as in a broadcast. One
 * that made all its copies in a row would have its core's caches to itself, and
 * "as many at once" would be one after the other (1 MiB, 4 members on two
 * cores: 0.8 of the time).
 *
 * A late member sleeps in front of an operation as soon as LATE_LEAST is owed
 * of its part of the row's time, because shorter sleeps take longer than they
 * are asked for; and in front of the last meeting, so that each row has its
 * part, even one of a single operation.
 */
#include "loadgen/large/large_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/wait/park.h"
#include "loadgen/bench/nodes.h"

#define COUNT_MOST  5000u
#define TURNS_LEAST 10 /* that --seconds are enough for, about */
#define PAGE        4096u
#define SPARSE      1024u /* words */
#define LATE_LEAST  QN_MS

struct group {
    struct qn_large_line lines[QN_NODES_MAX];
    uint32_t count[QN_LARGE_ROWS_MAX]; /* by the root, before a meeting */
    bool over;
};

struct bench {
    const struct qn_large_bench_opts *o;
    struct qn_large_times *t;
    struct group *group;
    struct qn_large_arena arena[QN_NODES_MAX];
    size_t part; /* of an arena: a third */
};

struct member {
    struct bench *b;
    uint32_t rank;
    struct qn_large l;
    struct qn_alloc work;
    uint32_t *in, *out;
    uint64_t step;   /* of the words that are filled and checked */
    qn_time_t began; /* this row */
    qn_time_t slept; /* in it */
};

static uint32_t word_of(uint32_t rank, uint32_t row, uint64_t i)
{
    return (uint32_t)(i + 1) * 0x9e3779b9u + rank * 0x10001u + row;
}

static void add(void *into, const void *from, uint32_t count)
{
    uint32_t *x = into;
    const uint32_t *y = from;
    for (uint32_t i = 0; i < count; i++) {
        x[i] += y[i];
    }
}

/* Words of 32 bits: a message may be one of them. */
static const uint32_t zero;
static const struct qn_operator sum = {add, &zero, sizeof zero, true};

static void *take_work(void *ctx, void *p, size_t bytes)
{
    const struct member *m = ctx;
    (void)p;
    return bytes == 0 || bytes > m->b->part
               ? NULL
               : (char *)m->b->arena[m->rank].base + 2 * m->b->part;
}

static int meet(struct member *m)
{
    return qn_large_run(&m->l,
                        &(struct qn_large_call){.operation = QN_LARGE_BROADCAST,
                                                .entry = QN_LARGE_ALL,
                                                .exit = QN_LARGE_OWN});
}

/* ---- one row ---- */

/* The next word of a part of `words` that is filled and checked; after the last
 * one `words`. */
static uint64_t next_word(const struct member *m, uint64_t i, uint64_t words)
{
    return i + m->step < words ? i + m->step
           : i + 1 < words     ? words - 1
                               : words;
}

static void fill(struct member *m, uint32_t row)
{
    const struct qn_large_row *r = &m->b->o->row[row];
    const bool all = r->variant != NULL && m->rank == 0 &&
                     r->variant->operation == QN_LARGE_SCATTER;
    const uint64_t words = r->bytes / 4, parts = all ? m->b->o->members : 1;
    for (uint64_t first = 0; first < parts * words; first += words) {
        for (uint64_t i = 0; i < words; i = next_word(m, i, words)) {
            m->in[first + i] = word_of(m->rank, row, first + i);
        }
    }
}

static bool is_content(const struct member *m, const uint32_t *at,
                       uint32_t rank, uint32_t row, uint64_t first,
                       uint64_t words)
{
    for (uint64_t i = 0; i < words; i = next_word(m, i, words)) {
        if (at[i] != word_of(rank, row, first + i)) {
            return false;
        }
    }
    return true;
}

static bool is_sum(const struct member *m, uint32_t row, uint64_t words)
{
    const uint32_t n = m->b->o->members;
    for (uint64_t i = 0; i < words; i = next_word(m, i, words)) {
        uint32_t want = 0;
        for (uint32_t x = 0; x < n; x++) {
            want += word_of(x, row, i);
        }
        if (m->out[i] != want) {
            return false;
        }
    }
    return true;
}

static bool is_right(const struct member *m, uint32_t row)
{
    const struct qn_large_row *r = &m->b->o->row[row];
    const uint64_t words = r->bytes / 4;
    const bool root = m->rank == 0;
    bool right = true;
    if (r->variant == NULL || r->variant->operation == QN_LARGE_BROADCAST) {
        return root || is_content(m, m->out, 0, row, 0, words);
    }
    if (r->variant->operation == QN_LARGE_SCATTER) {
        return is_content(m, m->out, 0, row, m->rank * words, words);
    }
    if (r->variant->operation == QN_LARGE_REDUCE) {
        return !root || is_sum(m, row, words);
    }
    for (uint32_t x = 0; root && x < m->b->o->members; x++) {
        right = right && is_content(m, m->out + x * words, x, row, 0, words);
    }
    return right;
}

static int run_once(struct member *m, const struct qn_large_row *r)
{
    if (r->variant != NULL) {
        return qn_large_run(
            &m->l, &(struct qn_large_call){.variant = r->variant,
                                           .operation = r->variant->operation,
                                           .bytes = r->bytes,
                                           .in = m->in,
                                           .out = m->out,
                                           .op = &sum,
                                           .entry = QN_LARGE_OWN,
                                           .exit = QN_LARGE_OWN});
    }
    if (m->rank != 0) { /* visible since the meeting */
        qn_copy_in(m->out, m->b->arena[0].base, r->bytes);
    }
    if (m->b->o->backoff.look_ns == 0) { /* members share cores */
        qn_park_yield();
    }
    return QN_OK;
}

/* What the late member owes, if it is `least` or more. */
static void be_late(struct member *m, double least)
{
    const struct qn_large_bench_opts *o = m->b->o;
    if (o->late <= 0 || m->rank != o->members - 1) {
        return;
    }
    const qn_time_t now = qn_clock_now();
    const double behind = o->late * (double)(now - m->began) - (double)m->slept;
    const double ns = behind / (1 - o->late); /* a sleep is time, too */
    if (ns >= least) {
        const struct timespec pause = {(time_t)(ns / 1e9), (long)fmod(ns, 1e9)};
        (void)nanosleep(&pause, NULL);
        m->slept += qn_clock_now() - now;
        m->b->t->sleeps++;
    }
}

/* At the end of a row. */
static void tell_lateness(struct member *m)
{
    be_late(m, 0);
    if (m->slept > 0) {
        m->b->t->slept += m->slept;
        m->b->t->ran += qn_clock_now() - m->began;
    }
}

/* @param ns  Filled at the root: of one operation. */
static int run_row(struct member *m, uint32_t row, double *ns)
{
    const uint32_t count = m->b->group->count[row];
    fill(m, row);
    int rc = meet(m);
    m->began = qn_clock_now();
    m->slept = 0;
    for (uint32_t i = 0; rc == QN_OK && i < count; i++) {
        be_late(m, LATE_LEAST);
        rc = run_once(m, &m->b->o->row[row]);
    }
    tell_lateness(m);
    rc = rc == QN_OK ? meet(m) : rc;
    *ns = (double)(qn_clock_now() - m->began) / count;
    if (rc == QN_OK && !is_right(m, row)) {
        (void)qn_fetch_add(&m->b->t->wrong, 1,
                           QN_RELAXED); /* read at the end */
    }
    return rc;
}

/* ---- turns ---- */

static void decide(struct bench *b, uint32_t turn, const double *last,
                   qn_time_t stop)
{
    const struct qn_large_bench_opts *o = b->o;
    const double row_ns = QN_MIN((double)QN_LARGE_ROW_NS,
                                 o->seconds * 1e9 / TURNS_LEAST / o->rows);
    for (uint32_t row = 0; row < o->rows; row++) {
        const double count =
            turn == 0 || o->quick ? 1 : row_ns / QN_MAX(last[row], 1.0);
        b->group->count[row] =
            count < 1 ? 1 : (uint32_t)QN_MIN(count, (double)COUNT_MOST);
    }
    b->group->over = turn > o->turns || (turn > 1 && qn_clock_now() > stop);
}

static int run_turns(struct member *m)
{
    struct bench *b = m->b;
    const bool root = m->rank == 0;
    qn_time_t stop = QN_TIME_NEVER;
    double *last = calloc(b->o->rows, sizeof *last);
    int rc = last == NULL ? QN_ENOMEM : QN_OK;
    for (uint32_t turn = 0; rc == QN_OK; turn++) {
        if (root) {
            decide(b, turn, last, stop);
        }
        rc = meet(m);
        if (rc != QN_OK || b->group->over) {
            break;
        }
        m->step = turn == 0 ? 1 : SPARSE;
        for (uint32_t row = 0; rc == QN_OK && row < b->o->rows; row++) {
            rc = run_row(m, row, &last[row]);
            if (root && turn > 0) {
                b->t->ns[turn - 1][row] = last[row];
            }
        }
        if (root) {
            b->t->turns = turn;
        }
        if (turn == 0) { /* which makes the pages, and is not counted */
            stop = qn_clock_now() + (qn_time_t)(b->o->seconds * 1e9);
        }
        rc = rc == QN_OK ? meet(m) : rc; /* before the next decision */
    }
    free(last);
    return rc;
}

static int run_member(qn_node_t node, void *arg)
{
    struct bench *b = arg;
    const struct qn_large_bench_opts *o = b->o;
    struct member *m = calloc(1, sizeof *m);
    if (m == NULL) {
        qn_large_down(b->group->lines, node);
        return 1;
    }
    for (uint32_t i = 0; o->processes && !o->push && i < o->members; i++) {
        if (i != node) {
            (void)mprotect(b->arena[i].base, b->arena[i].bytes, PROT_READ);
        }
    }
    m->b = b;
    m->rank = node;
    m->work = (struct qn_alloc){take_work, m};
    m->in = b->arena[node].base;
    m->out = (uint32_t *)(void *)((char *)b->arena[node].base + b->part);
    int rc =
        qn_large_init(&m->l, &(struct qn_large_opts){.members = o->members,
                                                     .rank = node,
                                                     .lines = b->group->lines,
                                                     .arenas = b->arena,
                                                     .place = o->place,
                                                     .work = &m->work,
                                                     .push = o->push,
                                                     .backoff = o->backoff});
    rc = rc == QN_OK ? run_turns(m) : rc;
    if (rc != QN_OK) {
        fprintf(stderr, "quoin bench coll: member %u: %s\n", node,
                qn_strerror(rc));
    }
    qn_large_fini(&m->l);
    free(m);
    return rc == QN_OK ? 0 : 1;
}

int qn_large_bench_run(struct qn_large_times *t,
                       const struct qn_large_bench_opts *o)
{
    struct bench b = {.o = o, .t = t};
    for (uint32_t i = 0; i < o->rows; i++) {
        b.part = QN_MAX(b.part, (size_t)o->row[i].bytes * o->members);
    }
    b.part = qn_align_up(b.part, PAGE);
    const size_t head = qn_align_up(sizeof *b.group, PAGE);
    const size_t all = head + 3 * b.part * o->members;
    char *memory = mmap(NULL, all, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return QN_ENOMEM;
    }
    b.group = (struct group *)(void *)memory;
    for (uint32_t i = 0; i < o->members; i++) {
        b.arena[i] =
            (struct qn_large_arena){memory + head + 3 * b.part * i, 3 * b.part};
    }
    const struct qn_nodes_opts nodes = {
        .nodes = o->members, .processes = o->processes, .core = o->core};
    const uint32_t failed = qn_nodes_run(&nodes, run_member, &b);
    (void)munmap(memory, all);
    return failed == 0 ? QN_OK : QN_EIO;
}
