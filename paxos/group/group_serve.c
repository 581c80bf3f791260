/*
 * A member that runs: commands in, applied commands out.
 *
 * Inside the driver's turn nothing is told to the host but the service's own
 * callbacks. Ends of proposals and barriers are noted, and told between the
 * driver's turn and its flush: what a callback proposes leaves in the same
 * turn.
 *
 * A member serves when it has a state, and has reached what others had shown by
 * then. Before that nothing may be proposed: its apply might run on a state
 * that is about to be replaced, and its result would be of no use.
 */
#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/earlier.h"
#include "paxos/group/group_internal.h"

enum { BYTES_OF_WORK = 1024 }; /* copied, as much as a small command */

static_assert(QN_GROUP_CUT_BYTES <= QN_STATE_TRANSFER_CONTENT, "a part fits");

/* ---- the service --------------------------------------------------------- */

static int on_apply(void *ctx, const struct qn_applied *a, uint32_t *work)
{
    struct qn_group *g = ctx;
    uint64_t result = 0;
    const struct qn_group_command c = {.bytes = a->bytes.data,
                                       .len = a->bytes.len,
                                       .slot = a->slot,
                                       .stamp_ms = a->stamp_ms,
                                       .seat = a->origin,
                                       .incarnation = a->origin_inc,
                                       .mine = a->mine,
                                       .number = a->seq};
    int err = g->o.service.apply(g->o.service.ctx, &c, &result);
    if (err != QN_OK) {
        return err;
    }
    g->commands++;
    if (a->mine) {
        qn_waits_result(&g->proposals, a->seq, result);
    }
    *work = (uint32_t)(1 + a->bytes.len / BYTES_OF_WORK);
    return QN_OK;
}

static void on_applied(void *ctx, qn_slot_t slot, uint64_t stamp_ms)
{
    (void)ctx;
    (void)slot;
    (void)stamp_ms;
}

/* Members of a group say nothing to each other outside the log. */
static void on_peer_message(void *ctx, qn_node_t from, struct qn_slice bytes)
{
    (void)ctx;
    (void)from;
    (void)bytes;
}

struct qn_service qn_group_driver_service(struct qn_group *g)
{
    return (struct qn_service){.try_apply = on_apply,
                               .applied = on_applied,
                               .on_peer_message = on_peer_message,
                               .ctx = g};
}

/* ---- snapshots ----------------------------------------------------------- */

static bool is_complete(void *ctx)
{
    return ((const struct qn_group *)ctx)->complete;
}

static int cut_begin(void *ctx, qn_slot_t position)
{
    const struct qn_group *g = ctx;
    (void)position;
    return g->o.service.begin(g->o.service.ctx);
}

static int cut_next(void *ctx, uint8_t *bytes, size_t cap, size_t *len)
{
    const struct qn_group *g = ctx;
    int err = g->o.service.next(g->o.service.ctx, bytes, cap, len);
    QN_ASSERT(err != QN_OK || (*len >= 1 && *len <= cap));
    return err;
}

static void cut_end(void *ctx)
{
    const struct qn_group *g = ctx;
    g->o.service.end(g->o.service.ctx);
}

static int build_read(void *ctx, qn_slot_t position, struct qn_slice part)
{
    const struct qn_group *g = ctx;
    (void)position;
    return g->o.service.read(g->o.service.ctx, part.data, part.len);
}

static int build_finish(void *ctx)
{
    const struct qn_group *g = ctx;
    return g->o.service.finish(g->o.service.ctx);
}

static void build_install(void *ctx, qn_slot_t position)
{
    struct qn_group *g = ctx;
    (void)position;
    g->o.service.install(g->o.service.ctx);
    g->complete = true;
}

static void build_abandon(void *ctx)
{
    const struct qn_group *g = ctx;
    g->o.service.abandon(g->o.service.ctx);
}

static void on_lags(void *ctx, qn_slot_t slot)
{
    (void)ctx;
    (void)slot;
}

static void on_covered(void *ctx, uint64_t seq)
{
    struct qn_group *g = ctx;
    qn_waits_upto(&g->proposals, seq, QN_EUNKNOWN);
}

static void on_caught_up(void *ctx, qn_slot_t position)
{
    struct qn_group *g = ctx;
    (void)position;
    g->complete = true;
}

struct qn_member_state qn_group_member_state(struct qn_group *g)
{
    return (struct qn_member_state){.user = {.no_cut = !g->o.service.keeps_cut,
                                             .complete = is_complete,
                                             .begin = cut_begin,
                                             .next = cut_next,
                                             .end = cut_end,
                                             .read = build_read,
                                             .finish = build_finish,
                                             .install = build_install,
                                             .abandon = build_abandon,
                                             .ctx = g},
                                    .rounds_max = QN_GROUP_ROUNDS_MAX,
                                    .lags = on_lags,
                                    .covered = on_covered,
                                    .caught_up = on_caught_up,
                                    .ctx = g};
}

/* ---- a turn -------------------------------------------------------------- */

/* Those that have come since the last turn want one look. */
static void barriers_look(struct qn_group *g)
{
    if (g->barriers_new == 0) {
        return;
    }
    const struct qn_read_view v = qn_driver_read_view(g->driver);
    qn_waits_number(&g->barriers, g->barriers_new, v.index);
    qn_driver_read_wanted(g->driver, v.index);
    g->barriers_new = 0;
}

/* What a state that is lost would show is nothing: they wait for another one.
 */
static void barriers_end(struct qn_group *g)
{
    if (qn_apply_failure_whole(g->failure) &&
        qn_waits_open(&g->barriers) > g->barriers_new) {
        qn_waits_upto(&g->barriers, qn_driver_read_view(g->driver).reached,
                      QN_OK);
    }
}

/* Turn and flush may both lose it. */
static void serve_no_lost_state(struct qn_group *g)
{
    if (!qn_apply_failure_whole(g->failure)) {
        g->complete = g->catches_up = g->serving = false;
    }
}

static void serve_when_reached(struct qn_group *g)
{
    serve_no_lost_state(g);
    if (g->serving || !g->complete) {
        return;
    }
    const struct qn_read_view v = qn_driver_read_view(g->driver);
    if (!g->catches_up) {
        g->catches_up = true;
        g->serve_from = v.index;
        qn_driver_read_wanted(g->driver, v.index);
    }
    g->serving = v.reached >= g->serve_from;
}

static void tell_changes(struct qn_group *g, qn_time_t now)
{
    const uint64_t members = qn_member_peers(g->member);
    const uint64_t voters = qn_driver_voters(g->driver);
    const uint64_t epoch = qn_member_epoch(g->member);
    const enum qn_group_phase phase =
        g->serving ? QN_GROUP_SERVING : QN_GROUP_SYNCING;
    struct qn_driver_status st;
    if (members == g->members && voters == g->voters && epoch == g->epoch &&
        phase == g->phase) {
        return;
    }
    if (epoch != g->epoch) {
        qn_driver_status(g->driver, &st);
        if (st.failovers != g->failovers && st.reason == QN_REASON_SUSPECTED) {
            qn_member_deposed(g->member, st.lost, now);
        }
        g->failovers = st.failovers;
    }
    g->members = members;
    g->voters = voters;
    g->epoch = epoch;
    g->phase = phase;
    if (g->o.service.changed != NULL) {
        g->o.service.changed(g->o.service.ctx);
    }
}

/* Its service can neither apply nor take a state, or a message had no memory to
 * wait for its channel. @return true: so it ends. */
static bool ends(struct qn_group *g)
{
    struct qn_state_transfer_status t;
    char why[QN_GROUP_WHY_MAX];
    if (qn_driver_failed(g->driver) != QN_OK) {
        (void)qn_group_fail(g, qn_driver_failed(g->driver),
                            "there is no memory for a message");
        return true;
    }
    if (g->failure->phase != QN_APPLY_ENDED &&
        !qn_member_transfer_gave_up(g->member)) {
        return false;
    }
    const struct qn_apply_failure f = *g->failure;
    qn_member_transfer_status(g->member, &t);
    g->failed_slot = f.slot;
    g->failed_err = f.error;
    if (t.gave_up) {
        snprintf(why, sizeof why, "no state came: %s (member %u)",
                 qn_strerror(t.error), t.error_node);
    } else {
        snprintf(why, sizeof why,
                 "the command in slot %llu cannot be applied: %s",
                 (unsigned long long)f.slot, qn_strerror(f.error));
    }
    (void)qn_group_fail(g, t.gave_up ? t.error : f.ended, why);
    return true;
}

/* What had no memory is tried again, when what is kept for others has given
 * way.
 * @return true: at once. */
static bool gives_back(struct qn_group *g)
{
    if (g->alloc.unmet == g->unmet) {
        return false;
    }
    g->unmet = g->alloc.unmet;
    return qn_driver_give_back(g->driver);
}

/* Halted goes before held back. */
static int takes(const struct qn_group *g)
{
    if (qn_driver_halted(g->driver)) {
        return QN_ENOQUORUM;
    }
    return qn_driver_held(g->driver) ? QN_EAGAIN : QN_OK;
}

/* @return true: something was asked for, or has come. */
static bool receive(struct qn_group *g, qn_time_t now)
{
    bool did = g->asked;
    g->asked = false;
    barriers_look(g);
    did |= qn_driver_turn(g->driver, now, qn_clock_wall_ms());
    g->applying = false;
    barriers_end(g);
    g->takes = takes(g); /* one look for all that callbacks propose */
    return did;
}

/* @return true: something has ended. */
static bool tell_and_send(struct qn_group *g, qn_time_t now)
{
    g->open = g->serving && g->takes == QN_OK;
    bool did =
        qn_waits_due(&g->barriers, now) && qn_waits_deliver(&g->barriers, now);
    /* Last, so that what these propose leaves soonest. */
    did |= qn_waits_deliver(&g->proposals, now);
    g->open = false;
    g->applying = true; /* what the flush decides it may apply */
    (void)qn_driver_flush(g->driver, now);
    g->applying = false;
    return did;
}

static void spin_again(struct qn_group *g, qn_time_t now)
{
    g->spin_until = now + QN_MIN(g->o.spin_ns, QN_TIME_NEVER - now);
    g->yields = 0;
}

static qn_time_t waits_next(const struct qn_group *g)
{
    return qn_time_earlier(qn_waits_next(&g->proposals),
                           qn_waits_next(&g->barriers));
}

/* Of what is asked for at any time. */
static qn_time_t due(struct qn_group *g, qn_time_t now)
{
    const bool again = gives_back(g) || g->barriers_new != 0;
    return again ? now : waits_next(g);
}

qn_time_t qn_group_serve_turn(struct qn_group *g, qn_time_t now)
{
    g->applying = true;
    qn_time_t at = qn_member_turn_begin(g->member, now);
    bool did = receive(g, now);
    serve_when_reached(g);
    at = qn_time_earlier(at, qn_group_change_turn(g, now));
    const bool removed = qn_driver_removed(g->driver);
    did |= tell_and_send(g, now);
    if (did) {
        spin_again(g, now);
    }
    if (removed) { /* its record was written, if it was to be */
        (void)qn_group_fail(g, QN_EREMOVED,
                            "this member was removed from the group");
        return QN_TIME_NEVER;
    }
    g->applying = true;
    serve_no_lost_state(g);
    at = qn_time_earlier(at, qn_member_turn_end(g->member, now));
    tell_changes(g, now);
    g->applying = false;
    if (ends(g)) {
        return QN_TIME_NEVER;
    }
    at = qn_time_earlier(at, qn_driver_deadline(g->driver));
    at = qn_time_earlier(at, due(g, now));
    const bool again =
        qn_group_change_due(g, now) || qn_driver_removed(g->driver);
    return again ? now : at;
}

qn_time_t qn_group_serve_between(struct qn_group *g, qn_time_t now)
{
    g->applying = true;
    bool did = receive(g, now);
    serve_no_lost_state(g);
    did |= tell_and_send(g, now);
    serve_no_lost_state(g);
    if (did) {
        spin_again(g, now);
    }
    if (!g->serving || g->alloc.unmet != g->unmet ||
        qn_member_wants_turn(g->member)) {
        g->looks = 0;
    }
    return qn_time_earlier(qn_driver_deadline(g->driver), waits_next(g));
}

/* ---- what the host asks -------------------------------------------------- */

__attribute__((cold)) static int refused(struct qn_group *g,
                                         enum qn_group_reason why)
{
    g->reason = why;
    return QN_EAGAIN;
}

int qn_group_may_ask(const struct qn_group *g)
{
    if (!qn_fork_mark_is_own(&g->own)) {
        return QN_EPERM;
    }
    if (g->step == QN_STEP_FAILED || g->jumped) {
        return g->jumped ? QN_EABORTED : g->err;
    }
    return g->applying ? QN_EBUSY : QN_OK;
}

/* @return QN_OK: it may ask. */
static int check(struct qn_group *g)
{
    int err = qn_group_may_ask(g);
    return err == QN_OK && !g->serving ? refused(g, QN_GROUP_JOINS) : err;
}

qn_time_t qn_group_deadline(const struct qn_group *g, uint64_t timeout)
{
    if (timeout == QN_GROUP_FOREVER) {
        return QN_TIME_NEVER;
    }
    const qn_time_t now =
        __builtin_expect(g->now != 0, true) ? g->now : qn_clock_now();
    return timeout < QN_TIME_NEVER - now ? now + timeout : QN_TIME_NEVER;
}

__attribute__((noinline)) static int propose_check(struct qn_group *g,
                                                   size_t len)
{
    int err = check(g);
    if (err != QN_OK) {
        return err;
    }
    if (len == 0 || len > g->layout.command_max) {
        return len == 0 ? QN_EINVAL : QN_EMSGSIZE;
    }
    const int now = g->turning ? g->takes : takes(g);
    if (qn_waits_given_up(&g->proposals) || now == QN_ENOQUORUM) {
        return QN_ENOQUORUM;
    }
    if (!qn_waits_room(&g->proposals, len)) {
        return refused(g, QN_GROUP_FULL);
    }
    return now == QN_EAGAIN ? refused(g, QN_GROUP_HELD) : QN_OK;
}

/* One that a callback makes: nothing is left to be looked at. */
static bool is_open(const struct qn_group *g, size_t len)
{
    return g->open && qn_fork_mark_is_own(&g->own) &&
           len - 1 < g->layout.command_max &&
           (qn_waits_empty(&g->proposals) ||
            (qn_waits_room(&g->proposals, len) &&
             !qn_waits_given_up(&g->proposals)));
}

/* Cold, as is `refused`: what a proposal that is taken runs through lies
 * together, in few lines of a cache. */
__attribute__((cold)) static int not_proposed(struct qn_group *g, int err)
{
    if (err == QN_ENOMEM && g->step == QN_STEP_RUN) {
        qn_group_kick(g); /* it gives back */
    }
    return err;
}

static int propose(struct qn_group *g, struct qn_slice command,
                   uint64_t timeout, qn_group_done *done, void *ctx)
{
    uint64_t seq;
    int err = QN_OK;
    if (!__builtin_expect(is_open(g, command.len), true)) {
        err = propose_check(g, command.len);
    }
    if (err == QN_OK) {
        err = qn_driver_submit(g->driver, &command, 1, &seq);
        err = err == QN_EAGAIN ? refused(g, QN_GROUP_NO_CREDIT) : err;
    }
    if (err != QN_OK) {
        return not_proposed(g, err);
    }
    const struct qn_wait w = {.number = seq,
                              .deadline = qn_group_deadline(g, timeout),
                              .bytes = command.len,
                              .done = done,
                              .ctx = ctx};
    qn_waits_add(&g->proposals, &w);
    g->reason = QN_GROUP_TAKEN;
    qn_group_ask(g);
    return QN_OK;
}

int qn_group_propose(struct qn_group *g, const void *bytes, size_t len,
                     uint64_t timeout, qn_group_done *done, void *ctx)
{
    struct qn_group_call c;
    qn_group_call_begin(g, &c);
    int err = propose(g, (struct qn_slice){bytes, len}, timeout, done, ctx);
    qn_group_call_end(&c);
    return err;
}

static int barrier(struct qn_group *g, uint64_t timeout, qn_group_done *done,
                   void *ctx)
{
    int err = check(g);
    if (err == QN_OK && !qn_waits_room(&g->barriers, 0)) {
        err = refused(g, QN_GROUP_FULL);
    }
    if (err != QN_OK) {
        return err;
    }
    const struct qn_wait w = {.number = UINT64_MAX, /* until the next look */
                              .deadline = qn_group_deadline(g, timeout),
                              .done = done,
                              .ctx = ctx};
    qn_waits_add(&g->barriers, &w);
    g->barriers_new++;
    g->reason = QN_GROUP_TAKEN;
    qn_group_kick(g);
    return QN_OK;
}

int qn_group_barrier(struct qn_group *g, uint64_t timeout, qn_group_done *done,
                     void *ctx)
{
    struct qn_group_call c;
    qn_group_call_begin(g, &c);
    int err = barrier(g, timeout, done, ctx);
    qn_group_call_end(&c);
    return err;
}

enum qn_group_reason qn_group_reason(const struct qn_group *g)
{
    return g->reason;
}

/* ---- status -------------------------------------------------------------- */

static uint32_t count(uint64_t mask)
{
    return (uint32_t)__builtin_popcountll(mask);
}

/* A majority must live that changes the roles, and one of those with which
 * nothing is lost: with the process acceptor those are two, whichever has what
 * was decided last. */
static uint32_t survived(uint64_t voters, uint64_t voting, uint64_t in_sync)
{
    const uint32_t needed = count(voters) / 2 + 1;
    const uint32_t votes = count(voting) > needed ? count(voting) - needed : 0;
    const uint32_t copies = count(in_sync) > 1 ? count(in_sync) - 1 : 0;
    return QN_MIN(votes, copies);
}

static void status_of_member(const struct qn_group *g,
                             struct qn_group_status *out)
{
    struct qn_driver_status d;
    struct qn_state_transfer_status t;
    qn_driver_status(g->driver, &d);
    qn_member_transfer_status(g->member, &t);
    out->phase = g->serving ? QN_GROUP_SERVING : QN_GROUP_SYNCING;
    out->seat = g->self;
    out->incarnation = g->incarnation;
    out->capacity = g->layout.nodes;
    out->members = d.alive;
    out->voters = d.voters;
    out->in_sync = d.in_sync;
    out->leader = d.leader;
    out->acceptor = d.acceptor;
    out->epoch = d.epoch;
    out->failovers = d.failovers;
    out->deaths = survived(d.voters, d.voting, d.in_sync);
    out->halted = qn_driver_halted(g->driver);
    out->overwritten = qn_driver_register_damaged(g->driver);
    out->applied = d.applied;
    out->decided = d.decided_hi;
    out->commands = g->commands;
    out->failed = g->failure->slot;
    out->failed_err = g->failure->error;
    out->lost = !qn_apply_failure_whole(g->failure);
    out->stopped = g->failure->phase == QN_APPLY_STOPPED;
    out->proposals = qn_waits_open(&g->proposals);
    out->snapshots_given = t.given;
    out->snapshots_installed = t.joined;
    out->donor = t.donor;
    out->joiner = t.joiner;
}

void qn_group_status(const struct qn_group *g, struct qn_group_status *out)
{
    *out = (struct qn_group_status){.phase = QN_GROUP_MEETING};
    if (g->step == QN_STEP_FAILED) {
        out->phase = QN_GROUP_ENDED;
        out->err = g->err;
        out->failed = g->failed_slot;
        out->failed_err = g->failed_err;
    } else if (g->driver != NULL && qn_fork_mark_is_own(&g->own)) {
        status_of_member(g, out);
    }
}

void qn_group_seat(const struct qn_group *g, uint32_t seat,
                   struct qn_group_seat *out)
{
    struct qn_member_peer p = {.incarnation = g->incarnation};
    struct qn_position position = {.applied = 0};
    *out = (struct qn_group_seat){.incarnation = 0};
    if (g->driver == NULL || !qn_fork_mark_is_own(&g->own) ||
        seat >= g->layout.nodes) {
        return;
    }
    out->votes = (qn_driver_voters(g->driver) >> seat & 1) != 0;
    if (seat == g->self) {
        out->lives = true;
        position.applied = qn_driver_applied(g->driver);
    } else {
        out->lives = qn_member_peer(g->member, seat, &p) &&
                     qn_driver_peer_says(g->driver, seat, &position);
    }
    out->incarnation = p.incarnation;
    out->applied = position.applied;
}
