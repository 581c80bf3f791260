/*
 * Large collectives between real threads and processes, which are members of a
 * run (large_member.h). Members sleep when they wait, so a lost wake-up is a
 * hang, which the timeout turns into a failure.
 *
 * Threads share an address space and push; processes map each other's arenas
 * read-only, and push is refused.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/large/large.h"
#include "core/place/area.h"
#include "core/wait/park.h"
#include "tests/conformance/large_member.h"
#include "tests/support/test.h"

/* ---- threads ---- */

static void run_threads(const struct large_run *r, struct large_member *node)
{
    struct qn_large_line *lines =
        qn_alloc_lines(&qn_alloc_malloc, r->members * sizeof *lines);
    uint8_t *memory = malloc(r->members * LARGE_ARENA);
    struct qn_large_arena arenas[LARGE_MEMBERS_MAX];
    pthread_t thread[LARGE_MEMBERS_MAX];
    cr_assert(lines != NULL && memory != NULL);
    for (uint32_t i = 0; i < r->members; i++) {
        arenas[i] =
            (struct qn_large_arena){memory + i * LARGE_ARENA, LARGE_ARENA};
    }
    for (uint32_t i = 0; i < r->members; i++) {
        node[i] = (struct large_member){.run = r,
                                        .lines = lines,
                                        .arenas = r->arenas ? arenas : NULL,
                                        .memory = memory + i * LARGE_ARENA,
                                        .rank = i};
        cr_assert_eq(
            pthread_create(&thread[i], NULL, large_member_run, &node[i]), 0);
    }
    for (uint32_t i = 0; i < r->members; i++) {
        (void)pthread_join(thread[i], NULL);
    }
    for (uint32_t i = 0; i < r->members; i++) {
        large_member_end(&node[i]);
    }
    free(memory);
    qn_alloc_free_lines(&qn_alloc_malloc, lines);
}

static void expect_all_done(const struct large_run *r,
                            const struct large_member *node)
{
    for (uint32_t i = 0; i < r->members; i++) {
        cr_assert_eq(node[i].rc, QN_OK, "seed %u, member %u, operation %u: %s",
                     r->seed, i, node[i].done, qn_strerror(node[i].rc));
        cr_assert_eq(node[i].done, r->operations);
    }
}

Test(large_nodes, threads_run_all_variants, .timeout = 120)
{
    for (uint32_t members = 1; members <= LARGE_MEMBERS_MAX; members++) {
        const struct large_run r = {.members = members,
                                    .operations = 80,
                                    .seed = members,
                                    .slow = LARGE_NO_MEMBER,
                                    .victim = LARGE_NO_MEMBER,
                                    .push = true,
                                    .arenas = members % 2 == 0};
        struct large_member node[LARGE_MEMBERS_MAX];
        run_threads(&r, node);
        expect_all_done(&r, node);
    }
}

Test(large_nodes, a_slow_member_is_waited_for, .timeout = 120)
{
    const struct large_run r = {.members = 3,
                                .operations = 60,
                                .seed = 11,
                                .slow = 1,
                                .victim = LARGE_NO_MEMBER,
                                .push = true,
                                .arenas = true};
    struct large_member node[LARGE_MEMBERS_MAX];
    run_threads(&r, node);
    expect_all_done(&r, node);
}

Test(large_nodes, an_ended_member_fails_all_that_need_it, .timeout = 120)
{
    for (uint32_t victim = 0; victim < 4; victim++) {
        const struct large_run r = {.members = 4,
                                    .operations = 100,
                                    .seed = 20 + victim,
                                    .slow = LARGE_NO_MEMBER,
                                    .victim = victim,
                                    .ends_at = 15,
                                    .push = true};
        struct large_member node[LARGE_MEMBERS_MAX];
        run_threads(&r, node);
        for (uint32_t i = 0; i < r.members; i++) {
            const int want = i == victim ? QN_OK : QN_EPEERDEAD;
            cr_assert_eq(node[i].rc, want, "victim %u, member %u: %s", victim,
                         i, qn_strerror(node[i].rc));
            cr_assert(node[i].done >= r.ends_at - 1 || i == victim);
        }
    }
}

/* Member 2 of three, by hand: it reads what the root has for a while, though
 * the root has failed, and then ends. */
struct reader {
    struct qn_large_line *lines;
    const uint8_t *at;
    bool changed;
};

static void *read_for_a_while(void *arg)
{
    struct reader *r = arg;
    for (uint32_t i = 0; i < 200; i++) {
        qn_park_yield();
        r->changed = r->changed || *r->at != 7;
    }
    qn_large_down(r->lines, 2);
    return NULL;
}

Test(large_nodes, a_failed_member_has_its_buffers_when_it_has_settled,
     .timeout = 120)
{
    struct qn_large *l = malloc(sizeof *l);
    struct qn_large_line *lines =
        qn_alloc_lines(&qn_alloc_malloc, 3 * sizeof *lines);
    cr_assert(l != NULL && lines != NULL);
    uint8_t in[8] = {7};
    struct reader r = {.lines = lines, .at = in};
    pthread_t thread;
    const struct qn_large_opts o = {.members = 3, .lines = lines};
    cr_assert_eq(qn_large_init(l, &o), QN_OK);
    qn_large_down(lines, 1);
    const struct qn_large_call c = {.operation = QN_LARGE_BROADCAST,
                                    .bytes = sizeof in,
                                    .in = in,
                                    .entry = QN_LARGE_OWN,
                                    .exit = QN_LARGE_OWN};
    cr_assert_eq(qn_large_run(l, &c), QN_EPEERDEAD);
    cr_assert_eq(pthread_create(&thread, NULL, read_for_a_while, &r), 0);
    cr_assert_eq(qn_large_settle(l), QN_EPEERDEAD);
    in[0] = 0;
    (void)pthread_join(thread, NULL);
    cr_assert(!r.changed, "it has settled while another one read its buffer");
    qn_large_fini(l);
    qn_alloc_free_lines(&qn_alloc_malloc, lines);
    free(l);
}

/* ---- processes ---- */

struct shared {
    struct qn_area lines, arena[LARGE_MEMBERS_MAX];
};

static void make(struct shared *s, uint32_t members)
{
    int rc = qn_area_create(&s->lines, "quoin-area",
                            members * sizeof(struct qn_large_line), true);
    for (uint32_t i = 0; rc == QN_OK && i < members; i++) {
        rc = qn_area_create(&s->arena[i], "quoin-area", LARGE_ARENA, true);
    }
    cr_assert_eq(rc, QN_OK);
}

static void drop(struct shared *s, uint32_t members)
{
    qn_area_destroy(&s->lines);
    for (uint32_t i = 0; i < members; i++) {
        qn_area_destroy(&s->arena[i]);
    }
}

/* In a child: maps all once more, each child at other addresses, and what is
 * not its own read-only; the mappings of its parent go. */
static void isolate(struct shared *s, struct large_member *n,
                    struct qn_large_arena *arenas)
{
    const uint32_t members = n->run->members;
    struct shared here;
    int rc = qn_area_map(&here.lines, s->lines.fd,
                         members * sizeof(struct qn_large_line));
    for (uint32_t i = 0; rc == QN_OK && i < members; i++) {
        const uint32_t x = (n->rank + i) % members;
        rc = qn_area_map(&here.arena[x], s->arena[x].fd, LARGE_ARENA);
        if (rc == QN_OK && x != n->rank && !n->run->push) {
            rc = mprotect(here.arena[x].memory, LARGE_ARENA, PROT_READ);
        }
        arenas[x] = (struct qn_large_arena){here.arena[x].memory, LARGE_ARENA};
    }
    QN_ASSERT(rc == 0);
    drop(s, members);
    n->memory = arenas[n->rank].base;
    n->lines = here.lines.memory;
    n->arenas = arenas;
}

/* @return in a child: its exit status. */
typedef int program_fn(struct large_member *n);

static pid_t start(struct shared *s, const struct large_run *r, uint32_t rank,
                   program_fn *program)
{
    const pid_t pid = fork();
    if (pid == 0) {
        struct qn_large_arena arenas[LARGE_MEMBERS_MAX];
        struct large_member n = {.run = r, .rank = rank};
        isolate(s, &n, arenas);
        _exit(program(&n));
    }
    return pid;
}

static int run_all(struct large_member *n)
{
    (void)large_member_run(n);
    free(n->large); /* its intermediate memory is in the arena */
    return n->rc == QN_OK ? 0 : 1;
}

Test(large_nodes_processes, pull_from_memory_that_they_cannot_write,
     .timeout = 120)
{
    const struct large_run r = {.members = 4,
                                .operations = 150,
                                .seed = 5,
                                .slow = LARGE_NO_MEMBER,
                                .victim = LARGE_NO_MEMBER};
    struct shared s;
    pid_t pid[LARGE_MEMBERS_MAX];
    make(&s, r.members);
    for (uint32_t i = 0; i < r.members; i++) {
        pid[i] = start(&s, &r, i, run_all);
        cr_assert(pid[i] > 0);
    }
    for (uint32_t i = 0; i < r.members; i++) {
        int status = 1;
        cr_assert_eq(waitpid(pid[i], &status, 0), pid[i]);
        cr_assert_eq(status, 0, "member %u: status %d", i, status);
    }
    drop(&s, r.members);
}

/* Operations in a row: the victim is killed in one; all others must end with
 * QN_EPEERDEAD. */
typedef void call_fn(struct qn_large_call *c, const struct large_member *n,
                     uint32_t k);

static int run_until_death(struct large_member *n, call_fn *next)
{
    struct qn_alloc work;
    struct qn_large *l = malloc(sizeof *l);
    int rc = l == NULL ? QN_ENOMEM : large_member_init(n, l, &work);
    for (uint32_t k = 0; rc == QN_OK && k < 40; k++) {
        struct qn_large_call c = {.bytes = 20000,
                                  .in = n->memory,
                                  .out = n->memory + LARGE_SET,
                                  .op = &large_member_sum,
                                  .entry = QN_LARGE_OWN,
                                  .exit = QN_LARGE_OWN};
        next(&c, n, k);
        c.operation = c.variant->operation;
        rc = qn_large_run(l, &c);
    }
    rc = rc == QN_EPEERDEAD ? qn_large_settle(l) : QN_OK;
    free(l);
    return rc == QN_EPEERDEAD ? 0 : 1;
}

static void expect_all_fail(const struct large_run *r, program_fn *program)
{
    const char *name = r->variant == NULL ? "reduce" : r->variant->name;
    struct shared s;
    pid_t pid[LARGE_MEMBERS_MAX];
    int status = 0;
    make(&s, r->members);
    for (uint32_t i = 0; i < r->members; i++) {
        pid[i] = start(&s, r, i, program);
        cr_assert(pid[i] > 0);
    }
    cr_assert_eq(waitpid(pid[r->victim], &status, 0), pid[r->victim]);
    cr_assert(WIFSIGNALED(status), "%s: status %d", name, status);
    qn_large_down(s.lines.memory, r->victim);
    for (uint32_t i = 0; i < r->members; i++) {
        if (i != r->victim) {
            cr_assert_eq(waitpid(pid[i], &status, 0), pid[i]);
            cr_assert_eq(status, 0, "%s, victim %u, member %u: status %d", name,
                         r->victim, i, status);
        }
    }
    drop(&s, r->members);
}

/* The victim is killed while it combines. */
static void reduce(struct qn_large_call *c, const struct large_member *n,
                   uint32_t k)
{
    c->variant = qn_large_variant_at(k % 2 == 0 ? 15 : 14);
    c->root = (n->run->victim + k) % 4;
    c->op = k == 20 && n->rank == n->run->victim ? &large_member_deadly
                                                 : &large_member_sum;
}

static int reduce_until_death(struct large_member *n)
{
    return run_until_death(n, reduce);
}

Test(large_nodes_processes, a_killed_one_fails_all_others, .timeout = 120)
{
    for (uint32_t victim = 0; victim < 4; victim++) {
        const struct large_run r = {.members = 4, .victim = victim};
        expect_all_fail(&r, reduce_until_death);
    }
}

/* The victim is killed in its copy: of what others have it still sees two
 * pages. */
static void copy(struct qn_large_call *c, const struct large_member *n,
                 uint32_t k)
{
    const size_t seen = 8192;
    c->variant = n->run->variant;
    if (k != 2 || n->rank != n->run->victim) {
        return;
    }
    for (uint32_t i = 0; i < n->run->members; i++) {
        if (i != n->rank) {
            QN_ASSERT(mprotect((char *)n->arenas[i].base + seen,
                               LARGE_ARENA - seen, PROT_NONE) == 0);
        }
    }
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)signal(SIGSEGV, SIG_DFL); /* no report of a sanitizer */
}

static int copy_until_death(struct large_member *n)
{
    return run_until_death(n, copy);
}

/* Of a variant whose root is 0. */
static uint32_t member_that_copies(const struct qn_large_variant *v)
{
    const bool collects =
        v->operation == QN_LARGE_REDUCE || v->operation == QN_LARGE_GATHER;
    return collects == (v->direction == QN_LARGE_PULL) ? 0 : 1;
}

Test(large_nodes_processes, one_killed_in_its_copy_fails_all_others,
     .timeout = 120)
{
    const struct qn_large_variant *v;
    for (uint32_t i = 0; (v = qn_large_variant_at(i)) != NULL; i++) {
        const struct large_run r = {.members = 3,
                                    .victim = member_that_copies(v),
                                    .variant = v,
                                    .push = v->direction == QN_LARGE_PUSH};
        expect_all_fail(&r, copy_until_death);
    }
}
