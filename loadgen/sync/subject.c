#include "loadgen/sync/subject.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/sync/port.h"

#define SLEEP_NS (50 * QN_US)

/* Ports beside those of clients: of two servers, for the ends of a queue each,
 * and of one client too many. */
#define PORTS_MORE 5u

const struct qn_subject_type *const qn_subject_types[] = {
    &qn_subject_plain,       &qn_subject_mutex_count,
    &qn_subject_mutex_queue, &qn_subject_mutex_stack,
    &qn_subject_lock,        &qn_subject_delegation,
    &qn_subject_counter,     &qn_subject_queue,
    &qn_subject_stack,       NULL,
};

bool qn_subject_find(const char *family, const char *name,
                     enum qn_subject_kind kind, struct qn_subject_name *out)
{
    for (uint32_t t = 0; qn_subject_types[t] != NULL; t++) {
        const struct qn_subject_type *type = qn_subject_types[t];
        const char *has;
        if (type->kind != kind ||
            (family != NULL && strcmp(family, type->family) != 0)) {
            continue;
        }
        for (uint32_t i = 0; (has = type->name(i)) != NULL; i++) {
            if (strcmp(has, name) == 0) {
                *out = (struct qn_subject_name){type, has};
                return true;
            }
        }
    }
    return false;
}

static void free_subject(struct qn_subject *s)
{
    qn_ports_destroy(s->ports);
    free(s->memory);
    free(s->handle);
    free(s);
}

/* May combiners be sent all that they may be sent? A collection has two. */
static bool fits_shared(enum qn_subject_kind kind,
                        const struct qn_subject_opts *o)
{
    const uint32_t ends = kind == QN_SUBJECT_COUNTER ? 1 : 2;
    const uint32_t batch = o->batch != 0 ? o->batch : QN_DELEGATE_BATCH;
    return ends * QN_SYNC_WORDS * QN_MIN(o->clients - 1, batch) <=
           QN_WORDS_SHARED_MAX;
}

int qn_subject_create(struct qn_subject **s, const struct qn_subject_name *n,
                      const struct qn_subject_opts *o)
{
    struct qn_subject *made = qn_subject_memory(sizeof *made);
    if (made == NULL) {
        return QN_ENOMEM;
    }
    made->type = n->type;
    made->name = n->name;
    made->o = *o;
    int rc = QN_OK;
    if (n->type->words != NULL && n->type->words(made)) {
        rc = qn_ports_create(&made->ports, o->clients + PORTS_MORE,
                             o->split || !fits_shared(n->type->kind, o));
    }
    rc = rc == QN_OK ? n->type->create(made) : rc;
    if (rc == QN_OK) {
        *s = made;
    } else {
        free_subject(made);
    }
    return rc;
}

void qn_subject_destroy(struct qn_subject *s)
{
    if (s != NULL) {
        if (s->type->destroy != NULL) {
            s->type->destroy(s);
        }
        free_subject(s);
    }
}

int qn_subject_join(struct qn_subject *s, struct qn_subject_client *c)
{
    c->port = NULL;
    if (s->ports != NULL) {
        c->port = qn_ports_take(s->ports);
        if (c->port == NULL) {
            return QN_EAGAIN;
        }
    }
    const int rc = s->type->join(s, c);
    if (rc != QN_OK && c->port != NULL) {
        qn_ports_give(s->ports, c->port);
    }
    return rc;
}

void qn_subject_leave(struct qn_subject *s, struct qn_subject_client *c)
{
    s->type->leave(s, c);
    if (c->port != NULL) {
        qn_ports_give(s->ports, c->port);
    }
}

uint64_t qn_subject_work(struct qn_subject *s)
{
    const uint64_t was = s->data.count;
    for (uint32_t i = 0; i < s->o.increments; i++) {
        s->data.integer[(was + i) % QN_SUBJECT_INTEGERS]++;
    }
    /* In the middle: an addition beside this one is lost. */
    if (s->o.sleep_every != 0 && was % s->o.sleep_every == 0) {
        const struct timespec pause = {.tv_nsec = SLEEP_NS};
        (void)nanosleep(&pause, NULL);
    }
    s->data.count = was + 1;
    return was;
}

void *qn_subject_memory(size_t bytes)
{
    const size_t lines = (bytes + QN_CACHELINE - 1) / QN_CACHELINE;
    void *p = aligned_alloc(QN_CACHELINE, QN_MAX(lines, 1u) * QN_CACHELINE);
    if (p != NULL) {
        memset(p, 0, QN_MAX(lines, 1u) * QN_CACHELINE);
    }
    return p;
}

const struct qn_delegate_type *qn_subject_backend(uint32_t i)
{
    const struct qn_delegate_type *const *const lists[] = {
        qn_delegate_types, qn_delegate_served_types, qn_delegate_words_types};
    for (uint32_t k = 0; k < QN_ARRAY_COUNT(lists); k++) {
        for (uint32_t n = 0; lists[k][n] != NULL; n++) {
            if (i-- == 0) {
                return lists[k][n];
            }
        }
    }
    return NULL;
}

bool qn_subject_backend_words(const struct qn_subject *s,
                              const struct qn_delegate_type *type)
{
    return type->words ||
           (type->lock != NULL && s->o.lock != NULL && s->o.lock->words);
}

struct qn_delegate_opts qn_subject_delegate(const struct qn_subject *s,
                                            const struct qn_delegate_type *type)
{
    struct qn_delegate_opts d = {.type = type,
                                 .clients = s->o.clients,
                                 .batch = s->o.batch,
                                 .domains = type->domains ? s->o.domains : 0,
                                 .lock = s->o.lock,
                                 .change_every = s->o.change_every};
    if (type->server != NULL) {
        d.server = s->o.server;
    }
    return d;
}

uint32_t qn_subject_domain(struct qn_subject *s, bool has)
{
    /* relaxed: any number will do. */
    const uint32_t number = qn_fetch_add(&s->joined, 1, QN_RELAXED);
    return has ? number % QN_MAX(s->o.domains, 1u) : 0;
}
