/* Objects of each backend: options, places, results, nesting, two mappings. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/sync/clients.h"
#include "core/sync/delegate/delegate.h"
#include "tests/support/test.h"
#include "tests/unit/core/sync/delegate/delegate_world.h"

/* The next backend whose clients run operations by themselves, from number *i
 * on; NULL: there are no more. */
static const struct qn_delegate_type *next_type(uint32_t *i)
{
    static const char *const names[] = {"lock", "cc_synch", "h_synch", "auto",
                                        NULL};
    const char *name = names[(*i)++];
    return name != NULL ? qn_delegate_find(name) : NULL;
}

#define FOR_EACH(type)                                                         \
    for (uint32_t i_ = 0, on_ = 1; on_ == 1; on_ = 2)                          \
        for (const struct qn_delegate_type *type = next_type(&i_);             \
             type != NULL; type = next_type(&i_))

Test(delegate, a_backend_has_a_name_of_its_own)
{
    for (uint32_t i = 0; qn_delegate_types[i] != NULL; i++) {
        cr_expect_eq(qn_delegate_find(qn_delegate_types[i]->name),
                     qn_delegate_types[i]);
    }
    cr_expect_null(qn_delegate_find("none"));
}

Test(delegate, options_out_of_range_are_refused)
{
    FOR_EACH(type)
    {
        const struct qn_delegate_opts wrong[] = {
            {.clients = 2},
            {.type = type},
            {.type = type, .clients = QN_SYNC_CLIENTS_MAX + 1},
            {.type = type, .clients = 2, .domains = QN_DELEGATE_DOMAINS + 1},
        };
        char memory[QN_CACHELINE] = {0};
        for (uint32_t i = 0; i < 4; i++) {
            cr_expect_eq(qn_delegate_bytes(&wrong[i]), 0, "%s %u", type->name,
                         i);
            cr_expect_eq(qn_delegate_format(memory, &wrong[i]), QN_EINVAL);
        }
    }
}

Test(delegate, memory_without_an_object_is_not_opened)
{
    struct qn_delegate d;
    alignas(QN_CACHELINE) char memory[4096] = {0};
    cr_expect_eq(qn_delegate_open(&d, memory, NULL, NULL), QN_EINVAL);
    memset(memory, 'x', sizeof memory);
    cr_expect_eq(qn_delegate_open(&d, memory, NULL, NULL), QN_EINVAL);
    strcpy(memory, "lock");
    cr_expect_eq(qn_delegate_open(&d, memory, NULL, NULL), QN_EINVAL);
}

/* The version lies behind the two names. */
Test(delegate, one_of_another_version_is_not_opened)
{
    FOR_EACH(type)
    {
        struct world w;
        struct qn_delegate d;
        world_make(&w, &(struct qn_delegate_opts){.type = type, .clients = 2});
        uint32_t *version = (uint32_t *)w.memory + 8;
        (*version)++;
        cr_expect_eq(qn_delegate_open(&d, w.memory, NULL, NULL), QN_EINVAL);
        (*version)--;
        cr_expect_eq(qn_delegate_open(&d, w.memory, NULL, NULL), QN_OK);
        world_free(&w);
    }
}

/* A part that names `auto` would have parts of its own, and one that names more
 * clients more memory. The head of the first one is that of the lock. */
Test(delegate, a_part_of_another_type_or_size_is_not_opened)
{
    struct world w;
    struct qn_delegate d;
    world_make(&w, &(struct qn_delegate_opts){.type = qn_delegate_find("auto"),
                                              .clients = 2});
    char *part = memmem(w.memory, w.bytes, "lock", sizeof "lock");
    cr_assert_not_null(part);
    strcpy(part, "auto");
    cr_expect_eq(qn_delegate_open(&d, w.memory, NULL, NULL), QN_EINVAL);
    strcpy(part, "lock");
    uint32_t *clients = (uint32_t *)(void *)part + 9; /* behind the version */
    cr_assert_eq(*clients, 2);
    *clients = 200;
    cr_expect_eq(qn_delegate_open(&d, w.memory, NULL, NULL), QN_EINVAL);
    *clients = 2;
    cr_expect_eq(qn_delegate_open(&d, w.memory, NULL, NULL), QN_OK);
    world_free(&w);
}

Test(delegate, places_are_taken_and_given_back)
{
    FOR_EACH(type)
    {
        struct world w;
        struct qn_delegate_client c[3];
        struct qn_delegate_join_opts far = {.domain = 2};
        world_make(&w, &(struct qn_delegate_opts){
                           .type = type, .clients = 2, .domains = 2});
        cr_expect_eq(qn_delegate_join(&w.d, &c[0], &far),
                     type->domains ? QN_EINVAL : QN_OK);
        if (!type->domains) {
            qn_delegate_leave(&w.d, &c[0]);
        }
        for (uint64_t lap = 0; lap < 5; lap++) {
            uint64_t was = 0;
            cr_assert_eq(qn_delegate_join(&w.d, &c[0], NULL), QN_OK);
            cr_assert_eq(qn_delegate_join(&w.d, &c[1], NULL), QN_OK);
            cr_expect_eq(qn_delegate_join(&w.d, &c[2], NULL), QN_EAGAIN);
            cr_expect_eq(qn_delegate(&w.d, &c[lap % 2], ADD, 1, &was), QN_OK);
            cr_expect_eq(was, lap, "%s", type->name);
            qn_delegate_leave(&w.d, &c[0]);
            qn_delegate_leave(&w.d, &c[1]);
        }
        world_free(&w);
    }
}

/* Alone, so each call runs its own operation; a lock is free each time. */
Test(delegate, what_a_client_has_done_is_counted_once)
{
    enum { CALLS = 10 };
    FOR_EACH(type)
    {
        struct world w;
        struct qn_delegate_client c;
        uint64_t result;
        const struct qn_delegate_opts o = {.type = type, .clients = 1};
        world_make(&w, &o);
        cr_assert_eq(qn_delegate_join(&w.d, &c, NULL), QN_OK);
        for (int i = 0; i < CALLS; i++) {
            cr_assert_eq(qn_delegate(&w.d, &c, ADD, 1, &result), QN_OK);
        }
        const struct qn_delegate_stats s = qn_delegate_stats_of(&w.d, &c);
        cr_expect_eq(s.operations, CALLS, "%s", type->name);
        cr_expect_eq(s.served, CALLS, "%s", type->name);
        cr_expect_eq(s.batches, CALLS, "%s", type->name);
        cr_expect_eq(s.cas_failed + s.waits.parks, 0, "%s", type->name);
        if (type == qn_delegate_find("lock")) { /* over tas */
            cr_expect_eq(s.cas, CALLS);
        }
        qn_delegate_leave(&w.d, &c);
        world_free(&w);
    }
}

Test(delegate, an_operation_without_a_number_is_refused)
{
    FOR_EACH(type)
    {
        struct world w;
        struct qn_delegate_client c;
        uint64_t result = 7;
        world_make(&w, &(struct qn_delegate_opts){.type = type, .clients = 1});
        cr_assert_eq(qn_delegate_join(&w.d, &c, NULL), QN_OK);
        cr_expect_eq(qn_delegate(&w.d, &c, QN_DELEGATE_OPS, 0, &result),
                     QN_EINVAL, "%s", type->name);
        cr_expect_eq(qn_delegate(&w.d, &c, UINT32_MAX, 0, &result), QN_EINVAL);
        cr_expect_eq(result, 7, "untouched");
        cr_expect_eq(qn_delegate(&w.d, &c, ADD, 1, &result), QN_OK);
        qn_delegate_leave(&w.d, &c);
        world_free(&w);
    }
}

Test(delegate, the_top_bit_of_a_result_is_the_library_s)
{
    FOR_EACH(type)
    {
        struct world w;
        struct qn_delegate_client c;
        uint64_t result = 0;
        world_make(&w, &(struct qn_delegate_opts){.type = type, .clients = 1});
        cr_assert_eq(qn_delegate_join(&w.d, &c, NULL), QN_OK);
        cr_expect_eq(qn_delegate(&w.d, &c, TOP, 0, &result), QN_OK);
        cr_expect_eq(result, QN_DELEGATE_VALUE, "%s", type->name);
        qn_delegate_leave(&w.d, &c);
        world_free(&w);
    }
}

Test(delegate, a_call_from_an_operation_on_the_same_object_is_an_error)
{
    FOR_EACH(type)
    {
        struct world w;
        struct qn_delegate_client c;
        uint64_t result = 0;
        world_make(&w, &(struct qn_delegate_opts){.type = type, .clients = 1});
        cr_assert_eq(qn_delegate_join(&w.d, &c, NULL), QN_OK);
        w.nested = &c;
        cr_expect_eq(qn_delegate(&w.d, &c, NEST, 0, &result), QN_OK);
        cr_expect_eq((int)-result, QN_EDEADLK, "%s", type->name);
        cr_expect_eq(w.counter, 0);
        cr_expect_eq(qn_delegate(&w.d, &c, ADD, 1, &result), QN_OK);
        cr_expect_eq(w.counter, 1);
        qn_delegate_leave(&w.d, &c);
        world_free(&w);
    }
}

/* ---- the memory is mapped twice ---- */

static uint64_t add_to(void *ctx, uint32_t op, uint64_t arg)
{
    uint64_t *counter = ctx;
    (void)op;
    *counter += arg;
    return *counter;
}

static void *map(int fd, size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_neq(at, MAP_FAILED);
    return at;
}

/* Two processes map it at different addresses; here one maps it twice. The
 * counter is the first line, the object lies behind it. */
Test(delegate, the_memory_may_be_mapped_anywhere)
{
    FOR_EACH(type)
    {
        const struct qn_delegate_opts o = {.type = type, .clients = 2};
        const size_t bytes = QN_CACHELINE + qn_delegate_bytes(&o);
        struct qn_delegate d[2];
        struct qn_delegate_client c[2];
        char *at[2];
        int fd = memfd_create("delegate", 0);
        cr_assert_geq(fd, 0);
        cr_assert_eq(ftruncate(fd, (off_t)bytes), 0);
        for (uint32_t i = 0; i < 2; i++) {
            at[i] = map(fd, bytes);
            if (i == 0) {
                cr_assert_eq(qn_delegate_format(at[0] + QN_CACHELINE, &o), 0);
            }
            cr_assert_eq(
                qn_delegate_open(&d[i], at[i] + QN_CACHELINE, add_to, at[i]),
                QN_OK);
            cr_assert_eq(qn_delegate_join(&d[i], &c[i], NULL), QN_OK);
        }
        for (uint64_t n = 1; n <= 10; n++) {
            uint64_t now = 0;
            cr_expect_eq(qn_delegate(&d[n % 2], &c[n % 2], ADD, 1, &now), 0);
            cr_expect_eq(now, n, "%s: %lu, not %lu", type->name, now, n);
        }
        for (uint32_t i = 0; i < 2; i++) {
            qn_delegate_leave(&d[i], &c[i]);
            munmap(at[i], bytes);
        }
        close(fd);
    }
}
