#ifndef QN_TESTS_SIM_SIM_H
#define QN_TESTS_SIM_SIM_H

#include <stdint.h>

/** Run one seed to its end: faults, then healing, then progress within a
 *  bound. Aborts on a violated invariant, after printing how to replay it. */
void sim_run(uint64_t seed, const char *program);

#endif
