#ifndef QN_TESTS_OPENMP_SPY_H
#define QN_TESTS_OPENMP_SPY_H

#include <stdint.h>

/** Calls of GOMP_barrier that libgomp has had. Of spy.so; NULL without it. */
__attribute__((weak)) uint64_t openmp_spy_calls(void);

#endif
