/*
 * Defects of the library (core/sync/object/mutant.h, and of delegation, locks
 * and servers): each must be convicted by runs of the subjects in which it is,
 * but for rare ones. WEAK_OPENING of sync_mutant.h is not here: x86 does not
 * show it. A run that hangs or
 * crashes is a conviction, too, so each has a process of its own.
 *
 *     sync_mutants [SEEDS [NAME]]
 *
 * Exit status 1: some that is not rare was not found in that number of runs of
 * each subject.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/bits.h"
#include "core/sync/delegate/delegate_mutant.h"
#include "core/sync/delegate/server_mutant.h"
#include "core/sync/lock/lock_mutant.h"
#include "core/sync/object/mutant.h"
#include "core/sync/sync_mutant.h"
#include "tests/conformance/sync/stress.h"

enum { OPERATIONS = 20000, NESTED = 2000, HANG_S = 5, SEEDS = 20 };

enum qn_object_mutant qn_object_mutant;
enum qn_delegate_mutant qn_delegate_mutant;
enum qn_server_mutant qn_server_mutant;
enum qn_lock_mutant qn_lock_mutant;
enum qn_sync_mutant qn_sync_mutant;

/* Nodes of HybComb for all objects. */
static alignas(QN_CACHELINE) uint8_t one_node[128 * QN_CACHELINE];
void *qn_sync_one_node = one_node;

/* Subjects by what the maps say. */
#define COUNTER "counter"
#define LCRQ    "lcrq"
#define TREIBER "treiber"
#define MS      "ms"
#define LIST    "list"

struct mutant {
    const char *name, *text;
    const char *begins; /* the names of its subjects; or the family */
    int object, delegate, server, lock, sync; /* of its enum; 0: none */
};

/* What takes many operations of others between two instructions of a thread:
 * the explorer (tests/sim/explore/sync) finds these, and here they may be
 * missed. */
static const char *const rare[] = {
    "LCRQ_ONE_LOOK",   "LCRQ_ONE_PIN",  "LCRQ_UNSAFE",   "TREIBER_NO_TAG",
    "MS_REUSED",       "NO_LAST_FENCE", "NO_LAST_WAKE",  "TTAS_STORES",
    "MCS_SILENT_LINK", "MCS_LATE",      "CLH_NO_VERSION"};

/* A row of a map. `as`: the field that chooses it. */
#define ROW(map, name, by, text, as)                                           \
    {                                                                          \
#name, text, by, .as = QN_##map##_MUTANT_##name                        \
    }

static const struct mutant all[] = {
#define X(name, by, text) ROW(OBJECT, name, by, text, object),
    QN_OBJECT_MUTANT_MAP(X)
#undef X
#define X(name, by, text) ROW(DELEGATE, name, by, text, delegate),
        QN_DELEGATE_MUTANT_MAP(X)
#undef X
#define X(name, text) ROW(SERVER, name, "shm_server", text, server),
            QN_SERVER_MUTANT_MAP(X)
#undef X
#define X(name, by, text) ROW(LOCK, name, by, text, lock),
                QN_LOCK_MUTANT_MAP(X)
#undef X
                    ROW(SYNC, NO_OBJECT, "lock/lock",
                        "nested HybLocks on one port", sync),
    ROW(SYNC, ONE_NODE, "hyb_comb/hyb_comb", "one node for two objects", sync),
    ROW(SYNC, NO_WAIT, "hyb_comb", "two combiners at a time", sync),
    ROW(SYNC, FORGET_LATE, "mp_server", "late requests are forgotten", sync),
    ROW(DELEGATE, LATE_LINK, "h_synch", "the same, with a list for each domain",
        delegate),
    ROW(SERVER, TWO_SERVERS, "mp_server", "the same, by words", server),
    ROW(LOCK, TAS_NO_WAKE, "ttas", "the same, of ttas", lock),
    ROW(LOCK, TAS_FORGETS, "ttas", "the same, of ttas", lock),
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
                const bool nested = type == &stress_nested;
                const bool words = m->sync == QN_SYNC_MUTANT_NO_OBJECT;
                if (convicted(&(struct stress_plan){
                        .subject = {type, name},
                        .seed = k + 1000 * i,
                        .operations = nested ? NESTED : OPERATIONS,
                        .lock = words ? "hyblock" : NULL,
                        .hang_s = HANG_S})) {
                    return true;
                }
            }
        }
    }
    return false;
}

static bool is_rare(const struct mutant *m)
{
    bool is = false;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(rare); i++) {
        is |= strcmp(m->name, rare[i]) == 0;
    }
    return is;
}

int main(int argc, char **argv)
{
    const uint32_t seeds =
        argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : SEEDS;
    int status = 0;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(all); i++) {
        uint32_t runs = 0;
        if (argc > 2 && strcmp(argv[2], all[i].name) != 0) {
            continue;
        }
        qn_object_mutant = (enum qn_object_mutant)all[i].object;
        qn_delegate_mutant = (enum qn_delegate_mutant)all[i].delegate;
        qn_server_mutant = (enum qn_server_mutant)all[i].server;
        qn_lock_mutant = (enum qn_lock_mutant)all[i].lock;
        qn_sync_mutant = (enum qn_sync_mutant)all[i].sync;
        const bool yes = found(&all[i], seeds, &runs);
        const bool missed = !yes && !is_rare(&all[i]);
        printf("%-14s %-9s %5u runs  %s\n", all[i].name,
               yes      ? "found"
               : missed ? "NOT FOUND"
                        : "rare",
               runs, all[i].text);
        fflush(stdout);
        status = missed ? 1 : status;
    }
    return status;
}
