#ifndef QN_LOADGEN_MACHINE_MACHINE_SOURCE_H
#define QN_LOADGEN_MACHINE_MACHINE_SOURCE_H

/** Opens machines by their name on a command line. */

#include "core/machine/machine.h"

/** Possible values of `what`, for help texts. */
#define QN_MACHINE_SOURCE_HELP                                                 \
    "live, a machine file, a folder with numa.csv and pairwise.csv, hwloc's "  \
    "XML, or its synthetic text (\"package:2 core:4 pu:1\")"

/**
 * Open a machine: "live" is this machine, without measuring it; a path is a
 * folder of CSV files, a machine file, or XML of hwloc; a text with a colon
 * that names no file is a synthetic description.
 *
 * @return QN_OK, also without costs (qn_machine_has_costs); errors of the
 *         readers, with fault filled.
 */
int qn_machine_source_open(struct qn_machine **out, const char *what,
                           struct qn_parse_error *parse_error);

#endif
