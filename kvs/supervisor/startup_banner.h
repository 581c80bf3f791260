#ifndef QN_KVS_SUPERVISOR_STARTUP_BANNER_H
#define QN_KVS_SUPERVISOR_STARTUP_BANNER_H

/** The last line of a start: where the server listens, where each replica
 *  sits, and how to try it. */

#include <stdio.h>

#include "core/place/place.h"
#include "kvs/listen/listen.h"

/** Print it, with its newline, and flush. `place` [replicas]; `adopted` of them
 *  had lost their supervisor. */
void qn_startup_banner_print(FILE *to, const struct qn_config *c,
                             const struct qn_listen *l,
                             const struct qn_place *place, uint32_t adopted);

#endif
