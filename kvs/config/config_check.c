/*
 * Checks that concern several options, or names outside the configuration. A
 * failed check fills one line that says what to do.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/topo/diamond_ring.h"
#include "kvs/config/config.h"
#include "kvs/config/rundir.h"
#include "kvs/config/topology.h"

/* PATH.63 and the NUL must fit into a socket's address. */
#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - 4)

/* With a smaller limit no client could ask for CONFIG GET to find the reason.
 */
#define OUTPUT_LEAST ((uint64_t)64 << 10)

static int check_replicas(const struct qn_config *c, char *why, size_t cap)
{
    if (c->replicas == 2) {
        snprintf(why, cap,
                 "replicas '2': with two replicas, the loss of either stops "
                 "both; use 3 "
                 "or more, or 1 for a server without replication");
        return QN_EINVAL;
    }
    return QN_OK;
}

static int check_seats(const struct qn_config *c, char *why, size_t cap)
{
    const bool any =
        c->replicas_max == QN_REPLICAS_AUTO || c->replicas == QN_REPLICAS_AUTO;
    if (!any && c->replicas_max < c->replicas) {
        snprintf(why, cap,
                 "replicas-max '%u': there are %u replicas; use %u or more",
                 c->replicas_max, c->replicas, c->replicas);
        return QN_EINVAL;
    }
    if (!any && c->replicas_max > c->replicas && !c->memory_acceptor) {
        snprintf(why, cap,
                 "replicas-max '%u': with the process acceptor a group keeps "
                 "its size; use %u, or --acceptor memory",
                 c->replicas_max, c->replicas);
        return QN_EINVAL;
    }
    return QN_OK;
}

static int check_address(const struct qn_config *c, char *why, size_t cap)
{
    struct in6_addr room;
    if (c->unixsocket[0] != '\0') {
        if (strlen(c->unixsocket) < SOCKET_PATH_MAX) {
            return QN_OK;
        }
        snprintf(why, cap,
                 "unixsocket: the path must be shorter than %zu bytes",
                 SOCKET_PATH_MAX);
        return QN_EINVAL;
    }
    if (inet_pton(AF_INET, c->bind, &room) != 1 &&
        inet_pton(AF_INET6, c->bind, &room) != 1) {
        snprintf(why, cap,
                 "bind '%s': give an IPv4 or IPv6 address, such as 127.0.0.1 "
                 "or ::",
                 c->bind);
        return QN_EINVAL;
    }
    return QN_OK;
}

static int check_ports(const struct qn_config *c, char *why, size_t cap)
{
    bool own = c->replica_ports != QN_REPLICA_PORTS_NONE;
    bool any = c->replica_ports == QN_REPLICA_PORTS_NEXT && c->port == 0;
    if (c->unixsocket[0] != '\0' || !own || any) {
        return QN_OK;
    }
    uint32_t first = c->replica_ports == QN_REPLICA_PORTS_NEXT
                         ? c->port + 1
                         : c->replica_ports;
    uint32_t last = first + qn_config_seats(c) - 1;
    if (last > 65535) {
        snprintf(why, cap,
                 "replica-ports: %u to %u is beyond 65535; choose a lower one, "
                 "or none",
                 first, last);
        return QN_EINVAL;
    }
    if (c->port >= first && c->port <= last) {
        snprintf(why, cap,
                 "replica-ports: %u to %u contains port %u; choose another "
                 "base, or none",
                 first, last, c->port);
        return QN_EINVAL;
    }
    return QN_OK;
}

void qn_config_seats_resolve(struct qn_config *c, bool grows)
{
    char why[QN_CONFIG_WHY_MAX];
    if (c->replicas_max != QN_REPLICAS_AUTO) {
        return;
    }
    c->replicas_max_auto = true;
    c->replicas_max = c->replicas;
    if (grows && c->memory_acceptor) {
        c->replicas_max = QN_MAX(c->replicas, QN_SEATS_DEFAULT);
    }
    while (c->replicas_max > c->replicas &&
           check_ports(c, why, sizeof why) != QN_OK) {
        c->replicas_max--;
    }
}

static int check_cells(const struct qn_config *c, char *why, size_t cap)
{
    if (c->cells != QN_CELLS_AUTO && !qn_is_pow2(c->cells)) {
        snprintf(why, cap, "cells '%u': must be a power of two, such as 4096",
                 c->cells);
        return QN_EINVAL;
    }
    return QN_OK;
}

static int check_topology(const struct qn_config *c, char *why, size_t cap)
{
    if (qn_topology_known(c->topology) || access(c->topology, R_OK) == 0) {
        return QN_OK;
    }
    if (qn_diamond_ring_arity(c->topology) > QN_TOPOLOGY_RING_MAX) {
        snprintf(why, cap, "topology '%.32s': a ring has an arity of 1 to %u",
                 c->topology, QN_TOPOLOGY_RING_MAX);
        return QN_EINVAL;
    }
    size_t n = (size_t)snprintf(why, cap,
                                "topology '%.32s': must be the file of a "
                                "machine or of a tree, or one of:",
                                c->topology);
    for (uint32_t i = 0; n < cap && qn_topology_name_at(i) != NULL; i++) {
        n += (size_t)snprintf(why + n, cap - n, " %s", qn_topology_name_at(i));
    }
    return QN_EINVAL;
}

static int check_machine(const struct qn_config *c, char *why, size_t cap)
{
    bool given = strcmp(c->machine, "auto") != 0;
    if (given && access(c->machine, R_OK) != 0) {
        snprintf(why, cap, "machine '%s': %s; quoin machine --measure -o FILE",
                 c->machine, strerror(errno));
        return QN_EINVAL;
    }
    if (given && qn_topology_is_machine(c->topology)) {
        snprintf(why, cap,
                 "machine '%.32s': topology '%.32s' is a machine, too; leave "
                 "one out",
                 c->machine, c->topology);
        return QN_EINVAL;
    }
    return QN_OK;
}

int qn_config_check_limits(const struct qn_config *c, char *why, size_t cap)
{
    if (c->client_query_buffer_limit <= c->proto_max_bulk_len) {
        snprintf(why, cap,
                 "client-query-buffer-limit must be larger than "
                 "proto-max-bulk-len (%llu)",
                 (unsigned long long)c->proto_max_bulk_len);
        return QN_EINVAL;
    }
    if (c->client_output_limit != 0 && c->client_output_limit < OUTPUT_LEAST) {
        snprintf(why, cap,
                 "client-output-buffer-limit must be 0 (none) or at least "
                 "64kb, which the server's own replies need");
        return QN_EINVAL;
    }
    return QN_OK;
}

static int check_events_dir(const struct qn_config *c, char *why, size_t cap)
{
    if (c->events_dir[0] == '\0' || access(c->events_dir, W_OK | X_OK) == 0) {
        return QN_OK;
    }
    snprintf(why, cap,
             "events-dir '%s': %s; create it, or name a directory that quoind "
             "may write to",
             c->events_dir, strerror(errno));
    return QN_EINVAL;
}

static int check_run_dir(const struct qn_config *c, char *why, size_t cap)
{
    char path[QN_RUNDIR_PATH_MAX];
    int err = strcmp(c->run_dir, "auto") == 0
                  ? QN_OK
                  : qn_rundir_path(c, "", "r63", path);
    if (err == QN_OK) {
        return QN_OK;
    }
    snprintf(why, cap,
             "run-dir '%.64s': %s; name a directory that belongs to the user "
             "of quoind and that no other user can write to",
             c->run_dir,
             err == QN_EPERM      ? "another user owns it or can write to it"
             : err == QN_EMSGSIZE ? "its path is too long"
                                  : "it cannot be created or written to");
    return QN_EINVAL;
}

static int check_shared_state(const struct qn_config *c, char *why, size_t cap)
{
    if (c->shared_state || !c->memory_acceptor) {
        return QN_OK;
    }
    snprintf(why, cap,
             "shared-state 'no': the memory acceptor decides in shared memory; "
             "add --acceptor process");
    return QN_EINVAL;
}

void qn_config_by_message(struct qn_config *c)
{
    c->memory_acceptor = false;
    c->shared_state = false;
}

int qn_config_check(const struct qn_config *c, char *why, size_t cap)
{
    int (*const checks[])(const struct qn_config *, char *, size_t) = {
        check_replicas,   check_seats,   check_address,
        check_ports,      check_cells,   check_shared_state,
        check_topology,   check_machine, qn_config_check_limits,
        check_events_dir, check_run_dir};
    char line[QN_CONFIG_WHY_MAX];
    for (size_t i = 0; i < QN_ARRAY_COUNT(checks); i++) {
        int err = checks[i](c, line, sizeof line);
        if (err != QN_OK) {
            snprintf(why, cap, "%s", line);
            return err;
        }
    }
    return QN_OK;
}
