/*
 * A question is the id of the connection that asks and the arguments of its
 * request: {struct head, uint32_t length[argc], bytes}. Each replica parses the
 * arguments again, with the same filters (kvs/clientinfo.h), so nothing has to
 * be encoded per command. The asker parses them a last time when the answers
 * are in: a request's own memory is gone by then, and the connection may be
 * gone too, which is why it is found by its id.
 *
 * Answers: INFO a struct qn_info_part; LIST the lines; KILL a uint64_t;
 * RESETSTAT nothing.
 *
 * A question comes from memory that a wild process can overwrite; what is
 * malformed is answered by nothing, and an answer that is malformed counts as
 * missing.
 *
 * Levels (memory, connections, positions) are looked up when somebody asks;
 * counts are kept where things happen, in struct qn_frontend.
 */
#include "kvs/wide.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "kvs/clientinfo.h"
#include "kvs/reply.h"
#include "kvs/server.h"
#include "kvs/store.h"
#include "kvs/version.h"

enum { ASK_INFO = 1, ASK_LIST, ASK_KILL, ASK_RESETSTAT };

/* ---- questions ----------------------------------------------------------- */

struct head {
    uint64_t asker; /* connection */
    uint32_t argc;
    uint32_t zero;
};

static void question_encode(struct qn_buf *to, uint64_t asker,
                            const struct qn_slice *argv, uint32_t argc)
{
    const struct head h = {.asker = asker, .argc = argc};
    qn_buf_append(to, &h, sizeof h);
    for (uint32_t i = 0; i < argc; i++) {
        uint32_t len = (uint32_t)argv[i].len;
        qn_buf_append(to, &len, sizeof len);
    }
    for (uint32_t i = 0; i < argc; i++) {
        qn_buf_append(to, argv[i].data, argv[i].len);
    }
}

/* *argv filled: borrows from `q`; to be freed. False: malformed, no memory. */
static bool question_decode(struct qn_slice q, struct head *h,
                            struct qn_slice **argv)
{
    if (q.len < sizeof *h) {
        return false;
    }
    memcpy(h, q.data, sizeof *h);
    size_t left = q.len - sizeof *h;
    if (h->argc == 0 || h->argc > left / sizeof(uint32_t)) {
        return false;
    }
    const uint8_t *lengths = q.data + sizeof *h;
    const uint8_t *at = lengths + h->argc * sizeof(uint32_t);
    left -= h->argc * sizeof(uint32_t);
    struct qn_slice *v = malloc(h->argc * sizeof *v);
    for (uint32_t i = 0; v != NULL && i < h->argc; i++) {
        uint32_t len;
        memcpy(&len, lengths + i * sizeof len, sizeof len);
        if (len > left) {
            free(v);
            return false;
        }
        v[i] = (struct qn_slice){at, len};
        at += len;
        left -= len;
    }
    *argv = v;
    return v != NULL;
}

static void ask(struct qn_conn *c, struct qn_cmd_call *call, uint8_t what)
{
    struct qn_server *s = c->fe->o.server;
    struct qn_slice q = {0};
    c->last_cmd = call->cmd; /* what CLIENT LIST shows for this connection */
    question_encode(&c->question, c->id, call->argv, call->argc);
    int err = c->question.oom ? QN_ENOMEM : QN_OK;
    if (err == QN_OK) {
        q = (struct qn_slice){c->question.data, c->question.len};
        c->hold = QN_HOLD_ANSWER;
        err = qn_ask_start(s->ask, what, q, c->id, qn_clock_now());
    }
    if (err != QN_OK) {
        c->hold = QN_HOLD_NONE;
        qn_buf_free(&c->question);
        qn_reply_error(call->reply, "ERR cannot ask the other replicas: %s",
                       qn_strerror(err));
        return;
    }
    s->turn_wanted = true; /* the next turn knows the question's deadline */
}

/* ---- connections --------------------------------------------------------- */

static bool is_blocked(const struct qn_conn *c, uint64_t asker)
{
    return c->hold == QN_HOLD_ANSWER && c->id != asker;
}

static struct qn_client_info client_info(const struct qn_conn *c,
                                         uint64_t asker)
{
    uint64_t now_ms = uv_now(c->fe->o.loop);
    uv_os_fd_t fd = -1;
    (void)uv_fileno((const uv_handle_t *)&c->uv, &fd); /* -1 if closing */
    size_t held = c->in.held.len + c->input_len;
    size_t output = c->out.cap + c->sending.cap;
    return (struct qn_client_info){
        .id = c->id,
        .addr = c->addr,
        .laddr = c->laddr,
        .fd = fd,
        .name = c->name,
        .age_s = (now_ms - c->since_ms) / 1000,
        .idle_s = (now_ms - c->active_ms) / 1000,
        .db = c->db,
        .blocked = is_blocked(c, asker),
        .closing = c->closing,
        .is_unix = c->uv.stream.type == UV_NAMED_PIPE,
        .no_evict = c->no_evict,
        .no_touch = c->no_touch,
        .writing = c->writing,
        .qbuf = held,
        .qbuf_free = c->in.held.cap - c->in.held.len,
        .argv_mem = c->question.len,
        .out_buffer = c->out.cap,
        .out_used = c->out.len,
        .out_queued = c->sending.len,
        .total_mem = sizeof *c + c->in.held.cap + output + c->question.cap,
        .cmd = c->last_cmd != NULL ? c->last_cmd->name : NULL,
        .user = "default",
        .proto = c->proto,
        .lib_name = c->lib_name,
        .lib_ver = c->lib_ver,
    };
}

/* The list has the newest first; people want the oldest first. */
static struct qn_conn *oldest(const struct qn_frontend *fe)
{
    struct qn_conn *c = fe->all;
    while (c != NULL && c->next != NULL) {
        c = c->next;
    }
    return c;
}

static void answer_list(struct qn_server *s, const struct head *h,
                        const struct qn_slice *argv, struct qn_buf *out)
{
    struct qn_client_list f;
    struct qn_buf refused = {0};
    if (qn_client_list_parse(argv, h->argc, &f, &refused)) {
        for (struct qn_conn *c = oldest(&s->frontend); c != NULL; c = c->prev) {
            struct qn_client_info i = client_info(c, h->asker);
            if (!c->closed && qn_client_list_matches(&f, &i)) {
                qn_client_info_line(out, &i);
            }
        }
    }
    qn_buf_free(&refused);
}

/* The asker itself is counted here, and closed when it has its reply. */
static void answer_kill(struct qn_server *s, const struct head *h,
                        const struct qn_slice *argv, struct qn_buf *out)
{
    struct qn_client_kill f;
    struct qn_buf refused = {0};
    uint64_t killed = 0;
    if (qn_client_kill_parse(argv, h->argc, &f, &refused)) {
        for (struct qn_conn *c = s->frontend.all; c != NULL; c = c->next) {
            struct qn_client_info i = client_info(c, h->asker);
            bool me = c->id == h->asker;
            if (!c->closed && qn_client_kill_matches(&f, &i, me)) {
                killed++;
                if (!me) {
                    qn_conn_close(c);
                }
            }
        }
    }
    qn_buf_free(&refused);
    qn_buf_append(out, &killed, sizeof killed);
}

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

/* Store and log count what they hold. Asking malloc instead would walk its free
 * chunks: 100 ms with 10^7 keys. Buffers of connections are left out. */
static void memory_fill(struct qn_server *s, struct qn_info_part *p)
{
    struct qn_store_stats store = {0};
    struct qn_driver_status d;
    if (qn_replica_store(s->replica) != NULL) {
        qn_store_stats(qn_replica_store(s->replica), &store);
    }
    qn_driver_status(qn_replica_driver(s->replica), &d);
    p->used_memory = store.memory_bytes + d.log_bytes;
}

static void process_fill(struct qn_info_part *p)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    p->used_memory_rss = resident_bytes();
    /* The kernel's: the most that was ever resident, in KiB. */
    p->used_memory_peak =
        QN_MAX((uint64_t)use.ru_maxrss * 1024, p->used_memory);
    p->cpu_sys_usec = usec_of(use.ru_stime);
    p->cpu_user_usec = usec_of(use.ru_utime);
}

static void log_fill(struct qn_server *s, struct qn_info_part *p)
{
    struct qn_driver_status d;
    qn_driver_status(qn_replica_driver(s->replica), &d);
    const struct qn_replica_writes *w = qn_replica_writes(s->replica);
    p->failovers = d.failovers;
    p->commit = d.decided_hi;
    p->applied = d.applied;
    p->writes = w->writes;
    p->batches = w->batches;
    for (uint32_t i = 0; qn_cmd_at(i) != NULL; i++) {
        p->cmd[i].usec = (s->frontend.clock.ns[i] + w->clock.ns[i]) / QN_US;
    }
    p->commit_usec_p50 = qn_histogram_quantile(&w->latency, 0.5) / QN_US;
    p->commit_usec_p99 = qn_histogram_quantile(&w->latency, 0.99) / QN_US;
    p->commit_usec_p999 = qn_histogram_quantile(&w->latency, 0.999) / QN_US;
}

static void turns_fill(struct qn_info_part *p, const struct qn_meter *m)
{
    p->turn_usec_p99 = qn_histogram_quantile(&m->work, 0.99) / QN_US;
    p->turn_usec_p999 = qn_histogram_quantile(&m->work, 0.999) / QN_US;
    p->turn_usec_p9999 = qn_histogram_quantile(&m->work, 0.9999) / QN_US;
    p->turn_usec_max = m->work.max / QN_US;
    p->turn_max_sockets_usec = m->parts[QN_METER_SOCKETS] / QN_US;
    p->turn_max_apply_usec = m->parts[QN_METER_APPLY] / QN_US;
    p->turn_max_answers_usec = m->parts[QN_METER_ANSWERS] / QN_US;
    p->turn_growth_usec_max = m->growth_max / QN_US;
    p->turn_wall_usec_max = m->wall_max / QN_US;
}

static void answer_info(struct qn_server *s, const struct head *h,
                        struct qn_buf *out)
{
    struct qn_frontend *fe = &s->frontend;
    qn_frontend_rates(fe, qn_clock_now());
    struct qn_info_part *p = &fe->part;
    p->replica = s->boot->self;
    p->pid = (uint32_t)getpid();
    snprintf(p->state, sizeof p->state, "%s",
             s->draining ? "draining"
             : s->ready  ? "online"
                         : "loading");
    p->connected_clients = fe->clients;
    p->blocked_clients = 0;
    for (const struct qn_conn *c = fe->all; c != NULL; c = c->next) {
        p->blocked_clients += is_blocked(c, h->asker);
    }
    memory_fill(s, p);
    process_fill(p);
    log_fill(s, p);
    turns_fill(p, &fe->meter);
    qn_info_pack(p, out);
}

/* Counts begin anew; levels and positions stay what they are. */
static void answer_resetstat(struct qn_server *s)
{
    struct qn_frontend *fe = &s->frontend;
    fe->part = (struct qn_info_part){0};
    fe->clock = (struct qn_cmd_clock){0};
    fe->rates = (struct qn_rates){.since = qn_clock_now()};
    qn_meter_reset(&fe->meter);
    qn_replica_writes_reset(s->replica);
}

static void on_answer(void *ctx, uint8_t what, struct qn_slice question,
                      struct qn_buf *out)
{
    struct qn_server *s = ctx;
    struct head h;
    struct qn_slice *argv = NULL;
    if (!question_decode(question, &h, &argv)) {
        return;
    }
    if (what == ASK_INFO) {
        answer_info(s, &h, out);
    } else if (what == ASK_LIST) {
        answer_list(s, &h, argv, out);
    } else if (what == ASK_KILL) {
        answer_kill(s, &h, argv, out);
    } else if (what == ASK_RESETSTAT) {
        answer_resetstat(s);
    }
    free(argv);
}

/* ---- replies ------------------------------------------------------------- */

static uint32_t dbs_fill(struct qn_server *s, struct qn_info_db *db)
{
    struct qn_store *store = qn_replica_store(s->replica);
    if (store == NULL) {
        return 0;
    }
    uint32_t dbs = qn_replica_config(s->replica)->databases;
    for (uint32_t i = 0; i < dbs; i++) {
        db[i] = (struct qn_info_db){.keys = qn_store_count(store, i),
                                    .expires = qn_store_mortal(store, i)};
    }
    return dbs;
}

/* What concerns the whole server, as this replica knows it. */
static void whole_fill(struct qn_server *s, struct qn_info *i)
{
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
    i->logical_bytes = store.logical_bytes;
    i->total_system_memory =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    i->loading = !s->ready;
    i->consistency = s->boot->config->linearizable ? "linearizable" : "local";
    i->epoch = d.epoch;
    i->leader = d.leader;
    i->acceptor = d.acceptor;
    i->acceptor_kind = qn_server_by_memory(s) ? "memory" : "process";
    i->in_sync = d.in_sync;
    i->supervised = !s->alone;
    i->last_failover = qn_server_reason(&d, s->reason, sizeof s->reason);
    i->replicas = s->boot->nodes;
}

static void info_write(struct qn_server *s, struct qn_conn *c,
                       struct qn_asked *a, struct qn_info_part *parts,
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
        if ((a->missing >> k & 1) != 0) {
            continue;
        }
        if (qn_info_unpack(bytes, &parts[i.parts]) == QN_OK) {
            part[i.parts] = &parts[i.parts];
            i.parts++;
        } else {
            i.missing |= (uint64_t)1 << k;
        }
    }
    qn_info_reply(qn_conn_answer(c), c->proto, &i, argv + 1, argc - 1);
}

static void info_finish(struct qn_server *s, struct qn_conn *c,
                        struct qn_asked *a, const struct qn_slice *argv,
                        uint32_t argc)
{
    struct qn_info_part *parts = calloc(s->boot->nodes, sizeof *parts);
    if (parts == NULL) {
        qn_reply_error(qn_conn_answer(c), "ERR out of memory");
        return;
    }
    info_write(s, c, a, parts, argv, argc);
    free(parts);
}

static void list_finish(struct qn_server *s, struct qn_conn *c,
                        const struct qn_asked *a)
{
    struct qn_buf all = {0};
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        if ((a->missing >> i & 1) == 0) {
            qn_buf_append(&all, a->answer[i].data, a->answer[i].len);
        }
    }
    struct qn_buf *reply = qn_conn_answer(c);
    if (all.oom) {
        qn_reply_error(reply, "ERR out of memory");
    } else {
        qn_reply_text(reply, c->proto, (const char *)all.data, all.len);
    }
    qn_buf_free(&all);
}

static void kill_finish(struct qn_server *s, struct qn_conn *c,
                        const struct qn_asked *a, const struct qn_slice *argv,
                        uint32_t argc)
{
    struct qn_client_kill f;
    struct qn_buf *reply = qn_conn_answer(c);
    uint64_t killed = 0;
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        uint64_t n = 0;
        if (a->answer[i].len == sizeof n) {
            memcpy(&n, a->answer[i].data, sizeof n);
        }
        killed += n;
    }
    if (!qn_client_kill_parse(argv, argc, &f, reply)) {
        return; /* it was checked before: out of memory at most */
    }
    qn_client_kill_reply(&f, killed, reply);
    struct qn_client_info i = client_info(c, c->id);
    if (qn_client_kill_matches(&f, &i, true)) {
        qn_conn_close_after_reply(c);
    }
}

static void resetstat_finish(struct qn_conn *c, const struct qn_asked *a)
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

static void on_finish(void *ctx, struct qn_asked *a)
{
    struct qn_server *s = ctx;
    struct qn_conn *c = qn_frontend_find(&s->frontend, a->tag);
    struct head h;
    struct qn_slice *argv = NULL;
    if (c == NULL) {
        return; /* it did not wait */
    }
    struct qn_slice question = {c->question.data, c->question.len};
    if (!question_decode(question, &h, &argv)) {
        qn_reply_error(qn_conn_answer(c), "ERR out of memory");
    } else if (a->what == ASK_INFO) {
        info_finish(s, c, a, argv, h.argc);
    } else if (a->what == ASK_LIST) {
        list_finish(s, c, a);
    } else if (a->what == ASK_RESETSTAT) {
        resetstat_finish(c, a);
    } else {
        kill_finish(s, c, a, argv, h.argc);
    }
    free(argv);
    qn_buf_free(&c->question);
    qn_conn_answered(c);
}

/* ---- the commands -------------------------------------------------------- */

void qn_wide_info(struct qn_conn *c, struct qn_cmd_call *call)
{
    ask(c, call, ASK_INFO);
}

void qn_wide_client_info(struct qn_conn *c, struct qn_cmd_call *call)
{
    struct qn_buf line = {0};
    c->last_cmd = call->cmd;
    struct qn_client_info i = client_info(c, c->id);
    qn_client_info_line(&line, &i);
    if (line.oom) {
        qn_reply_error(call->reply, "ERR out of memory");
    } else {
        qn_reply_text(call->reply, c->proto, (const char *)line.data, line.len);
    }
    qn_buf_free(&line);
}

void qn_wide_client_list(struct qn_conn *c, struct qn_cmd_call *call)
{
    struct qn_client_list f;
    if (qn_client_list_parse(call->argv, call->argc, &f, call->reply)) {
        ask(c, call, ASK_LIST);
    }
}

void qn_wide_client_kill(struct qn_conn *c, struct qn_cmd_call *call)
{
    struct qn_client_kill f;
    if (qn_client_kill_parse(call->argv, call->argc, &f, call->reply)) {
        ask(c, call, ASK_KILL);
    }
}

void qn_wide_config_resetstat(struct qn_conn *c, struct qn_cmd_call *call)
{
    ask(c, call, ASK_RESETSTAT);
}

/* ---- init ---------------------------------------------------------------- */

static int on_tell(void *ctx, qn_node_t to, struct qn_slice bytes)
{
    struct qn_server *s = ctx;
    return qn_replica_tell(s->replica, to, bytes);
}

/* All replicas have the same commons, whose inode and time of birth no other
 * start of a server shares. The id is no secret. */
static void run_id_make(struct qn_server *s)
{
    struct stat st = {0};
    (void)fstat(s->boot->commons_fd, &st); /* at worst the id is not unique */
    uint64_t x = (uint64_t)st.st_ino ^ (uint64_t)st.st_ctim.tv_nsec << 32 ^
                 (uint64_t)st.st_ctim.tv_sec * 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 5; i++) {
        x += 0x9e3779b97f4a7c15u; /* splitmix64 */
        uint64_t z = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        snprintf(s->run_id + i * 8, 9, "%08x", (unsigned)(z >> 32));
    }
}

int qn_wide_init(struct qn_server *s)
{
    const struct qn_ask_opts o = {
        .self = s->boot->self,
        .nodes = s->boot->nodes,
        .tell = on_tell,
        .answer = on_answer,
        .finish = on_finish,
        .ctx = s,
    };
    run_id_make(s);
    return qn_ask_create(&s->ask, &o);
}
