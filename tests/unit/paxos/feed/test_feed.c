/* The change feed: its cases, and random schedules beside a list of all that
 * was ever recorded. */
#include "paxos/feed/feed.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "tests/support/test.h"

enum { BYTES = 100, RECORDS = 8 };

static struct qn_feed *f;
static struct qn_feed_record r;
static qn_slot_t slot; /* the next one */

static const struct qn_feed_opts opts = {
    .bytes = BYTES, .records = RECORDS, .subscribers = 3, .retain = true};

static void begin(const struct qn_feed_opts *o)
{
    qn_feed_destroy(f);
    f = NULL;
    cr_assert_eq(qn_feed_create(&f, o), QN_OK);
    slot = o->applied + 1;
}

static void setup(void)
{
    f = NULL;
    begin(&opts);
}

static void teardown(void)
{
    qn_feed_destroy(f);
    f = NULL;
}

#define CASE(name) Test(feed, name, .init = setup, .fini = teardown)

static void command(const char *text)
{
    const struct qn_feed_record c = {
        .at = {.slot = slot},
        .stamp_ms = 1000 + slot,
        .origin = 2,
        .origin_inc = 7,
        .seq = slot * 10,
        .bytes = {(const uint8_t *)text, strlen(text)}};
    qn_feed_command(f, &c);
}

static void slot_end(void)
{
    qn_feed_slot_end(f, slot++);
}

/* A slot with one command of `len` bytes. */
static void slot_of(size_t len)
{
    char text[BYTES + 2] = {0};
    cr_assert_leq(len, (size_t)BYTES + 1);
    memset(text, 'x', len);
    command(text);
    slot_end();
}

static struct qn_feed_position at(qn_slot_t s, uint64_t number)
{
    return (struct qn_feed_position){.slot = s, .number = number};
}

static bool is_at(struct qn_feed_position p, qn_slot_t s, uint64_t number)
{
    return p.slot == s && p.number == number;
}

static uint32_t subscribe(struct qn_feed_position from)
{
    uint32_t id = 99;
    cr_assert_eq(qn_feed_subscribe(f, &from, &id), QN_OK);
    return id;
}

static uint32_t subscribe_now(void)
{
    uint32_t id = 99;
    cr_assert_eq(qn_feed_subscribe(f, NULL, &id), QN_OK);
    return id;
}

/* The next record is that command. */
static bool reads(uint32_t id, qn_slot_t s, uint64_t number)
{
    return qn_feed_read(f, id, &r) == QN_OK && r.kind == QN_FEED_COMMAND &&
           is_at(r.at, s, number) && is_at(r.to, s, number + 1);
}

static bool reads_gap(uint32_t id, struct qn_feed_position from, qn_slot_t to)
{
    return qn_feed_read(f, id, &r) == QN_OK && r.kind == QN_FEED_GAP &&
           qn_feed_compare(r.at, from) == 0 && is_at(r.to, to, 0);
}

/* ---- what is read -------------------------------------------------------- */

CASE(each_command_comes_once_with_all_that_is_known_of_it)
{
    uint32_t id = subscribe_now();
    cr_assert_eq(qn_feed_read(f, id, &r), QN_EAGAIN);
    command("one");
    command("");
    slot_end();
    cr_assert(reads(id, 1, 0));
    cr_assert_eq(r.bytes.len, 3u);
    cr_assert_arr_eq(r.bytes.data, "one", 3);
    cr_assert_eq(r.stamp_ms, 1001u);
    cr_assert_eq(r.origin, 2u);
    cr_assert_eq(r.origin_inc, 7u);
    cr_assert_eq(r.seq, 10u);
    cr_assert(reads(id, 1, 1));
    cr_assert_eq(r.bytes.len, 0u);
    cr_assert_eq(qn_feed_read(f, id, &r), QN_EAGAIN);
}

CASE(the_position_to_store_passes_slots_without_commands)
{
    uint32_t id = subscribe_now();
    cr_assert(is_at(qn_feed_position(f, id), 1, 0));
    command("a");
    command("b");
    slot_end();
    slot_end();
    cr_assert(is_at(qn_feed_position(f, id), 1, 0), "nothing was read");
    cr_assert(reads(id, 1, 0));
    cr_assert(is_at(qn_feed_position(f, id), 1, 1));
    cr_assert(reads(id, 1, 1));
    cr_assert(is_at(qn_feed_position(f, id), 3, 0));
    command("c");
    cr_assert(is_at(qn_feed_position(f, id), 3, 0));
}

CASE(what_follows_a_state_follows_without_a_gap)
{
    command("in the state");
    slot_end();
    uint32_t id = subscribe_now();
    cr_assert(is_at(qn_feed_position(f, id), 2, 0));
    command("behind it");
    cr_assert(reads(id, 2, 0));
}

CASE(a_position_in_the_future_passes_over_what_lies_before)
{
    uint32_t id = subscribe(at(3, 1));
    slot_of(1);
    slot_of(1);
    command("3.0");
    cr_assert_eq(qn_feed_read(f, id, &r), QN_EAGAIN);
    cr_assert(is_at(qn_feed_position(f, id), 3, 1));
    cr_assert_eq(qn_feed_lag(f, id), 0u);
    command("3.1");
    cr_assert_eq(qn_feed_lag(f, id), 1u);
    cr_assert(reads(id, 3, 1));
}

CASE(what_is_passed_over_may_be_cut_meanwhile)
{
    uint32_t id = subscribe(at(RECORDS - 1, 0));
    for (int i = 0; i < RECORDS + RECORDS / 2; i++) {
        slot_of(1);
    }
    for (qn_slot_t s = RECORDS - 1; s < slot; s++) {
        cr_assert(reads(id, s, 0));
    }
}

CASE(a_subscriber_that_comes_back_goes_on_at_its_stored_position)
{
    uint32_t id = subscribe_now();
    slot_of(1);
    slot_of(1);
    cr_assert(reads(id, 1, 0));
    struct qn_feed_position stored = qn_feed_position(f, id);
    cr_assert(reads(id, 2, 0), "and its work on that was not stored");
    qn_feed_unsubscribe(f, id);
    slot_of(1);
    id = subscribe(stored);
    cr_assert(reads(id, 2, 0));
    cr_assert(reads(id, 3, 0));
}

CASE(each_subscriber_has_a_position_of_its_own)
{
    uint32_t a = subscribe_now();
    slot_of(1);
    uint32_t b = subscribe_now();
    slot_of(1);
    cr_assert_neq(a, b);
    cr_assert(reads(b, 2, 0));
    cr_assert(reads(a, 1, 0));
    cr_assert(reads(a, 2, 0));
    cr_assert_eq(qn_feed_seek(f, b, &(struct qn_feed_position){1, 0}), QN_OK);
    cr_assert(reads(b, 1, 0));
    cr_assert_eq(qn_feed_seek(f, b, NULL), QN_OK);
    cr_assert_eq(qn_feed_read(f, b, &r), QN_EAGAIN);
}

/* ---- gaps ---------------------------------------------------------------- */

CASE(a_snapshot_is_a_gap_with_both_ends)
{
    uint32_t id = subscribe_now();
    uint32_t inside = subscribe(at(5, 2));
    uint32_t behind = subscribe(at(10, 0));
    slot_of(1);
    qn_feed_snapshot(f, 9);
    cr_assert_eq(qn_feed_lag(f, id), 2u);
    cr_assert(reads(id, 1, 0));
    cr_assert(reads_gap(id, at(2, 0), 10));
    cr_assert(is_at(qn_feed_position(f, id), 10, 0));
    cr_assert(reads_gap(inside, at(5, 2), 10), "what this one has missed");
    slot = 10;
    slot_of(1);
    cr_assert(reads(id, 10, 0));
    cr_assert(reads(inside, 10, 0));
    cr_assert(reads(behind, 10, 0), "missed nothing");
}

CASE(a_snapshot_of_what_was_applied_is_no_gap)
{
    uint32_t id = subscribe_now();
    slot_of(1);
    qn_feed_snapshot(f, 1);
    cr_assert(reads(id, 1, 0));
    cr_assert_eq(qn_feed_read(f, id, &r), QN_EAGAIN);
}

/* The state was lost in the middle of a slot. */
CASE(a_gap_may_begin_within_a_slot)
{
    uint32_t id = subscribe_now();
    command("a");
    qn_feed_snapshot(f, 1);
    cr_assert(reads(id, 1, 0));
    cr_assert(reads_gap(id, at(1, 1), 2));
}

CASE(slots_that_the_log_has_passed_over_are_gaps)
{
    uint32_t id = subscribe_now();
    slot = 5;
    command("a");
    slot_end();
    slot = 8;
    slot_end();
    cr_assert(reads_gap(id, at(1, 0), 5));
    cr_assert(reads(id, 5, 0));
    cr_assert(reads_gap(id, at(6, 0), 8));
    cr_assert(is_at(qn_feed_position(f, id), 9, 0));
}

Test(feed, the_log_never_goes_back, .init = setup, .signal = SIGABRT)
{
    slot_of(1);
    slot = 1;
    command("again");
}

/* ---- bounds -------------------------------------------------------------- */

static struct qn_feed_status status(void)
{
    struct qn_feed_status s;
    qn_feed_status(f, &s);
    return s;
}

CASE(one_record_more_than_the_bound_cuts_the_oldest)
{
    uint32_t id = subscribe_now();
    for (int i = 0; i < RECORDS; i++) {
        slot_of(1);
    }
    cr_assert_eq(status().records, (uint32_t)RECORDS);
    cr_assert_eq(status().gone + status().cut, 0u);
    slot_of(1);
    cr_assert_eq(status().records, (uint32_t)RECORDS);
    cr_assert_eq(status().gone, 1u);
    cr_assert_eq(status().cut, 1u);
    cr_assert_eq(qn_feed_read(f, id, &r), QN_EGONE);
    cr_assert_eq(qn_feed_read(f, id, &r), QN_EGONE, "until it has acted");
    cr_assert(is_at(qn_feed_position(f, id), 1, 0));
    cr_assert_eq(qn_feed_seek(f, id, &(struct qn_feed_position){1, 0}),
                 QN_EGONE);
    struct qn_feed_position first = qn_feed_first(f);
    cr_assert(is_at(first, 1, 1));
    cr_assert_eq(qn_feed_seek(f, id, &first), QN_OK);
    for (qn_slot_t s = 2; s < slot; s++) {
        cr_assert(reads(id, s, 0));
    }
    cr_assert_eq(qn_feed_read(f, id, &r), QN_EAGAIN);
}

CASE(one_byte_more_than_the_bound_cuts_the_oldest)
{
    uint32_t id = subscribe_now();
    slot_of(60);
    slot_of(40);
    cr_assert_eq(status().bytes, (uint64_t)BYTES);
    slot_of(0);
    cr_assert_eq(status().records, 3u, "nothing fits always");
    slot_of(1);
    cr_assert_eq(status().bytes, 41u);
    cr_assert_eq(qn_feed_read(f, id, &r), QN_EGONE);
    cr_assert_eq(qn_feed_seek(f, id, &(struct qn_feed_position){2, 0}), QN_OK);
    cr_assert(reads(id, 2, 0));
    cr_assert_eq(r.bytes.len, 40u);
}

CASE(a_command_as_long_as_the_bound_is_kept_and_a_longer_one_cut_itself)
{
    uint32_t id = subscribe_now();
    slot_of(1);
    slot_of(BYTES);
    cr_assert_eq(qn_feed_seek(f, id, &(struct qn_feed_position){2, 0}), QN_OK);
    cr_assert(reads(id, 2, 0));
    cr_assert_eq(r.bytes.len, (size_t)BYTES);
    slot_of(BYTES + 1);
    cr_assert_eq(qn_feed_read(f, id, &r), QN_EGONE);
    cr_assert_eq(status().records, 0u);
    cr_assert_eq(status().cut, 3u);
    cr_assert(is_at(qn_feed_first(f), 3, 1));
    slot_of(BYTES);
    cr_assert_eq(qn_feed_seek(f, id, &(struct qn_feed_position){3, 1}), QN_OK);
    cr_assert(reads(id, 4, 0));
}

CASE(a_subscriber_that_lags_costs_another_one_nothing)
{
    uint32_t slow = subscribe_now();
    uint32_t fast = subscribe_now();
    for (int i = 0; i < 10 * RECORDS; i++) {
        slot_of(30);
        cr_assert(reads(fast, slot - 1, 0));
    }
    cr_assert_eq(qn_feed_read(f, slow, &r), QN_EGONE);
    cr_assert_eq(status().gone, 1u);
}

/* Once all that is kept was recorded after it was cut. */
CASE(for_a_subscriber_that_has_stopped_nothing_is_recorded)
{
    struct qn_feed_opts o = opts;
    o.retain = false;
    begin(&o);
    uint32_t id = subscribe_now();
    for (int i = 0; i < 2 * RECORDS + 1; i++) {
        slot_of(1);
    }
    cr_assert_eq(status().records, (uint32_t)RECORDS);
    slot_of(1);
    cr_assert_eq(status().records + status().bytes, 0u);
    cr_assert_eq(status().cut, 2u * RECORDS + 1);
    cr_assert_eq(status().gone, 1u);
    slot_of(1);
    cr_assert_eq(status().records, 0u);
    cr_assert_eq(qn_feed_read(f, id, &r), QN_EGONE);
    cr_assert_eq(qn_feed_lag(f, id), 0u);
    struct qn_feed_position first = qn_feed_first(f);
    cr_assert(is_at(first, slot, 0));
    cr_assert_eq(qn_feed_seek(f, id, &first), QN_OK);
    cr_assert_eq(qn_feed_read(f, id, &r), QN_EAGAIN);
    slot_of(1);
    cr_assert(reads(id, slot - 1, 0));
}

CASE(for_one_of_two_or_one_that_seeks_in_time_all_is_recorded)
{
    struct qn_feed_opts o = opts;
    o.retain = false;
    begin(&o);
    uint32_t slow = subscribe_now();
    uint32_t fast = subscribe_now();
    for (int i = 0; i < 10 * RECORDS; i++) {
        slot_of(1);
        cr_assert(reads(fast, slot - 1, 0));
    }
    qn_feed_unsubscribe(f, fast);
    for (int k = 0; k < 10; k++) {
        cr_assert_eq(status().records, (uint32_t)RECORDS);
        struct qn_feed_position first = qn_feed_first(f);
        cr_assert_eq(qn_feed_seek(f, slow, &first), QN_OK);
        cr_assert(reads(slow, slot - RECORDS, 0));
        for (int i = 0; i < RECORDS + 2; i++) {
            slot_of(1);
        }
    }
}

CASE(what_is_retained_is_recorded_whatever_subscribers_do)
{
    (void)subscribe_now();
    for (int i = 0; i < 10 * RECORDS; i++) {
        slot_of(1);
    }
    cr_assert_eq(status().records, (uint32_t)RECORDS);
}

CASE(one_that_comes_when_nothing_is_recorded_reads_what_follows)
{
    struct qn_feed_opts o = opts;
    o.retain = false;
    begin(&o);
    uint32_t stopped = subscribe_now();
    for (int i = 0; i < 3 * RECORDS; i++) {
        slot_of(1);
    }
    cr_assert_eq(status().records, 0u);
    uint32_t id = subscribe_now();
    slot_of(1);
    cr_assert(reads(id, slot - 1, 0));
    cr_assert_eq(qn_feed_read(f, stopped, &r), QN_EGONE);
    cr_assert_eq(status().gone, 1u);
}

CASE(a_subscriber_that_has_read_what_was_cut_has_lost_nothing)
{
    uint32_t id = subscribe_now();
    slot_of(1);
    cr_assert(reads(id, 1, 0));
    for (int i = 0; i < RECORDS + 1; i++) {
        slot_of(1);
    }
    cr_assert_eq(qn_feed_read(f, id, &r), QN_EGONE, "of slot 2");
    cr_assert_eq(qn_feed_seek(f, id, NULL), QN_OK);
    slot_of(1);
    for (int i = 0; i < RECORDS - 1; i++) {
        slot_of(1);
    }
    cr_assert(reads(id, slot - RECORDS, 0), "the oldest that is kept");
}

CASE(there_are_as_many_subscribers_as_may_be)
{
    uint32_t id;
    struct qn_feed_opts o = opts;
    for (uint32_t max = 1; max <= QN_FEED_SUBSCRIBERS_MAX; max *= 8) {
        o.subscribers = max;
        begin(&o);
        for (uint32_t i = 0; i < max; i++) {
            (void)subscribe_now();
        }
        cr_assert_eq(qn_feed_subscribe(f, NULL, &id), QN_EDQUOT);
        qn_feed_unsubscribe(f, max / 2);
        cr_assert_eq(subscribe_now(), max / 2);
    }
}

CASE(options_out_of_range_are_refused)
{
    struct qn_feed *none = NULL;
    for (int i = 0; i < 5; i++) {
        struct qn_feed_opts o = opts;
        o.bytes = i == 0 ? 0 : i == 1 ? (UINT64_C(1) << 40) + 1 : o.bytes;
        o.records = i == 2 ? 0 : o.records;
        o.subscribers = i == 3   ? 0
                        : i == 4 ? QN_FEED_SUBSCRIBERS_MAX + 1
                                 : o.subscribers;
        cr_assert_eq(qn_feed_create(&none, &o), QN_EINVAL, "%d", i);
    }
    cr_assert_null(none);
    qn_feed_destroy(NULL);
}

/* ---- memory -------------------------------------------------------------- */

/* Fails when `left` calls have been made. */
static struct {
    int left, blocks;
} memory;

static void *resize(void *ctx, void *p, size_t bytes)
{
    (void)ctx;
    if (bytes == 0) {
        memory.blocks--;
    } else if (memory.left-- <= 0) {
        return NULL;
    } else {
        memory.blocks++;
    }
    return qn_alloc_malloc.resize(NULL, p, bytes);
}

CASE(without_a_subscriber_there_is_no_memory_and_nothing_to_read)
{
    static const struct qn_alloc a = {resize, NULL};
    struct qn_feed_opts o = opts;
    o.retain = false;
    o.alloc = &a;
    o.applied = 41;
    memory.left = 3;
    memory.blocks = 0;
    begin(&o);
    cr_assert_eq(memory.blocks, 1);
    cr_assert(is_at(qn_feed_first(f), 42, 0));
    slot_of(1);
    cr_assert(is_at(qn_feed_first(f), 43, 0));
    uint32_t id;
    cr_assert_eq(qn_feed_subscribe(f, &(struct qn_feed_position){42, 0}, &id),
                 QN_EGONE);
    id = subscribe(at(43, 0));
    cr_assert_eq(memory.blocks, 2);
    slot_of(1);
    cr_assert(reads(id, 43, 0));
    qn_feed_unsubscribe(f, id);
    cr_assert_eq(memory.blocks, 1);
    slot_of(1);
    qn_feed_snapshot(f, 50);
    slot = 51;
    cr_assert_eq(status().records + status().bytes, 0u);
    id = subscribe_now();
    cr_assert(is_at(qn_feed_position(f, id), 51, 0));
    slot_of(1);
    cr_assert(reads(id, 51, 0));
    qn_feed_unsubscribe(f, id);
    cr_assert_eq(qn_feed_subscribe(f, NULL, &id), QN_ENOMEM);
    cr_assert_eq(status().subscribers, 0u, "nothing has changed");
    teardown();
    cr_assert_eq(memory.blocks, 0);
}

CASE(memory_that_is_short_leaves_nothing_behind)
{
    static const struct qn_alloc a = {resize, NULL};
    struct qn_feed_opts o = opts;
    struct qn_feed *none = NULL;
    o.alloc = &a;
    for (int k = 0; k < 2; k++) {
        memory.left = k;
        memory.blocks = 0;
        cr_assert_eq(qn_feed_create(&none, &o), QN_ENOMEM);
        cr_assert_eq(memory.blocks, 0);
        cr_assert_null(none);
    }
}

/* ---- random schedules ---------------------------------------------------- */

/* All that was ever recorded, and where each subscriber is in it: a second feed
 * without any bound. */
enum { ALL = 3000, SUBSCRIBERS = 3 };

static struct {
    struct qn_feed_record all[ALL];
    uint8_t byte[ALL]; /* each command repeats one */
    int count;
    struct qn_feed_position next;
    bool here[SUBSCRIBERS];
    uint32_t id[SUBSCRIBERS];
    struct qn_feed_position at[SUBSCRIBERS];
    uint64_t gone, read, gaps;
} list;

static void list_add(enum qn_feed_kind kind, struct qn_feed_position to,
                     size_t len)
{
    list.all[list.count] = (struct qn_feed_record){
        .kind = kind,
        .at = list.next,
        .to = to,
        .seq = (uint64_t)list.count,
        .bytes = {NULL, len},
    };
    list.byte[list.count] = (uint8_t)(list.count * 7);
    list.count++;
    list.next = to;
}

static void list_command(size_t len)
{
    uint8_t bytes[BYTES + 20];
    memset(bytes, (uint8_t)(list.count * 7), sizeof bytes);
    const struct qn_feed_record c = {.at = {.slot = list.next.slot},
                                     .seq = (uint64_t)list.count,
                                     .bytes = {bytes, len}};
    list_add(QN_FEED_COMMAND, at(list.next.slot, list.next.number + 1), len);
    qn_feed_command(f, &c);
}

static void list_event(unsigned *seed)
{
    int what = rand_r(seed) % 12;
    if (what < 7) {
        bool longer = rand_r(seed) % 8 == 0;
        list_command((size_t)rand_r(seed) % (longer ? BYTES + 20u : 30u));
    } else if (what < 11) {
        qn_feed_slot_end(f, list.next.slot);
        list.next = at(list.next.slot + 1, 0);
    } else {
        qn_slot_t to = list.next.slot + (qn_slot_t)rand_r(seed) % 5;
        qn_feed_snapshot(f, to);
        list_add(QN_FEED_GAP, at(to + 1, 0), 0);
    }
}

/* The first that reaches beyond `p`; NULL: none. */
static const struct qn_feed_record *list_find(struct qn_feed_position p)
{
    for (int i = 0; i < list.count; i++) {
        if (qn_feed_compare(list.all[i].to, p) > 0) {
            return &list.all[i];
        }
    }
    return NULL;
}

static void same(const struct qn_feed_record *want, struct qn_feed_position p)
{
    struct qn_feed_position from =
        qn_feed_compare(want->at, p) < 0 ? p : want->at;
    cr_assert_eq(r.kind, want->kind);
    cr_assert_eq(qn_feed_compare(r.at, from), 0);
    cr_assert_eq(qn_feed_compare(r.to, want->to), 0);
    cr_assert_eq(r.bytes.len, want->bytes.len);
    if (r.kind == QN_FEED_COMMAND) {
        cr_assert_eq(r.seq, want->seq);
    }
    for (size_t i = 0; i < r.bytes.len; i++) {
        cr_assert_eq(r.bytes.data[i], list.byte[want->seq]);
    }
}

/* It has lost something: it takes what can be had. */
static void list_gone(int s)
{
    struct qn_feed_position first = qn_feed_first(f);
    cr_assert_gt(qn_feed_compare(first, list.at[s]), 0);
    cr_assert_eq(qn_feed_seek(f, list.id[s], &first), QN_OK);
    list.at[s] = first;
    list.gone++;
}

static void list_read(int s)
{
    const struct qn_feed_record *want = list_find(list.at[s]);
    int err = qn_feed_read(f, list.id[s], &r);
    if (err == QN_EGONE) {
        list_gone(s);
        return;
    }
    cr_assert_eq(err, want != NULL ? QN_OK : QN_EAGAIN);
    if (want != NULL) {
        same(want, list.at[s]);
        list.at[s] = want->to;
        list.read++;
        list.gaps += want->kind == QN_FEED_GAP;
    }
}

/* Come, or come back, or go: with the position that was stored. */
static void list_come_or_go(int s, unsigned *seed)
{
    if (list.here[s]) {
        list.at[s] = qn_feed_position(f, list.id[s]);
        qn_feed_unsubscribe(f, list.id[s]);
        list.here[s] = false;
        return;
    }
    bool future = rand_r(seed) % 8 == 0;
    list.at[s] = future ? at(list.next.slot + 2, 1) : list.at[s];
    int err = qn_feed_subscribe(f, &list.at[s], &list.id[s]);
    if (err == QN_EGONE) {
        list.gone++;
        list.at[s] = qn_feed_first(f);
        err = qn_feed_subscribe(f, &list.at[s], &list.id[s]);
    }
    cr_assert_eq(err, QN_OK);
    list.here[s] = true;
}

/* What is kept is a suffix of all that fits, and what is cut had to be. */
static void list_check(void)
{
    struct qn_feed_status st = status();
    uint64_t bytes = 0;
    cr_assert_leq(st.records, (uint32_t)RECORDS);
    cr_assert_eq(qn_feed_compare(st.next, list.next), 0);
    for (int i = list.count - (int)st.records; i < list.count; i++) {
        bytes += list.all[i].bytes.len;
    }
    cr_assert_eq(st.bytes, bytes);
    cr_assert_leq(st.bytes, (uint64_t)BYTES);
}

CASE(every_subscriber_reads_each_record_in_order_or_is_told)
{
    enum { SEEDS = 30 };
    for (unsigned k = 1; k <= SEEDS; k++) {
        unsigned seed = k;
        struct qn_feed_opts o = opts;
        o.retain = k % 2 == 0;
        begin(&o);
        list.count = 0;
        list.next = at(1, 0);
        memset(list.here, 0, sizeof list.here);
        memset(list.at, 0, sizeof list.at);
        while (list.count < ALL / 8) {
            int s = rand_r(&seed) % SUBSCRIBERS;
            int what = rand_r(&seed) % 20;
            if (what < 8) {
                list_event(&seed);
            } else if (what == 8) {
                list_come_or_go(s, &seed);
            } else if (list.here[s]) {
                list_read(s);
            }
            list_check();
        }
    }
    cr_assert_gt(list.read, 1000u);
    cr_assert_gt(list.gaps, 100u);
    cr_assert_gt(list.gone, 100u);
}
