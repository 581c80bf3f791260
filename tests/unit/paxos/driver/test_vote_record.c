/* The voter's record: what is left of it whenever its writer dies, and when it
 * is damaged. The index of the vote says which record was read. */
#include <stdlib.h>
#include <string.h>

#include "core/base/atomic.h"
#include "core/base/bits.h"
#include "paxos/driver/vote_record.h"
#include "tests/support/test.h"

#define AREA (QN_VOTE_RECORD_BYTES + 1000) /* more than it must be */

static uint8_t *area;
static struct qn_utility utility;

static struct qn_ul_entry entry(uint32_t index)
{
    return (struct qn_ul_entry){.index = index,
                                .tenure = index / 2,
                                .kind = index == 0 ? QN_UL_INIT : QN_UL_LEADER,
                                .leader = (uint8_t)(index % 3),
                                .leader_inc = 1000 + index};
}

/** Entries first .. len - 1 are known. */
static void knows(uint32_t first, uint32_t len)
{
    static struct qn_ul_entry log[QN_UL_KEPT];
    for (uint32_t i = first; i < len; i++) {
        log[i - first] = entry(i);
    }
    const struct qn_utility_opts o = {.nodes = 3,
                                      .self_inc = 7,
                                      .alloc = &qn_alloc_malloc,
                                      .log = log,
                                      .count = len - first,
                                      .pause = 1};
    qn_utility_init(&utility, &o);
}

static struct qn_vote vote(uint32_t index, bool voted)
{
    struct qn_vote v = {.index = index, .bal = {3, 1, UINT64_MAX - index}};
    v.since = voted ? 0 : 1u + index;
    if (voted) {
        v.vbal = (struct qn_ballot){2, 2, 99};
        v.value = entry(index);
    }
    return v;
}

/** As a group begins. */
static void begin(void)
{
    struct qn_vote v = vote(0, false);
    memset(area, 0, AREA);
    qn_vote_record_renew(area, AREA, &v, &utility);
}

static void setup(void)
{
    area = aligned_alloc(QN_CACHELINE, qn_align_up(AREA, QN_CACHELINE));
    cr_assert_not_null(area);
    knows(0, 5);
    begin();
}

static void teardown(void)
{
    free(area);
}

#define RECORD(name) Test(record, name, .init = setup, .fini = teardown)

static void write_vote(uint32_t index, bool voted)
{
    struct qn_vote v = vote(index, voted);
    qn_vote_record_write(area, AREA, &v, &utility);
}

static int read_vote(const uint8_t *from, uint32_t *index)
{
    struct qn_ul_entry log[QN_UL_KEPT];
    struct qn_vote v;
    uint32_t count = 0;
    int rc = qn_vote_record_read(from, AREA, &v, log, QN_UL_KEPT, &count);
    if (rc == QN_OK) {
        *index = v.index;
        for (uint32_t i = 0; i < count; i++) {
            struct qn_ul_entry want = entry(v.index - count + i);
            cr_assert_eq(memcmp(&log[i], &want, sizeof want), 0, "entry %u", i);
        }
    }
    return rc;
}

RECORD(what_was_never_written_is_void)
{
    uint32_t index;
    memset(area, 0, AREA);
    cr_assert_eq(read_vote(area, &index), QN_ECORRUPT);
}

/* From any line on, as many as a page has, or all. */
RECORD(what_was_wiped_after_it_was_written_is_void)
{
    static uint8_t good[AREA];
    const size_t page = 4096;
    const size_t second = AREA / 2 / QN_CACHELINE * QN_CACHELINE;
    const int with[] = {0, 0xff};
    uint32_t index;
    write_vote(4, true);
    write_vote(5, true);
    memcpy(good, area, AREA);
    for (size_t i = 0; i < 2; i++) {
        for (size_t at = 0; at < AREA; at += QN_CACHELINE) {
            bool head = at == 0 || (at <= second && second < at + page);
            memcpy(area, good, AREA);
            memset(area + at, with[i], QN_MIN(page, AREA - at));
            int rc = read_vote(area, &index);
            cr_assert(rc == QN_ECORRUPT || (rc == QN_OK && index == 5 && !head),
                      "%d at %zu", rc, at);
        }
        memset(area, with[i], AREA);
        cr_assert_eq(read_vote(area, &index), QN_ECORRUPT);
    }
}

RECORD(the_vote_and_the_entries_below_come_back)
{
    for (int voted = 0; voted < 2; voted++) {
        struct qn_ul_entry log[QN_UL_KEPT];
        struct qn_vote in = vote(5, voted != 0), out;
        uint32_t count = 0;
        qn_vote_record_write(area, AREA, &in, &utility);
        cr_assert_eq(
            qn_vote_record_read(area, AREA, &out, log, QN_UL_KEPT, &count),
            QN_OK);
        cr_assert_eq(memcmp(&in, &out, sizeof in), 0);
        cr_assert_eq(count, 5);
        for (uint32_t i = 0; i < count; i++) {
            struct qn_ul_entry want = entry(i);
            cr_assert_eq(memcmp(&log[i], &want, sizeof want), 0);
        }
    }
}

RECORD(as_many_entries_as_are_kept_fit)
{
    uint32_t index = 0;
    knows(1000, 1000 + QN_UL_KEPT);
    write_vote(1000 + QN_UL_KEPT, true);
    cr_assert_eq(read_vote(area, &index), QN_OK);
    cr_assert_eq(index, 1000 + QN_UL_KEPT);
}

RECORD(the_newest_of_many_is_read)
{
    uint32_t index = 0;
    knows(0, 30);
    for (uint32_t i = 1; i < 30; i++) {
        write_vote(i, i % 2 == 0);
        cr_assert_eq(read_vote(area, &index), QN_OK);
        cr_assert_eq(index, i);
    }
}

/** The sequence of the copy that is being written; it has all bits set
 *  meanwhile. */
static size_t changed_first(const uint8_t *a, const uint8_t *b)
{
    size_t at = 0;
    while (a[at] == b[at]) {
        at++;
    }
    return at / 8 * 8;
}

static void begin_writing(size_t sequence)
{
    const uint64_t mark = QN_VOTE_RECORD_WRITING;
    memcpy(area + sequence, &mark, sizeof mark);
}

/* The writer dies after every byte of the write that goes from the record of
 * `before` to that of `after`, which begins at the sequence of its copy. */
static void die_at_every_byte(uint32_t before, uint32_t after)
{
    static uint8_t old[AREA], new[AREA];
    memcpy(old, area, AREA);
    write_vote(after, true);
    memcpy(new, area, AREA);
    size_t sequence = changed_first(old, new);
    memset(area, 0xee, AREA);
    memcpy(area, old, AREA);
    begin_writing(sequence);
    for (size_t n = sequence + 8; n <= AREA; n++) {
        uint32_t index = 0;
        int rc = read_vote(area, &index);
        cr_assert_eq(rc, QN_OK, "%d at %zu", rc, n);
        cr_assert_eq(index, before, "%u at %zu", index, n);
        if (n < AREA) {
            area[n] = new[n];
        }
    }
    memcpy(area, new, AREA);
    uint32_t index = 0;
    cr_assert_eq(read_vote(area, &index), QN_OK);
    cr_assert_eq(index, after);
}

RECORD(a_writer_that_dies_at_any_byte_leaves_the_record_before)
{
    die_at_every_byte(0, 1);
    die_at_every_byte(1, 2);
    die_at_every_byte(2, 3);
    die_at_every_byte(3, 5);
}

RECORD(after_a_death_in_the_middle_the_next_life_writes_the_same_copy)
{
    uint32_t index = 0;
    write_vote(1, true);
    write_vote(2, true);
    write_vote(3, true);
    static uint8_t old[AREA];
    memcpy(old, area, AREA);
    write_vote(4, true);
    begin_writing(changed_first(old, area)); /* not finished */
    cr_assert_eq(read_vote(area, &index), QN_OK);
    cr_assert_eq(index, 3);
    write_vote(5, false);
    cr_assert_eq(read_vote(area, &index), QN_OK);
    cr_assert_eq(index, 5);
}

/* Whichever copy it is: the damaged one may be the newer. Bytes behind what was
 * written say nothing. */
RECORD(a_copy_that_is_damaged_is_never_read_over)
{
    static uint8_t good[AREA];
    write_vote(4, true);
    write_vote(5, true);
    memcpy(good, area, AREA);
    uint32_t corrupt = 0;
    srand(3);
    for (size_t at = 0; at < AREA; at++) {
        uint32_t index = 0;
        memcpy(area, good, AREA);
        area[at] = (uint8_t)(area[at] ^ (1 + rand() % 255));
        int rc = read_vote(area, &index);
        cr_assert(rc == QN_ECORRUPT || (rc == QN_OK && index == 5), "at %zu",
                  at);
        corrupt += rc == QN_ECORRUPT;
    }
    /* two heads of 94 bytes, 4 and 5 entries, less the bytes that pad */
    cr_assert_geq(corrupt, 2 * 94 + 9 * QN_UL_BYTES - 16);
}

RECORD(two_copies_that_are_damaged_give_nothing)
{
    uint32_t index = 0;
    write_vote(4, true);
    write_vote(5, true);
    memset(area, 0xff, AREA);
    cr_assert_eq(read_vote(area, &index), QN_ECORRUPT);
}

/* ---- begun anew ---------------------------------------------------------- */

static void damage(unsigned copy)
{
    memset(area + copy * (AREA / 2 / QN_CACHELINE * QN_CACHELINE), 0x5a, 300);
}

RECORD(a_damaged_record_that_is_renewed_is_whole)
{
    for (unsigned copies = 1; copies < 4; copies++) {
        uint32_t index = 0;
        begin();
        write_vote(3, true);
        write_vote(4, true);
        for (unsigned i = 0; i < 2; i++) {
            if ((copies >> i & 1) != 0) {
                damage(i);
            }
        }
        cr_assert_eq(read_vote(area, &index), QN_ECORRUPT);
        struct qn_vote v = vote(5, false);
        qn_vote_record_renew(area, AREA, &v, &utility);
        cr_assert_eq(read_vote(area, &index), QN_OK);
        cr_assert_eq(index, 5);
        write_vote(5, true);
        cr_assert_eq(read_vote(area, &index), QN_OK);
    }
}
