#ifndef QN_LOADGEN_SIMULATE_TIMELINE_TRACE_H
#define QN_LOADGEN_SIMULATE_TIMELINE_TRACE_H

/**
 * The timeline of a run on the timed machine: which node sent, received, waited
 * and worked, and when.
 *
 * Written as a picture (SVG: a row per node, an arrow per transfer) or as a
 * trace file in the format of Chrome and Perfetto (chrome://tracing,
 * ui.perfetto.dev), which can be zoomed. Looks that hit are left out.
 *
 * One thread. Allocates as it grows, up to QN_TRACE_MAX events; later ones are
 * counted and left out.
 */

#include <stdio.h>

#include "core/sim/timed/timed.h"

#define QN_TRACE_MAX ((size_t)1 << 20) /* events: 64 MiB */

/** Fields but the counts are private. */
struct qn_trace {
    struct qn_timed_event *event;
    size_t count, room;
    size_t left_out;     /* beyond QN_TRACE_MAX, or for lack of memory */
    qn_ps_t from, until; /* the events that are wanted */
};

void qn_trace_init(struct qn_trace *t);
void qn_trace_fini(struct qn_trace *t);

/** Forget what came before; only events that end after `from` and begin before
 *  `until` (or QN_PS_NEVER) are kept. */
void qn_trace_begin(struct qn_trace *t, qn_ps_t from, qn_ps_t until);

/** For qn_timed_opts.event. */
void qn_trace_add(struct qn_trace *t, const struct qn_timed_event *e);

/**
 * Draw it.
 *
 * @param name  [nodes] number of each node's core. Borrowed.
 * @param title One line. Borrowed.
 * The caller checks ferror().
 */
void qn_trace_svg(const struct qn_trace *t, uint32_t nodes,
                  const uint32_t *name, const char *title, FILE *to);

/** Write a trace file; times in us from the first event. @return QN_OK or
 *  QN_EIO. */
int qn_trace_json(const struct qn_trace *t, uint32_t nodes,
                  const uint32_t *name, FILE *to);

#endif
