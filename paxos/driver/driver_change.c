/*
 * Changes of the voters that the program orders (PROTOCOL.md 4.4).
 *
 *     member                      leader                        heir
 *       |--ORDER{add or remove}---->| asks its machine            |
 *       |<-TAKEN{error}-------------|                             |
 *       |  again, until the entry   |                             |
 *       |  is learned               |                             |
 *       |                           | if it is to go itself:      |
 *       |                           |--ORDER{lead} (to all)------>|
 *       |--ORDER{remove}--------------------------------------->  | leads
 *
 * A member that lives and is not suspected ends its own commands before it is
 * removed. The leader asks it with the same message; from then on it takes no
 * command for QN_DRIVER_LEAVE_SHUT, and answers whether its own have ended:
 *
 *     leader                      the member that is to go
 *       |--ORDER{remove, itself}--->| takes no command
 *       |<-TAKEN{QN_EAGAIN}---------| own ones are under way
 *       |  again                    |
 *       |<-TAKEN{QN_OK}-------------| the entry may follow
 *
 * After QN_DRIVER_LEAVE_MAX it is removed anyway, and after
 * QN_DRIVER_LEAVE_SHUT if it says nothing. So this is no part of the protocol.
 *
 * The member that was asked keeps the order, and asks whichever node leads,
 * until it sees the outcome in its utility log: what is so already is taken and
 * does nothing. So nothing of an order is kept elsewhere, and it is done or not
 * begun whichever node ends. A leader never leaves in its role: it has another
 * voter lead first, which then gets the order.
 *
 * Only a node that was not asked, or that has refused all that it was asked,
 * begins nothing. So each question has a number that its answer repeats; a
 * refusal counts when it answers the newest one; and once a leader has said
 * yes, or another node leads and the former one owes an answer, the order may
 * have begun, and no refusal of a later leader takes that back.
 */
#include "core/base/assert.h"
#include "paxos/driver/driver_internal.h"

uint64_t qn_driver_voters(const struct qn_driver *d)
{
    return qn_utility_voters(qn_onepaxos_utility(d->machine));
}

enum qn_change_state qn_driver_change_state(const struct qn_driver *d, int *err)
{
    if (err != NULL) {
        *err = d->order.error;
    }
    return d->order.state;
}

static uint64_t own_incarnation(const struct qn_driver *d)
{
    return d->peer[d->o.self].incarnation.inc;
}

bool qn_driver_leads(const struct qn_driver *d)
{
    return d->roles.cfg.leader == d->o.self &&
           d->roles.cfg.leader_inc == own_incarnation(d);
}

static bool is_so(const struct qn_driver *d, const struct qn_driver_change *c)
{
    uint64_t now = qn_driver_voters(d);
    return now != 0 && ((now & qn_driver_bit(c->node)) != 0) == c->votes;
}

static bool same(const struct qn_driver_change *a,
                 const struct qn_driver_change *b)
{
    return a->node == b->node && a->inc == b->inc && a->votes == b->votes;
}

bool qn_driver_removed(const struct qn_driver *d)
{
    return qn_utility_removed(qn_onepaxos_utility(d->machine));
}

/* ---- the leader ---------------------------------------------------------- */

/* The entry has to be chosen by the voters that are so now. One that is
 * suspected may answer after all: an order that is forced waits for it. */
static bool decides_now(const struct qn_driver *d, bool forced)
{
    return qn_onepaxos_decides(d->machine, qn_driver_voters(d), forced);
}

/* What the voters would be without a node. */
static int may_remove(const struct qn_driver *d,
                      const struct qn_driver_change *c)
{
    uint64_t rest = qn_driver_voters(d) & ~qn_driver_bit(c->node);
    uint32_t left = (uint32_t)__builtin_popcountll(rest);
    uint32_t min = qn_onepaxos_flow(d->machine)->limits.min_awaited;
    if (rest == 0) {
        return QN_EINVAL;
    }
    if (!c->forced && min != QN_FLOW_MINORITY && left < (uint64_t)min + 1) {
        return QN_EPERM;
    }
    bool decides = qn_onepaxos_decides(d->machine, rest, false);
    return c->forced || decides ? QN_OK : QN_ENOQUORUM;
}

/* The next voter in sync behind the one that was told last, which may have a
 * reason not to lead that is not known here; the leader itself: none. */
static qn_node_t heir_of(const struct qn_driver *d)
{
    uint64_t able = qn_driver_in_sync(d, qn_driver_voters(d)) & ~d->suspected &
                    ~qn_driver_bit(d->o.self);
    for (qn_node_t k = 1; k <= d->o.nodes; k++) {
        qn_node_t n = (d->order.successor + k) % d->o.nodes;
        if ((able & qn_driver_bit(n)) != 0) {
            return n;
        }
    }
    return d->o.self;
}

/* Another voter is to lead; all hear of it, so that they know the reason. Not
 * with each question: the heir needs its time. Until it leads nothing of the
 * order has begun. */
void qn_driver_hand_over(struct qn_driver *d)
{
    qn_node_t heir = heir_of(d);
    if (heir == d->o.self || d->now < d->order.lead_at) {
        return;
    }
    d->order.lead_at = d->now + QN_DRIVER_LEAD_AGAIN;
    d->order.successor = heir;
    d->roles.relieved = (uint64_t)d->roles.cfg.index + 1;
    const struct qn_msg m = {.kind = QN_MSG_ORDER,
                             .epoch = d->roles.cfg.index,
                             .order = {.inc = d->peer[heir].incarnation.inc,
                                       .node = (uint8_t)heir,
                                       .what = QN_ORDER_LEAD}};
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        if (i != d->o.self) {
            qn_driver_send(d, i, &m);
        }
    }
}

/* Has the member that is removed ended its own commands, or is it not waited
 * for (any more)? It is asked each time: an order is asked again soon. */
static bool has_left(struct qn_driver *d, const struct qn_driver_change *c)
{
    struct qn_driver_leave *l = &d->order.leave;
    if (!qn_driver_lives(d, c->node) ||
        (d->suspected & qn_driver_bit(c->node)) != 0) {
        return true;
    }
    if (l->node != c->node || l->inc != c->inc ||
        d->now - l->asked >= QN_DRIVER_LEAVE_MAX) {
        *l = (struct qn_driver_leave){
            .node = c->node, .inc = c->inc, .since = d->now};
    }
    const struct qn_msg m = {.kind = QN_MSG_ORDER,
                             .epoch = d->roles.cfg.index,
                             .order = {.inc = c->inc,
                                       .node = (uint8_t)c->node,
                                       .what = QN_ORDER_REMOVE}};
    l->asked = d->now;
    qn_driver_send(d, c->node, &m);
    return l->over || d->now - l->since >= (l->answers ? QN_DRIVER_LEAVE_MAX
                                                       : QN_DRIVER_LEAVE_SHUT);
}

/* @return QN_OK: it is so, or is about to be; why not, otherwise. What is about
 * to be is not refused any more, whatever has changed since. */
static int take(struct qn_driver *d, const struct qn_driver_change *c)
{
    uint64_t known = d->peer[c->node].incarnation.inc;
    const struct qn_input in = {.kind = QN_IN_SEAT,
                                .seat = {.node = c->node,
                                         .inc = c->inc,
                                         .votes = c->votes,
                                         .forced = c->forced}};
    if (is_so(d, c)) {
        return QN_OK;
    }
    if (qn_onepaxos_changes(d->machine, &in.seat)) {
        return qn_driver_step(d, &in);
    }
    if (known != c->inc) { /* one that is not known here yet will be */
        return known > c->inc ? QN_ESTALE : QN_EAGAIN;
    }
    if (qn_onepaxos_role(d->machine) != QN_ACTIVE) {
        return QN_ENOTLEADER;
    }
    int err = !decides_now(d, c->forced) ? QN_ENOQUORUM
              : c->votes                 ? QN_OK
                                         : may_remove(d, c);
    if (err != QN_OK) {
        return err;
    }
    if (c->node == d->o.self) {
        qn_driver_hand_over(d);
        return QN_EAGAIN;
    }
    if (!c->votes && !has_left(d, c)) {
        return QN_EAGAIN;
    }
    return qn_driver_step(d, &in);
}

/* ---- the member that was asked ------------------------------------------- */

static void end(struct qn_driver_order *o, enum qn_change_state state, int err)
{
    QN_ASSERT(o->state == QN_CHANGE_PENDING);
    o->state = state;
    o->error = err;
    o->ask_at = QN_TIME_NEVER;
}

static bool owed(const struct qn_driver_order *o)
{
    return o->answered != o->asked;
}

/* It ends without the entry. */
static void end_open(struct qn_driver_order *o, int err)
{
    bool may = o->begun || owed(o);
    end(o, may ? QN_CHANGE_UNKNOWN : QN_CHANGE_REFUSED, err);
}

/* No answer to what was asked so far counts any more. */
static void answers_void(struct qn_driver_order *o)
{
    o->begun |= owed(o);
    o->answered = o->asked;
    o->refused = false;
}

/* What a leader says. It may have been replaced, or wait for the newcomer: then
 * it is asked again. A refusal ends the order if no later question is owed an
 * answer: that one might be taken. */
static void outcome(struct qn_driver_order *o, int err)
{
    o->begun |= err == QN_OK;
    o->error = err == QN_OK ? QN_ETIMEDOUT : err;
    o->refused = err != QN_OK && err != QN_EAGAIN && err != QN_ENOTLEADER;
    if (o->refused && !owed(o)) {
        end_open(o, err);
    }
}

static uint8_t what(const struct qn_driver_change *c)
{
    return c->votes ? QN_ORDER_ADD : QN_ORDER_REMOVE;
}

/* Another incarnation of its node knows nothing of what the leader has begun.
 */
static bool leader_lives(const struct qn_driver *d)
{
    const struct qn_ul_entry *e = &d->roles.cfg;
    return d->roles.ul_len != 0 && e->leader != d->o.self &&
           qn_driver_lives(d, e->leader) &&
           d->peer[e->leader].incarnation.inc == e->leader_inc;
}

/* No node leads, and none can. The order is where it was given. */
static bool is_hopeless(const struct qn_driver *d)
{
    const struct qn_driver_order *o = &d->order;
    return !o->begun && !owed(o) && d->roles.ul_len != 0 &&
           !decides_now(d, o->change.forced);
}

static void ask(struct qn_driver *d)
{
    struct qn_driver_order *o = &d->order;
    if (o->epoch != d->roles.cfg.index) {
        answers_void(o);
        o->epoch = d->roles.cfg.index;
    }
    if (qn_driver_leads(d)) {
        outcome(o, take(d, &o->change));
    } else if (leader_lives(d) && !o->refused) {
        const struct qn_msg m = {.kind = QN_MSG_ORDER,
                                 .epoch = d->roles.cfg.index,
                                 .order = {.inc = o->change.inc,
                                           .number = ++o->asked,
                                           .node = (uint8_t)o->change.node,
                                           .what = what(&o->change),
                                           .forced = o->change.forced}};
        qn_driver_send(d, d->roles.cfg.leader, &m);
    } else if (!leader_lives(d) && is_hopeless(d)) {
        end(o, QN_CHANGE_REFUSED, QN_ENOQUORUM);
    }
}

/* The entry that the order is about, whatever entries have followed it: the
 * seat may be another's by now, and the order must not be asked again. */
static bool fulfils(const struct qn_ul_entry *e,
                    const struct qn_driver_change *c)
{
    bool votes = (e->voters & qn_driver_bit(c->node)) != 0;
    return e->kind == QN_UL_SEAT && e->voter == c->node && votes == c->votes &&
           (votes ? e->voter_inc == c->inc : e->voter_inc >= c->inc);
}

void qn_driver_order_learn(struct qn_driver *d, uint32_t from)
{
    const struct qn_utility *u = qn_onepaxos_utility(d->machine);
    struct qn_driver_order *o = &d->order;
    QN_ASSERT(o->state == QN_CHANGE_PENDING);
    for (uint32_t i = qn_utility_len(u); i-- > from;) {
        const struct qn_ul_entry *e = qn_utility_entry(u, i);
        if (e == NULL) { /* it was skipped, and so were those below */
            o->begun = true;
            break;
        }
        o->seen |= fulfils(e, &o->change);
    }
    o->ask_at = d->now; /* it may be done, or another node leads */
}

/* The vote of the incarnation has ended, and the seat is taken: by one that
 * began meanwhile, or later. */
static bool is_taken(const struct qn_driver *d,
                     const struct qn_driver_change *c)
{
    return !c->votes && qn_driver_lives(d, c->node) &&
           d->peer[c->node].incarnation.inc > c->inc;
}

void qn_driver_order_look(struct qn_driver *d)
{
    struct qn_driver_order *o = &d->order;
    QN_ASSERT(o->state == QN_CHANGE_PENDING);
    if (o->seen || is_so(d, &o->change)) {
        end(o, QN_CHANGE_DONE, is_taken(d, &o->change) ? QN_ESTALE : QN_OK);
    } else if (qn_driver_removed(d)) {
        end_open(o, QN_EREMOVED);
    } else if (d->now >= o->until) {
        end_open(o, o->error);
    } else {
        o->ask_at = QN_MIN(d->now + QN_DRIVER_ORDER_AGAIN, o->until);
        ask(d);
    }
}

int qn_driver_change(struct qn_driver *d, const struct qn_driver_change *c,
                     qn_time_t now)
{
    struct qn_driver_order *o = &d->order;
    if (c->node >= d->o.nodes || c->inc == 0) {
        return QN_EINVAL;
    }
    if (!d->memory) {
        return QN_ENOSYS;
    }
    if (qn_driver_removed(d)) {
        return QN_EREMOVED;
    }
    if (o->state == QN_CHANGE_PENDING) {
        if (same(&o->change, c) && c->forced && !o->change.forced) {
            answers_void(o);
            o->change.forced = true;
        }
        return same(&o->change, c) ? QN_OK : QN_EBUSY;
    }
    qn_driver_time(d, now);
    answers_void(o);
    o->begun = o->seen = false;
    o->change = *c;
    o->state = QN_CHANGE_PENDING;
    o->error = QN_ETIMEDOUT;
    o->ask_at = d->now;
    o->until = d->now + QN_DRIVER_ORDER_MAX;
    return QN_OK;
}

/* ---- messages ------------------------------------------------------------ */

/* The leader wants `heir` to lead in its place: it alone may say so, in its own
 * epoch. */
static void lead_hear(struct qn_driver *d, qn_node_t from,
                      const struct qn_msg *m)
{
    const struct qn_ul_entry *e = &d->roles.cfg;
    bool leader = e->leader == from && e->index == m->epoch &&
                  e->leader_inc == d->peer[from].incarnation.inc;
    bool heir =
        m->order.node != d->o.self || m->order.inc == own_incarnation(d);
    if (leader && heir) {
        qn_driver_lead(d, m->order.node, d->now);
    }
}

/* The leader is about to remove this incarnation. */
static int leave(struct qn_driver *d)
{
    d->order.shut_until = d->now + QN_DRIVER_LEAVE_SHUT;
    return qn_onepaxos_rests(d->machine) ? QN_OK : QN_EAGAIN;
}

static void answer(struct qn_driver *d, qn_node_t to, const struct qn_msg *m)
{
    const struct qn_driver_change c = {.node = m->order.node,
                                       .inc = m->order.inc,
                                       .votes = m->order.what == QN_ORDER_ADD,
                                       .forced = m->order.forced != 0};
    bool own = !c.votes && c.node == d->o.self && c.inc == own_incarnation(d) &&
               to == d->roles.cfg.leader && m->epoch == d->roles.cfg.index;
    int err = own ? leave(d) : take(d, &c);
    struct qn_msg a = *m;
    a.kind = QN_MSG_TAKEN;
    a.epoch = d->roles.cfg.index;
    a.order.error = (uint32_t)-err;
    qn_driver_send(d, to, &a);
}

static void answer_hear(struct qn_driver *d, qn_node_t from,
                        const struct qn_msg *m)
{
    struct qn_driver_order *o = &d->order;
    if (from == o->leave.node && m->order.node == from &&
        m->order.inc == o->leave.inc && m->order.what == QN_ORDER_REMOVE) {
        o->leave.answers = true;
        o->leave.over = m->order.error == 0;
    }
    bool mine =
        o->state == QN_CHANGE_PENDING && o->change.node == m->order.node &&
        o->change.inc == m->order.inc && what(&o->change) == m->order.what &&
        m->order.number - o->answered - 1 < o->asked - o->answered;
    if (mine && from == d->roles.cfg.leader && leader_lives(d) &&
        o->epoch == d->roles.cfg.index) {
        /* One that was lost, or is not in order, may have said yes. */
        o->begun |= m->order.number != o->answered + 1;
        o->answered = m->order.number;
        outcome(o, -(int)m->order.error);
    }
}

bool qn_driver_order_take(struct qn_driver *d, qn_node_t from,
                          const struct qn_msg *m)
{
    if (!d->memory || m->order.node >= d->o.nodes) {
        return false;
    }
    if (m->kind == QN_MSG_TAKEN) {
        answer_hear(d, from, m);
    } else if (m->order.what == QN_ORDER_LEAD) {
        lead_hear(d, from, m);
    } else {
        answer(d, from, m);
    }
    return true;
}
