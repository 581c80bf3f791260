/*
 * A unit test with a defect: QN_MUTANT=NAME chooses one of paxos/mutant.h,
 * before main. No name: none. For what no schedule can reach (README.md,
 * Defects).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paxos/mutant.h"

enum qn_mutant qn_mutant;

static const char *const names[QN_MUTANT_COUNT] = {
#define X(name, by, text) [QN_MUTANT_##name] = #name,
    QN_MUTANT_MAP(X)
#undef X
};

__attribute__((constructor)) static void choose(void)
{
    const char *name = getenv("QN_MUTANT");
    if (name == NULL) {
        return;
    }
    for (int m = QN_MUTANT_NONE + 1; m < QN_MUTANT_COUNT; m++) {
        if (strcmp(names[m], name) == 0) {
            qn_mutant = (enum qn_mutant)m;
            return;
        }
    }
    fprintf(stderr, "no defect %s in paxos/mutant.h\n", name);
    _Exit(0); /* where failing is wanted, that fails */
}
