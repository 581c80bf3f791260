/*
 * quoin bench commit: what does it take until a command that a program proposes
 * is applied at it, if it is the only one under way?
 *
 * A pair of turns, one of each form, is run again and again, so that a drift of
 * the machine counts for both; every second pair in the other order. A pair in
 * which the leader has changed does not count: a node was stalled.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/place/place.h"
#include "loadgen/base/options.h"
#include "loadgen/cli/quoin.h"
#include "loadgen/commit/commit_table.h"
#include "transports/registry.h"

#define PROGRAM    "quoin bench commit"
#define FORMS_MAX  4u
#define WARM_SHARE 8u /* of the operations of a turn, before them */

/* A kind of nodes and a proposer: its rows are compared. */
struct group {
    bool processes, follower;
    uint32_t left_out; /* pairs */
    uint32_t forms;    /* that run so: the first ones */
    struct qn_commit_row *row[FORMS_MAX];
};

struct bench {
    /* options */
    const char *proposer, *acceptor, *transport_name;
    uint64_t members, pairs, operations;
    bool threads_only, processes_only, quick;
    /* what they say */
    struct qn_commit_turn turn; /* but for kind and proposer */
    struct group group[4];
    uint32_t groups;
    /* the machine */
    struct qn_places places;
    uint32_t core[QN_NODES_MAX];
};

static int fail(const char *line)
{
    fprintf(stderr, PROGRAM ": %s\n", line);
    return 2;
}

/* ---- options ------------------------------------------------------------- */

#define AT(member) offsetof(struct bench, member)

static const struct qn_option table[] = {
    QN_OPTION_COUNT("members", "N", AT(members), "of the group (3)", 2,
                    QN_NODES_MAX),
    QN_OPTION("proposer", "WHICH", qn_option_string, AT(proposer),
              "leader or follower; default: both"),
    QN_OPTION("threads", NULL, qn_option_flag, AT(threads_only),
              "threads only"),
    QN_OPTION("processes", NULL, qn_option_flag, AT(processes_only),
              "processes only"),
    QN_OPTION("acceptor", "KIND", qn_option_string, AT(acceptor),
              "memory (default) or process"),
    QN_OPTION("transport", "NAME", qn_option_string, AT(transport_name),
              "transport (ump)"),
    QN_OPTION_COUNT("pairs", "N", AT(pairs), "turns of each form (20)", 1,
                    QN_COMMIT_PAIRS_MAX),
    QN_OPTION_COUNT("operations", "N", AT(operations),
                    "commands of a turn, one after the other (5000)", 1,
                    QN_COMMIT_OPERATIONS_MAX),
    QN_OPTION("quick", NULL, qn_option_flag, AT(quick),
              "two pairs of few commands, to test that the benchmark works"),
};

static bool is_one_of(const char *text, const char *a, const char *b)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

static int take(struct bench *b)
{
    const struct qn_transport *t = qn_transport_find(b->transport_name);
    if (b->threads_only && b->processes_only) {
        return fail("--threads and --processes exclude each other; leave both "
                    "out to run both");
    }
    if (b->proposer != NULL && !is_one_of(b->proposer, "leader", "follower")) {
        return fail("--proposer must be leader or follower");
    }
    if (!is_one_of(b->acceptor, "memory", "process")) {
        return fail("--acceptor must be memory or process");
    }
    if (t == NULL) {
        return fail("--transport: there is none of that name; see quoin bench "
                    "channel");
    }
    if (t->memory == QN_TRANSPORT_BOTH_WRITE) {
        return fail("--transport: members cannot write each other's outbox; "
                    "use ump");
    }
    if (b->quick) {
        b->pairs = 2;
        b->operations = QN_MIN(b->operations, 100u);
    }
    b->turn = (struct qn_commit_turn){
        .transport = t,
        .nodes = (uint32_t)b->members,
        .memory_acceptor = strcmp(b->acceptor, "memory") == 0,
        .core = b->core,
        .warm = (uint32_t)b->operations / WARM_SHARE + 1,
        .operations = (uint32_t)b->operations};
    return 0;
}

static int find_cores(struct bench *b)
{
    int rc = qn_places_discover(&b->places);
    if (rc != QN_OK) {
        fprintf(stderr, PROGRAM ": cannot list the cores: %s\n",
                qn_strerror(rc));
        return 1;
    }
    for (uint32_t i = 0; i < b->turn.nodes; i++) {
        const uint32_t seat = qn_places_seat(&b->places, i, b->turn.nodes);
        b->core[i] = (uint32_t)qn_places_of(&b->places, seat, QN_BIND_CORE).cpu;
    }
    const struct qn_spin_opts spin = {.nodes = b->turn.nodes,
                                      .cores = b->places.count,
                                      .quota_milli = b->places.quota_milli};
    b->turn.backoff = qn_backoff_of(&spin);
    return 0;
}

/* ---- groups -------------------------------------------------------------- */

static struct qn_commit_row *make_row(const struct group *g, uint32_t form)
{
    struct qn_commit_row *r = calloc(1, sizeof *r);
    if (r != NULL) {
        r->form = qn_commit_form(form);
        r->processes = g->processes;
        r->follower = g->follower;
        r->ns = calloc(1, sizeof *r->ns);
    }
    return r;
}

static uint32_t forms_of(const struct bench *b)
{
    const struct qn_commit_form *f;
    uint32_t n = 0;
    while ((f = qn_commit_form(n)) != NULL &&
           (!f->memory_acceptor_only || b->turn.memory_acceptor)) {
        n++;
    }
    return n;
}

static int make_groups(struct bench *b)
{
    for (uint32_t i = 0; i < 4; i++) {
        const bool processes = i / 2, follower = i % 2;
        struct group *g = &b->group[b->groups];
        if ((processes ? b->threads_only : b->processes_only) ||
            (b->proposer != NULL &&
             (strcmp(b->proposer, "follower") == 0) != follower)) {
            continue;
        }
        *g = (struct group){
            .processes = processes, .follower = follower, .forms = forms_of(b)};
        b->groups++;
        for (uint32_t f = 0; f < g->forms; f++) {
            g->row[f] = make_row(g, f);
            if (g->row[f] == NULL || g->row[f]->ns == NULL) {
                return fail(qn_strerror(QN_ENOMEM));
            }
        }
    }
    return 0;
}

static void destroy(struct bench *b)
{
    for (uint32_t i = 0; i < b->groups; i++) {
        for (uint32_t f = 0;
             f < b->group[i].forms && b->group[i].row[f] != NULL; f++) {
            free(b->group[i].row[f]->ns);
            free(b->group[i].row[f]);
        }
    }
    if (b->turn.shared != NULL) {
        munmap(b->turn.shared, FORMS_MAX * sizeof *b->turn.shared);
    }
}

/* One turn of each form. @return 0; 1 after a line. */
static int run_pair(struct bench *b, struct group *g, bool reverse)
{
    struct qn_commit_turn turn[FORMS_MAX];
    bool good = true;
    for (uint32_t k = 0; k < g->forms; k++) {
        const uint32_t f = reverse ? g->forms - 1 - k : k;
        turn[f] = b->turn;
        turn[f].processes = g->processes;
        turn[f].proposer = g->follower ? b->turn.nodes - 1 : 0;
        turn[f].shared = b->turn.shared + f;
        int rc = qn_commit_turn_run(qn_commit_form(f), &turn[f]);
        if (rc != QN_OK) {
            fprintf(stderr, PROGRAM ": %s, %u %s: %s\n",
                    qn_commit_form(f)->name, b->turn.nodes,
                    g->processes ? "processes" : "threads", qn_strerror(rc));
            return 1;
        }
        good = good && turn[f].shared->said[turn[f].proposer].failovers == 0;
    }
    if (!good) {
        g->left_out++;
        return 0;
    }
    const double base = qn_commit_turn_median(&turn[0]);
    for (uint32_t f = 0; f < g->forms; f++) {
        qn_commit_row_add(g->row[f], &turn[f], base);
    }
    return 0;
}

static int run_pairs(struct bench *b)
{
    int status = 0;
    for (uint32_t p = 0; p < b->pairs; p++) {
        for (uint32_t i = 0; i < b->groups && status == 0; i++) {
            status = run_pair(b, &b->group[i], p % 2 == 1);
        }
    }
    return status;
}

/* ---- the command --------------------------------------------------------- */

static json_t *report_group(struct group *g)
{
    json_t *rows = json_array();
    for (uint32_t f = 0; f < g->forms && g->row[f]->turns > 0; f++) {
        json_array_append_new(rows, qn_commit_table_row(g->row[f]));
    }
    if (g->left_out > 0) {
        fprintf(stderr, "%u pairs do not count: the leader has changed\n",
                g->left_out);
    }
    return json_pack("{s:s,s:s,s:i,s:o}", "proposer",
                     g->follower ? "follower" : "leader", "nodes",
                     g->processes ? "processes" : "threads", "left_out",
                     (int)g->left_out, "forms", rows);
}

static int report(struct bench *b)
{
    json_t *groups = json_array();
    qn_commit_table_head();
    for (uint32_t i = 0; i < b->groups; i++) {
        json_array_append_new(groups, report_group(&b->group[i]));
    }
    json_t *all = json_pack(
        "{s:s,s:i,s:s,s:s,s:i,s:b,s:i,s:i,s:i,s:s,s:o}", "bench", "commit",
        "members", (int)b->members, "acceptor", b->acceptor, "transport",
        b->turn.transport->name, "cores", (int)b->places.count, "own_cores",
        b->turn.backoff.look_ns > 0, "command_bytes",
        (int)QN_COMMIT_COMMAND_BYTES, "operations", (int)b->operations, "pairs",
        (int)b->pairs, "compiler", __VERSION__, "groups", groups);
    int status = 0;
    if (json_dumpf(all, stdout, JSON_INDENT(2)) != 0 || puts("") == EOF) {
        fprintf(stderr, PROGRAM ": cannot write the result\n");
        status = 1;
    }
    json_decref(all);
    return status;
}

static int measure(struct bench *b)
{
    int status = find_cores(b);
    status = status == 0 ? make_groups(b) : status;
    if (status != 0) {
        return status;
    }
    void *shared =
        mmap(NULL, FORMS_MAX * sizeof *b->turn.shared, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        fprintf(stderr, PROGRAM ": not enough memory\n");
        return 1;
    }
    b->turn.shared = shared;
    status = run_pairs(b);
    return status == 0 ? report(b) : status;
}

int qn_bench_commit(int argc, char **argv)
{
    static struct bench b; /* too large for the stack */
    int status = 0;
    b = (struct bench){.acceptor = "memory",
                       .transport_name = "ump",
                       .members = 3,
                       .pairs = 20,
                       .operations = 5000};
    const struct qn_options o = {
        PROGRAM,
        "Measure consensus: the time from propose to own apply of one command "
        "of 16 bytes,\nthe only one under way; the driver over queuepairs, "
        "members, and groups in\nprograms, run in turn. JSON goes to stdout, a "
        "table to stderr.",
        table, QN_ARRAY_COUNT(table), &b};
    if (!qn_options_parse(&o, argc, argv, &status)) {
        return status;
    }
    status = take(&b);
    status = status == 0 ? measure(&b) : status;
    destroy(&b);
    return status;
}
