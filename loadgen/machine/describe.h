#ifndef QN_LOADGEN_MACHINE_DESCRIBE_H
#define QN_LOADGEN_MACHINE_DESCRIBE_H

/** A machine in words: what it is, its cores as a tree of sockets, nodes and
 *  caches, and what a message costs at each distance. */

#include <stdio.h>

#include "core/machine/machine.h"

/** @return QN_OK or QN_ENOMEM; the caller checks ferror(). */
int qn_machine_describe(const struct qn_machine *m, FILE *to);

#endif
