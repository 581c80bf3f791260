/*
 * The joiner, and what both ends share.
 *
 *     IDLE --begin--> ASK --WANT--> READ --END read--> INSTALL --> IDLE
 *                      ^             |                    |
 *                      '-------------'--------------------'
 *                    refused, silent, gone, damaged, does not fit
 *
 * Chunks are received inside the driver's turn and read in the turn of this
 * module, so that the work of one turn is bounded. A chunk is *taken* when it
 * has arrived and there is room for WINDOW more behind it. The donor therefore
 * sends while this node reads, and both have work whenever they get a core.
 * Each attempt has a number, and messages of other attempts are dropped: a
 * donor that was given up may still have chunks in the channel.
 *
 * Choice of the donor: the next node in turn that is up and has not failed
 * since all were tried; busy nodes (the leader) only when no other is left.
 * When all were tried, the joiner tries again after a pause, which doubles up
 * to QN_STATE_TRANSFER_RETRY. A second joiner thus asks again until the donor
 * has finished with the first.
 *
 * The log gets one line per reason, and then one every 10 s with the count
 * (core/base/rate_limit.h).
 *
 * A complete snapshot is installed as soon as the machine is between two slots.
 * If this replica has caught up otherwise meanwhile, the snapshot is discarded.
 */
#include "core/base/bits.h"
#include "kvs/snapshot/state_transfer_internal.h"
#include "kvs/store/snapshot_iter.h"

#define PAUSE   (20 * QN_MS) /* after all donors failed: at first */
#define RECLAIM 64u          /* blocks given back per chunk read */

static const char *const why_text[REJOIN_WHYS] = {
    "it has no complete store itself",
    "it serves another joiner",
    "it has not reached that position",
    "it gave up its cut of the store",
    "it lacks memory for a snapshot",
    "the joiner took no chunk for too long"};

/* ---- the store that is being made ---- */

static int on_meta(void *ctx, const struct qn_snapshot_meta *m)
{
    struct state_transfer_join *j = ctx;
    const struct qn_store_opts o = {
        .seed = m->seed, .dbs = m->dbs, .reuse_bytes = QN_STORE_REUSE};
    if (m->resume.position < j->least) {
        return QN_ESTALE; /* the log was truncated meanwhile */
    }
    j->meta = *m;
    return qn_store_create(&j->store, &o);
}

static int on_entry(void *ctx, const struct qn_walked *w)
{
    struct state_transfer_join *j = ctx;
    return qn_store_put_walked(j->store, w);
}

static int on_stripes(void *ctx, uint32_t first, uint32_t count,
                      const qn_slot_t *stripe)
{
    struct state_transfer_join *j = ctx;
    return qn_store_load_stripes(j->store, first, count, stripe);
}

/* The reader has counted entries and the store counts keys: equal numbers
 * show that no key came twice. */
static bool store_is_whole(struct state_transfer_join *j)
{
    struct qn_store_stats st;
    for (uint32_t db = 0; db < j->meta.dbs; db++) {
        (void)qn_store_load_flushed(j->store, db, j->meta.flushed[db]);
    }
    qn_store_stats(j->store, &st);
    return st.keys == j->meta.keys && st.logical_bytes == j->meta.logical_bytes;
}

/* Discard what this attempt has brought. */
static void join_clear(struct qn_state_transfer *r)
{
    struct state_transfer_join *j = &r->join;
    qn_snapshot_reader_fini(&j->reader);
    j->reader = (struct qn_snapshot_reader){0};
    if (j->store != NULL) {
        r->o.ops.discard(r->o.ops.ctx, j->store);
        j->store = NULL;
    }
    j->head = j->tail = 0;
}

/* ---- donors ---- */

/* The next node of the mask after the last one asked; `nodes`: none. */
static qn_node_t next_of(const struct qn_state_transfer *r, uint64_t mask)
{
    for (uint32_t i = 1; i <= r->o.nodes; i++) {
        qn_node_t n = (r->join.donor + i) % r->o.nodes;
        if ((mask >> n & 1) != 0) {
            return n;
        }
    }
    return r->o.nodes;
}

static qn_node_t choose(struct qn_state_transfer *r)
{
    uint64_t all = qn_low_bits(r->o.nodes);
    uint64_t left = all & ~r->down & ~r->join.tried;
    uint64_t idle = left & ~r->o.ops.busy(r->o.ops.ctx);
    return next_of(r, idle != 0 ? idle : left);
}

/* @return when to come again. */
static qn_time_t ask_next(struct qn_state_transfer *r, qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    if (now < j->at) {
        return j->at;
    }
    qn_node_t to = choose(r);
    if (to == r->o.nodes) {
        j->tried = 0;
        j->at = now + j->pause;
        j->pause = QN_MIN(2 * j->pause, QN_STATE_TRANSFER_RETRY);
        return j->at;
    }
    j->donor = to;
    j->attempt++;
    if (state_transfer_send(r, to, REJOIN_WANT, j->attempt, j->least) !=
        QN_OK) {
        j->tried |= UINT64_C(1) << to;
        return now;
    }
    qn_snapshot_reader_init(&j->reader, r->o.nodes, r->o.config);
    j->phase = REJOIN_READ;
    j->heard = now;
    j->late = false;
    j->read = j->taken = 0;
    return now + QN_STATE_TRANSFER_SILENCE;
}

/* This donor failed: ask another. */
static void fail(struct qn_state_transfer *r, const char *why, qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    char more[QN_RATE_LIMIT_TEXT];
    if (qn_rate_limit(&j->seldom, why, now, more)) {
        qn_log(QN_LOG_INFO,
               "replica %u: no snapshot from replica %u: %s (%llu chunks read)"
               "%s",
               r->o.self, j->donor, why, (unsigned long long)j->read, more);
    }
    j->failed++;
    (void)state_transfer_send(r, j->donor, REJOIN_STOP, j->attempt, 0);
    join_clear(r);
    j->tried |= UINT64_C(1) << j->donor;
    j->phase = REJOIN_ASK;
    j->at = now;
}

/* ---- reading ---- */

/* Tell the donor of chunks that were taken. @return false: no room for the
 * message. */
static bool tell_taken(struct qn_state_transfer *r)
{
    struct state_transfer_join *j = &r->join;
    uint64_t come = j->read + (j->tail - j->head);
    uint64_t room =
        j->read + QN_STATE_TRANSFER_QUEUE - QN_STATE_TRANSFER_WINDOW;
    uint64_t taken = QN_MIN(come, room);
    if (taken > j->taken) {
        if (state_transfer_send(r, j->donor, REJOIN_TAKEN, j->attempt, taken) !=
            QN_OK) {
            return false;
        }
        j->taken = taken;
    }
    return true;
}

static void on_chunk(struct qn_state_transfer *r, struct qn_slice chunk,
                     qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    if (j->tail - j->head == QN_STATE_TRANSFER_QUEUE ||
        chunk.len > QN_SNAPSHOT_CHUNK || chunk.len == 0) {
        fail(r, "it sent too many chunks, or one of a wrong size", now);
        return;
    }
    struct state_transfer_slot *to =
        &j->queue[j->tail++ % QN_STATE_TRANSFER_QUEUE];
    memcpy(to->bytes, chunk.data, chunk.len);
    to->len = chunk.len;
    j->pause = PAUSE;
    j->heard = now;
    j->late = false;
    (void)tell_taken(r);
}

void state_transfer_joiner_told(struct qn_state_transfer *r, qn_node_t from,
                                const struct state_transfer_head *h,
                                struct qn_slice chunk, qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    if (j->phase != REJOIN_READ || from != j->donor ||
        h->attempt != j->attempt) {
        return;
    }
    if (h->kind == REJOIN_CHUNK) {
        on_chunk(r, chunk, now);
    } else {
        bool known = h->arg < REJOIN_WHYS;
        fail(r, known ? why_text[h->arg] : "it refused", now);
        if (h->arg == REJOIN_AGAIN || h->arg == REJOIN_LATE) {
            /* The same donor may be asked again. */
            j->tried &= ~(UINT64_C(1) << from);
            j->at = now + PAUSE;
        }
    }
}

/* Read one received chunk. @return QN_OK, or the error of the reader. */
static int read_one(struct state_transfer_join *j)
{
    const struct qn_snapshot_sink sink = {on_meta, on_entry, on_stripes, j};
    struct state_transfer_slot *from =
        &j->queue[j->head++ % QN_STATE_TRANSFER_QUEUE];
    int err = qn_snapshot_read(
        &j->reader, (struct qn_slice){from->bytes, from->len}, &sink);
    j->read++;
    if (j->store != NULL) {
        (void)qn_store_reclaim(j->store, RECLAIM); /* what splits have left */
    }
    return err;
}

static qn_time_t read_some(struct qn_state_transfer *r, qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    bool serving = r->o.ops.store(r->o.ops.ctx) != NULL;
    uint32_t most = serving ? 1 : QN_STATE_TRANSFER_WINDOW;
    for (uint32_t i = 0; i < most && j->head != j->tail; i++) {
        if (read_one(j) != QN_OK) {
            fail(r, j->reader.why, now);
            return now;
        }
    }
    if (j->reader.complete) {
        if (!store_is_whole(j)) {
            fail(r, "a key came twice", now);
            return now;
        }
        j->phase = REJOIN_INSTALL;
        return now;
    }
    bool told = tell_taken(r);
    if (j->head != j->tail) {
        return now;
    }
    if (state_transfer_silent(j->heard, now, &j->late)) {
        fail(r, "no message for too long", now);
        return now;
    }
    qn_time_t at = told ? j->heard + QN_STATE_TRANSFER_SILENCE : now + QN_MS;
    return j->late ? now : at;
}

/* ---- installing ---- */

static void joined(struct qn_state_transfer *r, qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    j->store = NULL;
    j->joined++;
    qn_log(QN_LOG_INFO,
           "replica %u: installed a snapshot of slot %llu with %llu keys from "
           "replica %u "
           "after %llu ms and %llu failed attempts",
           r->o.self, (unsigned long long)j->meta.resume.position,
           (unsigned long long)j->meta.keys, j->donor,
           (unsigned long long)((now - j->began) / QN_MS),
           (unsigned long long)j->failed);
}

static qn_time_t install(struct qn_state_transfer *r, qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    int err = r->o.ops.install(r->o.ops.ctx, j->store, &j->meta, now);
    if (err == QN_EAGAIN) {
        return now;
    }
    if (err != QN_OK && err != QN_ESTALE) {
        fail(r, "it contradicts the state of this replica", now);
        return now;
    }
    if (err == QN_OK) {
        joined(r, now);
    }
    join_clear(r);
    j->phase = REJOIN_IDLE;
    return QN_TIME_NEVER;
}

static qn_time_t join_turn(struct qn_state_transfer *r, qn_time_t now)
{
    switch (r->join.phase) {
    case REJOIN_IDLE:
        break;
    case REJOIN_ASK:
        return ask_next(r, now);
    case REJOIN_READ:
        return read_some(r, now);
    case REJOIN_INSTALL:
        return install(r, now);
    }
    return QN_TIME_NEVER;
}

/* ---- the public face ---- */

void qn_state_transfer_begin(struct qn_state_transfer *r, qn_slot_t position,
                             qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    j->least = QN_MAX(j->least, position);
    if (j->phase == REJOIN_IDLE) {
        j->phase = REJOIN_ASK;
        j->at = j->began = now;
        j->pause = PAUSE;
        j->tried = j->failed = 0;
    } else if (j->store != NULL && j->meta.resume.position < j->least) {
        fail(r, "the log now begins behind its position", now);
        j->tried = 0;
    }
}

void qn_state_transfer_forget(struct qn_state_transfer *r)
{
    struct state_transfer_join *j = &r->join;
    if (j->phase == REJOIN_READ) {
        (void)state_transfer_send(r, j->donor, REJOIN_STOP, j->attempt, 0);
    }
    join_clear(r);
    j->phase = REJOIN_IDLE;
    j->least = 0;
}

bool qn_state_transfer_on_message(struct qn_state_transfer *r, qn_node_t from,
                                  struct qn_slice bytes, qn_time_t now)
{
    struct state_transfer_head h;
    if (bytes.len == 0 || bytes.data[0] < REJOIN_WANT ||
        bytes.data[0] > REJOIN_CHUNK) {
        return false;
    }
    if (bytes.len < sizeof h || from >= r->o.nodes) {
        return true; /* dropped */
    }
    memcpy(&h, bytes.data, sizeof h);
    struct qn_slice rest = {bytes.data + sizeof h, bytes.len - sizeof h};
    if (h.kind == REJOIN_CHUNK || h.kind == REJOIN_REFUSE) {
        state_transfer_joiner_told(r, from, &h, rest, now);
    } else {
        state_transfer_donor_told(r, from, &h, now);
    }
    return true;
}

void qn_state_transfer_peer_down(struct qn_state_transfer *r, qn_node_t peer,
                                 qn_time_t now)
{
    r->down |= UINT64_C(1) << peer;
    if (r->donation.state != GIFT_NONE && r->donation.to == peer) {
        state_transfer_donor_end(r);
    }
    if (r->join.phase == REJOIN_READ && r->join.donor == peer &&
        !r->join.reader.complete) {
        fail(r, "it has ended", now);
    }
}

void qn_state_transfer_peer_up(struct qn_state_transfer *r, qn_node_t peer)
{
    r->down &= ~(UINT64_C(1) << peer);
    r->join.tried &= ~(UINT64_C(1) << peer);
    if (r->join.phase == REJOIN_ASK) {
        r->join.at = 0;
    }
}

qn_time_t qn_state_transfer_turn(struct qn_state_transfer *r, qn_time_t now)
{
    qn_time_t give = state_transfer_donor_turn(r, now);
    qn_time_t join = join_turn(r, now);
    return QN_MIN(give, join);
}

void qn_state_transfer_status(const struct qn_state_transfer *r,
                              struct qn_state_transfer_status *out)
{
    const struct state_transfer_join *j = &r->join;
    const struct state_transfer_donation *g = &r->donation;
    bool reading = j->phase == REJOIN_READ || j->phase == REJOIN_INSTALL;
    struct qn_store *s = r->o.ops.store(r->o.ops.ctx);
    struct qn_snapshot_iter_facts cut = {0};
    struct qn_store_stats st = {0};
    if (s != NULL) {
        (void)qn_snapshot_iter_facts(s, &cut);
        qn_store_stats(s, &st);
    }
    *out = (struct qn_state_transfer_status){
        .joining = j->phase != REJOIN_IDLE,
        .comes = j->store != NULL,
        .position = j->store != NULL ? j->meta.resume.position : 0,
        .giving = g->state != GIFT_NONE,
        .donor = reading ? j->donor : r->o.nodes,
        .joiner = g->state != GIFT_NONE ? g->to : r->o.nodes,
        .keys = j->reader.keys,
        .keys_total = j->reader.keys_said,
        .joined = j->joined,
        .given = g->given,
        .attempts = j->attempt,
        .cut_bytes = cut.held_bytes,
        .cut_bytes_max = g->state == GIFT_UNDER_WAY ? g->held_max : 0,
        .cut_bytes_most = st.cut_bytes_most,
        .cuts_anew = g->anew,
    };
}

int qn_state_transfer_create(struct qn_state_transfer **out,
                             const struct qn_state_transfer_opts *o)
{
    QN_ASSERT(o->self < o->nodes && o->nodes <= QN_NODES_MAX);
    struct qn_state_transfer *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return QN_ENOMEM;
    }
    r->o = *o;
    r->down = UINT64_C(1) << o->self;
    r->join.donor = o->self;
    *out = r;
    return QN_OK;
}

void qn_state_transfer_destroy(struct qn_state_transfer *r)
{
    if (r == NULL) {
        return;
    }
    state_transfer_donor_end(r);
    join_clear(r);
    free(r);
}
