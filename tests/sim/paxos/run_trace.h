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
 *     vote LIFE INDEX BALLOT BALLOT VALUE
 *                                its record: promised, voted in, voted for
 *     take LIFE KIND INDEX BALLOT FROM
 *                                it took a U_PROMISE of that node
 *     send LIFE KIND INDEX BALLOT BALLOT VALUE
 *                                it sent a message of the utility log;
 *                                U_PROMISE: and the ballot voted in. U_CHOSEN:
 *                                a line for each entry
 *
 *     LIFE    node.incarnation
 *     INPUT   recv FROM KIND epoch=.. slot=.. target=.. ok=.. (ACCEPT:
 * batch=..) or other STATE   name=value ..., then the slots that changed:
 * slot:P:batch (this node's proposal), slot:L:batch (learned), slot:S:batch
 * (staged), slot:E: (empty)
 *
 *     BALLOT  round.node.incarnation
 *
 * `-` is NONE. A batch, and the value of an entry, is the hash of its bytes.
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

/** An output of a step of `p` was executed: it has left. Lines of the utility
 *  log, or none. */
void run_trace_output(struct run_trace *r, const struct qn_onepaxos *p,
                      const struct qn_out *o);

void run_trace_ends(struct run_trace *r, const struct qn_onepaxos *p);

#endif
