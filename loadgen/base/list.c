/*
 * The rest of a list is NULL once its last element was taken: an empty rest is
 * the element behind a last comma.
 */
#include "loadgen/base/list.h"

#include <stdio.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/options.h"

bool qn_list_next(const char **at, const char **word, size_t *len)
{
    if (*at == NULL) {
        return false;
    }
    *word = *at + strspn(*at, " ");
    *len = strcspn(*word, ",");
    *at = (*word)[*len] == ',' ? *word + *len + 1 : NULL;
    return true;
}

uint32_t qn_parse_counts(const char *text, uint64_t least, uint64_t most,
                         uint64_t *to, uint32_t room)
{
    const char *word;
    size_t len;
    uint32_t count = 0;
    while (qn_list_next(&text, &word, &len)) {
        char one[32];
        snprintf(one, sizeof one, "%.*s", (int)QN_MIN(len, sizeof one - 1),
                 word);
        if (count == room || qn_parse_count(one, &to[count]) != QN_OK ||
            to[count] < least || to[count] > most) {
            return 0;
        }
        count++;
    }
    return count;
}
