#include "loadgen/client/unavailability.h"

#include "core/base/assert.h"
#include "core/base/atomic.h"
#include "core/base/bits.h"
#include "core/base/err.h"

#include <pthread.h>
#include <stdlib.h>

/*
 * Each cell (one row of one address) holds the time of the last success and the
 * longest distance between two. A success exchanges the time of the last one
 * for its own, if that is later. So every success sees the one before it, and
 * no distance is counted twice or missed; threads need no order among cells.
 * This happens once per read of a socket, not per reply: all replies of one
 * read have the same time.
 *
 * Why not per thread and merged: a window without successes in one thread says
 * nothing while another thread is answered, and the number of such windows is
 * not bounded.
 */

struct cell {
    qn_a64 last;     /* time of the last success; written by any thread */
    qn_a64 longest;  /* ns; written under the lock, read without */
    qn_time_t began; /* ns since the beginning of its run */
};

struct qn_unavailability {
    pthread_mutex_t lock; /* taken to store a longer window */
    qn_a64 from; /* measured time; written by qn_unavailability_begin */
    qn_a64 to;
    uint32_t addresses;
    bool asked[QN_UNAVAILABILITY_ROWS];
    struct cell cell[]; /* [addresses + 1][QN_UNAVAILABILITY_ROWS]; the last
                           row: all addresses */
};

const char *qn_unavailability_name(uint32_t row)
{
    return row == QN_UNAVAILABILITY_READ    ? "reads"
           : row == QN_UNAVAILABILITY_WRITE ? "writes"
                                            : qn_mix_op_name((enum qn_op)row);
}

int qn_unavailability_create(struct qn_unavailability **out,
                             const struct qn_mix *mix, uint32_t addresses)
{
    QN_ASSERT(addresses >= 1);
    size_t cells = (size_t)(addresses + 1) * QN_UNAVAILABILITY_ROWS;
    struct qn_unavailability *s =
        calloc(1, sizeof *s + cells * sizeof s->cell[0]);
    if (s == NULL) {
        return QN_ENOMEM;
    }
    s->addresses = addresses;
    qn_store(&s->from, QN_TIME_NEVER, QN_RELAXED);
    for (int op = 0; op < QN_OP_COUNT; op++) {
        bool in = qn_mix_weight(mix, (enum qn_op)op) > 0;
        s->asked[op] = in;
        s->asked[QN_UNAVAILABILITY_READ] |= in && qn_op_is_read((enum qn_op)op);
        s->asked[QN_UNAVAILABILITY_WRITE] |=
            in && qn_op_is_write((enum qn_op)op);
    }
    pthread_mutex_init(&s->lock, NULL);
    *out = s;
    return QN_OK;
}

void qn_unavailability_destroy(struct qn_unavailability *s)
{
    if (s != NULL) {
        pthread_mutex_destroy(&s->lock);
        free(s);
    }
}

static struct cell *cell_of(struct qn_unavailability *s, uint32_t address,
                            uint32_t row)
{
    return &s->cell[(size_t)address * QN_UNAVAILABILITY_ROWS + row];
}

void qn_unavailability_begin(struct qn_unavailability *s, qn_time_t from,
                             qn_time_t to)
{
    /* Published after the cells: release -> acquire in
     * qn_unavailability_success. */
    qn_store(&s->to, to, QN_RELAXED);
    for (uint32_t a = 0; a <= s->addresses; a++) {
        for (uint32_t row = 0; row < QN_UNAVAILABILITY_ROWS; row++) {
            qn_store(&cell_of(s, a, row)->last, from, QN_RELAXED);
        }
    }
    qn_store(&s->from, from, QN_RELEASE);
}

static void note(struct qn_unavailability *s, struct cell *c, qn_time_t now)
{
    /* relaxed: the cell's own order of values is all that is needed; results
     * are read when all threads have been joined. */
    qn_time_t before = qn_fetch_max(&c->last, now);
    if (now <= before || now - before <= qn_load(&c->longest, QN_RELAXED)) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    if (now - before > qn_load(&c->longest, QN_RELAXED)) {
        qn_store(&c->longest, now - before, QN_RELAXED);
        c->began = before - qn_load(&s->from, QN_RELAXED);
    }
    pthread_mutex_unlock(&s->lock);
}

static void note_row(struct qn_unavailability *s, uint32_t address,
                     uint32_t row, qn_time_t now)
{
    note(s, cell_of(s, address, row), now);
    if (s->addresses > 1) {
        note(s, cell_of(s, s->addresses, row), now);
    }
}

void qn_unavailability_success(struct qn_unavailability *s, uint32_t address,
                               uint32_t ops, qn_time_t now)
{
    QN_DASSERT(address < s->addresses);
    /* acquire <- release in qn_unavailability_begin. */
    if (now < qn_load(&s->from, QN_ACQUIRE) ||
        now > qn_load(&s->to, QN_RELAXED)) {
        return;
    }
    bool reads = false;
    bool writes = false;
    for (; ops != 0; ops &= ops - 1) {
        uint32_t op = (uint32_t)__builtin_ctz(ops);
        note_row(s, address, op, now);
        reads |= qn_op_is_read((enum qn_op)op);
        writes |= qn_op_is_write((enum qn_op)op);
    }
    if (reads) {
        note_row(s, address, QN_UNAVAILABILITY_READ, now);
    }
    if (writes) {
        note_row(s, address, QN_UNAVAILABILITY_WRITE, now);
    }
}

void qn_unavailability_end(struct qn_unavailability *s, qn_time_t to)
{
    for (uint32_t a = 0; a <= s->addresses; a++) {
        for (uint32_t row = 0; row < QN_UNAVAILABILITY_ROWS; row++) {
            note(s, cell_of(s, a, row), to);
        }
    }
}

struct qn_unavailability_row qn_unavailability_get(
    const struct qn_unavailability *s, uint32_t address, uint32_t row)
{
    uint32_t a = address < s->addresses ? address
                 : s->addresses == 1    ? 0
                                        : s->addresses;
    const struct cell *c = &s->cell[(size_t)a * QN_UNAVAILABILITY_ROWS + row];
    return (struct qn_unavailability_row){
        .asked = s->asked[row],
        .longest = qn_load(&c->longest, QN_RELAXED),
        .began = c->began,
    };
}
