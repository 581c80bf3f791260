/*
 * The utility log (PROTOCOL.md 4): one instance of Paxos per entry.
 *
 *     proposer                     voter, itself included
 *       U_PREPARE i, b, entry i-1 ->  b >= bal: bal = b           PERSIST
 *       <- U_PROMISE b, vbal, vval
 *     majority: value = vval of the highest vbal, or its own
 *       U_ACCEPT i, b, value      ->  b >= bal: bal = vbal = b    PERSIST
 *       <- U_ACCEPTED b
 *     majority for the same b: chosen
 *       U_CHOSEN i, value         ->  learned
 *
 * A voter that knows more answers U_CHOSEN with what the proposer lacks. A
 * voter that knows less answers U_NEED, gets the entries, and then the question
 * again. So the voters of an index are fixed by the entries before it, and a
 * proposer only proposes what is valid after them: as soon as the index is
 * chosen the proposal ends, and the node decides anew.
 *
 * Votes are counted for one ballot only: a voter's answer to an earlier ballot
 * says nothing about this one. So a ballot goes on until it is refused, and a
 * proposer without answers asks the same again. Where answers take longer than
 * its patience, a new ballot each time would never end.
 *
 * The record, which is the vote and the entries below it, leaves as PERSIST
 * before the answer that rests on it. It outlives the process, so a restarted
 * node votes on as its predecessor would have. An entry that a majority has
 * passed is known to that majority even if all of it ends and comes back.
 * Ballots carry the incarnation, so none is used twice.
 *
 * A voter whose record is lost is mute: it proposes and does not vote, because
 * its former votes are unknown. A VOTER entry that names its present
 * incarnation ends that. No node votes at an index before it knows all entries
 * below. The former incarnations ended before this one could propose the entry,
 * so they did not know it and never voted beyond it. What they may have voted
 * for is at or below that entry, and there this incarnation never votes: it
 * knows the entry only when all of that is chosen. The record is written anew
 * before the first vote.
 */
#include "paxos/machine/utility.h"

#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"

#define PAUSE_MOST 16u /* times the least pause */

int qn_ballot_compare(const struct qn_ballot *a, const struct qn_ballot *b)
{
    if (a->round != b->round) {
        return a->round < b->round ? -1 : 1;
    }
    if (a->node != b->node) {
        return a->node < b->node ? -1 : 1;
    }
    return a->inc == b->inc ? 0 : a->inc < b->inc ? -1 : 1;
}

/* ---- messages ------------------------------------------------------------ */

#define ALL QN_NODES_MAX /* as a receiver: every other node */

/* A message without memory for its body is lost. @return false: it was. */
static bool send(const struct qn_utility *u, struct qn_step *t, qn_node_t to,
                 struct qn_msg m, const struct qn_ul_entry *body)
{
    if (body != NULL) {
        uint8_t bytes[QN_UL_BYTES];
        qn_ul_encode(body, bytes);
        struct qn_refbuf *b = qn_refbuf_copy(u->alloc, bytes, sizeof bytes);
        if (b == NULL) {
            return false;
        }
        qn_msg_refer(&m, b);
        qn_refbuf_unref(b);
    }
    struct qn_out *o =
        qn_step_emit(t, to == ALL ? QN_OUT_SEND_ALL : QN_OUT_SEND);
    o->to = to;
    o->msg = m;
    return true;
}

static void send_chosen(const struct qn_utility *u, struct qn_step *t,
                        qn_node_t to, uint32_t first)
{
    struct qn_refbuf *b = qn_utility_suffix(u, first);
    if (b == NULL) {
        return;
    }
    struct qn_msg *m = qn_step_send(t, to, QN_MSG_U_CHOSEN);
    m->epoch = QN_MAX(first, u->lo);
    qn_msg_refer(m, b);
    qn_refbuf_unref(b);
}

void qn_utility_ask(const struct qn_utility *u, struct qn_step *t,
                    qn_node_t peer)
{
    qn_step_send(t, peer, QN_MSG_U_NEED)->epoch = u->len;
}

static struct qn_msg about(uint8_t kind, uint32_t index,
                           const struct qn_ballot *bal)
{
    return (struct qn_msg){.kind = kind, .epoch = index, .u = {.bal = *bal}};
}

/* ---- voter --------------------------------------------------------------- */

static void persist(struct qn_utility *u, struct qn_step *t)
{
    const struct qn_vote *v = &u->vote;
    QN_ASSERT(!u->non_voting || u->removed || QN_MUTANT(U_NOT_MUTE) ||
              QN_MUTANT(U_OWN_ENTRY));
    QN_ASSERT(v->index == u->len); /* one index at a time */
    QN_ASSERT(qn_ballot_compare(&v->vbal, &v->bal) <=
              0); /* a voter votes at or below its promise */
    QN_ASSERT(v->vbal.round == 0 || v->value.index == v->index);
    u->unwritten = false;
    qn_step_emit(t, QN_OUT_PERSIST)->vote = u->vote;
}

/** Index 0 was never voted on: a node without entries asks. */
static bool may_vote(const struct qn_utility *u)
{
    bool voter = (u->voters & QN_BIT(u->self)) != 0 && !u->removed;
    bool mute = u->non_voting && !QN_MUTANT(U_NOT_MUTE);
    return u->len != 0 &&
           ((voter && !mute) || (!voter && QN_MUTANT(U_OWN_ENTRY)));
}

/** The record for the index that is open now. */
static struct qn_vote *open_vote(struct qn_utility *u)
{
    QN_ASSERT(u->vote.index <= u->len);
    if (u->vote.index != u->len) {
        u->vote = (struct qn_vote){.index = u->len,
                                   .since = u->non_voting ? u->since : 0};
    }
    return &u->vote;
}

/** @return true: promised. */
static bool vote_prepare(struct qn_utility *u, struct qn_step *t,
                         const struct qn_ballot *b)
{
    struct qn_vote *v = open_vote(u);
    if (qn_ballot_compare(b, &v->bal) < 0) {
        return false;
    }
    v->bal = *b;
    persist(u, t);
    return true;
}

/** @return true: voted. */
static bool vote_accept(struct qn_utility *u, struct qn_step *t,
                        const struct qn_ballot *b, const struct qn_ul_entry *e)
{
    struct qn_vote *v = open_vote(u);
    if (qn_ballot_compare(b, &v->bal) < 0 && !QN_MUTANT(U_BALLOT)) {
        return false;
    }
    v->bal = v->vbal = *b;
    v->value = *e;
    persist(u, t);
    return true;
}

/** Is the question about the open index? If not, help the asker. */
static bool open_index(const struct qn_utility *u, struct qn_step *t,
                       qn_node_t from, uint32_t index)
{
    if (index < u->len) {
        send_chosen(u, t, from, index);
    } else if (index > u->len) {
        qn_utility_ask(u, t, from);
    }
    return index == u->len && may_vote(u);
}

static void reject(const struct qn_utility *u, struct qn_step *t, qn_node_t to)
{
    (void)send(u, t, to, about(QN_MSG_U_REJECT, u->len, &u->vote.bal), NULL);
}

/** Voter: promise a ballot that is not below the last one, and say what was
 *  voted for; about the open index only (4). */
static void on_prepare(struct qn_utility *u, struct qn_step *t, qn_node_t from,
                       const struct qn_msg *m)
{
    qn_utility_learn(u, m->body); /* entry i - 1 */
    if (!open_index(u, t, from, m->epoch)) {
        return;
    }
    if (!vote_prepare(u, t, &m->u.bal)) {
        reject(u, t, from);
        return;
    }
    struct qn_msg answer = about(QN_MSG_U_PROMISE, u->len, &m->u.bal);
    answer.u.vbal = u->vote.vbal;
    bool voted = u->vote.vbal.round != 0 && !QN_MUTANT(U_SILENT);
    (void)send(u, t, from, answer, voted ? &u->vote.value : NULL);
}

/** Voter: vote unless a later ballot was promised (4). */
static void on_accept(struct qn_utility *u, struct qn_step *t, qn_node_t from,
                      const struct qn_msg *m)
{
    struct qn_ul_entry e;
    if (!open_index(u, t, from, m->epoch) ||
        qn_ul_decode(&e, m->body, 0) != QN_OK || !qn_utility_follows(u, &e)) {
        return;
    }
    if (!vote_accept(u, t, &m->u.bal, &e)) {
        reject(u, t, from);
        return;
    }
    (void)send(u, t, from, about(QN_MSG_U_ACCEPTED, u->len, &m->u.bal), NULL);
}

/* ---- proposer ------------------------------------------------------------ */

static bool majority(const struct qn_utility *u)
{
    if (QN_MUTANT(U_CAPACITY)) {
        return (uint32_t)__builtin_popcountll(u->granted) > u->nodes / 2;
    }
    return QN_MUTANT(NO_UL) || qn_utility_majority(u, u->granted);
}

static qn_time_t random_below(struct qn_utility *u, qn_time_t n)
{
    /* splitmix64 */
    uint64_t z = (u->random += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

/** The question of the current phase. */
static void ask(const struct qn_utility *u, struct qn_step *t, qn_node_t to)
{
    if (u->phase == QN_UTILITY_PREPARE) {
        (void)send(u, t, to, about(QN_MSG_U_PREPARE, u->len, &u->bal),
                   qn_utility_entry(u, u->len - 1));
    } else if (u->phase == QN_UTILITY_ACCEPT) {
        (void)send(u, t, to, about(QN_MSG_U_ACCEPT, u->len, &u->bal),
                   &u->value);
    }
}

static void longer(struct qn_utility *u)
{
    u->pause = QN_MIN(2 * u->pause, PAUSE_MOST * u->pause_least);
    QN_ASSERT(u->pause >= u->pause_least);
}

static void lost(struct qn_utility *u, struct qn_step *t)
{
    u->phase = QN_UTILITY_PAUSE;
    u->until = t->now + u->pause + random_below(u, u->pause);
    longer(u);
}

/** The question of the current phase to all; not again before a while. */
static void begin_phase(struct qn_utility *u, struct qn_step *t,
                        enum qn_utility_phase phase)
{
    u->phase = phase;
    u->granted = 0;
    u->until = t->now + 4 * u->pause;
    ask(u, t, ALL);
}

/** No voter refused this ballot, so it is not lost, however late the answers
 *  are: a new one would make them void. Voters that have not granted it are
 *  asked again: the question may have been lost. */
static void insist(struct qn_utility *u, struct qn_step *t)
{
    longer(u);
    u->until = t->now + 4 * u->pause;
    for (qn_node_t i = 0; i < u->nodes; i++) {
        if (i != u->self && (u->granted & QN_BIT(i)) == 0) {
            ask(u, t, i);
        }
    }
}

static void chosen(struct qn_utility *u, struct qn_step *t)
{
    const struct qn_msg m = {.kind = QN_MSG_U_CHOSEN, .epoch = u->len};
    QN_ASSERT(u->value.index == u->len);
    int err = qn_utility_adopt(u, &u->value, 1);
    QN_ASSERT(err == QN_OK);
    if (!send(u, t, ALL, m, &u->value) && u->untold == 0) {
        u->untold = u->value.index + 1;
        u->tell_at = t->now + u->pause_least;
    }
}

/** No question shows an entry that begins no epoch: what was chosen and not
 *  told is told later. */
static void tell(struct qn_utility *u, struct qn_step *t)
{
    const uint32_t first = QN_MAX(u->untold - 1, u->lo);
    struct qn_refbuf *b = qn_utility_suffix(u, first);
    u->tell_at = t->now + u->pause_least;
    if (b != NULL) {
        struct qn_out *o = qn_step_emit(t, QN_OUT_SEND_ALL);
        o->msg = (struct qn_msg){.kind = QN_MSG_U_CHOSEN, .epoch = first};
        qn_msg_refer(&o->msg, b);
        qn_refbuf_unref(b);
        u->untold = 0;
    }
}

/** A voter, which may be this node, has granted the ballot: it may be a
 *  majority now. The only voter goes on in a later step, when its record is
 *  written: no other one would know of an entry that is acted upon. */
static void granted(struct qn_utility *u, struct qn_step *t, qn_node_t by);
static void advance(struct qn_utility *u, struct qn_step *t);

static void begin_accept(struct qn_utility *u, struct qn_step *t)
{
    QN_ASSERT(u->phase == QN_UTILITY_PREPARE);
    if (u->best.round == 0 || QN_MUTANT(U_OWN_VALUE)) {
        u->value = u->want;
        u->shown = u->len;
    }
    begin_phase(u, t, QN_UTILITY_ACCEPT);
    if (may_vote(u) && vote_accept(u, t, &u->bal, &u->value)) {
        granted(u, t, u->self);
    }
}

static void granted(struct qn_utility *u, struct qn_step *t, qn_node_t by)
{
    QN_ASSERT(by < u->nodes);
    QN_ASSERT(u->phase == QN_UTILITY_PREPARE || u->phase == QN_UTILITY_ACCEPT);
    u->granted |= QN_BIT(by);
    if (!majority(u)) {
        return;
    }
    if (u->voters == QN_BIT(u->self) && !QN_MUTANT(U_ALONE)) {
        u->until = t->now;
    } else {
        advance(u, t);
    }
}

/** A majority has granted the ballot. */
static void advance(struct qn_utility *u, struct qn_step *t)
{
    if (u->phase == QN_UTILITY_PREPARE) {
        begin_accept(u, t);
    } else {
        chosen(u, t);
    }
}

/** A value that a voter may have helped to choose MUST be proposed on. */
static void adopt(struct qn_utility *u, const struct qn_ballot *vbal,
                  const struct qn_ul_entry *value)
{
    QN_ASSERT(u->phase == QN_UTILITY_PREPARE);
    QN_ASSERT(value->index == u->len);
    if (qn_ballot_compare(vbal, &u->best) > 0) {
        u->best = *vbal;
        u->value = *value;
    }
}

static void begin_ballot(struct qn_utility *u, struct qn_step *t)
{
    u->round = QN_MAX(u->round, open_vote(u)->bal.round) + 1;
    u->bal = (struct qn_ballot){
        .round = u->round, .node = (uint8_t)u->self, .inc = u->self_inc};
    u->best = (struct qn_ballot){.round = 0};
    begin_phase(u, t, QN_UTILITY_PREPARE);
    if (may_vote(u) && vote_prepare(u, t, &u->bal)) {
        if (u->vote.vbal.round != 0) {
            adopt(u, &u->vote.vbal, &u->vote.value);
        }
        granted(u, t, u->self);
    }
}

bool qn_utility_withdraw(struct qn_utility *u)
{
    if (u->shown == u->len) {
        return false;
    }
    u->phase = QN_UTILITY_IDLE; /* promises that are under way are void */
    return true;
}

bool qn_utility_may_propose(const struct qn_utility *u)
{
    bool voter = (u->voters & QN_BIT(u->self)) != 0 && !u->removed;
    return voter || u->len == 0 || QN_MUTANT(U_NON_VOTER);
}

/** Only voters have roles. */
static bool roles_vote(const struct qn_utility *u, const struct qn_ul_entry *e)
{
    uint64_t roles = QN_BIT(e->leader) | QN_BIT(e->acceptor);
    uint64_t voters = e->kind == QN_UL_SEAT ? e->voters : u->voters;
    return (roles & ~voters) == 0 || u->len == 0 || QN_MUTANT(U_NON_VOTER);
}

bool qn_utility_propose(struct qn_utility *u, struct qn_step *t,
                        const struct qn_ul_entry *value)
{
    const struct qn_ul_entry *last = qn_utility_entry(u, u->len - 1);
    if (!qn_utility_may_propose(u) || !roles_vote(u, value)) {
        return false;
    }
    u->want = *value;
    u->want.index = u->len;
    if (u->want.kind == QN_UL_ACCEPTOR) {
        u->want.tenure = u->len;
    }
    if (u->want.kind != QN_UL_SEAT) {
        u->want.voters = last != NULL ? last->voters : 0;
    }
    begin_ballot(u, t);
    return true;
}

bool qn_utility_propose_voter(struct qn_utility *u, struct qn_step *t,
                              const struct qn_ul_entry *roles)
{
    struct qn_ul_entry e = *roles;
    e.kind = QN_UL_VOTER;
    e.voter = (uint8_t)u->self;
    e.voter_inc = u->self_inc;
    return qn_utility_propose(u, t, &e);
}

bool qn_utility_propose_seat(struct qn_utility *u, struct qn_step *t,
                             const struct qn_ul_entry *roles, qn_node_t node,
                             uint64_t inc)
{
    struct qn_ul_entry e = *roles;
    e.kind = QN_UL_SEAT;
    e.voter = (uint8_t)node;
    e.voter_inc = inc;
    e.voters = u->voters ^ QN_BIT(node);
    return qn_utility_propose(u, t, &e);
}

/** An answer to the ballot under way? */
static bool current(const struct qn_utility *u, const struct qn_msg *m,
                    enum qn_utility_phase phase)
{
    bool same =
        qn_ballot_compare(&m->u.bal, &u->bal) == 0 || QN_MUTANT(U_COUNT);
    return u->phase == phase && m->epoch == u->len && same;
}

/** Proposer: the value of the highest ballot that any voter voted in MUST be
 *  taken over. With a majority, ask for votes (4). */
static void on_promise(struct qn_utility *u, struct qn_step *t, qn_node_t from,
                       const struct qn_msg *m)
{
    struct qn_ul_entry e;
    if (!current(u, m, QN_UTILITY_PREPARE)) {
        return;
    }
    if (qn_ul_decode(&e, m->body, 0) == QN_OK && e.index == u->len) {
        adopt(u, &m->u.vbal, &e);
    }
    granted(u, t, from);
}

/** Proposer: a later ballot is under way; give way for a while, then begin one
 *  above it (4). */
static void on_reject(struct qn_utility *u, struct qn_step *t,
                      const struct qn_msg *m)
{
    bool asking =
        u->phase == QN_UTILITY_PREPARE || u->phase == QN_UTILITY_ACCEPT;
    if (asking && m->epoch == u->len &&
        qn_ballot_compare(&m->u.bal, &u->bal) > 0) {
        u->round = QN_MAX(u->round, m->u.bal.round);
        lost(u, t);
    }
}

/* ---- dispatch ------------------------------------------------------------ */

/** U_LATE_RECORD: the last answer leaves before the record that it rests on. */
static void answer_first(struct qn_step *t)
{
    uint32_t n = t->out->count;
    struct qn_out *o = t->out->out;
    if (n >= 2 && o[n - 2].kind == QN_OUT_PERSIST) {
        struct qn_out last = o[n - 1];
        o[n - 1] = o[n - 2];
        o[n - 2] = last;
    }
}

void qn_utility_on_msg(struct qn_utility *u, struct qn_step *t, qn_node_t from,
                       const struct qn_msg *m)
{
    switch (m->kind) {
    case QN_MSG_U_PREPARE:
        on_prepare(u, t, from, m);
        break;
    case QN_MSG_U_PROMISE:
        on_promise(u, t, from, m);
        break;
    case QN_MSG_U_REJECT:
        on_reject(u, t, m);
        break;
    case QN_MSG_U_ACCEPT:
        on_accept(u, t, from, m);
        break;
    case QN_MSG_U_ACCEPTED:
        if (current(u, m, QN_UTILITY_ACCEPT)) {
            granted(u, t, from);
        }
        break;
    case QN_MSG_U_CHOSEN:
        qn_utility_learn(u, m->body);
        break;
    case QN_MSG_U_NEED:
        send_chosen(u, t, from, m->epoch);
        ask(u, t, from);
        break;
    default:
        QN_ASSERT(false);
    }
    if (QN_MUTANT(U_LATE_RECORD)) {
        answer_first(t);
    }
}

void qn_utility_tick(struct qn_utility *u, struct qn_step *t)
{
    /* For a later incarnation, if this one never votes. */
    if (u->unwritten) {
        (void)open_vote(u);
        persist(u, t);
    }
    if (u->untold != 0 && t->now >= u->tell_at) {
        tell(u, t);
    }
    if (u->phase == QN_UTILITY_IDLE || t->now < u->until) {
        return;
    }
    if (u->phase == QN_UTILITY_PAUSE) {
        begin_ballot(u, t);
    } else if (majority(u)) {
        advance(u, t);
    } else {
        insist(u, t);
    }
}

void qn_utility_up(struct qn_utility *u, struct qn_step *t, qn_node_t peer)
{
    if (u->phase == QN_UTILITY_PAUSE) {
        u->pause = u->pause_least;
        u->until = t->now;
    }
    ask(u, t, peer);
}

qn_time_t qn_utility_deadline(const struct qn_utility *u)
{
    qn_time_t at = u->phase == QN_UTILITY_IDLE ? QN_TIME_NEVER : u->until;
    return u->untold != 0 ? QN_MIN(at, u->tell_at) : at;
}
