#include "tests/sim/views/view_net.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/replay.h"
#include "tests/support/test.h"

#define MAX        VIEW_NET_MAX
#define LONG       65000u /* bytes of a long message */
#define ROUNDS_MAX 60000u
#define CONTROLS   16u
#define HEARD_ROUNDS                                                           \
    60u /* it takes to hear of a death: of the telling, or of                  \
           the decider's question */

enum sort { FLOW, REQUEST, SORTS };

struct message {
    uint16_t view;
    bool stable; /* on a request lane: from the root */
    struct qn_flow_head head;
    uint32_t len;
    uint64_t visible; /* round */
    uint8_t *bytes;
};

struct lane {
    struct message message[VIEW_NET_ROOM];
    uint32_t head, tail;
    uint64_t last; /* visible */
};

/* From the decider. */
struct control {
    uint64_t visible;
    uint16_t attempt;
    bool enters;
    struct qn_view view;
    struct qn_wiring *wiring; /* enters: given */
};

struct member {
    struct net *net;
    qn_node_t self;
    bool alive, in_view;
    uint32_t incarnation;
    struct qn_sequence *s;
    struct qn_wiring *wiring;
    uint16_t view;
    bool left;
    qn_node_t root;
    uint64_t submitted, ended;
    struct qn_tag *log; /* [delivered] by number - 1 */
    uint32_t delivered, log_size;
    uint64_t tell_at[MAX]; /* of a death; 0: no */
    uint64_t hears_by;     /* round; 0: no death in its view */
    struct control control[CONTROLS];
    uint32_t first_control, last_control;
    uint64_t last_visible;
};

struct net {
    uint64_t random, round;
    uint32_t n, window, room, credit, len_max, delay, target, kills, joins;
    struct member member[MAX];
    struct lane lane[MAX][MAX][SORTS]; /* [from][to] */
    uint32_t fuse; /* actions until the member that acts is killed; 0: none */
    struct view_coverage *c;
    /* The decider. */
    bool deciding;
    uint64_t decide_at; /* it has heard of a death; 0: no */
    uint16_t attempt;
    bool member_of[MAX], reported[MAX];
    struct qn_view_report report[MAX];
    uint64_t report_at[MAX];
    uint32_t entering; /* members that have been told, and have not entered */
};

static uint32_t draw(struct net *net, uint32_t bound)
{
    QN_ASSERT(bound > 0);
    net->random = net->random * UINT64_C(6364136223846793005) + 1442695;
    return (uint32_t)(net->random >> 33) % bound;
}

static uint64_t soon(struct net *net)
{
    return net->round + 1 + draw(net, net->delay);
}

/* ---- messages ---- */

static struct message *first_of(struct lane *l)
{
    return &l->message[l->head % VIEW_NET_ROOM];
}

static void pop(struct lane *l)
{
    free(first_of(l)->bytes);
    l->head++;
}

static bool has_room(const struct net *net, const struct lane *l)
{
    return l->tail - l->head < net->room;
}

static void put(struct net *net, struct lane *l, const struct message *m,
                const uint8_t *bytes)
{
    struct message *to = &l->message[l->tail++ % VIEW_NET_ROOM];
    *to = *m;
    to->bytes = malloc(m->len + 1);
    cr_assert_not_null(to->bytes);
    if (m->len > 0) {
        memcpy(to->bytes, bytes, m->len);
    }
    l->last = QN_MAX(l->last, soon(net));
    to->visible = l->last;
}

static void empty(struct lane *l)
{
    while (l->head != l->tail) {
        pop(l);
    }
}

/* What a source submits: told from its tag. */
static uint32_t length_of(const struct net *net, const struct qn_tag *t)
{
    const uint64_t x = t->number * 2654435761u + t->source * 40503u;
    return (uint32_t)(x >> 7) % (net->len_max + 1);
}

static uint8_t byte_of(const struct qn_tag *t, uint32_t i)
{
    return (uint8_t)(t->number + t->source * 31 + t->incarnation * 7 + i);
}

/* ---- checks ---- */

static uint64_t last_of(const struct member *m, uint32_t source,
                        uint32_t incarnation)
{
    const struct qn_tag *t = &qn_sequence_tags(m->s)[source];
    return t->incarnation == incarnation  ? t->number
           : t->incarnation > incarnation ? UINT64_MAX
                                          : 0;
}

static void append(struct member *m, const struct qn_tag *t)
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

static void on_deliver(void *ctx, uint32_t number,
                       const struct qn_retained_message *msg)
{
    struct member *m = ctx;
    struct net *net = m->net;
    cr_assert(!m->left, "member %u delivers between views", m->self);
    cr_assert_eq(number, m->delivered + 1, "in order, and once");
    cr_assert_eq(msg->tag.number, delivered_before(m, &msg->tag) + 1,
                 "%s: source %u", replay_line(), msg->tag.source);
    cr_assert_eq(msg->len, length_of(net, &msg->tag));
    for (uint32_t i = 0; i < msg->len; i += 1 + msg->len / 8) {
        cr_assert_eq(msg->msg[i], byte_of(&msg->tag, i));
    }
    for (uint32_t u = 0; u < net->n; u++) {
        const struct member *other = &net->member[u];
        cr_assert(!other->alive || other->delivered < number ||
                      same_tag(&other->log[number - 1], &msg->tag),
                  "%s: members %u and %u differ in %u", replay_line(), u,
                  m->self, number);
    }
    append(m, &msg->tag);
    net->c->delivered++;
    net->c->hash =
        (net->c->hash ^ number ^ msg->tag.number << 8 ^ m->self << 4) *
        UINT64_C(0x100000001b3);
}

/* Nothing that has ended is missing at any living member of the view. */
static void check_ended(struct member *m)
{
    const uint64_t ended = qn_sequence_ended(m->s);
    cr_assert_geq(ended, m->ended);
    for (uint32_t u = 0; ended > m->ended && u < m->net->n; u++) {
        const struct member *other = &m->net->member[u];
        cr_assert(!other->alive || !other->in_view ||
                      last_of(other, m->self, m->incarnation) >= ended,
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

static void check_heard(struct net *net)
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

static uint32_t living(const struct net *net)
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
    c->killed_alone += living(net) == 2;
}

/* A suffix of what it has sent is lost with it. */
static void lose(struct net *net, struct lane *l)
{
    while (l->head != l->tail && draw(net, 3) == 0) {
        free(l->message[--l->tail % VIEW_NET_ROOM].bytes);
    }
}

static void end_member(struct member *m)
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
            other->tell_at[m->self] = draw(net, 2) == 0 ? soon(net) : 0;
            if (!has_heard(other) && other->hears_by == 0) {
                other->hears_by = net->round + HEARD_ROUNDS;
            }
        }
    }
    end_member(m);
    net->deciding = false; /* it must begin again */
    net->decide_at = soon(net);
}

/* An action of the member that acts: it may be its last. @return false. */
static bool survives(struct member *m)
{
    struct net *net = m->net;
    if (net->fuse > 0 && --net->fuse == 0 && living(net) > 1) {
        kill_member(net, m);
    }
    return m->alive;
}

/* ---- the decider ---- */

static void tell(struct net *net, struct member *m, const struct control *c)
{
    cr_assert_lt(m->last_control - m->first_control, CONTROLS);
    struct control *to = &m->control[m->last_control++ % CONTROLS];
    *to = *c;
    m->last_visible = QN_MAX(m->last_visible, soon(net));
    to->visible = m->last_visible;
    net->entering += c->enters;
}

static void ask_all(struct net *net)
{
    net->deciding = true;
    net->decide_at = 0;
    net->attempt++;
    for (uint32_t v = 0; v < net->n; v++) {
        net->member_of[v] = net->member[v].alive;
        net->reported[v] = false;
        if (net->member[v].alive) {
            tell(net, &net->member[v],
                 &(struct control){.attempt = net->attempt});
        }
    }
}

static struct member *make_member(struct net *net, uint32_t v,
                                  uint32_t delivered, const struct qn_tag *tag)
{
    struct member *m = &net->member[v];
    m->net = net;
    m->self = v;
    m->incarnation++;
    m->root = MAX;
    m->left = true;
    m->alive = true;
    m->submitted = m->ended = m->hears_by = 0;
    const struct qn_sequence_opts o = {
        .self = v,
        .members = net->n,
        .incarnation = m->incarnation,
        .window = net->window,
        .len_max = net->len_max,
        .bytes_max = net->len_max == LONG ? 3 * qn_retained_cost(LONG)
                     : net->window > 4    ? 3 * qn_retained_cost(net->len_max)
                                          : 0,
        .credit = net->credit,
        .delivered = delivered,
        .tag = tag,
        .deliver = on_deliver,
        .ctx = m};
    cr_assert_eq(qn_sequence_create(&m->s, &o), QN_OK);
    return m;
}

static uint32_t least(const struct net *net)
{
    uint32_t v = MAX;
    for (uint32_t u = 0; u < net->n; u++) {
        if (net->member_of[u] &&
            (v == MAX || net->report[u].delivered < net->report[v].delivered)) {
            v = u;
        }
    }
    return v;
}

/* A dead member comes back, with the state of the one that has least. */
static void join(struct net *net)
{
    uint32_t v = draw(net, net->n), donor = least(net);
    if (net->joins == 0 || net->member[v].alive) {
        return;
    }
    const struct member *from = &net->member[donor];
    struct member *m =
        make_member(net, v, from->delivered, qn_sequence_tags(from->s));
    m->delivered = 0;
    for (uint32_t i = 0; i < from->delivered; i++) {
        append(m, &from->log[i]);
    }
    for (uint32_t u = 0; u < net->n; u++) {
        for (uint32_t s = 0; s < SORTS; s++) {
            empty(&net->lane[u][v][s]);
            empty(&net->lane[v][u][s]);
        }
        net->member[u].tell_at[v] = 0;
        m->tell_at[u] = 0;
    }
    qn_sequence_leave(m->s, &net->report[v]);
    net->member_of[v] = net->reported[v] = true;
    net->joins--;
    net->c->joined++;
}

static bool all_reported(const struct net *net)
{
    bool all = true;
    for (uint32_t v = 0; v < net->n; v++) {
        all = all && (!net->member_of[v] ||
                      (net->reported[v] && net->report_at[v] <= net->round));
    }
    return all;
}

struct wirings {
    struct qn_tree down, up;
    struct qn_diamond_ring *ring; /* NULL: trees */
    qn_node_t node[MAX];
    bool observed;
};

static void make_ring(struct net *net, struct wirings *w, uint32_t n)
{
    const struct qn_diamond_ring_opts o = {.n = n,
                                           .k = 1 + draw(net, 3),
                                           .full = draw(net, 2) == 0,
                                           .companion =
                                               n > 2 && draw(net, 2) == 0};
    cr_assert_eq(qn_diamond_ring_create(&w->ring, &o), QN_OK);
    w->observed = draw(net, 2) == 0;
    net->c->rings++;
}

/* Members in any order, the root first. */
static void plan(struct net *net, struct wirings *w, qn_node_t root)
{
    static const char *const shape[] = {"sequential", "binary", "fibonacci",
                                        "tree:k=1", "tree:k=3"};
    uint32_t n = 1;
    *w = (struct wirings){.node = {root}};
    for (qn_node_t v = 0; v < net->n; v++) {
        if (net->member_of[v] && v != root) {
            uint32_t at = 1 + draw(net, n);
            for (uint32_t i = n; i > at; i--) {
                w->node[i] = w->node[i - 1];
            }
            w->node[at] = v;
            n++;
        }
    }
    if (draw(net, 2) == 0) {
        make_ring(net, w, n);
        return;
    }
    cr_assert_eq(qn_tree_build(&w->down, shape[draw(net, 5)], w->node, n),
                 QN_OK);
    cr_assert_eq(qn_tree_build(&w->up, shape[draw(net, 5)], w->node, n), QN_OK);
    net->c->trees++;
}

static struct qn_wiring *wiring_of(const struct wirings *w, qn_node_t self)
{
    struct qn_wiring *out;
    if (w->ring != NULL) {
        const struct qn_wiring_ring_opts o = {.ring = w->ring,
                                              .node = w->node,
                                              .self = self,
                                              .observed = w->observed};
        cr_assert_eq(qn_wiring_ring(&out, &o), QN_OK);
    } else {
        const struct qn_wiring_opts o = {.kind = QN_WIRING_ACKNOWLEDGED,
                                         .down = &w->down,
                                         .up = &w->up,
                                         .self = self};
        cr_assert_eq(qn_wiring_tree(&out, &o), QN_OK);
    }
    return out;
}

static void decide(struct net *net)
{
    struct qn_view_report report[MAX];
    struct qn_view view;
    struct wirings w;
    uint32_t n = 0;
    join(net);
    for (uint32_t i = 0; i < net->n; i++) {
        uint32_t v = (i + net->attempt) % net->n;
        if (net->member_of[v]) {
            report[n++] = net->report[v];
        }
    }
    cr_assert_eq(qn_view_decide(&view, net->attempt, report, n), QN_OK,
                 "%s: no member can send again", replay_line());
    plan(net, &w, view.root);
    for (uint32_t v = 0; v < net->n; v++) {
        if (net->member_of[v]) {
            net->c->again += view.done - net->report[v].delivered;
            tell(net, &net->member[v],
                 &(struct control){.enters = true,
                                   .attempt = net->attempt,
                                   .view = view,
                                   .wiring = wiring_of(&w, v)});
        }
    }
    qn_diamond_ring_destroy(w.ring);
    net->deciding = false;
    net->c->views++;
}

static void decider(struct net *net)
{
    if (net->decide_at != 0 && net->decide_at <= net->round && !net->deciding) {
        ask_all(net);
    } else if (net->deciding && all_reported(net)) {
        decide(net);
    }
}

/* ---- a member's turn ---- */

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
            m->tell_at[u] = soon(net);
        }
    }
    check_ended(m);
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
                net->report_at[m->self] = soon(net);
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
    while (l->head != l->tail && first_of(l)->visible <= m->net->round) {
        struct message *msg = first_of(l);
        int16_t newer = (int16_t)(uint16_t)(msg->view - m->view);
        if (!m->in_view || newer > 0) {
            gone(m, from);
            return true;
        }
        if (newer == 0 && !(sort == FLOW ? read_flow(m, from, msg)
                                         : read_request(m, from, msg))) {
            return true;
        }
        pop(l);
        check_ended(m);
        if (!survives(m)) {
            return false;
        }
    }
    return true;
}

static bool read_all(struct member *m)
{
    const uint32_t n = m->net->n, begin = draw(m->net, n);
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
    while (m->submitted < net->target && draw(net, 4) != 0) {
        const struct qn_tag t = {.source = m->self,
                                 .incarnation = m->incarnation,
                                 .number = m->submitted + 1};
        const uint32_t len = length_of(net, &t);
        for (uint32_t i = 0; i < len; i++) {
            bytes[i] = byte_of(&t, i);
        }
        uint64_t number;
        int rc = qn_sequence_submit(m->s, bytes, len, &number);
        if (rc == QN_EAGAIN) {
            return true;
        }
        cr_assert_eq(rc, QN_OK);
        cr_assert_eq(number, ++m->submitted);
        check_ended(m);
        if (!survives(m)) {
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
        if (send.later && draw(net, 2) == 0) {
            break; /* so that it stands for more */
        }
        if (!has_room(net, l)) {
            net->c->blocked++;
            return true;
        }
        size_t len = 0;
        const uint8_t *bytes =
            send.bare ? NULL : qn_sequence_give(m->s, &send, &len);
        put(net, l,
            &(struct message){
                .view = m->view, .head = send.head, .len = (uint32_t)len},
            bytes);
        qn_coll_flow_sent(qn_sequence_flow(m->s));
        qn_sequence_settled(m->s);
        check_ended(m);
        if (!survives(m)) {
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
           has_room(net, &net->lane[m->self][m->root][REQUEST])) {
        put(net, &net->lane[m->self][m->root][REQUEST],
            &(struct message){.view = m->view, .len = (uint32_t)len}, bytes);
        qn_sequence_requested(m->s);
        if (!survives(m)) {
            return false;
        }
    }
    for (uint32_t i = qn_sequence_owed(m->s); i-- > 0;) {
        const qn_node_t to = qn_sequence_owed_to(m->s, i);
        struct lane *l = &net->lane[m->self][to][REQUEST];
        if (net->member[to].alive && !has_room(net, l)) {
            continue;
        }
        if (net->member[to].alive) {
            put(net, l,
                &(struct message){.view = m->view,
                                  .stable = true,
                                  .head = {.number = qn_sequence_stable(m->s)}},
                NULL);
        }
        qn_sequence_told(m->s, i);
        if (!survives(m)) {
            return false;
        }
    }
    return true;
}

static void turn(struct member *m)
{
    obey(m);
    hear_of_deaths(m);
    if (survives(m) && read_all(m) && submit_some(m) && send_flow(m)) {
        (void)send_requests(m);
    }
}

/* ---- the net ---- */

static void start(struct net *net, uint64_t seed)
{
    const bool is_long = seed % 16 == 7;
    net->random = seed * UINT64_C(0x9e3779b97f4a7c15);
    net->n = 2 + draw(net, MAX - 1);
    net->window = 1u << draw(net, 6);
    net->room = 1 + draw(net, VIEW_NET_ROOM - 1);
    net->credit = 1 + draw(net, 12);
    net->len_max = is_long ? LONG : draw(net, 100);
    net->delay = 1 + draw(net, 6);
    net->target = is_long ? 6 : 10 + draw(net, 40);
    net->kills = 1 + draw(net, 4);
    net->joins = seed % 3 == 0 ? 2 : 0;
    for (uint32_t v = 0; v < net->n; v++) {
        (void)make_member(net, v, 0, NULL);
    }
    net->decide_at = 1; /* the first view */
}

/* All that the living have submitted has ended, and all have delivered it. */
static bool is_done(const struct net *net)
{
    bool done = net->kills == 0 && net->fuse == 0 && !net->deciding &&
                net->decide_at == 0 && net->entering == 0;
    uint32_t delivered = UINT32_MAX;
    for (uint32_t v = 0; v < net->n && done; v++) {
        const struct member *m = &net->member[v];
        if (m->alive) {
            delivered = delivered == UINT32_MAX ? m->delivered : delivered;
            done = m->ended == net->target && m->delivered == delivered;
        }
    }
    return done;
}

static void check_end(const struct net *net)
{
    for (uint32_t v = 0; v < net->n; v++) {
        for (uint32_t u = 0; u < net->n && net->member[v].alive; u++) {
            const struct member *m = &net->member[u];
            cr_assert(!m->alive || last_of(&net->member[v], u,
                                           m->incarnation) == net->target);
        }
    }
}

static void round_of_all(struct net *net)
{
    const uint32_t begin = draw(net, net->n);
    for (uint32_t i = 0; i < net->n; i++) {
        struct member *m = &net->member[(begin + i) % net->n];
        if (m->alive && draw(net, 8) != 0) {
            turn(m);
        }
    }
    decider(net);
    check_heard(net);
}

static void finish(struct net *net)
{
    for (uint32_t v = 0; v < net->n; v++) {
        if (net->member[v].alive) {
            end_member(&net->member[v]);
        }
        free(net->member[v].log);
        for (uint32_t u = 0; u < net->n; u++) {
            for (uint32_t s = 0; s < SORTS; s++) {
                empty(&net->lane[v][u][s]);
            }
        }
    }
    free(net);
}

void view_net_run(uint64_t seed, struct view_coverage *c)
{
    struct net *net = calloc(1, sizeof *net);
    cr_assert_not_null(net);
    net->c = c;
    start(net, seed);
    while (!is_done(net)) {
        net->round++;
        cr_assert_lt(net->round, ROUNDS_MAX, "%s: it does not end",
                     replay_line());
        if (net->kills > 0 && net->fuse == 0 && draw(net, 30) == 0) {
            net->fuse = 1 + draw(net, 60);
            net->kills--;
        }
        if (living(net) == 1) {
            net->kills = net->fuse = 0;
        }
        round_of_all(net);
    }
    check_end(net);
    c->rounds += net->round;
    c->seeds++;
    finish(net);
}
