#ifndef QN_CORE_BASE_SUGGEST_H
#define QN_CORE_BASE_SUGGEST_H

/**
 * The name that the user probably meant: for one-line errors about a mistyped
 * subcommand or option. Pure, any thread, no allocation.
 */

#include <stddef.h>

/** Longer words are compared by their first QN_SUGGEST_LEN_MAX bytes. */
#define QN_SUGGEST_LEN_MAX 63

/**
 * Edit distance: insertions, deletions, replacements and swaps of neighbours
 * that turn `a` into `b`. O(strlen(a) * strlen(b)).
 */
size_t qn_edit_distance(const char *a, const char *b);

/**
 * The nearest name of a table.
 *
 * @param word    What was typed. Borrowed.
 * @param first   The first row's name: the address of its `const char *`
 *                member. The names are borrowed for the call.
 * @param stride  Bytes from one row to the next.
 * @param n       Rows, 0 allowed.
 * @return the nearest name, the first of equals: one slip away from `word`;
 *         else one that begins with it; else by distance. NULL if nothing is
 *         near: more than a third of the longer word, rounded up, would have
 *         to change.
 */
const char *qn_suggest(const char *word, const char *const *first,
                       size_t stride, size_t n);

#endif
