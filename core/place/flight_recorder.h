#ifndef QN_CORE_PLACE_FLIGHT_RECORDER_H
#define QN_CORE_PLACE_FLIGHT_RECORDER_H

/**
 * The flight recorder: the last events of one incarnation, in its outbox.
 *
 * A ring of entries of 32 bytes that one thread writes and every process that
 * maps the outbox may read, while it is written or when the writer is dead. The
 * program defines what the kinds mean.
 *
 *     line 0   begun, done     entries begun and finished by this incarnation
 *              born            wall clock at its beginning
 *     line 1.. entry i is at index i mod entries:
 *
 *              +-----------+------+------+--------+------------+------+---+
 *              | time (64) | kind | node | b (16) | epoch (32) | slot | a |
 *              +-----------+------+------+--------+------------+------+---+
 *              0           8      9      10       12           16     24  32
 *
 * Reader and writer at the same time:
 *
 *                  note             read
 *     note         one thread only  free
 *     read         free             free
 *
 * Both are wait-free. A reader never gets a torn entry: entries that were
 * overwritten while it read are left out, and so is an entry that a killed
 * writer had begun. A misbehaving writer yields garbage, within bounds.
 *
 * Speed: about 10 ns for a note, without the clock.
 */

#include <stdbool.h>

#include "core/base/atomic.h"
#include "core/base/clock.h"
#include "core/node.h"

#define QN_FLIGHT_ENTRIES 4096u /* of an outbox */
#define QN_FLIGHT_ENTRY   32u   /* bytes */

/** Bytes of a recorder of so many entries. */
#define QN_FLIGHT_BYTES(entries)                                               \
    (QN_CACHELINE + (size_t)(entries)*QN_FLIGHT_ENTRY)

/** One event. */
struct qn_flight_event {
    uint64_t index; /* how many of this incarnation were before it. Filled by
                       read, ignored by note */
    qn_time_t time; /* ns, monotonic: the same clock in all processes */
    uint8_t kind;   /* 1 .. 255 */
    uint8_t node;
    uint16_t b;
    uint32_t epoch;
    uint64_t slot;
    uint64_t a;
};

/** The writer's end. Private. */
struct qn_flight_recorder {
    struct qn_flight_recorder_ring *ring;
    uint64_t count; /* noted so far */
    uint32_t mask;
};

/**
 * Begin to record.
 *
 * @param f        Filled.
 * @param mem      [QN_FLIGHT_BYTES(entries)] zeroed, aligned to a cache line;
 *                 kept.
 * @param entries  A power of two.
 * @param born_ms  Wall clock, ms since 1970: tells incarnations with the same
 * number apart that belong to different groups.
 */
void qn_flight_recorder_init(struct qn_flight_recorder *f, void *mem,
                             uint32_t entries, uint64_t born_ms);

/** Record `e` (borrowed). The oldest entry makes room. */
void qn_flight_recorder_note(struct qn_flight_recorder *f,
                             const struct qn_flight_event *e);

/**
 * Copy what there is, oldest first.
 *
 * @param mem      As in init, perhaps mapped read-only and of another process.
 * @param entries  As in init.
 * @param out      [entries] filled.
 * @return how many; 0: nothing was recorded. O(entries).
 */
uint32_t qn_flight_recorder_read(const void *mem, uint32_t entries,
                                 struct qn_flight_event *out);

/** When the incarnation began, ms since 1970; 0: it has no recorder yet. */
uint64_t qn_flight_recorder_started_ms(const void *mem);

#endif
