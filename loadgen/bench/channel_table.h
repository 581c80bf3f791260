#ifndef QN_LOADGEN_BENCH_CHANNEL_TABLE_H
#define QN_LOADGEN_BENCH_CHANNEL_TABLE_H

/**
 * The table at the end of `quoin bench channel --transport all`: a line per
 * transport and kind of node, the raw forms above them.
 *
 * Latency and throughput are medians of two nodes with a core each; "of raw" is
 * the median of ratios within one turn (round trips: less is better, streams:
 * more). CPU is that of both nodes, kernel included, per message of two nodes
 * that send and sleep. Memory is shared memory of two nodes with two
 * queuepairs; not counted are the private buffers of an end. What was not
 * measured is "-".
 */

#include <jansson.h>
#include <stdio.h>

/** @param runs  [transports], as `quoin bench channel` prints each. Borrowed.
 */
void qn_channel_table(const json_t *runs, FILE *to);

#endif
