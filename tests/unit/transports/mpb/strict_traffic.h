#ifndef QN_TESTS_UNIT_MPB_STRICT_TRAFFIC_H
#define QN_TESTS_UNIT_MPB_STRICT_TRAFFIC_H

/** Two nodes in one thread that send, receive, look for room and sleep, in an
 *  order that a seed chooses, on a strict chip. */

#include <stdint.h>

/** @return NULL, or what went wrong. */
const char *strict_traffic(uint64_t seed);

#endif
