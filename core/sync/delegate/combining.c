/*
 * The list of CC-Synch (Fatourou and Kallimanis, "Revisiting the combining
 * synchronization technique", PPoPP 2012).
 *
 *     tail ----------------------------------+
 *                                            v
 *     [request] -> [request] -> [request] -> [  ]   the last node is empty
 *      combiner     waits        waits
 *
 * A client exchanges the tail for its spare node, which becomes the empty one,
 * writes its request into the node that was empty before, and links that to the
 * spare. The node with its request is its spare from then on. So nodes change
 * their owners with each call, and they belong to the object.
 *
 * Each node is a baton: its client is told that the request was served, or that
 * it is its turn to combine. Where the list has no combiner, that turn lies in
 * the empty node, for the next client.
 *
 * Invariants:
 *   - At most one node of a list has the turn; its client, or the next one
 *     that comes, is the combiner. A combiner passes the turn on as its last
 *     step, and touches no node behind that.
 *   - A served node belongs to its client at once: the combiner reads its link
 *     before it says so.
 *   - A combiner runs its own request and at most `batch` of others.
 *
 * Request, result and all that the operations touch are plain bytes, published
 * by `next` (request) and by the baton (result, and the turn).
 */
#include <assert.h>

#include "core/sync/delegate/combining.h"

#include "core/base/bits.h"
#include "core/sync/clients.h"
#include "core/sync/delegate/delegate_mutant.h"

enum {
    SERVED = QN_BATON_GO,
    COMBINE,
};

struct qn_combining_list {
    alignas(QN_CACHELINE) qn_a32 tail; /* a node; clients exchange it */
};

struct request {
    uint64_t arg;
    uint32_t op;
};

struct qn_combining_node {
    alignas(QN_CACHELINE) struct qn_baton turn; /* its client waits here */
    qn_a32 next;            /* node + 1; 0: this one is empty. Its client */
    struct request request; /* its client */
    uint64_t result;        /* the combiner */
};

static_assert(sizeof(struct qn_combining_node) == QN_CACHELINE,
              "a request and its result travel in one line");

static struct qn_combining parts(void *memory, uint32_t clients, uint32_t lists)
{
    struct qn_combining m;
    m.list = memory;
    m.node = (void *)(m.list + lists);
    m.place = (void *)(m.node + clients + lists);
    return m;
}

static struct qn_combining parts_of(const struct qn_backend *b)
{
    return parts(b->memory, b->o.clients, b->o.domains);
}

size_t qn_combining_bytes(uint32_t clients, uint32_t lists)
{
    return lists * sizeof(struct qn_combining_list) +
           (clients + lists) * sizeof(struct qn_combining_node) +
           qn_align_up(clients * sizeof(struct qn_sync_place), QN_CACHELINE);
}

void qn_combining_format(void *memory, uint32_t clients, uint32_t lists)
{
    struct qn_combining m = parts(memory, clients, lists);
    /* relaxed: format is published by its caller. */
    qn_sync_places_format(m.place, clients);
    for (uint32_t i = 0; i < lists; i++) {
        qn_store(&m.list[i].tail, clients + i, QN_RELAXED);
        qn_baton_init(&m.node[clients + i].turn);
        (void)qn_baton_go(&m.node[clients + i].turn, COMBINE);
    }
}

int qn_combining_join(const struct qn_backend *b, struct qn_backend_client *c)
{
    return qn_sync_join(parts_of(b).place, b->o.clients, &c->place, &c->node);
}

void qn_combining_leave(const struct qn_backend *b, struct qn_backend_client *c)
{
    const uint32_t node = QN_DELEGATE_MUTANT(FIRST_NODE) ? c->place : c->node;
    qn_sync_leave(parts_of(b).place, c->place, node);
}

bool qn_combining_enter(const struct qn_backend *b, struct qn_backend_client *c,
                        struct qn_combining_call *call)
{
    struct qn_combining m = parts_of(b);
    const struct request request = {.arg = call->arg, .op = call->op};
    struct qn_combining_node *spare = &m.node[c->node];
    qn_baton_init(&spare->turn);
    /* relaxed: the exchange publishes both. */
    qn_store(&spare->next, 0, QN_RELAXED);
    /* acq_rel -> itself at the next client, which will wait at the spare, and
     * so sees it empty. */
    call->node = qn_exchange(&m.list[c->domain].tail, c->node, QN_ACQ_REL);
    struct qn_combining_node *mine = &m.node[call->node];
    /* Published by `next`. */
    qn_copy_out_line(&mine->request, &request, sizeof request);
    /* release -> acquire in qn_combining_run: request, and the empty spare. */
    qn_store(&mine->next, c->node + 1, QN_RELEASE);
    c->node = call->node;
    if (qn_baton_wait(&mine->turn, &c->stats.waits) == COMBINE) {
        return false;
    }
    /* Published by the baton. */
    qn_copy_in_line(&call->result, &mine->result, sizeof call->result);
    return true;
}

/* Run the request of a node and say so to its client. */
static void serve(const struct qn_backend *b, struct qn_backend_client *c,
                  struct qn_combining_node *n, bool begun)
{
    struct request request;
    /* Published by `next`. */
    qn_copy_in_line(&request, &n->request, sizeof request);
    const uint64_t result =
        qn_backend_execute(b, begun, request.op, request.arg);
    /* Published by the baton. */
    qn_copy_out_line(&n->result, &result, sizeof result);
    c->stats.waits.wakes += qn_baton_go(&n->turn, SERVED);
}

void qn_combining_run(const struct qn_backend *b, struct qn_backend_client *c,
                      struct qn_combining_call *call)
{
    struct qn_combining m = parts_of(b);
    const bool begun = qn_backend_begin(b, c);
    uint32_t others = 0;
    /* relaxed: the client stored it. */
    uint32_t at = qn_load(&m.node[call->node].next, QN_RELAXED) - 1;
    uint32_t next;
    call->result = qn_backend_execute(b, begun, call->op, call->arg);
    /* acquire -> release in qn_combining_enter. */
    while ((next = qn_load(&m.node[at].next, QN_ACQUIRE)) != 0 &&
           others < b->o.batch) {
        serve(b, c, &m.node[at], begun);
        if (QN_DELEGATE_MUTANT(LATE_LINK)) {
            next = qn_load(&m.node[at].next, QN_ACQUIRE);
            if (next == 0) {
                return;
            }
        }
        at = next - 1;
        others++;
    }
    qn_backend_end(b, c, begun, others + 1);
    c->stats.waits.wakes += qn_baton_go(&m.node[at].turn, COMBINE);
}
