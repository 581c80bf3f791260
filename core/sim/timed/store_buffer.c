/* See store_buffer.h. The entries of a node are a ring: the next one to be used
 * is the oldest. */
#include "core/sim/timed/store_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

int qn_store_buffer_init(struct qn_store_buffer *b, uint32_t nodes,
                         uint32_t entries)
{
    QN_ASSERT(nodes > 0 && entries <= QN_STORE_BUFFER_MAX);
    *b = (struct qn_store_buffer){.entries = entries};
    if (entries == 0) {
        return QN_OK;
    }
    b->end = calloc((size_t)nodes * entries, sizeof *b->end);
    b->next = calloc(nodes, sizeof *b->next);
    b->drained = calloc(nodes, sizeof *b->drained);
    return b->end == NULL || b->next == NULL || b->drained == NULL ? QN_ENOMEM
                                                                   : QN_OK;
}

void qn_store_buffer_fini(struct qn_store_buffer *b)
{
    free(b->end);
    free(b->next);
    free(b->drained);
    *b = (struct qn_store_buffer){0};
}

void qn_store_buffer_clear(struct qn_store_buffer *b, uint32_t nodes)
{
    if (b->entries > 0) {
        memset(b->end, 0, (size_t)nodes * b->entries * sizeof *b->end);
        memset(b->next, 0, nodes * sizeof *b->next);
        memset(b->drained, 0, nodes * sizeof *b->drained);
    }
}

qn_ps_t qn_store_buffer_enter(const struct qn_store_buffer *b, uint32_t node,
                              qn_ps_t now)
{
    return QN_MAX(now, b->end[(size_t)node * b->entries + b->next[node]]);
}

qn_ps_t qn_store_buffer_drained(const struct qn_store_buffer *b, uint32_t node,
                                qn_ps_t now)
{
    return b->entries == 0 ? now : QN_MAX(now, b->drained[node]);
}

void qn_store_buffer_put(struct qn_store_buffer *b, uint32_t node, qn_ps_t end)
{
    QN_DASSERT(end >= b->drained[node]);
    b->end[(size_t)node * b->entries + b->next[node]] = end;
    b->next[node] = (b->next[node] + 1) % b->entries;
    b->drained[node] = end;
}

void qn_store_buffer_extend(struct qn_store_buffer *b, uint32_t node,
                            qn_ps_t end)
{
    uint32_t newest = (b->next[node] + b->entries - 1) % b->entries;
    QN_DASSERT(end >= b->drained[node]);
    b->end[(size_t)node * b->entries + newest] = end;
    b->drained[node] = end;
}
