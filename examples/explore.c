/*
 * A lock-free queue under every schedule: how to explore code of one's own.
 *
 * The queue is bounded, for any number of producers and consumers (the form is
 * Vyukov's: each cell has a turn that says whose it is). Its shared variables
 * are touched through core/base/atomic.h only; that is all that the explorer
 * needs. The program explores it as it should be, and then with two defects.
 * One claims a cell without compare-and-swap: it takes a switch at the wrong
 * moment, whose choices are printed, and repeat it. The other publishes a value
 * without release: on x86 that changes nothing, and the exploration with x86's
 * memory finds nothing; in the memory of C11 it is a data race.
 *
 *     build/release/examples/explore
 */
#include <stdio.h>
#include <string.h>

#include "core/base/atomic.h"
#include "core/sim/explore/explore.h"

/* ---- the queue ---- */

#define CELLS 2u

enum defect { NONE, CARELESS, RELAXED };

struct queue {
    enum defect defect;
    alignas(QN_CACHELINE) qn_a32 head; /* next position to pop */
    alignas(QN_CACHELINE) qn_a32 tail; /* next position to push */
    struct cell {
        qn_a32 turn; /* position: free for it; position + 1: its value is in */
        uint64_t value;
    } cell[CELLS];
};

static void queue_init(struct queue *q, enum defect defect)
{
    memset(q, 0, sizeof *q);
    q->defect = defect;
    for (uint32_t i = 0; i < CELLS; i++) {
        qn_store(&q->cell[i].turn, i, QN_RELAXED);
    }
}

/* Take the position for which the cell's turn is `ahead` of it. @return false:
 * full, or empty. */
static bool claim(struct queue *q, qn_a32 *end, uint32_t ahead, uint32_t *at)
{
    *at = qn_load(end, QN_RELAXED);
    for (;;) {
        /* acquire -> the release of the other side in push or pop: its use of
         * the value is over. */
        uint32_t turn = qn_load(&q->cell[*at % CELLS].turn, QN_ACQUIRE);
        int32_t early = (int32_t)(turn - (*at + ahead));
        if (early < 0) {
            return false;
        }
        if (early > 0) {
            *at = qn_load(end, QN_RELAXED); /* another one has it */
        } else if (q->defect == CARELESS) {
            (void)qn_exchange(end, *at + 1, QN_RELAXED);
            return true;
        } else if (qn_cas(end, at, *at + 1, QN_RELAXED)) {
            return true;
        }
    }
}

static bool queue_push(struct queue *q, uint64_t value)
{
    uint32_t at;
    if (!claim(q, &q->tail, 0, &at)) {
        return false;
    }
    struct cell *c = &q->cell[at % CELLS];
    qn_copy_out(&c->value, &value, sizeof value);
    qn_store(&c->turn, at + 1, q->defect == RELAXED ? QN_RELAXED : QN_RELEASE);
    return true;
}

static bool queue_pop(struct queue *q, uint64_t *value)
{
    uint32_t at;
    if (!claim(q, &q->head, 1, &at)) {
        return false;
    }
    struct cell *c = &q->cell[at % CELLS];
    qn_copy_in(value, &c->value, sizeof *value);
    qn_store(&c->turn, at + CELLS, QN_RELEASE);
    return true;
}

/* ---- a small program that uses it ---- */

#define PUSHES 2u /* of each of two producers */

struct program {
    struct queue queue;
    enum defect defect;
    uint32_t popped[2]; /* of each producer */
};

static void setup(void *ctx)
{
    struct program *p = ctx;
    queue_init(&p->queue, p->defect);
    memset(p->popped, 0, sizeof p->popped);
}

static void produce(struct program *p, uint64_t producer)
{
    for (uint64_t n = 1; n <= PUSHES; n++) {
        while (!queue_push(&p->queue, producer << 32 | n)) {
            qn_pause();
        }
    }
}

static void producer_0(void *ctx)
{
    produce(ctx, 0);
}

static void producer_1(void *ctx)
{
    produce(ctx, 1);
}

static void consumer(void *ctx)
{
    struct program *p = ctx;
    for (uint32_t n = 0; n < 2 * PUSHES; n++) {
        uint64_t value;
        while (!queue_pop(&p->queue, &value)) {
            qn_pause();
        }
        if ((uint32_t)value != ++p->popped[value >> 32 & 1]) {
            qn_sim_fail("a value lost, doubled or out of order");
        }
    }
}

static const char *all_popped(void *ctx)
{
    const struct program *p = ctx;
    return p->popped[0] + p->popped[1] == 2 * PUSHES ? NULL : "values are left";
}

/* ---- exploring it ---- */

static const char *const name[] = {"as it should be", "careless", "relaxed"};

/* @return a fault was found, and found again by its choices. */
static bool finds(enum qn_explore_memory memory, enum defect defect)
{
    struct program p = {.defect = defect};
    struct qn_explored out;
    struct qn_explored again;
    const struct qn_explore_opts o = {
        .nodes = 3,
        .node = {producer_0, producer_1, consumer},
        .setup = setup,
        .check = all_popped,
        .ctx = &p,
        .memory = memory,
        .deviations = 2,
        .steps_max = 1000};
    bool clean = qn_explore(&o, &out);
    printf("%s, %s: %llu runs, %s\n", memory == QN_EXPLORE_C11 ? "C11" : "x86",
           name[defect], (unsigned long long)out.runs,
           clean ? "no fault" : out.fault);
    if (clean) {
        return false;
    }
    bool repeats = !qn_explore_replay(&o, out.choices, &again) &&
                   strcmp(again.fault, out.fault) == 0;
    printf("  choices: %s; replayed: %s\n",
           out.choices[0] == 0 ? "all by default" : out.choices,
           repeats ? "the same fault" : "another end");
    return repeats;
}

int main(void)
{
    bool good = !finds(QN_EXPLORE_TSO, NONE) && !finds(QN_EXPLORE_C11, NONE);
    good = finds(QN_EXPLORE_TSO, CARELESS) && good;
    good = finds(QN_EXPLORE_C11, CARELESS) && good;
    good = !finds(QN_EXPLORE_TSO, RELAXED) && good;
    good = finds(QN_EXPLORE_C11, RELAXED) && good;
    return good ? 0 : 1;
}
