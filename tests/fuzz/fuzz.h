#ifndef QN_TESTS_FUZZ_FUZZ_H
#define QN_TESTS_FUZZ_FUZZ_H

/** The entry of libFuzzer. Each fuzz_*.c defines it once; it aborts on a
 *  wrong result and returns 0. */

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#endif
