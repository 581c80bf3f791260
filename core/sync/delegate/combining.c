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
 * Where clients have cores of their own (`own_cores`), `reply` is all of that:
 * a word that is not there yet, the turn, or the result. It is stored once, and
 * where only operations use their data it orders nothing else.
 *
 * Invariants:
 *   - At most one node of a list has the turn; its client, or the next one
 *     that comes, is the combiner. A combiner passes the turn on as its last
 *     step, and touches no node behind that.
 *   - A served node belongs to its client at once: the combiner reads its link
 *     before it says so.
 *   - A combiner runs its own request and at most `batch` of others.
 *
 * Request and result are published by `next` and by the baton. All that the
 * operations touch are plain bytes; the turn publishes them.
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

/* Of `reply`; what is below is a result. */
#define NOT_YET  (QN_DELEGATE_ELSEWHERE | 1)
#define THE_TURN (QN_DELEGATE_ELSEWHERE | 2)

/* Batches of a client, one of which looks twice for another request. With 32
 * two clients that `auto` disturbs stay in step for so long that it has 0.91 of
 * the best backend on a simulated Xeon, with 4 it has 0.96. Where defects are
 * looked for, clients have few batches. */
#ifdef QN_DELEGATE_MUTANTS
#define IN_STEP 2u
#else
#define IN_STEP 4u
#endif

struct qn_combining_list {
    alignas(QN_CACHELINE) qn_a32 tail; /* a node; clients exchange it */
};

struct qn_combining_node {
    alignas(QN_CACHELINE) struct qn_baton turn; /* its client waits here */
    qn_a32 next; /* node + 1; 0: this one is empty. Its client */
    qn_a64 arg;  /* of the request; its client */
    qn_a32 op;
    qn_a64 reply; /* the combiner. With own_cores its client waits here */
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
        qn_store(&m.node[clients + i].reply, THE_TURN, QN_RELAXED);
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

/* relaxed: the exchange of enter publishes it. */
static void prepare(const struct qn_backend *b, struct qn_combining_node *spare)
{
    if (b->o.own_cores) {
        qn_store(&spare->reply, NOT_YET, QN_RELAXED);
    } else {
        qn_baton_init(&spare->turn);
    }
    qn_store(&spare->next, 0, QN_RELAXED);
}

/* Wait at a node. @return the result, or THE_TURN. */
static uint64_t await(const struct qn_backend *b, struct qn_backend_client *c,
                      struct qn_combining_node *n)
{
    struct qn_backoff p;
    uint64_t reply;
    if (!b->o.own_cores) {
        const uint32_t told = qn_baton_wait(&n->turn, &c->stats.waits);
        /* relaxed: published by the baton. */
        return told == COMBINE ? THE_TURN : qn_load(&n->reply, QN_RELAXED);
    }
    bool looked = false;
    /* acquire -> pass_turn; and serve, where the result is a release. */
    while ((reply = qn_load(&n->reply, QN_ACQUIRE)) == NOT_YET) {
        if (!looked) {
            qn_baton_backoff(&p); /* reads the clock */
            looked = true;
        }
        qn_baton_look_on(&p, &c->stats.waits);
    }
    return reply;
}

bool qn_combining_enter(const struct qn_backend *b, struct qn_backend_client *c,
                        struct qn_combining_call *call)
{
    struct qn_combining m = parts_of(b);
    prepare(b, &m.node[c->node]);
    /* acq_rel -> itself at the next client, which will wait at the spare, and
     * so sees it empty. */
    call->node = qn_exchange(&m.list[c->domain].tail, c->node, QN_ACQ_REL);
    struct qn_combining_node *mine = &m.node[call->node];
    /* relaxed twice: published by `next`. */
    qn_store(&mine->arg, call->arg, QN_RELAXED);
    qn_store(&mine->op, call->op, QN_RELAXED);
    /* release -> acquire in link_of: request, and the empty spare. */
    qn_store(&mine->next, c->node + 1, QN_RELEASE);
    c->node = call->node;
    call->result = await(b, c, mine);
    return call->result != THE_TURN;
}

/* Run the request of a node and say so to its client. */
static void serve(const struct qn_backend *b, struct qn_backend_client *c,
                  struct qn_combining_node *n, bool begun)
{
    /* acquire twice: published by `next`; and the loads are over when the reply
     * lets the client write its next request, also where that is no release. */
    const uint32_t op = qn_load(&n->op, QN_ACQUIRE);
    const uint64_t arg = qn_load(&n->arg, QN_ACQUIRE);
    const uint64_t reply = qn_backend_execute(b, begun, op, arg);
    if (!b->o.own_cores) {
        /* relaxed: the baton publishes it. */
        qn_store(&n->reply, reply, QN_RELAXED);
        c->stats.waits.wakes += qn_baton_go(&n->turn, SERVED);
    } else if (b->o.only_operations_use_data) {
        /* relaxed: the reply is all that its client sees. */
        qn_store(&n->reply, reply, QN_RELAXED);
    } else {
        /* release -> await: what the operation wrote. */
        qn_store(&n->reply, reply, QN_RELEASE);
    }
}

/* Let the client that is, or will be, at this node combine. */
static void pass_turn(const struct qn_backend *b, struct qn_backend_client *c,
                      struct qn_combining_node *n)
{
    if (b->o.own_cores) {
        /* release -> await: what all operations so far have written. */
        qn_store(&n->reply, THE_TURN, QN_RELEASE);
    } else {
        c->stats.waits.wakes += qn_baton_go(&n->turn, COMBINE);
    }
}

/* acquire -> release in qn_combining_enter: request, and the empty spare.
 * @return node + 1; 0: the node is empty. */
static uint32_t link_of(const struct qn_combining *m, uint32_t at)
{
    return qn_load(&m->node[at].next, QN_ACQUIRE);
}

/* The link of the last node of a batch that has served no other yet.
 *
 * Two clients that take turns may be in step: each request is linked just
 * behind the only look of the batch before it, so batches have one operation,
 * and nothing changes that. To load a tail that another client has exchanged
 * takes about as long as that one needs to link. It costs a transfer, so one
 * batch in IN_STEP does it, which ends the step. The second look is the first
 * one of a slower combiner. */
static uint32_t first_link(const struct qn_combining *m,
                           const struct qn_backend_client *c, uint32_t at)
{
    const uint32_t next = link_of(m, at);
    const bool again = next == 0 && c->stats.batches % IN_STEP == IN_STEP - 1;
    if (!again) {
        return next;
    }
    /* relaxed: only says whether to look again. */
    const uint32_t tail = qn_load(&m->list[c->domain].tail, QN_RELAXED);
    if (tail == at) {
        return 0;
    }
    return QN_DELEGATE_MUTANT(UNLINKED) ? tail + 1 : link_of(m, at);
}

void qn_combining_run(const struct qn_backend *b, struct qn_backend_client *c,
                      struct qn_combining_call *call)
{
    struct qn_combining m = parts_of(b);
    const bool begun = qn_backend_begin(b, c);
    uint32_t others = 0;
    /* relaxed: the client stored it. */
    uint32_t at = qn_load(&m.node[call->node].next, QN_RELAXED) - 1;
    call->result = qn_backend_execute(b, begun, call->op, call->arg);
    uint32_t next = first_link(&m, c, at);
    while (next != 0 && others < b->o.batch) {
        serve(b, c, &m.node[at], begun);
        if (QN_DELEGATE_MUTANT(LATE_LINK)) {
            next = link_of(&m, at);
            if (next == 0) {
                return;
            }
        }
        at = next - 1;
        others++;
        next = link_of(&m, at);
    }
    qn_backend_end(b, c, begun, others + 1);
    pass_turn(b, c, &m.node[at]);
}
