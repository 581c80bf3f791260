/*
 * Queues and stacks, by name; those that are made of delegates over each
 * backend, as "ms2/cc_synch".
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sync/object/collection.h"
#include "core/wait/baton.h"
#include "loadgen/sync/subject.h"

#define NAMES_MAX 32u
#define NAME_MAX  32u
#define ENDS      2u /* at most */

static_assert(sizeof(struct qn_collection_client) <=
                  sizeof(struct qn_subject_client),
              "a client has room");

struct kind {
    const struct qn_collection_type *type;
    const struct qn_delegate_type *over; /* NULL: none */
    char name[NAME_MAX];
};

/* Handle of a subject. */
struct opened {
    struct qn_collection q;
    struct kind kind;
};

/* The i-th one of an order. @return false: past the last. */
static bool kind_at(enum qn_collection_order order, uint32_t i, struct kind *k)
{
    for (uint32_t t = 0; (k->type = qn_collection_types[t]) != NULL; t++) {
        if (k->type->order != order) {
            continue;
        }
        uint32_t over = 0;
        do {
            k->over = k->type->delegates ? qn_subject_backend(over++) : NULL;
            if (k->type->delegates && k->over == NULL) {
                break;
            }
            if (i-- == 0) {
                return true;
            }
        } while (k->over != NULL);
    }
    return false;
}

static const char *name_at(enum qn_collection_order order, uint32_t i)
{
    static struct kind all[2][NAMES_MAX];
    struct kind *k = &all[order][i];
    if (i >= NAMES_MAX || !kind_at(order, i, k)) {
        return NULL;
    }
    snprintf(k->name, sizeof k->name, "%s%s%s", k->type->name,
             k->over != NULL ? "/" : "", k->over != NULL ? k->over->name : "");
    return k->name;
}

static const char *queue_name(uint32_t i)
{
    return name_at(QN_FIFO, i);
}

static const char *stack_name(uint32_t i)
{
    return name_at(QN_LIFO, i);
}

/* The kind that has the subject's name. */
static void find_kind(const struct qn_subject *s, struct kind *k)
{
    const enum qn_collection_order order =
        s->type->kind == QN_SUBJECT_QUEUE ? QN_FIFO : QN_LIFO;
    const char *name;
    for (uint32_t i = 0; (name = name_at(order, i)) != NULL; i++) {
        if (strcmp(name, s->name) == 0) {
            (void)kind_at(order, i, k);
            return;
        }
    }
}

static int create(struct qn_subject *s)
{
    struct opened *h = qn_subject_memory(sizeof *h);
    s->handle = h;
    if (h == NULL) {
        return QN_ENOMEM;
    }
    find_kind(s, &h->kind);
    struct qn_delegate_opts d = {.type = NULL};
    if (h->kind.over != NULL) {
        d = qn_subject_delegate(s, h->kind.over);
        /* Two servers, or executors, use the data of a queue with two ends. */
        d.server.only_server_uses_data &= h->kind.type->delegates == 1;
        d.only_operations_use_data &= h->kind.type->delegates == 1;
    }
    if (d.type != NULL && d.type->words && d.type->server != NULL &&
        h->kind.type->delegates > 1 && s->o.looks_on) {
        return QN_ENOSYS; /* two ports, and its server has one core */
    }
    const struct qn_collection_opts o = {
        .type = h->kind.type,
        .clients = s->o.clients,
        .capacity = s->o.capacity,
        .ring = s->o.ring,
        .batch = h->kind.over == NULL ? s->o.batch : 0,
        .delegate = h->kind.over != NULL ? &d : NULL};
    const size_t bytes = qn_collection_bytes(&o);
    if (bytes == 0) {
        return QN_EINVAL;
    }
    s->memory = qn_subject_memory(bytes);
    if (s->memory == NULL) {
        return QN_ENOMEM;
    }
    int rc = qn_collection_format(s->memory, &o);
    return rc == QN_OK ? qn_collection_open(&h->q, s->memory) : rc;
}

static int join_collection(const void *object, void *client,
                           const struct qn_delegate_join_opts *o)
{
    const struct qn_collection_join_opts c = {.domain = o->domain,
                                              .port = o->port};
    return qn_collection_join(object, client, &c);
}

static int join(struct qn_subject *s, struct qn_subject_client *c)
{
    const struct opened *h = s->handle;
    const struct qn_subject_end e = {.join = join_collection,
                                     .object = &h->q,
                                     .client = c,
                                     .domains = h->kind.over == NULL ||
                                                h->kind.over->domains,
                                     .port = c->port};
    return qn_subject_join_any(s, c, &e);
}

static void leave(struct qn_subject *s, struct qn_subject_client *c)
{
    (void)s;
    qn_collection_leave((struct qn_collection_client *)c);
}

static uint64_t operate(struct qn_subject *s, struct qn_subject_client *c,
                        enum qn_subject_op op, uint64_t value)
{
    struct qn_collection_client *end = (struct qn_collection_client *)c;
    (void)s;
    if (op == QN_SUBJECT_PUT) {
        return qn_collection_put(end, value) == QN_OK ? QN_SUBJECT_DONE
                                                      : QN_SUBJECT_FULL;
    }
    uint64_t taken;
    return qn_collection_take(end, &taken) == QN_OK ? taken
                                                    : QN_SUBJECT_NOTHING;
}

static void stats(struct qn_subject *s, struct qn_subject_client *c,
                  struct qn_subject_stats *out)
{
    const struct qn_delegate_stats from =
        qn_collection_stats_of((struct qn_collection_client *)c);
    (void)s;
    *out = qn_subject_stats_of(&from);
}

static bool words(const struct qn_subject *s)
{
    struct kind k = {.over = NULL};
    find_kind(s, &k);
    return k.over != NULL && qn_subject_backend_words(s, k.over);
}

/* ---- servers ---- */

static bool served(const struct qn_subject *s)
{
    const struct opened *h = s->handle;
    return h->kind.over != NULL && h->kind.over->server != NULL;
}

/* Both ends by turns, or that which no other thread serves, until neither is
 * left. @return QN_OK; QN_EBUSY: there was none. */
static int serve_ends(struct qn_subject *s,
                      struct qn_delegate_server server[ENDS])
{
    const struct opened *h = s->handle;
    struct qn_backoff idle;
    struct qn_wait_stats unused = {0};
    int rc[ENDS] = {0};
    bool any = false;
    qn_baton_backoff(&idle);
    while (rc[0] >= 0 || rc[1] >= 0) {
        int ran = 0;
        for (uint32_t i = 0; i < ENDS; i++) {
            const struct qn_delegate *d = qn_collection_delegate_at(&h->q, i);
            if (rc[i] >= 0) {
                rc[i] = d != NULL ? qn_delegate_poll(d, &server[i]) : QN_EBUSY;
                ran += QN_MAX(rc[i], 0);
                any |= rc[i] >= 0;
            }
        }
        if (ran == 0) {
            qn_baton_look_on(&idle, &unused);
        } else {
            qn_backoff_reset(&idle);
        }
    }
    return any ? QN_OK : QN_EBUSY;
}

static int serve(struct qn_subject *s)
{
    const struct opened *h = s->handle;
    struct qn_delegate_server server[ENDS] = {{.domain = 0}};
    const bool domains = h->kind.over->domains;
    for (uint32_t i = 0; i < ENDS; i++) {
        server[i].domain = qn_subject_domain(s, NULL, domains);
        server[i].port = qn_subject_server_port(s);
    }
    const int rc = serve_ends(s, server);
    for (uint32_t i = 0; i < ENDS; i++) {
        if (server[i].port != NULL) {
            qn_ports_give(s->ports, server[i].port);
        }
    }
    return rc;
}

static void stop(struct qn_subject *s)
{
    const struct opened *h = s->handle;
    const struct qn_delegate *d;
    for (uint32_t i = 0;
         i < ENDS && (d = qn_collection_delegate_at(&h->q, i)) != NULL; i++) {
        (void)qn_delegate_stop(d);
    }
}

/* A family differs in its kind and its names. */
#define COLLECTION(of_family, of_kind, names)                                  \
    {                                                                          \
        .family = of_family, .kind = of_kind, .objects = 2, .name = names,     \
        .words = words, .create = create, .join = join, .leave = leave,        \
        .operate = operate, .stats = stats, .served = served, .serve = serve,  \
        .stop = stop,                                                          \
    }

const struct qn_subject_type qn_subject_queue =
    COLLECTION("queue", QN_SUBJECT_QUEUE, queue_name);

const struct qn_subject_type qn_subject_stack =
    COLLECTION("stack", QN_SUBJECT_STACK, stack_name);
