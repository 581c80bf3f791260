/*
 * Every lock, backend and object, some seeds each (stress.h), and broken ones,
 * which must be convicted.
 *
 * QN_STRESS_SEEDS: runs of each subject. QN_STRESS_FROM: the first seed.
 * QN_STRESS_ONLY: one subject, as "lock/mcs". stress.sh beside this file is the
 * long form.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/conformance/sync/stress.h"
#include "tests/support/sanitized.h"
#include "tests/support/seeds.h"

enum {
    SEEDS = QN_UNSANITIZED(4, 2),
    OPERATIONS = QN_UNSANITIZED(2500, 1000),
    OPERATIONS_NESTED = QN_UNSANITIZED(400, 100), /* there is each pair */
    SEEDS_NESTED = 1,
    OPERATIONS_BROKEN = 4000,
    OPERATIONS_OWN_CORES = 100
};

static void run(const struct stress_plan *p)
{
    char name[STRESS_TEXT];
    const char *wrong = stress_run(p);
    if (wrong != NULL) {
        stress_describe(p, name);
    }
    cr_expect(wrong == NULL, "%s: %s", name, wrong);
}

/* @return how many subjects of the family were run: all, or the one that
 * QN_STRESS_ONLY names, if it is there. */
static uint32_t run_family(const struct qn_subject_type *type)
{
    const bool nested = type == &stress_nested;
    const uint64_t seeds =
        seeds_number("QN_STRESS_SEEDS", nested ? SEEDS_NESTED : SEEDS);
    const uint64_t from = seeds_number("QN_STRESS_FROM", 1);
    const char *only = getenv("QN_STRESS_ONLY"), *name;
    uint32_t subjects = 0;
    for (uint32_t i = 0; (name = type->name(i)) != NULL; i++) {
        char full[64];
        snprintf(full, sizeof full, "%s/%s", type->family, name);
        if (only != NULL && strcmp(only, full) != 0) {
            continue;
        }
        for (uint64_t k = 0; k < seeds; k++) {
            run(&(struct stress_plan){.subject = {type, name},
                                      .seed = from + k + 1000 * i,
                                      .operations = nested ? OPERATIONS_NESTED
                                                           : OPERATIONS});
        }
        subjects++;
    }
    return subjects;
}

Test(sync_stress, all_subjects_pass, .timeout = 3000)
{
    const struct qn_subject_type *type;
    uint32_t subjects = 0;
    for (uint32_t t = 0; (type = stress_type(t)) != NULL; t++) {
        subjects += run_family(type);
    }
    cr_expect(subjects > 0, "QN_STRESS_ONLY names no subject; one is lock/mcs");
}

/* Waiters that look on and yield instead of sleeping, and hand-overs by a
 * store: for each lock and delegate. */
Test(sync_stress, threads_with_cores_of_their_own_pass, .timeout = 3000)
{
    const struct qn_subject_type *const types[] = {
        &qn_subject_lock, &qn_subject_delegation, &qn_subject_queue};
    const uint64_t seeds = seeds_number("QN_STRESS_SEEDS", 1);
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        const char *name;
        for (uint32_t i = 0; (name = types[t]->name(i)) != NULL; i++) {
            for (uint64_t k = 0; k < seeds; k++) {
                run(&(struct stress_plan){.subject = {types[t], name},
                                          .seed = 1 + k + 1000 * i,
                                          .operations = OPERATIONS_OWN_CORES,
                                          .own_cores = true});
            }
        }
    }
}

/* A client of these holds up only itself, wherever it stops. Of mp_server on an
 * emulated device it may be in the middle of a message. */
static bool holds_up_none(const char *name)
{
    return strstr(name, "shm_server") != NULL ||
           strcmp(name, "fetch_add") == 0 || strncmp(name, "lcrq", 4) == 0 ||
           strcmp(name, "treiber") == 0;
}

Test(sync_stress, a_stalled_client_holds_up_no_other, .timeout = 3000)
{
    const struct qn_subject_type *type;
    const uint64_t seeds = seeds_number("QN_STRESS_SEEDS", SEEDS);
    for (uint32_t t = 0; (type = qn_subject_types[t]) != NULL; t++) {
        const char *name;
        for (uint32_t i = 0; (name = type->name(i)) != NULL; i++) {
            for (uint64_t k = 1; k <= seeds && holds_up_none(name); k++) {
                run(&(struct stress_plan){.subject = {type, name},
                                          .seed = k + 1000 * i,
                                          .operations = OPERATIONS,
                                          .one_stalls = true});
            }
        }
    }
}

/* It has a lock that others wait for, or a place in the queue. */
Test(sync_stress, a_stalled_holder_holds_up_all, .signal = SIGABRT,
     .timeout = 60)
{
    struct qn_subject_name mcs;
    cr_assert(qn_subject_find("lock", "mcs", QN_SUBJECT_COUNTER, &mcs));
    for (uint64_t seed = 1; seed <= 10; seed++) {
        (void)stress_run(&(struct stress_plan){.subject = mcs,
                                               .seed = seed,
                                               .operations = OPERATIONS,
                                               .hang_s = 1,
                                               .one_stalls = true});
    }
}

/* ---- broken subjects ----------------------------------------------------- */

/* A good subject (a mutex) in which each 50th operation is done wrong. */
struct defect {
    const char *name;
    enum qn_subject_kind kind;
    uint64_t (*spoil)(struct qn_subject *s, enum qn_subject_op op,
                      uint64_t value);
};

static const struct defect *defect;
static struct qn_subject_type inner; /* that of the mutex */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t number, last; /* of operations; a result. Under `mutex` */

static uint64_t good(struct qn_subject *s, enum qn_subject_op op,
                     uint64_t value)
{
    return inner.operate(s, NULL, op, value);
}

static uint64_t again(struct qn_subject *s, enum qn_subject_op op,
                      uint64_t value)
{
    return op == QN_SUBJECT_PUT ? good(s, op, value) : last;
}

static uint64_t twice(struct qn_subject *s, enum qn_subject_op op,
                      uint64_t value)
{
    (void)good(s, op, value);
    return good(s, op, value);
}

/* Of each two of these the first keeps a result back for the second. */
static uint64_t late(struct qn_subject *s, enum qn_subject_op op,
                     uint64_t value)
{
    static uint64_t kept;
    const bool first = number / 50 % 2 != 0;
    const uint64_t result = first ? good(s, op, value) : kept;
    kept = result;
    return first ? good(s, op, value) : result;
}

static uint64_t lose(struct qn_subject *s, enum qn_subject_op op,
                     uint64_t value)
{
    return op == QN_SUBJECT_PUT ? QN_SUBJECT_DONE : good(s, op, value);
}

static uint64_t not_look(struct qn_subject *s, enum qn_subject_op op,
                         uint64_t value)
{
    return op == QN_SUBJECT_PUT ? good(s, op, value) : QN_SUBJECT_NOTHING;
}

static uint64_t not_room(struct qn_subject *s, enum qn_subject_op op,
                         uint64_t value)
{
    return op == QN_SUBJECT_PUT ? QN_SUBJECT_FULL : good(s, op, value);
}

/* The second one of those in it, and the first one goes in again. */
static uint64_t second(struct qn_subject *s, enum qn_subject_op op,
                       uint64_t value)
{
    const uint64_t first = good(s, op, value);
    if (op == QN_SUBJECT_PUT || first == QN_SUBJECT_NOTHING) {
        return first;
    }
    const uint64_t next = good(s, op, value);
    if (next == QN_SUBJECT_NOTHING) {
        return first;
    }
    (void)good(s, QN_SUBJECT_PUT, first);
    return next;
}

static uint64_t never(struct qn_subject *s, enum qn_subject_op op,
                      uint64_t value)
{
    for (;;) {
        (void)pause();
    }
    return good(s, op, value);
}

static uint64_t operate(struct qn_subject *s, struct qn_subject_client *c,
                        enum qn_subject_op op, uint64_t value)
{
    (void)c;
    (void)pthread_mutex_lock(&mutex);
    const uint64_t result =
        ++number % 50 == 0 ? defect->spoil(s, op, value) : good(s, op, value);
    last = op == QN_SUBJECT_PUT ? last : result;
    (void)pthread_mutex_unlock(&mutex);
    return result;
}

/* A run of the subject with the defect. */
static const char *run_broken(const struct defect *d, uint64_t seed,
                              uint32_t hang_s)
{
    struct qn_subject_name n;
    cr_assert(qn_subject_find("mutex", "mutex", d->kind, &n));
    defect = d;
    inner = *n.type;
    number = last = 0;
    struct qn_subject_type type = inner;
    type.operate = operate;
    n.type = &type;
    return stress_run(&(struct stress_plan){.subject = n,
                                            .seed = seed,
                                            .operations = OPERATIONS_BROKEN,
                                            .hang_s = hang_s});
}

/* Not every seed can show each: a queue of one value has no order. */
Test(sync_stress, broken_subjects_are_convicted, .timeout = 300)
{
    static const struct defect all[] = {
        {"a result is given twice", QN_SUBJECT_COUNTER, again},
        {"a result is skipped", QN_SUBJECT_COUNTER, twice},
        {"a result comes late", QN_SUBJECT_COUNTER, late},
        {"a value of a queue is lost", QN_SUBJECT_QUEUE, lose},
        {"a value of a queue comes out twice", QN_SUBJECT_QUEUE, again},
        {"a value of a queue overtakes", QN_SUBJECT_QUEUE, second},
        {"a queue is not looked at", QN_SUBJECT_QUEUE, not_look},
        {"a queue has no room", QN_SUBJECT_QUEUE, not_room},
        {"a value of a stack is lost", QN_SUBJECT_STACK, lose},
        {"a value of a stack comes out twice", QN_SUBJECT_STACK, again},
        {"a value below the top comes out", QN_SUBJECT_STACK, second},
        {"a stack is not looked at", QN_SUBJECT_STACK, not_look},
        {"a stack has no room", QN_SUBJECT_STACK, not_room},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const char *wrong = NULL;
        for (uint64_t seed = 1; seed <= 10 && wrong == NULL; seed++) {
            wrong = run_broken(&all[i], seed, 0);
        }
        cr_expect(wrong != NULL, "%s: not found", all[i].name);
        fprintf(stderr, "%-36s %s\n", all[i].name, wrong ? wrong : "-");
    }
}

Test(sync_stress, a_hang_is_ended, .signal = SIGABRT, .timeout = 60)
{
    const struct defect d = {"an operation never ends", QN_SUBJECT_COUNTER,
                             never};
    (void)run_broken(&d, 1, 1);
}
