#include "loadgen/cli/quoin.h"
#include "core/base/bits.h"
#include "core/base/suggest.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * The program `quoin`: a table of subcommands. A name of two words ("bench
 * channel") takes two arguments of the command line. The longest matching name
 * wins, so "bench" alone could become a row, too.
 */

struct row {
    const char *name; /* one or two words */
    qn_subcommand_fn *run;
    const char *summary;
};

static const struct row table[] = {
    {"bench channel", qn_bench_channel,
     "measure a queuepair beside plain shared memory"},
    {"bench broadcast", qn_bench_broadcast,
     "measure broadcasts over trees beside their prediction"},
    {"bench ack", qn_bench_ack, "the same for acknowledged broadcasts"},
    {"bench reduce", qn_bench_reduce, "the same for reductions"},
    {"bench allreduce", qn_bench_allreduce, "the same for all-reductions"},
    {"bench 2pc", qn_bench_2pc, "the same for two-phase commits"},
    {"bench tree-barrier", qn_bench_tree_barrier,
     "the same for barriers, beside pthread_barrier, too"},
    {"bench barrier", qn_bench_barrier,
     "measure barriers beside those of OpenMP, MPI and the system"},
    {"bench collectives", qn_bench_collectives,
     "measure collective operations as a program calls them"},
    {"bench coll", qn_bench_coll,
     "measure large collectives by name, beside memcpy"},
    {"bench ring", qn_bench_ring,
     "the same for diamond rings, over queuepairs and as tasks"},
    {"bench commit", qn_bench_commit,
     "measure one command through consensus, bare and in members"},
    {"bench feed", qn_bench_feed,
     "measure what subscribers of a group's changes cost writers"},
    {"bench lock", qn_bench_lock, "measure a counter under each lock"},
    {"bench delegate", qn_bench_delegate,
     "measure a counter by each backend of delegation"},
    {"bench queue", qn_bench_queue, "measure concurrent queues"},
    {"bench stack", qn_bench_stack, "measure concurrent stacks"},
    {"load", qn_load, "drive a RESP server; report rates and latencies"},
    {"machine", qn_machine_command,
     "show and measure a machine: its cores, costs of messages"},
    {"bench calls", qn_bench_calls,
     "measure what calls of the library cost by themselves"},
    {"bench store", qn_bench_store,
     "measure the store: operations, growth, memory"},
    {"bench stall", qn_bench_stall,
     "compare open and closed loops on a stalling server"},
    {"verify", qn_verify_command,
     "check whether recorded histories are linearizable"},
    {"events", qn_events_command,
     "show recorded events: roles, deaths, elections, stalls"},
    {"recover", qn_recover_command,
     "continue a stopped group from its longest log"},
    {"member", qn_member_command,
     "list, add and remove members of a running group"},
    {"tree", qn_tree_command,
     "plan broadcast trees: predict, compare, explain, draw"},
    {"sim", qn_sim_command,
     "run the library on a described machine, in virtual time"},
    {NULL, NULL, NULL}, /* end */
};

/* Is the name "GROUP ..."? */
static bool is_of(const char *name, const char *group)
{
    size_t len = strlen(group);
    return strncmp(name, group, len) == 0 && name[len] == ' ';
}

static bool is_group(const char *word)
{
    for (const struct row *r = table; r->name != NULL; r++) {
        if (is_of(r->name, word)) {
            return true;
        }
    }
    return false;
}

/* @param group  List only names with this first word; NULL: all. */
static void list(FILE *to, const char *group)
{
    fputs("usage: quoin SUBCOMMAND [OPTIONS]\n\n", to);
    for (const struct row *r = table; r->name != NULL; r++) {
        if (group == NULL || is_of(r->name, group)) {
            fprintf(to, "  %-19s %s\n", r->name, r->summary);
        }
    }
    fputs("\n`quoin SUBCOMMAND --help` shows its options; `quoin --version`.\n",
          to);
}

/* Number of arguments of argv that match the words of `name`; 0: no match. */
static int words_matched(const char *name, int argc, char **argv)
{
    int taken = 0;
    while (taken < argc) {
        size_t len = strcspn(name, " ");
        if (strlen(argv[taken]) != len || memcmp(name, argv[taken], len) != 0) {
            return 0;
        }
        taken++;
        if (name[len] == '\0') {
            return taken;
        }
        name += len + 1;
    }
    return 0;
}

static const char *nearest(const char *typed)
{
    return qn_suggest(typed, &table[0].name, sizeof table[0],
                      QN_ARRAY_COUNT(table) - 1);
}

static int unknown(int argc, char **argv)
{
    char typed[256];
    snprintf(typed, sizeof typed, "%s", argv[0]);
    const char *near = nearest(typed);
    if (argc > 1 && argv[1][0] != '-') {
        char two[256];
        snprintf(two, sizeof two, "%s %s", argv[0], argv[1]);
        const char *near2 = nearest(two);
        if (near2 != NULL) {
            near = near2;
            memcpy(typed, two, sizeof typed);
        }
    }
    if (near != NULL) {
        fprintf(stderr, "quoin: unknown subcommand '%s'; did you mean '%s'?\n",
                typed, near);
    } else {
        fprintf(stderr, "quoin: unknown subcommand '%s'; see quoin --help\n",
                typed);
    }
    return 2;
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        list(stdout, NULL);
        return 0;
    }
    if (is_group(argv[1]) && (argc == 2 || strcmp(argv[2], "--help") == 0)) {
        list(stdout, argv[1]);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("quoin " QN_VERSION);
        return 0;
    }
    /* Options have 0 for no descriptor, so none of ours is 0. */
    if (fcntl(STDIN_FILENO, F_GETFD) < 0) {
        (void)open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    const struct row *best = NULL;
    int best_words = 0;
    for (const struct row *r = table; r->name != NULL; r++) {
        int words = words_matched(r->name, argc - 1, argv + 1);
        if (words > best_words) {
            best = r;
            best_words = words;
        }
    }
    if (best == NULL) {
        return unknown(argc - 1, argv + 1);
    }
    return best->run(argc - best_words, argv + best_words);
}
