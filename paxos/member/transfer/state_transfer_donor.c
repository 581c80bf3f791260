/*
 * The donor: one donation at a time, from a cut of the user's state.
 *
 * WANT is recorded; the cut begins in a turn, between two slots. Each turn
 * makes a few chunks while fewer than WINDOW of them are on their way. A chunk
 * that the channel refuses is kept and sent again in the turn after the next,
 * so that the protocol's own messages find room in between. The cut ends with
 * the last chunk sent, which says so: the donor waits for nothing after that.
 *
 * Clients come first: while the donor has any, it gives a third of its time
 * (throttle.h), and on shared cores the joiner is slowed by the same. But
 * writes wait when the leader has decided as far as the hold allows
 * (paxos/flow/flow.h), and what the user spends on a cut is bounded: before
 * either bound is reached the donor hurries.
 *
 * A new WANT of the same joiner replaces the donation under way: the joiner has
 * given that one up, or is a new incarnation. Messages of an older attempt are
 * dropped.
 */
#include <assert.h>

#include "paxos/flow/flow.h"
#include "paxos/member/transfer/state_transfer_internal.h"

#define USED_FREE 25u /* % of what a cut may cost: no hurry yet */

static_assert(QN_LIBRARY_STATE_MAX <= QN_STATE_TRANSFER_CONTENT,
              "the library's state is one chunk");

/* The joiner needs nothing more from this donor. */
static bool all_sent(const struct state_transfer_donation *g)
{
    return g->ended && g->chunk_len == 0;
}

/* The one place where a cut ends. */
void state_transfer_donor_end(struct qn_state_transfer *r)
{
    struct state_transfer_donation *g = &r->donation;
    if (g->state == GIFT_UNDER_WAY) {
        r->o.user.end(r->o.user.ctx);
        if (!all_sent(g) && r->o.ops.release != NULL) {
            r->o.ops.release(r->o.ops.ctx, g->to);
        }
    }
    g->state = GIFT_NONE;
    g->chunk_len = 0;
    g->stood_back = false;
}

static void refuse(struct qn_state_transfer *r, uint64_t arg)
{
    struct state_transfer_donation *g = &r->donation;
    /* If the channel is full, the joiner learns it from the silence. */
    (void)state_transfer_send(r, g->to, TRANSFER_REFUSE, g->attempt, arg);
    state_transfer_donor_end(r);
}

static void give_up(struct qn_state_transfer *r, enum state_transfer_why why)
{
    refuse(r, why);
}

/* The cut was given up: it cost too much, or its state was replaced. */
static void anew(struct qn_state_transfer *r)
{
    r->donation.anew++;
    give_up(r, TRANSFER_AGAIN);
}

void state_transfer_donor_replaced(struct qn_state_transfer *r)
{
    if (r->donation.state == GIFT_UNDER_WAY) {
        anew(r);
    }
}

/* A callback has failed. */
static void failed(struct qn_state_transfer *r, int err)
{
    r->donation.error = err;
    if (err == QN_ENOMEM) {
        give_up(r, TRANSFER_MEMORY);
    } else {
        refuse(r, TRANSFER_FAILED | (uint64_t) - (int64_t)err << 32);
    }
}

static void on_want(struct qn_state_transfer *r, qn_node_t from,
                    const struct state_transfer_head *h, qn_time_t now)
{
    struct state_transfer_donation *g = &r->donation;
    if (g->state != GIFT_NONE && g->to != from) {
        (void)state_transfer_send(r, from, TRANSFER_REFUSE, h->attempt,
                                  TRANSFER_BUSY);
        return;
    }
    state_transfer_donor_end(r);
    g->state = GIFT_WANTED;
    g->to = from;
    g->attempt = h->attempt;
    g->alone = h->alone != 0;
    g->least = h->arg;
    g->sent = g->taken = 0;
    g->heard = g->told = now;
    g->late = false;
    g->announced = r->o.user.call == 0;
}

void state_transfer_donor_told(struct qn_state_transfer *r, qn_node_t from,
                               const struct state_transfer_head *h,
                               qn_time_t now)
{
    struct state_transfer_donation *g = &r->donation;
    if (h->kind == TRANSFER_WANT) {
        on_want(r, from, h, now);
        return;
    }
    if (g->state == GIFT_NONE || g->to != from || g->attempt != h->attempt) {
        return;
    }
    if (h->kind == TRANSFER_STOP) {
        state_transfer_donor_end(r);
    } else if (h->arg > g->taken && h->arg <= g->sent) {
        g->taken = h->arg;
        g->heard = now;
        g->late = false;
    }
}

static qn_time_t cpu_of(const struct qn_state_transfer *r)
{
    return r->o.ops.cpu != NULL ? r->o.ops.cpu() : 0;
}

/* The part that is sent, of QN_HOLD_DONE. */
static uint64_t done_of(const struct state_transfer_donation *g)
{
    return all_sent(g) ? QN_HOLD_DONE : g->progress.done;
}

/* Keep the log behind the cut; more of it as the snapshot is sent. */
static void hold(struct qn_state_transfer *r)
{
    const struct state_transfer_donation *g = &r->donation;
    if (r->o.ops.hold != NULL) {
        r->o.ops.hold(r->o.ops.ctx, g->to, g->library.resume.position,
                      (uint32_t)done_of(g));
    }
}

/* Ask how far the cut is. @return QN_OK; QN_EABORTED. */
static int look(struct qn_state_transfer *r)
{
    struct qn_state_transfer_progress p = {0};
    int err = r->o.user.progress != NULL ? r->o.user.progress(r->o.user.ctx, &p)
                                         : QN_OK;
    if (err == QN_OK) {
        p.done = QN_MIN(p.done, QN_HOLD_DONE);
        r->donation.progress = p;
    }
    return err;
}

/* Must this member go on applying, though a snapshot would suspend that? */
static bool may_not_suspend(const struct qn_state_transfer *r)
{
    return r->o.user.no_cut && r->o.ops.may_suspend != NULL &&
           !r->o.ops.may_suspend(r->o.ops.ctx, r->donation.alone);
}

/* The joiner is to wait. @return false: there was no room for the message. */
static bool say_keep(struct qn_state_transfer *r, qn_time_t now)
{
    struct state_transfer_donation *g = &r->donation;
    if (state_transfer_send(r, g->to, TRANSFER_KEEP, g->attempt,
                            r->o.user.call) != QN_OK) {
        return false;
    }
    g->told = now;
    g->announced = true;
    return true;
}

/* The one place where a cut begins, unless it is refused. @return when to
 * continue. */
static qn_time_t begin(struct qn_state_transfer *r, qn_time_t now)
{
    struct state_transfer_donation *g = &r->donation;
    if (!r->o.ops.cut(r->o.ops.ctx, &g->library)) {
        return now;
    }
    const qn_slot_t position = g->library.resume.position;
    if (position < g->least) {
        give_up(r, TRANSFER_BEHIND);
        return QN_TIME_NEVER;
    }
    if (!g->announced && !say_keep(r, now)) {
        return now + QN_MS;
    }
    int err = r->o.user.begin(r->o.user.ctx, position);
    if (err == QN_EAGAIN) {
        return now + QN_MS;
    }
    if (err != QN_OK) {
        failed(r, err);
        return QN_TIME_NEVER;
    }
    qn_throttle_begin(&g->pace, now, cpu_of(r));
    g->made = 0;
    g->content = 0;
    g->short_since = 0;
    g->ended = g->hurries = false;
    g->state = GIFT_UNDER_WAY;
    (void)look(r);
    hold(r);
    return now;
}

/* Chunks are on their way, or wait for room in the channel: what comes next is
 * the joiner's. */
static bool waits_for_joiner(const struct state_transfer_donation *g)
{
    return g->sent != g->taken || g->chunk_len != 0;
}

/* Fill the content of the next chunk. @return QN_OK, or as `next`. */
static int fill(struct qn_state_transfer *r, uint8_t *content, size_t *len,
                enum qn_chunk_kind *kind)
{
    struct state_transfer_donation *g = &r->donation;
    if (g->made == 0) {
        *kind = QN_CHUNK_LIBRARY;
        *len = qn_library_state_encode(&g->library, content);
        return QN_OK;
    }
    *kind = QN_CHUNK_CONTENT;
    int err =
        r->o.user.next(r->o.user.ctx, content, QN_STATE_TRANSFER_CONTENT, len);
    if (err == QN_OK) {
        QN_ASSERT(*len != 0 && *len <= QN_STATE_TRANSFER_CONTENT);
        g->content += *len;
    } else if (err == QN_ENOENT) {
        *kind = QN_CHUNK_END;
        *len = sizeof g->content;
        memcpy(content, &g->content, *len);
        g->ended = true;
        err = QN_OK;
    }
    return err;
}

/* Make the next chunk. @return QN_OK: it is ready to be sent; QN_EAGAIN:
 * later; others: the donation was given up. */
static int make(struct qn_state_transfer *r, qn_time_t now)
{
    struct state_transfer_donation *g = &r->donation;
    enum qn_chunk_kind kind;
    size_t len = 0;
    int err = fill(r, g->chunk.bytes + QN_STATE_TRANSFER_HEAD, &len, &kind);
    if (err == QN_OK) {
        if (!waits_for_joiner(g)) {
            g->heard = now; /* its silence counts from here on */
            g->late = false;
        }
        g->short_since = 0;
        g->chunk.head = (struct state_transfer_head){.kind = TRANSFER_CHUNK,
                                                     .attempt = g->attempt};
        g->chunk_len = qn_chunk_seal(g->chunk.bytes, kind, g->made++,
                                     g->library.resume.position, len);
        (void)look(r); /* the next turn finds out what it says */
    } else if (err == QN_ENOMEM && state_transfer_again(&g->short_since, now)) {
        err = QN_EAGAIN;
    } else if (err == QN_EABORTED) {
        anew(r);
    } else if (err != QN_EAGAIN) {
        failed(r, err);
    }
    return err;
}

/* @return true: sent. */
static bool send_chunk(struct qn_state_transfer *r, qn_time_t now)
{
    struct state_transfer_donation *g = &r->donation;
    const struct qn_slice bytes = {(const uint8_t *)&g->chunk,
                                   sizeof g->chunk.head + g->chunk_len};
    if (r->o.ops.tell(r->o.ops.ctx, g->to, bytes) != QN_OK) {
        return false;
    }
    g->chunk_len = 0;
    g->sent++;
    g->told = now;
    hold(r);
    if (all_sent(g)) {
        g->given++;
        state_transfer_donor_end(r);
    }
    return true;
}

/* True if writes wait for this snapshot, or soon will: the leader has decided
 * three quarters of what the hold allows for the part sent. Or a larger part
 * of what the cut may cost is used up than of the snapshot is made. */
static bool hurries(struct qn_state_transfer *r)
{
    const struct state_transfer_donation *g = &r->donation;
    uint64_t log = r->o.ops.log_used(r->o.ops.ctx, g->library.resume.position);
    return 4 * log > 3 * qn_flow_hold_mark(100, done_of(g)) ||
           g->progress.used > USED_FREE + 50 * g->progress.done / QN_HOLD_DONE;
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
        int err = g->chunk_len != 0 ? QN_OK : make(r, now);
        if (err != QN_OK) {
            return err == QN_EAGAIN ? now + QN_MS : QN_TIME_NEVER;
        }
        if (!send_chunk(r, now)) {
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
static qn_time_t give_share(struct qn_state_transfer *r, qn_time_t now)
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
    g->hurries = r->o.ops.cpu == NULL || hurries(r);
    bool most = g->hurries || qn_throttle_alone(&g->pace);
    at = give(r, most ? QN_STATE_TRANSFER_GIVE : 1, now);
    qn_time_t rested = qn_throttle_worked(&g->pace, now, cpu_of(r) - cpu);
    return g->hurries ? at : QN_MAX(at, rested);
}

/* A turn's share. @return when to continue. */
static qn_time_t work(struct qn_state_transfer *r, qn_time_t now)
{
    struct state_transfer_donation *g = &r->donation;
    if (g->state == GIFT_NONE) {
        return QN_TIME_NEVER;
    }
    if (!state_transfer_complete(r)) {
        give_up(r, TRANSFER_LOADING);
        return QN_TIME_NEVER;
    }
    if (may_not_suspend(r)) {
        give_up(r, TRANSFER_LEADS);
        return QN_TIME_NEVER;
    }
    qn_time_t at = g->state == GIFT_WANTED ? begin(r, now) : now;
    if (g->state != GIFT_UNDER_WAY) {
        return at;
    }
    if (look(r) != QN_OK) {
        anew(r);
        return QN_TIME_NEVER;
    }
    if (waits_for_joiner(g) &&
        state_transfer_silent(g->heard, QN_STATE_TRANSFER_SILENCE, now,
                              &g->late)) {
        char more[QN_RATE_LIMIT_TEXT];
        if (qn_rate_limit(&g->seldom, "silent", now, more)) {
            qn_log_to(&r->o.log, QN_LOG_INFO,
                      "member %u: gave up its snapshot for member %u, which "
                      "stopped taking chunks (%llu of %llu sent)%s",
                      r->o.self, g->to, (unsigned long long)g->taken,
                      (unsigned long long)g->sent, more);
        }
        give_up(r, TRANSFER_LATE); /* the joiner finds the message when it
                                    resumes */
        return QN_TIME_NEVER;
    }
    return g->late ? now : give_share(r, now);
}

qn_time_t state_transfer_donor_turn(struct qn_state_transfer *r, qn_time_t now)
{
    const struct state_transfer_donation *g = &r->donation;
    qn_time_t at = work(r, now);
    if (g->state == GIFT_NONE || waits_for_joiner(g)) {
        return at;
    }
    bool silent = now >= g->told + QN_STATE_TRANSFER_KEEP;
    if (silent && !say_keep(r, now)) {
        return now + QN_MS;
    }
    return QN_MIN(at, g->told + QN_STATE_TRANSFER_KEEP);
}
