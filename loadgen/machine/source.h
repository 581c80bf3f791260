#ifndef QN_LOADGEN_MACHINE_SOURCE_H
#define QN_LOADGEN_MACHINE_SOURCE_H

/** Machines as they are named on a command line. */

#include "core/machine/machine.h"

/** What `what` may be, for help texts. */
#define QN_SOURCE_HELP                                                         \
    "live, a machine file, a folder with numa.csv and pairwise.csv, hwloc's "  \
    "XML, or its synthetic text (\"package:2 core:4 pu:1\")"

/**
 * Open it: "live" is this machine, not measured; a path is a folder of CSV
 * files, a machine file, or XML of hwloc; what has a colon and names no file is
 * a synthetic description.
 *
 * @return QN_OK, also without costs (qn_machine_has_costs); errors of the
 *         readers, fault filled.
 */
int qn_source_open(struct qn_machine **out, const char *what,
                   struct qn_parse_error *parse_error);

#endif
