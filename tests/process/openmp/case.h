#ifndef QN_TESTS_OPENMP_CASE_H
#define QN_TESTS_OPENMP_CASE_H

/**
 * Cases of the programs of this folder: each runs parallel regions, and finds
 * out whether their barriers were barriers.
 *
 *     PROGRAM [CASE...]        all cases, or these
 *
 * With spy.so, behind libquoin-gomp.so, it also checks whose barriers they
 * were.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/process/openmp/spy.h"

struct openmp_case {
    const char *name;
    int (*run)(void);   /* @return how often something was wrong */
    uint64_t passed_on; /* calls of GOMP_barrier that libgomp has to get */
};

static inline bool openmp_case_asked(const char *name, int argc, char **argv)
{
    bool is = argc == 1;
    for (int i = 1; i < argc; i++) {
        is = is || strcmp(argv[i], name) == 0;
    }
    return is;
}

/** @param all  [n]. @return the exit status. */
static inline int openmp_cases(const struct openmp_case *all, int n, int argc,
                               char **argv)
{
    int status = 0, ran = 0;
    for (int i = 0; i < n; i++) {
        if (!openmp_case_asked(all[i].name, argc, argv)) {
            continue;
        }
        const bool spy = openmp_spy_calls != NULL;
        const uint64_t before = spy ? openmp_spy_calls() : 0;
        const int wrong = all[i].run();
        const uint64_t calls = spy ? openmp_spy_calls() - before : 0;
        const bool as_told = !spy || calls == all[i].passed_on;
        printf("%s: %d wrong, %llu barriers of libgomp%s\n", all[i].name, wrong,
               (unsigned long long)calls, as_told ? "" : ": wrong number");
        status = wrong == 0 && as_told ? status : 1;
        ran++;
    }
    return ran > 0 ? status : 2;
}

#endif
