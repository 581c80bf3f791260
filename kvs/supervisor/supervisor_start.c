/*
 * How a server begins and ends.
 *
 * Order: signals first, so that from then on every end is an orderly one; then
 * the sockets (another server's presence is the likeliest reason to stop); then
 * what all replicas share; then one process after the other.
 */
#include "kvs/supervisor/supervisor_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/log.h"
#include "core/place/commons.h"
#include "core/wait/spin.h"
#include "kvs/control/adopt.h"
#include "kvs/listen/protected_mode.h"
#include "kvs/resources/resource_check.h"

struct qn_supervisor *qn_supervisor_create(void)
{
    struct qn_supervisor *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return NULL;
    }
    s->commons_fd = s->signal_fd = s->lock = s->lock_file = -1;
    s->successor = s->message_fd = -1;
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        s->doorbell_fd[i] = s->record_fd[i] = -1;
        s->child[i] = (struct qn_child){.control = -1, .pidfd = -1};
    }
    qn_listen_init(&s->listen, &s->config);
    return s;
}

void qn_supervisor_blame(struct qn_supervisor *s, qn_node_t i, int err)
{
    bool scarce = err == QN_EAGAIN || err == QN_ENOMEM || err == QN_EMFILE;
    if (s->why[0] == '\0') { /* the first reason is the reason */
        snprintf(s->why, sizeof s->why, "replica %u of %u cannot start: %s%s",
                 i, s->config.replicas,
                 err == QN_EAGAIN ? "too many processes" : qn_strerror(err),
                 scarce ? "; use fewer --replicas" : "");
    }
}

/* One for each core of a tree that was given, else one per NUMA node. */
static uint32_t replicas_auto(const struct qn_supervisor *s)
{
    uint32_t n = qn_topology_replicas(&s->config);
    return n > 0 ? n : QN_MIN(QN_MAX(s->places.numa_nodes, 3u), QN_NODES_MAX);
}

/* Where connections are to land. Without a map they land anywhere. */
static void plan_placement(struct qn_supervisor *s)
{
    struct qn_connection_placement *p = &s->placement;
    bool several = false;
    *p = (struct qn_connection_placement){.nodes = qn_config_seats(&s->config)};
    for (qn_node_t i = 0; i < p->nodes; i++) {
        p->home[i] = s->child[i].place.numa_node;
        several =
            several || (i < s->config.replicas && p->home[i] != p->home[0]);
    }
    bool near = s->config.placement == QN_PLACE_NEAR ||
                (s->config.placement == QN_PLACE_AUTO && several);
    if (near && qn_numa_map_read(&s->map, NULL) == QN_OK) {
        p->map = &s->map;
    } else if (near) {
        qn_log(QN_LOG_WARN, "cannot read the machine's topology: connections "
                            "are spread over all replicas");
    }
}

/* If all seats were taken. */
static bool cores_shared(const struct qn_supervisor *s)
{
    return qn_doorbell_spin_budget(&(struct qn_spin_opts){
               .nodes = qn_config_seats(&s->config),
               .cores = s->places.count,
               .quota_milli = s->places.quota_milli}) == 0;
}

/* Those that begin the group are spread over the cores; a later one gets the
 * next core. */
static uint32_t place_of(const struct qn_supervisor *s, qn_node_t i)
{
    const uint32_t n = s->config.replicas;
    return i < n ? qn_places_seat(&s->places, i, n) : i;
}

int qn_supervisor_seat(struct qn_supervisor *s)
{
    uint32_t n = qn_config_seats(&s->config);
    struct qn_place place[QN_NODES_MAX];
    const struct qn_topology_opts o = {.config = &s->config,
                                       .places = &s->places,
                                       .place = place,
                                       .shared = cores_shared(s)};
    for (qn_node_t i = 0; i < n; i++) {
        place[i] = qn_places_of(&s->places, place_of(s, i),
                                (enum qn_bind)s->config.pin);
    }
    qn_topology_fini(&s->topology);
    int err = qn_topology_make(&s->topology, &o, s->why, sizeof s->why);
    for (qn_node_t i = 0; i < n; i++) {
        s->child[i].place = place[i];
    }
    if (s->topology.ring_part > 0 && s->topology.ring_part < 1) {
        qn_log(QN_LOG_INFO,
               "replicas are on their cores as the planner's map of the ring "
               "says: a long burst is predicted to take %.0f %% of the time",
               s->topology.ring_part * 100);
    }
    plan_placement(s);
    return err;
}

struct qn_supervision_opts qn_supervisor_machine_opts(const struct qn_config *c)
{
    return (struct qn_supervision_opts){
        .replicas = qn_config_seats(c),
        .taken = qn_config_taken(c),
        .restart = c->restart,
        .memory_acceptor = c->memory_acceptor,
        .shutdown_timeout_s = (uint32_t)c->shutdown_timeout,
        .upgrade_timeout_s = (uint32_t)c->upgrade_timeout};
}

struct qn_transport_bytes qn_supervisor_channels(const struct qn_supervisor *s,
                                                 const struct qn_config *c)
{
    const struct qn_transport *t = s->opts->transport(c->transport);
    const struct qn_device_opts device = qn_budget_device(c);
    return qn_transport_needs(t, c->cells, &device);
}

/* What lanes cannot be mapped read-only for, and what has no room for so many
 * replicas, is refused. */
static int check_transport(struct qn_supervisor *s)
{
    const struct qn_transport *t = s->opts->transport(s->config.transport);
    const struct qn_transport_bytes channels =
        qn_supervisor_channels(s, &s->config);
    if (t->memory == QN_TRANSPORT_BOTH_WRITE) {
        snprintf(s->why, sizeof s->why,
                 "--transport %s is for threads: both ends write its lanes; "
                 "use ump or ffq",
                 t->name);
        return QN_EINVAL;
    }
    if (t->memory == QN_TRANSPORT_DEVICE && channels.device == 0) {
        snprintf(s->why, sizeof s->why,
                 "--transport %s has no room for %u replicas; use fewer "
                 "--replicas",
                 t->name, s->config.replicas);
        return QN_EINVAL;
    }
    if (t->memory == QN_TRANSPORT_DEVICE) {
        qn_log(QN_LOG_INFO,
               "transport '%s' has no memory that replicas could read: "
               "acceptor 'process' and shared-state 'no' are used",
               t->name);
        qn_config_by_message(&s->config);
        return qn_config_check(&s->config, s->why, sizeof s->why);
    }
    return QN_OK;
}

/* Automatic seats cost nothing else that was asked for. */
static void plan_seats(struct qn_supervisor *s,
                       const struct qn_resource_limits *limits)
{
    const struct qn_transport *t = s->opts->transport(s->config.transport);
    qn_config_seats_resolve(&s->config, t->memory != QN_TRANSPORT_DEVICE &&
                                            qn_topology_grows(&s->config));
    if (s->config.replicas_max_auto) {
        const struct qn_transport_bytes channels =
            qn_supervisor_channels(s, &s->config);
        qn_budget_seats(limits, &s->config, &channels);
    }
}

/* What can be known before anything is made. */
int qn_supervisor_plan(struct qn_supervisor *s,
                       const struct qn_supervisor_opts *opts)
{
    struct qn_resource_limits limits;
    s->config = *opts->config;
    s->opts = opts;
    int err = qn_places_discover(&s->places);
    if (err != QN_OK) {
        snprintf(s->why, sizeof s->why,
                 "cannot read the machine's topology: %s", qn_strerror(err));
        return err;
    }
    if (s->config.replicas == QN_REPLICAS_AUTO) {
        s->config.replicas = replicas_auto(s);
    }
    qn_resource_check_read(&limits);
    plan_seats(s, &limits);
    if (s->config.cells == QN_CELLS_AUTO) {
        s->config.cells = qn_resource_check_cells(s->config.replicas);
    }
    qn_config_min_resolve(&s->config);
    err = qn_config_check(&s->config, s->why, sizeof s->why);
    if (err == QN_OK) {
        err = check_transport(s);
    }
    if (err != QN_OK) {
        return err;
    }
    err = qn_supervisor_seat(s);
    if (err != QN_OK) {
        return err;
    }
    const struct qn_supervision_opts o = qn_supervisor_machine_opts(&s->config);
    qn_supervision_init(&s->machine, &o);
    const struct qn_transport_bytes channels =
        qn_supervisor_channels(s, &s->config);
    return qn_resource_check_fit(&limits, &s->config, &channels, s->why,
                                 sizeof s->why);
}

/* How much a new group may store; an adopted one has its limit already. */
static int plan_memory(struct qn_supervisor *s)
{
    const struct qn_transport_bytes channels =
        qn_supervisor_channels(s, &s->config);
    struct qn_resource_limits limits;
    qn_resource_check_read(&limits);
    int err = qn_budget_make(&limits, &s->config, &channels, &s->budget);
    if (err != QN_OK) {
        snprintf(s->why, sizeof s->why, "%s", s->budget.said);
    }
    return err;
}

/* The parent process, nohup for example, ignores SIGHUP. A blocked signal is
 * queued even if it is ignored, so it must stay out of the mask. */
static bool hang_up_is_ignored(void)
{
    struct sigaction now = {.sa_handler = SIG_DFL};
    return sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static int open_signals(struct qn_supervisor *s)
{
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGCHLD);
    if (!hang_up_is_ignored()) {
        sigaddset(&mask, SIGHUP);
    }
    sigprocmask(SIG_BLOCK, &mask, &s->signals_before);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error, not a death */
    s->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signal_fd >= 0 ? QN_OK : QN_EMFILE;
}

int qn_supervisor_pass(struct qn_supervisor *s)
{
    return s->placement.map != NULL ? qn_listen_pass(&s->listen) : QN_OK;
}

static int open_shared(struct qn_supervisor *s)
{
    const struct qn_transport *t = s->opts->transport(s->config.transport);
    const struct qn_device_opts device = qn_budget_device(&s->config);
    int err = qn_commons_create(&s->commons, qn_config_seats(&s->config),
                                qn_supervisor_channels(s, &s->config).device,
                                true, &s->commons_fd);
    if (err != QN_OK) {
        return err;
    }
    if (t->device != NULL) {
        t->device->format(qn_commons_device(s->commons), &device);
    }
    for (qn_node_t i = 0; i < qn_config_seats(&s->config); i++) {
        s->doorbell_fd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (s->doorbell_fd[i] < 0) {
            return QN_EMFILE;
        }
    }
    return QN_OK;
}

void qn_supervisor_close(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

int qn_supervisor_start(struct qn_supervisor *s)
{
    int err = open_signals(s); /* from here on an end is an orderly one */
    if (err == QN_OK) {
        err = qn_supervisor_adopt(s);
    }
    if (err == QN_OK && s->machine.adopted > 0) {
        return QN_OK; /* missing replicas are started in the first turn */
    }
    if (err == QN_OK) {
        err = plan_memory(s);
    }
    if (err == QN_OK) {
        err = qn_listen_open(&s->listen, s->why, sizeof s->why);
    }
    if (err == QN_OK) {
        s->config.port = s->listen.port;
        err = s->lock >= 0 ? QN_OK : qn_supervisor_lock(s, &s->config);
        err = err == QN_ENOENT ? QN_OK : err; /* no folder: said already */
    }
    if (err == QN_OK) {
        qn_resource_check_raise_files(&s->config);
        qn_protected_mode_log(&s->config);
        err = open_shared(s);
    }
    if (err == QN_OK) {
        err = qn_supervisor_pass(s);
    }
    if (err != QN_OK && s->why[0] == '\0') {
        snprintf(s->why, sizeof s->why,
                 "cannot make what %u replicas share: %s; use fewer --replicas",
                 s->config.replicas, qn_strerror(err));
    }
    if (err == QN_OK) {
        qn_supervisor_node_event(s, QN_ON_START, 0);
    }
    return err;
}

void qn_supervisor_end(struct qn_supervisor *s)
{
    qn_supervisor_adoption_end(s);
    for (qn_node_t i = 0; i < qn_config_seats(&s->config); i++) {
        qn_control_backlog_free(&s->child[i].backlog);
    }
    if (s->handed_over) { /* nothing is ours but memory */
        qn_commons_destroy(s->commons);
        return;
    }
    for (qn_node_t i = 0; i < qn_config_seats(&s->config); i++) {
        struct qn_child *c = &s->child[i];
        if (c->runs) {
            qn_supervisor_kill_and_wait(c);
        }
        qn_supervisor_close(c->control);
        qn_supervisor_close(c->pidfd);
        qn_supervisor_close(s->doorbell_fd[i]);
        qn_supervisor_close(s->record_fd[i]);
    }
    qn_outboxes_close(&s->outboxes);
    if (s->lock >= 0 && s->machine.incarnations > 0) {
        qn_adopt_forget(&s->config); /* else what is there is not ours */
    }
    qn_listen_close(&s->listen);
    qn_commons_destroy(s->commons);
    qn_supervisor_close(s->commons_fd);
    qn_supervisor_close(s->lock);
    qn_supervisor_close(s->lock_file);
    qn_supervisor_close(s->successor);
    qn_supervisor_close(s->signal_fd);
}
