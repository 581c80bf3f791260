#ifndef QN_LOADGEN_MACHINE_DESCRIBE_H
#define QN_LOADGEN_MACHINE_DESCRIBE_H

/** A machine as text: facts, its cores as a tree of sockets, nodes and caches,
 *  and the cost of a message at each distance. */

#include <stdio.h>

#include "core/machine/machine.h"

/** Write the text. @return QN_OK or QN_ENOMEM; the caller checks ferror(). */
int qn_machine_describe(const struct qn_machine *m, FILE *to);

#endif
