/*
 * A replica process, from start to end.
 *
 * Start: make the own outbox; exchange descriptors with all peers through the
 * supervisor; open two queuepairs to each peer (server_peers.c); make driver,
 * replica and front end; listen. From then on the replica does not need the
 * supervisor.
 *
 * Loop: libuv polls sockets and the doorbell; all work happens in the check
 * handle, one turn per iteration. Before the loop may block, the prepare
 * handle declares sleep, polls all channels once more, and lets the loop block
 * only if they are empty (core/wait/doorbell.h says why in that order).
 *
 * End: server_drain.c.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/log.h"
#include "core/earlier.h"
#include "kvs/local/cluster_query.h"
#include "kvs/local/local_commands.h"
#include "kvs/main/replica_main.h"
#include "kvs/server/server.h"
#include "kvs/server/server_settings.h"
#include "kvs/store/store.h"
#include "transports/registry.h"

/* ---- one turn ------------------------------------------------------------ */

static int listen_on(struct qn_server *s, int fd);
static int listen_on_shared(struct qn_server *s);

static void accept_begin(struct qn_server *s)
{
    if (s->boot->first) {
        (void)listen_on(s, s->boot->listen_own);
    }
    (void)listen_on_shared(s);
    qn_server_accept_open(s);
}

static void startup_turn(struct qn_server *s)
{
    bool store = qn_replica_store(s->replica) != NULL;
    unsigned actions = qn_startup_turn(&s->startup, store, s->drain.draining);
    if ((actions & QN_STARTUP_SERVING) != 0) {
        qn_server_phase_set(s, QN_SERVER_SERVING);
    }
    if ((actions & QN_STARTUP_READY) != 0) {
        qn_member_serves(s->member);
        qn_control_ready(s->boot);
    }
    if ((actions & QN_STARTUP_ACCEPT) != 0) {
        accept_begin(s);
    }
}

static void turn(struct qn_server *s)
{
    qn_time_t now = qn_clock_now();
    qn_time_t at = qn_member_turn_begin(s->member, now);
    qn_loop_stats_begin(&s->frontend.loop_stats, now);
    s->turn_wanted = false;
    qn_settings_turn(s);
    /* Before the front end's turn, which sends and writes its results. */
    at = qn_time_earlier(at, qn_fanout_turn(s->ask, now));
    qn_frontend_run(&s->frontend, now, qn_clock_wall_ms());
    startup_turn(s);
    at = qn_time_earlier(at, qn_server_members_turn(s, now));
    at = qn_time_earlier(
        at, qn_server_wait_turn(&s->waits, qn_replica_driver(s->replica),
                                s->boot->nodes, s->drain.draining, now));
    at = qn_time_earlier(at, qn_member_turn_end(s->member, now));
    at = qn_time_earlier(at, qn_server_accept_turn(s, now));
    qn_server_roles_turn(s);
    at = qn_time_earlier(at, qn_driver_deadline(qn_replica_driver(s->replica)));
    at = qn_time_earlier(at, qn_replica_deadline(s->replica));
    at = qn_time_earlier(at, qn_server_drain_turn(s, now));
    at = qn_time_earlier(at, qn_server_events_turn(s, now));
    at = qn_time_earlier(at, qn_server_trim_turn(s, now));
    qn_loop_deadline_set(&s->uv.alarm, at, now);
}

static void on_idle(uv_idle_t *h)
{
    (void)h; /* an active idle handle keeps the loop from blocking */
}

static void on_doorbell(uv_poll_t *h, int status, int events)
{
    (void)status;
    (void)events;
    struct qn_server *s = h->data;
    qn_frontend_wake(&s->frontend);
    qn_member_drain(s->member);
}

static bool more_to_do(struct qn_server *s)
{
    return s->turn_wanted || qn_loop_deadline_rang(&s->uv.alarm) ||
           qn_frontend_again(&s->frontend) || qn_member_again(s->member);
}

/* The work of this turn is done; the loop may wait now. */
static void turn_ended(struct qn_server *s, qn_time_t now)
{
    struct qn_store_stats st = {0};
    if (qn_replica_store(s->replica) != NULL) {
        qn_store_stats(qn_replica_store(s->replica), &st);
    }
    qn_loop_stats_end(&s->frontend.loop_stats, now, st.growths != s->growths);
    s->growths = st.growths;
}

static void on_prepare(uv_prepare_t *h)
{
    struct qn_server *s = h->data;
    qn_time_t now = qn_clock_now();
    turn_ended(s, now);
    if (!more_to_do(s)) {
        qn_member_yield(s->member, now);
    }
    qn_member_arm(s->member);
    if (more_to_do(s)) {
        qn_member_wake(s->member);
        uv_idle_start(&s->uv.idle, on_idle);
    } else {
        uv_idle_stop(&s->uv.idle);
    }
}

static void on_check(uv_check_t *h)
{
    struct qn_server *s = h->data;
    qn_member_wake(s->member);
    if (!s->drain.stopping) {
        turn(s);
    }
}

/* ---- sockets ------------------------------------------------------------- */

static void on_connection(uv_stream_t *listener, int status)
{
    struct qn_server *s = listener->data;
    qn_frontend_wake(&s->frontend);
    if (status == 0) {
        qn_frontend_accept(&s->frontend, listener,
                           listener->type == UV_NAMED_PIPE);
    }
}

static int listen_on(struct qn_server *s, int fd)
{
    if (fd < 0) {
        return QN_OK;
    }
    union qn_listener *l = &s->uv.listener[s->uv.listeners];
    int err = 0;
    if (uv_guess_handle(fd) == UV_NAMED_PIPE) {
        uv_pipe_init(&s->uv.loop, &l->pipe, 0);
        err = uv_pipe_open(&l->pipe, fd);
    } else {
        uv_tcp_init(&s->uv.loop, &l->tcp);
        err = uv_tcp_open(&l->tcp, fd);
    }
    l->stream.data = s;
    s->uv.listeners++;
    if (err == 0) {
        err = uv_listen(&l->stream,
                        (int)qn_replica_config(s->replica)->tcp_backlog,
                        on_connection);
    }
    if (err != 0) {
        qn_log(QN_LOG_ERROR, "replica %u: cannot listen: %s", s->boot->self,
               uv_strerror(err));
        return QN_EIO;
    }
    return QN_OK;
}

static int listen_on_shared(struct qn_server *s)
{
    return qn_server_accept_pass(s)
               ? QN_OK
               : listen_on(s, s->boot->listen_shared[s->boot->self]);
}

static void on_terminate(uv_signal_t *h, int signum)
{
    struct qn_server *s = h->data;
    (void)signum;
    qn_drain_request_shutdown(&s->drain);
    qn_server_drain(s);
}

/* ---- start and end ------------------------------------------------------- */

static int loop_make(struct qn_server *s)
{
    struct {
        uv_handle_t *h;
    } all[] = {{(uv_handle_t *)&s->uv.prepare},
               {(uv_handle_t *)&s->uv.check},
               {(uv_handle_t *)&s->uv.idle},
               {(uv_handle_t *)&s->uv.doorbell_poll},
               {(uv_handle_t *)&s->uv.control_poll},
               {(uv_handle_t *)&s->uv.terminate}};
    uv_prepare_init(&s->uv.loop, &s->uv.prepare);
    uv_check_init(&s->uv.loop, &s->uv.check);
    uv_idle_init(&s->uv.loop, &s->uv.idle);
    qn_loop_deadline_init(&s->uv.alarm, &s->uv.loop);
    uv_signal_init(&s->uv.loop, &s->uv.terminate);
    if (uv_poll_init(&s->uv.loop, &s->uv.doorbell_poll,
                     s->boot->doorbell_fd[s->boot->self]) != 0 ||
        uv_poll_init(&s->uv.loop, &s->uv.control_poll, s->boot->control) != 0) {
        return QN_EIO;
    }
    for (size_t i = 0; i < QN_ARRAY_COUNT(all); i++) {
        all[i].h->data = s;
    }
    uv_prepare_start(&s->uv.prepare, on_prepare);
    uv_check_start(&s->uv.check, on_check);
    uv_poll_start(&s->uv.doorbell_poll, UV_READABLE, on_doorbell);
    qn_server_control_start(s);
    uv_signal_start(&s->uv.terminate, on_terminate, SIGTERM);
    s->turn_wanted = true; /* the founder has something to say */
    return qn_server_adopt_begin(s);
}

static const struct qn_server_local local_commands = {
    .takes = qn_local_commands_takes,
    .run = qn_local_commands_run,
    .init = qn_cluster_query_init};

static int server_make(struct qn_server *s, const struct qn_replica_spec *boot)
{
    s->boot = boot;
    s->local = &local_commands;
    qn_server_accept_init(s);
    qn_trim_init(&s->trim, boot->self);
    qn_startup_init(&s->startup, boot->first);
    s->started = qn_clock_now();
    s->started_wall_ms = qn_clock_wall_ms();
    s->seed = boot->incarnation ^ s->started;
    s->transport = qn_transport_find(boot->config->transport);
    if (s->transport == NULL) {
        return QN_ENOENT;
    }
    int err = qn_server_peers_meet(s);
    if (err == QN_OK) {
        prctl(PR_SET_PDEATHSIG, 0); /* from here on it continues without the
                                       supervisor */
        err = qn_server_replica_make(s);
    }
    if (err == QN_OK) {
        err = loop_make(s);
    }
    if (err == QN_OK && !boot->first) {
        err = listen_on(s, boot->listen_own); /* LOADING, until it is ready */
    }
    return err;
}

int qn_replica_main(const struct qn_replica_spec *boot)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* without the supervisor it would
                                         never meet its peers */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the group; the supervisor acts */
    qn_store_tune_malloc();
    struct qn_server *s = calloc(1, sizeof *s);
    if (s != NULL) {
        s->adopt_fd = -1;
    }
    if (s == NULL || uv_loop_init(&s->uv.loop) != 0) {
        qn_control_failed(boot, QN_ENOMEM);
        free(s);
        return 1;
    }
    int err = server_make(s, boot);
    if (err == QN_OK) {
        uv_run(&s->uv.loop, UV_RUN_DEFAULT);
    } else if (err != QN_EABORTED) { /* told to end before it had begun */
        qn_control_failed(boot, err);
    }
    qn_server_fini(s);
    free(s);
    return err == QN_OK || err == QN_EABORTED ? 0 : 1;
}
