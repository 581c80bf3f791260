#ifndef QN_LOADGEN_REPORT_OUTPUT_H
#define QN_LOADGEN_REPORT_OUTPUT_H

/**
 * Where a load's reports go: the terminal, stdout, and the files that were
 * asked for. All formats are made elsewhere (report.h, hgrm.h, figure.h).
 *
 * Files are tried before the run, so that an hour of load is not lost to a
 * mistyped folder, and left alone until there is something to write: the CSV
 * grows with each second, --raw with each answer, the others are written at the
 * end.
 *
 * One thread.
 */

#include "loadgen/report/figure.h"
#include "loadgen/report/report.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define QN_OUTPUT_ERROR_MAX 512

struct qn_output {
    /* wishes */
    bool live;        /* a line per second on stderr */
    bool json;        /* JSON lines on stdout, else a table at the end */
    const char *hgrm; /* paths, - for stdout; NULL: not wanted. Kept until
                         finished */
    const char *csv;
    const char *plot;
    const char *raw;        /* written by the workers */
    const char *verify_svg; /* written by who judges */
    /* private */
    FILE *raw_file;
    FILE *csv_file;
    int csv_errno; /* of what went wrong first */
    uint32_t count;
    uint32_t room;
    struct qn_figure_second *second; /* [count], for the plot */
};

/**
 * Try every file that is wished for: it can be written, and no two are one.
 * Nothing is changed or left behind.
 *
 * @param error  [QN_OUTPUT_ERROR_MAX] Filled on failure: which option's file,
 *               and why; no newline.
 * @return QN_OK or QN_EINVAL.
 */
int qn_output_check(const struct qn_output *o, char *error);

/** The run begins: what is written from its first answer on is opened.
 *  @param error  As above. @return QN_OK or QN_EIO. */
int qn_output_begin(struct qn_output *o, char *error);

/** For the workers: --raw's file; NULL: not wanted. After qn_output_begin. */
static inline FILE *qn_output_raw(const struct qn_output *o)
{
    return o->raw_file;
}

/** Where people read: stdout, or stderr if --json or a file has that. */
FILE *qn_output_text(const struct qn_output *o);

/** One more second of the run. Never fails: what could not be written is told
 *  at the end. */
void qn_output_second(struct qn_output *o, const struct qn_report_second *s);

/**
 * The end: table or summary, and the files.
 *
 * @param error  [QN_OUTPUT_ERROR_MAX] Filled on failure, no newline.
 * @return QN_OK; QN_EIO if any of it could not be written; QN_ENOMEM.
 */
int qn_output_finish(struct qn_output *o, const struct qn_report *r,
                     char *error);

/** Give back what it holds. Also without qn_output_finish. */
void qn_output_close(struct qn_output *o);

#endif
