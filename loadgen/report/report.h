#ifndef QN_LOADGEN_REPORT_REPORT_H
#define QN_LOADGEN_REPORT_REPORT_H

/**
 * Reports of a load: a live line, a final table, JSON lines, CSV.
 *
 * A load makes one qn_report_second per second and one qn_report at the end.
 * All text is made from these two, so that every output agrees. docs/load.md
 * lists the members of the JSON and the columns of the CSV.
 *
 * Rates count correct replies only. Times are nanoseconds here and microseconds
 * in all output. Pure except for the FILE; one thread.
 */

#include "loadgen/client/stats.h"
#include "loadgen/client/unavailability.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** The percentiles of all outputs, in this order. */
#define QN_QUANTILE_MAP(X)                                                     \
    X(P50, "p50", 0.5)                                                         \
    X(P90, "p90", 0.9)                                                         \
    X(P95, "p95", 0.95)                                                        \
    X(P99, "p99", 0.99)                                                        \
    X(P999, "p99.9", 0.999)                                                    \
    X(P9999, "p99.99", 0.9999)                                                 \
    X(MAX, "max", 1)

enum qn_quantile {
#define X(name, text, q) QN_QUANTILE_##name,
    QN_QUANTILE_MAP(X)
#undef X
        QN_QUANTILE_COUNT
};

/** "p50" ... */
const char *qn_quantile_name(enum qn_quantile q);

/** One kind of operation, or all, in one second. */
struct qn_report_row {
    uint64_t ops; /* correct replies; the latencies are theirs */
    uint64_t misses;
    uint64_t errors;
    uint64_t wrong;
    uint64_t ns[QN_QUANTILE_COUNT]; /* response time; 0 if ops is 0 */
    bool open;                      /* an open loop: service_ns is known */
    uint64_t service_ns[QN_QUANTILE_COUNT];
};

/** One second (or interval), or the rest at the end. */
struct qn_report_second {
    uint32_t run;    /* number of the repetition, from 0 */
    double at;       /* s from the begin of the run to the end of this second */
    double seconds;  /* its length */
    double intended; /* ops/s of the schedule; 0: closed loop */
    uint64_t unanswered; /* requests lost with their connection */
    uint64_t waiting;    /* outstanding or due requests at its end */
    uint64_t disconnects;
    struct qn_report_row all;
    struct qn_report_row kind[QN_OP_COUNT];
};

/** Verdict of --verify. */
struct qn_report_verdict {
    const char *name; /* "linearizable", "not linearizable", "undecided" */
    uint64_t operations;
    uint64_t keys;
    uint64_t violations; /* keys */
    uint64_t undecided;  /* keys */
};

/** Connections of a load to one address; of several runs, those of the run with
 *  the fewest. */
struct qn_report_opened {
    uint64_t wanted;
    uint64_t opened; /* opened at least once */
    bool failed;     /* some of the others were tried, or the address does not
                        answer: the run was not just too short */
};

struct qn_report {
    const char *addresses; /* as given, separated by blanks */
    const char *mix;       /* as given, like dist */
    const char *dist;
    const char *rate; /* as given; NULL: closed loop */
    bool poisson;     /* Poisson arrivals; false: at equal distances */
    uint64_t connections;
    uint64_t pipeline;
    uint64_t threads;
    uint64_t keys;
    const char *key_size; /* as used, since --verify may enlarge it */
    const char *value_size;
    uint64_t seed;
    double seconds;      /* measured */
    uint64_t own_cpu_ns; /* CPU time of this process during the measurement */
    uint64_t server_cpu_ns;       /* CPU time of the named processes */
    uint32_t server_count;        /* named processes */
    const struct qn_stats *total; /* sum of all repetitions */
    const struct qn_report_second
        *warmup;                        /* not part of the total; NULL: none */
    const struct qn_report_second *run; /* [run_count] one per repetition */
    uint32_t run_count;                 /* 1: not repeated */
    const struct qn_unavailability *unavailability; /* ended */
    const char *const *address; /* [address_count] as given */
    uint32_t address_count;
    const struct qn_report_opened *opened; /* [address_count] */
    bool preload; /* the keys hold values of this load */
    const struct qn_report_verdict *verdict; /* NULL: not checked */
};

#define QN_REPORT_ABOUT_MAX 1500

#define QN_REPORT_MODEL_MAX 200

/** "closed loop" or "open loop 50k/s, poisson". */
void qn_report_model(const struct qn_report *r,
                     char model[QN_REPORT_MODEL_MAX]);

#define QN_REPORT_CONNECTIONS_MAX 100

/** "50 connections", with "(25 of 50 opened)" if not all were opened. */
void qn_report_connections(const struct qn_report *r,
                           char text[QN_REPORT_CONNECTIONS_MAX]);

/** Number of connections that were tried and never opened. */
uint64_t qn_report_missing(const struct qn_report *r);

/** The setup on one line: addresses, mix, connections ... seed. */
void qn_report_about(const struct qn_report *r,
                     char about[QN_REPORT_ABOUT_MAX]);

/** Correct replies per second. */
double qn_report_rate(uint64_t ops, double seconds);

/** Fill a row from statistics. O(buckets of the histogram). */
void qn_report_row(struct qn_report_row *row, const struct qn_op_stats *ops);

/**
 * Fill a second from the statistics of it.
 *
 * @param out  Filled, except run, at and intended, which belong to the caller.
 * @param sum  Scratch of the caller (an op_stats is too large for the stack).
 */
void qn_report_second(struct qn_report_second *out,
                      const struct qn_stats *stats, double seconds,
                      struct qn_op_stats *sum);

/** "   3.0 s    812345 ops/s  p50 12.3 us  p99 45.6 us  errors 0  unanswered
 *  0", one line. */
void qn_report_live(FILE *to, const char *what,
                    const struct qn_report_second *s);

/** The final table.
 *  @return QN_OK or QN_ENOMEM. */
int qn_report_table(FILE *to, const struct qn_report *r);

/** One JSON object on one line, "type": "second".
 *  @return QN_OK, QN_ENOMEM or QN_EIO. */
int qn_report_json_second(FILE *to, const struct qn_report_second *s);

/** The last line: one JSON object, "type": "summary".
 *  @return QN_OK, QN_ENOMEM or QN_EIO. */
int qn_report_json_summary(FILE *to, const struct qn_report *r);

/** The names of the columns, on one line. */
void qn_report_csv_header(FILE *to);

/** One line per kind of operation that was used, and one for "all". */
void qn_report_csv_second(FILE *to, const struct qn_report_second *s);

#endif
