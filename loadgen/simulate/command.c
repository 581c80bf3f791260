/*
 * All topologies share the group, its cores and the machine on which they are
 * planned. As in `quoin bench broadcast`, all have the root of the first one,
 * unless --root names it or a file contains one.
 */
#include "loadgen/simulate/command.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/options.h"
#include "loadgen/base/output_path.h"
#include "loadgen/simulate/large/large_command.h"
#include "loadgen/simulate/locks/auto_command.h"
#include "loadgen/topo/model/cores.h"
#include "transports/registry.h"

#define ROOT_FREE UINT64_MAX

int qn_simulate_fail(const struct qn_simulate *s, const char *line)
{
    fprintf(stderr, "%s: %s\n", s->program, line);
    return 2;
}

/* ---- options ---- */

static int take_topologies(const struct qn_option *o, const char *text)
{
    struct qn_simulate *s = o->to;
    return qn_topology_names_add(&s->topologies, text);
}

/* "kill:3@100us", "stop:3@10us-50us", "slow:3*4", "lines:3*2@10us". */
bool qn_simulate_fault(struct qn_sim_fault *out, const char *text)
{
    struct qn_sim_fault f = {.factor = 1};
    char kind[8];
    unsigned node;
    double from = 0, until = 0;
    int read = 0;
    if (sscanf(text, "%7[a-z]:%u%n", kind, &node, &read) != 2) {
        return false;
    }
    const char *rest = text + read;
    int used = 0;
    if (*rest == '*' && sscanf(rest, "*%lf%n", &f.factor, &used) == 1) {
        rest += used;
    }
    used = 0;
    if (*rest == '@' && sscanf(rest, "@%lfus%n", &from, &used) == 1) {
        rest += used;
    }
    used = 0;
    if (*rest == '-' && sscanf(rest, "-%lfus%n", &until, &used) == 1) {
        rest += used;
    }
    f.kind = strcmp(kind, "kill") == 0   ? QN_SIM_FAULT_KILL
             : strcmp(kind, "stop") == 0 ? QN_SIM_FAULT_STOP
             : strcmp(kind, "slow") == 0 ? QN_SIM_FAULT_SLOW
                                         : QN_SIM_FAULT_LINES;
    bool known = f.kind != QN_SIM_FAULT_LINES || strcmp(kind, "lines") == 0;
    bool ordered = until == 0 || until > from;
    if (*rest != '\0' || !known || !(f.factor >= 1) || !(from >= 0) ||
        !ordered) {
        return false;
    }
    f.node = node;
    f.from_ns = (uint64_t)(from * 1000);
    f.until_ns = (uint64_t)(until * 1000);
    *out = f;
    return true;
}

static int take_fault(const struct qn_option *o, const char *text)
{
    struct qn_simulate *s = o->to;
    if (s->faults == QN_ARRAY_COUNT(s->fault)) {
        return QN_EINVAL;
    }
    return qn_simulate_fault(&s->fault[s->faults++], text) ? QN_OK : QN_EINVAL;
}

#define AT(member)       offsetof(struct qn_simulate, member)
#define AT_TERMS(member) offsetof(struct qn_simulate, terms.member)

static const struct qn_option table[] = {
    QN_OPTION("machine", "PATH", qn_option_string, AT(machine),
              "machine: a file or folder as in quoin tree (required)"),
    QN_OPTION_COUNT("nodes", "N", AT(nodes),
                    "nodes of the group, dealt round robin over the memory "
                    "nodes (one per core)",
                    2, QN_CORES_MAX),
    QN_OPTION("cores", "LIST", qn_option_string, AT(cores),
              "one node on each of these cores, by number: 0-7,16"),
    QN_OPTION("topology", "NAME,...", take_topologies, 0,
              "topologies, as in quoin tree; rings for ack (all of them)"),
    QN_OPTION("form", "NAME,...", qn_option_string, AT(forms),
              "barrier: on shared lines: central, dissemination, mcs, tree; "
              "without --topology only these (all of them)"),
    QN_OPTION("transport", "NAME", qn_option_string, AT(transport_name),
              "what carries messages: ump, ffq, ffq_shared; udn on a machine "
              "with queues of words (ump)"),
    QN_OPTION_COUNT("root", "N", AT(root), "core at the root", 0,
                    QN_CORE_NUMBER_MAX),
    QN_OPTION_COUNT("size", "BYTES", AT(size), "bytes of a message (8)",
                    QN_VIRTUAL_SIZE_MIN, QN_VIRTUAL_SIZE_MAX),
    QN_OPTION_COUNT("count", "N", AT(count),
                    "operations of each topology, at least (25)", 1, 1000000),
    QN_OPTION_COUNT(
        "window", "W", AT(window),
        "outstanding operations of the throughput part (16, or what "
        "16 KiB hold)",
        1, QN_OPERATION_WINDOW_MAX),
    QN_OPTION_COUNT("sources", "N", AT(sources),
                    "ack: nodes that submit, the first of the group; all "
                    "deliver in one order (the root alone)",
                    1, QN_CORES_MAX),
    QN_OPTION("alone", NULL, qn_option_flag, AT(alone),
              "one operation at a time, from its begin to its end, as the "
              "prediction has it; no throughput"),
    QN_OPTION("bare", NULL, qn_option_flag, AT(bare),
              "only transfers have a price, as in the prediction"),
    QN_OPTION("software", NULL, qn_option_flag, AT(software),
              "library calls cost what they do on a real machine"),
    QN_SIMULATE_TERMS(AT_TERMS),
    QN_OPTION_COUNT("seed", "N", AT(seed), "of jitter and of ties (1)", 0, 0),
    QN_OPTION("jitter", "PART", qn_option_double, AT(jitter),
              "each price is up to this part larger: 0.05 (0)"),
    QN_OPTION("fault", "SPEC", take_fault, 0,
              "kill:NODE@TIMEus, stop:NODE@FROMus-UNTILus, slow:NODE*FACTOR or "
              "lines:NODE*FACTOR; may be repeated"),
    QN_OPTION("json", NULL, qn_option_flag, AT(json), "print a JSON object"),
    QN_OPTION("plot", "FILE.svg", qn_option_string, AT(plot),
              "draw the last operation of the first topology"),
    QN_OPTION("trace", "FILE.json", qn_option_string, AT(trace),
              "write it as a trace file for Perfetto or chrome://tracing"),
};

static bool parse_options(struct qn_simulate *s, int argc, char **argv,
                          int *status)
{
    const struct qn_options o = {
        s->program,
        "Run an operation of the library on a described machine, in virtual "
        "time, and\ncompare it with the prediction. docs/simulator.md says how "
        "far to trust the figures.",
        table, QN_ARRAY_COUNT(table), s};
    return qn_options_parse(&o, argc, argv, status);
}

static int check(const struct qn_simulate *s)
{
    const char *wrong = qn_simulate_terms_wrong(&s->terms);
    if (wrong != NULL) {
        return qn_simulate_fail(s, wrong);
    }
    if (s->window * (s->size + 8) > QN_OPERATION_LANE_BYTES) {
        return qn_simulate_fail(
            s, "--window times --size exceeds 16 KiB; reduce one of them");
    }
    if ((s->op == QN_VIRTUAL_REDUCE || s->op == QN_VIRTUAL_ALLREDUCE) &&
        (s->size % 8 != 0 || s->size > 48)) {
        return qn_simulate_fail(
            s, "--size of a reduction is 8 to 48 bytes, a multiple of 8");
    }
    const bool forms = s->forms != NULL;
    if (forms && s->op != QN_VIRTUAL_BARRIER) {
        return qn_simulate_fail(
            s, "--form is for barrier; other operations have none");
    }
    if (forms && (s->plot != NULL || s->trace != NULL)) {
        return qn_simulate_fail(
            s, "--plot and --trace draw a topology; leave --form out");
    }
    if (s->sources > 0 && s->op != QN_VIRTUAL_ACK) {
        return qn_simulate_fail(
            s, "--sources is for ack; other operations have none");
    }
    if (s->sources > 0 && (s->alone || s->plot != NULL || s->trace != NULL)) {
        return qn_simulate_fail(s, "--sources runs without --alone, --plot and "
                                   "--trace; leave them out");
    }
    if (s->machine == NULL) {
        return qn_simulate_fail(s,
                                "--machine is required; for example --machine "
                                "machines/epyc_9754_1x128");
    }
    if (s->nodes > 0 && s->cores != NULL) {
        return qn_simulate_fail(
            s, "--nodes and --cores exclude each other; remove one of them");
    }
    int status = qn_simulate_forms_check(s);
    if (status == 0 && s->plot != NULL) {
        status = qn_output_path_check(s->program, "plot", s->plot,
                                      "name a file in it");
    }
    if (status == 0 && s->trace != NULL) {
        status = qn_output_path_check(s->program, "trace", s->trace,
                                      "name a file in it");
    }
    return status;
}

/* ---- the machine ---- */

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int choose_cores(struct qn_simulate *s, const struct qn_machine *all)
{
    struct qn_parse_error parse_error = {""};
    uint32_t index[QN_CORES_MAX], count = all->n;
    if (s->cores != NULL) {
        if (qn_cores_parse(index, &count, all, s->cores, &parse_error) !=
            QN_OK) {
            return qn_simulate_fail(s, parse_error.text);
        }
    } else {
        qn_cores_deal(index, all);
        count = s->nodes > 0 ? (uint32_t)s->nodes : all->n;
    }
    if (count > all->n) {
        return qn_simulate_fail(
            s, "--nodes: the machine has fewer cores; each node needs "
               "one of its own");
    }
    if (count != 2 && s->op == QN_VIRTUAL_CHANNEL) {
        return qn_simulate_fail(s, "a channel has 2 nodes; give --cores A,B");
    }
    if (count < 2) {
        return qn_simulate_fail(s,
                                "an operation needs 2 nodes; the group has 1");
    }
    if (s->sources > count) {
        return qn_simulate_fail(s, "--sources: the group has fewer nodes");
    }
    qsort(index, count, sizeof index[0], by_value);
    int err = qn_machine_restrict(&s->m, all, index, count);
    return err == QN_OK ? 0 : qn_simulate_fail(s, qn_strerror(err));
}

/* A tiled machine is known by its price list; costs are derived from it. */
static int load_tiled(struct qn_simulate *s, struct qn_machine **all,
                      struct qn_parse_error *parse_error)
{
    int err = qn_tiled_load(&s->tiled, s->machine, parse_error);
    if (err == QN_OK && s->tiled.kind == QN_TILED_SCC) {
        return qn_parse_error_set(
            parse_error, s->machine, 0, "kind",
            "an scc has no coherent memory; what goes through its message "
            "buffers is in quoin sim replay scc; choose another machine");
    }
    if (err == QN_OK && (s->bare || qn_simulate_terms_any(&s->terms))) {
        return qn_parse_error_set(
            parse_error, s->machine, 0, "kind",
            "--bare, --store-buffer, --poll, --prefetch, --link, --queued, "
            "--memory, --watched and --hyper-threads are for coherent "
            "machines; leave them out");
    }
    return err == QN_OK ? qn_tiled_machine(all, &s->tiled) : err;
}

static int load_machine(struct qn_simulate *s)
{
    struct qn_parse_error parse_error = {""};
    struct qn_machine *all = NULL;
    s->is_tiled = qn_tiled_is(s->machine);
    int err = s->is_tiled ? load_tiled(s, &all, &parse_error)
                          : qn_machine_load(&all, s->machine, &parse_error);
    if (err != QN_OK || all == NULL) {
        return qn_simulate_fail(s, parse_error.text[0] != '\0'
                                       ? parse_error.text
                                       : qn_strerror(err));
    }
    int status =
        qn_machine_has_costs(all)
            ? choose_cores(s, all)
            : qn_simulate_fail(s, "the machine has no costs; measure it with "
                                  "quoin machine --measure");
    s->clock_known = all->facts.clock_ghz > 0;
    s->ghz = s->clock_known ? all->facts.clock_ghz : QN_GHZ_USUAL;
    qn_machine_destroy(all);
    for (uint32_t i = 0; i < s->faults && status == 0; i++) {
        if (s->fault[i].node >= s->m->n) {
            status = qn_simulate_fail(
                s, "--fault: no such node; nodes are numbered from 0 "
                   "in the order of their cores");
        }
    }
    return status;
}

/* Lanes need coherent memory, which all of these machines have. */
static int check_transport(struct qn_simulate *s)
{
    const struct qn_transport *t = qn_transport_find(s->transport_name);
    const struct qn_device_opts o = {.nodes = s->m->n, .lanes = QN_LANES};
    if (t == NULL) {
        return qn_simulate_fail(
            s, "--transport: no such transport; choose ump, ffq, ffq_shared or "
               "udn");
    }
    if (strcmp(t->name, "mpb") == 0) {
        return qn_simulate_fail(
            s, "--transport mpb: what goes through message buffers is priced "
               "by quoin sim replay scc only");
    }
    if (t->device != NULL && !s->is_tiled) {
        return qn_simulate_fail(
            s, "--transport udn: the machine has no queues of words; choose "
               "machines/tilegx_8036.json or machines/tilegx_8072.json");
    }
    if (t->device != NULL && t->device->bytes(&o) == 0) {
        return qn_simulate_fail(
            s, "--transport udn: its device has fewer cores; give --nodes");
    }
    s->transport = t;
    return 0;
}

/* ---- topologies ---- */

static int add_all(struct qn_simulate *s)
{
    struct qn_topology_spec_opts o = {.goal = qn_simulate_goal(s->op),
                                      .root = QN_ROOT_FREE,
                                      .q = qn_simulate_queued(s),
                                      .seed = 1,
                                      .one_tree = true};
    if (s->root != ROOT_FREE) {
        o.root = qn_machine_find(s->m, (uint32_t)s->root);
        if (o.root == s->m->n) {
            return qn_simulate_fail(
                s, "--root: no node runs on that core; choose one of "
                   "--cores, or see quoin machine");
        }
    }
    const char *name = NULL;
    const bool forms = s->forms != NULL;
    const bool named = qn_topology_names_next(&s->topologies, NULL) != NULL;
    bool all = !named && !forms;
    int status = all ? qn_simulate_add(s, "auto", &o) : 0;
    while (status == 0 &&
           (name = qn_topology_names_next(&s->topologies, name)) != NULL) {
        status = qn_simulate_add(s, name, &o);
    }
    all = all && s->op != QN_VIRTUAL_CHANNEL;
    for (uint32_t i = 0;
         all && status == 0 && (name = qn_topology_spec_name_at(i)) != NULL;
         i++) {
        bool runs = s->op == QN_VIRTUAL_ACK || strncmp(name, "ring", 4) != 0;
        status = runs ? qn_simulate_add(s, name, &o) : 0;
    }
    return status == 0 && (forms || (all && s->op == QN_VIRTUAL_BARRIER))
               ? qn_simulate_forms(s)
               : status;
}

/* ---- the command ---- */

#define WINDOW_USUAL 16u

static int run(struct qn_simulate *s)
{
    if (s->window == 0) {
        s->window =
            QN_MIN(WINDOW_USUAL, QN_OPERATION_LANE_BYTES / (s->size + 8));
    }
    int status = check(s);
    status = status == 0 ? load_machine(s) : status;
    status = status == 0 ? check_transport(s) : status;
    status = status == 0 ? add_all(s) : status;
    if (status == 0 && qn_simulate_report(s, stdout) != QN_OK) {
        fprintf(stderr, "%s: cannot write the result\n", s->program);
        status = 1;
    }
    for (uint32_t i = 0; i < s->rows && status == 0; i++) {
        if (s->row[i].wrong > 0) {
            fprintf(stderr, "%s: %s: %llu %s\n", s->program, s->row[i].name,
                    (unsigned long long)s->row[i].wrong,
                    s->op == QN_VIRTUAL_BARRIER
                        ? "times a member left before all had entered"
                        : "messages lost or damaged");
            status = 1;
        }
    }
    return status;
}

#define OPERATIONS                                                             \
    "broadcast, ack, reduce, allreduce, barrier, 2pc, channel, commit, auto, " \
    "large or replay"

static int find_operation(const char *name)
{
    for (uint32_t i = 0; i < QN_VIRTUALS; i++) {
        if (strcmp(name, qn_virtual_name(i)) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* The operation is the first word; without one there may be --help. */
static int take_operation(struct qn_simulate *s, int argc, char **argv,
                          char *program, size_t room)
{
    const char *name = argc > 1 ? argv[1] : "";
    snprintf(program, room, "quoin sim");
    s->program = program;
    if (strncmp(name, "--", 2) == 0) {
        return 0;
    }
    int op = find_operation(name);
    if (op < 0) {
        fprintf(stderr, "quoin sim: %s%s%s; the first word is " OPERATIONS "\n",
                *name == '\0' ? "no operation" : "unknown operation '", name,
                *name == '\0' ? "" : "'");
        return 2;
    }
    s->op = (enum qn_virtual)op;
    snprintf(program, room, "quoin sim %s", name);
    return 0;
}

static int command(struct qn_simulate *s, int argc, char **argv)
{
    char program[64];
    int status = take_operation(s, argc, argv, program, sizeof program);
    if (status != 0) {
        return status;
    }
    bool named = argc > 1 && argv[1][0] != '-';
    if (!parse_options(s, named ? argc - 1 : argc, named ? argv + 1 : argv,
                       &status)) {
        return status;
    }
    return named ? run(s)
                 : qn_simulate_fail(s, "name an operation first: " OPERATIONS);
}

int qn_simulate_command(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "replay") == 0) {
        return qn_replay_command(argc - 1, argv + 1);
    }
    if (argc > 1 && strcmp(argv[1], "commit") == 0) {
        return qn_commit_command(argc - 1, argv + 1);
    }
    if (argc > 1 && strcmp(argv[1], "large") == 0) {
        return qn_large_sim_command(argc - 1, argv + 1);
    }
    if (argc > 1 && strcmp(argv[1], "auto") == 0) {
        return qn_auto_command(argc - 1, argv + 1);
    }
    struct qn_simulate *s = calloc(1, sizeof *s);
    if (s == NULL) {
        fprintf(stderr, "quoin sim: %s\n", qn_strerror(QN_ENOMEM));
        return 1;
    }
    s->root = ROOT_FREE;
    s->transport_name = "ump";
    s->size = QN_VIRTUAL_SIZE_MIN;
    s->count = 25;
    s->seed = 1;
    int status = command(s, argc, argv);
    for (uint32_t i = 0; i < s->rows; i++) {
        qn_timed_result_free(&s->row[i].run);
    }
    qn_machine_destroy(s->m);
    qn_topology_names_fini(&s->topologies);
    free(s);
    return status;
}
