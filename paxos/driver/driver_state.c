/*
 * State by message (PROTOCOL.md 3.7): where no node reads another's outbox,
 * each says in STATE what it would be looked up for.
 *
 * What a peer has said last lies in private memory in the form of its outbox's
 * state, and the other files read it there as if it were the outbox. So a rule
 * has one source for both. What differs is *when* a word was true: in an outbox
 * now, in a STATE when it was said. Three rules need more than that, and get
 * it otherwise:
 *
 *     the bound of positions (8.2)    there is none: it guards words that every
 *                                     node can write, and here are no such
 *     the read index                  by message (8.3)
 *     the verdict (6.5)               rests on answers to a question that was
 *                                     asked after the ends were heard of
 *
 * Channels are FIFO and belong to a pair of incarnations, so positions of an
 * incarnation never fall, and those of the next one replace them.
 *
 * When STATE is said: to a new incarnation in the turn in which it begins; to
 * all at once when the epoch, a vote, a hold, the verdict or what the program
 * says at once has changed; at
 * most each QN_HEARTBEAT_INTERVAL when positions have; to one that has asked.
 * An idle group says nothing.
 *
 * A peer that is waited for is asked each interval: its answers are its signs
 * of life (qn_driver_signs).
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "paxos/driver/driver_internal.h"

/** Bytes received that are worth saying, though no position has moved: a part
 *  of a long batch. More than what the STATEs of a whole group have. */
#define READ_STEP (UINT64_C(64) << 10)

/* ---- reads --------------------------------------------------------------- */

/* While the service has not applied what the machine has put out, no further
 * read is answered. */
struct qn_read_view qn_driver_state_view(struct qn_driver *d)
{
    if (!qn_driver_apply_waits(d)) {
        d->talk.reached = qn_onepaxos_read_reached(d->machine);
    }
    return (struct qn_read_view){.index = qn_onepaxos_read_number(d->machine),
                                 .reached = d->talk.reached};
}

void qn_driver_read_wanted(struct qn_driver *d, uint64_t index)
{
    if (d->told != NULL) {
        QN_ASSERT(index <= qn_onepaxos_read_number(d->machine));
        d->talk.read_wanted |= index == qn_onepaxos_read_number(d->machine);
    }
}

/* Once a turn: for the reads that have come, or again for those that wait. */
static void reads_ask(struct qn_driver *d)
{
    const struct qn_input in = {.kind = QN_IN_READ,
                                .read = {d->talk.read_wanted}};
    if (d->talk.read_wanted || qn_onepaxos_read_waits(d->machine)) {
        d->talk.read_wanted = false;
        qn_driver_step(d, &in);
    }
    if (qn_onepaxos_read_waits(d->machine)) {
        qn_positions_look_by(
            &d->positions,
            QN_MAX(qn_onepaxos_read_again_at(d->machine), d->now + QN_MS));
    }
}

/* ---- what is said -------------------------------------------------------- */

/* relaxed: only this thread writes the own state. */
static struct qn_peer_state own_state(const struct qn_driver *d)
{
    const struct qn_outbox_state *s = d->o.state;
    struct qn_peer_state own = {
        .inc = d->peer[d->o.self].incarnation.inc,
        .applied = qn_load(&s->applied, QN_RELAXED),
        .learned = qn_load(&s->learned, QN_RELAXED),
        .voted = qn_load(&s->voted, QN_RELAXED),
        .stopped = qn_load(&s->stopped, QN_RELAXED),
        .read = qn_load(&s->read, QN_RELAXED),
        .hold_slot = qn_load(&s->hold_slot, QN_RELAXED),
        .hold_done = qn_load(&s->hold_done, QN_RELAXED),
        .held = qn_load(&s->held, QN_RELAXED),
        .lack = qn_load(&s->lack, QN_RELAXED),
        .phase = qn_load(&s->phase, QN_RELAXED),
    };
    for (uint32_t i = 0; i < QN_PEER_STATE_COUNTERS; i++) {
        own.counters[i] = qn_load(&s->counters[i], QN_RELAXED);
    }
    return own;
}

/* Has one of the program's counters changed, from..to-1? */
static bool counted(const struct qn_peer_state *was,
                    const struct qn_peer_state *now, uint32_t from, uint32_t to)
{
    return memcmp(was->counters + from, now->counters + from,
                  (to - from) * sizeof now->counters[0]) != 0;
}

/* What has changed of the program's since it was noted, all peers lack. */
static void program_note(struct qn_driver_talk *t,
                         const struct qn_peer_state *now)
{
    if (now->phase != t->program.phase ||
        counted(&t->program, now, 0, QN_PEER_STATE_COUNTERS)) {
        t->program = *now;
        t->lack = UINT64_MAX;
    }
}

static bool is_urgent(const struct qn_driver_talk *t,
                      const struct qn_peer_state *now, qn_epoch_t epoch)
{
    const struct qn_peer_state *was = &t->said;
    return epoch != t->epoch || now->voted != was->voted ||
           now->stopped != was->stopped || now->held != was->held ||
           now->hold_slot != was->hold_slot || now->lack != was->lack ||
           now->phase != was->phase ||
           counted(was, now, QN_PEER_STATE_AT_ONCE, QN_PEER_STATE_COUNTERS);
}

static bool has_moved(const struct qn_driver_talk *t,
                      const struct qn_peer_state *now)
{
    const struct qn_peer_state *was = &t->said;
    return now->applied != was->applied || now->learned != was->learned ||
           now->hold_done != was->hold_done ||
           now->read - was->read >= READ_STEP ||
           counted(was, now, 0, QN_PEER_STATE_AT_ONCE);
}

static void state_send(struct qn_driver *d, qn_node_t to,
                       struct qn_peer_state *s)
{
    struct qn_driver_talk *t = &d->talk;
    const uint32_t bytes = (t->lack & qn_driver_bit(to)) != 0
                               ? QN_PEER_STATE_BYTES
                               : QN_PEER_STATE_SHORT;
    struct qn_refbuf *b = qn_refbuf_create(&d->pool.alloc, bytes);
    if (b == NULL) {
        t->owed |= qn_driver_bit(to); /* at the next flush */
        return;
    }
    s->ask = (t->asks & qn_driver_bit(to)) != 0 ? t->question : 0;
    s->answer = d->peer[to].asked;
    qn_peer_state_encode(s, b->bytes, bytes);
    b->len = bytes;
    const struct qn_msg m = {.kind = QN_MSG_STATE,
                             .epoch = d->roles.cfg.index,
                             .total = b->len,
                             .body = {b->bytes, b->len},
                             .refbuf = b};
    qn_driver_send(d, to, &m);
    qn_refbuf_unref(b);
    t->owed &= ~qn_driver_bit(to);
    t->asks &= ~qn_driver_bit(to);
    t->lack &= ~qn_driver_bit(to);
}

/* Peers without which this node cannot go on: are they there? */
static void waited_ask(struct qn_driver *d)
{
    struct qn_driver_talk *t = &d->talk;
    uint64_t waits = qn_driver_waits_for(d);
    if (waits != 0 && d->now >= t->ask_at) {
        t->question++;
        t->asks |= waits;
        t->ask_at = d->now + QN_HEARTBEAT_INTERVAL;
    }
    if (waits != 0) {
        qn_positions_look_by(&d->positions, t->ask_at);
    }
}

void qn_driver_state_say(struct qn_driver *d)
{
    struct qn_driver_talk *t = &d->talk;
    struct qn_peer_state s = own_state(d);
    uint64_t others = qn_driver_living(d) & ~qn_driver_bit(d->o.self);
    bool urgent = is_urgent(t, &s, d->roles.cfg.index);
    bool moved = urgent || has_moved(t, &s);
    bool all = urgent || (moved && d->now >= t->say_at);
    program_note(t, &s);
    reads_ask(d);
    waited_ask(d);
    if (all) {
        t->said = s;
        t->epoch = d->roles.cfg.index;
        t->say_at = d->now + QN_HEARTBEAT_INTERVAL;
    } else if (moved) {
        qn_positions_look_by(&d->positions, t->say_at);
    }
    uint64_t to = (all ? others : t->owed | t->asks) & others;
    for (; to != 0; to &= to - 1) {
        state_send(d, (qn_node_t)__builtin_ctzll(to), &s);
    }
}

/* ---- what is heard ------------------------------------------------------- */

static void program_take(struct qn_outbox_state *s,
                         const struct qn_peer_state *said)
{
    qn_store(&s->phase, said->phase, QN_RELAXED);
    for (uint32_t i = 0; i < QN_PEER_STATE_COUNTERS; i++) {
        qn_store(&s->counters[i], said->counters[i], QN_RELAXED);
    }
}

void qn_driver_state_take(struct qn_driver *d, qn_node_t from,
                          const struct qn_msg *m)
{
    struct qn_driver_peer *p = &d->peer[from];
    struct qn_outbox_state *s = d->told != NULL ? &d->told[from] : NULL;
    struct qn_peer_state said;
    int err = qn_peer_state_decode(&said, m->body);
    QN_ASSERT(err == QN_OK); /* the codec has checked it */
    if (s == NULL || said.inc != p->incarnation.inc) {
        return; /* of another incarnation: void */
    }
    /* relaxed: private to this thread. */
    qn_store(&s->applied, said.applied, QN_RELAXED);
    qn_store(&s->learned, said.learned, QN_RELAXED);
    qn_store(&s->epoch, m->epoch, QN_RELAXED);
    qn_store(&s->voted, said.voted, QN_RELAXED);
    qn_store(&s->stopped, said.stopped, QN_RELAXED);
    qn_store(&s->read, said.read, QN_RELAXED);
    qn_store(&s->hold_slot, said.hold_slot, QN_RELAXED);
    qn_store(&s->hold_done, said.hold_done, QN_RELAXED);
    qn_store(&s->held, said.held, QN_RELAXED);
    qn_store(&s->lack, said.lack, QN_RELAXED);
    if (m->body.len == QN_PEER_STATE_BYTES) {
        program_take(s, &said);
    }
    qn_store(&s->turns, qn_load(&s->turns, QN_RELAXED) + 1, QN_RELAXED);
    p->answered = QN_MAX(p->answered, said.answer);
    if (said.ask > p->asked) {
        p->asked = said.ask;
        d->talk.owed |= qn_driver_bit(from);
    }
    qn_positions_look_by(&d->positions, d->now);
}

const struct qn_outbox_state *qn_driver_said(const struct qn_driver *d,
                                             qn_node_t peer)
{
    QN_ASSERT(d->told != NULL);
    QN_ASSERT(peer < d->o.nodes && peer != d->o.self);
    return &d->told[peer];
}

uint64_t qn_driver_signs(const struct qn_driver *d, qn_node_t peer)
{
    QN_ASSERT(d->told != NULL);
    QN_ASSERT(peer < d->o.nodes);
    return qn_load(&d->told[peer].turns, QN_RELAXED);
}

/* ---- a question to all --------------------------------------------------- */

/* Peers that have answered the question to all. */
static uint64_t answered(const struct qn_driver *d)
{
    uint64_t mask = 0;
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        bool has = d->talk.round != 0 && d->peer[i].answered >= d->talk.round;
        mask |= has && qn_driver_lives(d, i) ? qn_driver_bit(i) : 0;
    }
    return mask;
}

uint64_t qn_driver_state_fresh(const struct qn_driver *d)
{
    return answered(d) | qn_driver_bit(d->o.self);
}

bool qn_driver_state_asked(struct qn_driver *d, bool wanted)
{
    struct qn_driver_talk *t = &d->talk;
    if (d->told == NULL) {
        return wanted;
    }
    if (!wanted || t->round_ul != d->roles.ul_len) {
        t->round = 0;
    }
    uint64_t living = qn_driver_living(d);
    if (wanted && t->round == 0) {
        t->round = ++t->question;
        t->round_ul = d->roles.ul_len;
        t->asks |= living & ~qn_driver_bit(d->o.self);
        qn_positions_look_by(&d->positions, d->now);
    }
    return wanted && (living & ~qn_driver_state_fresh(d)) == 0;
}

/* ---- begin and end ------------------------------------------------------- */

void qn_driver_state_forget(struct qn_driver *d, qn_node_t peer)
{
    if (d->told == NULL) {
        return;
    }
    d->told[peer] = (struct qn_outbox_state){0};
    qn_store(&d->told[peer].voted, UINT64_MAX, QN_RELAXED);
    d->peer[peer].asked = d->peer[peer].answered = 0;
    d->peer[peer].state = &d->told[peer];
    d->talk.owed |= qn_driver_bit(peer);
    d->talk.lack |= qn_driver_bit(peer);
    d->talk.round = 0; /* what was asked before does not cover it */
}

int qn_driver_state_begin(struct qn_driver *d)
{
    size_t bytes = d->o.nodes * sizeof *d->told;
    if (d->o.nodes == 1 || d->o.peer_state != NULL) {
        return QN_OK;
    }
    if (d->memory || d->o.arena != NULL || d->o.ended != NULL ||
        d->o.read_index != NULL) {
        return QN_EINVAL; /* those are memory of other nodes */
    }
    d->o.read_index = &d->own_index;
    d->told = qn_alloc_lines(d->o.alloc, bytes);
    if (d->told == NULL) {
        return QN_ENOMEM;
    }
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        qn_driver_state_forget(d, i);
    }
    return QN_OK;
}
