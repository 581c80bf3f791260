/*
 * Objects by the name of their backend.
 *
 * The memory of an object begins with a head that says what the object is, so
 * that a process which only has the memory can open it: names of the backend
 * and of the lock, sizes, and the version of all of that.
 * Only `format` writes it; each handle has a copy. Behind it lies what the
 * backend needs.
 */
#include <assert.h>

#include "core/sync/delegate/delegate.h"

#include <string.h>

#include "core/base/bits.h"
#include "core/sync/clients.h"
#include "core/sync/delegate/backend.h"
#include "core/sync/delegate/backends.h"

#define NAME_BYTES 16u

struct head {
    alignas(QN_CACHELINE) char type[NAME_BYTES]; /* zero at the end */
    char lock[NAME_BYTES];
    uint32_t version, clients, batch, change_every;
    uint16_t domains;
    bool own_cores, only_operations_use_data;
    struct qn_server_opts server;
};

static_assert(sizeof(struct head) == QN_CACHELINE, "in front of the backend's");

const struct qn_delegate_type *const qn_delegate_types[] = {
    &qn_delegate_under_lock,
    &qn_delegate_cc_synch,
    &qn_delegate_h_synch,
    &qn_delegate_auto,
    NULL,
};

const struct qn_delegate_type *const qn_delegate_served_types[] = {
    &qn_delegate_shm_server,
    NULL,
};

const struct qn_delegate_type *const qn_delegate_words_types[] = {
    &qn_delegate_hyb_comb,
    &qn_delegate_mp_server,
    NULL,
};

static const struct qn_delegate_type *find_among(
    const struct qn_delegate_type *const *t, const char *name)
{
    while (*t != NULL && strcmp((*t)->name, name) != 0) {
        t++;
    }
    return *t;
}

const struct qn_delegate_type *qn_delegate_find(const char *name)
{
    const struct qn_delegate_type *t = find_among(qn_delegate_types, name);
    t = t != NULL ? t : find_among(qn_delegate_served_types, name);
    return t != NULL ? t : find_among(qn_delegate_words_types, name);
}

/* The options with a value for each that may be left out. @return are they in
 * range? */
static bool complete(const struct qn_delegate_opts *o,
                     struct qn_delegate_opts *out)
{
    *out = *o;
    out->batch = o->batch != 0 ? o->batch : QN_DELEGATE_BATCH;
    if (o->type == NULL || o->clients < 1 || o->clients > QN_SYNC_CLIENTS_MAX ||
        o->domains > QN_DELEGATE_DOMAINS) {
        return false;
    }
    out->domains = o->type->domains && o->domains != 0 ? o->domains : 1;
    if (o->type->lock == NULL) {
        out->lock = NULL;
    } else if (o->lock == NULL) {
        out->lock = qn_lock_find(o->type->lock);
    }
    return true;
}

size_t qn_delegate_bytes(const struct qn_delegate_opts *o)
{
    struct qn_delegate_opts all;
    size_t bytes = complete(o, &all) ? all.type->bytes(&all) : 0;
    return bytes != 0 ? sizeof(struct head) + qn_align_up(bytes, QN_CACHELINE)
                      : 0;
}

static void *behind(void *memory)
{
    return (char *)memory + sizeof(struct head);
}

int qn_delegate_format(void *memory, const struct qn_delegate_opts *o)
{
    struct qn_delegate_opts all;
    if (qn_delegate_bytes(o) == 0) {
        return QN_EINVAL;
    }
    (void)complete(o, &all);
    struct head head = {.version = QN_SYNC_VERSION,
                        .clients = all.clients,
                        .batch = all.batch,
                        .domains = (uint16_t)all.domains,
                        .change_every = all.change_every,
                        .server = all.server,
                        .own_cores = all.own_cores,
                        .only_operations_use_data =
                            all.only_operations_use_data};
    QN_ASSERT(strlen(all.type->name) < NAME_BYTES);
    strcpy(head.type, all.type->name);
    if (all.lock != NULL) {
        QN_ASSERT(strlen(all.lock->name) < NAME_BYTES);
        strcpy(head.lock, all.lock->name);
    }
    /* Published by the caller, as all that `format` writes. */
    qn_copy_out(memory, &head, sizeof head);
    return all.type->format(behind(memory), &all);
}

/* A part is of the type, and of the size, that its object has room for. */
static bool is_part(const struct qn_delegate_opts *o,
                    const struct qn_delegate_opts *part)
{
    return o->type == part->type && o->clients == part->clients &&
           qn_delegate_bytes(o) == qn_delegate_bytes(part);
}

int qn_backend_open(struct qn_backend *b, void *memory,
                    const struct qn_delegate_opts *part, qn_delegate_fn *run,
                    void *ctx)
{
    struct head head;
    qn_copy_in(&head, memory, sizeof head);
    if (head.version != QN_SYNC_VERSION) {
        return QN_EINVAL; /* the rest may be anything */
    }
    head.type[NAME_BYTES - 1] = head.lock[NAME_BYTES - 1] = '\0';
    const struct qn_delegate_opts o = {.type = qn_delegate_find(head.type),
                                       .clients = head.clients,
                                       .batch = head.batch,
                                       .domains = head.domains,
                                       .lock = qn_lock_find(head.lock),
                                       .change_every = head.change_every,
                                       .server = head.server,
                                       .own_cores = head.own_cores,
                                       .only_operations_use_data =
                                           head.only_operations_use_data};
    if (o.type == NULL || (o.type->lock != NULL && o.lock == NULL) ||
        qn_delegate_bytes(&o) == 0 || (part != NULL && !is_part(&o, part))) {
        return QN_EINVAL;
    }
    *b = (struct qn_backend){.type = o.type,
                             .o = o,
                             .memory = behind(memory),
                             .run = run,
                             .ctx = ctx};
    return o.type->open != NULL ? o.type->open(b) : QN_OK;
}

int qn_delegate_open(struct qn_delegate *d, void *memory, qn_delegate_fn *run,
                     void *ctx)
{
    *d = (struct qn_delegate){0};
    return qn_backend_open(&d->at[0], memory, NULL, run, ctx);
}

int qn_delegate_join(const struct qn_delegate *d, struct qn_delegate_client *c,
                     const struct qn_delegate_join_opts *o)
{
    const struct qn_delegate_join_opts none = {0};
    const struct qn_delegate_join_opts *how = o != NULL ? o : &none;
    if (d->at[0].type->domains && how->domain >= d->at[0].o.domains) {
        return QN_EINVAL;
    }
    *c = (struct qn_delegate_client){0};
    return d->at[0].type->join(&d->at[0], &c->at[0], how);
}

void qn_delegate_leave(const struct qn_delegate *d,
                       struct qn_delegate_client *c)
{
    QN_ASSERT(!c->inside);
    d->at[0].type->leave(&d->at[0], &c->at[0]);
}

void qn_delegate_stats_add(struct qn_delegate_stats *sum,
                           const struct qn_delegate_stats *s)
{
    sum->operations += s->operations;
    sum->batches += s->batches;
    sum->served += s->served;
    sum->cas += s->cas;
    sum->cas_failed += s->cas_failed;
    sum->elsewhere += s->elsewhere;
    sum->changes += s->changes;
    sum->waits.parks += s->waits.parks;
    sum->waits.wakes += s->waits.wakes;
    sum->waits.yields += s->waits.yields;
}

void qn_backend_stats(const struct qn_backend *b,
                      const struct qn_backend_client *c,
                      struct qn_delegate_stats *out)
{
    /* All zero where the backend takes no lock. */
    const struct qn_delegate_stats lock = {.cas = c->lock.stats.cas,
                                           .cas_failed =
                                               c->lock.stats.cas_failed,
                                           .waits = c->lock.stats.waits};
    qn_delegate_stats_add(out, &c->stats);
    qn_delegate_stats_add(out, &lock);
    if (b->type->stats != NULL) {
        b->type->stats(b, c, out);
    }
}

struct qn_delegate_stats qn_delegate_stats_of(
    const struct qn_delegate *d, const struct qn_delegate_client *c)
{
    struct qn_delegate_stats s = {0};
    qn_backend_stats(&d->at[0], &c->at[0], &s);
    return s;
}
