#ifndef QN_CORE_DISCOVER_TOPOLOGY_H
#define QN_CORE_DISCOVER_TOPOLOGY_H

/**
 * Which cores there are and what they share, as hwloc sees it: of the machine
 * that this runs on, of another one's XML file, or of an invented one.
 *
 * What comes out is a machine without costs (qn_machine_has_costs says no):
 * measure.h and runner.h fill them in. Its name is made of processor and shape
 * ("amd_epyc_1x2": sockets x cores x threads), cpu is the processor's model.
 * phys, cache and socket are numbered from 0 in the order of core numbers,
 * node is the operating system's number; cores that no memory node is known of
 * get one per package, numbered behind those. `cache` is the largest cache
 * above a core (its package if hwloc knows no cache).
 *
 * Any thread; reads /sys and files, allocates, and takes some milliseconds.
 * hwloc may print on stderr what it thinks of an odd machine; programs silence
 * it by its own environment variables.
 */

#include "core/machine/machine.h"

/**
 * This machine: the cores that the calling thread may run on.
 *
 * @return QN_OK; QN_EIO if the topology cannot be read, QN_EINVAL (no usable
 *         core, or more than QN_CORES_MAX), QN_ENOMEM; fault filled.
 */
int qn_machine_discover(struct qn_machine **out,
                        struct qn_parse_error *parse_error);

/** What `lstopo FILE.xml` or hwloc's export wrote, XML of version 2 or 3.0;
 *  `file` is its name in faults. Errors as above, and QN_EINVAL if it is none.
 */
int qn_machine_parse_xml(struct qn_machine **out, const char *file,
                         const char *bytes, size_t len,
                         struct qn_parse_error *parse_error);

/** hwloc's synthetic description, such as "package:2 numa:1 l3:2 core:4 pu:2".
 *  Errors as above; the text stands for the file in faults. */
int qn_machine_synthetic(struct qn_machine **out, const char *text,
                         struct qn_parse_error *parse_error);

/**
 * The XML of this machine's topology, without what tells whose it is: of
 * hwloc's notes only those on the processor remain (no host name, no serial
 * numbers, no kernel command line).
 *
 * @param xml  Filled, freed by free().
 * @return as qn_machine_discover.
 */
int qn_machine_topology_xml(char **xml, struct qn_parse_error *parse_error);

#endif
