/*
 * The mesh.
 *
 * All outboxes and eventfds are made before any node starts, so no node waits
 * for another one to appear. Bytes in a lane that its peer has not opened yet
 * are not accepted (incarnations).
 *
 * A child inherits the writable mappings of all outboxes and drops those of the
 * other nodes at once, so that it can damage only what a real replica could.
 */
#include "loadgen/bench/mesh.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "loadgen/bench/nodes.h"

/* Do nodes map the outboxes of their peers? */
static bool maps(const struct qn_mesh *m)
{
    return m->opts.processes ||
           (m->opts.read_only &&
            m->opts.transport->memory != QN_TRANSPORT_BOTH_WRITE);
}

static uint32_t lanes_of(const struct qn_mesh *m)
{
    return m->opts.lanes == 0 ? QN_LANES : m->opts.lanes;
}

static struct qn_outbox_opts box_opts(const struct qn_mesh *m, qn_node_t node)
{
    return (struct qn_outbox_opts){
        .node = node,
        .nodes = m->opts.nodes,
        .incarnation = qn_mesh_incarnation(node),
        .lanes = m->opts.lanes,
        .lane_bytes = m->opts.transport->lane_bytes(m->opts.cells),
        .numa_node = -1,
        .shared = maps(m),
    };
}

static struct qn_device_opts device_opts(const struct qn_mesh *m)
{
    return (struct qn_device_opts){.nodes = m->opts.nodes,
                                   .lanes = lanes_of(m),
                                   .strict = m->opts.strict,
                                   .seed = m->opts.seed};
}

static int create_device(struct qn_mesh *m)
{
    const struct qn_device_type *type = m->opts.transport->device;
    const struct qn_device_opts o = device_opts(m);
    size_t bytes = type == NULL ? 0 : type->bytes(&o);
    m->device = QN_AREA_NONE;
    if (type == NULL || bytes == 0) {
        return type == NULL ? QN_OK : QN_EINVAL;
    }
    int rc = qn_area_create(&m->device, "quoin-area", bytes, m->opts.processes);
    if (rc == QN_OK) {
        type->format(m->device.memory, &o);
    }
    return rc;
}

int qn_mesh_create(struct qn_mesh *m, const struct qn_mesh_opts *opts)
{
    if (opts->nodes < 2 || opts->nodes > QN_NODES_MAX ||
        (opts->processes &&
         opts->transport->memory == QN_TRANSPORT_BOTH_WRITE)) {
        return QN_EINVAL;
    }
    *m = (struct qn_mesh){.opts = *opts};
    int err = create_device(m);
    if (err != QN_OK) {
        return err;
    }
    for (qn_node_t i = 0; i < opts->nodes; i++) {
        m->doorbell_fd[i] = -1;
    }
    for (qn_node_t i = 0; i < opts->nodes; i++) {
        const struct qn_outbox_opts o = box_opts(m, i);
        int rc = qn_outbox_create(&m->box[i], &o);
        if (rc == QN_OK && opts->processes) {
            m->doorbell_fd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
            rc = m->doorbell_fd[i] < 0 ? QN_EMFILE : QN_OK;
        }
        if (rc != QN_OK) {
            qn_mesh_destroy(m);
            return rc;
        }
    }
    return QN_OK;
}

void qn_mesh_destroy(struct qn_mesh *m)
{
    for (qn_node_t i = 0; i < m->opts.nodes; i++) {
        qn_outbox_destroy(m->box[i]);
        m->box[i] = NULL;
        if (m->doorbell_fd[i] >= 0) {
            close(m->doorbell_fd[i]);
            m->doorbell_fd[i] = -1;
        }
    }
    qn_area_destroy(&m->device);
}

static int view_peer(struct qn_mesh *m, qn_node_t self, qn_node_t peer,
                     struct qn_outbox **out)
{
    if (peer == self || !maps(m)) {
        return qn_outbox_alias(out, m->box[peer]);
    }
    const struct qn_outbox_opts expect = box_opts(m, peer);
    return qn_outbox_map(out, qn_outbox_fd(m->box[peer]), &expect);
}

static int open_queuepairs(struct qn_mesh *m, struct qn_mesh_end *end,
                           qn_node_t peer)
{
    const struct qn_outbox_connect_opts o = {
        .transport = m->opts.transport,
        .own = end->view[end->self],
        .peer = end->view[peer],
        .lanes = end->lanes,
        .each = {.device = end->device,
                 .cells = m->opts.cells,
                 .self = end->self,
                 .peer = peer,
                 .doorbell = &end->doorbell,
                 .ringer = &end->ringer[peer]}};
    return qn_outbox_connect(end->qp[peer], &o);
}

static int attach(struct qn_mesh *m, struct qn_mesh_end *end)
{
    const struct qn_device_opts opts = device_opts(m);
    uint64_t incarnation[QN_NODES_MAX];
    for (qn_node_t i = 0; i < end->nodes; i++) {
        incarnation[i] = qn_mesh_incarnation(i);
    }
    const struct qn_device_attach_opts o = {.memory = m->device.memory,
                                            .opts = &opts,
                                            .self = end->self,
                                            .incarnation = incarnation,
                                            .doorbell = &end->doorbell,
                                            .ringer = end->ringer};
    return m->opts.transport->device->attach(&end->device, &o);
}

int qn_mesh_open(struct qn_mesh *m, qn_node_t self, struct qn_mesh_end *end)
{
    *end = (struct qn_mesh_end){
        .self = self, .nodes = m->opts.nodes, .lanes = lanes_of(m)};
    int rc = QN_OK;
    for (qn_node_t i = 0; i < end->nodes && rc == QN_OK; i++) {
        rc = view_peer(m, self, i, &end->view[i]);
    }
    if (rc == QN_OK) {
        qn_doorbell_init(&end->doorbell, qn_outbox_doorbell(end->view[self]),
                         m->doorbell_fd[self]);
    }
    for (qn_node_t i = 0; i < end->nodes && rc == QN_OK; i++) {
        /* A thread that rings writes the line; a process uses the eventfd. */
        struct qn_outbox *bell = m->opts.processes ? end->view[i] : m->box[i];
        qn_doorbell_handle_init(&end->ringer[i], qn_outbox_doorbell(bell),
                                m->doorbell_fd[i]);
    }
    if (rc == QN_OK && m->device.memory != NULL) {
        rc = attach(m, end);
    }
    for (qn_node_t i = 0; i < end->nodes && rc == QN_OK; i++) {
        rc = i == self ? QN_OK : open_queuepairs(m, end, i);
    }
    if (rc != QN_OK) {
        qn_mesh_close(end);
    }
    return rc;
}

void qn_mesh_close(struct qn_mesh_end *end)
{
    for (qn_node_t i = 0; i < end->nodes; i++) {
        for (uint32_t l = 0; l < end->lanes; l++) {
            qn_qp_close(end->qp[i][l]);
        }
    }
    qn_device_detach(end->device);
    for (qn_node_t i = 0; i < end->nodes; i++) {
        qn_outbox_destroy(end->view[i]);
    }
    *end = (struct qn_mesh_end){0};
}

void qn_mesh_down(struct qn_mesh_end *end, qn_node_t peer)
{
    for (uint32_t l = 0; l < end->lanes; l++) {
        qn_qp_down(end->qp[peer][l]);
    }
    if (end->device != NULL) {
        qn_device_down(end->device, peer);
    }
}

struct job {
    struct qn_mesh *mesh;
    qn_mesh_fn *fn;
    void *arg;
};

/* A child drops what is not its own. */
static int run_node(qn_node_t node, void *arg)
{
    const struct job *j = arg;
    struct qn_mesh *m = j->mesh;
    struct qn_mesh_end end;
    int rc = qn_mesh_open(m, node, &end);
    for (qn_node_t i = 0; m->opts.processes && i < m->opts.nodes; i++) {
        qn_outbox_destroy(m->box[i]);
    }
    if (rc == QN_OK) {
        rc = j->fn(&end, j->arg);
        qn_mesh_close(&end);
    }
    return rc;
}

uint32_t qn_mesh_run(struct qn_mesh *m, qn_mesh_fn *fn, void *arg)
{
    struct job job = {.mesh = m, .fn = fn, .arg = arg};
    const struct qn_nodes_opts o = {.nodes = m->opts.nodes,
                                    .processes = m->opts.processes,
                                    .survive = m->opts.survive,
                                    .core = m->opts.core};
    return qn_nodes_run(&o, run_node, &job);
}

bool qn_mesh_flush(struct qn_mesh_end *end)
{
    bool staged = false;
    for (qn_node_t i = 0; i < end->nodes; i++) {
        for (uint32_t l = 0; l < end->lanes; l++) {
            if (end->qp[i][l] != NULL && qn_qp_flush(end->qp[i][l])) {
                staged = true;
            }
        }
    }
    return staged;
}

int qn_mesh_wait(struct qn_mesh_end *end, enum qn_mesh_poll (*poll)(void *arg),
                 void *arg, qn_time_t deadline)
{
    int slept = QN_OK;
    enum qn_mesh_poll found = poll(arg);
    while (found != QN_MESH_DONE && slept == QN_OK) {
        if (found == QN_MESH_IDLE) {
            qn_doorbell_arm(&end->doorbell);
            (void)qn_mesh_flush(end);
            found = poll(arg);
            if (found == QN_MESH_IDLE) {
                slept = qn_doorbell_wait(&end->doorbell, deadline);
            }
            qn_doorbell_disarm(&end->doorbell);
        }
        if (found != QN_MESH_DONE) {
            found = poll(arg);
        }
    }
    (void)qn_mesh_flush(end);
    return found == QN_MESH_DONE ? QN_OK : QN_ETIMEDOUT;
}
