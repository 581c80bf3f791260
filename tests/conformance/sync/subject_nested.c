/*
 * Two objects, of which one uses the other: "cc_synch/mp_server". An addition
 * is an operation of the outer object that has the inner one add, or one of
 * three asks the inner one alone. Both objects may have any backend; with
 * `lock` and HybLock it is two nested locks on one port.
 *
 * An operation of the outer object runs on any thread that has a client of it.
 * So each such thread has a client of the inner one, too, and a handle of the
 * outer one whose context says which: none of them is the caller's own.
 *
 * A server of the outer object has one port for requests, and another one for
 * what it asks: on a shared device a server takes all the room of its core.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/conformance/sync/stress.h"

#define ALONE_EVERY  3u
#define SERVERS_MOST 3u /* each has a client of the inner object */

/* Handle of a subject. */
struct nested {
    struct qn_delegate inner;
    void *outer_memory; /* owned; that of the inner one is the subject's */
    const struct qn_delegate_type *outer_type, *inner_type;
    uint64_t count; /* of the outer object: plain */
};

/* A thread that may run operations of the outer object. */
struct executor {
    struct qn_subject *s;
    struct qn_delegate outer; /* its context is this */
    struct qn_delegate_client inner_client, outer_client;
    uint64_t calls;
};

static_assert(sizeof(struct executor) <=
                  sizeof(((struct qn_subject_client *)NULL)->room),
              "a client has room");

static uint32_t backends(void)
{
    uint32_t n = 0;
    while (qn_subject_backend(n) != NULL) {
        n++;
    }
    return n;
}

static const char *name(uint32_t i)
{
    static char text[64][32];
    const uint32_t n = backends();
    if (i >= n * n || i >= QN_ARRAY_COUNT(text)) {
        return NULL;
    }
    snprintf(text[i], sizeof text[i], "%s/%s", qn_subject_backend(i / n)->name,
             qn_subject_backend(i % n)->name);
    return text[i];
}

static void types_of(const struct qn_subject *s,
                     const struct qn_delegate_type **outer,
                     const struct qn_delegate_type **inner)
{
    const uint32_t n = backends();
    uint32_t i = 0;
    while (strcmp(name(i), s->name) != 0) {
        i++;
    }
    *outer = qn_subject_backend(i / n);
    *inner = qn_subject_backend(i % n);
}

static bool words(const struct qn_subject *s)
{
    const struct qn_delegate_type *outer, *inner;
    types_of(s, &outer, &inner);
    return qn_subject_backend_words(s, outer) ||
           qn_subject_backend_words(s, inner);
}

/* ---- operations ---- */

static uint64_t run_inner(void *ctx, uint32_t op, uint64_t arg)
{
    (void)op;
    (void)arg;
    return qn_subject_work(ctx);
}

static uint64_t add_inner(struct executor *e)
{
    const struct nested *n = e->s->handle;
    uint64_t was = 0;
    (void)qn_delegate(&n->inner, &e->inner_client, 0, 0, &was);
    return was;
}

/* @return 0, which is a result already, if another one ran meanwhile. */
static uint64_t run_outer(void *ctx, uint32_t op, uint64_t arg)
{
    struct executor *e = ctx;
    struct nested *n = e->s->handle;
    const uint64_t count = ++n->count;
    (void)op;
    (void)arg;
    const uint64_t was = add_inner(e);
    return n->count == count ? was : 0;
}

static uint64_t operate(struct qn_subject *s, struct qn_subject_client *c,
                        enum qn_subject_op op, uint64_t value)
{
    struct executor *e = (struct executor *)c->room;
    uint64_t was = 0;
    (void)s;
    (void)op;
    (void)value;
    if (e->calls++ % ALONE_EVERY == 0) {
        return add_inner(e);
    }
    (void)qn_delegate(&e->outer, &e->outer_client, 0, 0, &was);
    return was;
}

/* ---- make ---- */

/* Of the inner object also servers of the outer one are clients. */
static int make_object(struct qn_subject *s,
                       const struct qn_delegate_type *type, uint32_t more,
                       void **memory)
{
    struct qn_delegate_opts o = qn_subject_delegate(s, type);
    o.clients += more;
    const size_t bytes = qn_delegate_bytes(&o);
    if (bytes == 0) {
        return QN_EINVAL;
    }
    *memory = qn_subject_memory(bytes);
    return *memory != NULL ? qn_delegate_format(*memory, &o) : QN_ENOMEM;
}

static void destroy(struct qn_subject *s)
{
    struct nested *n = s->handle;
    free(n->outer_memory);
}

static int create(struct qn_subject *s)
{
    struct nested *n = qn_subject_memory(sizeof *n);
    s->handle = n;
    if (n == NULL) {
        return QN_ENOMEM;
    }
    types_of(s, &n->outer_type, &n->inner_type);
    int rc = make_object(s, n->outer_type, 0, &n->outer_memory);
    if (rc == QN_OK) {
        rc = make_object(
            s, n->inner_type,
            n->outer_type->server != NULL ? s->o.domains * SERVERS_MOST : 0,
            &s->memory);
    }
    rc =
        rc == QN_OK ? qn_delegate_open(&n->inner, s->memory, run_inner, s) : rc;
    if (rc != QN_OK) {
        destroy(s);
    }
    return rc;
}

/* The thread may run operations of the outer object. @param c  NULL: a server.
 */
static int begin(struct qn_subject *s, const struct qn_subject_client *c,
                 struct executor *e, struct qn_sync_port *port)
{
    struct nested *n = s->handle;
    *e = (struct executor){.s = s};
    const int rc = qn_delegate_open(&e->outer, n->outer_memory, run_outer, e);
    return rc == QN_OK ? qn_subject_join_delegate(s, c, port, &n->inner,
                                                  &e->inner_client)
                       : rc;
}

static void end(struct executor *e)
{
    const struct nested *n = e->s->handle;
    qn_delegate_leave(&n->inner, &e->inner_client);
}

static int join(struct qn_subject *s, struct qn_subject_client *c)
{
    struct executor *e = (struct executor *)c->room;
    int rc = begin(s, c, e, c->port);
    if (rc != QN_OK) {
        return rc;
    }
    rc = qn_subject_join_delegate(s, c, c->port, &e->outer, &e->outer_client);
    if (rc != QN_OK) {
        end(e);
    }
    return rc;
}

static void leave(struct qn_subject *s, struct qn_subject_client *c)
{
    struct executor *e = (struct executor *)c->room;
    (void)s;
    qn_delegate_leave(&e->outer, &e->outer_client);
    end(e);
}

/* ---- servers ---- */

static bool served(const struct qn_subject *s)
{
    const struct nested *n = s->handle;
    return n->outer_type->server != NULL || n->inner_type->server != NULL;
}

static int serve_outer(struct qn_subject *s)
{
    struct executor e;
    struct qn_sync_port *port = qn_subject_server_port(s);
    int rc = begin(s, NULL, &e, port);
    if (rc == QN_OK) {
        rc = qn_subject_serve(s, &e.outer);
        end(&e);
    }
    if (port != NULL) {
        qn_ports_give(s->ports, port);
    }
    return rc;
}

/* What none serves: the inner object first, as the outer one waits for it. */
static int serve(struct qn_subject *s)
{
    struct nested *n = s->handle;
    int rc = QN_EBUSY;
    if (n->inner_type->server != NULL) {
        rc = qn_subject_serve(s, &n->inner);
    }
    if (rc != QN_OK && n->outer_type->server != NULL) {
        rc = serve_outer(s);
    }
    return rc;
}

static void stop(struct qn_subject *s)
{
    struct nested *n = s->handle;
    struct qn_delegate outer;
    (void)qn_delegate_stop(&n->inner);
    if (qn_delegate_open(&outer, n->outer_memory, run_outer, NULL) == QN_OK) {
        (void)qn_delegate_stop(&outer);
    }
}

const struct qn_subject_type stress_nested = {
    .family = "nested",
    .kind = QN_SUBJECT_COUNTER,
    .objects = 2,
    .name = name,
    .words = words,
    .create = create,
    .destroy = destroy,
    .join = join,
    .leave = leave,
    .operate = operate,
    .served = served,
    .serve = serve,
    .stop = stop,
};

const struct qn_subject_type *stress_type(uint32_t t)
{
    uint32_t n = 0;
    while (qn_subject_types[n] != NULL) {
        n++;
    }
    return t < n ? qn_subject_types[t] : t == n ? &stress_nested : NULL;
}
