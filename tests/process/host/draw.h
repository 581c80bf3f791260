#ifndef QN_TESTS_PROCESS_HOST_DRAW_H
#define QN_TESTS_PROCESS_HOST_DRAW_H

/* Numbers by the seed. Any thread; not a forked child. */

#include <stdbool.h>
#include <stdint.h>

void draw_begin(uint64_t seed);
/* @return 0 .. below - 1. */
uint32_t draw(uint32_t below);
/* True in one of n calls. */
bool draw_one_of(uint32_t n);
/* Sleep for at most us_max, whatever interrupts it: a host that turns late. */
void draw_pause(uint32_t us_max);

#endif
