#ifndef QN_MACHINE_JSON_LINE_INTERNAL_H
#define QN_MACHINE_JSON_LINE_INTERNAL_H

/** Lines of JSON values, which jansson does not keep. */

#include <stddef.h>
#include <stdint.h>

/** One step into a document: a member by name, or an element by index. */
struct qn_json_step {
    const char *key; /* NULL: the element `index` of an array */
    size_t index;
};

/**
 * The line on which a value begins.
 *
 * @param text   [len] JSON that a parser has accepted.
 * @param steps  [count] the way from the root. A way that does not exist ends
 *               at the last value that does.
 * @return From 1. O(len).
 */
uint32_t qn_json_line(const char *text, size_t len,
                      const struct qn_json_step *steps, size_t count);

#endif
