/*
 * The private memory of a member comes from its program's allocator: at each
 * call it may be refused, and then nothing is left of what was begun.
 */
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/err.h"
#include "paxos/member/member_internal.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/member/one_member.h"

/* Refuses its n-th call; in front of malloc's. */
static struct {
    uint32_t calls, refused_at; /* 0: none is */
    uint32_t blocks;
} memory;

static void *resize(void *ctx, void *p, size_t bytes)
{
    (void)ctx;
    if (bytes != 0 && ++memory.calls == memory.refused_at) {
        return NULL;
    }
    memory.blocks += p == NULL;
    memory.blocks -= bytes == 0;
    return qn_alloc_malloc.resize(NULL, p, bytes);
}

static const struct qn_alloc refusing = {resize, NULL};

static struct world_life life;

static void begin(void)
{
    one_begin();
    memset(&memory, 0, sizeof memory);
    life = (struct world_life){.world = &one.world};
    one.o.alloc = &refusing;
    one.o.callbacks.recorded = one_ignores_recorder;
}

#define CASE(name, ...)                                                        \
    Test(member_memory, name, .init = begin, .fini = one_end, __VA_ARGS__)

static void refuse(uint32_t at)
{
    memory.calls = 0;
    memory.refused_at = at;
}

static int start(struct qn_member *m)
{
    const struct qn_service service = {.ctx = &life};
    const struct qn_member_state state = world_state_of(&life);
    return qn_member_start(m, &service, &state);
}

CASE(create_may_be_refused_memory_at_any_call, .timeout = 10)
{
    const int before = open_descriptors();
    int err = QN_ENOMEM;
    uint32_t n = 0;
    while (err == QN_ENOMEM) {
        struct qn_member *m = NULL;
        refuse(++n);
        err = qn_member_create(&m, &one.o);
        cr_assert(err == QN_OK || m == NULL);
        qn_member_destroy(m);
        cr_assert_eq(memory.blocks, 0, "call %u", n);
        cr_assert_eq(open_descriptors(), before);
    }
    cr_assert_eq(err, QN_OK);
    cr_assert_eq(n, 5, "the member, two of its outbox, the arena's");
}

CASE(meet_may_be_refused_memory_at_any_call, .timeout = 10)
{
    struct qn_member *m = NULL;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    struct qn_outbox *o = one_outbox(m, 1, 2);
    const uint32_t blocks = memory.blocks;
    const int before = open_descriptors();
    uint32_t n = 0;
    int err;
    do {
        refuse(++n);
        err = one_meet(m, o, 1, 2);
        cr_assert(err == QN_OK || memory.blocks == blocks, "call %u", n);
        cr_assert(err == QN_OK || open_descriptors() == before);
        cr_assert_eq(qn_member_peers(m), err == QN_OK ? 2 : 0);
    } while (err == QN_ENOMEM);
    cr_assert_eq(err, QN_OK);
    cr_assert_eq(n, 4, "two of its outbox, the peer");
    qn_member_destroy(m);
    qn_outbox_destroy(o);
    cr_assert_eq(memory.blocks, 0);
}

/* A member that could not start is destroyed; each round is a new group. */
CASE(start_may_be_refused_memory_at_any_call, .timeout = 20)
{
    const int before = open_descriptors();
    uint32_t n = 0;
    int err;
    do {
        struct qn_member *m = NULL;
        refuse(0);
        cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
        struct qn_outbox *o[] = {one_outbox(m, 1, 2), one_outbox(m, 2, 3)};
        cr_assert_eq(one_meet(m, o[0], 1, 2), QN_OK);
        cr_assert_eq(one_meet(m, o[1], 2, 3), QN_OK);
        refuse(++n);
        err = start(m);
        qn_member_destroy(m);
        qn_outbox_destroy(o[0]);
        qn_outbox_destroy(o[1]);
        cr_assert_eq(memory.blocks, 0, "call %u", n);
        cr_assert_eq(open_descriptors(), before);
        one_end();
        begin();
    } while (err == QN_ENOMEM);
    cr_assert_eq(err, QN_OK);
    cr_assert_gt(n, 4, "driver, what it has read, machine, state transfer");
}

/* The others go on, and the newcomer comes again. */
CASE(peer_up_may_be_refused_memory_at_any_call, .timeout = 10)
{
    struct qn_member *m = NULL;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    struct qn_outbox *o[] = {one_outbox(m, 1, 2), one_outbox(m, 2, 3),
                             one_outbox(m, 1, 4)};
    cr_assert_eq(one_meet(m, o[0], 1, 2), QN_OK);
    cr_assert_eq(one_meet(m, o[1], 2, 3), QN_OK);
    qn_member_meet_ended(m, 1, 2);
    cr_assert_eq(start(m), QN_OK);
    const uint32_t blocks = memory.blocks;
    const int before = open_descriptors();
    uint32_t n = 0;
    int err;
    do {
        struct qn_member_peer p;
        refuse(++n);
        err = one_peer_up(m, o[2], 1, 4);
        cr_assert(err == QN_OK || memory.blocks == blocks, "call %u", n);
        cr_assert(err == QN_OK || open_descriptors() == before);
        cr_assert_eq(qn_member_peers(m), err == QN_OK ? 6 : 4);
        (void)qn_member_peer(m, 1, &p);
        cr_assert_eq(p.incarnation, err == QN_OK ? 4 : 2);
    } while (err == QN_ENOMEM);
    cr_assert_eq(err, QN_OK);
    cr_assert_geq(n, 4);
    qn_member_destroy(m);
    for (int i = 0; i < 3; i++) {
        qn_outbox_destroy(o[i]);
    }
    cr_assert_eq(memory.blocks, 0);
}

/* As much as it takes is enough, and a byte less is not. */
CASE(a_member_begins_within_the_limit_of_its_allocator, .timeout = 10)
{
    size_t limit = SIZE_MAX;
    for (int round = 0; round < 3; round++) {
        struct qn_alloc_limit l;
        struct qn_member *m = NULL;
        qn_alloc_limit_init(&l, &refusing, limit);
        one.o.alloc = &l.alloc;
        cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
        qn_member_meet_ended(m, 1, 2);
        qn_member_meet_ended(m, 2, 3);
        cr_assert_eq(start(m), round < 2 ? QN_OK : QN_ENOMEM);
        qn_member_destroy(m);
        cr_assert_eq(l.used, 0);
        cr_assert_eq(l.blocks, 0);
        cr_assert_leq(l.most, limit);
        limit = round == 0 ? l.most : limit - 1;
        one_end();
        begin();
    }
}
