#include "kvs/resources/resource_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "core/base/err.h"
#include "core/base/log.h"
#include "core/node.h"
#include "core/place/quota.h"
#include "core/qp.h"
#include "paxos/member/member_needs.h"

/* Room for three values of 64 KiB, with their batches' other bytes: enough to
 * keep the replicas of a busy server apart for a turn. 8192 brought no more. */
#define CELLS_MOST  4096u
#define LANES_BYTES ((uint64_t)32 << 20) /* of a server with CELLS_MOST */

/* Descriptors that are not clients': the standard ones, the loop's, the own
 * port's, control, commons, outbox, and a reserve; and per node, its
 * doorbell, its outbox, that of a later incarnation while it is being mapped,
 * its socket on the shared address, and where connections are passed on to
 * it. */
#define FILES_FIXED    32u
#define FILES_PER_NODE 6u

void qn_resource_check_read(struct qn_resource_limits *l)
{
    struct rlimit files = {.rlim_max = 1024};
    struct rlimit address = {.rlim_cur = RLIM_INFINITY};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    (void)getrlimit(RLIMIT_AS, &address);
    *l = (struct qn_resource_limits){
        .memory = qn_quota_machine_memory(),
        .group = qn_quota_memory(),
        .address = address.rlim_cur != RLIM_INFINITY ? address.rlim_cur
                                                     : QN_LIMITS_NONE,
        .files = files.rlim_max};
}

uint64_t qn_resource_check_used(pid_t pid, int outbox)
{
    char path[40];
    char line[128];
    uint64_t kib = 0;
    struct stat its = {0};
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL &&
           sscanf(line, "RssAnon: %" SCNu64, &kib) != 1) {
    }
    if (f != NULL) {
        fclose(f);
    }
    const bool has = outbox >= 0 && fstat(outbox, &its) == 0;
    return (kib << 10) + (has ? (uint64_t)its.st_blocks * 512 : 0);
}

static uint64_t lanes(uint32_t replicas)
{
    return (uint64_t)replicas * (replicas - 1) * QN_LANES;
}

uint32_t qn_resource_check_cells(uint32_t replicas)
{
    uint32_t cells = CELLS_MOST;
    while (cells > QN_CELLS_DEFAULT &&
           lanes(replicas) * cells * QN_CACHELINE > LANES_BYTES) {
        cells /= 2;
    }
    return cells;
}

static uint64_t files_reserved(const struct qn_config *c)
{
    return FILES_FIXED + FILES_PER_NODE * (uint64_t)qn_config_seats(c);
}

static int fit_memory(const struct qn_resource_limits *l,
                      const struct qn_config *c,
                      const struct qn_transport_bytes *channels, char *why,
                      size_t cap)
{
    const struct qn_member_size s = {.nodes = qn_config_seats(c),
                                     .seats = qn_config_taken(c),
                                     .channels = *channels};
    const struct qn_member_needs n = qn_member_needs(&s);
    uint64_t need = n.commons + c->replicas * (QN_LIMITS_REPLICA + n.outbox);
    if (l->memory == 0 || need <= l->memory) {
        return QN_OK;
    }
    snprintf(why, cap,
             "%u replicas with %u cells need %" PRIu64
             " MiB of memory, %" PRIu64
             " MiB are free; use fewer --replicas or --cells",
             c->replicas, c->cells, need >> 20, l->memory >> 20);
    return QN_ENOMEM;
}

static int fit_files(const struct qn_resource_limits *l, struct qn_config *c,
                     char *why, size_t cap)
{
    uint64_t reserved = files_reserved(c);
    if (l->files <= reserved) {
        snprintf(why, cap,
                 "%u replicas need more than %" PRIu64
                 " open files each, %" PRIu64
                 " are allowed; raise the limit (ulimit -Hn)",
                 c->replicas, reserved, l->files);
        return QN_EMFILE;
    }
    if (l->files - reserved < c->maxclients) {
        qn_log(QN_LOG_WARN,
               "maxclients lowered from %u to %" PRIu64 ": only %" PRIu64
               " open files are allowed (ulimit -Hn)",
               c->maxclients, l->files - reserved, l->files);
        c->maxclients = (uint32_t)(l->files - reserved);
    }
    return QN_OK;
}

int qn_resource_check_fit(const struct qn_resource_limits *l,
                          struct qn_config *c,
                          const struct qn_transport_bytes *channels, char *why,
                          size_t cap)
{
    int err = fit_memory(l, c, channels, why, cap);
    return err != QN_OK ? err : fit_files(l, c, why, cap);
}

void qn_resource_check_raise_files(const struct qn_config *c)
{
    struct rlimit r;
    rlim_t need = c->maxclients + files_reserved(c);
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < need) {
        r.rlim_cur = need < r.rlim_max ? need : r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
}
