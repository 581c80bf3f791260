/*
 * A run is a list of choices; where the list ends, every further choice is the
 * default (index 0). So exploring is counting: after a run, the last choice
 * that has an alternative left is advanced, what came after it is forgotten,
 * and the program runs again from `setup`. No state is saved; runs
 * take some microseconds, and programs under test some dozens of steps.
 */
#include "core/sim/explore/choices.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"

#define DEPTH_MAX 16384u /* choices with an alternative in one run */

static const char letter[] = {'-', 's', 'd', 'k', 'o'}; /* by action */

struct choice {
    uint32_t step;
    struct qn_choice option; /* the chosen one */
    uint32_t index;          /* of it */
    uint32_t count;          /* how many there were */
};

static struct {
    const char *script; /* choices still to come; NULL: explore */
    struct choice path[DEPTH_MAX];
    uint32_t depth; /* choices taken by this run */
    uint32_t given; /* choices it must repeat */
} list;

void qn_choices_start(const char *script)
{
    list.script = script;
    list.depth = 0;
    list.given = 0;
}

void qn_choices_begin(void)
{
    list.depth = 0;
}

bool qn_choices_scripted(void)
{
    return list.script != NULL;
}

bool qn_choices_fresh(void)
{
    return list.script == NULL && list.depth >= list.given;
}

static uint32_t scripted(uint32_t now, const struct qn_choice *o,
                         uint32_t count)
{
    unsigned step;
    char action;
    unsigned number = 0;
    if (sscanf(list.script, " %u:%c%u", &step, &action, &number) < 2 ||
        step != now) {
        return 0;
    }
    for (uint32_t i = 1; i < count; i++) {
        if (action == letter[o[i].action] &&
            (o[i].action == QN_KILL || number == o[i].number)) {
            list.script += strspn(list.script, " ");
            list.script += strcspn(list.script, " ");
            return i;
        }
    }
    return 0;
}

struct qn_choice qn_choose(uint32_t step, const struct qn_choice *o,
                           uint32_t count)
{
    if (count == 1) {
        return o[0];
    }
    QN_ASSERT(list.depth < DEPTH_MAX);
    struct choice *c = &list.path[list.depth];
    uint32_t index = 0;
    if (list.script != NULL) {
        index = scripted(step, o, count);
    } else if (list.depth < list.given) {
        QN_ASSERT(c->count == count); /* the nodes are deterministic */
        index = c->index;
    }
    *c = (struct choice){
        .step = step, .option = o[index], .index = index, .count = count};
    list.depth++;
    return o[index];
}

bool qn_choices_next(void)
{
    while (list.depth > 0) {
        struct choice *c = &list.path[list.depth - 1];
        if (c->index + 1 < c->count) {
            c->index++;
            list.given = list.depth;
            return true;
        }
        list.depth--;
    }
    return false;
}

void qn_choices_write(char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < list.depth && used < size; i++) {
        const struct choice *c = &list.path[i];
        char number[12] = "";
        if (c->index == 0) {
            continue;
        }
        if (c->option.action != QN_KILL) {
            snprintf(number, sizeof number, "%" PRIu32, c->option.number);
        }
        used += (size_t)snprintf(out + used, size - used, "%s%" PRIu32 ":%c%s",
                                 used == 0 ? "" : " ", c->step,
                                 letter[c->option.action], number);
    }
}
