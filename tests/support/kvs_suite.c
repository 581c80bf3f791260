#include "tests/support/kvs_suite.h"

struct store_fixture w;

void store_fixture_setup(void)
{
    store_fixture_init(&w);
}

void store_fixture_teardown(void)
{
    store_fixture_fini(&w);
}
