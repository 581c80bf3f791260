/*
 * INFO and CONFIG RESETSTAT.
 *
 * A replica answers INFO with its own figures, a struct qn_info_part. The
 * replica that the client asked adds the figures of the whole server, as it
 * knows them, and makes the text. The answer to RESETSTAT is empty.
 *
 * Levels (memory, connections, positions) are looked up when a client asks;
 * counts are kept where things happen, in struct qn_frontend.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/plan/mixable_trees.h"
#include "kvs/base/version.h"
#include "kvs/local/cluster_query_internal.h"
#include "kvs/resp/reply.h"
#include "kvs/store/store.h"
#include "transports/registry.h"

/* ---- this replica's part of INFO ----------------------------------------- */

static uint64_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long long size = 0, resident = 0;
    if (f == NULL) {
        return 0;
    }
    if (fscanf(f, "%llu %llu", &size, &resident) != 2) {
        resident = 0;
    }
    fclose(f);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t usec_of(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static void process_fill(struct qn_info_part *p)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    p->used_memory_rss = resident_bytes();
    /* The kernel's figure: the highest resident size so far, in KiB. */
    p->used_memory_peak =
        QN_MAX((uint64_t)use.ru_maxrss * 1024, p->used_memory);
    p->cpu_sys_usec = usec_of(use.ru_stime);
    p->cpu_user_usec = usec_of(use.ru_utime);
}

/* Ring or tree, and why. */
static void topology_part(const struct qn_server *s, struct qn_info_part *p,
                          const struct qn_driver_status *d)
{
    char text[QN_RING_TEXT_MAX];
    const char *why = s->boot->topology->no_ring;
    if (why == NULL) {
        why = d->ring_choice.ring && d->ring == 0
                  ? "the next batch says that the ring is taken"
                  : qn_ring_choice_text(&d->ring_choice, text);
    }
    p->is_root = d->is_root;
    p->root_epoch = d->epoch;
    p->ring = d->ring;
    p->topology_changes = d->ring_choice.changes;
    snprintf(p->topology_reason, sizeof p->topology_reason, "%s", why);
}

static void log_fill(struct qn_server *s, struct qn_info_part *p)
{
    struct qn_driver_status d;
    qn_driver_status(qn_replica_driver(s->replica), &d);
    const struct qn_replica_writes *w = qn_replica_writes(s->replica);
    p->failovers = d.failovers;
    p->reach_nsec = d.broadcast_latency_ns;
    topology_part(s, p, &d);
    p->pause_usec = d.flow_control_delay_ns / QN_US;
    p->slow = d.flow_control_for;
    p->commit = d.halted ? d.highest_announced : d.decided_hi;
    p->applied = d.applied;
    p->learned = d.learned;
    p->writes = w->writes;
    p->batches = w->batches;
    p->unknown_timeout = w->unknown_timeout;
    p->unknown_snapshot = w->unknown_snapshot;
    p->covered_ok = w->covered_ok;
    for (uint32_t i = 0; qn_cmd_at(i) != NULL; i++) {
        p->cmd[i].usec = (s->frontend.clock.ns[i] + w->clock.ns[i]) / QN_US;
    }
    p->commit_usec_p50 = qn_histogram_quantile(&w->latency, 0.5) / QN_US;
    p->commit_usec_p99 = qn_histogram_quantile(&w->latency, 0.99) / QN_US;
    p->commit_usec_p999 = qn_histogram_quantile(&w->latency, 0.999) / QN_US;
}

static void flow_fill(struct qn_server *s, struct qn_info_part *p)
{
    struct qn_driver_flow f;
    qn_driver_kept(qn_replica_driver(s->replica), &p->kept);
    p->leads = qn_driver_flow(qn_replica_driver(s->replica), &f);
    if (!p->leads) {
        return;
    }
    p->writes_held = f.held;
    p->awaited = f.awaited;
    p->gate_shut_usec = f.shut / QN_US;
    p->given_up = f.given_up;
    p->holds_given_up = f.holds_given_up;
    for (qn_node_t n = 0; n < s->boot->nodes; n++) {
        p->lag_bytes[n] = f.lag_bytes[n];
        p->lag_slots[n] = f.lag_slots[n];
        p->pace[n] = f.pace[n];
        p->shut_usec[n] = f.shut_by[n] / QN_US;
    }
}

static void snapshots_fill(struct qn_server *s, struct qn_info_part *p)
{
    struct qn_state_transfer_status st;
    struct qn_snapshot_content_status c;
    qn_member_transfer_status(s->member, &st);
    qn_snapshot_content_status(s->content, &c);
    p->snapshots_joined = st.joined;
    p->snapshots_given = st.given;
    p->snapshots_asked = st.attempts;
    p->cut_bytes = c.cut_bytes;
    p->cut_bytes_max = c.cut_bytes_max;
    p->cut_bytes_most = c.cut_bytes_most;
    p->cuts_anew = st.anew;
}

/* Two transports of one backend count once. */
static void transport_fill(struct qn_server *s, struct qn_info_part *p)
{
    const struct qn_qp_ops *counted[QN_INFO_UNITS];
    const struct qn_transport *t;
    uint32_t n = 0;
    snprintf(p->transport, sizeof p->transport, "%s", s->transport->name);
    for (uint32_t i = 0; (t = qn_transport_at(i)) != NULL; i++) {
        uint32_t k = 0;
        while (k < n && counted[k] != t->ops) {
            k++;
        }
        if (k == n) {
            QN_ASSERT(n < QN_INFO_UNITS);
            struct qn_info_traffic *of = &p->traffic[n];
            struct qn_qp_traffic sum = qn_member_traffic(s->member, t->ops);
            counted[n++] = t->ops;
            *of = (struct qn_info_traffic){.sent = sum.sent,
                                           .received = sum.received};
            snprintf(of->unit, sizeof of->unit, "%s", t->ops->unit);
        }
    }
}

static void turns_fill(struct qn_info_part *p, const struct qn_loop_stats *m)
{
    p->turn_usec_p99 = qn_histogram_quantile(&m->work, 0.99) / QN_US;
    p->turn_usec_p999 = qn_histogram_quantile(&m->work, 0.999) / QN_US;
    p->turn_usec_p9999 = qn_histogram_quantile(&m->work, 0.9999) / QN_US;
    p->turn_usec_max = m->work.max / QN_US;
    p->turn_max_sockets_usec = m->parts[QN_LOOP_STATS_SOCKETS] / QN_US;
    p->turn_max_apply_usec = m->parts[QN_LOOP_STATS_APPLY] / QN_US;
    p->turn_max_answers_usec = m->parts[QN_LOOP_STATS_ANSWERS] / QN_US;
    p->turn_growth_usec_max = m->growth_max / QN_US;
    p->turn_wall_usec_max = m->wall_max / QN_US;
}

void qn_cluster_query_info_answer(struct qn_server *s,
                                  const struct cluster_query_head *h,
                                  struct qn_buf *out)
{
    struct qn_frontend *fe = &s->frontend;
    qn_frontend_rates(fe, qn_clock_now());
    struct qn_info_part *p = &fe->part;
    p->replica = s->boot->self;
    p->pid = (uint32_t)getpid();
    snprintf(p->state, sizeof p->state, "%s",
             s->drain.draining  ? "draining"
             : s->startup.ready ? "online"
                                : "loading");
    p->connected_clients = fe->clients;
    p->blocked_clients = 0;
    for (const struct qn_conn *c = fe->all; c != NULL; c = c->next) {
        p->blocked_clients += qn_cluster_query_is_blocked(c, h->asker);
    }
    QN_ASSERT(p->blocked_clients <= p->connected_clients);
    QN_ASSERT(fe->admitted <= fe->clients);
    p->used_memory = qn_server_used_memory(s);
    process_fill(p);
    log_fill(s, p);
    flow_fill(s, p);
    snapshots_fill(s, p);
    transport_fill(s, p);
    p->suspicion_timeout_usec =
        qn_member_suspicion_timeout(s->member, qn_clock_now()) / QN_US;
    turns_fill(p, &fe->loop_stats);
    qn_info_pack(p, out);
}

/* ---- the reply ----------------------------------------------------------- */

static uint32_t dbs_fill(struct qn_server *s, struct qn_info_db *db)
{
    struct qn_store *store = qn_replica_store(s->replica);
    if (store == NULL) {
        return 0;
    }
    uint32_t dbs = qn_replica_config(s->replica)->databases;
    QN_ASSERT(dbs <= QN_STORE_DBS_MAX);
    for (uint32_t i = 0; i < dbs; i++) {
        db[i] = (struct qn_info_db){.keys = qn_store_count(store, i),
                                    .expires = qn_store_mortal(store, i)};
    }
    return dbs;
}

/* Mask of replicas whose state is complete. An incarnation that still waits
 * for its snapshot cannot be the last replica with all data, even if the ring
 * reaches back to the first slot. */
static uint64_t complete(const struct qn_server *s)
{
    uint64_t mask = 0;
    uint64_t present = qn_member_peers(s->member) | (uint64_t)1
                                                        << s->boot->self;
    for (uint64_t m = present; m != 0; m &= m - 1) {
        qn_node_t i = (qn_node_t)__builtin_ctzll(m);
        mask |= (uint64_t)(qn_member_phase(s->member, i) >= QN_SERVER_SERVING)
                << i;
    }
    return mask;
}

static void tree_fill(struct qn_server *s, struct qn_info *i)
{
    const struct qn_topology *t = s->boot->topology;
    i->tree = qn_driver_topology(qn_replica_driver(s->replica));
    i->topology = s->boot->config->topology;
    i->ring_order = t->ring == 0                           ? NULL
                    : t->ring_part > 0 && t->ring_part < 1 ? "map"
                                                           : "number";
    if (i->tree != NULL && t->measured) {
        double ghz = t->costs->facts.clock_ghz;
        i->predicted_cycles = qn_mixable_tree_latency(i->tree, t->costs);
        i->predicted_nsec = ghz > 0 ? (uint64_t)(i->predicted_cycles / ghz) : 0;
    }
}

/* Figures of the whole server, as this replica knows them. */
static void whole_fill(struct qn_server *s, struct qn_info *i)
{
    const struct qn_config *c = qn_replica_config(s->replica);
    struct qn_driver_status d;
    struct qn_store_stats store = {0};
    qn_driver_status(qn_replica_driver(s->replica), &d);
    if (qn_replica_store(s->replica) != NULL) {
        qn_store_stats(qn_replica_store(s->replica), &store);
    }
    i->redis_version = QN_REDIS_VERSION;
    i->quoind_version = QN_QUOIND_VERSION;
    i->run_id = s->run_id;
    i->process_id = (uint32_t)getpid();
    i->tcp_port = s->boot->tcp_port;
    i->wall_usec = qn_clock_wall_us();
    i->uptime_s = (qn_clock_now() - s->started) / QN_S;
    i->maxclients = s->boot->config->maxclients;
    i->replica = s->boot->self;
    i->maxmemory = c->maxmemory;
    i->repl_backlog_size = c->repl_backlog_size;
    i->lag_timeout_ms = c->lag_timeout;
    i->min_replicas_to_write = c->min_replicas_to_write;
    i->logical_bytes = store.logical_bytes;
    i->total_system_memory =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    i->loading = !s->startup.ready;
    i->consistency = s->boot->config->linearizable ? "linearizable" : "local";
    i->epoch = d.epoch;
    /* The leader of the epoch of a stopped group has adopted nothing. */
    i->leader = d.halted ? QN_NODES_MAX : d.leader;
    i->acceptor = d.halted ? QN_NODES_MAX : d.acceptor;
    i->shared_state = qn_server_shares(s);
    i->acceptor_kind = qn_server_by_memory(s) ? "memory" : "process";
    i->group = d.log_incomplete ? "incomplete"
               : d.halted       ? "stopped"
               : d.waiting != 0 ? "waiting"
               : d.served       ? "serving"
                                : "changing";
    i->group_reason = !d.halted                              ? "none"
                      : d.log_incomplete                     ? "incomplete"
                      : d.verdict.kind == QN_VERDICT_DAMAGED ? "overwritten"
                                                             : "lost";
    i->waits_for = d.waiting;
    i->in_sync = d.halted ? 0 : d.in_sync & complete(s);
    i->supervised = !s->adoptee.alone;
    i->last_failover = qn_server_reason(&d, s->reason, sizeof s->reason);
    i->seats = s->boot->nodes;
    i->members = qn_server_members(s);
    i->voters = qn_server_voters(s);
    tree_fill(s, i);
}

static void info_write(struct qn_server *s, struct qn_conn *c,
                       struct qn_fanout_result *a, struct qn_info_part *parts,
                       const struct qn_slice *argv, uint32_t argc)
{
    struct qn_info i = {.missing = a->missing};
    struct qn_info_db db[QN_STORE_DBS_MAX];
    const struct qn_info_part *part[QN_NODES_MAX];
    struct utsname uts;
    char os[256] = "";
    char exe[256] = "";
    if (uname(&uts) == 0) {
        snprintf(os, sizeof os, "%.80s %.80s %.80s", uts.sysname, uts.release,
                 uts.machine);
    }
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = '\0';
    i.os = os;
    i.executable = exe;
    whole_fill(s, &i);
    i.db = db;
    i.dbs = dbs_fill(s, db);
    i.part = part;
    for (qn_node_t k = 0; k < s->boot->nodes; k++) {
        struct qn_slice bytes = {a->answer[k].data, a->answer[k].len};
        if (((a->members & ~a->missing) >> k & 1) == 0) {
            continue;
        }
        if (qn_info_unpack(bytes, &parts[i.parts]) == QN_OK) {
            part[i.parts] = &parts[i.parts];
            i.parts++;
        } else {
            i.missing |= (uint64_t)1 << k;
        }
    }
    QN_ASSERT(i.parts <= s->boot->nodes);
    qn_info_reply(qn_conn_answer(c), c->session.proto, &i, argv + 1, argc - 1);
}

void qn_cluster_query_info_finish(struct qn_server *s, struct qn_conn *c,
                                  struct qn_fanout_result *a,
                                  const struct qn_slice *argv, uint32_t argc)
{
    struct qn_info_part *parts = calloc(s->boot->nodes, sizeof *parts);
    if (parts == NULL) {
        qn_reply_error(qn_conn_answer(c), "ERR out of memory");
        return;
    }
    info_write(s, c, a, parts, argv, argc);
    free(parts);
}

/* ---- CONFIG RESETSTAT ---------------------------------------------------- */

/* Counts are reset; levels and positions stay. */
void qn_cluster_query_resetstat_answer(struct qn_server *s)
{
    struct qn_frontend *fe = &s->frontend;
    fe->part = (struct qn_info_part){0};
    fe->clock = (struct qn_cmd_latency_sample){0};
    fe->rates = (struct qn_rates){.since = qn_clock_now()};
    qn_loop_stats_reset(&fe->loop_stats);
    qn_replica_writes_reset(s->replica);
}

void qn_cluster_query_resetstat_finish(struct qn_conn *c,
                                       const struct qn_fanout_result *a)
{
    struct qn_buf *reply = qn_conn_answer(c);
    if (a->missing == 0) {
        qn_reply_ok(reply);
    } else {
        qn_reply_error(reply,
                       "ERR %d of the replicas did not answer; see "
                       "replicas_missing in INFO quoin",
                       __builtin_popcountll(a->missing));
    }
}

/* ---- the commands -------------------------------------------------------- */

void qn_cluster_query_info(struct qn_conn *c, struct qn_cmd_call *call)
{
    qn_cluster_query_ask(c, call, ASK_INFO);
}

void qn_cluster_query_config_resetstat(struct qn_conn *c,
                                       struct qn_cmd_call *call)
{
    qn_cluster_query_ask(c, call, ASK_RESETSTAT);
}
