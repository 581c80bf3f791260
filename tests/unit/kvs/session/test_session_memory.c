/* Lack of memory at each allocation. Calls of realloc() come here (the linker
 * wraps them), so that each can be refused. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/kvs/session/session_world.h"

#define A (&world.client[0])

static size_t calls;        /* of realloc */
static size_t failing_call; /* the one that is refused, from 1; 0: none */

void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_realloc(void *p, size_t n)
{
    calls++;
    return calls == failing_call ? NULL : __real_realloc(p, n);
}

/* Replies that need a growing buffer, a partial request, many arguments. */
static const char *const part[] = {
    "SET a 12345678901234567890123456789012345678901234567890\r\nGET a\r\n",
    "GET a\r\nGET a\r\nGET a\r\n*12\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\na\r\n",
    ("$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na"
     "\r\n$1\r\na\r\n$1\r\na\r\nPING\r\nNOSUCH\r\nPING\r\n"),
};

/* @return how often memory was asked for. */
static size_t run(size_t failing, struct qn_buf *replies)
{
    world_setup();
    /* The client's own buffers must not fail. */
    failing_call = 0;
    for (int i = 0; i < 3; i++) {
        client_send(A, part[i]);
    }
    qn_buf_reserve(&A->received, 4096);
    calls = 0;
    failing_call = failing;
    for (int i = 0; i < 3; i++) {
        A->chunk = strlen(part[i]);
        world_turn();
        while (qn_in_flight_count(&world.turn.env.in_flight) > 0) {
            world_apply(1);
        }
        world_settle();
    }
    size_t asked = calls;
    failing_call = 0;
    qn_buf_append(replies, A->received.data, A->received.len);
    bool ended = A->error == QN_ENOMEM || A->dropped;
    bool lost = failing > 0 && failing <= asked;
    cr_expect(!ended || lost, "closed without need");
    world_teardown();
    return asked;
}

/* The replies that a client has got are the first ones of the right ones. */
Test(session_memory, lack_of_memory_gives_no_wrong_reply)
{
    struct qn_buf whole = {0};
    size_t most = run(0, &whole);
    cr_assert(whole.len > 300 && most > 5);
    for (size_t k = 1; k <= most; k++) {
        struct qn_buf got = {0};
        (void)run(k, &got);
        cr_expect(got.len <= whole.len, "allocation %zu", k);
        cr_expect(got.len == 0 || memcmp(got.data, whole.data, got.len) == 0,
                  "allocation %zu: other replies", k);
        qn_buf_free(&got);
    }
    qn_buf_free(&whole);
}
