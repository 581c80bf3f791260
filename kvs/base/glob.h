#ifndef QN_KVS_BASE_GLOB_H
#define QN_KVS_BASE_GLOB_H

/** Glob patterns, as Redis matches them (KEYS, SCAN MATCH, CONFIG GET). */

#include <stdbool.h>

#include "core/base/bits.h"

/**
 * True if `pattern` matches the whole `text`.
 *
 *   *        any bytes, none included; but `*` does not match an empty text
 *   ?        one byte
 *   [a-cx]   one of these; [^...] none of these. An unclosed class ends with
 *            the pattern; a reversed range is turned round; bytes compare as
 *            signed
 *   \c       c itself, also in a class
 *
 * @param nocase  Letters of both cases are equal, except behind a backslash in
 *                a class.
 *
 * Pure, any thread. O(pattern * text) in the worst case, no recursion.
 */
bool qn_glob_match(struct qn_slice pattern, struct qn_slice text, bool nocase);

#endif
