#ifndef QN_TESTS_SUPPORT_KVS_SUITE_H
#define QN_TESTS_SUPPORT_KVS_SUITE_H

/**
 * Tests of commands: each has its own store fixture, called w.
 *
 *     STORE_TEST(command_string, get_answers_the_value_or_null)
 *     {
 *         EXPECT(&w, "GET k", "$-1\r\n");
 *     }
 */

#include "tests/support/store_fixture.h"
#include "tests/support/test.h"

extern struct store_fixture w;

void store_fixture_setup(void);
void store_fixture_teardown(void);

#define STORE_TEST(suite, name)                                                \
    Test(suite, name, .init = store_fixture_setup,                             \
         .fini = store_fixture_teardown)

#endif
