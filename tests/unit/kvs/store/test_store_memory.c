#include "tests/unit/kvs/store/store_support.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

/* What a key costs, all told: 8-byte keys, 16-byte values. Of 10^5 keys on,
 * at most 72 bytes, at any size: entries, malloc's headers and rounding, the
 * table, its directory and lines, the stripes and the store itself. */

#define BYTES_PER_KEY_MAX 72u

static size_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* Resident memory, bytes. */
static size_t resident(void)
{
    size_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    cr_assert_not_null(f);
    cr_assert_eq(fscanf(f, "%*u %zu", &pages), 1);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void grow(struct qn_store *s, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        struct number_key k = {i};
        cr_assert_eq(put(s, 0, key_of(&k), text("0123456789abcdef"), i), QN_OK);
        if (i % 64 == 0) {
            qn_store_reclaim(s, 1000);
        }
    }
    qn_store_reclaim(s, 1000);
}

/* From 10^5 to 2.1 * 10^6 in steps of 2 %: the cost per key is periodic in
 * the logarithm of their number, so this is every size. */
Test(store_memory, a_small_key_costs_at_most_72_bytes, .timeout = 300)
{
    qn_store_tune_malloc(); /* as the server does */
    size_t in_use_before = in_use();
    size_t resident_before = resident();
    struct qn_store *s = store_of(16, 0);
    uint64_t keys = 0;
    double worst = 0;
    for (uint64_t next = 100000; next < 2100000; next += next / 50) {
        grow(s, keys, next);
        keys = next;
        double cost = (double)(in_use() - in_use_before) / (double)keys;
        worst = QN_MAX(worst, cost);
        struct qn_store_stats st;
        qn_store_stats(s, &st);
        double counted = (double)st.memory_bytes / (double)keys;
        cr_assert(counted > 0.98 * cost && counted < 1.02 * cost,
                  "%.2f bytes counted, %.2f in use", counted, cost);
        cr_assert_leq(cost, BYTES_PER_KEY_MAX, "%.2f bytes at %zu keys", cost,
                      (size_t)keys);
        if (keys > 1000000) {
            cost = (double)(resident() - resident_before) / (double)keys;
            cr_assert_leq(cost, BYTES_PER_KEY_MAX,
                          "%.2f bytes resident at %zu keys", cost,
                          (size_t)keys);
        }
    }
    fprintf(stderr, "at most %.2f bytes per key\n", worst);
    qn_store_destroy(s);
}

/* Replacing values, also by turns of two sizes, does not make it grow. */
Test(store_memory, replacing_values_costs_nothing_lasting, .timeout = 300)
{
    qn_store_tune_malloc();
    struct qn_store *s = store_of(1, 0);
    grow(s, 0, 200000);
    size_t before = in_use();
    uint64_t r = 1;
    for (uint64_t i = 0; i < 400000; i++) {
        struct number_key k = {draw(&r) % 200000};
        put(s, 0, key_of(&k), text("fedcba9876543210"), i);
        if (i % 64 == 0) {
            qn_store_reclaim(s, 1000);
        }
    }
    qn_store_reclaim(s, 1000);
    cr_assert_leq(in_use(), before + 65536);
    struct qn_store_stats st;
    qn_store_stats(s, &st);
    cr_assert_leq(st.memory_bytes, before + 65536);
    void *end = sbrk(0);
    qn_store_flush(s, UINT32_MAX, 1);
    while (qn_store_reclaim(s, 1000)) {
    }
    /* Giving the heap back in one go would be a pause. */
    cr_assert_eq(sbrk(0), end);
    qn_store_stats(s, &st);
    cr_assert_leq(st.memory_bytes, (1u << 20), "%zu bytes after a flush",
                  (size_t)st.memory_bytes);
    qn_store_destroy(s);
}
