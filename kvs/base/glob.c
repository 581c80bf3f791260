/*
 * Redis' stringmatch, without its recursion.
 *
 * Only `*` needs a choice. It is enough to remember the last one: if the rest
 * of the pattern behind it matches nowhere, moving an earlier `*` cannot help,
 * because the later one has tried all those positions. A mismatch therefore
 * returns to the last `*` and lets it match one byte more. The worst case is
 * the product of the lengths, not exponential.
 *
 * Oddities of Redis that clients can see: an empty text matches an empty
 * pattern only; the end of the pattern closes an open class, so `[^` matches
 * any byte and `a[` nothing; in `[a-]` the bracket is the end of a range;
 * ranges compare signed bytes, like `char` on x86.
 */
#include "kvs/base/glob.h"

#include <stdint.h>

static uint8_t fold(uint8_t c, bool nocase)
{
    return nocase && c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}

static bool in_range(uint8_t from, uint8_t to, uint8_t c, bool nocase)
{
    int8_t low = (int8_t)fold(from, nocase);
    int8_t high = (int8_t)fold(to, nocase);
    int8_t x = (int8_t)fold(c, nocase);
    /* Redis orders the ends before it folds them. */
    if ((int8_t)from > (int8_t)to) {
        int8_t swap = low;
        low = high;
        high = swap;
    }
    return x >= low && x <= high;
}

/* Match c against the class that starts behind `[` at *at; *at moves behind
 * the closing bracket, or to the end. */
static bool class_match(struct qn_slice p, size_t *at, uint8_t c, bool nocase)
{
    size_t i = *at;
    bool negated = i < p.len && p.data[i] == '^';
    bool found = false;
    for (i += negated; i < p.len && p.data[i] != ']'; i++) {
        size_t left = p.len - i;
        if (p.data[i] == '\\' && left >= 2) {
            i++;
            found |= p.data[i] == c;
        } else if (left >= 3 && p.data[i + 1] == '-') {
            found |= in_range(p.data[i], p.data[i + 2], c, nocase);
            i += 2;
        } else {
            found |= fold(p.data[i], nocase) == fold(c, nocase);
        }
    }
    *at = i < p.len ? i + 1 : i;
    return found != negated;
}

/* Match c against the element at *at, which is no star; *at moves behind it. */
static bool element_match(struct qn_slice p, size_t *at, uint8_t c, bool nocase)
{
    uint8_t element = p.data[(*at)++];
    if (element == '?') {
        return true;
    }
    if (element == '[') {
        return class_match(p, at, c, nocase);
    }
    if (element == '\\' && *at < p.len) {
        element = p.data[(*at)++];
    }
    return fold(element, nocase) == fold(c, nocase);
}

bool qn_glob_match(struct qn_slice pattern, struct qn_slice text, bool nocase)
{
    if (text.len == 0) {
        return pattern.len == 0;
    }
    size_t p = 0, t = 0;
    size_t star_p = 0, star_t = 0; /* behind the last star; what it ate to */
    bool star = false;
    while (t < text.len) {
        if (p < pattern.len && pattern.data[p] == '*') {
            star = true;
            star_p = ++p;
            star_t = t;
        } else if (p < pattern.len &&
                   element_match(pattern, &p, text.data[t], nocase)) {
            t++;
        } else if (star) {
            p = star_p;
            t = ++star_t;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.data[p] == '*') {
        p++;
    }
    return p == pattern.len;
}
