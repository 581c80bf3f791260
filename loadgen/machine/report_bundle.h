#ifndef QN_LOADGEN_MACHINE_REPORT_BUNDLE_H
#define QN_LOADGEN_MACHINE_REPORT_BUNDLE_H

/**
 * A folder with everything that a reader needs to interpret a measured machine:
 *
 *   machine.json    the measurement
 *   machine.svg     the same as heat maps (two cores or more)
 *   machine.txt     the same as text
 *   topology.xml    hwloc's, without data that identifies the machine's owner
 *   facts.txt       processor, frequency, kernel, memory, NUMA distances,
 *                   versions of all software involved: "key: value"
 *
 * It contains no host name, address, user, serial number or command line.
 */

#include <stdio.h>

#include "core/machine/machine.h"

/** Write the facts of this machine. The caller checks ferror(). */
void qn_report_bundle_facts(FILE *to);

/**
 * Write the folder; it is created, or must be empty.
 *
 * @param m  Measured on this machine.
 * @return QN_OK; QN_EEXIST, QN_EIO, QN_ENOMEM, ...; fault filled.
 */
int qn_report_bundle_write(const struct qn_machine *m, const char *folder,
                           struct qn_parse_error *parse_error);

/** Check that the folder can be created, or is empty. Nothing is left behind.
 *  @return as qn_report_bundle_write. */
int qn_report_bundle_check(const char *folder,
                           struct qn_parse_error *parse_error);

#endif
