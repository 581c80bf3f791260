#ifndef QN_KVS_SUPERVISOR_STARTUP_BANNER_H
#define QN_KVS_SUPERVISOR_STARTUP_BANNER_H

/** The last line of a start: where the server listens, where each replica
 *  sits, and how to try it. */

#include <stdio.h>

#include "core/place/place.h"
#include "kvs/listen/listen.h"

/** What it says. Pointers are borrowed. */
struct qn_startup_banner {
    const struct qn_config *config;
    const struct qn_listen *listen;
    const struct qn_place *place; /* [seats] */
    uint64_t members;             /* mask of seats that are taken */
    uint32_t adopted;             /* of them, had lost their supervisor */
};

/** Print it, with its newline, and flush. */
void qn_startup_banner_print(FILE *to, const struct qn_startup_banner *b);

#endif
