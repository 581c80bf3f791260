/*
 * The ledger of the timed machine: what a message of one cell costs over UMP,
 * between every two cores of every machine file.
 *
 * With everything but transfers at 1 ps it is s + r, within 0.1 %. With hits,
 * fences and the library priced, what is more is what the machine itemises.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/sim/timed/coherent.h"
#include "core/sim/timed/timed.h"
#include "tests/sim/timed/worlds.h"
#include "tests/support/test.h"
#include "transports/registry.h"

#define CELLS    1024u /* of a lane, used in runs of 64 */
#define WARM     128u  /* both runs that are in use */
#define MESSAGES 33u   /* after that; each run takes as long */
#define GAP_NS   5000u /* longer than any message */

/* Code between two accesses runs ahead of the others' time: so each message has
 * a place of its own for its moment. */
static struct {
    void *lane[2]; /* of node 0 and 1 */
    struct qn_qp *qp[2];
    qn_ps_t sent[WARM + MESSAGES];
    uint64_t took[MESSAGES]; /* ps */
} w;

static void sender(void)
{
    uint64_t word = 0;
    for (uint32_t i = 0; i < WARM + MESSAGES; i++, word++) {
        qn_work(GAP_NS);
        w.sent[i] = qn_timed_clock();
        while (qn_qp_try_send(w.qp[0], &word, sizeof word) != QN_OK) {
        }
        (void)qn_qp_flush(w.qp[0]);
    }
}

static void receiver(void)
{
    uint64_t word;
    size_t len;
    for (uint32_t i = 0; i < WARM + MESSAGES; i++) {
        while (qn_qp_try_recv(w.qp[1], &word, sizeof word, &len) != QN_OK) {
            qn_pause();
        }
        if (word != i || len != sizeof word) {
            qn_timed_fail("another message than was sent");
        }
        if (i >= WARM) {
            w.took[i - WARM] = qn_timed_clock() - w.sent[i];
        }
        (void)qn_qp_flush(w.qp[1]);
    }
}

static void node(void *ctx, uint32_t i)
{
    (void)ctx;
    (i == 0 ? sender : receiver)();
}

static void open_channel(void)
{
    const struct qn_transport *t = qn_transport_find("ump");
    size_t bytes = t->lane_bytes(CELLS);
    for (uint32_t i = 0; i < 2; i++) {
        if (w.lane[i] == NULL) {
            w.lane[i] = aligned_alloc(QN_CACHELINE, bytes);
        }
        memset(w.lane[i], 0, bytes);
    }
    for (uint32_t i = 0; i < 2; i++) {
        const struct qn_qp_opts o = {.tx = w.lane[i],
                                     .rx = w.lane[1 - i],
                                     .cells = CELLS,
                                     .self = i,
                                     .peer = 1 - i,
                                     .self_inc = 1,
                                     .peer_inc = 1};
        cr_assert_eq(t->open(&w.qp[i], &o), QN_OK);
    }
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* @return the median message in ps. */
static double median(struct qn_prices *p)
{
    struct qn_timed_opts o = {.nodes = 2, .prices = p, .main = node};
    struct qn_timed_result r;
    open_channel();
    cr_assert_eq(qn_timed_run(&o, &r), QN_OK);
    cr_assert_null(r.fault, "%s", r.fault);
    cr_assert_eq(r.node[1].state, QN_SIM_FINISHED);
    qn_timed_result_free(&r);
    qn_qp_close(w.qp[0]);
    qn_qp_close(w.qp[1]);
    qsort(w.took, MESSAGES, sizeof w.took[0], by_size);
    return (double)w.took[MESSAGES / 2];
}

struct pair {
    double cost[4]; /* s and r, there and back */
    uint32_t from, to;
};

static int by_cost(const void *a, const void *b)
{
    return memcmp(a, b, sizeof((struct pair *)0)->cost);
}

/* Pairs with the same costs are the same run. @return how many are left. */
static size_t distinct_pairs(const struct qn_machine *m, struct pair *pair)
{
    size_t count = 0, kept = 0;
    for (uint32_t u = 0; u < m->n; u++) {
        for (uint32_t v = 0; v < m->n; v++) {
            if (u != v) {
                pair[count++] = (struct pair){
                    {qn_send_cost(m, u, v), qn_receive_cost(m, u, v),
                     qn_send_cost(m, v, u), qn_receive_cost(m, v, u)},
                    u,
                    v};
            }
        }
    }
    qsort(pair, count, sizeof *pair, by_cost);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || by_cost(&pair[kept - 1], &pair[i]) != 0) {
            pair[kept++] = pair[i];
        }
    }
    return kept;
}

static void check_pair(const struct qn_machine *m, const struct pair *x)
{
    const uint32_t core[2] = {x->from, x->to};
    const struct qn_coherent_opts bare = {.bare = true};
    double ghz = m->facts.clock_ghz > 0 ? m->facts.clock_ghz : 2;
    double want = (x->cost[0] + x->cost[1]) * 1000 / ghz;
    struct qn_prices *p;
    cr_assert_eq(qn_coherent_create(&p, m, core, 2, &bare), QN_OK);
    double got = median(p);
    cr_assert(got >= want * 0.999 && got <= want * 1.001,
              "%s, %u to %u: %.0f ps, s + r is %.0f", m->name,
              m->core[x->from].os, m->core[x->to].os, got, want);
    qn_prices_destroy(p);
}

/* Under a sanitizer, which is several times slower, every 20th of them. */
#if defined(__SANITIZE_ADDRESS__)
#define STRIDE 20u
#else
#define STRIDE 1u
#endif

static size_t runs;

static void every_pair(const struct qn_machine *m)
{
    struct pair *pair = calloc((size_t)m->n * m->n, sizeof *pair);
    size_t count = distinct_pairs(m, pair);
    for (size_t i = 0; i < count; i += STRIDE) {
        check_pair(m, &pair[i]);
    }
    runs += (count + STRIDE - 1) / STRIDE;
    free(pair);
}

/* A send is a store, whose line is the transfer, and the header behind it; a
 * receive the transfer, a look at the bytes in place, and their copy. */
#define HITS 3u

static struct qn_machine *one_gigahertz(void)
{
    struct qn_machine *m;
    cr_assert_eq(qn_machine_create(&m, 2), QN_OK);
    m->send[1] = m->send[2] = 100;
    m->receive[1] = m->receive[2] = 300;
    m->facts.clock_ghz = 1;
    return m;
}

Test(ledger, software_is_added_item_by_item)
{
    static const uint32_t core[2] = {0, 1};
    struct qn_machine *m = one_gigahertz();
    struct qn_coherent_opts o = {.hit_cycles = 3};
    struct qn_prices *p;
    o.mark_cycles[QN_MARK_SEND] = 17;
    o.mark_cycles[QN_MARK_RECEIVE] = 29;
    cr_assert_eq(qn_coherent_create(&p, m, core, 2, &o), QN_OK);
    double got = median(p) / 1000;
    cr_assert_eq(got, 100 + 300 + 17 + 29 + HITS * 3, "%f", got);
    qn_prices_destroy(p);
    qn_machine_destroy(m);
}

Test(ledger, a_message_of_one_cell_costs_s_and_r_between_every_two_cores,
     .timeout = 250)
{
    cr_assert_eq(worlds_each(every_pair), 15);
    cr_assert_gt(STRIDE * runs, 1000); /* costs that differ */
}
