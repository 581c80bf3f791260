#ifndef QN_PLACE_QUOTA_H
#define QN_PLACE_QUOTA_H

/**
 * Memory that the calling process may still take: what the machine has, and
 * what control groups of both versions leave. (Cores are asked for by
 * qn_places_discover.)
 *
 * Any thread; reads small files, nothing is kept.
 */

#include <stdint.h>

#define QN_QUOTA_NONE UINT64_MAX

/** Memory that the processes of this control group may still take, in bytes:
 *  of the group's limit and that of each group above it what is not in use,
 *  file pages that can be dropped not counted as use; the least of these.
 *  @return QN_QUOTA_NONE: no limit, or not readable. */
uint64_t qn_quota_memory(void);

/** Memory of the machine that new programs may take without swapping, in bytes
 *  (MemAvailable). @return 0: not readable. */
uint64_t qn_quota_machine_memory(void);

#endif
