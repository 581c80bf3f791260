/*
 * Seeded defects: under the sanitizer presets each of these tests must fail,
 * otherwise a passing run would prove nothing. seeded_defect.sh checks that it
 * does. Those that pass are for the tests of --filter.
 */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/support/test.h"

/* Visible to the linker, so that the compiler cannot remove them. */
void *seeded_block;
int seeded_number = INT_MAX;

Test(seeded_defect, leak)
{
    seeded_block = malloc(100);
    cr_assert_not_null(seeded_block);
    seeded_block = NULL;
}

Test(seeded_defect, overflow)
{
    seeded_number++;
}

/* Not inline, so that the compiler does not see the defect first. */
__attribute__((noinline)) static int first_byte(const char *block)
{
    return block[0];
}

Test(seeded_defect, use_after_free)
{
    seeded_block = calloc(1, 1);
    cr_assert_not_null(seeded_block);
    free(seeded_block);
    cr_assert_eq(first_byte(seeded_block), 0);
}

static void *count(void *arg)
{
    for (int i = 0; i < 1000; i++) {
        seeded_number--;
    }
    return arg;
}

Test(seeded_defect, race)
{
    pthread_t other;
    cr_assert_eq(pthread_create(&other, NULL, count, NULL), 0);
    count(NULL);
    pthread_join(other, NULL);
}

Test(seeded_defect, passes)
{
    cr_assert(seeded_number > 0);
}

Test(seeded_defect, passes_too)
{
    cr_assert(seeded_number > 0);
}
