#include "core/sim/timed/time_queue.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/err.h"

int qn_time_queue_init(struct qn_time_queue *q, uint32_t nodes, uint64_t seed)
{
    *q = (struct qn_time_queue){
        .heap = calloc(nodes, sizeof *q->heap),
        .at = calloc(nodes, sizeof *q->at),
        .time = calloc(nodes, sizeof *q->time),
        .tie = calloc(nodes, sizeof *q->tie),
        .seed = seed,
    };
    if (q->heap == NULL || q->at == NULL || q->time == NULL || q->tie == NULL) {
        qn_time_queue_fini(q);
        return QN_ENOMEM;
    }
    for (uint32_t i = 0; i < nodes; i++) {
        q->at[i] = QN_SIM_NO_NODE;
    }
    return QN_OK;
}

void qn_time_queue_fini(struct qn_time_queue *q)
{
    free(q->heap);
    free(q->at);
    free(q->time);
    free(q->tie);
    *q = (struct qn_time_queue){0};
}

static uint64_t tie_of(const struct qn_time_queue *q, uint32_t node,
                       qn_ps_t time)
{
    return qn_time_queue_mix(q->seed ^ time * UINT64_C(0x9e3779b97f4a7c15) ^
                             node);
}

static bool before(const struct qn_time_queue *q, uint32_t a, uint32_t b)
{
    return q->time[a] != q->time[b] ? q->time[a] < q->time[b]
           : q->tie[a] != q->tie[b] ? q->tie[a] < q->tie[b]
                                    : a < b;
}

static void put(struct qn_time_queue *q, uint32_t place, uint32_t node)
{
    q->heap[place] = node;
    q->at[node] = place;
}

static void up(struct qn_time_queue *q, uint32_t place)
{
    uint32_t node = q->heap[place];
    while (place > 0 && before(q, node, q->heap[(place - 1) / 2])) {
        put(q, place, q->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put(q, place, node);
}

static void down(struct qn_time_queue *q, uint32_t place)
{
    uint32_t node = q->heap[place];
    for (;;) {
        uint32_t child = 2 * place + 1;
        if (child + 1 < q->count &&
            before(q, q->heap[child + 1], q->heap[child])) {
            child++;
        }
        if (child >= q->count || !before(q, q->heap[child], node)) {
            break;
        }
        put(q, place, q->heap[child]);
        place = child;
    }
    put(q, place, node);
}

void qn_time_queue_set(struct qn_time_queue *q, uint32_t node, qn_ps_t time)
{
    if (q->at[node] == QN_SIM_NO_NODE) {
        put(q, q->count++, node);
    }
    q->time[node] = time;
    q->tie[node] = tie_of(q, node, time);
    up(q, q->at[node]);
    down(q, q->at[node]);
}

void qn_time_queue_remove(struct qn_time_queue *q, uint32_t node)
{
    uint32_t place = q->at[node];
    if (place == QN_SIM_NO_NODE) {
        return;
    }
    q->at[node] = QN_SIM_NO_NODE;
    uint32_t last = q->heap[--q->count];
    if (last != node) {
        put(q, place, last);
        up(q, place);
        down(q, q->at[last]);
    }
}

uint32_t qn_time_queue_pop(struct qn_time_queue *q)
{
    if (q->count == 0) {
        return QN_SIM_NO_NODE;
    }
    uint32_t node = q->heap[0];
    qn_time_queue_remove(q, node);
    return node;
}

bool qn_time_queue_first(const struct qn_time_queue *q, uint32_t node,
                         qn_ps_t time)
{
    if (q->count == 0 || time < q->time[q->heap[0]]) {
        return true;
    }
    if (time > q->time[q->heap[0]]) {
        return false;
    }
    uint64_t tie = tie_of(q, node, time);
    uint64_t other = q->tie[q->heap[0]];
    return tie != other ? tie < other : node < q->heap[0];
}
