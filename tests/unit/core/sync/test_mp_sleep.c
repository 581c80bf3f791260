/* An MP-Server sleeps until it is asked or stopped, and is not woken between:
 * what others do while it sleeps is done here in place of the sleep. */
#include "core/base/err.h"
#include "core/sync/delegate/delegate.h"
#include "core/sync/delegate/server.h"
#include "core/wait/park.h"
#include "tests/unit/core/sync/port_world.h"

static struct port_world w;
static struct qn_delegate d;
static struct qn_delegate_client c;
static uint32_t sleeps;

int __wrap_qn_park_word(qn_a32 *word, uint32_t seen, qn_time_t deadline);

/* A request comes in the first sleep, a stop in the second one. */
int __wrap_qn_park_word(qn_a32 *word, uint32_t seen, qn_time_t deadline)
{
    cr_assert_eq(qn_load(word, QN_RELAXED), seen);
    cr_assert_eq(deadline, QN_TIME_NEVER, "it wakes by itself");
    if (sleeps++ == 0) {
        cr_assert_eq(qn_delegate_submit(&d, &c, 0, 41), QN_OK);
    } else {
        cr_assert_eq(qn_delegate_stop(&d), QN_OK);
    }
    cr_assert_neq(qn_load(word, QN_RELAXED), seen, "it is not woken");
    return QN_OK;
}

static uint64_t add_one(void *ctx, uint32_t op, uint64_t arg)
{
    (void)ctx;
    (void)op;
    return arg + 1;
}

Test(mp_sleep, ends_with_a_request_and_with_a_stop)
{
    const struct qn_delegate_opts o = {.type = qn_delegate_find("mp_server"),
                                       .clients = 1};
    uint64_t result = 0;
    port_world_make(&w, &qn_words_shared, 2, true);
    void *memory = lines_of(qn_delegate_bytes(&o));
    cr_assert_eq(qn_delegate_format(memory, &o), QN_OK);
    cr_assert_eq(qn_delegate_open(&d, memory, add_one, NULL), QN_OK);
    const struct qn_delegate_join_opts join = {.port = &w.port[0]};
    cr_assert_eq(qn_delegate_join(&d, &c, &join), QN_OK);
    struct qn_delegate_server s = {.port = &w.port[1]};
    cr_assert_eq(qn_delegate_serve(&d, &s), QN_OK);
    cr_expect_eq(sleeps, 2);
    cr_expect_eq(s.stats.waits.parks, 2);
    cr_expect_eq(s.stats.served, 1);
    cr_assert_eq(qn_delegate_collect(&d, &c, &result), QN_OK);
    cr_expect_eq(result, 42);
    qn_delegate_leave(&d, &c);
    free(memory);
    port_world_free(&w);
}
