/* A member's turn. */
#include "tests/sim/views/view_net_internal.h"

static void enter(struct member *m, struct control *c)
{
    struct qn_wiring *old = m->wiring;
    struct net *net = m->net;
    m->left = false; /* it delivers at once */
    net->c->root_moved += m->in_view && m->root != c->view.root;
    net->c->requests_again += m->ended != m->submitted;
    m->wiring = c->wiring;
    m->in_view = true;
    m->hears_by = 0;
    m->view = c->view.number;
    m->root = c->view.root;
    cr_assert_eq(qn_sequence_enter(m->s, &c->view, c->wiring), QN_OK, "%s",
                 replay_line());
    qn_wiring_destroy(old);
    for (uint32_t u = 0; u < net->n; u++) {
        if (!net->member[u].alive) { /* of the view, and dead already */
            m->tell_at[u] = view_soon(net);
        }
    }
    view_check_ended(m);
}

static void obey(struct member *m)
{
    struct net *net = m->net;
    while (m->first_control != m->last_control) {
        struct control *c = &m->control[m->first_control % CONTROLS];
        if (c->visible > net->round) {
            return;
        }
        m->first_control++;
        net->entering -= c->enters;
        if (c->enters) {
            enter(m, c);
        } else {
            struct qn_view_report report;
            qn_sequence_leave(m->s, &report);
            m->left = true;
            if (c->attempt == net->attempt) {
                net->report[m->self] = report;
                net->reported[m->self] = true;
                net->report_at[m->self] = view_soon(net);
            }
        }
    }
}

static void hear_of_deaths(struct member *m)
{
    for (uint32_t u = 0; u < m->net->n; u++) {
        if (m->tell_at[u] != 0 && m->tell_at[u] <= m->net->round) {
            m->tell_at[u] = 0;
            qn_sequence_down(m->s, u);
        }
    }
}

static void gone(struct member *m, qn_node_t from)
{
    if (!m->left) {
        qn_coll_flow_down(qn_sequence_flow(m->s), from);
        qn_sequence_settled(m->s);
    }
}

static bool read_flow(struct member *m, qn_node_t from, struct message *msg)
{
    struct qn_coll_flow *f = qn_sequence_flow(m->s);
    if (msg->head.kind == QN_FLOW_FAIL) {
        gone(m, from);
        return true;
    }
    int rc = qn_coll_flow_takes(f, from, &msg->head);
    cr_assert_neq(rc, QN_ECORRUPT, "%s: %u from %u", replay_line(), m->self,
                  from);
    if (rc == QN_OK) {
        cr_assert_eq(qn_sequence_take(m->s, &msg->head, msg->bytes, msg->len),
                     QN_OK, "%s: %u from %u", replay_line(), m->self, from);
        (void)qn_coll_flow_arrive(f, &msg->head);
        qn_sequence_settled(m->s);
    }
    m->net->c->window_full += rc == QN_EAGAIN;
    return rc != QN_EAGAIN;
}

static bool read_request(struct member *m, qn_node_t from, struct message *msg)
{
    int rc = msg->stable
                 ? qn_sequence_take_stable(m->s, msg->head.number)
                 : qn_sequence_take_request(m->s, from, msg->bytes, msg->len);
    cr_assert_neq(rc, QN_ECORRUPT, "%s: %u from %u", replay_line(), m->self,
                  from);
    m->net->c->window_full += rc == QN_EAGAIN;
    return rc != QN_EAGAIN;
}

/* @return false: killed. */
static bool read_lane(struct member *m, qn_node_t from, enum sort sort)
{
    struct lane *l = &m->net->lane[from][m->self][sort];
    while (l->head != l->tail && view_first_of(l)->visible <= m->net->round) {
        struct message *msg = view_first_of(l);
        int16_t newer = (int16_t)(uint16_t)(msg->view - m->view);
        if (!m->in_view || newer > 0) {
            gone(m, from);
            return true;
        }
        if (newer == 0 && !(sort == FLOW ? read_flow(m, from, msg)
                                         : read_request(m, from, msg))) {
            return true;
        }
        view_pop(l);
        view_check_ended(m);
        if (!view_survives(m)) {
            return false;
        }
    }
    return true;
}

static bool read_all(struct member *m)
{
    const uint32_t n = m->net->n, begin = view_draw(m->net, n);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < SORTS; s++) {
            if (!read_lane(m, (begin + i) % n, (enum sort)s)) {
                return false;
            }
        }
    }
    return true;
}

static bool submit_some(struct member *m)
{
    static uint8_t bytes[LONG];
    struct net *net = m->net;
    while (m->submitted < net->target && view_draw(net, 4) != 0) {
        const struct qn_tag t = {.source = m->self,
                                 .incarnation = m->incarnation,
                                 .number = m->submitted + 1};
        const uint32_t len = view_length_of(net, &t);
        for (uint32_t i = 0; i < len; i++) {
            bytes[i] = view_byte_of(&t, i);
        }
        uint64_t number;
        int rc = qn_sequence_submit(m->s, bytes, len, &number);
        if (rc == QN_EAGAIN) {
            return true;
        }
        cr_assert_eq(rc, QN_OK);
        cr_assert_eq(number, ++m->submitted);
        view_check_ended(m);
        if (!view_survives(m)) {
            return false;
        }
    }
    return true;
}

static bool send_flow(struct member *m)
{
    struct net *net = m->net;
    struct qn_flow_send send;
    while (m->in_view && qn_coll_flow_next(qn_sequence_flow(m->s), &send)) {
        struct lane *l = &net->lane[m->self][send.to][FLOW];
        if (send.later && view_draw(net, 2) == 0) {
            break; /* so that it stands for more */
        }
        if (!view_has_room(net, l)) {
            net->c->blocked++;
            return true;
        }
        size_t len = 0;
        const uint8_t *bytes =
            send.bare ? NULL : qn_sequence_give(m->s, &send, &len);
        view_put(net, l,
                 &(struct message){
                     .view = m->view, .head = send.head, .len = (uint32_t)len},
                 bytes);
        qn_coll_flow_sent(qn_sequence_flow(m->s));
        qn_sequence_settled(m->s);
        view_check_ended(m);
        if (!view_survives(m)) {
            return false;
        }
    }
    qn_sequence_settled(m->s);
    return true;
}

static bool send_requests(struct member *m)
{
    struct net *net = m->net;
    uint8_t *bytes;
    size_t len;
    while (m->in_view &&
           (bytes = qn_sequence_next_request(m->s, &len)) != NULL &&
           view_has_room(net, &net->lane[m->self][m->root][REQUEST])) {
        view_put(net, &net->lane[m->self][m->root][REQUEST],
                 &(struct message){.view = m->view, .len = (uint32_t)len},
                 bytes);
        qn_sequence_requested(m->s);
        if (!view_survives(m)) {
            return false;
        }
    }
    for (uint32_t i = qn_sequence_owed(m->s); i-- > 0;) {
        const qn_node_t to = qn_sequence_owed_to(m->s, i);
        struct lane *l = &net->lane[m->self][to][REQUEST];
        if (net->member[to].alive && !view_has_room(net, l)) {
            continue;
        }
        if (net->member[to].alive) {
            view_put(
                net, l,
                &(struct message){.view = m->view,
                                  .stable = true,
                                  .head = {.number = qn_sequence_stable(m->s)}},
                NULL);
        }
        qn_sequence_told(m->s, i);
        if (!view_survives(m)) {
            return false;
        }
    }
    return true;
}

void view_turn(struct member *m)
{
    obey(m);
    hear_of_deaths(m);
    if (view_survives(m) && read_all(m) && submit_some(m) && send_flow(m)) {
        (void)send_requests(m);
    }
}
