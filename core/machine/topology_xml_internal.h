#ifndef QN_MACHINE_TOPOLOGY_XML_INTERNAL_H
#define QN_MACHINE_TOPOLOGY_XML_INTERNAL_H

/** hwloc's XML as text: what is done to it before hwloc reads it, and after it
 *  wrote it. Pure, any thread. */

#include "core/machine/fault.h"

/**
 * Make hwloc 2 read what hwloc 3 wrote.
 *
 * @param xml  NUL-terminated; changed in place.
 * @return QN_OK, also for what is no topology at all: hwloc says so. QN_EINVAL,
 *         fault filled: the version is newer than 3.0.
 */
int qn_xml_settle_version(char *xml, const char *file, struct qn_fault *fault);

/** Take out what tells whose machine it is: all notes that do not speak of the
 *  processor. `xml` is NUL-terminated, one element per line. */
void qn_xml_strip(char *xml);

#endif
