/*
 * HybComb (Petrovic, Ropars and Schiper, "Leveraging hardware message passing
 * for efficient thread synchronization", PPoPP 2014): requests and replies are
 * messages of words, and the next combiner is agreed on in coherent memory.
 *
 *     last ------> [owner, n, done]  the client whose requests are taken, or
 *                                    will be as soon as it combines
 *     departed --> [owner, n, done]  of the last combiner that has ended; the
 *                                    active one takes it over
 *
 * A call counts itself in at the last node (n). While that is less than
 * `batch`, the node's owner will run its operation: it sends a request, and
 * waits for the reply. Else it puts its own node in front: it is the next
 * combiner, and waits until the one before is done. A combiner takes what has
 * come, then closes its node by an exchange of n, which tells how many requests
 * there are in all, and takes the rest.
 *
 * Invariants, beyond what is printed:
 *   - A node belongs to a client at this object. With one node of a thread for
 *     all its objects, a thread with an old reference could count itself in at
 *     another object's combiner.
 *   - n grows behind `batch` with each call that finds the node closed, until
 *     it is opened again: 64 bits do not wrap.
 *   - n is reset once the node is registered, never when it is taken over:
 *     a call that finds it open finds its owner, also by an old reference.
 *   - One client may lose each compare-and-swap. After CAS_MOST it exchanges:
 *     then the node before may be open, which is no harm.
 *   - A client that waits to combine does not take what is sent to it. So it
 *     must fit: each client promises room for the requests of one batch
 *     (port.h).
 */
#include <assert.h>

#include "core/base/bits.h"
#include "core/sync/clients.h"
#include "core/sync/delegate/backend.h"
#include "core/sync/delegate/backends.h"
#include "core/sync/port.h"
#include "core/sync/sync_mutant.h"
#include "core/words/attachment.h"

#define CAS_MOST    4u
#define REPLY_WORDS 2u

/* n has a line of its own: each call counts itself in there, and would wait for
 * the line of the owner again, and take it from those that look for `done`.
 * (Simulated TILE-Gx, 36 clients: 52 M/s on one line, 87 on two.) */
struct node {
    alignas(QN_CACHELINE) qn_a64 n;     /* requests; clients, and its owner */
    alignas(QN_CACHELINE) qn_a32 owner; /* address; its owner */
    struct qn_baton done;               /* its owner -> the next combiner */
};

struct head {
    alignas(QN_CACHELINE) qn_a32 last;     /* a node */
    alignas(QN_CACHELINE) qn_a32 departed; /* a node; the active combiner */
    qn_a32 object; /* its number at the device, once a client has joined */
    alignas(QN_CACHELINE) struct node node[]; /* clients + 1; then places */
};

static_assert(sizeof(struct node) == 2 * QN_CACHELINE, "n has a line");

static struct head *head_of(const struct qn_backend *b)
{
    return b->memory;
}

static struct node *nodes_of(struct head *h)
{
    return QN_SYNC_NODES(h->node);
}

static struct qn_sync_place *places(struct head *h, uint32_t clients)
{
    return (struct qn_sync_place *)(h->node + clients + 1);
}

static size_t bytes(const struct qn_delegate_opts *o)
{
    return sizeof(struct head) + (o->clients + 1) * sizeof(struct node) +
           o->clients * sizeof(struct qn_sync_place);
}

/* relaxed: published by the caller. */
static int format(void *memory, const struct qn_delegate_opts *o)
{
    struct head *h = memory;
    const uint32_t dummy = o->clients;
    qn_sync_places_format(places(h, o->clients), o->clients);
    for (uint32_t i = 0; i <= dummy; i++) {
        qn_store(&nodes_of(h)[i].n, o->batch, QN_RELAXED);
    }
    (void)qn_baton_go(&nodes_of(h)[dummy].done, QN_BATON_GO);
    qn_store(&h->last, dummy, QN_RELAXED);
    qn_store(&h->departed, dummy, QN_RELAXED);
    return QN_OK;
}

/* What may be sent to one client: requests while it combines, or a reply. Each
 * thread of the device has one call in progress. */
static uint32_t words_most(const struct qn_backend *b,
                           const struct qn_sync_port *p)
{
    const uint32_t threads =
        QN_MIN(b->o.clients, qn_words_nodes(p->device)) - 1;
    return QN_MAX(QN_SYNC_WORDS * QN_MIN(threads, b->o.batch), REPLY_WORDS);
}

/* The node is this client's now. */
static void own(const struct qn_backend *b, const struct qn_backend_client *c)
{
    struct node *mine = &nodes_of(head_of(b))[c->node];
    qn_baton_init(&mine->done);
    /* relaxed: published by the fence. */
    qn_store(&mine->owner, c->port->address, QN_RELAXED);
    if (!QN_SYNC_MUTANT(WEAK_OPENING) && !QN_SYNC_MUTANT(LATE_RELEASE)) {
        /* release -> the fetch_add of enter, by way of open_node; and its
         * registration by another client, which waits at the baton. */
        qn_fence(QN_RELEASE);
    }
}

static int join(const struct qn_backend *b, struct qn_backend_client *c,
                const struct qn_delegate_join_opts *o)
{
    struct head *h = head_of(b);
    if (o->port == NULL) {
        return QN_EINVAL;
    }
    int rc = qn_sync_promise(o->port, words_most(b, o->port));
    if (rc != QN_OK) {
        return rc;
    }
    rc = qn_sync_join(places(h, b->o.clients), b->o.clients, &c->place,
                      &c->node);
    if (rc != QN_OK) {
        qn_sync_promise_back(o->port, words_most(b, o->port));
        return rc;
    }
    c->port = o->port;
    c->object = qn_sync_object(c->port, &h->object);
    own(b, c);
    return QN_OK;
}

static void leave(const struct qn_backend *b, struct qn_backend_client *c)
{
    qn_sync_leave(places(head_of(b), b->o.clients), c->place, c->node);
    qn_sync_promise_back(c->port, words_most(b, c->port));
}

/* ---- a call ---- */

struct call {
    uint32_t op;
    uint64_t arg;
    uint32_t before; /* the node that was last, when this one was registered */
};

/* Have the owner of a node, at which this call is counted in, run it. */
static uint64_t request(struct qn_backend_client *c, uint32_t owner,
                        const struct call *call)
{
    const uint64_t words[QN_SYNC_WORDS] = {
        qn_sync_head(c->port, c->object, QN_SYNC_REQUEST, 0),
        (uint64_t)c->place << 16 | call->op, call->arg};
    uint64_t reply[QN_SYNC_WORDS];
    qn_sync_send(c->port, owner, words, QN_SYNC_WORDS, &c->stats.waits);
    qn_sync_receive(c->port, qn_sync_head(c->port, c->object, QN_SYNC_REPLY, 0),
                    QN_SYNC_OBJECT | QN_SYNC_KIND, reply, &c->stats.waits);
    return reply[1];
}

/* Registered: from now on others may count themselves in. Each call that comes
 * before finds the node closed, and registers behind it to combine nothing. So
 * the store waits for no fence: that of `own` has made the owner visible, also
 * to one that has had its reference to this node from an earlier use. (As
 * above: 40 requests to a batch of 200 with a release here, 180 without.) */
static void open_node(struct node *mine)
{
    /* relaxed: the fence in front of it -> the fetch_add of enter. */
    qn_store(&mine->n, 0,
             QN_SYNC_MUTANT(LATE_RELEASE) ? QN_RELEASE : QN_RELAXED);
}

/* The node was prepared in front of the fence of `own`. */
static memory_order register_order(void)
{
    return QN_SYNC_MUTANT(LATE_RELEASE) ? QN_ACQ_REL : QN_ACQUIRE;
}

/* @return true: another client has run the call, *result is filled. false: this
 * one is registered as the next combiner, behind call->before. */
static bool enter(const struct qn_backend *b, struct qn_backend_client *c,
                  struct call *call, uint64_t *result)
{
    struct head *h = head_of(b);
    for (uint32_t failed = 0; failed < CAS_MOST; failed++) {
        /* relaxed: any node will do, also one that was last before. If it is
         * open its owner opened it; if not the compare-and-swap decides. */
        call->before = qn_load(&h->last, QN_RELAXED);
        struct node *last = &nodes_of(h)[call->before];
        /* acquire -> the fence of `own`: the owner. */
        if (qn_fetch_add(&last->n, 1, QN_ACQUIRE) < b->o.batch) {
            /* relaxed: visible by the fetch_add. */
            *result = request(c, qn_load(&last->owner, QN_RELAXED), call);
            return true;
        }
        if (QN_SYNC_MUTANT(EXCHANGE)) {
            break;
        }
        c->stats.cas++;
        /* acquire -> the fence of `own`: the baton of the node before waits. */
        if (qn_cas(&h->last, &call->before, c->node, register_order())) {
            return false;
        }
        c->stats.cas_failed++;
    }
    /* acquire: as the compare-and-swap. */
    call->before = qn_exchange(&h->last, c->node, register_order());
    return false;
}

/* Run one request, and say its result to the client that sent it. */
static void serve(const struct qn_backend *b, struct qn_backend_client *c,
                  bool begun, const uint64_t *words)
{
    const uint64_t reply[REPLY_WORDS] = {
        qn_sync_head(c->port, c->object, QN_SYNC_REPLY, 0),
        qn_backend_execute(b, begun, words[1] & 0xffff, words[2])};
    qn_sync_send(c->port, qn_sync_head_address(words[0]), reply, REPLY_WORDS,
                 &c->stats.waits);
}

/* Serve all that were counted in at the own node, and close it. @return how
 * many. */
static uint32_t combine(const struct qn_backend *b, struct qn_backend_client *c,
                        bool begun)
{
    struct node *mine = &nodes_of(head_of(b))[c->node];
    const uint64_t want = qn_sync_head(c->port, c->object, QN_SYNC_REQUEST, 0);
    const uint64_t mask = QN_SYNC_OBJECT | QN_SYNC_KIND;
    uint64_t words[QN_SYNC_WORDS];
    uint32_t served = 0;
    while (qn_sync_try_receive(c->port, want, mask, words)) {
        serve(b, c, begun, words);
        served++;
    }
    /* relaxed: the requests come by words. */
    const uint64_t in = qn_exchange(&mine->n, b->o.batch, QN_RELAXED);
    while (served < QN_MIN(in, b->o.batch)) {
        qn_sync_receive(c->port, want, mask, words, &c->stats.waits);
        serve(b, c, begun, words);
        served++;
    }
    return served;
}

/* Take over the node that departed, leave the own one there, and let the next
 * client combine. */
static void depart(const struct qn_backend *b, struct qn_backend_client *c)
{
    struct head *h = head_of(b);
    struct node *old = &nodes_of(h)[c->node];
    const uint32_t left = c->node;
    /* relaxed twice: of the active combiner, passed on by `done`. */
    c->node = qn_load(&h->departed, QN_RELAXED);
    qn_store(&h->departed, left, QN_RELAXED);
    own(b, c);
    /* release -> the wait of the next combiner: all operations so far. */
    qn_baton_pass(&old->done, QN_BATON_GO, b->o.own_cores, &c->stats.waits);
}

static uint64_t call(const struct qn_backend *b, struct qn_backend_client *c,
                     uint32_t op, uint64_t arg)
{
    struct head *h = head_of(b);
    struct call this = {.op = op, .arg = arg};
    uint64_t result;
    if (enter(b, c, &this, &result)) {
        return result;
    }
    open_node(&nodes_of(h)[c->node]);
    if (!QN_SYNC_MUTANT(NO_WAIT)) {
        (void)qn_baton_await(&nodes_of(h)[this.before].done, b->o.own_cores,
                             &c->stats.waits);
    }
    const bool begun = qn_backend_begin(b, c);
    result = qn_backend_execute(b, begun, op, arg);
    const uint32_t served = combine(b, c, begun);
    qn_backend_end(b, c, begun, served + 1);
    depart(b, c);
    return result;
}

const struct qn_delegate_type qn_delegate_hyb_comb = {
    .name = "hyb_comb",
    .words = true,
    .bytes = bytes,
    .format = format,
    .join = join,
    .leave = leave,
    .call = call,
};
