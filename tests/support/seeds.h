#ifndef QN_TEST_SEEDS_H
#define QN_TEST_SEEDS_H

/** What tests over many seeds share: which seeds they run, by the environment,
 *  and that their schedules have reached what they are for. */

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/test.h"

static inline uint64_t seeds_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

/** @param enough  Enough seeds were run to reach it. */
static inline void seeds_expect(const char *what, uint64_t times, bool enough)
{
    fprintf(stderr, "%-22s %10" PRIu64 "\n", what, times);
    cr_expect(!enough || times > 0, "%s was never reached", what);
}

#endif
