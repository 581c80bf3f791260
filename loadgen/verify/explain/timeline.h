#ifndef QN_LOADGEN_VERIFY_EXPLAIN_TIMELINE_H
#define QN_LOADGEN_VERIFY_EXPLAIN_TIMELINE_H

/**
 * Draws a witness: operations as bars from invocation to response, one row
 * each, in the order of invocation.
 *
 * Times are spaced evenly, since only their order matters and a witness may
 * span microseconds as well as minutes. The times themselves are in the text.
 *
 *     client 1   0 ns      100 ns    set k1 7 -> ok    |------|
 *     client 2   200 ns    300 ns    get k1 -> nil               |------|
 *
 * IO on the given FILE only. One thread.
 */

#include "loadgen/verify/explain/explain.h"

#include <stdio.h>

/** Maximum of rows shown; the rest is counted. */
enum { QN_TIMELINE_ROWS_MAX = 60 };

/** Plain text, lines up to about 200 bytes. @return QN_OK, QN_ENOMEM, QN_EIO.
 */
int qn_timeline_text(FILE *out, const struct qn_witness *w);

/** A complete SVG document: black on white in print, light on dark if the
 *  reader prefers it. @return QN_OK, QN_ENOMEM, QN_EIO. */
int qn_timeline_svg(FILE *out, const struct qn_witness *w);

#endif
