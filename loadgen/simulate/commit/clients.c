/*
 * Closed loops inside a replica. A write ends when its command is applied here,
 * a read when the read index that it took has been reached. Both are answered
 * in the turn after that, as a server answers: what they have seen is published
 * by then.
 */
#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/sim/timed/time_queue.h"
#include "loadgen/simulate/commit/commit_internal.h"

static bool loads(const struct qn_sim_replica *r)
{
    return r->client != NULL && qn_timed_clock() < r->group->load_until;
}

static bool draws_read(struct qn_sim_replica *r)
{
    r->random += UINT64_C(0x9e3779b97f4a7c15);
    double unit = (double)(qn_time_queue_mix(r->random) >> 11) * 0x1p-53;
    return unit < r->group->o.reads;
}

static void begin(struct qn_sim_replica *r, struct qn_sim_client *c,
                  enum qn_sim_operation does, qn_ps_t since)
{
    c->does = does;
    c->since = since;
    c->ended = false;
    r->under_way++;
}

static bool submit(struct qn_sim_replica *r, struct qn_sim_client *c)
{
    uint8_t bytes[QN_SIM_COMMAND_MAX];
    uint32_t len = r->group->o.command_bytes;
    uint64_t seq = r->submitted + 1;
    qn_ps_t since = qn_timed_clock();
    if (!qn_driver_room(r->driver)) {
        return false;
    }
    qn_sim_command_fill(bytes, len, r->self, seq);
    const struct qn_slice part = {bytes, len};
    r->of_seq[seq % QN_SIM_CLIENTS_MAX] = (uint32_t)(c - r->client);
    r->submitted = seq; /* it may be applied within the call */
    begin(r, c, QN_SIM_WRITES, since);
    int err = qn_driver_submit(r->driver, &part, 1, &seq);
    if (err != QN_OK) {
        r->submitted--;
        r->under_way--;
        c->does = QN_SIM_IDLE;
    }
    QN_ASSERT(err != QN_OK || seq == r->submitted);
    return err == QN_OK;
}

static void finish(struct qn_sim_replica *r, struct qn_sim_client *c)
{
    c->ended = true;
    r->unanswered++;
    c->applied_at = qn_timed_clock();
    c->position = r->count;
}

void qn_sim_clients_applied(struct qn_sim_replica *r, uint64_t seq)
{
    struct qn_sim_client *c = &r->client[r->of_seq[seq % QN_SIM_CLIENTS_MAX]];
    QN_ASSERT(c->does == QN_SIM_WRITES && !c->ended);
    finish(r, c);
}

static bool answer(struct qn_sim_replica *r, struct qn_sim_client *c)
{
    if (c->does == QN_SIM_READS && !c->ended &&
        qn_driver_applied(r->driver) >= c->index) {
        finish(r, c);
    }
    if (c->does == QN_SIM_IDLE || !c->ended) {
        return false;
    }
    qn_sim_history_observe(r, c);
    c->does = QN_SIM_IDLE;
    r->under_way--;
    r->unanswered--;
    return true;
}

static bool start(struct qn_sim_replica *r, struct qn_sim_client *c)
{
    if (r->group->o.client_ns > 0) {
        qn_work(r->group->o.client_ns);
    }
    if (!c->wants && draws_read(r)) {
        begin(r, c, QN_SIM_READS, qn_timed_clock());
        c->index = qn_driver_read_index(r->driver);
        return true;
    }
    c->wants = !submit(r, c); /* no room: a write it is, next time too */
    return !c->wants;
}

bool qn_sim_clients_turn(struct qn_sim_replica *r)
{
    bool did = false;
    uint32_t count = r->client != NULL ? r->group->o.clients : 0;
    for (uint32_t i = 0; i < count; i++) {
        did |= answer(r, &r->client[i]);
    }
    for (uint32_t i = 0; i < count && loads(r); i++) {
        if (r->client[i].does == QN_SIM_IDLE) {
            did |= start(r, &r->client[i]);
        }
    }
    return did;
}
