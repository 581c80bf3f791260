/*
 * The server of shm_server: looks at the slots one after the other, which is
 * the order that a prefetcher follows.
 *
 * *A late request.* A client sends to the copy of the domain that it has read
 * in the endpoint, and may do so long after the server has moved. So its line
 * in `sends` tells under which endpoint it sends; it changes that only while it
 * has no request on its way, and before the first request under the new one.
 * The server looks at the copy that the line tells, until it tells the server's
 * own generation: from then on the client will not go back. A client that does
 * not call costs the server a look at a line that does not change.
 *
 * *Sleep.* Neither side pays a fence for a sleeper that is not there:
 *
 *     server                         client
 *     parked? reply   (each scan)    parked = 1
 *     ...                            fence
 *     asleep = 1                     reply there? go on
 *     fence                          asleep? wake the server
 *     request? parked?               sleep while parked
 *     sleep while asleep
 *
 * Of the two fences one is first. If the server's: the client finds the server
 * asleep, or its reply. If the client's: the server's scan behind the fence
 * finds the request, or that the client has parked. While the server is awake
 * it finds that in some later scan. A client that is woken before its reply
 * (a streaming store) has arrived parks again.
 *
 * *The last fence.* A streaming store arrives at any time. So the server sends
 * its last ones home by the same fence before it sleeps, and before it gives
 * the endpoint back: else it would look for parked clients before their replies
 * are there, and none would wake them.
 */
#include "core/base/assert.h"
#include "core/sync/delegate/backend.h"
#include "core/sync/delegate/server_mutant.h"
#include "core/sync/delegate/shm_pause_internal.h"
#include "core/sync/delegate/shm_server_internal.h"
#include "core/wait/park.h"

#define GROUP (QN_CACHELINE / sizeof(uint64_t)) /* replies in a line */

/* One scan. */
struct scan {
    const struct qn_backend *b;
    struct qn_delegate_server *s;
    struct qn_shm_layout layout;
    uint32_t count; /* operations that were run */
    /* Grouped replies that have not been written. */
    uint32_t pending;
    qn_a64 *to[GROUP];
    uint64_t reply[GROUP];
};

static struct scan scan_of(const struct qn_backend *b,
                           struct qn_delegate_server *s)
{
    struct scan k;
    k.b = b;
    k.s = s;
    k.layout = qn_shm_layout_of(&b->o);
    k.count = k.pending = 0;
    return k;
}

/* Where the client sends. Its line is written by it, so it is checked. */
static uint32_t domain_of(const struct scan *k, uint32_t place)
{
    uint64_t *word = &k->s->current[place / 64];
    const uint64_t bit = UINT64_C(1) << place % 64;
    if ((*word & bit) != 0) {
        return k->s->domain;
    }
    /* acquire -> follow_endpoint (shm_server.c): the request word in the new
     * copy is valid. */
    const uint64_t endpoint =
        qn_load(&qn_shm_sends(k->b, &k->layout)[place], QN_ACQUIRE);
    if (qn_server_endpoint_generation(endpoint) == k->s->generation ||
        QN_SERVER_MUTANT(FORGET_LATE)) {
        *word |= bit;
        return k->s->domain;
    }
    const uint32_t where = qn_server_endpoint_where(endpoint);
    return where < k->b->o.domains ? where : k->s->domain;
}

static void store_reply(const struct scan *k, qn_a64 *to, uint64_t reply)
{
    if (k->b->o.server.only_server_uses_data) {
        qn_store_streaming(to, reply);
    } else {
        /* release -> await_reply (shm_server.c): what the operation wrote. */
        qn_store(to, reply, QN_RELEASE);
    }
}

static void run_entry(struct scan *k, const struct qn_shm_lines *l,
                      uint32_t entry)
{
    struct qn_shm_entry *e = qn_shm_entry_of(l, entry);
    /* relaxed: behind the acquire load of `request`. */
    const uint32_t op = qn_load(&e->op, QN_RELAXED);
    const uint64_t arg = qn_load(&e->arg, QN_RELAXED);
    const uint64_t toggle = (uint64_t)(op >> 31) << 63;
    const uint64_t reply =
        qn_backend_execute(k->b, true, op & (QN_DELEGATE_OPS - 1), arg) |
        toggle;
    k->count++;
    if (entry == 0 && k->b->o.server.group_replies) {
        k->to[k->pending] = l->reply;
        k->reply[k->pending++] = reply;
    } else {
        store_reply(k, qn_shm_reply_of(l, entry), reply);
    }
}

static void wake_client(struct scan *k, struct qn_shm_slot *slot)
{
    /* relaxed: it publishes nothing. The client looks at its reply. */
    if (qn_exchange(&slot->parked, 0, QN_RELAXED) != 0) {
        qn_unpark_word(&slot->parked);
        k->s->stats.waits.wakes++;
    }
}

static void serve_slot(struct scan *k, uint32_t place)
{
    const struct qn_shm_lines l =
        qn_shm_lines_of(k->b, &k->layout, domain_of(k, place), place);
    /* acquire -> submit_entry (shm_server.c): the entries. */
    const uint64_t request = qn_load(&l.slot->request, QN_ACQUIRE);
    /* relaxed: see "Sleep". In front of the reply: one that streams takes the
     * line to memory, and a look behind it would fetch it from there. */
    const bool parked = qn_load(&l.slot->parked, QN_RELAXED) != 0;
    uint32_t *served = &k->s->served[place];
    while (*served != (uint32_t)(request >> 32)) {
        run_entry(k, &l, qn_shm_entry_number(++*served, (uint32_t)request));
    }
    if (parked) {
        wake_client(k, l.slot);
    }
}

static void write_group(struct scan *k)
{
    for (uint32_t i = 0; i < k->pending; i++) {
        store_reply(k, k->to[i], k->reply[i]);
    }
    k->pending = 0;
}

/* `places` of them have joined. The clock is read only for pauses that follow
 * from it. */
static void tell_scan(const struct scan *k, uint32_t places)
{
    if (k->b->o.server.pause == QN_SERVER_ADAPTIVE &&
        places < k->b->o.server.cores &&
        qn_shm_scan_ended(&k->s->scans, k->count > 0 ? qn_clock_now() : 0)) {
        /* relaxed: a figure. */
        qn_store(&qn_shm_head_of(k->b)->scan_ns, (uint32_t)k->s->scans.told_ns,
                 QN_RELAXED);
    }
}

uint32_t qn_shm_scan(const struct qn_backend *b, struct qn_delegate_server *s)
{
    struct scan k = scan_of(b, s);
    /* relaxed: see "Sleep": a client that has joined rings, too, if it waits.
     */
    const uint32_t places =
        (uint32_t)qn_load(&qn_shm_head_of(b)->places, QN_RELAXED);
    for (uint32_t place = 0; place < places; place++) {
        serve_slot(&k, place);
        if (place % GROUP == GROUP - 1 || place + 1 == places) {
            write_group(&k);
        }
    }
    tell_scan(&k, places);
    return k.count;
}

void qn_shm_begin(const struct qn_backend *b, struct qn_delegate_server *s)
{
    const struct qn_shm_layout l = qn_shm_layout_of(&b->o);
    const qn_a32 *served = qn_shm_served(b, &l);
    /* With one copy there is no other place. */
    const uint64_t all = b->o.domains == 1 ? UINT64_MAX : 0;
    for (uint32_t i = 0; i < QN_SERVER_PLACES / 64; i++) {
        s->current[i] = all;
    }
    for (uint32_t i = 0; i < b->o.clients; i++) {
        /* relaxed: the endpoint has ordered what a former server has stored. */
        s->served[i] = qn_load(&served[i], QN_RELAXED);
    }
    s->scans = (struct qn_server_scans){0};
    /* relaxed: a figure. */
    qn_store(&qn_shm_head_of(b)->scan_ns, 0, QN_RELAXED);
}

/* S: see "Sleep", and "The last fence". */
static void last_fence(void)
{
    if (!QN_SERVER_MUTANT(NO_LAST_FENCE)) {
        qn_fence(QN_SEQ_CST);
    }
}

void qn_shm_sleep(const struct qn_backend *b, struct qn_delegate_server *s)
{
    struct qn_server_endpoint *endpoint = qn_server_endpoint_of(b);
    /* relaxed: the fence, S, orders it. */
    qn_store(&endpoint->asleep, 1, QN_RELAXED);
    last_fence();
    const bool stopped =
        (qn_load(&endpoint->word, QN_RELAXED) & QN_ENDPOINT_STOP) != 0;
    const uint32_t found = qn_shm_scan(b, s);
    if (found == 0 && !stopped) {
        s->stats.waits.parks++;
        (void)qn_park_word(&endpoint->asleep, 1, QN_TIME_NEVER);
    }
    s->stats.served += found;
    /* relaxed: a ring that comes too late wakes a later sleep, which takes
     * that. */
    qn_store(&endpoint->asleep, 0, QN_RELAXED);
}

void qn_shm_end(const struct qn_backend *b, struct qn_delegate_server *s)
{
    struct scan k = scan_of(b, s);
    qn_a32 *served = qn_shm_served(b, &k.layout);
    for (uint32_t i = 0; i < b->o.clients; i++) {
        /* relaxed: the endpoint's release publishes them. */
        qn_store(&served[i], s->served[i], QN_RELAXED);
    }
    last_fence();
    const uint32_t places =
        (uint32_t)qn_load(&qn_shm_head_of(b)->places, QN_RELAXED);
    for (uint32_t place = 0; place < places; place++) {
        struct qn_shm_slot *slot =
            qn_shm_lines_of(b, &k.layout, domain_of(&k, place), place).slot;
        if (qn_load(&slot->parked, QN_RELAXED) != 0 &&
            !QN_SERVER_MUTANT(NO_LAST_WAKE)) {
            wake_client(&k, slot); /* with a request it parks again */
        }
    }
}

void qn_shm_ring(const struct qn_backend *b, struct qn_wait_stats *w)
{
    /* The caller's fence is C. */
    qn_server_endpoint_ring(qn_server_endpoint_of(b), w);
}
