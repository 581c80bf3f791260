#ifndef QN_TESTS_SIM_RUN_TRACE_H
#define QN_TESTS_SIM_RUN_TRACE_H

/**
 * A run of the machine as text, to be compared with the Promela model
 * (tests/model/traces/README.md): for each step what it took, and the state
 * of the machine after it. A step that took no message of the process
 * acceptor, and changed none of these fields, has no line.
 *
 *     begin LIFE STATE           an incarnation begins
 *     step LIFE INPUT STATE      it made a step
 *     end LIFE                   it has ended
 *     entry INDEX KIND LEADER ACCEPTOR TENURE FROM
 *                                this entry is known to an incarnation now
 *
 *     LIFE    node.incarnation
 *     INPUT   recv FROM KIND epoch=.. slot=.. target=.. ok=.. (ACCEPT:
 * batch=..) or other STATE   name=value ..., then the slots that changed:
 * slot:P:batch (this node's proposal), slot:L:batch (learned), slot:S:batch
 * (staged), slot:E: (empty)
 *
 * `-` is NONE. A batch is the hash of its bytes.
 */

#include <stdio.h>

#include "paxos/machine/onepaxos.h"

struct run_trace;

/** @param f  Kept until run_trace_close, and not closed by it. */
struct run_trace *run_trace_open(FILE *f);
void run_trace_close(struct run_trace *r);

void run_trace_begins(struct run_trace *r, const struct qn_onepaxos *p);

/** After qn_onepaxos_step, before its outputs are executed. Each line is with
 *  the operating system when this returns: the run may abort. */
void run_trace_step(struct run_trace *r, const struct qn_onepaxos *p,
                    const struct qn_input *in, int err);

void run_trace_ends(struct run_trace *r, const struct qn_onepaxos *p);

#endif
