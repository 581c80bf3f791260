#include "loadgen/sync/subject.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"

#define SLEEP_NS (50 * QN_US)

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
    int rc = n->type->create(made);
    if (rc == QN_OK) {
        *s = made;
    } else {
        free(made->memory);
        free(made->handle);
        free(made);
    }
    return rc;
}

void qn_subject_destroy(struct qn_subject *s)
{
    if (s != NULL) {
        if (s->type->destroy != NULL) {
            s->type->destroy(s);
        }
        free(s->memory);
        free(s->handle);
        free(s);
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
