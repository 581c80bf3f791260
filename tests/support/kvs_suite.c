#include "tests/support/kvs_suite.h"

struct world w;

void world_setup(void)
{
    world_init(&w);
}

void world_teardown(void)
{
    world_fini(&w);
}
