/*
 * Collections by name, and what those made of delegates share.
 *
 * The memory begins with a line that says which type it is, so that each
 * process that opens it finds out.
 */
#include "core/sync/object/collection.h"

#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sync/object/collection_internal.h"
#include "core/sync/object/lcrq.h"
#include "core/sync/object/list_stack.h"
#include "core/sync/object/ms_queue.h"
#include "core/sync/object/treiber.h"

struct collection_head {
    alignas(QN_CACHELINE) uint32_t says; /* qn_sync_says, of the list */
};

const struct qn_collection_type *const qn_collection_types[] = {
    &qn_lcrq,       &qn_lcrq32,     &qn_lcrq_numa, &qn_ms_queue_1,
    &qn_ms_queue_2, &qn_list_stack, &qn_treiber,   NULL};

static const uint32_t types = QN_ARRAY_COUNT(qn_collection_types) - 1;

const struct qn_collection_type *qn_collection_find(const char *name)
{
    for (uint32_t i = 0; i < types; i++) {
        if (strcmp(qn_collection_types[i]->name, name) == 0) {
            return qn_collection_types[i];
        }
    }
    return NULL;
}

size_t qn_collection_bytes(const struct qn_collection_opts *o)
{
    if (o->type == NULL || o->clients == 0 ||
        o->clients > QN_SYNC_CLIENTS_MAX || o->capacity == 0 ||
        o->capacity > QN_CAPACITY_MAX) {
        return 0;
    }
    size_t bytes = o->type->bytes(o);
    return bytes == 0 ? 0
                      : qn_align_up(sizeof(struct collection_head) + bytes,
                                    QN_CACHELINE);
}

int qn_collection_format(void *memory, const struct qn_collection_opts *o)
{
    struct collection_head *head = memory;
    if (qn_collection_bytes(o) == 0) {
        return QN_EINVAL;
    }
    for (uint32_t i = 0; i < types; i++) {
        if (qn_collection_types[i] == o->type) {
            head->says = qn_sync_says(i);
        }
    }
    return o->type->format(head + 1, o);
}

int qn_collection_open(struct qn_collection *q, void *memory)
{
    struct collection_head *head = memory;
    uint32_t number = 0;
    while (number < types && head->says != qn_sync_says(number)) {
        number++;
    }
    if (number == types) {
        return QN_EINVAL;
    }
    q->type = qn_collection_types[number];
    q->memory = head + 1;
    return q->type->open == NULL ? QN_OK : q->type->open(q);
}

int qn_collection_join(const struct qn_collection *q,
                       struct qn_collection_client *c,
                       const struct qn_collection_join_opts *o)
{
    static const struct qn_collection_join_opts none;
    c->type = q->type;
    c->q = q;
    return q->type->join(c, o != NULL ? o : &none);
}

void qn_collection_leave(struct qn_collection_client *c)
{
    c->type->leave(c);
}

const struct qn_delegate *qn_collection_delegate_at(
    const struct qn_collection *q, uint32_t i)
{
    return i < q->type->delegates ? &q->end[i] : NULL;
}

struct qn_delegate_stats qn_collection_stats_of(
    const struct qn_collection_client *c)
{
    struct qn_delegate_stats sum = {0};
    if (c->type->stats != NULL) {
        return c->type->stats(c);
    }
    for (uint32_t i = 0; i < c->type->delegates; i++) {
        struct qn_delegate_stats s =
            qn_delegate_stats_of(&c->q->end[i], &c->of.end[i]);
        qn_delegate_stats_add(&sum, &s);
    }
    return sum;
}

struct qn_delegate_opts qn_collection_delegate(
    const struct qn_collection_opts *o)
{
    struct qn_delegate_opts d = {0};
    if (o->delegate != NULL) {
        d = *o->delegate;
    }
    if (d.type == NULL) {
        d.type = qn_delegate_find("cc_synch");
    }
    d.clients = o->clients;
    return d;
}

int qn_collection_delegates_format(void *memory, uint32_t count,
                                   const struct qn_collection_opts *o)
{
    struct qn_delegate_opts d = qn_collection_delegate(o);
    for (uint32_t i = 0; i < count; i++) {
        int err =
            qn_delegate_format((char *)memory + i * qn_delegate_bytes(&d), &d);
        if (err != QN_OK) {
            return err;
        }
    }
    return QN_OK;
}

int qn_collection_delegates_open(struct qn_collection *q, void *memory,
                                 size_t each, uint32_t count,
                                 qn_delegate_fn *run, void *ctx)
{
    for (uint32_t i = 0; i < count; i++) {
        int err =
            qn_delegate_open(&q->end[i], (char *)memory + i * each, run, ctx);
        if (err != QN_OK) {
            return err;
        }
    }
    return QN_OK;
}

int qn_collection_delegates_join(struct qn_collection_client *c, uint32_t count,
                                 const struct qn_collection_join_opts *o)
{
    struct qn_delegate_join_opts join = {.domain = o->domain, .port = o->port};
    for (uint32_t i = 0; i < count; i++) {
        int err = qn_delegate_join(&c->q->end[i], &c->of.end[i], &join);
        if (err != QN_OK) {
            qn_collection_delegates_leave(c, i);
            return err;
        }
    }
    return QN_OK;
}

void qn_collection_delegates_leave(struct qn_collection_client *c,
                                   uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        qn_delegate_leave(&c->q->end[i], &c->of.end[i]);
    }
}

int qn_collection_call(struct qn_collection_client *c, uint32_t end,
                       uint32_t op, uint64_t arg, uint64_t *result)
{
    int err = qn_delegate(&c->q->end[end], &c->of.end[end], op, arg, result);
    return err == QN_OK && *result == QN_NOTHING ? QN_EAGAIN : err;
}
