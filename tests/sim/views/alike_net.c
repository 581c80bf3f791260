#include "tests/sim/views/alike_net.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/coll_internal.h"
#include "tests/support/alike_program.h"
#include "tests/support/inmemory_transport.h"
#include "tests/support/test.h"

#define MAX          ALIKE_NET_MAX
#define OPERATIONS   40u /* of the program */
#define WINDOW_MAX   8u
#define VIEWS_MAX    16u
#define ROUNDS_MAX   4000u  /* of the whole, if each message goes at once */
#define HEARD_ROUNDS 40u    /* all start operations and learn of a death; so */
#define LONG_EVERY   97u    /* seeds, of which one has a long program ... */
#define LONG_LENGTH  12u    /* ... of 12 operations ... */
#define LONG         60000u /* bytes: a long payload */
#define LONG_CELLS   64u    /* ... through lanes of at least 64 cells */
#define FREE         UINT64_C(0x5a5a5a5a5a5a5a5a) /* in an output */

struct view {
    struct qn_view v;
    qn_node_t rank[MAX]; /* its members in order */
    uint32_t members;
    qn_node_t root;         /* of the trees */
    uint32_t adjacent[MAX]; /* bits: neighbours in the trees; all others, if
                               reductions are exchanged */
};

struct member {
    struct qn_coll *c;
    bool alive, in_view;
    uint32_t slowness; /* turns from one start to the next, in the mean */
    uint32_t view;     /* index; of the last that it has entered */
    uint32_t ended;    /* operations of the program */
    uint64_t *out;     /* [2 * WINDOW_MAX][words] by number */
    struct qn_qp *qp[QN_NODES_MAX];
    bool told[MAX]; /* of that member's end */
};

struct net {
    struct alike_coverage *coverage;
    struct alike_program program;
    uint64_t random;
    uint32_t n, window, operations;
    bool exchange;
    uint32_t cells;      /* of a lane, at least */
    uint32_t words;      /* of a payload, at most */
    uint64_t *in, *want; /* [words] */
    struct member member[MAX];
    struct view view[VIEWS_MAX]; /* that were decided */
    uint32_t views;
    uint16_t number; /* of the last view that was asked for */
    uint32_t offset; /* of the library's numbers of operations from those here,
                        which do not wrap */
    uint32_t kills;  /* to come */
};

/* ---- chance ---- */

static uint32_t draw(struct net *net, uint32_t bound)
{
    QN_ASSERT(bound > 0);
    net->random = net->random * UINT64_C(6364136223846793005) + 1442695;
    return (uint32_t)(net->random >> 33) % bound;
}

/* ---- the program ---- */

/* Index of the view in which an operation ran that is complete. */
static uint32_t ran_in(const struct net *net, uint32_t k)
{
    uint32_t i = net->views - 1;
    while (i > 0 && !qn_view_before(net->view[i].v.done, k)) {
        i--;
    }
    return i;
}

/* ---- what members do ---- */

static uint64_t *out_of(const struct net *net, struct member *m, uint32_t k)
{
    return m->out + k % (2 * WINDOW_MAX) * net->words;
}

static void check_unwritten(const struct net *net, struct member *m, uint32_t k,
                            uint32_t from)
{
    const uint64_t *out = out_of(net, m, k);
    for (uint32_t i = from; i < net->words; i++) {
        cr_assert_eq(out[i], FREE, "operation %u writes where it may not", k);
    }
}

static uint32_t last_of(const struct net *net, const struct member *m)
{
    return qn_coll_last(m->c) - net->offset;
}

static int state_of(const struct net *net, const struct member *m, uint32_t k)
{
    return qn_coll_state(m->c, k + net->offset);
}

/* @return what start says. */
static int start_next(struct net *net, qn_node_t v)
{
    struct member *m = &net->member[v];
    const uint32_t k = last_of(net, m) + 1;
    uint32_t number;
    uint64_t *out = out_of(net, m, k);
    for (uint32_t i = 0; i < net->words; i++) {
        out[i] = FREE;
    }
    const struct qn_coll_call call =
        alike_call(&net->program, k, v, m->view, net->in, out);
    int rc = qn_coll_start(m->c, &call, &number);
    if (rc == QN_OK) {
        cr_assert_eq(number, k + net->offset);
        net->coverage->late += !qn_view_before(net->view[m->view].v.done, k);
    } else {
        cr_assert(rc == QN_EAGAIN || rc == QN_EPEERDEAD, "operation %u: %s", k,
                  qn_strerror(rc));
    }
    return rc;
}

static void check_result(struct net *net, qn_node_t v, uint32_t k)
{
    struct member *m = &net->member[v];
    const uint32_t view = ran_in(net, k);
    const struct alike_party party = {.rank = net->view[view].rank,
                                      .members = net->view[view].members,
                                      .root = net->view[view].root};
    const uint32_t words =
        alike_expected(&net->program, k, &party, view, v, net->want);
    uint64_t *out = out_of(net, m, k);
    for (uint32_t i = 0; i < words; i++) {
        cr_assert_eq(out[i], net->want[i],
                     "member %u, operation %u (%d), word %u of %u", v, k,
                     (int)alike_what(&net->program, k), i, words);
        net->coverage->hash = alike_mixed(net->coverage->hash, out[i], k);
        out[i] = FREE; /* nothing may write it again */
    }
    check_unwritten(net, m, k, words);
    net->coverage->operations++;
}

/* Results come in order, once. */
static void look(struct net *net, qn_node_t v)
{
    struct member *m = &net->member[v];
    while (qn_view_before(m->ended, last_of(net, m)) &&
           state_of(net, m, m->ended + 1) == QN_OK) {
        check_result(net, v, ++m->ended);
    }
    if (draw(net, 8) != 0) {
        return;
    }
    for (uint32_t k = m->ended + 1; k <= last_of(net, m); k++) {
        int rc = state_of(net, m, k);
        cr_assert(rc == QN_EAGAIN ||
                      (rc == QN_EPEERDEAD && state_of(net, m, k + 1) == rc),
                  "operation %u is %s after one that is not", k,
                  qn_strerror(rc));
        check_unwritten(net, m, k, 0);
    }
    for (uint32_t k = m->ended > WINDOW_MAX ? m->ended - WINDOW_MAX + 1 : 1;
         k <= m->ended; k++) {
        cr_assert_eq(state_of(net, m, k), QN_OK, "it was complete");
        check_unwritten(net, m, k, 0);
    }
}

static void kill_member(struct net *net, qn_node_t v);

/* It ends when it has sent some frames more. */
static void end_while_sending(struct net *net, qn_node_t v)
{
    for (qn_node_t w = 0; w < net->n; w++) {
        if (net->member[v].qp[w] != NULL) {
            inmemory_allow(net->member[v].qp[w], draw(net, 3) > 0 ? draw(net, 4)
                                                 : draw(net, 2) == 0
                                                     ? 0
                                                     : INMEMORY_UNLIMITED);
        }
    }
    (void)qn_coll_poll(net->member[v].c);
    (void)qn_coll_flush(net->member[v].c);
    net->coverage->killed_sending++;
    kill_member(net, v);
}

/* What a program sleeps by: a member that polls and flushes and gets no further
 * is not told to go on. */
static void check_pending(struct net *net, struct qn_coll *c)
{
    bool moved = draw(net, 4) > 0;
    for (uint32_t i = 0; i < 8 && !moved && qn_coll_pending(c); i++) {
        (void)qn_coll_poll(c);
        moved = qn_coll_moved(c);
        (void)qn_coll_flush(c);
    }
    cr_assert(moved || !qn_coll_pending(c), "it would never sleep");
}

/* One action of a turn. @return false: the member has ended. */
static bool act(struct net *net, qn_node_t v, uint32_t action)
{
    struct member *m = &net->member[v];
    bool could;
    switch (action) {
    case 0:
        while (last_of(net, m) < net->operations &&
               draw(net, m->slowness) == 0 && start_next(net, v) == QN_OK) {
            look(net, v);
        }
        break;
    case 1:
        could = qn_coll_pending(m->c);
        (void)qn_coll_poll(m->c);
        cr_assert(could || !qn_coll_moved(m->c), "pending had not said so");
        check_pending(net, m->c);
        break;
    default:
        (void)qn_coll_flush(m->c);
    }
    look(net, v);
    if (net->kills > 0 && draw(net, 60 * net->n) == 0) {
        net->kills--;
        if (draw(net, 2) == 0) {
            end_while_sending(net, v);
        } else {
            kill_member(net, v);
        }
    }
    return m->alive;
}

static void turn(struct net *net, qn_node_t v)
{
    for (uint32_t action = 0; action < 3 && net->member[v].alive; action++) {
        if (!act(net, v, action)) {
            return;
        }
    }
}

/* @return true: a member has ended. */
static bool round_of_all(struct net *net)
{
    const uint32_t kills = net->kills;
    for (qn_node_t v = 0; v < net->n; v++) {
        turn(net, v);
    }
    net->coverage->rounds++;
    return net->kills != kills;
}

/* ---- deaths ---- */

/* What is handed on, and exchanges, have rows of their own. */
static uint32_t row_of(void *ctx, uint32_t number, uint32_t kind)
{
    const struct net *net = ctx;
    return kind == QN_OPERATIONS_KINDS - 1 ? ALIKE_ROW_AGAIN
           : kind == QN_WIRING_EXCHANGE
               ? ALIKE_ROW_EXCHANGE
               : (uint32_t)alike_what(&net->program, number - net->offset);
}

static void kill_member(struct net *net, qn_node_t v)
{
    struct member *m = &net->member[v];
    struct alike_coverage *c = net->coverage;
    for (qn_node_t w = 0; w < net->n; w++) {
        const struct qn_coll *other = net->member[w].c;
        if (w != v && net->member[w].alive) {
            flow_states_see(&c->states, qn_operations_flow(other->operations),
                            row_of, net);
        }
    }
    flow_states_kill(&c->states, qn_operations_flow(m->c->operations), row_of,
                     net);
    c->kills++;
    c->killed_root += net->view[m->view].root == v;
    c->killed_left += !m->in_view;
    c->killed_entering += m->view + 1 < net->views;
    c->killed_again +=
        m->in_view && qn_view_before(m->ended, net->view[m->view].v.done);
    qn_coll_destroy(m->c);
    m->c = NULL;
    m->alive = m->in_view = false;
}

static void close_pair(struct net *net, qn_node_t v, qn_node_t w)
{
    qn_qp_close(net->member[v].qp[w]);
    qn_qp_close(net->member[w].qp[v]);
    net->member[v].qp[w] = net->member[w].qp[v] = NULL;
}

/* A living member hears of deaths that it has not heard of: of all of `which`,
 * which are bits. */
static void tell(struct net *net, qn_node_t v, uint32_t which)
{
    struct member *m = &net->member[v];
    for (qn_node_t dead = 0; dead < net->n; dead++) {
        if (!net->member[dead].alive && !m->told[dead] &&
            (which >> dead & 1) != 0) {
            m->told[dead] = true;
            if (draw(net, 2) == 0) {
                (void)qn_coll_poll(m->c); /* what it has sent */
            }
            qn_coll_down(m->c, dead);
            close_pair(net, v, dead);
        }
    }
}

/* ---- views ---- */

static void draw_tree(struct net *net, struct qn_tree *t, const struct view *v)
{
    static const char *const shapes[] = {"sequential", "binary", "tree:k=1",
                                         "fibonacci"};
    qn_node_t order[MAX] = {0};
    for (uint32_t i = 0; i < v->members; i++) {
        uint32_t j = draw(net, i + 1);
        order[i] = order[j];
        order[j] = v->rank[i];
    }
    for (uint32_t i = 0; i < v->members; i++) {
        if (order[i] == v->root) {
            order[i] = order[0];
            order[0] = v->root;
        }
    }
    cr_assert_eq(qn_tree_build(t, shapes[draw(net, QN_ARRAY_COUNT(shapes))],
                               order, v->members),
                 QN_OK);
}

static void find_adjacent(struct view *v, const struct qn_tree *t)
{
    for (uint32_t i = 0; i < v->members; i++) {
        const qn_node_t node = v->rank[i], parent = t->parent[node];
        if (parent != node) {
            v->adjacent[node] |= 1u << parent;
            v->adjacent[parent] |= 1u << node;
        }
    }
}

/* Members and root of a view, and its trees. */
static void plan_view(struct net *net, struct view *v, struct qn_tree *down,
                      struct qn_tree *up)
{
    v->members = 0;
    for (qn_node_t w = 0; w < net->n; w++) {
        if (net->member[w].alive) {
            v->rank[v->members++] = w;
        }
    }
    v->root = v->rank[draw(net, v->members)];
    draw_tree(net, down, v);
    draw_tree(net, up, v);
    memset(v->adjacent, net->exchange ? 0xff : 0, sizeof v->adjacent);
    find_adjacent(v, down);
    find_adjacent(v, up);
}

static void begin(struct net *net)
{
    struct qn_tree down, up;
    struct view *first = &net->view[0];
    for (qn_node_t v = 0; v < net->n; v++) {
        net->member[v].alive = net->member[v].in_view = true;
        net->member[v].slowness = draw(net, 3) == 0 ? 6 : 1;
        for (qn_node_t w = 0; w < v; w++) {
            struct qn_qp *end[2];
            inmemory_pair(end, net->cells + draw(net, 6), QN_INPLACE_MAX);
            net->member[v].qp[w] = end[0];
            net->member[w].qp[v] = end[1];
        }
    }
    net->number = first->v.number = (uint16_t)draw(net, 65536);
    net->views = 1;
    plan_view(net, first, &down, &up);
    for (qn_node_t v = 0; v < net->n; v++) {
        const struct qn_coll_opts o = {.self = v,
                                       .down = &down,
                                       .up = &up,
                                       .qp = net->member[v].qp,
                                       .window = net->window,
                                       .bytes_max = net->program.bytes_max,
                                       .view = net->number,
                                       .before = net->offset,
                                       .alike = true,
                                       .exchange = net->exchange};
        cr_assert_eq(qn_coll_create(&net->member[v].c, &o), QN_OK);
    }
}

/* Some rounds between two steps of the decider. */
static bool pass_time(struct net *net)
{
    bool died = false;
    for (uint32_t i = draw(net, 3) * draw(net, 4); i > 0; i--) {
        died = round_of_all(net) || died;
    }
    return died;
}

static bool same_view(const struct net *net)
{
    bool same = true;
    for (qn_node_t v = 0; v < net->n; v++) {
        const struct member *m = &net->member[v];
        same = same && (!m->alive || (m->in_view && m->view + 1 == net->views));
    }
    return same;
}

/* In which a message goes over a lane. */
static uint32_t rounds_of(const struct net *net)
{
    return 1 + net->program.bytes_max / QN_INPLACE_MAX / net->cells;
}

/* All members of a view learn of a death in bounded time if the neighbours of
 * the dead are told, and all start operations. */
static void hear(struct net *net)
{
    const struct net before = *net;
    bool all = false;
    net->kills = 0;
    net->operations = UINT32_MAX;
    for (qn_node_t v = 0; v < net->n; v++) {
        net->member[v].slowness = 1;
        if (net->member[v].alive) {
            tell(net, v, net->view[net->views - 1].adjacent[v]);
        }
    }
    uint64_t rounds = 0;
    for (; rounds < HEARD_ROUNDS * rounds_of(net) && !all; rounds++) {
        all = true;
        (void)round_of_all(net);
        for (qn_node_t v = 0; v < net->n; v++) {
            struct member *m = &net->member[v];
            all = all && (!m->alive || start_next(net, v) == QN_EPEERDEAD);
        }
    }
    cr_assert(all, "seed %" PRIu64 ": a member has not heard of a death",
              net->program.seed);
    net->coverage->heard = QN_MAX(net->coverage->heard, rounds);
    net->kills = before.kills;
    net->operations = before.operations;
    for (qn_node_t v = 0; v < net->n; v++) {
        net->member[v].slowness = before.member[v].slowness;
    }
}

/* All living members leave, in any order. @return false: one has ended. */
static bool ask(struct net *net, struct qn_view_report *report)
{
    uint32_t count = 0;
    const uint32_t first = draw(net, net->n);
    net->number++;
    for (uint32_t i = 0; i < net->n; i++) {
        const qn_node_t v = (first + i) % net->n;
        struct member *m = &net->member[v];
        if (!m->alive) {
            continue;
        }
        cr_assert_eq(qn_coll_leave(m->c, &report[count]), QN_OK);
        m->in_view = false;
        look(net, v);
        cr_assert_eq(report[count].delivered, m->ended + net->offset);
        count++;
        if (pass_time(net)) {
            return false;
        }
    }
    return true;
}

static void cover_decision(struct net *net, const struct view *v)
{
    struct alike_coverage *c = net->coverage;
    c->views++;
    c->handed += v->v.done - v->v.before;
    for (uint32_t k = v->v.before + 1; k <= v->v.done; k++) {
        c->handed_long += alike_bytes(&net->program, k) > LONG;
    }
    c->far += v->v.done - v->v.before > net->window;
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *m = &net->member[v->rank[i]];
        const uint32_t last = last_of(net, m);
        c->voided += qn_view_before(v->v.done, last);
        c->outran += qn_view_before(last, v->v.done);
        c->root_lacked += v->rank[i] == net->view[m->view].root &&
                          qn_view_before(m->ended, v->v.done);
    }
}

/* @return false: a member has ended. */
static bool decide(struct net *net)
{
    struct qn_view_report report[MAX];
    struct qn_tree down, up;
    struct view *v = &net->view[net->views];
    if (!ask(net, report)) {
        return false;
    }
    cr_assert_lt(net->views, VIEWS_MAX);
    plan_view(net, v, &down, &up);
    cr_assert_eq(qn_view_decide(&v->v, net->number, report, v->members), QN_OK);
    const struct qn_view next = v->v;
    v->v.before -= net->offset;
    v->v.done -= net->offset;
    cover_decision(net, v);
    /* hear() may have let some do more than the program */
    net->operations = QN_MAX(net->operations, v->v.done);
    net->views++;
    const uint32_t index = net->views - 1;
    for (uint32_t i = 0; i < v->members; i++) {
        struct member *m = &net->member[v->rank[i]];
        const struct qn_coll_view_opts o = {
            .down = &down, .up = &up, .qp = m->qp};
        const uint32_t last = last_of(net, m);
        cr_assert_eq(qn_coll_enter(m->c, &next, &o), QN_OK);
        m->in_view = true;
        m->view = index;
        cr_assert_leq(last_of(net, m), v->v.done);
        for (uint32_t k = v->v.done + 1; k <= last; k++) {
            cr_assert_eq(state_of(net, m, k), QN_EPEERDEAD, "it is void");
        }
        look(net, v->rank[i]);
        if (pass_time(net)) {
            return false;
        }
    }
    return true;
}

static void make_view(struct net *net)
{
    do {
        (void)pass_time(net);
        if (same_view(net) && draw(net, 2) == 0) {
            hear(net);
        }
        for (qn_node_t v = 0; v < net->n; v++) {
            if (net->member[v].alive) {
                tell(net, v, UINT32_MAX);
                (void)pass_time(net);
            }
        }
        for (qn_node_t v = 0; v < net->n; v++) {
            if (net->member[v].alive) {
                tell(net, v, UINT32_MAX);
                cr_assert_eq(start_next(net, v), QN_EPEERDEAD);
            }
        }
    } while (!decide(net));
}

/* ---- a run ---- */

static bool all_ended(const struct net *net)
{
    bool all = true;
    for (qn_node_t v = 0; v < net->n; v++) {
        all = all && (!net->member[v].alive ||
                      net->member[v].ended == net->operations);
    }
    return all;
}

static void run(struct net *net)
{
    for (uint32_t rounds = 0; !all_ended(net); rounds++) {
        cr_assert_lt(rounds, ROUNDS_MAX * rounds_of(net),
                     "seed %" PRIu64 ": the living do not come to an end",
                     net->program.seed);
        if (round_of_all(net)) {
            make_view(net);
        }
    }
}

static void allocate(struct net *net)
{
    net->in = calloc(net->words, sizeof *net->in);
    net->want = calloc(net->words, sizeof *net->want);
    cr_assert(net->in != NULL && net->want != NULL);
    for (qn_node_t v = 0; v < net->n; v++) {
        struct member *m = &net->member[v];
        m->out = calloc(2 * WINDOW_MAX * net->words, sizeof *m->out);
        cr_assert_not_null(m->out);
    }
}

void alike_net_run(uint64_t seed, struct alike_coverage *c)
{
    struct net *net = calloc(1, sizeof *net);
    cr_assert_not_null(net);
    net->coverage = c;
    const bool is_long = seed % LONG_EVERY == 0;
    net->random = alike_mixed(seed, 1, 1);
    net->n = 2 + draw(net, MAX - 1);
    net->window = 1u << draw(net, 4);
    net->exchange = seed / 3 % 2 != 0;
    net->operations = is_long ? LONG_LENGTH : OPERATIONS;
    net->program = (struct alike_program){
        .seed = seed,
        .members = net->n,
        .bytes_max =
            is_long ? QN_COLL_PAYLOAD_MAX : net->n * 8 * (ALIKE_SHORT_MAX + 1)};
    net->cells = is_long ? LONG_CELLS << draw(net, 5) : 1;
    net->words = net->program.bytes_max / 8;
    net->offset = seed % 2 == 0 ? 0 : UINT32_MAX - (uint32_t)(seed / 2 % 64);
    net->kills = 1 + draw(net, 3);
    net->kills = QN_MIN(net->kills, net->n - 1);
    c->seeds++;
    c->kills_long -= is_long ? c->kills : 0;
    allocate(net);
    begin(net);
    run(net);
    c->kills_long += is_long ? c->kills : 0;
    free(net->in);
    free(net->want);
    for (qn_node_t v = 0; v < net->n; v++) {
        free(net->member[v].out);
        qn_coll_destroy(net->member[v].c);
        for (qn_node_t w = 0; w < net->n; w++) {
            qn_qp_close(net->member[v].qp[w]);
        }
    }

    free(net);
}
