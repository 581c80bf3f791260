#ifndef QN_TESTS_SIM_SIM_H
#define QN_TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/sim/paxos/coverage.h"

/** Run one seed to its end: faults, then healing, then progress within a
 *  bound. Aborts on a violated invariant, after printing how to replay it.
 *  @param cover  Added to; NULL: not counted.
 *  @return a hash of all that every step did: the same for the same seed. */
uint64_t sim_run(uint64_t seed, const char *program, struct coverage *cover);

/** This seed runs with the memory acceptor. */
bool sim_in_memory(uint64_t seed);

/** In this seed members come and go. */
bool sim_has_seats(uint64_t seed);

/** Run one seed likewise, and write what its machines did (run_trace.h).
 *  @param f  Borrowed. */
void sim_record(uint64_t seed, const char *program, FILE *f);

/** What this seed does is in the models of that acceptor: three nodes, deaths
 * or suspicions, and no group that has to go on by force. */
bool sim_fits_model(uint64_t seed, bool memory);

#endif
