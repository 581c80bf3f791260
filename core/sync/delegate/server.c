/*
 * Serve, poll and stop, for every backend with a server.
 *
 * The endpoint is taken by compare-and-swap from "none serves" and given back
 * by a release store of the server, so what one server has written, data and
 * its own records, is visible to the next one. A stop is a bit that the server
 * reads once per scan.
 *
 * A stop that comes while the server gives its endpoint back is overwritten: it
 * was asked of a server that leaves anyway.
 */
#include "core/sync/delegate/server.h"

#include "core/base/mark.h"
#include "core/sync/delegate/backend.h"
#include "core/sync/delegate/endpoint_internal.h"
#include "core/sync/delegate/server_mutant.h"

/* How long an idle server looks before it sleeps: the clients of a busy object
 * come back sooner, and a wake-up costs them as much as this. Between looks it
 * yields: a client may wait for this core. */
#define IDLE_LOOK_NS (2 * QN_US)
#define IDLE_YIELDS  64u

/* The own client waits for this server: as if it were in a call. */
static void hold_client(const struct qn_delegate_server *s, bool held)
{
    if (s->client != NULL) {
        s->client->inside = held;
    }
}

static int take_endpoint(const struct qn_backend *b,
                         struct qn_delegate_server *s)
{
    struct qn_server_endpoint *endpoint = qn_server_endpoint_of(b);
    const struct qn_server_type *t = b->type->server;
    uint32_t where;
    if (s->client != NULL && s->client->inside) {
        return QN_EDEADLK;
    }
    int rc = t->where(b, s, &where);
    if (rc != QN_OK) {
        return rc;
    }
    /* relaxed: the compare-and-swap has the order. */
    uint64_t now = qn_load(&endpoint->word, QN_RELAXED);
    uint64_t mine;
    do {
        if ((now & QN_ENDPOINT_SERVES) != 0 && !QN_SERVER_MUTANT(TWO_SERVERS)) {
            return QN_EBUSY;
        }
        mine = (qn_server_endpoint_generation(now) + 1) << 24 |
               (uint64_t)where << 8 | QN_ENDPOINT_SERVES;
        /* acquire -> leave_endpoint: data and records of the former server. */
    } while (!qn_cas(&endpoint->word, &now, mine, QN_ACQUIRE));
    /* Not before: a server that is refused has no generation. */
    s->generation = qn_server_endpoint_generation(mine);
    s->serves = b->memory;
    hold_client(s, true);
    if (t->begin != NULL) {
        t->begin(b, s);
    }
    return QN_OK;
}

static void leave_endpoint(const struct qn_backend *b,
                           struct qn_delegate_server *s)
{
    struct qn_server_endpoint *endpoint = qn_server_endpoint_of(b);
    b->type->server->end(b, s);
    hold_client(s, false);
    /* relaxed: only a stop changes the word of a server that serves. */
    const uint64_t name =
        qn_server_endpoint_name(qn_load(&endpoint->word, QN_RELAXED));
    s->generation = 0;
    /* release -> take_endpoint. */
    qn_store(&endpoint->word, name, QN_RELEASE);
}

static bool is_stopped(const struct qn_backend *b)
{
    /* relaxed: `stop` publishes nothing. */
    return (qn_load(&qn_server_endpoint_of(b)->word, QN_RELAXED) &
            QN_ENDPOINT_STOP) != 0;
}

int qn_delegate_poll(const struct qn_delegate *d, struct qn_delegate_server *s)
{
    const struct qn_backend *b = &d->at[0];
    if (b->type->server == NULL) {
        return QN_ENOSYS;
    }
    if (s->generation == 0) {
        const int rc = take_endpoint(b, s);
        if (rc != QN_OK) {
            return rc;
        }
    }
    if (s->serves != b->memory) {
        return QN_EINVAL;
    }
    if (is_stopped(b)) {
        leave_endpoint(b, s);
        return QN_EGONE;
    }
    const uint32_t served = b->type->server->scan(b, s);
    s->stats.scans++;
    s->stats.batches += served != 0;
    s->stats.served += served;
    return (int)served;
}

static void idle_begins(struct qn_backoff *p)
{
    struct qn_backoff_opts o = {.look_ns = IDLE_LOOK_NS, .yields = IDLE_YIELDS};
    if (!qn_may_look()) {
        o = (struct qn_backoff_opts){0};
    }
    qn_backoff_init(p, &o);
}

int qn_delegate_serve(const struct qn_delegate *d, struct qn_delegate_server *s)
{
    struct qn_backoff idle;
    int served;
    idle_begins(&idle);
    while ((served = qn_delegate_poll(d, s)) >= 0) {
        if (served == 0 && qn_backoff_again(&idle)) {
            continue;
        }
        s->stats.waits.yields += idle.yields;
        if (served == 0) {
            d->at[0].type->server->sleep(&d->at[0], s);
        }
        qn_backoff_reset(&idle);
    }
    return served == QN_EGONE ? QN_OK : served;
}

int qn_delegate_stop(const struct qn_delegate *d)
{
    const struct qn_backend *b = &d->at[0];
    if (b->type->server == NULL) {
        return QN_ENOSYS;
    }
    struct qn_server_endpoint *endpoint = qn_server_endpoint_of(b);
    uint64_t now = qn_load(&endpoint->word, QN_RELAXED);
    do {
        if ((now & QN_ENDPOINT_SERVES) == 0) {
            return QN_ENOENT;
        }
        /* acquire: the weakest there is. Nothing is published; `ring` has the
         * fence that a server which goes to sleep needs. */
    } while (
        !qn_cas(&endpoint->word, &now, now | QN_ENDPOINT_STOP, QN_ACQUIRE));
    b->type->server->ring(b);
    return QN_OK;
}

int qn_delegate_submit(const struct qn_delegate *d,
                       struct qn_delegate_client *c, uint32_t op, uint64_t arg)
{
    const struct qn_backend *b = &d->at[0];
    if (b->type->server == NULL) {
        return QN_ENOSYS;
    }
    if (c->inside || op >= QN_DELEGATE_OPS) {
        return c->inside ? QN_EDEADLK : QN_EINVAL;
    }
    const int rc = b->type->server->submit(b, &c->at[0], op, arg);
    c->open += rc == QN_OK;
    c->at[0].stats.operations += rc == QN_OK;
    return rc;
}

int qn_delegate_collect(const struct qn_delegate *d,
                        struct qn_delegate_client *c, uint64_t *result)
{
    const struct qn_backend *b = &d->at[0];
    if (b->type->server == NULL) {
        return QN_ENOSYS;
    }
    if (c->inside) {
        return QN_EDEADLK;
    }
    c->inside = true;
    const int rc = b->type->server->collect(b, &c->at[0], result);
    c->open -= rc == QN_OK;
    c->inside = false;
    return rc;
}
