#ifndef QN_TESTS_SERVER_WORLD_H
#define QN_TESTS_SERVER_WORLD_H

/**
 * Programs of shm_server for the explorer: some nodes call, the others serve.
 */

#include "core/sim/explore/explore.h"
#include "core/sync/delegate/backends.h"
#include "core/sync/delegate/server_mutant.h"

#define SERVER_WORLD_CLIENTS 3u

/* What the nodes do: the first `clients` of them call, the others serve. Of two
 * servers the second stops the first. */
struct program {
    uint32_t clients, servers;
    uint32_t calls; /* of each client */
    bool submits;   /* all at once, then collect */
    bool other;     /* another node stops the server, once all has run */
    bool late;      /* the second client joins while the first calls */
    uint32_t domains;
    struct qn_server_opts server;
};

extern const struct program calls, two_clients, two_clients_twice, submits,
    moves, streams, groups, leaves;

extern struct qn_delegate server_object;
extern struct qn_delegate_client server_clients[SERVER_WORLD_CLIENTS];
extern struct qn_delegate_server server_servers[2];

/** Adds `arg` to a counter in memory and returns it. */
uint64_t server_add(void *ctx, uint32_t op, uint64_t arg);

void server_setup(void *program);
void server_stop(void);
const char *server_check(void *program);

/** Explore it. @return no fault, and complete. */
bool server_clean(const struct program *p, enum qn_explore_memory m,
                  uint32_t deviations, struct qn_explored *out);

#endif
