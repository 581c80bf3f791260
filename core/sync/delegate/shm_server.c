/*
 * The clients of shm_server: write a request to the own slot, wait for the
 * reply there. shm_server_internal.h has the layout, shm_scan.c the server and
 * the argument for sleepers and for late requests.
 *
 * *Pauses.* A client that looks at its reply all the time takes the line away
 * from the server and from the prefetcher that runs ahead of it. With many
 * clients it pays to keep away until the reply has come (published: up to 6
 * times the throughput). shm_pause_internal.h says for how long. With few
 * clients there is no pause, and no clock is read.
 */
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/mark.h"
#include "core/sync/delegate/backend.h"
#include "core/sync/delegate/backends.h"
#include "core/sync/delegate/shm_pause_internal.h"
#include "core/sync/delegate/shm_server_internal.h"
#include "core/wait/park.h"

/* As core/wait/baton.c. */
#define LOOK_NS     (1 * QN_US)
#define YIELDS      2u
/* With a core each, nothing is gained by a sleep: a reply that takes longer
 * comes from a server that does not run. */
#define OWN_LOOK_NS (200 * QN_US)

/* Scattered slots lie in a power of two of places, and in this number at least.
 */
#define SCATTERED_LEAST 128u

/* Scattered, slot i is at i times an odd number of places, so no two are at
 * one. That number, and what is left of all, is 49 at least.
 * @return the bytes that all slots take. */
static size_t lay_slots(struct qn_shm_layout *l,
                        const struct qn_delegate_opts *o)
{
    const size_t slot =
        (o->server.stride == 2 ? 2 : 1) * sizeof(struct qn_shm_slot);
    size_t slots = o->clients;
    l->step = slot;
    l->wrap = SIZE_MAX;
    if (o->server.scattered) {
        slots = SCATTERED_LEAST;
        while (slots < o->clients) {
            slots *= 2;
        }
        l->step = slot * (slots / 8 * 3 + 1);
        l->wrap = slots * slot - 1;
    }
    return slots * slot;
}

struct qn_shm_layout qn_shm_layout_of(const struct qn_delegate_opts *o)
{
    struct qn_shm_layout l;
    const uint32_t n = o->clients;
    l.grouped = lay_slots(&l, o);
    l.more = l.grouped + qn_align_up(n * sizeof(qn_a64), QN_CACHELINE);
    l.copy = qn_align_up(l.more + n * sizeof(struct qn_shm_more),
                         o->domains > 1 ? QN_SHM_PAGE : QN_CACHELINE);
    l.sends = qn_align_up(sizeof(struct qn_shm_head) +
                              n * sizeof(struct qn_sync_place),
                          QN_CACHELINE);
    l.served = l.sends + qn_align_up(n * sizeof(qn_a64), QN_CACHELINE);
    l.copies = qn_align_up(l.served + n * sizeof(qn_a32),
                           o->domains > 1 ? QN_SHM_PAGE : QN_CACHELINE);
    l.bytes = l.copies + o->domains * l.copy;
    return l;
}

static size_t shm_bytes(const struct qn_delegate_opts *o)
{
    const struct qn_server_opts *s = &o->server;
    if (s->stride > 2 || s->pause > QN_SERVER_NONE ||
        (s->pause == QN_SERVER_FIXED && s->pause_ns == 0) ||
        (s->group_replies && o->clients < o->domains)) {
        return 0;
    }
    return qn_shm_layout_of(o).bytes;
}

/* Zero is the state in which none serves and no request was sent. */
static int shm_format(void *memory, const struct qn_delegate_opts *o)
{
    (void)memory;
    (void)o;
    return QN_OK;
}

/* ---- join and leave ---- */

static struct qn_shm_lines lines_of(const struct qn_backend *b,
                                    const struct qn_backend_client *c)
{
    const struct qn_shm_layout l = qn_shm_layout_of(&b->o);
    return qn_shm_lines_of(b, &l, qn_server_endpoint_where(c->server.endpoint),
                           c->place);
}

/* The toggles of this copy, and the count of requests in it. Its replies were
 * taken by this client, or by one that had the place before. */
static void read_slot(struct qn_server_client *c, const struct qn_shm_lines *l)
{
    c->toggles = 0;
    for (uint32_t i = 0; i < QN_SERVER_OPEN; i++) {
        /* relaxed: see above; join has acquired what a former client took. */
        c->toggles |=
            (uint32_t)(qn_load(qn_shm_reply_of(l, i), QN_RELAXED) >> 63) << i;
    }
}

/* With grouped replies each domain has its share of the places, so that those
 * that share a line are neighbours. */
static int take_place(const struct qn_backend *b, struct qn_backend_client *c,
                      uint32_t domain)
{
    const uint32_t n = b->o.clients;
    const uint32_t domains = b->o.server.group_replies ? b->o.domains : 1;
    const uint32_t first = domains > 1 ? n * domain / domains : 0;
    const uint32_t end = domains > 1 ? n * (domain + 1) / domains : n;
    if (first == end) {
        return QN_EAGAIN; /* more domains than clients */
    }
    const int rc = qn_sync_join(qn_shm_places(b) + first, end - first,
                                &c->place, &c->node);
    if (rc == QN_OK) {
        c->place += first;
    }
    return rc;
}

static int shm_join(const struct qn_backend *b, struct qn_backend_client *c,
                    const struct qn_delegate_join_opts *o)
{
    const struct qn_shm_layout l = qn_shm_layout_of(&b->o);
    const int rc = take_place(b, c, o->domain);
    if (rc != QN_OK) {
        return rc;
    }
    struct qn_server_client *s = &c->server;
    /* relaxed: join has acquired what the former client of the place wrote. */
    s->endpoint = qn_load(&qn_shm_sends(b, &l)[c->place], QN_RELAXED);
    const struct qn_shm_lines lines = lines_of(b, c);
    s->sent = s->collected =
        (uint32_t)(qn_load(&lines.slot->request, QN_RELAXED) >> 32);
    s->origin = s->sent;
    read_slot(s, &lines);
    s->found = 0;
    (void)qn_fetch_max(&qn_shm_head_of(b)->places, c->place + 1);
    return QN_OK;
}

static void shm_leave(const struct qn_backend *b, struct qn_backend_client *c)
{
    QN_ASSERT(c->server.sent == c->server.collected);
    qn_sync_leave(qn_shm_places(b), c->place, c->node);
}

/* ---- requests ---- */

/* Nothing is on its way: from now on send to where the endpoint says. */
static void follow_endpoint(const struct qn_backend *b,
                            struct qn_backend_client *c, uint64_t endpoint)
{
    const struct qn_shm_layout l = qn_shm_layout_of(&b->o);
    const uint32_t sent = c->server.sent;
    c->server.endpoint = endpoint;
    const struct qn_shm_lines lines = lines_of(b, c);
    read_slot(&c->server, &lines);
    /* relaxed: the next store publishes it. */
    qn_store(&lines.slot->request, (uint64_t)sent << 32 | sent, QN_RELAXED);
    /* release -> domain_of (shm_scan.c). */
    qn_store(&qn_shm_sends(b, &l)[c->place], endpoint, QN_RELEASE);
}

/* @return its entry. */
static uint32_t submit_entry(const struct qn_backend *b,
                             struct qn_backend_client *c, uint32_t op,
                             uint64_t arg)
{
    struct qn_server_client *s = &c->server;
    QN_DASSERT(op < QN_DELEGATE_OPS);
    const uint32_t number = s->sent + 1;
    if (s->sent == s->collected) {
        /* relaxed: an old value is an endpoint under which a server looks, too.
         */
        const uint64_t endpoint = qn_server_endpoint_name(
            qn_load(&qn_server_endpoint_of(b)->word, QN_RELAXED));
        if (endpoint != s->endpoint) {
            follow_endpoint(b, c, endpoint);
        }
        s->origin = number;
    }
    const struct qn_shm_lines l = lines_of(b, c);
    const uint32_t entry = qn_shm_entry_number(number, s->origin);
    struct qn_shm_entry *e = qn_shm_entry_of(&l, entry);
    s->toggles ^= 1u << entry;
    /* relaxed: `request` publishes them. */
    qn_store(&e->arg, arg, QN_RELAXED);
    qn_store(&e->op, op | (s->toggles >> entry & 1) << 31, QN_RELAXED);
    /* release -> serve_slot (shm_scan.c). */
    qn_store(&l.slot->request, (uint64_t)number << 32 | s->origin, QN_RELEASE);
    s->sent = number;
    return entry;
}

/* ---- waiting ---- */

/* As was promised, and as long as there are no more clients. */
static bool own_core(const struct qn_backend *b)
{
    /* relaxed: a figure. */
    return qn_load(&qn_shm_head_of(b)->places, QN_RELAXED) < b->o.server.cores;
}

static void looks_begin(const struct qn_backend *b, struct qn_backoff *p)
{
    struct qn_backoff_opts o = {.look_ns = LOOK_NS, .yields = YIELDS};
    if (own_core(b)) {
        o.look_ns = OWN_LOOK_NS;
    }
    if (!qn_may_look()) {
        o = (struct qn_backoff_opts){0};
    }
    qn_backoff_init(p, &o);
}

static bool is_there(const struct qn_backend_client *c,
                     const struct qn_shm_lines *l, uint32_t entry,
                     uint64_t *value)
{
    /* acquire -> store_reply (shm_scan.c). */
    *value = qn_load(qn_shm_reply_of(l, entry), QN_ACQUIRE);
    return *value >> 63 == (c->server.toggles >> entry & 1);
}

/* Sleep until the server has seen that, or until the reply is there. */
static void park(const struct qn_backend *b, struct qn_backend_client *c,
                 uint32_t entry)
{
    const struct qn_shm_lines l = lines_of(b, c);
    uint64_t value;
    /* relaxed: the fence, C, orders it. */
    qn_store(&l.slot->parked, 1, QN_RELAXED);
    /* C: see "Sleep" in shm_scan.c. */
    qn_fence(QN_SEQ_CST);
    if (!is_there(c, &l, entry, &value)) {
        qn_shm_ring(b, &c->stats.waits);
        c->stats.waits.parks++;
        (void)qn_park_word(&l.slot->parked, 1, QN_TIME_NEVER);
    }
    qn_store(&l.slot->parked, 0, QN_RELAXED);
}

/* What a client does beside looking. */
struct pause {
    uint32_t ns;     /* between two looks; 0: nothing */
    qn_time_t until; /* before the first one */
    qn_time_t looks; /* at that time */
};

/* An adaptive pause wants a core of the client's own: on a shared one, where
 * replies wait for the server to get the core, it would use that up.
 * @param found  When the last reply was found; 0: the one that is wanted now
 *               may have come with it. */
static struct pause pause_of(const struct qn_backend *b, qn_time_t found)
{
    struct pause w = {.ns = 0};
    if (b->o.server.pause == QN_SERVER_FIXED) {
        w.ns = b->o.server.pause_ns;
        w.until = qn_clock_now() + w.ns;
    } else if (b->o.server.pause == QN_SERVER_ADAPTIVE && qn_may_look() &&
               own_core(b)) {
        /* relaxed: a figure. */
        const uint32_t scan_ns =
            qn_load(&qn_shm_head_of(b)->scan_ns, QN_RELAXED);
        w.until = qn_shm_keep_away(found, scan_ns);
        w.ns = w.until > 0 ? scan_ns / 2 : 0;
    }
    return w;
}

/* No look, so no access to the line. */
static void keep_away(struct pause *w, qn_time_t until)
{
    w->looks = qn_clock_now();
    while (w->looks < until) {
        qn_pause();
        w->looks = qn_clock_now();
    }
}

/* Nothing was found: let time pass, in whichever way is due. */
static void wait_on(const struct qn_backend *b, struct qn_backend_client *c,
                    struct pause *w, struct qn_backoff *p, uint32_t entry)
{
    /* A hint, without a fence: `park` looks behind one. */
    qn_shm_ring(b, &c->stats.waits);
    if (!qn_backoff_again(p)) {
        park(b, c, entry);
        c->stats.waits.yields += p->yields;
        qn_backoff_reset(p);
    } else if (w->ns > 0) {
        keep_away(w, qn_clock_now() + w->ns);
    }
}

/* @param found  As of pause_of; filled with the time of the look that has found
 *               the reply, unless there is no pause. */
static uint64_t await_reply(const struct qn_backend *b,
                            struct qn_backend_client *c, uint32_t entry,
                            qn_time_t *found)
{
    const struct qn_shm_lines l = lines_of(b, c);
    struct pause w = pause_of(b, *found);
    struct qn_backoff p;
    uint64_t value;
    if (w.ns > 0) {
        keep_away(&w, w.until);
    }
    looks_begin(b, &p);
    while (!is_there(c, &l, entry, &value)) {
        wait_on(b, c, &w, &p, entry);
    }
    *found = w.looks;
    return value & QN_DELEGATE_VALUE;
}

/* ---- the type ---- */

static uint64_t shm_call(const struct qn_backend *b,
                         struct qn_backend_client *c, uint32_t op, uint64_t arg)
{
    QN_ASSERT(c->server.sent == c->server.collected);
    const uint32_t entry = submit_entry(b, c, op, arg);
    c->server.collected++;
    return await_reply(b, c, entry, &c->server.found);
}

static int shm_submit(const struct qn_backend *b, struct qn_backend_client *c,
                      uint32_t op, uint64_t arg)
{
    if (c->server.sent - c->server.collected == QN_SERVER_OPEN) {
        return QN_EAGAIN;
    }
    (void)submit_entry(b, c, op, arg);
    /* C: a server that is about to sleep sees the request, or this sees that
     * it sleeps: here no look follows. */
    qn_fence(QN_SEQ_CST);
    qn_shm_ring(b, &c->stats.waits);
    return QN_OK;
}

static int shm_collect(const struct qn_backend *b, struct qn_backend_client *c,
                       uint64_t *result)
{
    struct qn_server_client *s = &c->server;
    if (s->sent == s->collected) {
        return QN_ENOENT;
    }
    const uint32_t entry = qn_shm_entry_number(++s->collected, s->origin);
    qn_time_t found = 0; /* several replies come with one scan */
    *result = await_reply(b, c, entry, &found);
    return QN_OK;
}

static int shm_where(const struct qn_backend *b,
                     const struct qn_delegate_server *s, uint32_t *where)
{
    *where = s->domain;
    return s->domain < b->o.domains ? QN_OK : QN_EINVAL;
}

static void shm_ring(const struct qn_backend *b)
{
    struct qn_wait_stats unused = {0};
    /* C: the stop, or that the server sleeps. */
    qn_fence(QN_SEQ_CST);
    qn_shm_ring(b, &unused);
}

static const struct qn_server_type server = {
    .where = shm_where,
    .begin = qn_shm_begin,
    .scan = qn_shm_scan,
    .sleep = qn_shm_sleep,
    .ring = shm_ring,
    .end = qn_shm_end,
    .submit = shm_submit,
    .collect = shm_collect,
};

const struct qn_delegate_type qn_delegate_shm_server = {
    .name = "shm_server",
    .domains = true,
    .bytes = shm_bytes,
    .format = shm_format,
    .join = shm_join,
    .leave = shm_leave,
    .call = shm_call,
    .server = &server,
};
