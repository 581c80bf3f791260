#ifndef QN_LOADGEN_CLI_EVENTS_H
#define QN_LOADGEN_CLI_EVENTS_H

/**
 * Lines of flight recorders (paxos/driver/event.h) of any number of replicas
 * and files, merged into one order and printed as a table or as JSON.
 *
 * An event is identified by replica, incarnation, number and time; duplicates
 * are dropped. The order is that of the monotonic clock, which all replicas of
 * a machine share; between boots of the machine, whose monotonic clocks start
 * again, that of the wall clock.
 *
 * This module does not interpret the kinds of events. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** One event; its strings point into the text that was read. */
struct qn_events_row {
    uint64_t order;   /* ns: sort key */
    uint64_t time;    /* ns, monotonic */
    const char *wall; /* "2026-11-21T18:02:35.123456789Z" */
    uint64_t incarnation, index;
    uint32_t replica;
    const char *kind; /* "down" */
    const char *what; /* "node=1 epoch=4 applied=1034"; may be "" */
};

/** All zero: empty. */
struct qn_events_table {
    struct qn_events_row *row; /* [count] */
    size_t count, cap;
    uint64_t base; /* ns: wall minus monotonic of the first row */
};

/**
 * Add the events of a text. Empty lines and lines that begin with # are
 * skipped.
 *
 * @param text  NUL-terminated; cut into strings, kept until the table is freed.
 * @param line  Filled on QN_EINVAL: number of the first invalid line, from 1.
 * @return QN_OK, QN_EINVAL, QN_ENOMEM.
 */
int qn_events_add(struct qn_events_table *t, char *text, uint64_t *line);

/** Sort the rows and drop duplicates. */
void qn_events_sort(struct qn_events_table *t);

/** Print a table: time, seconds since the previous event, replica.incarnation,
 * kind, what. @return false if writing fails. */
bool qn_events_print(const struct qn_events_table *t, FILE *to);

/** Print one JSON object per line: time (wall clock, text), monotonic_ns,
 *  replica, incarnation, index, event, what (an object; numbers are numbers).
 * @return as above. */
bool qn_events_print_json(const struct qn_events_table *t, FILE *to);

/** Print the lines as they were read; `quoin events` can read them again.
 *  @return as above. */
bool qn_events_print_raw(const struct qn_events_table *t, FILE *to);

void qn_events_free(struct qn_events_table *t);

#endif
