/*
 * Counting instead of writing (seldom.h). A few kinds in a row: who writes
 * lines has few reasons to.
 */
#include "core/base/seldom.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool qn_seldom(struct qn_seldom *s, const char *what, qn_time_t now,
               char more[QN_SELDOM_TEXT])
{
    uint32_t i = 0;
    while (i < QN_SELDOM_KINDS - 1 && s->kind[i].what != NULL &&
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
        snprintf(more, QN_SELDOM_TEXT, "; %" PRIu64 " more like it since",
                 s->kind[i].left);
    }
    s->kind[i].what = what;
    s->kind[i].next = now + QN_SELDOM_PERIOD;
    s->kind[i].left = 0;
    return true;
}
