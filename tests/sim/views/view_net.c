#include "tests/sim/views/view_net_internal.h"

#include <stdio.h>

static void start(struct net *net, uint64_t seed)
{
    const bool is_long = seed % 16 == 7;
    net->random = seed * UINT64_C(0x9e3779b97f4a7c15);
    net->n = 2 + view_draw(net, MAX - 1);
    net->window = 1u << view_draw(net, 6);
    net->room = 1 + view_draw(net, VIEW_NET_ROOM - 1);
    net->credit = 1 + view_draw(net, 12);
    net->len_max = is_long ? LONG : view_draw(net, 100);
    net->delay = 1 + view_draw(net, 6);
    net->target = is_long ? 6 : 10 + view_draw(net, 40);
    net->kills = 1 + view_draw(net, 4);
    net->joins = seed % 3 == 0 ? 2 : 0;
    for (uint32_t v = 0; v < net->n; v++) {
        (void)view_make_member(net, v, 0, NULL);
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
            cr_assert(!m->alive || view_last_of(&net->member[v], u,
                                                m->incarnation) == net->target);
        }
    }
}

static void round_of_all(struct net *net)
{
    const uint32_t begin = view_draw(net, net->n);
    for (uint32_t i = 0; i < net->n; i++) {
        struct member *m = &net->member[(begin + i) % net->n];
        if (m->alive && view_draw(net, 8) != 0) {
            view_turn(m);
        }
    }
    view_decider(net);
    view_check_heard(net);
}

static void finish(struct net *net)
{
    for (uint32_t v = 0; v < net->n; v++) {
        if (net->member[v].alive) {
            view_end_member(&net->member[v]);
        }
        free(net->member[v].log);
        for (uint32_t u = 0; u < net->n; u++) {
            for (uint32_t s = 0; s < SORTS; s++) {
                view_empty(&net->lane[v][u][s]);
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
        if (net->kills > 0 && net->fuse == 0 && view_draw(net, 30) == 0) {
            net->fuse = 1 + view_draw(net, 60);
            net->kills--;
        }
        if (view_living(net) == 1) {
            net->kills = net->fuse = 0;
        }
        round_of_all(net);
    }
    check_end(net);
    c->rounds += net->round;
    c->seeds++;
    finish(net);
}
