/*
 * The origin: this node's own commands (PROTOCOL.md 3.1, Origins).
 *
 * A command gets its sequence at submit and joins the newest request that has
 * not left yet. So a request is what was submitted in one turn, up to one
 * batch. Requests are kept in a ring until their last command is applied:
 *
 *         head          sent           tail
 *     ------|-------------|--------------|------
 *           | sent, not   | not sent;    |
 *           | applied yet | last one open|
 *
 * To send everything unapplied again, in order, is `sent = head`; the leader
 * and apply drop what they have seen. Credit is counted here and not refused at
 * the leader: a refusal in the middle would leave a gap in the sequence. A long
 * command is kept in the arena of this incarnation as long as its request, and
 * the request holds a reference to it. If the arena has no place, the command
 * travels in the request. The leader gets the requests of its own node by a
 * call instead of a message, later in the same step, with the same rules.
 */
#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"

#define REQUEST_BYTES 512u /* first guess of a request's size */
#define ROOM_KEPT     32u  /* outputs left for what follows in a step */

/* One command, of any size, may go beyond the limit in bytes. So a caller
 * can ask first and then always submit. */
bool qn_origin_has_credit(const struct qn_onepaxos *p)
{
    const struct qn_origin *o = &p->origin;
    return QN_MUTANT(NO_CREDIT) ||
           (o->seq - o->applied < o->credit && o->tail - o->head <= o->mask &&
            o->bytes < o->credit_bytes);
}

/** A member has ended or begun: the leader's queue is divided among the present
 *  ones; with the process acceptor among all nodes of the group. Members that
 *  have not heard of a newcomer yet may have more on their way than there is
 *  room: the leader lets them send that again. */
void qn_origin_share(struct qn_onepaxos *p)
{
    struct qn_origin *o = &p->origin;
    uint32_t members =
        p->memory != NULL ? (uint32_t)__builtin_popcountll(p->alive) : p->nodes;
    QN_ASSERT(members != 0);
    o->credit = QN_MAX(p->params.queue / members, 1u);
    o->credit_bytes = p->params.queue_bytes / members;
    QN_ASSERT(o->credit <= (uint64_t)o->mask + 1); /* a request holds one */
}

/** The request that still takes a command of `bytes`, or NULL. */
static struct qn_origin_request *open_request(struct qn_onepaxos *p,
                                              uint64_t bytes)
{
    struct qn_origin *o = &p->origin;
    if (o->tail == o->sent) {
        return NULL;
    }
    struct qn_origin_request *r = &o->ring[(o->tail - 1) & o->mask];
    bool fits = r->count < p->params.batch_commands &&
                r->bytes + bytes <= p->params.batch_bytes &&
                r->commands->refs == 1;
    return fits ? r : NULL;
}

/** A command on its way into a request. */
struct command {
    const struct qn_slice *parts; /* [count] */
    uint32_t count;
    bool refers;
    struct qn_arena_place place; /* len: of the command */
};

/** Keep a long command in the arena, if there is one with a place for it. */
static void upload(struct qn_onepaxos *p, struct command *c)
{
    c->refers = p->uploads != NULL && c->place.len >= p->params.upload_bytes &&
                qn_arena_add(p->uploads->own, c->place.len, &c->place) == QN_OK;
    uint8_t *to = c->refers ? qn_arena_at(p->uploads->own, &c->place) : NULL;
    for (uint32_t i = 0; c->refers && i < c->count; i++) {
        if (c->parts[i].len != 0) { /* announced by the request */
            qn_copy_out(to, c->parts[i].data, c->parts[i].len);
            to += c->parts[i].len;
        }
    }
}

static int append(struct qn_refbuf **b, const struct command *c)
{
    return c->refers ? qn_commands_refer(b, &c->place)
                     : qn_commands_add(b, c->parts, c->count);
}

static int new_request(struct qn_onepaxos *p, const struct command *c)
{
    struct qn_origin *o = &p->origin;
    uint64_t bytes = c->refers ? 0 : c->place.len + QN_VARINT_MAX;
    struct qn_refbuf *b =
        qn_refbuf_create(p->alloc, QN_MAX(bytes, (uint64_t)REQUEST_BYTES));
    if (b == NULL || append(&b, c) != QN_OK) {
        qn_refbuf_unref(b);
        return QN_ENOMEM;
    }
    QN_ASSERT(o->tail - o->head <= o->mask || QN_MUTANT(NO_CREDIT));
    o->ring[o->tail++ & o->mask] =
        (struct qn_origin_request){.commands = b,
                                   .bytes = qn_command_bytes(c->place.len),
                                   .first = o->seq + 1,
                                   .count = 1,
                                   .uploaded = c->refers};
    return QN_OK;
}

static int add(struct qn_onepaxos *p, const struct command *c)
{
    uint64_t bytes = qn_command_bytes(c->place.len);
    struct qn_origin_request *r = open_request(p, c->place.len + QN_VARINT_MAX);
    if (r == NULL) {
        return new_request(p, c);
    }
    QN_ASSERT(r->first + r->count == p->origin.seq + 1); /* no gap */
    int err = append(&r->commands, c);
    if (err == QN_OK) {
        r->count++;
        r->uploaded += c->refers;
        r->bytes += bytes;
    }
    return err;
}

int qn_origin_submit(struct qn_onepaxos *p, const struct qn_slice *parts,
                     uint32_t count, uint64_t *seq)
{
    struct qn_origin *o = &p->origin;
    struct command c = {.parts = parts, .count = count};
    for (uint32_t i = 0; i < count; i++) {
        if (parts[i].len > QN_COMMAND_MAX - c.place.len) {
            return QN_EMSGSIZE;
        }
        c.place.len += parts[i].len;
    }
    if (qn_utility_removed(&p->ul)) {
        return QN_EREMOVED;
    }
    if (!qn_origin_has_credit(p)) {
        return QN_EAGAIN;
    }
    upload(p, &c);
    int err = add(p, &c);
    if (err != QN_OK && c.refers) {
        qn_arena_undo(p->uploads->own);
    }
    if (err == QN_OK) {
        *seq = ++o->seq;
        o->bytes += qn_command_bytes(c.place.len);
        o->most = QN_MAX(o->most, o->bytes);
        QN_ASSERT(o->seq - o->applied <= o->credit || QN_MUTANT(NO_CREDIT));
    }
    return err;
}

/** Hand one request to the leader. @return false: not now. */
static bool send(struct qn_onepaxos *p, struct qn_step *t,
                 const struct qn_origin_request *r)
{
    struct qn_origin *o = &p->origin;
    struct qn_slice body = {r->commands->bytes, r->commands->len};
    if (p->cfg.leader != p->self) {
        struct qn_msg *m = qn_step_send(t, p->cfg.leader, QN_MSG_REQUEST);
        m->slot = r->first;
        qn_msg_refer(m, r->commands);
        return true;
    }
    bool again = false;
    int err = p->leader.role != QN_ACTIVE
                  ? QN_EAGAIN
                  : qn_propose_request(p, p->self, r->first, body, &again);
    if (err == QN_ENOMEM) {
        p->retry_at = t->now + p->params.t_gap;
    }
    o->blocked = err == QN_EAGAIN;
    QN_ASSERT(!again); /* to itself an origin sends in order */
    return err == QN_OK;
}

void qn_origin_flush(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_origin *o = &p->origin;
    if (o->ready != p->cfg.index) {
        return; /* the leader is not ready, or not known here */
    }
    while (o->sent != o->tail && qn_step_room(t) > ROOM_KEPT &&
           send(p, t, &o->ring[o->sent & o->mask])) {
        o->sent++;
    }
    QN_ASSERT(o->sent - o->head <= o->tail - o->head); /* head, sent, tail */
    if (o->want_stamp && p->cfg.leader == p->self) {
        p->leader.want_stamp = true;
    } else if (o->want_stamp) {
        qn_step_send(t, p->cfg.leader, QN_MSG_REQUEST);
    }
    o->want_stamp = false;
}

/** Its last command is applied: no leader pulls any of them any more. */
static void request_end(struct qn_onepaxos *p, struct qn_origin_request *r)
{
    struct qn_slice list = {r->commands->bytes, r->commands->len};
    struct qn_wanted w;
    while (r->uploaded != 0 && qn_wanted_next(&list, &w)) {
        if (w.refers) {
            QN_DASSERT(w.place.index == p->uploads->own->first);
            qn_arena_free(p->uploads->own);
            r->uploaded--;
        }
    }
    QN_ASSERT(r->uploaded == 0);
    QN_ASSERT(p->origin.bytes >= r->bytes);
    p->origin.bytes -= r->bytes;
    qn_refbuf_unref(r->commands);
    r->commands = NULL;
}

void qn_origin_applied(struct qn_onepaxos *p, uint64_t seq)
{
    struct qn_origin *o = &p->origin;
    QN_ASSERT(seq > o->applied); /* applied never falls */
    QN_ASSERT(seq <= o->seq);
    o->applied = seq;
    while (o->head != o->tail) {
        struct qn_origin_request *r = &o->ring[o->head & o->mask];
        if (r->first + r->count - 1 > seq) {
            break;
        }
        if (o->sent == o->head) {
            o->sent++; /* it was about to be sent again */
        }
        request_end(p, r);
        o->head++;
    }
    QN_ASSERT(o->sent - o->head <= o->tail - o->head);
    QN_ASSERT(o->head != o->tail || o->bytes == 0);
}

/** The leader of that epoch takes requests, or has found a gap: send
 *  everything again, in order. This node may still have to learn of the
 *  epoch. */
void qn_origin_on_redirect(struct qn_onepaxos *p, struct qn_step *t,
                           qn_node_t from, const struct qn_msg *m)
{
    struct qn_origin *o = &p->origin;
    if (m->epoch >= o->ready) {
        o->ready = m->epoch;
        o->sent = QN_MUTANT(NO_RESEND) ? o->sent : o->head;
    }
    qn_reconfigure_behind(p, t, from, m->epoch);
}
