#ifndef QN_TESTS_UNIT_RIVAL_WORLD_H
#define QN_TESTS_UNIT_RIVAL_WORLD_H

/** Binomial and scatter-allgather broadcasts of several nodes in one thread, on
 * a strict chip, in an order that a seed chooses: roots that change and that
 * stay, lengths of none to several chunks.
 *  @return NULL, or what went wrong. */

#include <stdint.h>

const char *rival_traffic(uint64_t seed);

#endif
