#ifndef QN_LOADGEN_CLI_EVENTS_H
#define QN_LOADGEN_CLI_EVENTS_H

/**
 * Lines of flight recorders (paxos/driver/event.h) of any number of replicas
 * and files, put into one order and said for people or as JSON.
 *
 * An event is known by replica, life, its number and its time: said twice, it
 * counts once. Order is that of the monotonic clock, which all replicas of a
 * machine share; between boots of the machine, whose monotonic clocks begin
 * anew, that of the wall clock.
 *
 * Nothing here knows what the kinds of events are. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** One event; strings lie in the text it was read from. */
struct qn_events_row {
    uint64_t order;   /* ns: what rows are sorted by */
    uint64_t time;    /* ns, monotonic */
    const char *wall; /* "2026-11-21T18:02:35.123456789Z" */
    uint64_t life, index;
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
 * Add the events of a text. Empty lines and those that begin with # are passed
 * over.
 *
 * @param text   NUL-terminated; cut into strings, kept until the table's end.
 * @param line   Filled if a line is none: its number, from 1.
 * @return QN_OK, QN_EINVAL, QN_ENOMEM.
 */
int qn_events_add(struct qn_events_table *t, char *text, uint64_t *line);

/** Put the rows in order, each once. */
void qn_events_sort(struct qn_events_table *t);

/** For people: time, seconds since the event before, replica.life, kind, what.
 *  @return false: `to` does not take it. */
bool qn_events_print(const struct qn_events_table *t, FILE *to);

/** One JSON object per line: time (of the wall, text), monotonic_ns, replica,
 *  life, index, event, what (an object; numbers are numbers). Likewise. */
bool qn_events_print_json(const struct qn_events_table *t, FILE *to);

/** As they came in, for keeping: `quoin events` reads it again. Likewise. */
bool qn_events_print_raw(const struct qn_events_table *t, FILE *to);

void qn_events_free(struct qn_events_table *t);

#endif
