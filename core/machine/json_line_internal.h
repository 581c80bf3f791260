#ifndef QN_MACHINE_JSON_LINE_INTERNAL_H
#define QN_MACHINE_JSON_LINE_INTERNAL_H

/** Lines and names of JSON values, which jansson does not keep. */

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

/**
 * The way to a place, "send[0][1]", as far as the text before it says.
 *
 * @param text    [len] Any bytes.
 * @param offset  Of the place; behind the end: the end.
 * @param name    [size] Filled, cut to size; empty: in no value. O(offset).
 */
void qn_json_name(const char *text, size_t len, size_t offset, char *name,
                  size_t size);

/** At the first byte of a value: the byte behind it, at most `end`. O(value).
 *  What is no value ends somewhere. */
const char *qn_json_skip_value(const char *at, const char *end);

#endif
