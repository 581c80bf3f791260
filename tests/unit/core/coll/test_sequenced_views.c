/* Several sources and views over queuepairs of few cells, in one thread. The
 * schedules of deaths are in tests/sim/views; here it is what the lanes do:
 * requests, room, what is left over from earlier views. */
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/sequenced_broadcast.h"
#include "tests/support/inmemory_transport.h"
#include "tests/support/test.h"

#define NODES     8u
#define BYTES_MAX 150u
#define TARGET    30u /* submissions of each member */
#define LOG_MAX   (NODES * TARGET)

struct word {
    uint32_t source, number;
};

struct member {
    struct qn_sequenced_broadcast *b; /* NULL: it has ended */
    struct qn_wiring *wiring;
    struct qn_qp *qp[NODES], *request[NODES];
    uint32_t submitted, delivered;
    struct word log[LOG_MAX];
};

struct group {
    uint32_t n, window, credit;
    uint64_t random;
    uint16_t view;
    qn_node_t root;
    struct member member[NODES];
};

static uint32_t draw(struct group *g, uint32_t bound)
{
    QN_ASSERT(bound > 0);
    g->random = g->random * UINT64_C(6364136223846793005) + 1442695;
    return (uint32_t)(g->random >> 33) % bound;
}

static size_t length_of(const struct word *w)
{
    return sizeof *w + (w->number * 37 + w->source * 11) % (BYTES_MAX - 8);
}

static void deliver(void *ctx, uint32_t number, const void *msg, size_t len)
{
    struct member *m = ctx;
    struct word w;
    memcpy(&w, msg, sizeof w);
    cr_assert_eq(number, ++m->delivered);
    cr_assert_eq(len, length_of(&w));
    uint32_t before = 0;
    for (uint32_t i = 0; i < number - 1; i++) {
        before = m->log[i].source == w.source ? m->log[i].number : before;
    }
    cr_assert_eq(w.number, before + 1, "of source %u", w.source);
    m->log[number - 1] = w;
}

static void connect(struct qn_qp **a, struct qn_qp **b)
{
    struct qn_qp *end[2];
    inmemory_pair(end, 2, QN_INPLACE_MAX);
    *a = end[0];
    *b = end[1];
}

static void wire(struct group *g, const qn_node_t *node, uint32_t n)
{
    struct qn_diamond_ring *r;
    struct qn_tree t;
    const struct qn_diamond_ring_opts o = {.n = n, .k = 1 + draw(g, 2)};
    const bool is_ring = draw(g, 2) == 0;
    cr_assert_eq(qn_diamond_ring_create(&r, &o), QN_OK);
    cr_assert_eq(qn_tree_build(&t, "binary", node, n), QN_OK);
    for (uint32_t i = 0; i < n; i++) {
        struct qn_wiring **w = &g->member[node[i]].wiring;
        const struct qn_wiring_ring_opts ring = {
            .ring = r, .node = node, .self = node[i]};
        const struct qn_wiring_opts tree = {.kind = QN_WIRING_ACKNOWLEDGED,
                                            .down = &t,
                                            .up = &t,
                                            .self = node[i]};
        cr_assert_eq(is_ring ? qn_wiring_ring(w, &ring)
                             : qn_wiring_tree(w, &tree),
                     QN_OK);
    }
    qn_diamond_ring_destroy(r);
}

/* The living, `root` first. @return how many. */
static uint32_t living(const struct group *g, qn_node_t root, qn_node_t *node)
{
    uint32_t n = 1;
    node[0] = root;
    for (qn_node_t v = 0; v < g->n; v++) {
        if (v != root && g->member[v].b != NULL) {
            node[n++] = v;
        }
    }
    return n;
}

static struct group *new_group(uint64_t seed)
{
    struct group *g = calloc(1, sizeof *g);
    qn_node_t node[NODES];
    struct qn_view view = {.number = 65534};
    cr_assert_not_null(g);
    g->random = seed * 77;
    g->n = 2 + draw(g, NODES - 1);
    g->window = 1u << draw(g, 5);
    g->credit = 1 + draw(g, 6);
    g->view = view.number; /* it wraps */
    for (qn_node_t v = 0; v < g->n; v++) {
        node[v] = v;
        view.member[0] |= UINT64_C(1) << v;
        for (qn_node_t w = 0; w < v; w++) {
            connect(&g->member[v].qp[w], &g->member[w].qp[v]);
            connect(&g->member[v].request[w], &g->member[w].request[v]);
        }
    }
    wire(g, node, g->n);
    for (qn_node_t v = 0; v < g->n; v++) {
        struct member *m = &g->member[v];
        const struct qn_sequenced_views_opts views = {.self = v,
                                                      .members = g->n,
                                                      .incarnation = 1,
                                                      .credit = g->credit,
                                                      .view = view,
                                                      .request = m->request};
        const struct qn_sequenced_broadcast_opts o = {
            .wiring = m->wiring,
            .qp = m->qp,
            .window = g->window,
            .bytes_max = BYTES_MAX,
            .window_bytes = 2 * qn_retained_cost(BYTES_MAX),
            .views = &views,
            .deliver = deliver,
            .ctx = m};
        if (g->window > 2) {
            cr_assert_eq(qn_sequenced_broadcast_create(&m->b, &o), QN_OK);
        } else {
            struct qn_sequenced_broadcast_opts by_messages = o;
            by_messages.window_bytes = 0;
            cr_assert_eq(qn_sequenced_broadcast_create(&m->b, &by_messages),
                         QN_OK);
        }
    }
    return g;
}

static void end_member(struct group *g, qn_node_t v)
{
    struct member *m = &g->member[v];
    qn_sequenced_broadcast_destroy(m->b);
    qn_wiring_destroy(m->wiring);
    m->b = NULL;
    m->wiring = NULL;
    for (qn_node_t w = 0; w < g->n; w++) {
        qn_qp_close(m->qp[w]);
        qn_qp_close(m->request[w]);
        m->qp[w] = m->request[w] = NULL;
    }
}

static void free_group(struct group *g)
{
    for (qn_node_t v = 0; v < g->n; v++) {
        end_member(g, v);
    }
    free(g);
}

static void submit_some(struct group *g, qn_node_t v)
{
    struct member *m = &g->member[v];
    uint8_t msg[BYTES_MAX] = {0};
    int rc = QN_OK;
    while (m->submitted < TARGET && rc == QN_OK && draw(g, 3) != 0) {
        const struct word w = {v, m->submitted + 1};
        uint64_t number;
        memcpy(msg, &w, sizeof w);
        rc = qn_sequenced_broadcast_submit(m->b, msg, length_of(&w), &number);
        cr_assert(rc == QN_EAGAIN || number == w.number);
        m->submitted += rc == QN_OK;
    }
}

/* What poll does, pending has announced. */
static void turn(struct group *g, qn_node_t v)
{
    struct member *m = &g->member[v];
    if (m->b == NULL) {
        return;
    }
    submit_some(g, v);
    bool could = qn_sequenced_broadcast_pending(m->b);
    bool moved = qn_sequenced_broadcast_poll(m->b);
    cr_assert(could || !moved);
    (void)qn_sequenced_broadcast_flush(m->b);
}

static void decide(struct group *g, struct qn_view *view)
{
    struct qn_view_report report[NODES];
    uint32_t n = 0;
    for (qn_node_t v = 0; v < g->n; v++) {
        if (g->member[v].b != NULL) {
            qn_sequenced_broadcast_leave(g->member[v].b, &report[n++]);
            for (uint32_t i = draw(g, 3); i > 0; i--) {
                turn(g, draw(g, g->n)); /* between views, or not yet */
            }
        }
    }
    cr_assert_eq(qn_view_decide(view, ++g->view, report, n), QN_OK);
}

static void change_view(struct group *g)
{
    struct qn_wiring *old[NODES];
    struct qn_view view;
    qn_node_t node[NODES];
    decide(g, &view);
    for (qn_node_t v = 0; v < g->n; v++) {
        old[v] = g->member[v].wiring;
    }
    const uint32_t n = living(g, view.root, node);
    wire(g, node, n);
    for (uint32_t i = 0; i < n; i++) {
        struct member *m = &g->member[node[n - 1 - i]];
        cr_assert_eq(qn_sequenced_broadcast_enter(m->b, &view, m->wiring, m->qp,
                                                  m->request),
                     QN_OK);
        qn_wiring_destroy(old[node[n - 1 - i]]);
        for (uint32_t k = draw(g, 6); k > 0; k--) {
            turn(g, draw(g, g->n)); /* others have not entered */
        }
    }
}

static void kill_one(struct group *g)
{
    const qn_node_t victim = draw(g, g->n);
    qn_node_t node[NODES];
    if (g->member[victim].b == NULL || living(g, victim, node) == 1) {
        return;
    }
    end_member(g, victim);
    for (qn_node_t v = 0; v < g->n; v++) {
        struct member *m = &g->member[v];
        if (m->b != NULL) {
            qn_sequenced_broadcast_down(m->b, victim);
            cr_assert_eq(qn_sequenced_broadcast_error(m->b), QN_EPEERDEAD);
            qn_qp_close(m->qp[victim]);
            qn_qp_close(m->request[victim]);
            m->qp[victim] = m->request[victim] = NULL;
        }
    }
    change_view(g);
}

static bool is_done(const struct group *g)
{
    bool done = true;
    for (qn_node_t v = 0; v < g->n && done; v++) {
        const struct member *m = &g->member[v];
        done = m->b == NULL || qn_sequenced_broadcast_ended(m->b) == TARGET;
    }
    return done;
}

static void run(uint64_t seed, uint32_t kills)
{
    struct group *g = new_group(seed);
    const struct member *first = NULL;
    for (uint32_t turns = 0; !is_done(g) || kills > 0; turns++) {
        cr_assert_lt(turns, 200000u, "seed %llu", (unsigned long long)seed);
        if (kills > 0 && draw(g, 150) == 0) {
            kills--;
            kill_one(g);
        }
        turn(g, draw(g, g->n));
    }
    for (qn_node_t v = 0; v < g->n; v++) {
        const struct member *m = &g->member[v];
        if (m->b != NULL) {
            first = first == NULL ? m : first;
            const uint32_t both = QN_MIN(m->delivered, first->delivered);
            cr_assert_eq(memcmp(m->log, first->log, both * sizeof *m->log), 0,
                         "seed %llu", (unsigned long long)seed);
        }
    }
    free_group(g);
}

Test(sequenced_views, every_member_is_a_source, .timeout = 60)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        run(seed, 0);
    }
}

Test(sequenced_views, the_living_go_on_in_the_next_view, .timeout = 60)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        run(seed, 1 + (uint32_t)(seed % 4));
    }
}

/* A view may be left though no member has ended: to change the wiring. */
Test(sequenced_views, a_view_may_be_changed_at_any_time, .timeout = 60)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct group *g = new_group(seed);
        for (uint32_t turns = 0; !is_done(g); turns++) {
            cr_assert_lt(turns, 400000u);
            if (draw(g, 400) == 0) {
                change_view(g);
            }
            turn(g, draw(g, g->n));
        }
        free_group(g);
    }
}

/* Two members, the root and a source. */
static struct group *new_pair(void)
{
    uint64_t seed = 1;
    struct group *g = new_group(seed);
    while (g->n != 2) {
        free_group(g);
        g = new_group(++seed);
    }
    return g;
}

static void expect_corrupt(const uint8_t *msg, size_t len, qn_node_t at)
{
    struct group *g = new_pair();
    struct member *m = &g->member[at];
    cr_assert_eq(qn_qp_try_send(g->member[1 - at].request[at], msg, len),
                 QN_OK);
    (void)qn_sequenced_broadcast_poll(m->b);
    cr_assert_eq(qn_sequenced_broadcast_error(m->b), QN_ECORRUPT);
    free_group(g);
}

Test(sequenced_views, damaged_requests_are_found)
{
    /* number, view, what; behind, source, incarnation, number */
    uint8_t msg[24] = {0, 0, 0, 0, 0xfe, 0xff, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1};
    struct group *g = new_pair();
    g->member[1].log[0] = (struct word){0};
    cr_assert_eq(qn_qp_try_send(g->member[1].request[0], msg, 5), QN_OK);
    (void)qn_sequenced_broadcast_poll(g->member[0].b);
    cr_assert_eq(qn_sequenced_broadcast_error(g->member[0].b), QN_ECORRUPT,
                 "too short");
    free_group(g);
    msg[16] = 2;
    expect_corrupt(msg, sizeof msg, 0); /* one before it is missing */
    msg[16] = 1;
    msg[10] = 0;
    expect_corrupt(msg, sizeof msg, 0); /* of another source */
    msg[10] = 1;
    expect_corrupt(msg, sizeof msg, 1); /* to a member that is not the root */
    msg[6] = 2;
    expect_corrupt(msg, sizeof msg, 0); /* no such message */
    msg[6] = 1;
    expect_corrupt(msg, 8, 0); /* said to the root */
    msg[0] = 1;
    expect_corrupt(msg, 8, 1); /* more than it has completed */
}
