#include "loadgen/sync/subject.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/mark.h"
#include "core/sync/port.h"

#define SLEEP_NS (50 * QN_US)

/* Ports beside those of clients: of three servers, each at two objects,
 * and of one client too many. */
#define PORTS_MORE 7u

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

/* May combiners be sent all that they may be sent? */
static bool fits_shared(uint32_t objects, const struct qn_subject_opts *o)
{
    const uint32_t batch = o->batch != 0 ? o->batch : QN_DELEGATE_BATCH;
    return QN_MAX(objects, 1u) * QN_SYNC_WORDS *
               QN_MIN(o->clients - 1, batch) <=
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
        const struct qn_ports_opts p = {
            .count = o->clients + PORTS_MORE,
            .split = o->split || !fits_shared(n->type->objects, o),
            .looks_on = o->looks_on};
        rc = qn_ports_create(&made->ports, &p);
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
        c->port =
            qn_ports_take(s->ports, c->core != 0 ? c->core - 1 : QN_PORTS_ANY);
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

/* For a simulated machine: each line once, and the time of all increments. */
static void touch_integers(struct qn_subject *s, uint64_t from)
{
    const uint32_t line = QN_CACHELINE / sizeof(uint64_t);
    const uint32_t n = QN_MIN(s->o.increments, QN_SUBJECT_INTEGERS);
    for (uint32_t i = 0; i < n; i += line) {
        uint64_t *at = &s->data.integer[(from + i) % QN_SUBJECT_INTEGERS];
        qn_touch_in(at, sizeof *at);
        qn_touch_out(at, sizeof *at);
    }
    qn_work((uint64_t)s->o.increments * s->o.increment_ps / 1000);
}

uint64_t qn_subject_work(struct qn_subject *s)
{
    qn_touch_in(&s->data.count, sizeof s->data.count);
    const uint64_t was = s->data.count;
    for (uint32_t i = 0; i < s->o.increments; i++) {
        s->data.integer[(was + i) % QN_SUBJECT_INTEGERS]++;
    }
    touch_integers(s, was);
    /* In the middle: an addition beside this one is lost. */
    if (s->o.sleep_every != 0 && was % s->o.sleep_every == 0) {
        const struct timespec pause = {.tv_nsec = SLEEP_NS};
        (void)nanosleep(&pause, NULL);
    }
    s->data.count = was + 1;
    qn_touch_out(&s->data.count, sizeof s->data.count);
    return was;
}

void qn_subject_stats_add(struct qn_subject_stats *sum,
                          const struct qn_subject_stats *from)
{
    sum->batches += from->batches;
    sum->served += from->served;
    sum->cas += from->cas;
    sum->cas_failed += from->cas_failed;
    sum->parks += from->parks;
    sum->wakes += from->wakes;
    sum->yields += from->yields;
    sum->changes += from->changes;
}

struct qn_subject_stats qn_subject_stats_of(const struct qn_delegate_stats *s)
{
    return (struct qn_subject_stats){.batches = s->batches,
                                     .served = s->served,
                                     .cas = s->cas,
                                     .cas_failed = s->cas_failed,
                                     .parks = s->waits.parks,
                                     .wakes = s->waits.wakes,
                                     .yields = s->waits.yields,
                                     .changes = s->changes};
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

struct qn_sync_port *qn_subject_server_port(struct qn_subject *s)
{
    return s->ports != NULL
               ? qn_ports_take(s->ports, s->o.looks_on ? 0 : QN_PORTS_ANY)
               : NULL;
}

int qn_subject_serve(struct qn_subject *s, const struct qn_delegate *d)
{
    struct qn_delegate_server server = {
        .domain = qn_subject_domain(s, NULL, d->at[0].type->domains)};
    server.port = qn_subject_server_port(s);
    const int rc = qn_delegate_serve(d, &server);
    if (server.port != NULL) {
        qn_ports_give(s->ports, server.port);
    }
    return rc;
}

struct qn_delegate_opts qn_subject_delegate(const struct qn_subject *s,
                                            const struct qn_delegate_type *type)
{
    struct qn_delegate_opts d = {.type = type,
                                 .clients = s->o.clients,
                                 .batch = s->o.batch,
                                 .domains = type->domains ? s->o.domains : 0,
                                 .lock = s->o.lock,
                                 .own_cores = s->o.own_cores,
                                 .only_operations_use_data =
                                     s->o.only_operations_use_data,
                                 .change_every = s->o.change_every};
    if (type->server != NULL) {
        d.server = s->o.server;
    }
    return d;
}

/* With grouped replies each domain has places of its own. */
int qn_subject_join_any(struct qn_subject *s,
                        const struct qn_subject_client *of,
                        const struct qn_subject_end *e)
{
    const uint32_t first = qn_subject_domain(s, of, e->domains);
    const uint32_t n = e->domains ? QN_MAX(s->o.domains, 1u) : 1;
    int rc = QN_EAGAIN;
    for (uint32_t i = 0; i < n && rc == QN_EAGAIN; i++) {
        const struct qn_delegate_join_opts o = {.domain = (first + i) % n,
                                                .port = e->port};
        rc = e->join(e->object, e->client, &o);
    }
    return rc;
}

static int join_delegate(const void *object, void *client,
                         const struct qn_delegate_join_opts *o)
{
    return qn_delegate_join(object, client, o);
}

int qn_subject_join_delegate(struct qn_subject *s,
                             const struct qn_subject_client *of,
                             struct qn_sync_port *port,
                             const struct qn_delegate *d,
                             struct qn_delegate_client *c)
{
    const struct qn_subject_end e = {.join = join_delegate,
                                     .object = d,
                                     .client = c,
                                     .domains = d->at[0].type->domains,
                                     .port = port};
    return qn_subject_join_any(s, of, &e);
}

uint32_t qn_subject_domain(struct qn_subject *s,
                           const struct qn_subject_client *c, bool has)
{
    /* relaxed: any number will do. */
    const uint32_t number = c != NULL && c->domain != 0
                                ? c->domain - 1
                                : qn_fetch_add(&s->joined, 1, QN_RELAXED);
    return has ? number % QN_MAX(s->o.domains, 1u) : 0;
}
