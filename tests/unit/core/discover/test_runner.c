#include <string.h>

#include "core/base/err.h"
#include "core/discover/runner.h"
#include "core/discover/topology.h"
#include "tests/support/test.h"
#include "transports/ump/ump.h"

static struct qn_machine *here(void)
{
    struct qn_machine *m = NULL;
    struct qn_parse_error f = {""};
    cr_assert_eq(qn_machine_discover(&m, &f), QN_OK, "%s", f.text);
    return m;
}

struct shown {
    uint32_t count;
    double part;
};

static bool count(void *arg, const struct qn_runner_progress *p)
{
    struct shown *s = arg;
    s->count++;
    cr_expect_geq(p->left_s, 0);
    cr_expect(p->part >= s->part && p->part <= 1, "%g after %g", p->part,
              s->part);
    cr_expect(s->count > 1 || p->part < 0.9, "%g at first", p->part);
    s->part = p->part;
    cr_expect_leq(p->stable, p->pairs);
    return true;
}

/* At most four cores, so that it is short everywhere. Whether the costs are
 * stable is the machine's affair; that there are some is ours, unless somebody
 * else holds the cores all the time. */
Test(runner, measures_the_cores_that_there_are, .timeout = 100)
{
    struct qn_machine *all = here(), *m = NULL;
    const uint32_t index[] = {0, 1, 2, 3};
    struct qn_runner_report r;
    struct shown shown = {0, 0};
    cr_assert_eq(qn_machine_restrict(&m, all, index, all->n < 4 ? all->n : 4),
                 QN_OK);
    const struct qn_runner_opts o = {.transport = &qn_ump,
                                     .seconds = 0.3,
                                     .spread_s = 0.1,
                                     .progress = count,
                                     .arg = &shown};
    int rc = qn_machine_measure(m, &o, &r);
    cr_assert(rc == QN_OK || rc == QN_ETIMEDOUT, "%s", qn_strerror(rc));
    cr_expect_eq(qn_machine_has_costs(m), rc == QN_OK || m->n == 1);
    if (rc == QN_OK && m->n > 1) {
        cr_expect_eq(r.pairs, m->n * (m->n - 1) / 2);
        cr_expect_eq(qn_machine_check(m), QN_OK);
        cr_expect_str_eq(m->facts.transport, "ump");
        cr_expect(m->facts.clock_ghz > 0.0001);
        cr_expect(m->facts.queued_factor > 0);
        cr_expect_geq(shown.count, 1);
        cr_expect_geq(r.rounds, r.pairs);
    }
    qn_machine_destroy(m);
    qn_machine_destroy(all);
}

Test(runner, one_core_has_nothing_to_measure)
{
    struct qn_machine *m = NULL;
    struct qn_runner_report r;
    const struct qn_runner_opts o = {.transport = &qn_ump, .seconds = 1};
    cr_assert_eq(qn_machine_create(&m, 1), QN_OK);
    cr_expect_eq(qn_machine_measure(m, &o, &r), QN_OK);
    cr_expect_eq(r.pairs, 0);
    qn_machine_destroy(m);
}

/* From the second pair_run on nothing arrives: ends of another incarnation. */
static int open_deaf(struct qn_qp **out, const struct qn_qp_opts *opts)
{
    struct qn_qp_opts o = *opts;
    o.peer_inc += o.self_inc > 1 ? 1000 : 0;
    return qn_ump.open(out, &o);
}

/* A pair that never comes to an end, as on a core that somebody else holds, is
 * left; what was seen of it before is kept and called unstable. */
Test(runner, a_visit_without_end_is_broken_off, .timeout = 100)
{
    struct qn_machine *all = here(), *m = NULL;
    struct qn_runner_report r;
    struct qn_transport deaf = qn_ump;
    deaf.open = open_deaf;
    const struct qn_runner_opts o = {
        .transport = &deaf, .seconds = 0.05, .spread_s = 0.05};
    cr_assert_eq(qn_machine_create(&m, 2), QN_OK);
    m->core[0].os = all->core[0].os;
    m->core[1].os = all->core[all->n - 1].os;
    int rc = qn_machine_measure(m, &o, &r);
    cr_expect(rc == QN_OK || rc == QN_ETIMEDOUT, "%s", qn_strerror(rc));
    cr_expect_eq(qn_machine_has_costs(m), rc == QN_OK);
    if (rc == QN_OK) {
        cr_expect_eq(r.unstable, 1);
        cr_expect(qn_machine_unstable(m, 0, 1));
        cr_expect_leq(r.rounds, 6); /* of the one pair_run that ended */
    }
    qn_machine_destroy(m);
    qn_machine_destroy(all);
}

static bool never(void *arg, const struct qn_runner_progress *p)
{
    (void)arg;
    (void)p;
    return false;
}

/* Two cores, both at the same place if there is only one: they must leave,
 * whatever they wait for. */
Test(runner, stops_when_it_is_told_and_leaves_no_costs, .timeout = 100)
{
    struct qn_machine *all = here(), *m = NULL;
    struct qn_runner_report r;
    const struct qn_runner_opts o = {
        .transport = &qn_ump, .seconds = 60, .spread_s = 60, .progress = never};
    cr_assert_eq(qn_machine_create(&m, 2), QN_OK);
    m->core[0].os = all->core[0].os;
    m->core[1].os = all->core[all->n - 1].os;
    m->facts.queued_factor = 0.5;
    cr_expect_eq(qn_machine_measure(m, &o, &r), QN_EAGAIN);
    cr_expect(!qn_machine_has_costs(m));
    cr_assert_null(m->facts.round_trip);
    cr_expect_eq(m->facts.queued_factor, 0);
    qn_machine_destroy(m);
    qn_machine_destroy(all);
}

Test(runner, a_core_that_may_not_be_used_is_an_error)
{
    struct qn_machine *m = NULL;
    struct qn_runner_report r;
    const struct qn_runner_opts o = {.transport = &qn_ump, .seconds = 1};
    cr_assert_eq(qn_machine_create(&m, 2), QN_OK);
    m->core[1].os = QN_CORE_NUMBER_MAX;
    cr_expect_eq(qn_machine_measure(m, &o, &r), QN_EPERM);
    cr_expect(!qn_machine_has_costs(m));
    qn_machine_destroy(m);
}
