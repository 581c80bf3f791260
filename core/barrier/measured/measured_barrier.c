/*
 * The memory, n members:
 *
 *     line 0      what it is; `formed` says which barrier, once one is chosen
 *     meeting     a central barrier of all: between the steps
 *     usual       the barrier without prices
 *     selected    the barrier that is selected by the prices
 *     pairs       n barriers of two, of the lower member of a pair each
 *     prices      n * n words, those above the diagonal
 *
 * The lower member of a pair has the clock. It says in `last` whether there is
 * another batch; the other one reads that behind one more episode, which is in
 * no batch.
 */
#include "core/barrier/measured/measured_barrier.h"

#include <string.h>

#include "core/barrier/selection/selection.h"
#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/discover/round_robin.h"
#include "core/machine/machine.h"

#define VERSION  0x4d000001u /* no barrier of core/barrier says so */
#define BATCHES  10u         /* of a pair */
#define EPISODES 10u /* of a batch: so that reading the clock counts little */
#define TRIALS   3u  /* batches of each of the two barriers */

enum { USUAL, SELECTED, BOTH };

struct measured {
    alignas(QN_CACHELINE) qn_a32 says;
    qn_a32 members;
    qn_a32 own_cores;
    qn_a32 formed; /* 0: not yet; 1 + USUAL or SELECTED. Written by member 0, or
                      when it is formatted */
    qn_a32 trial;  /* there are two; written by member 0 */
};

struct pair {
    alignas(QN_CACHELINE) qn_a32 last; /* batch: written by the lower member */
    alignas(QN_CACHELINE) uint8_t barrier[];
};

/* Where things are. */
struct parts {
    struct measured *m;
    uint32_t members;
    uint8_t *meeting, *barrier[BOTH], *pairs;
    size_t barrier_bytes, pair_bytes;
    qn_a32 *price; /* [members * members], ps of a transfer */
};

static const struct qn_barrier_opts of_two = {
    .form = "dissemination", .members = 2, .cores = 2};

static size_t barrier_bytes(uint32_t members)
{
    const struct qn_barrier_opts all = {.members = members};
    return qn_barrier_bytes(&all);
}

static size_t pair_bytes(void)
{
    return sizeof(struct pair) + qn_barrier_bytes(&of_two);
}

static struct parts parts_of(void *memory, uint32_t members)
{
    struct parts p = {.m = memory,
                      .members = members,
                      .barrier_bytes = barrier_bytes(members),
                      .pair_bytes = pair_bytes()};
    p.meeting = (uint8_t *)memory + sizeof(struct measured);
    p.barrier[USUAL] = p.meeting + p.barrier_bytes;
    p.barrier[SELECTED] = p.barrier[USUAL] + p.barrier_bytes;
    p.pairs = p.barrier[SELECTED] + p.barrier_bytes;
    p.price = (void *)(p.pairs + members * p.pair_bytes);
    return p;
}

static struct pair *pair_of(const struct parts *p, uint32_t lower)
{
    return (void *)(p->pairs + lower * p->pair_bytes);
}

/* ---- memory -------------------------------------------------------------- */

static bool measures(const struct qn_barrier_opts *opts)
{
    return opts->members > 1 && opts->members <= QN_MEASURED_MEMBERS_MAX &&
           !qn_barrier_shares_cores(opts);
}

size_t qn_measured_barrier_bytes(const struct qn_barrier_opts *opts)
{
    if (qn_barrier_bytes(opts) == 0 || opts->form != NULL ||
        opts->tree != NULL) {
        return 0;
    }
    const size_t n = opts->members;
    const size_t prices =
        n <= QN_MEASURED_MEMBERS_MAX ? n * n * sizeof(qn_a32) : 0;
    return sizeof(struct measured) + 3 * barrier_bytes(opts->members) +
           n * pair_bytes() + qn_align_up(prices, QN_CACHELINE);
}

int qn_measured_barrier_format(void *memory, size_t bytes,
                               const struct qn_barrier_opts *opts)
{
    const size_t needed = qn_measured_barrier_bytes(opts);
    if (needed == 0) {
        return QN_EINVAL;
    }
    if (bytes < needed) {
        return QN_EMSGSIZE;
    }
    const struct parts p = parts_of(memory, opts->members);
    struct qn_barrier_opts meeting = *opts, two = of_two;
    meeting.form = "central";
    two.own_cores = opts->own_cores;
    int rc = qn_barrier_format(p.meeting, p.barrier_bytes, &meeting);
    rc = rc == QN_OK
             ? qn_barrier_format(p.barrier[USUAL], p.barrier_bytes, opts)
             : rc;
    for (uint32_t i = 0; i < opts->members && rc == QN_OK; i++) {
        rc = qn_barrier_format(pair_of(&p, i)->barrier,
                               qn_barrier_bytes(&of_two), &two);
    }
    QN_ASSERT(rc == QN_OK);
    /* relaxed, all: no other thread has the barrier yet. */
    qn_store(&p.m->says, VERSION, QN_RELAXED);
    qn_store(&p.m->members, opts->members, QN_RELAXED);
    qn_store(&p.m->own_cores, opts->own_cores, QN_RELAXED);
    qn_store(&p.m->formed, measures(opts) ? 0 : 1 + USUAL, QN_RELAXED);
    qn_store(&p.m->trial, 0, QN_RELAXED);
    return QN_OK;
}

/* ---- measurement --------------------------------------------------------- */

static qn_time_t monotonic(void *ctx)
{
    (void)ctx;
    return qn_clock_now();
}

static const struct qn_measured_clock of_machine = {.now = monotonic};

static void pass(struct qn_barrier_member *me, uint32_t episodes)
{
    for (uint32_t e = 0; e < episodes; e++) {
        qn_barrier_wait(me);
    }
}

static struct qn_barrier_member join_pair(struct pair *p, uint32_t side)
{
    struct qn_barrier_member me;
    const int rc = qn_barrier_join(p->barrier, side, &me);
    QN_ASSERT(rc == QN_OK); /* all others have left it before the meeting */
    qn_barrier_wait(&me);   /* both are there */
    return me;
}

/* relaxed, both uses of `last`: an episode is between the store and the load,
 * and a batch between the load and the next store. */
static uint32_t lower_of_pair(struct pair *p, const struct qn_measured_clock *c)
{
    struct qn_barrier_member me = join_pair(p, 0);
    const qn_time_t begun = c->now(c->ctx);
    qn_time_t from = begun, least = QN_TIME_NEVER;
    bool last = false;
    for (uint32_t b = 1; !last; b++) {
        pass(&me, EPISODES);
        const qn_time_t to = c->now(c->ctx);
        least = QN_MIN(least, to - from);
        last = b == BATCHES || to - begun > QN_MEASURED_PAIR_NS;
        qn_store(&p->last, last, QN_RELAXED);
        qn_barrier_wait(&me);
        from = c->now(c->ctx);
    }
    qn_barrier_leave(&me);
    const uint64_t ps = least * 1000 / EPISODES;
    return (uint32_t)QN_MIN(QN_MAX(ps, 1), UINT32_MAX);
}

static void upper_of_pair(struct pair *p)
{
    struct qn_barrier_member me = join_pair(p, 1);
    do {
        pass(&me, EPISODES + 1);
    } while (qn_load(&p->last, QN_RELAXED) == 0);
    qn_barrier_leave(&me);
}

static void measure(const struct parts *p, struct qn_barrier_member *here,
                    const struct qn_measured_clock *clock)
{
    const uint32_t n = p->members, me = here->member;
    for (uint32_t round = 0; round < qn_round_robin_rounds(n); round++) {
        const uint32_t other = qn_round_robin_partner(n, round, me);
        if (other > me) {
            const uint32_t ps = lower_of_pair(pair_of(p, me), clock);
            /* relaxed: published by the meeting. */
            qn_store(&p->price[me * n + other], ps, QN_RELAXED);
        } else if (other < me) {
            upper_of_pair(pair_of(p, other));
        }
        qn_barrier_wait(here);
    }
}

/* ---- choice -------------------------------------------------------------- */

/* A transfer is a message: half of it for each side. */
static struct qn_machine *machine_of(const struct parts *p)
{
    const uint32_t n = p->members;
    struct qn_machine *m = NULL;
    if (qn_machine_create(&m, n) != QN_OK) {
        return NULL;
    }
    for (uint32_t u = 0; u < n; u++) {
        for (uint32_t v = u + 1; v < n; v++) {
            /* relaxed: all have met since it was stored. */
            const double half = qn_load(&p->price[u * n + v], QN_RELAXED) / 2.0;
            m->send[u * n + v] = m->send[v * n + u] = half;
            m->receive[u * n + v] = m->receive[v * n + u] = half;
        }
    }
    return m;
}

/* Of member 0, while the others wait. Without memory there is only the usual
 * one. */
static void select_form(const struct parts *p)
{
    struct qn_barrier_selection s;
    /* They do not share cores, whatever this thread may run on. relaxed:
     * constant since it was formatted. */
    struct qn_barrier_opts o = {.members = p->members,
                                .cores = p->members,
                                .own_cores =
                                    qn_load(&p->m->own_cores, QN_RELAXED) != 0};
    struct qn_machine *m = machine_of(p);
    if (m != NULL && qn_barrier_select(&s, m, p->members) == QN_OK) {
        qn_barrier_selection_apply(&s, &o);
        const int rc =
            qn_barrier_format(p->barrier[SELECTED], p->barrier_bytes, &o);
        QN_ASSERT(rc == QN_OK);
        /* relaxed: published by the meeting. */
        qn_store(&p->m->trial, 1, QN_RELAXED);
    }
    qn_machine_destroy(m);
}

/* All pass both in turn.
 * @return to member 0, which has the clock: the one that took less. */
static uint32_t try_both(const struct parts *p, uint32_t member,
                         const struct qn_measured_clock *c)
{
    struct qn_barrier_member me[BOTH];
    qn_time_t least[BOTH] = {QN_TIME_NEVER, QN_TIME_NEVER};
    for (uint32_t k = 0; k < BOTH; k++) {
        const int rc = qn_barrier_join(p->barrier[k], member, &me[k]);
        QN_ASSERT(rc == QN_OK); /* each member is here once */
        qn_barrier_wait(&me[k]);
    }
    for (uint32_t t = 0; t < TRIALS * BOTH; t++) {
        const uint32_t k = t % BOTH;
        const qn_time_t from = member == 0 ? c->now(c->ctx) : 0;
        pass(&me[k], EPISODES);
        const qn_time_t to = member == 0 ? c->now(c->ctx) : 0;
        least[k] = QN_MIN(least[k], to - from);
    }
    qn_barrier_leave(&me[USUAL]);
    qn_barrier_leave(&me[SELECTED]);
    return least[SELECTED] < least[USUAL] ? SELECTED : USUAL;
}

static void form(const struct parts *p, struct qn_barrier_member *here,
                 const struct qn_measured_clock *clock)
{
    uint32_t which = USUAL;
    measure(p, here, clock);
    if (here->member == 0) {
        select_form(p);
    }
    qn_barrier_wait(here);
    /* relaxed: all have met since it was stored. */
    if (qn_load(&p->m->trial, QN_RELAXED) != 0) {
        which = try_both(p, here->member, clock);
    }
    if (here->member == 0) {
        /* release -> the load of qn_measured_barrier_join. */
        qn_store(&p->m->formed, 1 + which, QN_RELEASE);
    }
    qn_barrier_wait(here);
}

int qn_measured_barrier_join(void *memory, uint32_t member,
                             const struct qn_measured_clock *clock,
                             struct qn_barrier_member *me)
{
    struct measured *m = memory;
    struct qn_barrier_member here;
    /* relaxed, both: constant since before the caller got the memory. */
    if (qn_load(&m->says, QN_RELAXED) != VERSION) {
        return QN_EINVAL;
    }
    const struct parts p = parts_of(memory, qn_load(&m->members, QN_RELAXED));
    /* acquire, both -> the store of form: the barrier is there. */
    if (qn_load(&m->formed, QN_ACQUIRE) == 0) {
        /* This seat is kept for ever: each member measures once. */
        const int rc = qn_barrier_join(p.meeting, member, &here);
        if (rc != QN_OK) {
            return rc;
        }
        form(&p, &here, clock != NULL ? clock : &of_machine);
    }
    const uint32_t which = qn_load(&m->formed, QN_ACQUIRE) - 1;
    return qn_barrier_join(p.barrier[which], member, me);
}
