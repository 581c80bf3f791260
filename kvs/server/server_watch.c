/*
 * Who of a replica's peers has ended, or stands still.
 *
 * While something waits they are looked for at every turn or LOOK apart at the
 * latest, whichever is rarer. Who waits for nobody looks for deaths in the
 * turns that it makes anyway, for there may be no supervisor to tell of them,
 * and the log is kept for the living; an idle server uses no CPU. A death is
 * certain. A standstill is a suspicion: the peer's turn counter has not moved
 * for SILENT of this replica's own time, of which one turn counts OWN_TURN at
 * most, so that one that was itself taken off its core suspects nobody for it.
 * Who is silent is rung first: he may sleep, and that is not standing still.
 * Who has run for RUNS in that time is in the middle of a long turn (KEYS of
 * 10^7 keys: 0.5 s), and given LONG_TURN: a change of leaders would help
 * nobody, since the next one may be asked the same.
 *
 * SILENT: a core shared by five processes gives each a turn every 15 to 20 ms.
 * Beside more, or heavier, work that is too short, which shows when this
 * replica makes a turn late itself, or when who was deposed for it makes turns
 * again soon: then it suspects later (patience.h). (A long turn of its own
 * counts as late, too: others may be asked the same.) Of one that was stopped
 * the kernel says so, and nobody has to guess.
 *
 * Who has died frees its memory on the core that it had, perhaps that of the
 * next leader, for 0.1 ms per MB. So it gets the longest slice, and nobody
 * yields to it: whoever wakes there goes first. One that is gone already has
 * nothing to free, and its id may be another's.
 */
#include <inttypes.h>

#include "core/base/log.h"
#include "core/place/hold.h"
#include "core/place/liveness.h"
#include "core/place/process.h"
#include "kvs/server/server.h"

#define LOOK           (500 * QN_US)
#define OWN_TURN       (5 * QN_MS)
#define SILENT         (50 * QN_MS) /* cores are shared */
#define SILENT_OWN     (20 * QN_MS) /* each replica has its own */
#define SILENT_STOPPED (10 * QN_MS) /* and the kernel says so */
#define RING_AFTER     QN_MS
#define RUNS           (5 * QN_MS) /* CPU time */
#define LONG_TURN      (2000 * QN_MS)
#define KEPT_LOOK      (100 * QN_MS)

static uint64_t bit(qn_node_t n)
{
    return UINT64_C(1) << n;
}

static qn_time_t least(const struct qn_server *s)
{
    return s->boot->own_cores ? SILENT_OWN : SILENT;
}

void qn_server_watch_begin(struct qn_server *s)
{
    qn_patience_init(&s->patience, least(s));
}

qn_time_t qn_server_patience(struct qn_server *s, qn_time_t now)
{
    return qn_patience_at(&s->patience, now);
}

static void look_for_deaths(struct qn_server *s)
{
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        if (s->peer[i] != NULL &&
            qn_liveness_check(s->commons, i, s->peer[i]->inc) ==
                QN_LIVENESS_DEAD) {
            if (qn_hold_by(s->boot->commons_fd, i, s->peer[i]->pid)) {
                (void)qn_process_slice(s->peer[i]->pid, QN_SLICE_LONGEST);
            }
            qn_spin_yield_not(&s->yield, qn_clock_now());
            qn_server_life_down(s, i);
        }
    }
}

static uint64_t turns_of(const struct qn_server_life *l)
{
    /* relaxed: a sign of life; nothing is read through it. */
    return qn_load(&qn_outbox_state(l->outbox)->turns, QN_RELAXED);
}

static void be_patient(struct qn_server *s, qn_node_t slow, qn_time_t now)
{
    qn_time_t ns = qn_patience_wrong(&s->patience, now);
    qn_log(QN_LOG_INFO,
           "replica %u: replica %u goes on; suspects who is silent for %" PRIu64
           " ms from now on",
           s->boot->self, slow, ns / QN_MS);
}

void qn_server_deposed(struct qn_server *s, qn_node_t i, qn_time_t now)
{
    struct qn_server_life *l = s->peer[i];
    if (i != s->boot->self && l != NULL && !qn_process_stopped(l->pid)) {
        s->doubts |= bit(i);
        l->deposed = now;
        l->turns = turns_of(l);
    }
}

/* Was it right to depose it? Who took longer than patience can last stood still
 * indeed. */
static void judge(struct qn_server *s, struct qn_server_life *l, bool turned)
{
    bool late = s->looked - l->deposed >= QN_PATIENCE_MOST * least(s);
    if (turned && !late) {
        be_patient(s, l->node, s->looked);
    }
    if (turned || late) {
        s->doubts &= ~bit(l->node);
    }
}

/* Time in which it has made no turn, while it was waited for. */
static void count_silence(struct qn_server *s, struct qn_server_life *l,
                          bool waited_for, qn_time_t passed)
{
    uint64_t turns = turns_of(l);
    if ((s->doubts & bit(l->node)) != 0) {
        judge(s, l, turns != l->turns);
    }
    if (!waited_for || turns != l->turns) {
        l->turns = turns;
        l->silent = 0;
        return;
    }
    bool new = l->silent < RING_AFTER;
    l->silent += passed;
    if (l->silent >= RING_AFTER) {
        l->cpu = new ? qn_process_ran(l->pid) : l->cpu;
        (void)qn_doorbell_ring(&s->ringer[l->node]);
    }
}

/* It stands still; or its turn is so long that nobody can wait for it. */
static bool is_silent(struct qn_server *s, const struct qn_server_life *l)
{
    if (l->silent >= SILENT_STOPPED && qn_process_stopped(l->pid)) {
        return true;
    }
    if (l->silent < qn_patience_at(&s->patience, s->looked)) {
        return false;
    }
    return l->silent >= LONG_TURN || qn_process_ran(l->pid) < l->cpu + RUNS;
}

static void look_for_standstills(struct qn_server *s, uint64_t waited_for,
                                 qn_time_t passed)
{
    uint64_t suspects = 0;
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        struct qn_server_life *l = s->peer[i];
        if (l != NULL) {
            count_silence(s, l, (waited_for & bit(i)) != 0, passed);
            suspects |= is_silent(s, l) ? bit(i) : 0;
        }
    }
    if (suspects != s->suspects) {
        s->suspects = suspects;
        s->turn_wanted = true;
        qn_driver_suspect(qn_replica_driver(s->replica), suspects,
                          qn_clock_now());
    }
}

qn_time_t qn_server_watch_turn(struct qn_server *s, qn_time_t now)
{
    if (now < s->look_at) {
        return s->look_at;
    }
    if (s->look_at == s->looked + LOOK) { /* something waits */
        qn_patience_late(&s->patience, now - s->look_at, now);
    }
    uint64_t waited_for = qn_driver_waits_for(qn_replica_driver(s->replica));
    qn_time_t passed = QN_MIN(now - s->looked, OWN_TURN);
    s->looked = now;
    if (waited_for != 0 || now >= s->deaths_at) {
        look_for_deaths(s);
        s->deaths_at = now + LOOK;
    }
    uint64_t unsure = s->suspects | s->doubts;
    if (waited_for != 0 || unsure != 0) {
        look_for_standstills(s, waited_for, passed);
    }
    qn_server_lives_forget(s);
    if (waited_for == 0 && unsure == 0 && s->kept == NULL) {
        s->look_at = 0; /* with the next turn */
        return QN_TIME_NEVER;
    }
    s->look_at = now + (waited_for != 0 ? LOOK : KEPT_LOOK);
    return s->look_at;
}
