#ifndef QN_LOADGEN_BASE_LIST_H
#define QN_LOADGEN_BASE_LIST_H

/**
 * Values of options that are lists with commas. A comma too many, anywhere, is
 * an empty element, which is no count and no name. Blanks in front of an
 * element are skipped. Topologies, whose names may have commas of their own,
 * and cores have other rules (loadgen/topo/model).
 *
 * Pure. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Take the first element off a list.
 *
 *     const char *word;
 *     size_t len;
 *     for (const char *at = list; qn_list_next(&at, &word, &len);) ...
 *
 * @param at    The rest of the list; moved. NULL: there is none.
 * @param word  Filled: its bytes, not terminated; they are in the list.
 * @param len   Filled: how many; 0: the element is empty.
 * @return false: the list is over, and nothing is filled.
 */
bool qn_list_next(const char **at, const char **word, size_t *len);

/**
 * Counts (qn_parse_count): "2,4", "64ki,1mi".
 *
 * @param to  [room] Filled; each from `least` to `most`.
 * @return how many; 0: none, too many, or one that is no such count.
 */
uint32_t qn_parse_counts(const char *text, uint64_t least, uint64_t most,
                         uint64_t *to, uint32_t room);

#endif
