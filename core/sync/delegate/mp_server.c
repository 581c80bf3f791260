/*
 * MP-Server: requests go to the server's queue of words, and each reply to the
 * queue of its client. The server waits for nothing but requests, so it may be
 * sent any number if its port has no other use (port.h).
 *
 * *Move.* What is on its way to a server that leaves must still be answered, at
 * its queue, which no other server reads. So each client has a line that tells
 * under which generation of the endpoint it sends, and how many requests it has
 * sent under it:
 *
 *     client   line = {generation, sent + 1};  load endpoint;  send, if open
 *     server   endpoint: stop;  load lines;  serve until all that were sent
 *              are answered
 *
 * Either the client sees the stop, and takes its line back, or the server sees
 * the line, and waits for the request. Clients that find no server wait at
 * `turn`, which each new one moves on.
 *
 * *Sleep.* The thread that stops a server need not have a port, so it could not
 * ring a doorbell. So a server sleeps at its endpoint, and each request and
 * each stop looks there:
 *
 *     server   asleep = 1;        fence, S;  a request, or a stop? else sleep
 *     client   send a request;    fence, C;  asleep? wake the server
 *
 * Of the two fences one is first; if it is S, the client sees that the server
 * sleeps, else the server sees the request. Where threads do not sleep while
 * they wait for words (no doorbells) there is neither.
 */
#include "core/base/bits.h"
#include "core/sync/clients.h"
#include "core/sync/delegate/backend.h"
#include "core/sync/delegate/backends.h"
#include "core/sync/delegate/endpoint_internal.h"
#include "core/sync/port.h"
#include "core/sync/sync_mutant.h"
#include "core/wait/park.h"
#include "core/words/attachment.h"

#define LEAVE_NS    (1 * QN_MS) /* between looks at lines that are not settled */
#define REPLY_WORDS 2u

struct line {
    alignas(QN_CACHELINE) qn_a64 sent; /* generation << 32 | requests */
};

struct head {
    struct qn_server_endpoint endpoint; /* first */
    alignas(QN_CACHELINE) qn_a32 turn;  /* servers that have come */
    qn_a32 object;      /* its number at the device, once a client has joined */
    struct line line[]; /* [clients]; then places */
};

static struct head *head_of(const struct qn_backend *b)
{
    return b->memory;
}

static struct qn_sync_place *places(struct head *h, uint32_t clients)
{
    return (struct qn_sync_place *)(h->line + clients);
}

static size_t mp_bytes(const struct qn_delegate_opts *o)
{
    return sizeof(struct head) + o->clients * sizeof(struct line) +
           o->clients * sizeof(struct qn_sync_place);
}

static int mp_format(void *memory, const struct qn_delegate_opts *o)
{
    qn_sync_places_format(places(memory, o->clients), o->clients);
    return QN_OK;
}

static int mp_join(const struct qn_backend *b, struct qn_backend_client *c,
                   const struct qn_delegate_join_opts *o)
{
    struct head *h = head_of(b);
    if (o->port == NULL) {
        return QN_EINVAL;
    }
    int rc = qn_sync_promise(o->port, REPLY_WORDS * QN_SERVER_OPEN);
    if (rc != QN_OK) {
        return rc;
    }
    rc = qn_sync_join(places(h, b->o.clients), b->o.clients, &c->place,
                      &c->node);
    if (rc != QN_OK) {
        qn_sync_promise_back(o->port, REPLY_WORDS * QN_SERVER_OPEN);
        return rc;
    }
    c->port = o->port;
    c->object = qn_sync_object(c->port, &h->object);
    return QN_OK;
}

static void mp_leave(const struct qn_backend *b, struct qn_backend_client *c)
{
    QN_ASSERT(c->server.sent == c->server.collected);
    qn_sync_leave(places(head_of(b), b->o.clients), c->place, c->node);
    qn_sync_promise_back(c->port, REPLY_WORDS * QN_SERVER_OPEN);
}

/* ---- clients ---- */

static bool is_open(uint64_t endpoint)
{
    return (endpoint & (QN_ENDPOINT_SERVES | QN_ENDPOINT_STOP)) ==
           QN_ENDPOINT_SERVES;
}

/* The line of a client that has sent this number of requests under a
 * generation. */
static uint64_t line_of(uint64_t generation, uint32_t sent)
{
    return generation << 32 | sent;
}

/* Wait until the endpoint is open. @return its word. */
static uint64_t open_endpoint(const struct qn_backend *b,
                              struct qn_backend_client *c)
{
    struct head *h = head_of(b);
    for (;;) {
        /* acquire -> mp_begin: the endpoint that was taken before. */
        const uint32_t turn = qn_load(&h->turn, QN_ACQUIRE);
        /* relaxed: announce looks again behind its line. */
        const uint64_t endpoint = qn_load(&h->endpoint.word, QN_RELAXED);
        if (is_open(endpoint)) {
            return endpoint;
        }
        c->stats.waits.parks++;
        (void)qn_park_word(&h->turn, turn, QN_TIME_NEVER);
    }
}

/* Say in the own line that one request more is sent, as long as the server
 * answers it. @return where it is. */
static uint32_t announce(const struct qn_backend *b,
                         struct qn_backend_client *c)
{
    struct head *h = head_of(b);
    qn_a64 *line = &h->line[c->place].sent;
    for (;;) {
        const uint64_t endpoint = open_endpoint(b, c);
        const uint64_t generation = qn_server_endpoint_generation(endpoint);
        /* relaxed: of this client, or of one that has left its place. */
        const uint64_t was = qn_load(line, QN_RELAXED);
        const uint32_t sent =
            was >> 32 == (generation & UINT32_MAX) ? (uint32_t)was : 0;
        /* relaxed twice: the fence orders them, line, then endpoint; mp_end has
         * stop, then lines. (A store of seq_cst is two fences where memory is
         * weakly ordered.) */
        qn_store(line, line_of(generation, sent + 1), QN_RELAXED);
        qn_fence(QN_SEQ_CST);
        if (qn_load(&h->endpoint.word, QN_RELAXED) == endpoint) {
            return qn_server_endpoint_where(endpoint);
        }
        /* relaxed: mp_end looks until the line is settled. */
        qn_store(line, line_of(generation, sent), QN_RELAXED);
    }
}

static int mp_submit(const struct qn_backend *b, struct qn_backend_client *c,
                     uint32_t op, uint64_t arg)
{
    if (c->server.sent - c->server.collected == QN_SERVER_OPEN) {
        return QN_EAGAIN;
    }
    const uint32_t where = announce(b, c);
    const uint64_t words[QN_SYNC_WORDS] = {
        qn_sync_head(c->port, c->object, QN_SYNC_REQUEST, c->server.sent++),
        (uint64_t)c->place << 16 | op, arg};
    qn_sync_send_silently(c->port, where, words, QN_SYNC_WORDS);
    if (qn_words_sleeps(c->port->device)) {
        /* C: see "Sleep". */
        qn_fence(QN_SEQ_CST);
        qn_server_endpoint_ring(qn_server_endpoint_of(b), &c->stats.waits);
    }
    return QN_OK;
}

/* Replies of two servers may come in any order: the tag finds the right one. */
static int mp_collect(const struct qn_backend *b, struct qn_backend_client *c,
                      uint64_t *result)
{
    uint64_t reply[QN_SYNC_WORDS];
    (void)b;
    if (c->server.sent == c->server.collected) {
        return QN_ENOENT;
    }
    const uint64_t want =
        qn_sync_head(c->port, c->object, QN_SYNC_REPLY, c->server.collected++);
    qn_sync_receive(c->port, want, QN_SYNC_OBJECT | QN_SYNC_KIND | QN_SYNC_TAG,
                    reply, &c->stats.waits);
    *result = reply[1];
    return QN_OK;
}

static uint64_t mp_call(const struct qn_backend *b, struct qn_backend_client *c,
                        uint32_t op, uint64_t arg)
{
    uint64_t result = 0;
    QN_ASSERT(c->server.sent == c->server.collected);
    (void)mp_submit(b, c, op, arg);
    (void)mp_collect(b, c, &result);
    return result;
}

/* ---- the server ---- */

/* What may be sent to it: each thread of the device has a client. */
static uint32_t words_most(const struct qn_backend *b,
                           const struct qn_sync_port *p)
{
    return QN_SYNC_WORDS * QN_SERVER_OPEN *
           QN_MIN(b->o.clients, qn_words_nodes(p->device));
}

static int mp_where(const struct qn_backend *b,
                    const struct qn_delegate_server *s, uint32_t *where)
{
    if (s->port == NULL) {
        return QN_EINVAL;
    }
    uint32_t words = words_most(b, s->port);
    const int rc = qn_sync_promise_server(s->port, &words);
    if (rc == QN_OK) {
        qn_sync_promise_back(s->port, words); /* the endpoint may be taken */
        *where = s->port->address;
    }
    return rc;
}

static void mp_begin(const struct qn_backend *b, struct qn_delegate_server *s)
{
    struct head *h = head_of(b);
    uint32_t words = words_most(b, s->port);
    const int rc = qn_sync_promise_server(s->port, &words);
    QN_ASSERT(rc == QN_OK); /* as mp_where, which this thread has just called */
    s->promised = words;
    for (uint32_t i = 0; i < b->o.clients; i++) {
        s->served[i] = 0;
    }
    /* release -> open_endpoint. */
    qn_fetch_add(&h->turn, 1, QN_RELEASE);
    qn_unpark_word(&h->turn);
}

static uint32_t mp_scan(const struct qn_backend *b,
                        struct qn_delegate_server *s)
{
    const uint32_t object = qn_sync_object(s->port, &head_of(b)->object);
    const uint64_t want = qn_sync_head(s->port, object, QN_SYNC_REQUEST, 0);
    uint64_t words[QN_SYNC_WORDS];
    uint32_t served = 0;
    while (served < b->o.batch &&
           qn_sync_try_receive(s->port, want, QN_SYNC_OBJECT | QN_SYNC_KIND,
                               words)) {
        const uint64_t reply[REPLY_WORDS] = {
            qn_sync_head(s->port, object, QN_SYNC_REPLY,
                         qn_sync_head_tag(words[0])),
            qn_backend_execute(b, true, words[1] & 0xffff, words[2])};
        const uint64_t place = words[1] >> 16; /* as another process says */
        s->served[place % b->o.clients]++;
        qn_sync_send(s->port, qn_sync_head_address(words[0]), reply,
                     REPLY_WORDS, &s->stats.waits);
        served++;
    }
    return served;
}

/* Sleep until a request has come, or until `deadline`; not at all if the
 * endpoint has one of the bits. */
static void sleep_at_endpoint(const struct qn_backend *b,
                              struct qn_delegate_server *s, uint64_t bits,
                              qn_time_t deadline)
{
    struct qn_server_endpoint *endpoint = qn_server_endpoint_of(b);
    struct qn_device *d = s->port->device;
    if (!qn_words_sleeps(d)) {
        qn_words_wait(d, s->port->queue, deadline);
        return;
    }
    /* relaxed: the fence orders it. */
    qn_store(&endpoint->asleep, 1, QN_RELAXED);
    /* S: see "Sleep". */
    qn_fence(QN_SEQ_CST);
    /* relaxed: as above. */
    if ((qn_load(&endpoint->word, QN_RELAXED) & bits) == 0 &&
        qn_words_empty(d, s->port->queue)) {
        s->stats.waits.parks++;
        (void)qn_park_word(&endpoint->asleep, 1, deadline);
    }
    /* relaxed: a ring that comes too late wakes a later sleep, which takes
     * that. */
    qn_store(&endpoint->asleep, 0, QN_RELAXED);
}

static void mp_sleep(const struct qn_backend *b, struct qn_delegate_server *s)
{
    sleep_at_endpoint(b, s, QN_ENDPOINT_STOP, QN_TIME_NEVER);
}

static void mp_ring(const struct qn_backend *b)
{
    struct qn_wait_stats unused = {0};
    /* C: the stop, or that the server sleeps. */
    qn_fence(QN_SEQ_CST);
    qn_server_endpoint_ring(qn_server_endpoint_of(b), &unused);
}

static bool is_settled(const struct qn_backend *b,
                       const struct qn_delegate_server *s, uint32_t place)
{
    /* seq_cst: after the stop; see announce. */
    const uint64_t line = qn_load(&head_of(b)->line[place].sent, QN_SEQ_CST);
    return line >> 32 != (s->generation & UINT32_MAX) ||
           (uint32_t)line == s->served[place];
}

static void mp_end(const struct qn_backend *b, struct qn_delegate_server *s)
{
    /* seq_cst: then the lines. Its own, so that it is in front of them. */
    qn_fetch_or(&head_of(b)->endpoint.word, QN_ENDPOINT_STOP, QN_SEQ_CST);
    for (uint32_t i = 0; i < b->o.clients; i++) {
        while (!is_settled(b, s, i) && !QN_SYNC_MUTANT(FORGET_LATE)) {
            const uint32_t served = mp_scan(b, s);
            s->stats.served += served;
            if (served == 0) {
                sleep_at_endpoint(b, s, 0, qn_clock_now() + LEAVE_NS);
            }
        }
    }
    qn_sync_promise_back(s->port, s->promised);
    s->promised = 0;
}

static const struct qn_server_type mp_server = {
    .where = mp_where,
    .begin = mp_begin,
    .scan = mp_scan,
    .sleep = mp_sleep,
    .ring = mp_ring,
    .end = mp_end,
    .submit = mp_submit,
    .collect = mp_collect,
};

const struct qn_delegate_type qn_delegate_mp_server = {
    .name = "mp_server",
    .words = true,
    .server = &mp_server,
    .bytes = mp_bytes,
    .format = mp_format,
    .join = mp_join,
    .leave = mp_leave,
    .call = mp_call,
};
