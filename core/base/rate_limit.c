/*
 * Counting instead of writing (rate_limit.h). A short array of kinds is enough:
 * a module has few reasons to log.
 */
#include "core/base/rate_limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool qn_rate_limit(struct qn_rate_limit *s, const char *what, qn_time_t now,
                   char more[QN_RATE_LIMIT_TEXT])
{
    uint32_t i = 0;
    while (i < QN_RATE_LIMIT_KINDS - 1 && s->kind[i].what != NULL &&
           strcmp(s->kind[i].what, what) != 0) {
        i++;
    }
    bool first = s->kind[i].what == NULL;
    if (!first && now < s->kind[i].next) {
        s->kind[i].left++;
        return false;
    }
    more[0] = '\0';
    if (s->kind[i].left > 0) {
        snprintf(more, QN_RATE_LIMIT_TEXT, "; %" PRIu64 " more like it since",
                 s->kind[i].left);
    }
    s->kind[i].what = what;
    s->kind[i].next = now + QN_RATE_LIMIT_PERIOD;
    s->kind[i].left = 0;
    return true;
}
