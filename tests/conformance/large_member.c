/*
 * What a member does in a run. All members draw the same operations, so each
 * knows what the others give; a result that is wrong ends the run of all.
 */
#include "tests/conformance/large_member.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"

static uint32_t hash(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

static uint8_t content(uint32_t member, uint32_t k, uint64_t i)
{
    return (uint8_t)((member + 1) * 31 + k * 17 + i * 7 + (i >> 8));
}

/* Maps x -> a x + b, one behind the other: does not commute. */
static void compose(void *into, const void *from, uint32_t count)
{
    uint8_t *x = into;
    const uint8_t *y = from;
    for (uint32_t i = 0; i < 2 * count; i += 2) {
        x[i + 1] = (uint8_t)(x[i] * y[i + 1] + x[i + 1]);
        x[i] = (uint8_t)(x[i] * y[i]);
    }
}

static void add(void *into, const void *from, uint32_t count)
{
    uint8_t *x = into;
    const uint8_t *y = from;
    for (uint32_t i = 0; i < 2 * count; i++) {
        x[i] = (uint8_t)(x[i] + y[i]);
    }
}

static void combine_and_die(void *into, const void *from, uint32_t count)
{
    (void)into;
    (void)from;
    (void)count;
    (void)raise(SIGKILL);
}

static const uint8_t one[2] = {1, 0}, zero[2] = {0, 0};
static const struct qn_operator composition = {compose, one, 2, false};
const struct qn_operator large_member_sum = {add, zero, 2, true};
const struct qn_operator large_member_deadly = {combine_and_die, zero, 2, true};

static void *resize(void *ctx, void *p, size_t bytes)
{
    (void)p;
    return bytes == 0 || bytes > LARGE_SET ? NULL : ctx;
}

/* ---- one operation ---- */

static struct qn_large_call drawn(const struct large_member *n, uint32_t k)
{
    const struct large_run *r = n->run;
    const uint32_t x = hash(r->seed * 7919 + k), y = hash(x);
    const struct qn_large_variant *v;
    uint32_t count = 0;
    while (qn_large_variant_at(count) != NULL) {
        count++;
    }
    do {
        QN_ASSERT(count > 0);
        v = qn_large_variant_at((x + k) % count--);
    } while (v->direction == QN_LARGE_PUSH && !r->push);
    const uint32_t most = (x >> 30) == 0 ? LARGE_BYTES_MAX : 9000;
    return (struct qn_large_call){
        .variant = (x >> 8 & 7) == 0 ? NULL : v,
        .operation = v->operation,
        .root = (x >> 11) % r->members,
        .bytes = y % most & ~1u,
        .in = n->memory + (k % 2) * LARGE_SET,
        .out = n->memory + (2 + k % 2) * LARGE_SET,
        .op = (y >> 20 & 1) != 0 ? &large_member_sum : &composition,
        .entry = (enum qn_large_sync)((y >> 21) % 3),
        .exit = (enum qn_large_sync)((y >> 25) % 3),
    };
}

static bool is_silent(const struct qn_large_call *c, uint32_t member,
                      uint32_t k)
{
    return c->operation == QN_LARGE_REDUCE && c->entry != QN_LARGE_NONE &&
           (member + k) % 5 == 0;
}

static bool is_sum(const struct large_member *n, const struct qn_large_call *c,
                   uint32_t k)
{
    static const size_t room = LARGE_BYTES_MAX;
    uint8_t *want = malloc(2 * room), *term = want + room;
    QN_ASSERT(want != NULL);
    for (uint64_t i = 0; i < c->bytes; i++) {
        want[i] = ((const uint8_t *)c->op->neutral)[i % 2];
    }
    for (uint32_t x = 0; x < n->run->members; x++) {
        for (uint64_t i = 0; i < c->bytes; i++) {
            term[i] = content(x, k, i);
        }
        if (!is_silent(c, x, k)) {
            c->op->combine(want, term, (uint32_t)c->bytes / 2);
        }
    }
    const bool same = memcmp(want, c->out, c->bytes) == 0;
    free(want);
    return same;
}

/* @param from  Whose bytes, from which place of its input on. */
static bool is_content(const uint8_t *at, uint32_t from, uint32_t k,
                       uint64_t first, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++) {
        if (at[i] != content(from, k, first + i)) {
            return false;
        }
    }
    return true;
}

static bool is_right(const struct large_member *n,
                     const struct qn_large_call *c, uint32_t k)
{
    const uint8_t *out = c->out;
    bool right = true;
    switch (c->operation) {
    case QN_LARGE_BROADCAST:
        return n->rank == c->root || is_content(out, c->root, k, 0, c->bytes);
    case QN_LARGE_SCATTER:
        return is_content(out, c->root, k, n->rank * c->bytes, c->bytes);
    case QN_LARGE_REDUCE:
        return n->rank != c->root || is_sum(n, c, k);
    default:
        for (uint32_t x = 0; n->rank == c->root && x < n->run->members; x++) {
            right = right && is_content(out + x * c->bytes, x, k, 0, c->bytes);
        }
        return right;
    }
}

static int operate(struct large_member *n, struct qn_large *l, uint32_t k)
{
    struct qn_large_call c = drawn(n, k);
    uint8_t *in = n->memory + (k % 2) * LARGE_SET;
    const uint64_t bytes =
        c.operation == QN_LARGE_SCATTER ? n->run->members * c.bytes : c.bytes;
    for (uint64_t i = 0; i < bytes; i++) {
        in[i] = content(n->rank, k, i);
    }
    if (is_silent(&c, n->rank, k)) {
        c.in = NULL;
    }
    if (n->rank == n->run->slow) {
        for (uint32_t i = 0; i < 20; i++) {
            memset(n->memory + (2 + k % 2) * LARGE_SET, (int)i, LARGE_SET);
        }
    }
    if (c.entry == QN_LARGE_NONE) { /* all must be there before */
        const struct qn_large_call meet = {.operation = QN_LARGE_BROADCAST,
                                           .entry = QN_LARGE_ALL,
                                           .exit = QN_LARGE_OWN};
        const int rc = qn_large_run(l, &meet);
        if (rc != QN_OK) {
            return rc;
        }
    }
    const int rc = qn_large_run(l, &c);
    return rc != QN_OK ? rc : is_right(n, &c, k) ? QN_OK : QN_EIO;
}

int large_member_init(struct large_member *n, struct qn_large *l,
                      struct qn_alloc *work)
{
    *work = (struct qn_alloc){resize, n->memory + 4 * LARGE_SET};
    const struct qn_large_opts o = {.members = n->run->members,
                                    .rank = n->rank,
                                    .lines = n->lines,
                                    .arenas = n->arenas,
                                    .work = n->arenas != NULL ? work : NULL,
                                    .threshold = 5000,
                                    .push = n->run->push,
                                    .backoff = {.yields = 2}};
    return qn_large_init(l, &o);
}

void *large_member_run(void *arg)
{
    struct large_member *n = arg;
    struct qn_large *l = malloc(sizeof *l);
    QN_ASSERT(l != NULL);
    n->rc = large_member_init(n, l, &n->work);
    for (uint32_t k = 0; n->rc == QN_OK && k < n->run->operations; k++) {
        if (n->rank == n->run->victim && k == n->run->ends_at) {
            qn_large_down(n->lines, n->rank); /* as a supervisor would */
            break;
        }
        n->rc = operate(n, l, k);
        n->done += n->rc == QN_OK;
    }
    if (n->rc == QN_EIO) { /* a wrong result ends the run of all */
        qn_large_down(n->lines, n->rank);
    }
    if (n->rc != QN_EIO && n->rank != n->run->victim) {
        n->rc = qn_large_settle(l);
        qn_large_fini(l);
        memset(n->memory, 0xee, LARGE_ARENA); /* no member reads it any more */
    }
    n->large = l;
    return NULL;
}

void large_member_end(struct large_member *n)
{
    qn_large_fini(n->large);
    free(n->large);
}
