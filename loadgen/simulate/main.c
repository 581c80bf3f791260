/*
 * The program behind `quoin sim` and `quoin bench lock --machine`. It is a
 * program of its own because the library in it is compiled for the simulated
 * machine: its functions have the names of those in quoin, which run on the
 * real one.
 */

#include <string.h>

#include "core/base/bits.h"
#include "loadgen/simulate/command.h"
#include "loadgen/simulate/locks/locks_round.h"
#include "loadgen/sync/sync_bench.h"

/* argv[0] is the last word of the subcommand, as in quoin. */
int main(int argc, char **argv)
{
    static const char *const benches[] = {"lock", "delegate", "queue", "stack"};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(benches); i++) {
        if (argc > 0 && strcmp(argv[0], benches[i]) == 0) {
            return qn_sync_bench(&qn_locks_host, benches[i], argc, argv);
        }
    }
    return qn_simulate_command(argc, argv);
}
