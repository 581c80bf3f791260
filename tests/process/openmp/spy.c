/*
 * Counts the calls of GOMP_barrier that come to libgomp. Preloaded behind
 * libquoin-gomp.so it sees those that that library passes on.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/atomic.h"
#include "tests/process/openmp/spy.h"

void GOMP_barrier(void);

static qn_a64 calls;

uint64_t openmp_spy_calls(void)
{
    return qn_load(&calls, QN_SEQ_CST);
}

void GOMP_barrier(void)
{
    void (*next)(void);
    const void *address = dlsym(RTLD_NEXT, "GOMP_barrier");
    if (address == NULL) {
        abort();
    }
    memcpy(&next, &address, sizeof address);
    (void)qn_fetch_add(&calls, 1, QN_SEQ_CST);
    next();
}
