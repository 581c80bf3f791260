/*
 * Descriptors of outboxes, by the name of their incarnation. There are about as
 * many as replicas, and they are looked for when a process begins or ends, so a
 * list that is searched is enough.
 */
#include <unistd.h>

#include "core/base/assert.h"
#include "kvs/supervisor/supervisor_internal.h"

/* @return its index; count: there is none. */
static uint32_t index_of(const struct qn_outboxes *o,
                         struct qn_outbox_name name)
{
    uint32_t i = 0;
    while (i < o->count && (o->entry[i].name.node != name.node ||
                            o->entry[i].name.incarnation != name.incarnation)) {
        i++;
    }
    return i;
}

void qn_outboxes_keep(struct qn_outboxes *o, struct qn_outbox_name name, int fd)
{
    QN_ASSERT(fd >= 0);
    QN_ASSERT(name.incarnation != 0);
    QN_ASSERT(index_of(o, name) == o->count);
    QN_ASSERT(o->count < QN_OUTBOXES_MAX);
    o->entry[o->count].name = name;
    o->entry[o->count].fd = fd;
    o->count++;
}

void qn_outboxes_drop(struct qn_outboxes *o, struct qn_outbox_name name)
{
    const uint32_t i = index_of(o, name);
    QN_ASSERT(i < o->count);
    close(o->entry[i].fd);
    o->entry[i] = o->entry[--o->count];
    QN_ASSERT(index_of(o, name) == o->count);
}

int qn_outboxes_find(const struct qn_outboxes *o, struct qn_outbox_name name)
{
    const uint32_t i = index_of(o, name);
    QN_ASSERT(i < o->count);
    return o->entry[i].fd;
}

void qn_outboxes_close(struct qn_outboxes *o)
{
    for (uint32_t i = 0; i < o->count; i++) {
        close(o->entry[i].fd);
    }
    o->count = 0;
}
