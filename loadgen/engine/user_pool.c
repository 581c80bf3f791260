#include "loadgen/engine/user_pool_internal.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/random.h"

#include <stdlib.h>

/*
 * Users are numbered over all workers, and worker i of t has every t-th. The
 * number of a user decides what it sends, when, and to which address, so the
 * number of threads does not change the load.
 *
 * A client of two parts (conn_internal.h) is two users with one number. Each
 * has its part of the mix and that share of the rate, so a schedule needs only
 * its own cursor, however long the servers of the other part are down. A single
 * user that skips what it cannot send would have to remember all of it.
 */

/* The share of `total` that client `number` of `clients` gets. */
static uint64_t share(uint64_t total, uint32_t number, uint32_t clients)
{
    return total / clients + (number < total % clients);
}

/* Fraction of all operations that this part of a client sends. */
static double part_of(const struct qn_user_pool *pool, uint32_t part)
{
    return pool->parts == 1 ? 1
                            : (double)qn_mix_sum(&pool->mix[part]) /
                                  qn_mix_sum(&pool->plan->workload->opts.mix);
}

/* Operations of one part; both parts add up to `requests`. */
static uint64_t part_requests(const struct qn_user_pool *pool, uint32_t part,
                              uint64_t requests)
{
    uint64_t reads =
        (uint64_t)((double)requests * part_of(pool, QN_CONN_PART_READS));
    return pool->parts == 1             ? requests
           : part == QN_CONN_PART_READS ? reads
                                        : requests - reads;
}

static struct qn_client_task preload_task(const struct qn_worker_plan *plan,
                                          uint32_t number, uint32_t part)
{
    bool stores = plan->preload && part == QN_CONN_PART_WRITES;
    const struct qn_workload_opts *o = &plan->workload->opts;
    uint32_t clients = plan->connections;
    uint64_t bytes =
        qn_sizes_mean(&o->key_size) + qn_sizes_mean(&o->value_size);
    uint64_t fit = QN_WORKER_PRELOAD_BYTES / (bytes + 1);
    fit = QN_MAX(fit, (uint64_t)1);
    return (struct qn_client_task){
        .depth = (uint32_t)QN_MIN(fit, (uint64_t)QN_WORKER_PRELOAD_DEPTH),
        .requests = stores ? share(o->keys, number, clients) : 0,
        .preload = true,
        .first_key = number,
        .step = clients,
    };
}

/* If each request chooses its connection, each connection may have --pipeline
 * requests outstanding. */
static uint32_t depth_of(const struct qn_worker_plan *plan)
{
    uint64_t most = QN_CLIENT_DEPTH_MAX;
    uint64_t all = (uint64_t)plan->pipeline * plan->address_count;
    return plan->rate != NULL && plan->spread_requests
               ? (uint32_t)QN_MIN(all, most)
               : plan->pipeline;
}

/* Number of a random stream of its own; for a whole client it is the number of
 * the client. */
static uint64_t stream_of(uint32_t number, uint32_t part)
{
    return (uint64_t)part << 32 | number;
}

/* Number of operations that a user starts. */
static uint64_t requests_of(struct qn_virtual_user *u, uint64_t requests)
{
    const struct qn_user_pool *pool = u->pool;
    const struct qn_worker_plan *plan = pool->plan;
    uint64_t most = UINT64_MAX;
    if (requests != UINT64_MAX) {
        most = share(part_requests(pool, u->part, requests), u->number,
                     plan->connections);
    }
    if (plan->recorder == NULL) {
        return most;
    }
    uint64_t limit =
        part_requests(pool, u->part, plan->operations_max) / plan->connections;
    u->limited = limit < most;
    return QN_MIN(limit, most);
}

void qn_user_pool_begin(struct qn_user_pool *pool, uint32_t user,
                        uint64_t requests, qn_time_t start)
{
    const struct qn_worker_plan *plan = pool->plan;
    struct qn_virtual_user *u = &pool->user[user];
    struct qn_schedule schedule;
    double part = part_of(pool, u->part);
    struct qn_client_task task = {
        .depth = depth_of(plan),
        .one_by_one = plan->spread_requests && plan->rate != NULL,
        .requests = part > 0 ? requests_of(u, requests) : 0};
    if (plan->rate != NULL && part > 0) {
        uint64_t seed =
            qn_random_split(plan->seed, ~stream_of(u->number, u->part));
        const struct qn_schedule_opts opts = {
            .rate = plan->rate,
            .start = start,
            .poisson = plan->poisson,
            .number = u->number,
            .clients = plan->connections,
            .share = part,
            .seed = qn_random_next(&seed),
        };
        qn_schedule_init(&schedule, &opts);
        task.schedule = &schedule;
    }
    qn_client_begin(&u->client, &task);
}

void qn_user_pool_wake(struct qn_user_pool *pool)
{
    pool->idle_count = 0;
    for (uint32_t i = 0; i < pool->count; i++) {
        pool->user[i].idle = false;
    }
    for (uint32_t i = 0; i < pool->count; i++) {
        qn_virtual_user_send_due(&pool->user[i]);
    }
}

uint64_t qn_user_pool_spent(const struct qn_user_pool *pool)
{
    uint64_t spent = 0;
    for (uint32_t i = 0; i < pool->count; i++) {
        const struct qn_virtual_user *u = &pool->user[i];
        spent += u->limited && u->client.task.requests == 0;
    }
    return spent;
}

uint64_t qn_user_pool_outstanding(const struct qn_user_pool *pool,
                                  qn_time_t now, uint64_t *unsent)
{
    uint64_t outstanding = 0;
    *unsent = 0;
    for (uint32_t i = 0; i < pool->count; i++) {
        outstanding += pool->user[i].client.outstanding;
        *unsent += qn_client_unsent(&pool->user[i].client, now);
    }
    return outstanding;
}

/* ---- init ---- */

/* The addresses of one role. */
struct group {
    uint32_t first;
    uint32_t count;
    unsigned role;
};

static uint32_t groups_of(const struct qn_worker_plan *plan,
                          struct group group[2])
{
    uint32_t writers = plan->address_count - plan->reader_count;
    bool roles = plan->reader_count > 0;
    QN_ASSERT(writers > 0);
    group[0] = (struct group){
        0, writers, roles ? QN_CONN_WRITES : QN_CONN_READS | QN_CONN_WRITES};
    group[1] = (struct group){writers, plan->reader_count, QN_CONN_READS};
    return roles ? 2 : 1;
}

static uint32_t conns_per_client(const struct qn_worker_plan *plan)
{
    struct group group[2];
    uint32_t groups = groups_of(plan, group);
    return plan->spread_requests ? plan->address_count : groups;
}

/* An open loop with roles has one user per role. */
static void make_parts(struct qn_user_pool *pool)
{
    const struct qn_mix *whole = &pool->plan->workload->opts.mix;
    bool apart = pool->plan->rate != NULL && pool->plan->reader_count > 0;
    pool->parts = apart ? 2 : 1;
    pool->mix[QN_CONN_PART_READS] = qn_mix_part(whole, true);
    pool->mix[QN_CONN_PART_WRITES] = qn_mix_part(whole, false);
}

static int make_conn(const struct qn_worker_plan *plan,
                     struct qn_virtual_user *u, uint32_t address, unsigned role)
{
    struct qn_load_conn *c = &u->conn[u->conn_count];
    c->user = u;
    c->address_number = address;
    c->address = &plan->address[address];
    c->role = role;
    if (qn_connection_state_init(&c->connection, &u->client) != QN_OK) {
        return QN_ENOMEM;
    }
    u->conn_count++;
    u->pool->conn_count++;
    return QN_OK;
}

static int make_conns(const struct qn_worker_plan *plan,
                      struct qn_virtual_user *u)
{
    struct group group[2];
    uint32_t groups = groups_of(plan, group);
    for (uint32_t g = 0; g < groups; g++) {
        if (u->pool->parts > 1 && g != u->part) {
            continue;
        }
        uint32_t n = plan->spread_requests ? group[g].count : 1;
        for (uint32_t k = 0; k < n; k++) {
            uint32_t address =
                group[g].first + (u->number + k) % group[g].count;
            if (make_conn(plan, u, address, group[g].role) != QN_OK) {
                return QN_ENOMEM;
            }
        }
    }
    return QN_OK;
}

static int make_user(struct qn_user_pool *pool,
                     const struct qn_worker_plan *plan, uint32_t i,
                     uint32_t number, uint32_t part)
{
    struct qn_virtual_user *u = &pool->user[i];
    struct qn_client_task task = preload_task(plan, number, part);
    uint64_t seed = qn_random_split(plan->seed, stream_of(number, part));
    u->pool = pool;
    u->place = i;
    u->number = number;
    u->part = part;
    u->conn = &pool->conn[pool->conn_count];
    const struct qn_client_opts opts = {
        .workload = plan->workload,
        .mix = pool->parts > 1 ? &pool->mix[part] : NULL,
        .depth_max = QN_MAX(depth_of(plan), task.depth),
        .number = number,
        .clients = plan->connections,
        .seed = qn_random_next(&seed),
        .recorder = plan->recorder != NULL
                        ? &plan->recorder[number % plan->threads]
                        : NULL,
    };
    if (qn_client_init(&u->client, &opts) != QN_OK) {
        return QN_ENOMEM;
    }
    u->random = qn_random_next(&seed);
    qn_client_begin(&u->client, &task);
    return make_conns(plan, u);
}

int qn_user_pool_init(struct qn_user_pool *pool,
                      const struct qn_worker_plan *plan, uint32_t index)
{
    pool->plan = plan;
    pool->unavailability = plan->unavailability;
    pool->resp3 = plan->resp3;
    uint32_t clients = (uint32_t)share(plan->connections, index, plan->threads);
    make_parts(pool);
    pool->count = clients * pool->parts;
    pool->read_buf = malloc(QN_CONN_READ_BYTES);
    pool->user = calloc(pool->count, sizeof *pool->user);
    pool->conn =
        calloc((size_t)clients * conns_per_client(plan), sizeof *pool->conn);
    if (pool->user == NULL || pool->conn == NULL || pool->read_buf == NULL ||
        qn_timer_heap_init(&pool->timers, pool->count) != QN_OK) {
        return QN_ENOMEM;
    }
    for (uint32_t i = 0; i < pool->count; i++) {
        uint32_t number = index + i / pool->parts * plan->threads;
        if (make_user(pool, plan, i, number, i % pool->parts) != QN_OK) {
            return QN_ENOMEM;
        }
    }
    return QN_OK;
}

void qn_user_pool_fini(struct qn_user_pool *pool)
{
    for (uint32_t i = 0; i < pool->conn_count; i++) {
        qn_connection_state_fini(&pool->conn[i].connection);
    }
    for (uint32_t i = 0; pool->user != NULL && i < pool->count; i++) {
        qn_client_fini(&pool->user[i].client);
    }
    qn_timer_heap_fini(&pool->timers);
    free(pool->user);
    free(pool->conn);
    free(pool->read_buf);
}
