#include "core/base/suggest.h"

#include "core/base/bits.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/*
 * The restricted Damerau-Levenshtein distance, three rows at a time: a swap
 * of neighbours is the commonest slip of the fingers and counts as one.
 */

enum { ROW = QN_SUGGEST_LEN_MAX + 1 };

static size_t clipped_len(const char *s)
{
    size_t n = strlen(s);
    return QN_MIN(n, (size_t)QN_SUGGEST_LEN_MAX);
}

size_t qn_edit_distance(const char *a, const char *b)
{
    size_t rows[3][ROW];
    size_t la = clipped_len(a);
    size_t lb = clipped_len(b);
    for (size_t j = 0; j <= lb; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= la; i++) {
        size_t *now = rows[i % 3];
        const size_t *up = rows[(i + 2) % 3];
        const size_t *upup = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t best = up[j - 1] + (a[i - 1] != b[j - 1]);
            best = QN_MIN(best, up[j] + 1);
            best = QN_MIN(best, now[j - 1] + 1);
            bool swapped =
                i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            now[j] = swapped ? QN_MIN(best, upup[j - 2] + 1) : best;
        }
    }
    return rows[la % 3][lb];
}

/* How far `name` is from what was typed: one slip, then a beginning, then more
 * slips. A word of one or two letters is a beginning rather than a slip. */
static size_t rank(const char *word, size_t len, const char *name)
{
    size_t distance = qn_edit_distance(word, name);
    size_t longer = QN_MAX(len, clipped_len(name));
    if (distance <= 1 && len > 2) {
        return distance;
    }
    if (len > 0 && strncmp(word, name, len) == 0) {
        return 2;
    }
    return distance <= (longer + 2) / 3 ? 2 + distance : SIZE_MAX;
}

const char *qn_suggest(const char *word, const char *const *first,
                       size_t stride, size_t n)
{
    const char *best = NULL;
    size_t best_rank = SIZE_MAX;
    size_t len = clipped_len(word);
    const char *row = (const char *)first;
    for (size_t i = 0; i < n; i++, row += stride) {
        const char *name = *(const char *const *)(const void *)row;
        size_t r = rank(word, len, name);
        if (r < best_rank) {
            best = name;
            best_rank = r;
        }
    }
    return best;
}
