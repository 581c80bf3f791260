#ifndef QN_TESTS_SUPPORT_TEST_H
#define QN_TESTS_SUPPORT_TEST_H

/**
 * The header of every test. Criterion runs the tests; it cannot start under
 * ThreadSanitizer and a leak report does not fail its tests, so the sanitizer
 * presets build the same sources on the small runner of runner.h, which
 * supports the subset of Criterion in use: Test(suite, name, .timeout, .signal,
 * .exit_code, .init, .fini), cr_assert*, cr_expect*.
 */

#ifdef QN_TEST_CRITERION
#include <criterion/criterion.h>
#include <signal.h>
#else
#include "tests/support/runner.h"
#endif

#endif
