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
#include "paxos/member/transfer/state_transfer_internal.h"

#define PAUSE (20 * QN_MS) /* after all donors failed: at first */

static const char *const why_text[TRANSFER_WHYS] = {
    "it has no complete state itself",
    "it serves another joiner",
    "it has not reached that position",
    "it gave up its cut of the state",
    "it lacks memory for a snapshot",
    "the joiner took no chunk for too long",
    "its state cannot be given",
    "it leads, and would have to apply nothing"};

/* Discard what this attempt has brought. */
static void join_clear(struct qn_state_transfer *r)
{
    struct state_transfer_join *j = &r->join;
    if (j->building) {
        r->o.user.abandon(r->o.user.ctx);
    }
    j->reader = (struct qn_chunk_reader){0};
    j->building = j->known = j->checked = false;
    j->short_since = 0;
    j->head = j->tail = 0;
}

/* A callback has failed, at this member or at the donor. */
static void note_error(struct qn_state_transfer *r, int err, qn_node_t node)
{
    r->join.error = err;
    r->join.error_node = node;
    r->join.round_failed = true;
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

/* All donors were asked. @return when to ask again. */
static qn_time_t next_round(struct qn_state_transfer *r, qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    j->rounds = j->round_failed ? j->rounds + 1 : 0;
    j->round_failed = false;
    j->tried = j->empty = 0;
    if (r->o.rounds_max != 0 && j->rounds >= r->o.rounds_max) {
        j->gave_up = true;
        j->phase = TRANSFER_IDLE;
        return QN_TIME_NEVER;
    }
    j->at = now + j->pause;
    j->pause = QN_MIN(2 * j->pause, QN_STATE_TRANSFER_RETRY);
    return j->at;
}

static int want(struct qn_state_transfer *r, qn_node_t to)
{
    const struct state_transfer_join *j = &r->join;
    const uint64_t others =
        qn_low_bits(r->o.nodes) & ~r->down & ~(UINT64_C(1) << to);
    const struct state_transfer_head h = {.kind = TRANSFER_WANT,
                                          .alone = (others & ~j->empty) == 0,
                                          .attempt = j->attempt,
                                          .arg = j->least};
    return r->o.ops.tell(r->o.ops.ctx, to,
                         (struct qn_slice){(const uint8_t *)&h, sizeof h});
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
        return next_round(r, now);
    }
    j->donor = to;
    j->attempt++;
    if (want(r, to) != QN_OK) {
        j->tried |= UINT64_C(1) << to;
        return now;
    }
    j->phase = TRANSFER_READ;
    j->heard = j->came = now;
    j->patience = QN_STATE_TRANSFER_SILENCE;
    j->late = j->tired = false;
    j->read = j->taken = 0;
    return now + QN_STATE_TRANSFER_SILENCE;
}

/* This donor failed: ask another. */
static void fail(struct qn_state_transfer *r, const char *why, qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    char more[QN_RATE_LIMIT_TEXT];
    if (qn_rate_limit(&j->seldom, why, now, more)) {
        qn_log_to(&r->o.log, QN_LOG_INFO,
                  "member %u: no snapshot from member %u: %s (%llu chunks read)"
                  "%s",
                  r->o.self, j->donor, why, (unsigned long long)j->read, more);
    }
    j->failed++;
    (void)state_transfer_send(r, j->donor, TRANSFER_STOP, j->attempt, 0);
    join_clear(r);
    j->tried |= UINT64_C(1) << j->donor;
    j->phase = TRANSFER_ASK;
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
        if (state_transfer_send(r, j->donor, TRANSFER_TAKEN, j->attempt,
                                taken) != QN_OK) {
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
        chunk.len > QN_STATE_TRANSFER_CHUNK || chunk.len == 0) {
        fail(r, "it sent too many chunks, or one of a wrong size", now);
        return;
    }
    struct state_transfer_slot *to =
        &j->queue[j->tail++ % QN_STATE_TRANSFER_QUEUE];
    memcpy(to->bytes, chunk.data, chunk.len);
    to->len = chunk.len;
    if (j->rounds == 0) { /* else a callback has failed each time */
        j->pause = PAUSE;
    }
    j->heard = j->came = now;
    j->late = j->tired = false;
    (void)tell_taken(r);
}

/* A chunk will come. The donor's calls may take `call`, when it says nothing.
 */
static void on_keep(struct qn_state_transfer *r, uint64_t call, qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    j->patience =
        QN_STATE_TRANSFER_SILENCE + QN_MIN(call, QN_STATE_TRANSFER_CALL);
    j->heard = now;
    j->late = false;
}

void state_transfer_joiner_told(struct qn_state_transfer *r, qn_node_t from,
                                const struct state_transfer_head *h,
                                struct qn_slice chunk, qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    if (j->phase != TRANSFER_READ || from != j->donor ||
        h->attempt != j->attempt) {
        return;
    }
    if (h->kind == TRANSFER_CHUNK) {
        on_chunk(r, chunk, now);
    } else if (h->kind == TRANSFER_KEEP) {
        on_keep(r, h->arg, now);
    } else {
        const uint32_t why = (uint32_t)h->arg;
        const int err = why == TRANSFER_MEMORY ? QN_ENOMEM
                        : why == TRANSFER_FAILED
                            ? -(int)(h->arg >> 32 & INT32_MAX)
                            : QN_OK;
        if (err != QN_OK) {
            note_error(r, err, from);
        }
        j->empty |= (uint64_t)(why == TRANSFER_LOADING) << from;
        fail(r, why < TRANSFER_WHYS ? why_text[why] : "it refused", now);
        if (why == TRANSFER_AGAIN || why == TRANSFER_LATE) {
            /* The same donor may be asked again. */
            j->tried &= ~(UINT64_C(1) << from);
            j->at = now + PAUSE;
        }
    }
}

/* The library's own state has come. @return QN_OK, or why not. */
static const char *meet(struct qn_state_transfer *r)
{
    struct state_transfer_join *j = &r->join;
    if (qn_library_state_decode(&j->library, r->o.nodes, j->part) != QN_OK ||
        j->library.resume.position != j->reader.position) {
        return "the library's state is malformed, or of another group";
    }
    if (j->reader.position < j->least) {
        return "the log now begins behind its position";
    }
    j->known = true;
    return NULL;
}

/* Why a callback failed. */
static const char *why_of(struct qn_state_transfer *r, int err)
{
    const char *why =
        r->o.user.why != NULL ? r->o.user.why(r->o.user.ctx) : NULL;
    return why != NULL ? why : qn_strerror(err);
}

/* Give the user what has come. @return QN_OK; QN_EAGAIN: in a later turn;
 * others: the attempt has failed. */
static int pass_on(struct qn_state_transfer *r, qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    const struct qn_state_transfer_user *u = &r->o.user;
    j->building = true;
    int err = j->reader.kind == QN_CHUNK_END
                  ? u->finish(u->ctx)
                  : u->read(u->ctx, j->reader.position, j->part);
    if (err == QN_ENOMEM && state_transfer_again(&j->short_since, now)) {
        return QN_EAGAIN;
    }
    if (err != QN_OK) {
        note_error(r, err, r->o.self);
        fail(r, why_of(r, err), now);
        return err;
    }
    j->short_since = 0;
    return QN_OK;
}

/* Read one received chunk. @return as pass_on. */
static int read_one(struct qn_state_transfer *r, qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    const struct state_transfer_slot *from =
        &j->queue[j->head % QN_STATE_TRANSFER_QUEUE];
    const struct qn_slice chunk = {from->bytes, from->len};
    int err = j->checked ? QN_OK : qn_chunk_read(&j->reader, chunk, &j->part);
    if (err != QN_OK) {
        fail(r, j->reader.why, now);
        return err;
    }
    j->checked = true;
    if (j->reader.kind != QN_CHUNK_LIBRARY) {
        err = pass_on(r, now);
    } else {
        const char *why = meet(r);
        if (why != NULL) {
            fail(r, why, now);
            return QN_ECORRUPT;
        }
    }
    if (err == QN_OK) {
        j->checked = false;
        j->head++;
        j->read++;
    }
    return err;
}

/* The donor says nothing, or that it goes on and nothing else. */
static bool gives_up(struct qn_state_transfer *r, qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    const char *why = NULL;
    if (state_transfer_silent(j->heard, j->patience, now, &j->late)) {
        why = "no message for too long";
    } else if (state_transfer_silent(j->came, QN_STATE_TRANSFER_WAIT, now,
                                     &j->tired)) {
        note_error(r, QN_EAGAIN, j->donor);
        why = "its state was not ready for too long";
    }
    if (why != NULL) {
        fail(r, why, now);
    }
    return why != NULL;
}

static qn_time_t read_some(struct qn_state_transfer *r, qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    bool serving = state_transfer_complete(r);
    uint32_t most = serving ? 1 : QN_STATE_TRANSFER_WINDOW;
    int err = QN_OK;
    for (uint32_t i = 0; i < most && j->head != j->tail; i++) {
        err = read_one(r, now);
        if (err != QN_OK) {
            break;
        }
    }
    if (j->phase != TRANSFER_READ) {
        return now; /* it has failed */
    }
    if (err == QN_OK && j->reader.kind == QN_CHUNK_END) {
        j->phase = TRANSFER_INSTALL;
        return now;
    }
    bool told = tell_taken(r);
    if (j->head != j->tail) {
        return err == QN_EAGAIN ? now + QN_MS : now;
    }
    if (gives_up(r, now)) {
        return now;
    }
    qn_time_t at =
        QN_MIN(j->heard + j->patience, j->came + QN_STATE_TRANSFER_WAIT);
    return j->late || j->tired ? now : told ? at : now + QN_MS;
}

/* ---- installing ---- */

static void joined(struct qn_state_transfer *r, qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    j->joined++;
    j->error = QN_OK;
    j->rounds = 0;
    qn_log_to(
        &r->o.log, QN_LOG_INFO,
        "member %u: installed a snapshot of slot %llu with %llu bytes from "
        "member %u "
        "after %llu ms and %llu failed attempts",
        r->o.self, (unsigned long long)j->library.resume.position,
        (unsigned long long)j->reader.bytes, j->donor,
        (unsigned long long)((now - j->began) / QN_MS),
        (unsigned long long)j->failed);
}

static qn_time_t install(struct qn_state_transfer *r, qn_time_t now)
{
    struct state_transfer_join *j = &r->join;
    int err = r->o.ops.resume(r->o.ops.ctx, &j->library, now);
    if (err == QN_EAGAIN) {
        return now;
    }
    if (err != QN_OK && err != QN_ESTALE) {
        note_error(r, err, r->o.self);
        fail(r, "it contradicts the state of this member", now);
        return now;
    }
    if (err == QN_OK) {
        state_transfer_donor_replaced(r);
        r->o.user.install(r->o.user.ctx, j->library.resume.position);
        j->building = false; /* it is the user's state now */
        joined(r, now);
    }
    join_clear(r);
    j->phase = TRANSFER_IDLE;
    return QN_TIME_NEVER;
}

static qn_time_t join_turn(struct qn_state_transfer *r, qn_time_t now)
{
    switch (r->join.phase) {
    case TRANSFER_IDLE:
        break;
    case TRANSFER_ASK:
        return ask_next(r, now);
    case TRANSFER_READ:
        return read_some(r, now);
    case TRANSFER_INSTALL:
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
    if (j->gave_up) {
        return;
    }
    if (j->phase == TRANSFER_IDLE) {
        j->phase = TRANSFER_ASK;
        j->at = j->began = now;
        j->pause = PAUSE;
        j->tried = j->empty = j->failed = 0;
        j->rounds = 0;
        j->round_failed = false;
    } else if (j->known && j->reader.position < j->least) {
        fail(r, "the log now begins behind its position", now);
        j->tried = 0;
    }
}

void qn_state_transfer_forget(struct qn_state_transfer *r)
{
    struct state_transfer_join *j = &r->join;
    if (j->phase == TRANSFER_READ) {
        (void)state_transfer_send(r, j->donor, TRANSFER_STOP, j->attempt, 0);
    }
    join_clear(r);
    j->phase = TRANSFER_IDLE;
    j->least = 0;
    j->gave_up = false;
}

bool qn_state_transfer_on_message(struct qn_state_transfer *r, qn_node_t from,
                                  struct qn_slice bytes, qn_time_t now)
{
    struct state_transfer_head h;
    if (bytes.len == 0 || bytes.data[0] < TRANSFER_WANT ||
        bytes.data[0] >= TRANSFER_KINDS) {
        return false;
    }
    if (bytes.len < sizeof h || from >= r->o.nodes) {
        return true; /* dropped */
    }
    memcpy(&h, bytes.data, sizeof h);
    struct qn_slice rest = {bytes.data + sizeof h, bytes.len - sizeof h};
    if (h.kind == TRANSFER_CHUNK || h.kind == TRANSFER_REFUSE ||
        h.kind == TRANSFER_KEEP) {
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
    if (r->join.phase == TRANSFER_READ && r->join.donor == peer) {
        fail(r, "it has ended", now);
    }
}

void qn_state_transfer_peer_up(struct qn_state_transfer *r, qn_node_t peer)
{
    r->down &= ~(UINT64_C(1) << peer);
    r->join.tried &= ~(UINT64_C(1) << peer);
    r->join.empty &= ~(UINT64_C(1) << peer);
    if (r->join.phase == TRANSFER_ASK) {
        r->join.at = 0;
    }
}

qn_time_t qn_state_transfer_turn(struct qn_state_transfer *r, qn_time_t now)
{
    qn_time_t give = state_transfer_donor_turn(r, now);
    qn_time_t join = join_turn(r, now);
    return QN_MIN(give, join);
}

bool qn_state_transfer_rests(const struct qn_state_transfer *r)
{
    return r->donation.state == GIFT_NONE && r->join.phase == TRANSFER_IDLE &&
           !r->join.known && !r->join.gave_up;
}

qn_slot_t qn_state_transfer_coming(const struct qn_state_transfer *r)
{
    return r->join.known ? r->join.reader.position : 0;
}

bool qn_state_transfer_gave_up(const struct qn_state_transfer *r)
{
    return r->join.gave_up;
}

bool qn_state_transfer_suspends(const struct qn_state_transfer *r)
{
    return r->o.user.no_cut && r->donation.state == GIFT_UNDER_WAY;
}

void qn_state_transfer_status(const struct qn_state_transfer *r,
                              struct qn_state_transfer_status *out)
{
    const struct state_transfer_join *j = &r->join;
    const struct state_transfer_donation *g = &r->donation;
    bool reading = j->phase == TRANSFER_READ || j->phase == TRANSFER_INSTALL;
    *out = (struct qn_state_transfer_status){
        .joining = j->phase != TRANSFER_IDLE,
        .comes = j->known,
        .position = qn_state_transfer_coming(r),
        .giving = g->state != GIFT_NONE,
        .donor = reading ? j->donor : r->o.nodes,
        .joiner = g->state != GIFT_NONE ? g->to : r->o.nodes,
        .chunks = j->phase == TRANSFER_IDLE ? 0 : j->read,
        .joined = j->joined,
        .given = g->given,
        .attempts = j->attempt,
        .anew = g->anew,
        .error = j->error,
        .error_node = j->error_node,
        .gave_up = j->gave_up,
        .give_error = g->error,
    };
}

int qn_state_transfer_create(struct qn_state_transfer **out,
                             const struct qn_state_transfer_opts *o)
{
    QN_ASSERT(o->self < o->nodes && o->nodes <= QN_NODES_MAX);
    const struct qn_alloc *alloc =
        o->alloc != NULL ? o->alloc : &qn_alloc_malloc;
    struct qn_state_transfer *r = alloc->resize(alloc->ctx, NULL, sizeof *r);
    if (r == NULL) {
        return QN_ENOMEM;
    }
    memset(r, 0, sizeof *r);
    r->o = *o;
    r->o.alloc = alloc;
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
    (void)r->o.alloc->resize(r->o.alloc->ctx, r, 0);
}
