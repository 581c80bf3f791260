#include "loadgen/client/timer_heap.h"

#include "core/base/assert.h"
#include "core/base/err.h"

#include <stdlib.h>

/*
 * Why a heap: each client of an open loop has its own schedule, so that its
 * requests do not depend on other clients, and a thread may have thousands of
 * clients. libuv's timers are a heap, too, but have a resolution of
 * milliseconds.
 */

int qn_timer_heap_init(struct qn_timer_heap *a, uint32_t size)
{
    *a = (struct qn_timer_heap){
        .heap = calloc(size, sizeof *a->heap),
        .spot = calloc(size, sizeof *a->spot),
        .at = calloc(size, sizeof *a->at),
    };
    if (a->heap == NULL || a->spot == NULL || a->at == NULL) {
        qn_timer_heap_fini(a);
        return QN_ENOMEM;
    }
    return QN_OK;
}

void qn_timer_heap_fini(struct qn_timer_heap *a)
{
    free(a->heap);
    free(a->spot);
    free(a->at);
    *a = (struct qn_timer_heap){0};
}

static void put(struct qn_timer_heap *a, uint32_t i, uint32_t member)
{
    a->heap[i] = member;
    a->spot[member] = i + 1;
}

/* Move a member from position `i` up or down to its place. */
static void settle(struct qn_timer_heap *a, uint32_t i, uint32_t member)
{
    qn_time_t at = a->at[member];
    for (uint32_t up; i > 0 && at < a->at[a->heap[up = (i - 1) / 2]]; i = up) {
        put(a, i, a->heap[up]);
    }
    for (;;) {
        uint32_t down = 2 * i + 1;
        if (down + 1 < a->count &&
            a->at[a->heap[down + 1]] < a->at[a->heap[down]]) {
            down++;
        }
        if (down >= a->count || at <= a->at[a->heap[down]]) {
            break;
        }
        put(a, i, a->heap[down]);
        i = down;
    }
    put(a, i, member);
}

static void take_off(struct qn_timer_heap *a, uint32_t member)
{
    uint32_t i = a->spot[member] - 1;
    uint32_t last = a->heap[--a->count];
    a->spot[member] = 0;
    if (last != member) {
        settle(a, i, last);
    }
}

void qn_timer_heap_set(struct qn_timer_heap *a, uint32_t member, qn_time_t at)
{
    if (at == QN_TIME_NEVER) {
        if (a->spot[member] != 0) {
            take_off(a, member);
        }
        return;
    }
    a->at[member] = at;
    if (a->spot[member] == 0) {
        a->count++;
        settle(a, a->count - 1, member);
    } else {
        settle(a, a->spot[member] - 1, member);
    }
}

uint32_t qn_timer_heap_pop(struct qn_timer_heap *a)
{
    QN_ASSERT(a->count > 0);
    uint32_t member = a->heap[0];
    take_off(a, member);
    return member;
}
