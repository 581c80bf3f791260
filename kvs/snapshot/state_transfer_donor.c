/*
 * The donor: one donation at a time, from a cut of its store.
 *
 * WANT is recorded; the cut begins in a turn, between two slots. Each turn
 * makes a few chunks while fewer than WINDOW of them are on their way. A chunk
 * that the channel refuses is kept and sent again in the turn after the next,
 * so that the protocol's own messages find room in between. The cut ends with
 * the last chunk made, which says so: the donor waits for nothing after that.
 *
 * Clients come first: while the donor has any, it gives a third of its time
 * (kvs/snapshot/throttle.h), and on shared cores the joiner is slowed by the
 * same. But writes wait when the leader has decided as far as the hold allows
 * (paxos/flow/flow.h), and the old versions kept are bounded: before either
 * bound is reached the donor hurries. Old versions may take as many bytes as
 * the log. So writes that the log still holds for the joiner are no reason to
 * begin again.
 *
 * A new WANT of the same joiner replaces the donation under way: the joiner has
 * given that one up, or is a new incarnation. Messages of an older attempt are
 * dropped.
 */
#include "kvs/snapshot/state_transfer_internal.h"
#include "kvs/store/snapshot_iter.h"
#include "paxos/flow/flow.h"

#define USED_FREE 25u /* % of the old versions: no hurry yet */

/* The joiner needs nothing more from this donor. */
static bool all_sent(const struct state_transfer_donation *g)
{
    return g->writer.ended && g->chunk_len == 0;
}

static struct qn_store *own_store(struct qn_state_transfer *r)
{
    return r->o.ops.store(r->o.ops.ctx);
}

/* The one place where a cut ends. */
void state_transfer_donor_end(struct qn_state_transfer *r)
{
    struct state_transfer_donation *g = &r->donation;
    struct qn_store *s = own_store(r);
    if (g->state == GIFT_UNDER_WAY && s != NULL) {
        qn_snapshot_iter_end(s);
    }
    if (g->state == GIFT_UNDER_WAY && !all_sent(g) &&
        r->o.ops.release != NULL) {
        r->o.ops.release(r->o.ops.ctx, g->to);
    }
    g->state = GIFT_NONE;
    g->chunk_len = 0;
    g->stood_back = false;
}

static void give_up(struct qn_state_transfer *r, enum state_transfer_why why)
{
    struct state_transfer_donation *g = &r->donation;
    /* If the channel is full, the joiner learns it from the silence. */
    (void)state_transfer_send(r, g->to, REJOIN_REFUSE, g->attempt, why);
    state_transfer_donor_end(r);
}

/* The cut was given up: it held too much, or memory was short. */
static void anew(struct qn_state_transfer *r)
{
    r->donation.anew++;
    give_up(r, REJOIN_AGAIN);
}

static void on_want(struct qn_state_transfer *r, qn_node_t from,
                    const struct state_transfer_head *h, qn_time_t now)
{
    struct state_transfer_donation *g = &r->donation;
    if (g->state != GIFT_NONE && g->to != from) {
        (void)state_transfer_send(r, from, REJOIN_REFUSE, h->attempt,
                                  REJOIN_BUSY);
        return;
    }
    state_transfer_donor_end(r);
    g->state = GIFT_WANTED;
    g->to = from;
    g->attempt = h->attempt;
    g->least = h->arg;
    g->sent = g->taken = 0;
    g->heard = now;
    g->late = false;
}

void state_transfer_donor_told(struct qn_state_transfer *r, qn_node_t from,
                               const struct state_transfer_head *h,
                               qn_time_t now)
{
    struct state_transfer_donation *g = &r->donation;
    if (h->kind == REJOIN_WANT) {
        on_want(r, from, h, now);
        return;
    }
    if (g->state == GIFT_NONE || g->to != from || g->attempt != h->attempt) {
        return;
    }
    if (h->kind == REJOIN_STOP) {
        state_transfer_donor_end(r);
    } else if (h->arg > g->taken && h->arg <= g->sent) {
        g->taken = h->arg;
        g->heard = now;
        g->late = false;
    }
}

/* ---- a cut as the source of chunks ---- */

static int cut_peek(void *ctx, struct qn_walked *w)
{
    return qn_snapshot_iter_peek(own_store(ctx), w);
}

static void cut_next(void *ctx)
{
    struct qn_state_transfer *r = ctx;
    r->donation.keys++;
    qn_snapshot_iter_next(own_store(r));
}

static const qn_slot_t *cut_stripes(void *ctx)
{
    struct qn_snapshot_iter_facts f;
    bool active = qn_snapshot_iter_facts(own_store(ctx), &f);
    QN_ASSERT(active); /* peek has just said that all were met */
    return f.stripe;
}

static qn_time_t cpu_of(const struct qn_state_transfer *r)
{
    return r->o.ops.cpu != NULL ? r->o.ops.cpu() : 0;
}

/* The part that is sent, of QN_HOLD_DONE. */
static uint64_t done_of(const struct state_transfer_donation *g)
{
    uint64_t keys = QN_MIN(g->keys, g->meta.keys);
    return g->meta.keys == 0 || all_sent(g)
               ? QN_HOLD_DONE
               : keys * QN_HOLD_DONE / g->meta.keys;
}

/* Keep the log behind the cut; more of it as the snapshot is sent. */
static void hold(struct qn_state_transfer *r)
{
    const struct state_transfer_donation *g = &r->donation;
    if (r->o.ops.hold != NULL) {
        r->o.ops.hold(r->o.ops.ctx, g->to, g->meta.resume.position,
                      (uint32_t)done_of(g));
    }
}

/* The one place where a cut begins. @return false: not now, or refused. */
static bool begin(struct qn_state_transfer *r, struct qn_store *s,
                  qn_time_t now)
{
    struct state_transfer_donation *g = &r->donation;
    struct qn_snapshot_meta *m = &g->meta;
    struct qn_store_stats st;
    struct qn_snapshot_iter_facts f;
    if (!r->o.ops.facts(r->o.ops.ctx, m)) {
        return false;
    }
    if (m->resume.position < g->least) {
        give_up(r, REJOIN_BEHIND);
        return false;
    }
    qn_store_stats(s, &st);
    g->held_max = QN_MAX(r->o.log_bytes, st.logical_bytes / 4);
    if (qn_snapshot_iter_begin(s, m->resume.position, g->held_max) != QN_OK) {
        give_up(r, REJOIN_MEMORY);
        return false;
    }
    qn_snapshot_iter_facts(s, &f);
    m->dbs = f.dbs;
    m->seed = f.seed;
    m->keys = f.keys;
    m->logical_bytes = f.logical_bytes;
    memcpy(m->flushed, f.flushed, f.dbs * sizeof f.flushed[0]);
    qn_snapshot_writer_init(&g->writer, m);
    qn_throttle_begin(&g->pace, now, cpu_of(r));
    g->keys = 0;
    g->hurries = false;
    g->state = GIFT_UNDER_WAY;
    hold(r);
    return true;
}

/* Make the next chunk. @return QN_OK: it is ready to be sent; QN_EAGAIN:
 * later; others: the donation was given up. */
static int make(struct qn_state_transfer *r)
{
    struct state_transfer_donation *g = &r->donation;
    const struct qn_snapshot_source source = {cut_peek, cut_next, cut_stripes,
                                              r};
    int err =
        qn_snapshot_write(&g->writer, &source, g->chunk.bytes, &g->chunk_len);
    if (err == QN_OK) {
        g->chunk.head = (struct state_transfer_head){.kind = REJOIN_CHUNK,
                                                     .attempt = g->attempt};
    } else if (err != QN_EAGAIN) {
        anew(r);
    }
    return err;
}

/* @return true: sent. */
static bool send_chunk(struct qn_state_transfer *r)
{
    struct state_transfer_donation *g = &r->donation;
    const struct qn_slice bytes = {(const uint8_t *)&g->chunk,
                                   sizeof g->chunk.head + g->chunk_len};
    if (r->o.ops.tell(r->o.ops.ctx, g->to, bytes) != QN_OK) {
        return false;
    }
    g->chunk_len = 0;
    g->sent++;
    hold(r);
    if (all_sent(g)) {
        g->given++;
        state_transfer_donor_end(r);
    }
    return true;
}

/* True if writes wait for this snapshot, or soon will: the leader has decided
 * three quarters of what the hold allows for the part sent. Or a larger part
 * of the old versions is used up than of the snapshot is made. */
static bool hurries(struct qn_state_transfer *r, struct qn_store *s)
{
    const struct state_transfer_donation *g = &r->donation;
    const struct qn_snapshot_meta *m = &g->meta;
    struct qn_snapshot_iter_facts f = {0};
    (void)qn_snapshot_iter_facts(s, &f);
    uint64_t log = r->o.ops.log_used(r->o.ops.ctx, m->resume.position);
    return 4 * log > 3 * qn_flow_hold_mark(100, done_of(g)) ||
           100 * f.held_bytes / g->held_max >
               USED_FREE + 50 * g->keys / QN_MAX(m->keys, 1);
}

/* Give some chunks. @return when to continue. */
static qn_time_t give(struct qn_state_transfer *r, uint32_t most, qn_time_t now)
{
    struct state_transfer_donation *g = &r->donation;
    for (uint32_t i = 0; i < most; i++) {
        if (g->sent - g->taken >= QN_STATE_TRANSFER_WINDOW) {
            return g->heard +
                   QN_STATE_TRANSFER_SILENCE; /* or when TAKEN comes */
        }
        int err = g->chunk_len != 0 ? QN_OK : make(r);
        if (err != QN_OK) {
            return err == QN_EAGAIN ? now : QN_TIME_NEVER;
        }
        if (!send_chunk(r)) {
            g->stood_back = true;
            return now + QN_MS;
        }
        if (g->state == GIFT_NONE) {
            return QN_TIME_NEVER; /* that was the last one */
        }
    }
    return now;
}

/* A turn's share, if it is due. @return when to continue. */
static qn_time_t give_share(struct qn_state_transfer *r, struct qn_store *s,
                            qn_time_t now)
{
    struct state_transfer_donation *g = &r->donation;
    if (g->stood_back) {
        g->stood_back = false; /* the room in the channel now belongs to the
                                  driver */
        return now + QN_MS;
    }
    qn_time_t cpu = cpu_of(r);
    qn_time_t at = qn_throttle_turn(&g->pace, now, cpu);
    if (at > now && !g->hurries) {
        return at;
    }
    g->hurries = r->o.ops.cpu == NULL || hurries(r, s);
    bool most = g->hurries || qn_throttle_alone(&g->pace);
    at = give(r, most ? QN_STATE_TRANSFER_GIVE : 1, now);
    qn_time_t rested = qn_throttle_worked(&g->pace, now, cpu_of(r) - cpu);
    return g->hurries ? at : QN_MAX(at, rested);
}

qn_time_t state_transfer_donor_turn(struct qn_state_transfer *r, qn_time_t now)
{
    struct state_transfer_donation *g = &r->donation;
    if (g->state == GIFT_NONE) {
        return QN_TIME_NEVER;
    }
    struct qn_store *s = own_store(r);
    if (s == NULL) {
        give_up(r, REJOIN_LOADING);
        return QN_TIME_NEVER;
    }
    if (g->state == GIFT_WANTED && !begin(r, s, now)) {
        return g->state == GIFT_WANTED ? now : QN_TIME_NEVER;
    }
    if (!qn_snapshot_iter_active(s)) {
        anew(r); /* also when the store has been replaced */
        return QN_TIME_NEVER;
    }
    if (state_transfer_silent(g->heard, now, &g->late)) {
        char more[QN_RATE_LIMIT_TEXT];
        if (qn_rate_limit(&g->seldom, "silent", now, more)) {
            qn_log(QN_LOG_INFO,
                   "replica %u: gave up its snapshot for replica %u, which "
                   "stopped taking chunks (%llu of %llu sent)%s",
                   r->o.self, g->to, (unsigned long long)g->taken,
                   (unsigned long long)g->sent, more);
        }
        give_up(r, REJOIN_LATE); /* the joiner finds the message when it
                                    resumes */
        return QN_TIME_NEVER;
    }
    return g->late ? now : give_share(r, s, now);
}
