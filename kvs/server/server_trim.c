/*
 * Free memory of the heap goes back to the system while the replica is idle:
 * the shell of kvs/resources/trim.h.
 */
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/log.h"
#include "kvs/server/server.h"

#define MIB ((uint64_t)1 << 20)

/* Anonymous and resident: what malloc and the pool have, and the stacks. */
static uint64_t resident(void)
{
    unsigned long long size = 0, all = 0, shared = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL) {
        return 0;
    }
    int n = fscanf(f, "%llu %llu %llu", &size, &all, &shared);
    fclose(f);
    return n == 3 ? (all - shared) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* Store and log count what they hold. Asking malloc instead would walk its free
 * chunks: 100 ms with 10^7 keys. Buffers of connections are left out. */
uint64_t qn_server_used_memory(struct qn_server *s)
{
    struct qn_store_stats store = {0};
    struct qn_driver_status d;
    if (qn_replica_store(s->replica) != NULL) {
        qn_store_stats(qn_replica_store(s->replica), &store);
    }
    qn_driver_status(qn_replica_driver(s->replica), &d);
    return store.memory_bytes + d.log_bytes;
}

static void give_back(struct qn_server *s, uint64_t before)
{
    qn_time_t began = qn_clock_now();
    malloc_trim(0);
    uint64_t after = resident();
    qn_trim_done(&s->trim, after, qn_server_used_memory(s));
    qn_log(QN_LOG_INFO,
           "replica %u: gave %llu MiB of free memory back to the system in "
           "%llu ms",
           s->boot->self,
           (unsigned long long)((before > after ? before - after : 0) / MIB),
           (unsigned long long)((qn_clock_now() - began) / QN_MS));
}

qn_time_t qn_server_trim_turn(struct qn_server *s, qn_time_t now)
{
    uint64_t work =
        qn_replica_applied(s->replica) + s->frontend.part.commands_processed;
    qn_time_t at = qn_trim_turn(&s->trim, work, now);
    if (at > now) {
        return at;
    }
    uint64_t there = resident();
    if (qn_trim_look(&s->trim, there, qn_server_used_memory(s))) {
        give_back(s, there);
    }
    return QN_TIME_NEVER;
}
