#ifndef QN_KVS_SUPERVISOR_SUPERVISOR_H
#define QN_KVS_SUPERVISOR_SUPERVISOR_H

/**
 * The supervisor: makes the sockets and the shared descriptors, starts one
 * process per replica on its place, introduces them to each other, and reports
 * what becomes of them. Nothing that is served passes through it: replicas go
 * on without it.
 *
 *     SIGTERM, SIGINT, SIGHUP: drain, for `shutdown-timeout` at most, then end
 *     a second one while draining: end at once
 *     a replica ends unexpectedly: one line; the others are told
 *
 * Its replicas may be those of another build, whose supervisor has died or
 * hands over (kvs/control/adopt.h); they can be replaced one after the other
 * (kvs/supervision/upgrade.c).
 *
 * It sleeps in one poll(), without a timer until it drains. One thread; it
 * forks, so the calling process must have no other.
 */

#include <stddef.h>
#include <stdio.h>

#include "core/qp.h"
#include "kvs/control/replica_spec.h"
#include "kvs/supervision/supervision.h"

struct qn_supervisor_opts {
    const struct qn_config *config; /* borrowed; QN_REPLICAS_AUTO allowed */
    /** The transport of that name; never NULL for one that was configured. */
    const struct qn_transport *(*transport)(const char *name);
    FILE *ready;  /* gets the line of readiness, and how an upgrade goes on */
    bool upgrade; /* take a running group over, also from a living supervisor,
                     and replace its replicas by processes of this program */
    /** What a replica's process runs. @return its exit status. */
    int (*replica_main)(const struct qn_replica_spec *spec);
};

/**
 * Run a server from start to end. When all replicas answer, one line in
 * `ready` tells where, and how to try it.
 *
 * @param why  [cap] Filled if it could not begin: one line that says what to
 *             do.
 * @return the exit status. In the replicas' processes it does not return.
 */
int qn_supervisor_run(const struct qn_supervisor_opts *opts, char *why,
                      size_t cap);

#endif
