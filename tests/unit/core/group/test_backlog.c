#include "core/group/backlog_internal.h"
#include "tests/support/test.h"

static uint8_t message[QN_MSG_MAX];

/* A backlog for nodes below `members`, with room. */
static void begin(struct qn_backlog *b, uint32_t members, uint32_t msg_max)
{
    static uint64_t lagging[QN_NODE_SET_WORDS(QN_MEMBERS_MAX)];
    qn_backlog_init(b, qn_node_set_over(lagging, members));
    cr_assert_eq(qn_backlog_reserve(b, msg_max), QN_OK);
}

/* Push a message that is owed to `first`, and to `second` unless it is the
 * same. */
static bool push(struct qn_backlog *b, const void *msg, size_t len,
                 qn_node_t first, qn_node_t second)
{
    uint64_t word[QN_NODE_SET_WORDS(QN_MEMBERS_MAX)];
    struct qn_node_set s = qn_node_set_over(word, b->lagging.words * 64);
    qn_node_set_add(&s, first);
    qn_node_set_add(&s, second);
    return qn_backlog_push(b, msg, len, &s);
}

Test(backlog, pays_each_node_in_order)
{
    struct qn_backlog b;
    begin(&b, QN_NODES_MAX, QN_MSG_MAX);
    cr_assert(push(&b, "a", 1, 3, 3));
    cr_assert(push(&b, "b", 1, 3, 5));
    cr_assert_eq(b.lagging.word[0], 1u << 3 | 1u << 5);
    cr_assert_eq(*qn_backlog_next(&b, 5).data, 'b');
    qn_backlog_pay(&b, 5);
    cr_assert_eq(b.lagging.word[0], 1u << 3);
    cr_assert_eq(*qn_backlog_next(&b, 3).data, 'a');
    qn_backlog_pay(&b, 3);
    cr_assert_eq(*qn_backlog_next(&b, 3).data, 'b');
    qn_backlog_pay(&b, 3);
    cr_assert_eq(b.lagging.word[0], 0);
    cr_assert_eq(b.count, 0);
    qn_backlog_fini(&b);
}

Test(backlog, a_window_holds_as_many_messages_of_the_longest_kind)
{
    cr_assert_eq(qn_backlog_window(QN_MSG_MAX), QN_ACKED_BYTES);
    cr_assert_eq(qn_backlog_window(2048), QN_ACKED_BYTES);
    cr_assert_eq(qn_backlog_window(100), QN_ACKED_COUNT * 100);
}

Test(backlog, nodes_of_all_words_are_told_apart)
{
    static const qn_node_t node[] = {0, 63, 64, 127, 128, 1023};
    struct qn_backlog b;
    begin(&b, QN_MEMBERS_MAX, 100);
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(node); i++) {
        uint8_t byte = (uint8_t)i;
        cr_assert(
            push(&b, &byte, 1, node[i], node[(i + 1) % QN_ARRAY_COUNT(node)]));
    }
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(node); i++) {
        uint32_t first = i == 0 ? 0 : i - 1;
        uint32_t second = i == 0 ? QN_ARRAY_COUNT(node) - 1 : i;
        cr_assert_eq(*qn_backlog_next(&b, node[i]).data, first);
        qn_backlog_pay(&b, node[i]);
        cr_assert_eq(*qn_backlog_next(&b, node[i]).data, second);
        qn_backlog_pay(&b, node[i]);
        cr_assert(!qn_node_set_has(&b.lagging, node[i]));
    }
    cr_assert_eq(b.count, 0);
    qn_backlog_fini(&b);
}

Test(backlog, forget_frees_what_only_that_node_was_owed)
{
    struct qn_backlog b;
    begin(&b, QN_NODES_MAX, QN_MSG_MAX);
    cr_assert(push(&b, "a", 1, 3, 3));
    cr_assert(push(&b, "b", 1, 3, 5));
    qn_backlog_forget(&b, 3);
    cr_assert_eq(b.lagging.word[0], 1u << 5);
    cr_assert_eq(b.count, 1);
    qn_backlog_forget(&b, 3);
    qn_backlog_forget(&b, 63);
    cr_assert_eq(*qn_backlog_next(&b, 5).data, 'b');
    qn_backlog_fini(&b);
}

Test(backlog, says_no_when_the_entries_are_used_up)
{
    struct qn_backlog b;
    begin(&b, QN_NODES_MAX, QN_MSG_MAX);
    for (uint32_t i = 0; i < QN_ACKED_COUNT; i++) {
        cr_assert(push(&b, "x", 1, 0, 0));
    }
    cr_assert(!push(&b, "x", 1, 0, 0));
    qn_backlog_pay(&b, 0);
    cr_assert(push(&b, "x", 1, 0, 0));
    qn_backlog_fini(&b);
}

Test(backlog, says_no_when_the_bytes_are_used_up)
{
    struct qn_backlog b;
    begin(&b, QN_NODES_MAX, QN_MSG_MAX);
    for (uint32_t i = 0; i < qn_backlog_bytes(QN_MSG_MAX) / QN_MSG_MAX; i++) {
        cr_assert(push(&b, message, QN_MSG_MAX, 0, 0));
    }
    cr_assert(!push(&b, "x", 1, 0, 0));
    qn_backlog_fini(&b);
}

/* Push messages of sizes from the edges, where wrapping wastes most, and pay
 * when `limit` bytes are held or a push says no. Returns how often it did. */
static uint32_t push_and_pay(uint32_t limit, uint32_t msg_max, qn_node_t node)
{
    /* In 65536ths of the longest. */
    static const uint32_t sizes[] = {1, 8, 4096, 30000, 40000, 65535, 65536};
    struct qn_backlog b;
    begin(&b, node + 1, msg_max);
    uint32_t held[QN_ACKED_COUNT];
    uint32_t from = 0;
    uint32_t to = 0;
    uint32_t bytes = 0;
    uint32_t refused = 0;
    uint64_t r = 1;
    for (uint32_t i = 0; i < 20000; i++) {
        r = r * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t size = sizes[(r >> 33) % QN_ARRAY_COUNT(sizes)];
        uint32_t len = QN_MAX((uint32_t)(size * msg_max / QN_MSG_MAX), 1u);
        bool full = to - from == QN_ACKED_COUNT || bytes + len > limit;
        message[0] = message[len - 1] = (uint8_t)to;
        if (!full && push(&b, message, len, node, node)) {
            held[to++ % QN_ACKED_COUNT] = len;
            bytes += len;
            continue;
        }
        refused += !full;
        struct qn_slice m = qn_backlog_next(&b, node);
        cr_assert_eq(m.len, held[from % QN_ACKED_COUNT]);
        cr_assert_eq(m.data[0], (uint8_t)from);
        cr_assert_eq(m.data[m.len - 1], (uint8_t)from, "overwritten");
        qn_backlog_pay(&b, node);
        bytes -= held[from++ % QN_ACKED_COUNT];
    }
    qn_backlog_fini(&b);
    return refused;
}

/* What backlog.c promises: as long as the payload stays within the window, a
 * push succeeds wherever the ring stands; beyond, it says no in time. */
Test(backlog, within_the_window_a_push_never_fails, .timeout = 60)
{
    cr_assert_eq(push_and_pay(QN_ACKED_BYTES, QN_MSG_MAX, 9), 0);
    for (uint32_t msg_max = QN_INPLACE_MAX; msg_max < 5000; msg_max += 333) {
        uint32_t window = qn_backlog_window(msg_max);
        cr_assert_eq(push_and_pay(window, msg_max, 300), 0, "%u", msg_max);
    }
}

Test(backlog, beyond_the_window_no_byte_is_overwritten, .timeout = 60)
{
    cr_assert_gt(push_and_pay(UINT32_MAX, QN_MSG_MAX, 9), 0);
    cr_assert_gt(push_and_pay(UINT32_MAX, 5000, 300), 0);
}
