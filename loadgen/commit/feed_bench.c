/*
 * quoin bench feed: what do writers lose by a subscriber of their group's
 * change feed? Members in processes propose commands of 16 bytes, each with a
 * window of them under way, while each member has no subscriber, one that
 * reads after each turn, or one that has stopped.
 *
 * It is one group all the time. A turn has one kind of subscriber: commands
 * that fill the feed and are not measured, then those that are. A pair is a
 * turn of each kind, every second pair the other way round, and each ratio is
 * of one pair. A writer's rate is its own, from its first command to the end of
 * its last one; processor time is of all threads until all have ended.
 */
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/base/atomic.h"
#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/place/place.h"
#include "loadgen/base/median.h"
#include "loadgen/base/options.h"
#include "loadgen/bench/nodes.h"
#include "loadgen/cli/quoin.h"
#include "paxos/feed/feed.h"
#include "paxos/group/group_feed.h"
#include "transports/registry.h"

#define PROGRAM "quoin bench feed"

enum {
    PAIRS_MAX = 100,
    MEMBERS_MAX = 8,
    WINDOW = 64,         /* commands of a writer under way */
    FEED_RECORDS = 1024, /* kept; before a turn is measured they are cut */
    FEED_BYTES = 64 << 10,
    WAIT_MS = 1 /* in poll: others may have come to the end of a turn */
};

enum kind { KIND_NONE, KIND_READS, KIND_STOPPED, KINDS };

static const char *const kinds[] = {"none", "reads", "stopped"};

/* What a member has needed for a turn. */
struct said {
    uint64_t ns;     /* for its own commands */
    uint64_t cpu_ns; /* until all had ended */
};

struct shared {
    qn_a64 failed;  /* members */
    qn_a64 arrived; /* at the end of a step, all of them */
    /* Read after the end: */
    struct said said[PAIRS_MAX][KINDS][MEMBERS_MAX];
};

struct bench {
    uint64_t members, pairs, commands;
    bool quick;
    int place; /* a socket, at which they meet: no file is left */
    struct qn_places places;
    uint32_t core[MEMBERS_MAX];
    struct shared *shared;
};

struct writer {
    const struct bench *b;
    struct qn_group *group;
    uint64_t steps; /* ended */
    uint64_t under_way;
    bool subscribed, reads;
    uint32_t id;
    uint64_t checksum; /* of what is read */
};

/* ---- the service: it keeps nothing --------------------------------------- */

static int on_apply(void *ctx, const struct qn_group_command *c,
                    uint64_t *result)
{
    (void)ctx;
    *result = c->slot;
    return QN_OK;
}

static int no_begin(void *ctx)
{
    (void)ctx;
    return QN_EAGAIN;
}

static int no_next(void *ctx, void *bytes, size_t cap, size_t *len)
{
    (void)ctx;
    (void)bytes;
    (void)cap;
    (void)len;
    return QN_ENOENT;
}

static int no_read(void *ctx, const void *bytes, size_t len)
{
    (void)ctx;
    (void)bytes;
    (void)len;
    return QN_EIO;
}

static int no_finish(void *ctx)
{
    (void)ctx;
    return QN_EIO;
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static int join(struct writer *w)
{
    static const struct qn_feed_opts feed = {
        .bytes = FEED_BYTES, .records = FEED_RECORDS, .subscribers = 1};
    const uint32_t members = (uint32_t)w->b->members;
    const struct qn_group_opts o = {.socket_fd = w->b->place,
                                    .application = PROGRAM,
                                    .transport = qn_transport_find("ump"),
                                    .capacity = members,
                                    .members = members,
                                    .feed = &feed,
                                    .service = {.apply = on_apply,
                                                .begin = no_begin,
                                                .next = no_next,
                                                .end = nothing,
                                                .read = no_read,
                                                .finish = no_finish,
                                                .install = nothing,
                                                .abandon = nothing,
                                                .ctx = w}};
    return qn_group_join(&w->group, &o);
}

/* ---- a member ------------------------------------------------------------ */

static int subscribe(struct writer *w, enum kind kind)
{
    int err = QN_OK;
    if (w->subscribed) {
        err = qn_group_feed_unsubscribe(w->group, w->id);
    }
    w->subscribed = kind != KIND_NONE;
    w->reads = kind == KIND_READS;
    return err == QN_OK && w->subscribed
               ? qn_group_feed_subscribe(w->group, NULL, &w->id)
               : err;
}

static int turn(struct writer *w)
{
    struct qn_feed_record r;
    int rc = qn_group_turn(w->group);
    while (rc >= 0 && w->reads &&
           qn_group_feed_read(w->group, w->id, &r) == QN_OK) {
        w->checksum += r.seq + r.bytes.data[0];
    }
    return rc;
}

static void rest(const struct writer *w, int rc)
{
    struct pollfd p = {.fd = qn_group_fd(w->group), .events = POLLIN};
    if (rc == QN_GROUP_ARMED) {
        (void)poll(&p, 1, WAIT_MS);
    }
}

static void on_done(void *ctx, int err, uint64_t result)
{
    struct writer *w = ctx;
    (void)err; /* a group with a leader and no limit of time: it is applied */
    (void)result;
    w->under_way--;
}

static int serve_first(struct writer *w)
{
    struct qn_group_status s = {.phase = QN_GROUP_MEETING};
    int rc = QN_OK;
    while (rc >= 0 && s.phase != QN_GROUP_SERVING) {
        rc = turn(w);
        rest(w, rc);
        qn_group_status(w->group, &s);
    }
    return rc;
}

/* Until all have come here. */
static int meet(struct writer *w)
{
    struct shared *s = w->b->shared;
    const uint64_t all = ++w->steps * w->b->members;
    int rc = QN_OK;
    qn_fetch_add(&s->arrived, 1, QN_SEQ_CST);
    while (rc >= 0 && qn_load(&s->arrived, QN_SEQ_CST) < all) {
        rc = turn(w);
        rest(w, rc);
        rc = qn_load(&s->failed, QN_SEQ_CST) > 0 ? QN_EABORTED : rc;
    }
    return rc;
}

static int write_some(struct writer *w, uint64_t left)
{
    const uint64_t words[2] = {left, w->steps};
    int rc = QN_OK, taken = QN_OK;
    while (rc >= 0 && left + w->under_way > 0) {
        while (left > 0 && w->under_way < WINDOW &&
               (taken = qn_group_propose(w->group, words, sizeof words,
                                         QN_GROUP_FOREVER, on_done, w)) ==
                   QN_OK) {
            w->under_way++;
            left--;
        }
        rc = turn(w);
        if (left == 0 || w->under_way == WINDOW || taken != QN_OK) {
            rest(w, rc);
        }
    }
    return rc;
}

static uint64_t cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * QN_S + (uint64_t)t.tv_nsec;
}

static int run_turn(struct writer *w, enum kind kind, struct said *said)
{
    int rc = subscribe(w, kind);
    rc = rc >= 0 ? write_some(w, FEED_RECORDS) : rc;
    rc = rc >= 0 ? meet(w) : rc;
    const uint64_t cpu = cpu_now();
    const qn_time_t began = qn_clock_now();
    rc = rc >= 0 ? write_some(w, w->b->commands) : rc;
    said->ns = qn_clock_now() - began;
    rc = rc >= 0 ? meet(w) : rc;
    said->cpu_ns = cpu_now() - cpu;
    return rc;
}

static enum kind kind_at(uint64_t pair, uint32_t k)
{
    return (enum kind)(pair % 2 == 0 ? k : KINDS - 1 - k);
}

static int run_member(qn_node_t self, void *arg)
{
    const struct bench *b = arg;
    struct writer w = {.b = b};
    int rc = join(&w);
    rc = rc == QN_OK ? serve_first(&w) : rc;
    rc = rc >= 0 ? meet(&w) : rc;
    for (uint64_t p = 0; p < b->pairs; p++) {
        for (uint32_t k = 0; k < KINDS && rc >= 0; k++) {
            const enum kind kind = kind_at(p, k);
            rc = run_turn(&w, kind, &b->shared->said[p][kind][self]);
        }
    }
    if (rc < 0) {
        fprintf(stderr, PROGRAM ": member %u: %s\n", self, qn_strerror(rc));
        qn_fetch_add(&b->shared->failed, 1, QN_SEQ_CST);
    }
    qn_group_leave(w.group);
    return rc < 0;
}

/* ---- what is said -------------------------------------------------------- */

/* Commands per second of all writers, and processor time of each command. */
static void figures(const struct bench *b, uint64_t pair, enum kind kind,
                    double *rate, double *cpu)
{
    *rate = *cpu = 0;
    for (uint64_t i = 0; i < b->members; i++) {
        const struct said *s = &b->shared->said[pair][kind][i];
        *rate += (double)b->commands * 1e9 / (double)s->ns;
        *cpu += (double)s->cpu_ns / (double)(b->commands * b->members);
    }
}

static json_t *interval(const struct qn_median *m)
{
    return json_pack("{s:f,s:f,s:f}", "median", m->median, "low", m->low,
                     "high", m->high);
}

static json_t *report_kind(const struct bench *b, enum kind kind)
{
    double rate[PAIRS_MAX], cpu[PAIRS_MAX];
    double rate_ratio[PAIRS_MAX], cpu_ratio[PAIRS_MAX];
    const uint32_t n = (uint32_t)b->pairs;
    for (uint32_t p = 0; p < n; p++) {
        double base_rate, base_cpu;
        figures(b, p, KIND_NONE, &base_rate, &base_cpu);
        figures(b, p, kind, &rate[p], &cpu[p]);
        rate_ratio[p] = rate[p] / base_rate;
        cpu_ratio[p] = cpu[p] / base_cpu;
    }
    const struct qn_median r = qn_median_of(rate, n), c = qn_median_of(cpu, n),
                           rr = qn_median_of(rate_ratio, n),
                           cr = qn_median_of(cpu_ratio, n);
    fprintf(stderr,
            "%-10s %10.0f %10.0f   %.3f (%.3f to %.3f)   %.3f (%.3f to %.3f)\n",
            kinds[kind], r.median, c.median, rr.median, rr.low, rr.high,
            cr.median, cr.low, cr.high);
    return json_pack("{s:s,s:f,s:f,s:o,s:o}", "subscriber", kinds[kind],
                     "per_second", r.median, "cpu_ns_per_command", c.median,
                     "rate_ratio", interval(&rr), "cpu_ratio", interval(&cr));
}

static int report(const struct bench *b)
{
    json_t *rows = json_array();
    fprintf(stderr, "subscriber commands/s CPU ns/command   rate to none "
                    "(95 %%)   CPU to none (95 %%)\n");
    for (uint32_t k = 0; k < KINDS; k++) {
        json_array_append_new(rows, report_kind(b, (enum kind)k));
    }
    json_t *all = json_pack("{s:s,s:i,s:i,s:i,s:i,s:i,s:s,s:o}", "bench",
                            "feed", "members", (int)b->members, "cores",
                            (int)b->places.count, "pairs", (int)b->pairs,
                            "commands", (int)b->commands, "window", (int)WINDOW,
                            "compiler", __VERSION__, "kinds", rows);
    int status = 0;
    if (json_dumpf(all, stdout, JSON_INDENT(2)) != 0 || puts("") == EOF) {
        fprintf(stderr, PROGRAM ": cannot write the result\n");
        status = 1;
    }
    json_decref(all);
    return status;
}

/* ---- the command --------------------------------------------------------- */

#define AT(member) offsetof(struct bench, member)

static const struct qn_option table[] = {
    QN_OPTION_COUNT("members", "N", AT(members), "of the group (3)", 1,
                    MEMBERS_MAX),
    QN_OPTION_COUNT("pairs", "N", AT(pairs), "turns of each kind (20)", 1,
                    PAIRS_MAX),
    QN_OPTION_COUNT("commands", "N", AT(commands),
                    "of each member in a turn (20000)", 1, 10000000),
    QN_OPTION("quick", NULL, qn_option_flag, AT(quick),
              "two pairs of few commands, to test that the benchmark works"),
};

static int measure(struct bench *b)
{
    const struct qn_nodes_opts o = {
        .nodes = (uint32_t)b->members, .processes = true, .core = b->core};
    int rc = qn_places_discover(&b->places);
    if (rc != QN_OK) {
        fprintf(stderr, PROGRAM ": cannot list the cores: %s\n",
                qn_strerror(rc));
        return 1;
    }
    for (uint32_t i = 0; i < o.nodes; i++) {
        const uint32_t seat = qn_places_seat(&b->places, i, o.nodes);
        b->core[i] = (uint32_t)qn_places_of(&b->places, seat, QN_BIND_CORE).cpu;
    }
    b->place = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (b->place < 0) {
        fprintf(stderr, PROGRAM ": no descriptor is left: raise ulimit -n\n");
        return 1;
    }
    b->shared = mmap(NULL, sizeof *b->shared, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b->shared == MAP_FAILED) {
        fprintf(stderr, PROGRAM ": not enough memory\n");
        close(b->place);
        return 1;
    }
    int status = qn_nodes_run(&o, run_member, b) == 0 ? report(b) : 1;
    close(b->place);
    munmap(b->shared, sizeof *b->shared);
    return status;
}

int qn_bench_feed(int argc, char **argv)
{
    static struct bench b;
    int status = 0;
    b = (struct bench){.members = 3, .pairs = 20, .commands = 20000};
    const struct qn_options o = {
        PROGRAM,
        "Measure what a subscriber of the change feed costs writers: none, one "
        "that reads,\nand one that has stopped, at each member of a group of "
        "processes, in turn. JSON goes\nto stdout, a table to stderr.",
        table, QN_ARRAY_COUNT(table), &b};
    if (!qn_options_parse(&o, argc, argv, &status)) {
        return status;
    }
    if (b.quick) {
        b.pairs = 2;
        b.commands = QN_MIN(b.commands, 100u);
    }
    return measure(&b);
}
