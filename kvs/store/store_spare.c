#include "kvs/store/store_spare.h"

#include <string.h>

#include "core/base/assert.h"

static uint32_t place_of(uint64_t bytes)
{
    return (uint32_t)(bytes / 16 % QN_SPARE_SIZES);
}

static void *pop(struct qn_spares *s, uint32_t i)
{
    void *block = s->size[i].first;
    if (block != NULL) {
        memcpy(&s->size[i].first, block, sizeof(void *));
        __builtin_prefetch(s->size[i].first, 1); /* it is cold, and next */
        s->kept -= s->size[i].bytes;
    }
    return block;
}

void *qn_spares_take(struct qn_spares *s, uint64_t bytes)
{
    uint32_t i = place_of(bytes);
    if (s->size[i].bytes != bytes) {
        return NULL;
    }
    s->size[i].wanted = true;
    return pop(s, i);
}

bool qn_spares_keep(struct qn_spares *s, void *block, uint64_t bytes)
{
    uint32_t i = place_of(bytes);
    QN_DASSERT(bytes >= sizeof(void *) && bytes % 16 == 0);
    if (s->size[i].first == NULL) {
        s->size[i].bytes = bytes;
    }
    if (s->size[i].bytes != bytes || s->max - s->kept < bytes) {
        return false;
    }
    memcpy(block, &s->size[i].first, sizeof(void *));
    s->size[i].first = block;
    s->kept += bytes;
    return true;
}

void *qn_spares_old(struct qn_spares *s)
{
    uint32_t i = s->at;
    void *block = s->size[i].wanted ? NULL : pop(s, i);
    if (block == NULL) {
        s->size[i].wanted = false;
        s->at = (i + 1) % QN_SPARE_SIZES;
    }
    return block;
}

void *qn_spares_any(struct qn_spares *s)
{
    for (uint32_t i = 0; i < QN_SPARE_SIZES; i++) {
        void *block = pop(s, i);
        if (block != NULL) {
            return block;
        }
    }
    return NULL;
}
