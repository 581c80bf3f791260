/*
 * Large collectives between real threads and processes: operations in a row,
 * each drawn from the seed of the run: variant, root, size, entry and exit, all
 * checked at every member. Members sleep when they wait, so a lost wake-up is a
 * hang, which the timeout turns into a failure.
 *
 * Threads share an address space and push; processes map each other's arenas
 * read-only, and push is refused. Inputs and outputs alternate between two
 * sets, because with exit NONE the last ones may still be read.
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
#include "tests/support/test.h"

#define MEMBERS_MAX 5u
#define BYTES_MAX   40000u
#define SET         ((size_t)MEMBERS_MAX * BYTES_MAX)
#define ARENA       (5 * SET) /* two inputs, two outputs, intermediate */
#define NO_MEMBER   UINT32_MAX

struct run {
    uint32_t members, operations, seed;
    uint32_t slow;    /* a member that works between operations */
    uint32_t victim;  /* a member that ends ... */
    uint32_t ends_at; /* ... in this operation */
    const struct qn_large_variant *variant; /* of each operation */
    bool push, arenas;
};

struct node {
    const struct run *run;
    struct qn_large_line *lines;
    const struct qn_large_arena *arenas; /* NULL: one address space */
    uint8_t *memory;                     /* [ARENA] of this member */
    uint32_t rank;
    int rc;
    uint32_t done; /* operations */
    struct qn_alloc work;
    struct qn_large *large; /* for end() */
};

static uint32_t hash(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

static uint8_t content(uint32_t member, uint32_t k, uint64_t i)
{
    return (uint8_t)((member + 1) * 31 + k * 17 + i * 7 + (i >> 8));
}

/* Maps x -> a x + b, one behind the other: does not commute. */
static void compose(void *into, const void *from, uint32_t count)
{
    uint8_t *x = into;
    const uint8_t *y = from;
    for (uint32_t i = 0; i < 2 * count; i += 2) {
        x[i + 1] = (uint8_t)(x[i] * y[i + 1] + x[i + 1]);
        x[i] = (uint8_t)(x[i] * y[i]);
    }
}

static void add(void *into, const void *from, uint32_t count)
{
    uint8_t *x = into;
    const uint8_t *y = from;
    for (uint32_t i = 0; i < 2 * count; i++) {
        x[i] = (uint8_t)(x[i] + y[i]);
    }
}

static void combine_and_die(void *into, const void *from, uint32_t count)
{
    (void)into;
    (void)from;
    (void)count;
    (void)raise(SIGKILL);
}

static const uint8_t one[2] = {1, 0}, zero[2] = {0, 0};
static const struct qn_operator composition = {compose, one, 2, false};
static const struct qn_operator sum = {add, zero, 2, true};
static const struct qn_operator deadly = {combine_and_die, zero, 2, true};

/* ---- intermediate memory: the last part of the arena, one block ---- */

static void *resize(void *ctx, void *p, size_t bytes)
{
    (void)p;
    return bytes == 0 || bytes > SET ? NULL : ctx;
}

/* ---- one operation ---- */

static struct qn_large_call drawn(const struct node *n, uint32_t k)
{
    const struct run *r = n->run;
    const uint32_t x = hash(r->seed * 7919 + k), y = hash(x);
    const struct qn_large_variant *v;
    uint32_t count = 0;
    while (qn_large_variant_at(count) != NULL) {
        count++;
    }
    do {
        QN_ASSERT(count > 0);
        v = qn_large_variant_at((x + k) % count--);
    } while (v->direction == QN_LARGE_PUSH && !r->push);
    const uint32_t most = (x >> 30) == 0 ? BYTES_MAX : 9000;
    return (struct qn_large_call){
        .variant = (x >> 8 & 7) == 0 ? NULL : v,
        .operation = v->operation,
        .root = (x >> 11) % r->members,
        .bytes = y % most & ~1u,
        .in = n->memory + (k % 2) * SET,
        .out = n->memory + (2 + k % 2) * SET,
        .op = (y >> 20 & 1) != 0 ? &sum : &composition,
        .entry = (enum qn_large_sync)((y >> 21) % 3),
        .exit = (enum qn_large_sync)((y >> 25) % 3),
    };
}

static bool is_silent(const struct qn_large_call *c, uint32_t member,
                      uint32_t k)
{
    return c->operation == QN_LARGE_REDUCE && c->entry != QN_LARGE_NONE &&
           (member + k) % 5 == 0;
}

static bool is_sum(const struct node *n, const struct qn_large_call *c,
                   uint32_t k)
{
    static const size_t room = BYTES_MAX;
    uint8_t *want = malloc(2 * room), *term = want + room;
    QN_ASSERT(want != NULL);
    for (uint64_t i = 0; i < c->bytes; i++) {
        want[i] = ((const uint8_t *)c->op->neutral)[i % 2];
    }
    for (uint32_t x = 0; x < n->run->members; x++) {
        for (uint64_t i = 0; i < c->bytes; i++) {
            term[i] = content(x, k, i);
        }
        if (!is_silent(c, x, k)) {
            c->op->combine(want, term, (uint32_t)c->bytes / 2);
        }
    }
    const bool same = memcmp(want, c->out, c->bytes) == 0;
    free(want);
    return same;
}

/* @param from  Whose bytes, from which place of its input on. */
static bool is_content(const uint8_t *at, uint32_t from, uint32_t k,
                       uint64_t first, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++) {
        if (at[i] != content(from, k, first + i)) {
            return false;
        }
    }
    return true;
}

static bool is_right(const struct node *n, const struct qn_large_call *c,
                     uint32_t k)
{
    const uint8_t *out = c->out;
    bool right = true;
    switch (c->operation) {
    case QN_LARGE_BROADCAST:
        return n->rank == c->root || is_content(out, c->root, k, 0, c->bytes);
    case QN_LARGE_SCATTER:
        return is_content(out, c->root, k, n->rank * c->bytes, c->bytes);
    case QN_LARGE_REDUCE:
        return n->rank != c->root || is_sum(n, c, k);
    default:
        for (uint32_t x = 0; n->rank == c->root && x < n->run->members; x++) {
            right = right && is_content(out + x * c->bytes, x, k, 0, c->bytes);
        }
        return right;
    }
}

static int operate(struct node *n, struct qn_large *l, uint32_t k)
{
    struct qn_large_call c = drawn(n, k);
    uint8_t *in = n->memory + (k % 2) * SET;
    const uint64_t bytes =
        c.operation == QN_LARGE_SCATTER ? n->run->members * c.bytes : c.bytes;
    for (uint64_t i = 0; i < bytes; i++) {
        in[i] = content(n->rank, k, i);
    }
    if (is_silent(&c, n->rank, k)) {
        c.in = NULL;
    }
    if (n->rank == n->run->slow) {
        for (uint32_t i = 0; i < 20; i++) {
            memset(n->memory + (2 + k % 2) * SET, (int)i, SET);
        }
    }
    if (c.entry == QN_LARGE_NONE) { /* all must be there before */
        const struct qn_large_call meet = {.operation = QN_LARGE_BROADCAST,
                                           .entry = QN_LARGE_ALL,
                                           .exit = QN_LARGE_OWN};
        const int rc = qn_large_run(l, &meet);
        if (rc != QN_OK) {
            return rc;
        }
    }
    const int rc = qn_large_run(l, &c);
    return rc != QN_OK ? rc : is_right(n, &c, k) ? QN_OK : QN_EIO;
}

static int init(struct node *n, struct qn_large *l, struct qn_alloc *work)
{
    *work = (struct qn_alloc){resize, n->memory + 4 * SET};
    const struct qn_large_opts o = {.members = n->run->members,
                                    .rank = n->rank,
                                    .lines = n->lines,
                                    .arenas = n->arenas,
                                    .work = n->arenas != NULL ? work : NULL,
                                    .threshold = 5000,
                                    .push = n->run->push,
                                    .backoff = {.yields = 2}};
    return qn_large_init(l, &o);
}

static void *run_node(void *arg)
{
    struct node *n = arg;
    struct qn_large *l = malloc(sizeof *l);
    QN_ASSERT(l != NULL);
    n->rc = init(n, l, &n->work);
    for (uint32_t k = 0; n->rc == QN_OK && k < n->run->operations; k++) {
        if (n->rank == n->run->victim && k == n->run->ends_at) {
            qn_large_down(n->lines, n->rank); /* as a supervisor would */
            break;
        }
        n->rc = operate(n, l, k);
        n->done += n->rc == QN_OK;
    }
    if (n->rc == QN_EIO) { /* a wrong result ends the run of all */
        qn_large_down(n->lines, n->rank);
    }
    if (n->rc != QN_EIO && n->rank != n->run->victim) {
        n->rc = qn_large_settle(l);
        qn_large_fini(l);
        memset(n->memory, 0xee, ARENA); /* no member reads it any more */
    }
    n->large = l;
    return NULL;
}

/* When all have returned: others may read what a victim has. */
static void end(struct node *n)
{
    qn_large_fini(n->large);
    free(n->large);
}

/* ---- threads ---- */

static void run_threads(const struct run *r, struct node *node)
{
    struct qn_large_line *lines =
        qn_alloc_lines(&qn_alloc_malloc, r->members * sizeof *lines);
    uint8_t *memory = malloc(r->members * ARENA);
    struct qn_large_arena arenas[MEMBERS_MAX];
    pthread_t thread[MEMBERS_MAX];
    cr_assert(lines != NULL && memory != NULL);
    for (uint32_t i = 0; i < r->members; i++) {
        arenas[i] = (struct qn_large_arena){memory + i * ARENA, ARENA};
    }
    for (uint32_t i = 0; i < r->members; i++) {
        node[i] = (struct node){.run = r,
                                .lines = lines,
                                .arenas = r->arenas ? arenas : NULL,
                                .memory = memory + i * ARENA,
                                .rank = i};
        cr_assert_eq(pthread_create(&thread[i], NULL, run_node, &node[i]), 0);
    }
    for (uint32_t i = 0; i < r->members; i++) {
        (void)pthread_join(thread[i], NULL);
    }
    for (uint32_t i = 0; i < r->members; i++) {
        end(&node[i]);
    }
    free(memory);
    qn_alloc_free_lines(&qn_alloc_malloc, lines);
}

static void expect_all_done(const struct run *r, const struct node *node)
{
    for (uint32_t i = 0; i < r->members; i++) {
        cr_assert_eq(node[i].rc, QN_OK, "seed %u, member %u, operation %u: %s",
                     r->seed, i, node[i].done, qn_strerror(node[i].rc));
        cr_assert_eq(node[i].done, r->operations);
    }
}

Test(large_nodes, threads_run_all_variants, .timeout = 120)
{
    for (uint32_t members = 1; members <= MEMBERS_MAX; members++) {
        const struct run r = {.members = members,
                              .operations = 80,
                              .seed = members,
                              .slow = NO_MEMBER,
                              .victim = NO_MEMBER,
                              .push = true,
                              .arenas = members % 2 == 0};
        struct node node[MEMBERS_MAX];
        run_threads(&r, node);
        expect_all_done(&r, node);
    }
}

Test(large_nodes, a_slow_member_is_waited_for, .timeout = 120)
{
    const struct run r = {.members = 3,
                          .operations = 60,
                          .seed = 11,
                          .slow = 1,
                          .victim = NO_MEMBER,
                          .push = true,
                          .arenas = true};
    struct node node[MEMBERS_MAX];
    run_threads(&r, node);
    expect_all_done(&r, node);
}

Test(large_nodes, an_ended_member_fails_all_that_need_it, .timeout = 120)
{
    for (uint32_t victim = 0; victim < 4; victim++) {
        const struct run r = {.members = 4,
                              .operations = 100,
                              .seed = 20 + victim,
                              .slow = NO_MEMBER,
                              .victim = victim,
                              .ends_at = 15,
                              .push = true};
        struct node node[MEMBERS_MAX];
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
    struct qn_area lines, arena[MEMBERS_MAX];
};

static void make(struct shared *s, uint32_t members)
{
    int rc = qn_area_create(&s->lines, "quoin-area",
                            members * sizeof(struct qn_large_line), true);
    for (uint32_t i = 0; rc == QN_OK && i < members; i++) {
        rc = qn_area_create(&s->arena[i], "quoin-area", ARENA, true);
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
static void isolate(struct shared *s, struct node *n,
                    struct qn_large_arena *arenas)
{
    const uint32_t members = n->run->members;
    struct shared here;
    int rc = qn_area_map(&here.lines, s->lines.fd,
                         members * sizeof(struct qn_large_line));
    for (uint32_t i = 0; rc == QN_OK && i < members; i++) {
        const uint32_t x = (n->rank + i) % members;
        rc = qn_area_map(&here.arena[x], s->arena[x].fd, ARENA);
        if (rc == QN_OK && x != n->rank && !n->run->push) {
            rc = mprotect(here.arena[x].memory, ARENA, PROT_READ);
        }
        arenas[x] = (struct qn_large_arena){here.arena[x].memory, ARENA};
    }
    QN_ASSERT(rc == 0);
    drop(s, members);
    n->memory = arenas[n->rank].base;
    n->lines = here.lines.memory;
    n->arenas = arenas;
}

/* @return in a child: its exit status. */
typedef int program_fn(struct node *n);

static pid_t start(struct shared *s, const struct run *r, uint32_t rank,
                   program_fn *program)
{
    const pid_t pid = fork();
    if (pid == 0) {
        struct qn_large_arena arenas[MEMBERS_MAX];
        struct node n = {.run = r, .rank = rank};
        isolate(s, &n, arenas);
        _exit(program(&n));
    }
    return pid;
}

static int run_all(struct node *n)
{
    (void)run_node(n);
    free(n->large); /* its intermediate memory is in the arena */
    return n->rc == QN_OK ? 0 : 1;
}

Test(large_nodes_processes, pull_from_memory_that_they_cannot_write,
     .timeout = 120)
{
    const struct run r = {.members = 4,
                          .operations = 150,
                          .seed = 5,
                          .slow = NO_MEMBER,
                          .victim = NO_MEMBER};
    struct shared s;
    pid_t pid[MEMBERS_MAX];
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
typedef void call_fn(struct qn_large_call *c, const struct node *n, uint32_t k);

static int run_until_death(struct node *n, call_fn *next)
{
    struct qn_alloc work;
    struct qn_large *l = malloc(sizeof *l);
    int rc = l == NULL ? QN_ENOMEM : init(n, l, &work);
    for (uint32_t k = 0; rc == QN_OK && k < 40; k++) {
        struct qn_large_call c = {.bytes = 20000,
                                  .in = n->memory,
                                  .out = n->memory + SET,
                                  .op = &sum,
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

static void expect_all_fail(const struct run *r, program_fn *program)
{
    const char *name = r->variant == NULL ? "reduce" : r->variant->name;
    struct shared s;
    pid_t pid[MEMBERS_MAX];
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
static void reduce(struct qn_large_call *c, const struct node *n, uint32_t k)
{
    c->variant = qn_large_variant_at(k % 2 == 0 ? 15 : 14);
    c->root = (n->run->victim + k) % 4;
    c->op = k == 20 && n->rank == n->run->victim ? &deadly : &sum;
}

static int reduce_until_death(struct node *n)
{
    return run_until_death(n, reduce);
}

Test(large_nodes_processes, a_killed_one_fails_all_others, .timeout = 120)
{
    for (uint32_t victim = 0; victim < 4; victim++) {
        const struct run r = {.members = 4, .victim = victim};
        expect_all_fail(&r, reduce_until_death);
    }
}

/* The victim is killed in its copy: of what others have it still sees two
 * pages. */
static void copy(struct qn_large_call *c, const struct node *n, uint32_t k)
{
    const size_t seen = 8192;
    c->variant = n->run->variant;
    if (k != 2 || n->rank != n->run->victim) {
        return;
    }
    for (uint32_t i = 0; i < n->run->members; i++) {
        if (i != n->rank) {
            QN_ASSERT(mprotect((char *)n->arenas[i].base + seen, ARENA - seen,
                               PROT_NONE) == 0);
        }
    }
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)signal(SIGSEGV, SIG_DFL); /* no report of a sanitizer */
}

static int copy_until_death(struct node *n)
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
        const struct run r = {.members = 3,
                              .victim = member_that_copies(v),
                              .variant = v,
                              .push = v->direction == QN_LARGE_PUSH};
        expect_all_fail(&r, copy_until_death);
    }
}
