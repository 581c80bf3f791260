#ifndef QN_LOADGEN_REPORT_OUTPUT_H
#define QN_LOADGEN_REPORT_OUTPUT_H

/**
 * Outputs of a load: the terminal, stdout, and the requested files. The formats
 * are made by report.h, hdr_format.h and load_plot.h.
 *
 * Files are checked before the run, so that an hour of load is not lost to a
 * mistyped folder, and are not touched until there is something to write: the
 * CSV grows with each second, --raw with each reply, the others are written at
 * the end.
 *
 * One thread.
 */

#include "loadgen/report/load_plot.h"
#include "loadgen/report/report.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define QN_OUTPUT_ERROR_MAX 512

struct qn_output {
    /* options */
    bool live;        /* a line per second on stderr */
    bool json;        /* JSON lines on stdout, else a table at the end */
    const char *hgrm; /* paths, - for stdout; NULL: none. Kept until finished */
    const char *csv;
    const char *plot;
    const char *raw;        /* written by the workers */
    const char *verify_svg; /* written by qn_verify */
    /* private */
    FILE *raw_file;
    FILE *csv_file;
    int csv_errno; /* of the first error */
    uint32_t count;
    uint32_t room;
    struct qn_load_plot_second *second; /* [count], for the plot */
};

/**
 * Check every requested file: it can be written, and no two are the same.
 * Nothing is changed or left behind.
 *
 * @param error  [QN_OUTPUT_ERROR_MAX] Filled on failure: the option and the
 *               reason; no newline.
 * @return QN_OK or QN_EINVAL.
 */
int qn_output_check(const struct qn_output *o, char *error);

/** Begin the run: opens the files that are written from its first reply on.
 *  @param error  As above. @return QN_OK or QN_EIO. */
int qn_output_begin(struct qn_output *o, char *error);

/** File of --raw, for the workers; NULL: none. After qn_output_begin. */
static inline FILE *qn_output_raw(const struct qn_output *o)
{
    return o->raw_file;
}

/** Stream for text: stdout, or stderr if --json or a file uses stdout. */
FILE *qn_output_text(const struct qn_output *o);

/** Report one more second of the run. Never fails: errors of writing are
 *  reported at the end. */
void qn_output_second(struct qn_output *o, const struct qn_report_second *s);

/**
 * End the run: write the table or the summary, and the files.
 *
 * @param error  [QN_OUTPUT_ERROR_MAX] Filled on failure, no newline.
 * @return QN_OK; QN_EIO if an output could not be written; QN_ENOMEM.
 */
int qn_output_finish(struct qn_output *o, const struct qn_report *r,
                     char *error);

/** Free all resources. Also without qn_output_finish. */
void qn_output_close(struct qn_output *o);

#endif
