/*
 * quoin bench collectives: the operations of core/coll as a program calls them,
 * over 2, 4, 8 and 16 nodes, threads and processes.
 *
 * It says what operations cost here, not what a model says of them (quoin bench
 * reduce, ... compare trees with their predictions). Each group of nodes is
 * made once and runs all operations in turns.
 */
#include <string.h>
#include <sys/mman.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/place/place.h"
#include "loadgen/base/list.h"
#include "loadgen/base/options.h"
#include "loadgen/base/output_path.h"
#include "loadgen/cli/quoin.h"
#include "loadgen/collective/collective_report.h"
#include "loadgen/collective/kinds_plot.h"
#include "transports/registry.h"

#define GROUPS_MAX 8u

static const char *program; /* first words of each line */

struct bench {
    /* options */
    const char *operations, *nodes, *tree_name, *transport_name, *plot;
    uint64_t size, window, arity, turns, exchange;
    double seconds;
    bool threads_only, processes_only, quick;
    /* what they say */
    uint32_t forms; /* mask */
    uint64_t group[GROUPS_MAX];
    uint32_t groups;
    const struct qn_transport *transport;
    /* the machine */
    struct qn_places places;
    uint32_t core[QN_NODES_MAX];
    struct qn_collective_result *result; /* shared with children */
};

static int fail(const char *line)
{
    fprintf(stderr, "%s: %s\n", program, line);
    return 2;
}

/* ---- options ---- */

static uint32_t form_named(const char *name, size_t len)
{
    const struct qn_collective_form *f;
    uint32_t i = 0;
    while ((f = qn_collective_form(i)) != NULL &&
           (strlen(f->name) != len || memcmp(f->name, name, len) != 0)) {
        i++;
    }
    return i;
}

static int take_operations(struct bench *b)
{
    const char *at = b->operations, *word;
    size_t len;
    if (at == NULL) {
        b->forms = UINT32_MAX;
    }
    while (qn_list_next(&at, &word, &len)) {
        const uint32_t form = form_named(word, len);
        if (qn_collective_form(form) == NULL) {
            fprintf(stderr, "%s: unknown operation '%.*s'; choose among ",
                    program, (int)len, word);
            for (uint32_t i = 0; qn_collective_form(i) != NULL; i++) {
                fprintf(stderr, "%s%s", i > 0 ? ", " : "",
                        qn_collective_form(i)->name);
            }
            fputc('\n', stderr);
            return 2;
        }
        b->forms |= 1u << form;
    }
    return 0;
}

static int take_nodes(struct bench *b)
{
    b->groups =
        qn_parse_counts(b->nodes, 2, QN_NODES_MAX, b->group, GROUPS_MAX);
    return b->groups > 0
               ? 0
               : fail("--nodes takes at most 8 numbers from 2 to 64, for "
                      "example 2,4");
}

static bool tree_is_known(const char *name)
{
    static struct qn_tree tree; /* too large for the stack */
    const qn_node_t order[] = {0, 1};
    return qn_tree_build(&tree, name, order, 2) == QN_OK;
}

#define AT(member) offsetof(struct bench, member)

static const struct qn_option table[] = {
    QN_OPTION(
        "operation", "NAME,...", qn_option_string, AT(operations),
        "operations (all): barrier, allreduce, reduce, gather, broadcast, "
        "ack, commit, sequence, ring; of threads: dr, sdr, bt"),
    QN_OPTION("nodes", "N,...", qn_option_string, AT(nodes),
              "nodes of each group (2,4,8,16)"),
    QN_OPTION("threads", NULL, qn_option_flag, AT(threads_only),
              "threads only"),
    QN_OPTION("processes", NULL, qn_option_flag, AT(processes_only),
              "processes only"),
    QN_OPTION_COUNT("size", "BYTES", AT(size), "bytes of a broadcast (64)", 8,
                    QN_COLLECTIVE_SIZE_MAX),
    QN_OPTION_COUNT("window", "W", AT(window),
                    "messages under way from sequence on, a power of two "
                    "(16)",
                    1, QN_COLLECTIVE_WINDOW_MAX),
    QN_OPTION("tree", "NAME", qn_option_string, AT(tree_name),
              "sequential (default), binary, fibonacci or tree:k=N"),
    QN_OPTION_COUNT("exchange", "N", AT(exchange),
                    "nodes whose barriers and all-reductions go from each to "
                    "each, not over the tree, at most (4); 0: none",
                    0, QN_NODES_MAX),
    QN_OPTION_COUNT("arity", "K", AT(arity), "of the ring (2)", 1,
                    QN_RING_ARITY_MAX),
    QN_OPTION("transport", "NAME", qn_option_string, AT(transport_name),
              "transport (ump)"),
    QN_OPTION_COUNT("turns", "N", AT(turns), "maximum of turns (1000)", 1,
                    QN_COLLECTIVE_TURNS_MAX),
    QN_OPTION("seconds", "S", qn_option_double, AT(seconds),
              "maximum of seconds for the turns of one group (2)"),
    QN_OPTION("plot", "FILE", qn_option_string, AT(plot),
              "write a picture (SVG)"),
    QN_OPTION("quick", NULL, qn_option_flag, AT(quick),
              "few operations, to test that the benchmark works"),
};

/* The forms that this kind of nodes can run. */
static uint32_t forms_of(const struct bench *b, bool processes)
{
    uint32_t forms = b->forms;
    for (uint32_t i = 0; qn_collective_form(i) != NULL; i++) {
        if (processes && qn_collective_form(i)->threads) {
            forms &= ~(1u << i);
        }
    }
    return forms;
}

static int check_kinds(const struct bench *b)
{
    if (b->threads_only && b->processes_only) {
        return fail("--threads and --processes exclude each other; leave both "
                    "out to run both");
    }
    if (b->processes_only && forms_of(b, true) == 0) {
        return fail("--processes: dr, sdr and bt run in threads only");
    }
    return 0;
}

static int prepare(struct bench *b)
{
    int status = take_operations(b);
    status = status == 0 ? take_nodes(b) : status;
    status = status == 0 ? check_kinds(b) : status;
    if (status != 0) {
        return status;
    }
    if (!qn_is_pow2(b->window)) {
        return fail("--window must be a power of two, for example 16");
    }
    b->transport = qn_transport_find(b->transport_name);
    if (b->transport == NULL) {
        return fail("--transport: there is none of that name; see quoin bench "
                    "channel");
    }
    if (!tree_is_known(b->tree_name)) {
        fprintf(stderr,
                "%s: unknown tree '%s'; choose sequential, binary, fibonacci "
                "or tree:k=N\n",
                program, b->tree_name);
        return 2;
    }
    if (b->plot != NULL) {
        status =
            qn_output_path_check(program, "plot", b->plot, "name a file in it");
    }
    if (status != 0) {
        return status;
    }
    int rc = qn_places_discover(&b->places);
    if (rc != QN_OK) {
        fprintf(stderr, "%s: cannot list the cores: %s\n", program,
                qn_strerror(rc));
        return 1;
    }
    for (uint32_t i = 0; i < QN_NODES_MAX; i++) {
        b->core[i] = (uint32_t)qn_places_of(&b->places, i, QN_BIND_CORE).cpu;
    }
    b->result = mmap(NULL, sizeof *b->result, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b->result == MAP_FAILED) {
        fprintf(stderr, "%s: not enough memory\n", program);
        return 1;
    }
    return 0;
}

/* ---- groups ---- */

static int complain(uint32_t nodes, int rc)
{
    fprintf(stderr, "%s: %u nodes: %s\n", program, nodes, qn_strerror(rc));
    return rc;
}

static int run_over(struct bench *b, uint32_t nodes, bool processes,
                    const struct qn_tree *tree,
                    const struct qn_diamond_ring *ring)
{
    const struct qn_spin_opts spin = {.nodes = nodes,
                                      .cores = b->places.count,
                                      .quota_milli = b->places.quota_milli};
    struct qn_collective_run_opts o = {
        .transport = b->transport,
        .nodes = nodes,
        .core = b->core,
        .processes = processes,
        .turns = (uint32_t)b->turns,
        .seconds = b->seconds,
        .quick = b->quick,
        .forms = forms_of(b, processes),
        .collective = {.tree = tree,
                       .ring = ring,
                       .size = (uint32_t)b->size,
                       .window = (uint32_t)b->window,
                       .exchange = nodes <= b->exchange,
                       .backoff = qn_backoff_of(&spin)}};
    const struct qn_collective_tasks_opts t = {.nodes = nodes,
                                               .tree = tree,
                                               .ring = ring,
                                               .window = o.collective.window,
                                               .backoff = o.collective.backoff};
    memset(b->result, 0, sizeof *b->result);
    int rc =
        processes ? QN_OK : qn_collective_tasks_create(&o.collective.tasks, &t);
    rc = rc == QN_OK ? qn_collective_run(b->result, &o) : rc;
    qn_collective_tasks_destroy(o.collective.tasks);
    return rc;
}

/* One group. @param to  Its results are appended. @return QN_OK, or an error
 * after a line. */
static int run_group(struct bench *b, uint32_t nodes, bool processes,
                     json_t *to)
{
    static struct qn_tree tree; /* too large for the stack */
    struct qn_diamond_ring *ring;
    qn_node_t order[QN_NODES_MAX];
    const struct qn_diamond_ring_opts ring_opts = {.n = nodes,
                                                   .k = (uint32_t)b->arity};
    for (uint32_t i = 0; i < nodes; i++) {
        order[i] = (qn_node_t)i;
    }
    int rc = qn_tree_build(&tree, b->tree_name, order, nodes);
    if (rc != QN_OK) {
        return complain(nodes, rc);
    }
    rc = qn_diamond_ring_create(&ring, &ring_opts);
    if (rc == QN_OK) {
        rc = run_over(b, nodes, processes, &tree, ring);
        qn_diamond_ring_destroy(ring);
    }
    if (rc != QN_OK) {
        return complain(nodes, rc);
    }
    const struct qn_collective_run_opts o = {
        .nodes = nodes,
        .processes = processes,
        .forms = forms_of(b, processes),
        .collective = {.size = (uint32_t)b->size}};
    json_t *group = qn_collective_report(b->result, &o);
    const bool wrong = json_integer_value(json_object_get(group, "wrong")) > 0;
    json_array_append_new(to, group);
    if (wrong) {
        fprintf(stderr, "%s: %u nodes: wrong results\n", program, nodes);
    }
    return wrong ? QN_EIO : QN_OK;
}

static int run_groups(struct bench *b, json_t *to)
{
    const bool joins = b->transport->memory != QN_TRANSPORT_BOTH_WRITE;
    int rc = QN_OK;
    for (int processes = 0; processes <= joins; processes++) {
        if ((processes ? b->threads_only : b->processes_only) ||
            forms_of(b, processes) == 0) {
            continue;
        }
        for (uint32_t i = 0; i < b->groups && rc == QN_OK; i++) {
            rc = run_group(b, (uint32_t)b->group[i], processes, to);
        }
    }
    return rc;
}

/* ---- the command ---- */

static const struct qn_kinds_plot picture = {
    .title = "Collective operations, time of each",
    .description = "Time of each operation over the number of nodes",
    .members = "nodes",
    .rows = "operations",
    .row = "operation",
    .names = 100,
    .height = 430};

static int measure(struct bench *b)
{
    json_t *groups = json_array();
    int status = run_groups(b, groups) == QN_OK ? 0 : 1;
    json_t *all = json_pack(
        "{s:s,s:s,s:s,s:i,s:i,s:i,s:i,s:i,s:s,s:O}", "bench",
        program + sizeof "quoin bench", "transport", b->transport->name, "tree",
        b->tree_name, "exchange", (int)b->exchange, "ring_arity", (int)b->arity,
        "size", (int)b->size, "window", (int)b->window, "cores",
        (int)b->places.count, "compiler", __VERSION__, "groups", groups);
    if (json_dumpf(all, stdout, JSON_INDENT(2)) != 0 || puts("") == EOF) {
        fprintf(stderr, "%s: cannot write the result\n", program);
        status = 1;
    }
    if (b->plot != NULL &&
        qn_kinds_plot(&picture, groups, b->plot, program) != 0) {
        status = 1;
    }
    json_decref(all);
    json_decref(groups);
    return status;
}

static int command(const char *name, const char *operations,
                   const char *summary, int argc, char **argv)
{
    static struct bench b; /* too large for the stack */
    int status = 0;
    program = name;
    b = (struct bench){.operations = operations,
                       .nodes = "2,4,8,16",
                       .tree_name = "sequential",
                       .transport_name = "ump",
                       .size = 64,
                       .window = 16,
                       .arity = 2,
                       .exchange = QN_COLL_EXCHANGE_FEW,
                       .turns = QN_COLLECTIVE_TURNS_MAX,
                       .seconds = 2};
    const struct qn_options o = {name, summary, table, QN_ARRAY_COUNT(table),
                                 &b};
    if (!qn_options_parse(&o, argc, argv, &status)) {
        return status;
    }
    if (b.quick) {
        b.turns = QN_MIN(b.turns, 2u);
    }
    status = prepare(&b);
    if (status == 0) {
        status = measure(&b);
        munmap(b.result, sizeof *b.result);
    }
    return status;
}

int qn_bench_collectives(int argc, char **argv)
{
    return command(
        "quoin bench collectives", NULL,
        "Measure collective operations as a program calls them. JSON goes to\n"
        "stdout, a table to stderr.",
        argc, argv);
}

int qn_bench_ring(int argc, char **argv)
{
    return command(
        "quoin bench ring", "sequence,ring,dr,sdr,bt",
        "Measure pipelines of acknowledged broadcasts over diamond rings "
        "beside "
        "trees, over\nqueuepairs and as tasks: quoin bench collectives of "
        "these. JSON goes to stdout, a\ntable to stderr.",
        argc, argv);
}
