/* What every member must deliver, and how members end. */
#include "tests/sim/views/view_net_internal.h"

uint64_t view_last_of(const struct member *m, uint32_t source,
                      uint32_t incarnation)
{
    const struct qn_tag *t = &qn_sequence_tags(m->s)[source];
    return t->incarnation == incarnation  ? t->number
           : t->incarnation > incarnation ? UINT64_MAX
                                          : 0;
}

void view_append(struct member *m, const struct qn_tag *t)
{
    if (m->delivered == m->log_size) {
        m->log_size = 2 * m->log_size + 64;
        m->log = realloc(m->log, m->log_size * sizeof *m->log);
        cr_assert_not_null(m->log);
    }
    m->log[m->delivered++] = *t;
}

static bool same_tag(const struct qn_tag *a, const struct qn_tag *b)
{
    return a->source == b->source && a->incarnation == b->incarnation &&
           a->number == b->number;
}

/* The submission of that source that was delivered here before. */
static uint64_t delivered_before(const struct member *m, const struct qn_tag *t)
{
    for (uint32_t i = m->delivered; i-- > 0;) {
        if (m->log[i].source == t->source) {
            cr_assert_leq(m->log[i].incarnation, t->incarnation);
            return m->log[i].incarnation == t->incarnation ? m->log[i].number
                                                           : 0;
        }
    }
    return 0;
}

void view_on_deliver(void *ctx, uint32_t number,
                     const struct qn_retained_message *msg)
{
    struct member *m = ctx;
    struct net *net = m->net;
    cr_assert(!m->left, "member %u delivers between views", m->self);
    cr_assert_eq(number, m->delivered + 1, "in order, and once");
    cr_assert_eq(msg->tag.number, delivered_before(m, &msg->tag) + 1,
                 "%s: source %u", replay_line(), msg->tag.source);
    cr_assert_eq(msg->len, view_length_of(net, &msg->tag));
    for (uint32_t i = 0; i < msg->len; i += 1 + msg->len / 8) {
        cr_assert_eq(msg->msg[i], view_byte_of(&msg->tag, i));
    }
    for (uint32_t u = 0; u < net->n; u++) {
        const struct member *other = &net->member[u];
        cr_assert(!other->alive || other->delivered < number ||
                      same_tag(&other->log[number - 1], &msg->tag),
                  "%s: members %u and %u differ in %u", replay_line(), u,
                  m->self, number);
    }
    view_append(m, &msg->tag);
    net->c->delivered++;
    net->c->hash =
        (net->c->hash ^ number ^ msg->tag.number << 8 ^ m->self << 4) *
        UINT64_C(0x100000001b3);
}

/* Nothing that has ended is missing at any living member of the view. */
void view_check_ended(struct member *m)
{
    const uint64_t ended = qn_sequence_ended(m->s);
    cr_assert_geq(ended, m->ended);
    for (uint32_t u = 0; ended > m->ended && u < m->net->n; u++) {
        const struct member *other = &m->net->member[u];
        cr_assert(!other->alive || !other->in_view ||
                      view_last_of(other, m->self, m->incarnation) >= ended,
                  "%s: %u lacks %" PRIu64 " of %u", replay_line(), u, ended,
                  m->self);
    }
    m->ended = ended;
}

static bool has_heard(const struct member *m)
{
    return m->left ||
           qn_coll_flow_error(qn_sequence_flow(m->s)) == QN_EPEERDEAD;
}

void view_check_heard(struct net *net)
{
    for (uint32_t v = 0; v < net->n; v++) {
        struct member *m = &net->member[v];
        if (m->alive && m->hears_by != 0 && has_heard(m)) {
            m->hears_by = 0;
        }
        cr_assert(!m->alive || m->hears_by == 0 || m->hears_by > net->round,
                  "%s: member %u has not heard", replay_line(), v);
    }
}

/* ---- deaths ---- */

uint32_t view_living(const struct net *net)
{
    uint32_t n = 0;
    for (uint32_t v = 0; v < net->n; v++) {
        n += net->member[v].alive;
    }
    return n;
}

static void forget_controls(struct member *m)
{
    for (; m->first_control != m->last_control; m->first_control++) {
        struct control *c = &m->control[m->first_control % CONTROLS];
        m->net->entering -= c->enters;
        qn_wiring_destroy(c->wiring);
    }
}

static void count_death(struct net *net, const struct member *m)
{
    struct view_coverage *c = net->c;
    struct qn_flow_send send;
    c->kills++;
    c->killed_root += m->root == m->self;
    c->killed_source += m->ended != m->submitted;
    c->killed_left += m->left;
    c->killed_sending += m->in_view && !m->left &&
                         qn_coll_flow_next(qn_sequence_flow(m->s), &send);
    c->killed_deciding += net->deciding;
    c->killed_entering += net->entering > 0;
    c->killed_alone += view_living(net) == 2;
}

/* A suffix of what it has sent is lost with it. */
static void lose(struct net *net, struct lane *l)
{
    while (l->head != l->tail && view_draw(net, 3) == 0) {
        free(l->message[--l->tail % VIEW_NET_ROOM].bytes);
    }
}

void view_end_member(struct member *m)
{
    forget_controls(m);
    qn_sequence_destroy(m->s);
    qn_wiring_destroy(m->wiring);
    m->s = NULL;
    m->wiring = NULL;
    m->alive = m->in_view = false;
}

static void kill_member(struct net *net, struct member *m)
{
    count_death(net, m);
    for (uint32_t u = 0; u < net->n; u++) {
        struct member *other = &net->member[u];
        for (uint32_t s = 0; s < SORTS; s++) {
            lose(net, &net->lane[m->self][u][s]);
        }
        if (other != m && other->alive && other->in_view) {
            other->tell_at[m->self] =
                view_draw(net, 2) == 0 ? view_soon(net) : 0;
            if (!has_heard(other) && other->hears_by == 0) {
                other->hears_by = net->round + HEARD_ROUNDS;
            }
        }
    }
    view_end_member(m);
    net->deciding = false; /* it must begin again */
    net->decide_at = view_soon(net);
}

/* An action of the member that acts: it may be its last. @return false. */
bool view_survives(struct member *m)
{
    struct net *net = m->net;
    if (net->fuse > 0 && --net->fuse == 0 && view_living(net) > 1) {
        kill_member(net, m);
    }
    return m->alive;
}
