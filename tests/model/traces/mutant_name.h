#ifndef QN_TESTS_MODEL_TRACES_MUTANT_NAME_H
#define QN_TESTS_MODEL_TRACES_MUTANT_NAME_H

/** The defects of paxos/mutant.h by name, for the programs of this folder that
 *  are built a second time with QN_MUTANTS. Included by one file of each. */

#include <stdbool.h>
#include <string.h>

#include "paxos/mutant.h"

#ifdef QN_MUTANTS
enum qn_mutant qn_mutant;

static bool mutant_choose(const char *name)
{
    static const char *const names[QN_MUTANT_COUNT] = {
#define X(name, by, text) [QN_MUTANT_##name] = #name,
        QN_MUTANT_MAP(X)
#undef X
    };
    for (int m = QN_MUTANT_NONE + 1; m < QN_MUTANT_COUNT; m++) {
        if (strcmp(names[m], name) == 0) {
            qn_mutant = (enum qn_mutant)m;
            return true;
        }
    }
    return false;
}
#else
/** There is none. */
static bool mutant_choose(const char *name)
{
    (void)name;
    return false;
}
#endif

#endif
