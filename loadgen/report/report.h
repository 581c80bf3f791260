#ifndef QN_LOADGEN_REPORT_REPORT_H
#define QN_LOADGEN_REPORT_REPORT_H

/**
 * What a load says about itself: a live line, a final table, JSON lines, CSV.
 *
 * A load makes one qn_report_second of what each second saw and one qn_report
 * at the end. All text is made from these two, so that every output tells the
 * same. docs/load.md lists the members of the JSON and the columns of the CSV.
 *
 * Rates count right answers only. Times are nanoseconds here and microseconds
 * in whatever is printed. Pure but for the FILE; one thread.
 */

#include "loadgen/client/silence.h"
#include "loadgen/client/stats.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** The percentiles that are shown everywhere, in this order. */
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
    uint64_t ops; /* answered right; the latencies are theirs */
    uint64_t misses;
    uint64_t errors;
    uint64_t wrong;
    uint64_t ns[QN_QUANTILE_COUNT]; /* response time; 0 if ops is 0 */
    bool open;                      /* an open loop's: the next is known */
    uint64_t service_ns[QN_QUANTILE_COUNT];
};

/** One second, or the rest at the end. */
struct qn_report_second {
    uint32_t run;        /* of the repetitions, from 0 */
    double at;           /* s from the begin of the run to this one's end */
    double seconds;      /* its length */
    double intended;     /* ops/s by the schedule; 0: closed loop */
    uint64_t unanswered; /* lost with their connection */
    uint64_t waiting;    /* at its end: asked or due, and not answered yet */
    uint64_t disconnects;
    struct qn_report_row all;
    struct qn_report_row kind[QN_OP_COUNT];
};

/** What --verify found. */
struct qn_report_verdict {
    const char *name; /* "linearizable", "not linearizable", "undecided" */
    uint64_t operations;
    uint64_t keys;
    uint64_t violations; /* keys */
    uint64_t undecided;  /* keys */
};

/** The connections of a load to one address; of several runs the one with the
 *  fewest. */
struct qn_report_opened {
    uint64_t wanted;
    uint64_t opened; /* of them: once, at least */
    bool failed;     /* some of the others were tried, or nobody answers there:
                        the run was not merely too short */
};

struct qn_report {
    const char *addresses; /* as typed, with blanks between */
    const char *mix;       /* as typed, like dist */
    const char *dist;
    const char *rate; /* as typed; NULL: closed loop */
    bool poisson;     /* arrivals, else at equal distances */
    uint64_t connections;
    uint64_t pipeline;
    uint64_t threads;
    uint64_t keys;
    const char *key_size; /* as used: --verify needs room */
    const char *value_size;
    uint64_t seed;
    double seconds;               /* measured */
    uint64_t own_cpu_ns;          /* of this process while it measured */
    uint64_t server_cpu_ns;       /* of the named processes */
    uint32_t server_count;        /* of them; 0: none were named */
    const struct qn_stats *total; /* of all repetitions */
    const struct qn_report_second *warmup; /* not part of it; NULL: none */
    const struct qn_report_second *run;    /* [run_count] each repetition */
    uint32_t run_count;                    /* 1: not repeated */
    const struct qn_silence *silence;      /* ended */
    const char *const *address;            /* [address_count] as typed */
    uint32_t address_count;
    const struct qn_report_opened *opened; /* [address_count] */
    bool preload; /* the keys hold what this load has stored */
    const struct qn_report_verdict *verdict; /* NULL: not judged */
};

#define QN_REPORT_ABOUT_MAX 1500

#define QN_REPORT_MODEL_MAX 200

/** "closed loop" or "open loop 50k/s, poisson": how requests come. */
void qn_report_model(const struct qn_report *r,
                     char model[QN_REPORT_MODEL_MAX]);

#define QN_REPORT_CONNECTIONS_MAX 100

/** "50 connections", and "(25 of 50 opened)" if that is not all. */
void qn_report_connections(const struct qn_report *r,
                           char text[QN_REPORT_CONNECTIONS_MAX]);

/** Connections that were tried and never opened. */
uint64_t qn_report_missing(const struct qn_report *r);

/** What was run, on one line: addresses, mix, connections ... seed. */
void qn_report_about(const struct qn_report *r,
                     char about[QN_REPORT_ABOUT_MAX]);

/** Right answers per second of its length. */
double qn_report_rate(uint64_t ops, double seconds);

/** Fill a row from what was seen. O(buckets of the histogram). */
void qn_report_row(struct qn_report_row *row, const struct qn_op_stats *ops);

/**
 * Make a second of all that was seen in it.
 *
 * @param out   Filled; run, at and intended are the caller's, and kept.
 * @param sum   Scratch of the caller (an op_stats is too large for the stack).
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

/** The names of the columns, one line. */
void qn_report_csv_header(FILE *to);

/** One line per kind of operation that was used, and one named "all". */
void qn_report_csv_second(FILE *to, const struct qn_report_second *s);

#endif
