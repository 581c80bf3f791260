/* The decider of views, and the next incarnation of a member. */
#include "tests/sim/views/view_net_internal.h"

static void tell(struct net *net, struct member *m, const struct control *c)
{
    cr_assert_lt(m->last_control - m->first_control, CONTROLS);
    struct control *to = &m->control[m->last_control++ % CONTROLS];
    *to = *c;
    m->last_visible = QN_MAX(m->last_visible, view_soon(net));
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

struct member *view_make_member(struct net *net, uint32_t v, uint32_t delivered,
                                const struct qn_tag *tag)
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
        .deliver = view_on_deliver,
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
    uint32_t v = view_draw(net, net->n), donor = least(net);
    if (net->joins == 0 || net->member[v].alive) {
        return;
    }
    const struct member *from = &net->member[donor];
    struct member *m =
        view_make_member(net, v, from->delivered, qn_sequence_tags(from->s));
    m->delivered = 0;
    for (uint32_t i = 0; i < from->delivered; i++) {
        view_append(m, &from->log[i]);
    }
    for (uint32_t u = 0; u < net->n; u++) {
        for (uint32_t s = 0; s < SORTS; s++) {
            view_empty(&net->lane[u][v][s]);
            view_empty(&net->lane[v][u][s]);
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
                                           .k = 1 + view_draw(net, 3),
                                           .full = view_draw(net, 2) == 0,
                                           .companion =
                                               n > 2 && view_draw(net, 2) == 0};
    cr_assert_eq(qn_diamond_ring_create(&w->ring, &o), QN_OK);
    w->observed = view_draw(net, 2) == 0;
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
            uint32_t at = 1 + view_draw(net, n);
            for (uint32_t i = n; i > at; i--) {
                w->node[i] = w->node[i - 1];
            }
            w->node[at] = v;
            n++;
        }
    }
    if (view_draw(net, 2) == 0) {
        make_ring(net, w, n);
        return;
    }
    cr_assert_eq(qn_tree_build(&w->down, shape[view_draw(net, 5)], w->node, n),
                 QN_OK);
    cr_assert_eq(qn_tree_build(&w->up, shape[view_draw(net, 5)], w->node, n),
                 QN_OK);
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

void view_decider(struct net *net)
{
    if (net->decide_at != 0 && net->decide_at <= net->round && !net->deciding) {
        ask_all(net);
    } else if (net->deciding && all_reported(net)) {
        decide(net);
    }
}
