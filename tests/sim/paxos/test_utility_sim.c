/*
 * The utility log alone: 3 to 7 voters, any of which may propose, crash and
 * come back with its record, or without if a majority still has one, over
 * channels that are FIFO and lose what was on
 * its way to the dead. One seed, one schedule. After each step, whatever a node
 * has learned is what everybody else has at that index, and somebody proposed
 * it. Then faults end, and the entry that all still want must be chosen.
 *
 * In a third of the schedules there are 1 to 7 seats, and any node may propose
 * that another node becomes a voter or is none any more, or itself as leader;
 * it is for the utility log to refuse. A node that is removed ends when it
 * hears of it; then its seat may be taken again. A newcomer begins with some of
 * the newest entries of any other.
 *
 * The defects (paxos/mutant.h, U_*) must be found by the same seeds.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"
#include "tests/support/replay.h"
#include "tests/support/test.h"

#define NODES_MAX 7u
#define STEPS     600u
#if defined(__SANITIZE_ADDRESS__)
#define SEEDS 300u /* each takes ten times longer */
#else
#define SEEDS 1500u
#endif
#define DEFECT_SEEDS 20000u
#define ENTRIES      400u

enum qn_mutant qn_mutant;

struct packet {
    struct packet *next;
    size_t len;
    uint8_t bytes[QN_HEAD_MAX + QN_UL_KEPT * QN_UL_BYTES];
};

struct lane {
    struct packet *head, **tail;
};

struct world {
    uint64_t seed, rng;
    uint32_t nodes;
    qn_time_t now;
    uint64_t life[NODES_MAX]; /* 0: dead */
    uint64_t lives;
    struct qn_utility node[NODES_MAX];
    struct { /* what PERSIST wrote */
        struct qn_vote vote;
        struct qn_ul_entry log[ENTRIES];
        uint32_t first, count; /* entries are [first, count) */
        bool lost;             /* and nothing was written since */
        bool fresh;            /* written by this incarnation */
    } record[NODES_MAX];
    uint64_t begun; /* seats: voters at first, a mask; 0: all, for good */
    uint64_t inc[NODES_MAX];             /* newest incarnation */
    bool changing;                       /* voters change */
    struct qn_utility zombie[NODES_MAX]; /* U_SEAT_TAKEN: it lives on */
    bool haunted[NODES_MAX];
    struct lane lane[NODES_MAX][NODES_MAX];
    struct qn_ul_entry chosen[ENTRIES];
    uint32_t chosen_count;
    uint32_t wanted; /* entries that somebody proposed */
    struct qn_alloc alloc;
    bool short_of_memory;
    bool loses;       /* records */
    uint64_t crashes; /* of 1000 steps, and of 1000 lists of outputs */
    uint8_t slow[NODES_MAX][NODES_MAX]; /* of 8 deliveries, so many are not */
    struct qn_step_out out;
};

static uint64_t rnd(struct world *w, uint64_t n)
{
    uint64_t z = (w->rng += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

static void *resize(void *ctx, void *p, size_t bytes)
{
    struct world *w = ctx;
    if (bytes == 0) {
        free(p);
        return NULL;
    }
    return w->short_of_memory && rnd(w, 20) == 0 ? NULL : realloc(p, bytes);
}

_Noreturn static void fail(const struct world *w, const char *what)
{
    fprintf(stderr, "seed %" PRIu64 ": %s\n", w->seed, what);
    abort();
}

/* ---- packets ---- */

static void post(struct world *w, qn_node_t from, qn_node_t to,
                 const struct qn_msg *m)
{
    if (w->life[to] == 0) {
        return;
    }
    struct packet *k = malloc(sizeof *k);
    *k = (struct packet){.next = NULL};
    k->len = qn_msg_head(m, k->bytes);
    if (m->body.len != 0) {
        memcpy(k->bytes + k->len, m->body.data, m->body.len);
        k->len += m->body.len;
    }
    struct lane *l = &w->lane[from][to];
    *l->tail = k;
    l->tail = &k->next;
}

static void pop(struct lane *l)
{
    struct packet *k = l->head;
    l->head = k->next;
    if (l->head == NULL) {
        l->tail = &l->head;
    }
    free(k);
}

static void persist(struct world *w, qn_node_t i, const struct qn_vote *vote)
{
    w->record[i].vote = *vote;
    w->record[i].lost = false;
    w->record[i].fresh = true;
    for (uint32_t n = w->record[i].count; n < vote->index; n++) {
        const struct qn_ul_entry *e = qn_utility_entry(&w->node[i], n);
        w->record[i].log[n] = e != NULL ? *e : w->chosen[n];
    }
    w->record[i].count = vote->index;
}

/** Of those that have not lost theirs a majority stays. */
static void lose_record(struct world *w, qn_node_t i)
{
    uint32_t kept = 0;
    for (qn_node_t k = 0; k < w->nodes; k++) {
        kept += k != i && !w->record[k].lost;
    }
    if (kept > w->nodes / 2) {
        w->record[i].lost = true;
        w->record[i].count = 0;
        w->record[i].vote = (struct qn_vote){.index = 0};
    }
}

static void crash(struct world *w, qn_node_t i);

/** The process may end between any two outputs. */
static void execute(struct world *w, qn_node_t i)
{
    bool dies = w->out.count > 0 && rnd(w, 1000) < w->crashes;
    uint64_t last = dies ? rnd(w, w->out.count) : w->out.count;
    for (uint32_t n = 0; n < last; n++) {
        const struct qn_out *o = &w->out.out[n];
        if (o->kind == QN_OUT_PERSIST) {
            persist(w, i, &o->vote);
        } else if (o->kind == QN_OUT_SEND) {
            post(w, i, o->to, &o->msg);
        } else if (o->kind == QN_OUT_SEND_ALL) {
            for (qn_node_t to = 0; to < w->nodes; to++) {
                if (to != i) {
                    post(w, i, to, &o->msg);
                }
            }
        } else {
            fail(w, "an output of another part");
        }
    }
    qn_step_out_release(&w->out);
    if (dies) {
        crash(w, i);
    }
}

/* ---- checks ---- */

static void check(struct world *w, qn_node_t i)
{
    const struct qn_utility *u = &w->node[i];
    for (uint32_t e = u->lo; e < u->len; e++) {
        const struct qn_ul_entry *x = qn_utility_entry(u, e);
        if (e >= ENTRIES) {
            fail(w, "run too long");
        }
        if (e == w->chosen_count) {
            w->chosen[w->chosen_count++] = *x;
        }
        if (memcmp(&w->chosen[e], x, sizeof *x) != 0) {
            fail(w, "two entries for one index");
        }
        bool proposed = qn_ul_begins_epoch(x) ? x->acceptor_inc <= w->wanted
                                              : x->voter_inc <= w->lives;
        if (e > 0 && !proposed) {
            fail(w, "an entry that nobody proposed");
        }
    }
}

/* ---- nodes ---- */

/** The voters, as the newest entry says that any node has learned. */
static uint64_t voters(const struct world *w)
{
    uint64_t newest =
        w->chosen_count != 0 ? w->chosen[w->chosen_count - 1].voters : w->begun;
    return newest != 0 ? newest : QN_BIT(w->nodes) - 1;
}

/** What a newcomer knows: some of the newest entries of a node that lives. Its
 *  record says that no incarnation of its seat has voted. */
static bool take_seat(struct world *w, qn_node_t i)
{
    const struct qn_utility *u = &w->node[rnd(w, w->nodes)];
    if (w->life[u->self] == 0 || u->len == 0) {
        return false;
    }
    uint32_t known = 1 + (uint32_t)rnd(w, u->len - u->lo);
    w->record[i].first = u->len - known;
    w->record[i].count = u->len;
    for (uint32_t e = u->len - known; e < u->len; e++) {
        w->record[i].log[e] = *qn_utility_entry(u, e);
    }
    w->record[i].vote =
        (struct qn_vote){.index = u->len, .since = w->lives + 1};
    return true;
}

/** A process that comes to others begins with the entries that one of them
 *  has, if those are newer than what its record holds. */
static const struct qn_utility *newest_of(struct world *w, qn_node_t i)
{
    const struct qn_utility *u = &w->node[rnd(w, w->nodes)];
    bool lives = w->life[u->self] != 0 && u->self != i;
    bool newer = lives && u->len > w->record[i].count;
    return w->begun != 0 && newer && rnd(w, 2) != 0 ? u : NULL;
}

static void start(struct world *w, qn_node_t i)
{
    static struct qn_ul_entry log[QN_UL_KEPT];
    const struct qn_ul_entry first = {
        .kind = QN_UL_INIT, .acceptor = 1, .voters = w->begun};
    bool lost = w->record[i].lost;
    bool vacant = w->begun != 0 && (w->begun & QN_BIT(i)) == 0;
    if (w->record[i].count == 0 && vacant && !take_seat(w, i)) {
        return;
    }
    if (w->record[i].count == 0 && !lost) {
        w->record[i].log[w->record[i].count++] = first;
    }
    w->life[i] = w->inc[i] = ++w->lives;
    w->record[i].fresh = false;
    const struct qn_utility *from = newest_of(w, i);
    uint32_t lo = from != NULL ? from->lo : w->record[i].first;
    uint32_t len = from != NULL ? from->len : w->record[i].count;
    for (uint32_t e = lo; e < len; e++) {
        log[e - lo] =
            from != NULL ? *qn_utility_entry(from, e) : w->record[i].log[e];
    }
    const struct qn_utility_opts o = {.self = i,
                                      .nodes = w->nodes,
                                      .self_inc = w->life[i],
                                      .alloc = &w->alloc,
                                      .log = log,
                                      .count = len - lo,
                                      .vote = lost ? NULL : &w->record[i].vote,
                                      .non_voting = lost,
                                      .pause = 50 * QN_US,
                                      .seed = rnd(w, UINT64_MAX)};
    qn_utility_init(&w->node[i], &o);
}

static void crash(struct world *w, qn_node_t i)
{
    w->life[i] = 0;
    if (w->loses && rnd(w, 2) == 0) {
        lose_record(w, i);
    }
    for (qn_node_t k = 0; k < w->nodes; k++) {
        while (w->lane[k][i].head != NULL) {
            pop(&w->lane[k][i]);
        }
        /* Of what it sent, a prefix arrives. */
        uint64_t keep = rnd(w, 4);
        struct lane *l = &w->lane[i][k];
        struct packet **at = &l->head;
        while (*at != NULL && keep-- > 0) {
            at = &(*at)->next;
        }
        struct packet *rest = *at;
        *at = NULL;
        l->tail = at;
        while (rest != NULL) {
            struct packet *next = rest->next;
            free(rest);
            rest = next;
        }
    }
}

static void deliver(struct world *w, qn_node_t from, qn_node_t to)
{
    struct lane *l = &w->lane[from][to];
    struct qn_msg m;
    if (l->head == NULL || w->life[to] == 0 || rnd(w, 8) < w->slow[from][to]) {
        return;
    }
    struct qn_step t = {.now = w->now, .out = &w->out};
    if (qn_msg_decode(&m, l->head->bytes, l->head->len) != QN_OK) {
        fail(w, "malformed");
    }
    qn_utility_on_msg(&w->node[to], &t, from, &m);
    check(w, to);
    pop(l);
    execute(w, to);
}

/** Another voter, or one less. @return false: nothing is proposed. */
static bool change_seat(struct world *w, qn_node_t i, struct qn_step *t)
{
    struct qn_utility *u = &w->node[i];
    qn_node_t n = (qn_node_t)rnd(w, w->nodes);
    const struct qn_ul_entry *roles = NULL;
    for (uint32_t e = u->len; e > u->lo && roles == NULL; e--) {
        const struct qn_ul_entry *x = qn_utility_entry(u, e - 1);
        roles = qn_ul_begins_epoch(x) ? x : NULL;
    }
    bool adds = (qn_utility_voters(u) & QN_BIT(n)) == 0;
    return roles != NULL && (!adds || w->life[n] != 0) &&
           qn_utility_propose_seat(u, t, roles, n, w->inc[n]);
}

/** What this node would like. @return false: it may not. */
static bool propose_any(struct world *w, struct qn_utility *u,
                        struct qn_step *t)
{
    const struct qn_ul_entry e = {.kind = QN_UL_LEADER,
                                  .leader = (uint8_t)u->self,
                                  .acceptor = (uint8_t)u->self,
                                  .acceptor_inc = ++w->wanted};
    if (w->changing && rnd(w, 3) == 0 && change_seat(w, u->self, t)) {
        return true;
    }
    if (u->non_voting && u->len > 0 && rnd(w, 2) == 0) {
        return qn_utility_propose_voter(u, t, qn_utility_entry(u, u->len - 1));
    }
    return qn_utility_propose(u, t, &e);
}

static void propose(struct world *w, qn_node_t i)
{
    struct qn_utility *u = &w->node[i];
    if (w->life[i] == 0 || qn_utility_proposing(u)) {
        return;
    }
    struct qn_step t = {.now = w->now, .out = &w->out};
    if (!propose_any(w, u, &t)) {
        qn_utility_ask(u, &t, (qn_node_t)rnd(w, w->nodes));
    }
    check(w, i);
    execute(w, i);
}

static void tick(struct world *w, qn_node_t i)
{
    const struct qn_utility *u = &w->node[i];
    if (w->life[i] != 0 && (u->unwritten || qn_utility_deadline(u) <= w->now)) {
        struct qn_step t = {.now = w->now, .out = &w->out};
        qn_utility_tick(&w->node[i], &t);
        check(w, i);
        execute(w, i);
    }
}

/** A snapshot brings the newest entries of another node; what lies between is
 *  skipped. */
static void skip(struct world *w, qn_node_t i)
{
    const struct qn_utility *from = &w->node[rnd(w, w->nodes)];
    if (w->life[i] == 0 || w->life[from->self] == 0 || from->len == 0) {
        return;
    }
    struct qn_ul_entry log[4];
    uint32_t known = 1 + (uint32_t)rnd(w, QN_MIN(from->len - from->lo, 4u));
    for (uint32_t n = 0; n < known; n++) {
        log[n] = *qn_utility_entry(from, from->len - known + n);
    }
    if (qn_utility_adopt(&w->node[i], log, known) != QN_OK) {
        fail(w, "other entries of a snapshot");
    }
    check(w, i);
}

/** A node that hears that it is removed ends. Its seat is vacant then, and not
 *  before. U_SEAT_TAKEN: it is taken as soon as any other node knows. */
static void remove_one(struct world *w, qn_node_t i)
{
    bool knows = w->life[i] != 0 && w->node[i].removed;
    if (knows && rnd(w, 2) == 0) {
        crash(w, i);
    } else if (QN_MUTANT(U_SEAT_TAKEN) && w->life[i] != 0 && !w->haunted[i] &&
               (voters(w) & QN_BIT(i)) == 0 && w->record[i].fresh) {
        w->zombie[i] = w->node[i];
        w->haunted[i] = true;
        crash(w, i);
        start(w, i);
    }
}

/** It wakes, votes for itself, and writes its record. */
static void haunt(struct world *w, qn_node_t i)
{
    struct qn_utility *z = &w->zombie[i];
    if (w->haunted[i] && w->changing && w->life[i] != 0 && rnd(w, 40) == 0) {
        const struct qn_utility now = w->node[i];
        struct qn_step t = {.now = w->now, .out = &w->out};
        const struct qn_ul_entry e = {.kind = QN_UL_LEADER,
                                      .leader = (uint8_t)i,
                                      .acceptor = (uint8_t)i,
                                      .acceptor_inc = ++w->wanted};
        (void)qn_utility_propose(z, &t, &e);
        w->node[i] = *z;
        execute(w, i);
        w->node[i] = now;
        if (w->life[i] != 0 && rnd(w, 3) == 0) {
            crash(w, i); /* the other one ends before it writes again */
        }
    }
}

/* ---- runs ---- */

static void go_on(struct world *w, uint32_t deliveries)
{
    w->now += rnd(w, 20 * QN_US);
    for (uint32_t n = 0; n < deliveries; n++) {
        /* One after the other: a seed means the same with every compiler. */
        qn_node_t to = (qn_node_t)rnd(w, w->nodes);
        qn_node_t from = (qn_node_t)rnd(w, w->nodes);
        deliver(w, from, to);
    }
    for (qn_node_t i = 0; i < w->nodes; i++) {
        if (w->begun != 0) {
            remove_one(w, i); /* perhaps before it has written its record */
            if (rnd(w, 50) == 0) {
                skip(w, i);
            }
            haunt(w, i);
        }
        tick(w, i);
    }
}

/** Node i is a voter, as far as any living node knows. That one may need the
 *  vote of a node that has ended as removed to find out that it is. */
static bool is_needed(const struct world *w, qn_node_t i)
{
    uint64_t mask = voters(w);
    for (qn_node_t k = 0; k < w->nodes; k++) {
        mask |= w->life[k] != 0 ? qn_utility_voters(&w->node[k]) : 0;
    }
    return (mask & QN_BIT(i)) != 0;
}

/** It has learned entry `goal - 1`, and votes if it is to. */
static bool is_up_to_date(const struct world *w, qn_node_t i, uint32_t goal)
{
    const struct qn_utility *u = &w->node[i];
    bool votes = (qn_utility_voters(u) & QN_BIT(i)) != 0;
    return w->life[i] != 0 ? qn_utility_len(u) >= goal && !u->removed &&
                                 (!votes || !u->non_voting)
                           : !is_needed(w, i);
}

/* With everybody back, a node that wants an entry gets it, and all learn it and
 * may vote. */
static void heal(struct world *w)
{
    w->short_of_memory = false;
    w->crashes = 0;
    w->changing = false;
    uint32_t goal = w->chosen_count + 1;
    for (uint32_t n = 0; n < 20000; n++) {
        bool all = true;
        for (qn_node_t i = 0; i < w->nodes; i++) {
            if (w->life[i] == 0 && is_needed(w, i)) {
                start(w, i);
            }
            all = all && is_up_to_date(w, i, goal);
        }
        if (all) {
            return;
        }
        for (qn_node_t i = 0; i < w->nodes; i++) {
            if (!is_up_to_date(w, i, goal)) {
                propose(w, i);
            }
        }
        go_on(w, 4 * w->nodes);
    }
    fail(w, "no entry is chosen any more");
}

static void run(uint64_t seed)
{
    struct world *w = calloc(1, sizeof *w);
    replay_by("QN_SIM_SEED=%" PRIu64 " test_utility_sim", seed);
    w->seed = w->rng = seed;
    w->nodes = 3 + 2 * (uint32_t)rnd(w, 3);
    if (seed % 3 == 1) {
        w->nodes = 1 + (uint32_t)rnd(w, NODES_MAX);
        w->begun = (rnd(w, QN_BIT(w->nodes)) | 1);
        w->changing = true;
    }
    w->now = QN_S;
    w->alloc = (struct qn_alloc){resize, w};
    w->short_of_memory = rnd(w, 4) == 0;
    bool uneven = rnd(w, 2) == 0;
    w->loses = seed % 3 == 0;
    w->crashes = w->loses ? 12 : rnd(w, 3) * 4;
    uint64_t proposals = 5 + rnd(w, 300); /* likewise */
    for (qn_node_t i = 0; i < w->nodes; i++) {
        for (qn_node_t k = 0; k < w->nodes; k++) {
            w->lane[i][k].tail = &w->lane[i][k].head;
            w->slow[i][k] = (uint8_t)(uneven ? rnd(w, 8) : 0);
        }
        if (((w->begun != 0 ? w->begun : UINT64_MAX) & QN_BIT(i)) != 0) {
            start(w, i);
        }
    }
    for (uint32_t n = 0; n < STEPS; n++) {
        qn_node_t i = (qn_node_t)rnd(w, w->nodes);
        if (rnd(w, 1000) < w->crashes && w->life[i] != 0) {
            crash(w, i);
        } else if (w->life[i] == 0 && rnd(w, 20) == 0) {
            start(w, i);
        } else if (rnd(w, 1000) < proposals) {
            propose(w, i);
        }
        go_on(w, (uint32_t)rnd(w, 3));
    }
    heal(w);
    for (qn_node_t i = 0; i < w->nodes; i++) {
        crash(w, i);
    }
    free(w);
}

static bool finds(enum qn_mutant m, uint64_t seed)
{
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        if (m != QN_MUTANT_NONE && freopen("/dev/null", "w", stderr) == NULL) {
            _exit(0);
        }
        qn_mutant = m;
        run(seed);
        _exit(0);
    }
    int status = 0;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

Test(utility_sim, one_entry_per_index_whatever_happens, .timeout = 300)
{
    const char *one = getenv("QN_SIM_SEED");
    uint64_t from = one != NULL ? strtoull(one, NULL, 10) : 1;
    uint64_t to = one != NULL ? from : SEEDS;
    for (uint64_t seed = from; seed <= to; seed++) {
        cr_assert(!finds(QN_MUTANT_NONE, seed), "QN_SIM_SEED=%" PRIu64, seed);
    }
}

/* What a defect does to memory is of no interest. */
#if !defined(__SANITIZE_ADDRESS__)
/* Each begins where it was found the last time: runs that find nothing are most
 * of the cost. */
static const uint64_t near[QN_MUTANT_COUNT] = {[QN_MUTANT_U_COUNT] = 2581,
                                               [QN_MUTANT_U_OWN_ENTRY] = 657,
                                               [QN_MUTANT_U_DIFFERENCE] = 3828,
                                               [QN_MUTANT_U_SEAT_TAKEN] = 846,
                                               [QN_MUTANT_U_LATE_RECORD] =
                                                   9947};

Test(utility_sim, every_defect_is_found, .timeout = 300)
{
    static const struct {
        enum qn_mutant mutant;
        const char *by, *name;
    } defects[] = {
#define X(name, by, text) {QN_MUTANT_##name, #by, #name},
        QN_MUTANT_MAP(X)
#undef X
    };
    for (size_t i = 0; i < sizeof defects / sizeof defects[0]; i++) {
        if (strcmp(defects[i].by, "UTILITY") != 0) {
            continue;
        }
        uint64_t seed = near[defects[i].mutant] + 1;
        while (seed <= DEFECT_SEEDS && !finds(defects[i].mutant, seed)) {
            seed++;
        }
        printf("%s: seed %" PRIu64 "\n", defects[i].name, seed);
        cr_expect_leq(seed, DEFECT_SEEDS, "%s was not found", defects[i].name);
    }
}
#endif
