#ifndef QN_TESTS_SIM_EXPLORE_ORDERED_LINES_H
#define QN_TESTS_SIM_EXPLORE_ORDERED_LINES_H

/**
 * The operations with an order above relaxed that stand in a source file: what
 * an exploration must come to before it can judge them (orders.h).
 */

#include <stdint.h>

#define ORDERED_LINES_MAX 128u
#define ORDERED_LINE_TEXT 100u

/** A statement with such an operation. */
struct ordered_line {
    int first, last;              /* lines, from 1 */
    char text[ORDERED_LINE_TEXT]; /* of the line that names the order */
};

/**
 * Read a file. Comments, macros and what only a defect of a *_mutant.h does
 * (from "if (..._MUTANT(...)) {" to its end) are left out.
 *
 * @param file  As __FILE__ of the build tells: up to "core/" it does not count.
 * @param out   [ORDERED_LINES_MAX] Filled.
 * @return how many; aborts the test if the file cannot be read.
 */
uint32_t ordered_lines(const char *file, struct ordered_line *out);

#endif
