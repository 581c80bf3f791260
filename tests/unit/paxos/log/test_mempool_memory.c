/* What the pool takes of the system: sizes of a sanitizer are others. */
#include "paxos/log/mempool.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/test.h"

static struct qn_mempool pool;

static void *resize(void *p, size_t bytes)
{
    return pool.alloc.resize(pool.alloc.ctx, p, bytes);
}

static size_t resident_bytes(void)
{
    unsigned long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    cr_assert_not_null(f);
    cr_assert_eq(fscanf(f, "%lu %lu", &size, &resident), 2);
    fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* As with the process acceptor: a log of 64 MiB, entries of the store made
 * meanwhile, malloc as a replica has it: what is freed is the system's again,
 * but for what is kept. */
Test(mempool_memory, a_long_log_leaves_no_holes_among_other_blocks)
{
    enum { N = 64, BYTES = 1000000 };
    void *p[N], *other[N];
    qn_mempool_init(&pool, SIZE_MAX, NULL);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    size_t before = resident_bytes();
    for (int i = 0; i < N; i++) {
        p[i] = resize(NULL, BYTES);
        memset(p[i], 1, BYTES);
        other[i] = malloc(100);
    }
    cr_assert_geq(resident_bytes(), before + (size_t)N * BYTES);
    for (int i = 0; i < N; i++) {
        resize(p[i], 0);
    }
    cr_assert_leq(resident_bytes(), before + QN_MEMPOOL_BYTES + (4u << 20));
    for (int i = 0; i < N; i++) {
        free(other[i]);
    }
    qn_mempool_fini(&pool);
}
