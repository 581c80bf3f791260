#ifndef QN_TESTS_SUPPORT_KVS_SUITE_H
#define QN_TESTS_SUPPORT_KVS_SUITE_H

/**
 * Tests of commands: each begins in a world of its own, called w.
 *
 *     WORLD_TEST(command_string, get_answers_the_value_or_null)
 *     {
 *         EXPECT(&w, "GET k", "$-1\r\n");
 *     }
 */

#include "tests/support/kvs_world.h"
#include "tests/support/test.h"

extern struct world w;

void world_setup(void);
void world_teardown(void);

#define WORLD_TEST(suite, name)                                                \
    Test(suite, name, .init = world_setup, .fini = world_teardown)

#endif
