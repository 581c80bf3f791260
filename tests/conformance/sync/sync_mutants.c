/*
 * Defects of the library (core/sync/object/mutant.h, and of delegation): each
 * must be convicted by runs of the subjects in which it is. A run that hangs or
 * crashes is a conviction, too, so each has a process of its own.
 *
 *     sync_mutants [SEEDS]
 *
 * Exit status 1: some was not found in that number of runs of each subject.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/bits.h"
#include "core/sync/delegate/delegate_mutant.h"
#include "core/sync/delegate/server_mutant.h"
#include "core/sync/object/mutant.h"
#include "tests/conformance/sync/stress.h"

enum { OPERATIONS = 20000, HANG_S = 2, SEEDS = 20 };

enum qn_object_mutant qn_object_mutant;
enum qn_delegate_mutant qn_delegate_mutant;
enum qn_server_mutant qn_server_mutant;

/* Subjects by what the maps say. */
#define COUNTER "counter"
#define LCRQ    "lcrq"
#define TREIBER "treiber"
#define MS      "ms"
#define LIST    "list"

struct mutant {
    const char *name, *text;
    const char *begins; /* the names of its subjects; or the family */
    int object, delegate, server;
};

static const struct mutant all[] = {
#define X(name, by, text) {#name, text, by, QN_OBJECT_MUTANT_##name, 0, 0},
    QN_OBJECT_MUTANT_MAP(X)
#undef X
#define X(name, text)                                                          \
    {#name, text, "delegate", 0, QN_DELEGATE_MUTANT_##name, 0},
        QN_DELEGATE_MUTANT_MAP(X)
#undef X
#define X(name, text)                                                          \
    {#name, text, "shm_server", 0, 0, QN_SERVER_MUTANT_##name},
            QN_SERVER_MUTANT_MAP(X)
#undef X
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* A run in a child. @return was it convicted? */
static bool convicted(const struct stress_plan *p)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL) {
            _exit(2);
        }
        _exit(stress_run(p) != NULL);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status != 0;
}

/* @param runs  Counts them. */
static bool found(const struct mutant *m, uint32_t seeds, uint32_t *runs)
{
    for (uint32_t k = 1; k <= seeds; k++) {
        const struct qn_subject_type *type;
        for (uint32_t t = 0; (type = stress_type(t)) != NULL; t++) {
            const char *name;
            for (uint32_t i = 0; (name = type->name(i)) != NULL; i++) {
                if (!begins(type->family, m->begins) &&
                    !begins(name, m->begins)) {
                    continue;
                }
                ++*runs;
                if (convicted(&(struct stress_plan){.subject = {type, name},
                                                    .seed = k + 1000 * i,
                                                    .operations = OPERATIONS,
                                                    .hang_s = HANG_S})) {
                    return true;
                }
            }
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    const uint32_t seeds =
        argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : SEEDS;
    int status = 0;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(all); i++) {
        uint32_t runs = 0;
        qn_object_mutant = (enum qn_object_mutant)all[i].object;
        qn_delegate_mutant = (enum qn_delegate_mutant)all[i].delegate;
        qn_server_mutant = (enum qn_server_mutant)all[i].server;
        const bool yes = found(&all[i], seeds, &runs);
        printf("%-14s %-9s %5u runs  %s\n", all[i].name,
               yes ? "found" : "NOT FOUND", runs, all[i].text);
        fflush(stdout);
        status = yes ? status : 1;
    }
    return status;
}
