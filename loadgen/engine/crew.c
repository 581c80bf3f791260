#include "loadgen/engine/crew_internal.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/random.h"

#include <stdlib.h>

/*
 * Users are numbered over all workers, and worker i of t has every t-th. A
 * user's number decides what it asks, when, and of whom, so the threads can be
 * changed without changing the load.
 *
 * A client of two parts (conn_internal.h) is two users with one number, each
 * with its part of the mix and that share of the rate: a schedule needs no more
 * than its own cursor, however long the other part's server is dead. One user
 * that skips what it cannot send would have to remember all of it.
 */

/* The share of `total` that client `number` of `clients` gets. */
static uint64_t share(uint64_t total, uint32_t number, uint32_t clients)
{
    return total / clients + (number < total % clients);
}

/* The part of all operations that a user's part of its client asks. */
static double part_of(const struct qn_crew *crew, uint32_t part)
{
    return crew->parts == 1 ? 1
                            : (double)qn_mix_sum(&crew->mix[part]) /
                                  qn_mix_sum(&crew->plan->workload->opts.mix);
}

/* Both parts together are all of them. */
static uint64_t part_requests(const struct qn_crew *crew, uint32_t part,
                              uint64_t requests)
{
    uint64_t reads =
        (uint64_t)((double)requests * part_of(crew, QN_CONN_PART_READS));
    return crew->parts == 1             ? requests
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

/* Where each request chooses a connection, each of these may have --pipeline of
 * them outstanding. */
static uint32_t depth_of(const struct qn_worker_plan *plan)
{
    uint64_t most = QN_CLIENT_DEPTH_MAX;
    uint64_t all = (uint64_t)plan->pipeline * plan->address_count;
    return plan->rate != NULL && plan->spread_requests
               ? (uint32_t)QN_MIN(all, most)
               : plan->pipeline;
}

/* What nobody else draws from; a whole client's is its number's. */
static uint64_t stream_of(uint32_t number, uint32_t part)
{
    return (uint64_t)part << 32 | number;
}

/* How many operations a user is to begin. */
static uint64_t requests_of(struct qn_user *u, uint64_t requests)
{
    const struct qn_crew *crew = u->crew;
    const struct qn_worker_plan *plan = crew->plan;
    uint64_t most = UINT64_MAX;
    if (requests != UINT64_MAX) {
        most = share(part_requests(crew, u->part, requests), u->number,
                     plan->connections);
    }
    if (plan->recorder == NULL) {
        return most;
    }
    uint64_t limit =
        part_requests(crew, u->part, plan->operations_max) / plan->connections;
    u->limited = limit < most;
    return QN_MIN(limit, most);
}

void qn_crew_begin(struct qn_crew *crew, uint32_t user, uint64_t requests,
                   qn_time_t start)
{
    const struct qn_worker_plan *plan = crew->plan;
    struct qn_user *u = &crew->user[user];
    struct qn_schedule schedule;
    double part = part_of(crew, u->part);
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

void qn_crew_wake(struct qn_crew *crew)
{
    crew->resting = 0;
    for (uint32_t i = 0; i < crew->count; i++) {
        crew->user[i].resting = false;
    }
    for (uint32_t i = 0; i < crew->count; i++) {
        qn_user_pump(&crew->user[i]);
    }
}

uint64_t qn_crew_spent(const struct qn_crew *crew)
{
    uint64_t spent = 0;
    for (uint32_t i = 0; i < crew->count; i++) {
        const struct qn_user *u = &crew->user[i];
        spent += u->limited && u->client.task.requests == 0;
    }
    return spent;
}

uint64_t qn_crew_owed(const struct qn_crew *crew, qn_time_t now,
                      uint64_t *unsent)
{
    uint64_t outstanding = 0;
    *unsent = 0;
    for (uint32_t i = 0; i < crew->count; i++) {
        outstanding += crew->user[i].client.outstanding;
        *unsent += qn_client_unsent(&crew->user[i].client, now);
    }
    return outstanding;
}

/* ---- making them ---- */

/* The addresses of one role, and which of them a client gets. */
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

/* An open loop with roles has a user for each. */
static void make_parts(struct qn_crew *crew)
{
    const struct qn_mix *whole = &crew->plan->workload->opts.mix;
    bool apart = crew->plan->rate != NULL && crew->plan->reader_count > 0;
    crew->parts = apart ? 2 : 1;
    crew->mix[QN_CONN_PART_READS] = qn_mix_part(whole, true);
    crew->mix[QN_CONN_PART_WRITES] = qn_mix_part(whole, false);
}

static int make_conn(const struct qn_worker_plan *plan, struct qn_user *u,
                     uint32_t address, unsigned role)
{
    struct qn_load_conn *c = &u->conn[u->conn_count];
    c->user = u;
    c->address_number = address;
    c->address = &plan->address[address];
    c->role = role;
    if (qn_connection_state_init(&c->lane, &u->client) != QN_OK) {
        return QN_ENOMEM;
    }
    u->conn_count++;
    u->crew->conn_count++;
    return QN_OK;
}

static int make_conns(const struct qn_worker_plan *plan, struct qn_user *u)
{
    struct group group[2];
    uint32_t groups = groups_of(plan, group);
    for (uint32_t g = 0; g < groups; g++) {
        if (u->crew->parts > 1 && g != u->part) {
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

static int make_user(struct qn_crew *crew, const struct qn_worker_plan *plan,
                     uint32_t i, uint32_t number, uint32_t part)
{
    struct qn_user *u = &crew->user[i];
    struct qn_client_task task = preload_task(plan, number, part);
    uint64_t seed = qn_random_split(plan->seed, stream_of(number, part));
    u->crew = crew;
    u->place = i;
    u->number = number;
    u->part = part;
    u->conn = &crew->conn[crew->conn_count];
    const struct qn_client_opts opts = {
        .workload = plan->workload,
        .mix = crew->parts > 1 ? &crew->mix[part] : NULL,
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

int qn_crew_init(struct qn_crew *crew, const struct qn_worker_plan *plan,
                 uint32_t index)
{
    crew->plan = plan;
    crew->silence = plan->silence;
    crew->resp3 = plan->resp3;
    uint32_t clients = (uint32_t)share(plan->connections, index, plan->threads);
    make_parts(crew);
    crew->count = clients * crew->parts;
    crew->read_buf = malloc(QN_CONN_READ_BYTES);
    crew->user = calloc(crew->count, sizeof *crew->user);
    crew->conn =
        calloc((size_t)clients * conns_per_client(plan), sizeof *crew->conn);
    if (crew->user == NULL || crew->conn == NULL || crew->read_buf == NULL ||
        qn_agenda_init(&crew->agenda, crew->count) != QN_OK) {
        return QN_ENOMEM;
    }
    for (uint32_t i = 0; i < crew->count; i++) {
        uint32_t number = index + i / crew->parts * plan->threads;
        if (make_user(crew, plan, i, number, i % crew->parts) != QN_OK) {
            return QN_ENOMEM;
        }
    }
    return QN_OK;
}

void qn_crew_fini(struct qn_crew *crew)
{
    for (uint32_t i = 0; i < crew->conn_count; i++) {
        qn_connection_state_fini(&crew->conn[i].lane);
    }
    for (uint32_t i = 0; crew->user != NULL && i < crew->count; i++) {
        qn_client_fini(&crew->user[i].client);
    }
    qn_agenda_fini(&crew->agenda);
    free(crew->user);
    free(crew->conn);
    free(crew->read_buf);
}
