/* The leader's queue: batches, references, what is pulled and what is lost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "paxos/machine/queue.h"
#include "tests/support/test.h"

#define CAPACITY 4096u
#define NODES    3u

static struct qn_queue q;
static struct qn_draft draft[8];
static struct qn_params params;
static uint8_t *memory[NODES];
static struct qn_arena own[NODES];
static bool ended[NODES];
static bool poor; /* no memory */

static const struct qn_arena *arena(void *ctx, qn_node_t node, uint64_t inc)
{
    (void)ctx;
    return inc == 10 && !ended[node] ? &own[node] : NULL;
}

static const struct qn_uploads uploads = {.arena = arena};

static void *resize(void *ctx, void *p, size_t bytes)
{
    (void)ctx;
    return poor && bytes != 0 ? NULL : qn_alloc_malloc.resize(NULL, p, bytes);
}

static const struct qn_alloc alloc = {.resize = resize};

static void begin(void)
{
    const struct qn_arena_opts o = {.capacity = CAPACITY};
    size_t bytes = qn_align_up(qn_arena_bytes(CAPACITY), QN_CACHELINE);
    params = qn_params_default(true);
    params.batch_bytes = 1000;
    qn_queue_init(&q, draft, 8);
    for (int i = 0; i < (int)NODES; i++) {
        memory[i] = aligned_alloc(QN_CACHELINE, bytes);
        memset(memory[i], 0, bytes);
        cr_assert_eq(qn_arena_begin(&own[i], memory[i], &o), QN_OK);
    }
}

static void end(void)
{
    qn_queue_clear(&q);
    for (int i = 0; i < (int)NODES; i++) {
        qn_arena_end(&own[i]);
        free(memory[i]);
    }
}

#define QUEUE(name) Test(queue, name, .init = begin, .fini = end)

/* A list of commands: a letter each, as often as is said; '+' before those that
 * stay in the arena of `node`. "a3+b20" */
static struct qn_refbuf *list_of(qn_node_t node, const char *s)
{
    char bytes[CAPACITY];
    struct qn_refbuf *b = qn_refbuf_create(&qn_alloc_malloc, 64);
    while (*s != '\0') {
        bool refers = *s == '+';
        s += refers;
        char letter = *s;
        size_t len = strtoul(s + 1, (char **)&s, 10);
        memset(bytes, letter, len);
        const struct qn_slice part = {(const uint8_t *)bytes, len};
        struct qn_arena_place p;
        if (refers) {
            cr_assert_eq(qn_arena_add(&own[node], len, &p), QN_OK);
            memcpy(qn_arena_at(&own[node], &p), bytes, len);
        }
        cr_assert_eq(refers ? qn_commands_refer(&b, &p)
                            : qn_commands_add(&b, &part, 1),
                     QN_OK);
    }
    return b;
}

static int add(qn_node_t node, uint64_t inc, uint64_t first, const char *s)
{
    struct qn_refbuf *b = list_of(node, s);
    const struct qn_slice commands = {b->bytes, b->len};
    struct qn_wants w;
    cr_assert_eq(qn_wanted_check(commands, &w), QN_OK);
    const struct qn_command_run g = {.origin = node,
                                     .inc = inc,
                                     .first = first,
                                     .count = w.count,
                                     .commands = commands};
    int err = qn_queue_add(&q, &alloc, &params, &g, &w);
    qn_refbuf_unref(b);
    return err;
}

static int64_t open_some(size_t most, struct qn_command_run *lost)
{
    return qn_queue_open(&q, &alloc, &uploads, most, lost);
}

/* Open the oldest and say what it holds: "0@1:a3b20 1@7:..." */
static const char *open_all(void)
{
    static char text[512];
    struct qn_command_run g;
    size_t n = 0;
    cr_assert_eq(open_some(SIZE_MAX, &g), 0);
    struct qn_refbuf *b = qn_queue_take(&q);
    const struct qn_slice batch = {b->bytes, b->len};
    cr_assert_eq(qn_batch_check(batch), QN_OK, "nothing refers any more");
    for (uint32_t at = 0; qn_batch_next(batch, &at, &g);) {
        struct qn_slice c;
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "%s%u@%lu:", n == 0 ? "" : " ",
                              (unsigned)g.origin, (unsigned long)g.first);
        while (qn_commands_next(&g.commands, &c)) {
            for (size_t i = 0; i < c.len; i++) {
                cr_assert_eq(c.data[i], c.data[0]);
            }
            n += (size_t)snprintf(text + n, sizeof text - n, "%c%zu", c.data[0],
                                  c.len);
        }
    }
    qn_refbuf_unref(b);
    return text;
}

QUEUE(small_commands_share_a_batch)
{
    cr_assert_eq(add(0, 10, 1, "a3b20"), QN_OK);
    cr_assert_eq(add(1, 10, 7, "c1"), QN_OK);
    cr_assert_eq(q.commands, 3);
    cr_assert_str_eq(open_all(), "0@1:a3b20 1@7:c1");
    cr_assert(qn_queue_empty(&q) && q.commands == 0);
}

QUEUE(a_batch_is_as_long_as_its_commands_and_not_as_its_references)
{
    add(0, 10, 1, "+a600");
    add(1, 10, 1, "+b600");
    add(1, 10, 2, "+c300");
    cr_assert_geq(qn_queue_bytes(&q), 600);
    cr_assert_str_eq(open_all(), "0@1:a600");
    cr_assert_str_eq(open_all(), "1@1:b600 1@2:c300");
}

QUEUE(references_and_commands_keep_their_order)
{
    add(2, 10, 5, "a1+b100c2+d50e3");
    add(0, 10, 1, "f4");
    cr_assert_str_eq(open_all(), "2@5:a1b100c2d50e3 0@1:f4");
}

QUEUE(a_long_one_is_opened_in_parts_and_grows_no_more)
{
    struct qn_command_run lost;
    int parts = 0;
    add(0, 10, 1, "+a350b3");
    while (open_some(100, &lost) > 0) {
        parts++;
        add(1, 10, (uint64_t)parts, "c1"); /* behind it */
    }
    cr_assert_eq(parts, 3);
    cr_assert_str_eq(open_all(), "0@1:a350b3");
    cr_assert_str_eq(open_all(), "1@1:c1 1@2:c1 1@3:c1");
}

QUEUE(what_its_origin_has_freed_is_lost)
{
    struct qn_command_run lost;
    add(0, 10, 1, "a1+b300");
    add(1, 10, 1, "c1");
    add(0, 10, 3, "d1");
    add(2, 10, 1, "e900");
    add(0, 10, 4, "+f600");
    qn_arena_free(&own[0]);
    cr_assert_eq(open_some(SIZE_MAX, &lost), QN_ESTALE);
    cr_assert(lost.origin == 0 && lost.inc == 10 && lost.first == 1);
    qn_queue_drop(&q, 0, 10);
    cr_assert_str_eq(open_all(), "1@1:c1");
    cr_assert_str_eq(open_all(), "2@1:e900");
    cr_assert(qn_queue_empty(&q) && q.commands == 0);
    cr_assert_eq(add(0, 10, 1, "a1"), QN_OK, "it comes again");
    cr_assert_str_eq(open_all(), "0@1:a1");
}

QUEUE(who_has_ended_is_lost_in_the_middle_of_a_copy)
{
    struct qn_command_run lost;
    add(0, 10, 1, "+a500");
    add(0, 11, 1, "b2"); /* its next incarnation */
    cr_assert_gt(open_some(100, &lost), 0);
    ended[0] = true;
    cr_assert_eq(open_some(100, &lost), QN_ESTALE);
    qn_queue_drop(&q, lost.origin, lost.inc);
    cr_assert_str_eq(open_all(), "0@1:b2");
}

/* Its earlier runs are dropped, too: who goes on behind the lost one only
 * leaves a gap in the session. */
QUEUE(what_is_lost_begins_with_the_first_run_of_its_life)
{
    struct qn_command_run lost;
    add(1, 10, 1, "c1");
    add(0, 10, 1, "a2");
    add(0, 10, 2, "+b300");
    qn_arena_free(&own[0]);
    cr_assert_eq(open_some(SIZE_MAX, &lost), QN_ESTALE);
    cr_assert_eq(lost.first, 1, "got %lu", (unsigned long)lost.first);
    qn_queue_drop(&q, lost.origin, lost.inc);
    cr_assert_str_eq(open_all(), "1@1:c1");
}

QUEUE(a_wild_place_is_lost)
{
    struct qn_command_run lost;
    struct qn_refbuf *b = qn_refbuf_create(&qn_alloc_malloc, 64);
    const struct qn_arena_place wild = {.index = 1, .at = CAPACITY, .len = 1};
    cr_assert_eq(qn_commands_refer(&b, &wild), QN_OK);
    const struct qn_command_run g = {.origin = 1,
                                     .inc = 10,
                                     .first = 1,
                                     .count = 1,
                                     .commands = {b->bytes, b->len}};
    const struct qn_wants w = {.count = 1, .refers = true, .bytes = 2};
    cr_assert_eq(qn_queue_add(&q, &alloc, &params, &g, &w), QN_OK);
    cr_assert_eq(open_some(SIZE_MAX, &lost), QN_ESTALE);
    qn_refbuf_unref(b);
}

QUEUE(without_memory_nothing_is_lost)
{
    struct qn_command_run lost;
    poor = true;
    cr_assert_eq(add(0, 10, 1, "a1"), QN_ENOMEM);
    cr_assert(qn_queue_empty(&q));
    poor = false;
    add(0, 10, 1, "+a100");
    poor = true;
    cr_assert_eq(open_some(SIZE_MAX, &lost), QN_ENOMEM);
    poor = false;
    cr_assert_str_eq(open_all(), "0@1:a100");
}
