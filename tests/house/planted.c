/*
 * Defects on purpose: under the sanitizer presets each of these tests must
 * fail, or a green run would mean nothing. planted.sh looks that it does.
 */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/support/test.h"

/* Visible to the linker, so that no compiler may do without them. */
void *planted_block;
int planted_number = INT_MAX;

Test(planted, leak)
{
    planted_block = malloc(100);
    cr_assert_not_null(planted_block);
    planted_block = NULL;
}

Test(planted, overflow)
{
    planted_number++;
}

/* Out of line, or the compiler sees the defect first. */
__attribute__((noinline)) static int first_byte(const char *block)
{
    return block[0];
}

Test(planted, use_after_free)
{
    planted_block = calloc(1, 1);
    cr_assert_not_null(planted_block);
    free(planted_block);
    cr_assert_eq(first_byte(planted_block), 0);
}

static void *count(void *arg)
{
    for (int i = 0; i < 1000; i++) {
        planted_number--;
    }
    return arg;
}

Test(planted, race)
{
    pthread_t other;
    cr_assert_eq(pthread_create(&other, NULL, count, NULL), 0);
    count(NULL);
    pthread_join(other, NULL);
}
