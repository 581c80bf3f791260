#ifndef QN_LOADGEN_MACHINE_GATHER_H
#define QN_LOADGEN_MACHINE_GATHER_H

/**
 * All that somebody else needs to understand a machine's numbers, in a folder:
 *
 *   machine.json    the measurement
 *   machine.svg     the same as heat maps (two cores or more)
 *   machine.txt     the same in words
 *   topology.xml    hwloc's, without what tells whose machine it is
 *   facts.txt       processor, frequency, kernel, memory, NUMA distances,
 *                   versions of everything that took part: "key: value"
 *
 * No host name, address, user, serial number or command line is in it.
 */

#include <stdio.h>

#include "core/machine/machine.h"

/** Write the facts of this machine. The caller checks ferror(). */
void qn_gather_facts(FILE *to);

/**
 * Write the folder; it is made, and must be empty if it is there.
 *
 * @param m  Measured here.
 * @return QN_OK; QN_EEXIST, QN_EIO, QN_ENOMEM, ...; fault filled.
 */
int qn_gather_write(const struct qn_machine *m, const char *folder,
                    struct qn_parse_error *parse_error);

/** The folder can be made, or is there and empty. Nothing is left behind.
 *  @return as qn_gather_write. */
int qn_gather_check(const char *folder, struct qn_parse_error *parse_error);

#endif
