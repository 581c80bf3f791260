/*
 * Runs of the simulator, written as traces (tests/sim/paxos/run_trace.h).
 *
 *     record_runs process FROM COUNT        the next COUNT seeds that fit the
 *     record_runs memory FROM COUNT         model of that acceptor
 *     record_runs run SEED                  its trace, to stdout
 *     record_runs_mutants run SEED MUTANT   the same, with a defect of
 *                                           paxos/mutant.h
 *
 * A run that violates an invariant of the simulator aborts, as always. What it
 * did until then has been written.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/traces/mutant_name.h"
#include "tests/sim/paxos/sim.h"

static void print_seeds(bool memory, uint64_t from, uint64_t count)
{
    for (uint64_t seed = from; count > 0; seed++) {
        if (sim_fits_model(seed, memory)) {
            printf("%" PRIu64 "\n", seed);
            count--;
        }
    }
}

int main(int argc, char **argv)
{
    bool memory = argc == 4 && strcmp(argv[1], "memory") == 0;
    if (memory || (argc == 4 && strcmp(argv[1], "process") == 0)) {
        print_seeds(memory, strtoull(argv[2], NULL, 10),
                    strtoull(argv[3], NULL, 10));
        return 0;
    }
    bool run = (argc == 3 || argc == 4) && strcmp(argv[1], "run") == 0;
    if (!run || (argc == 4 && !mutant_choose(argv[3]))) {
        fprintf(stderr,
                "usage: record_runs process|memory FROM COUNT | run SEED\n"
                "       record_runs_mutants run SEED MUTANT\n");
        return 2;
    }
    sim_record(strtoull(argv[2], NULL, 10), "test_paxos_sim", stdout);
    return 0;
}
