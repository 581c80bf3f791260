#include "kvs/frontend/admit.h"

#include "kvs/frontend/frontend.h"
#include "kvs/listen/protected_mode.h"

static const char full[] = "ERR max number of clients reached";

static const char denied[] =
    "DENIED quoind is in protected mode: it has no password, so it serves only "
    "clients on its own machine, at a loopback address or a Unix socket. If "
    "you trust every host that can reach its address, say CONFIG SET "
    "protected-mode no from there, or start it with --protected-mode no; "
    "otherwise start it with --bind 127.0.0.1.";

static bool is_remote(const struct qn_conn *c)
{
    struct sockaddr_storage sa = {0};
    int len = sizeof sa;
    return uv_tcp_getpeername(&c->uv.tcp, (struct sockaddr *)&sa, &len) != 0 ||
           !qn_protected_mode_is_local((const struct sockaddr *)&sa);
}

static void publish(const struct qn_frontend *fe)
{
    fe->o.ops.publish_clients(fe->o.ctx, fe->admitted);
}

const char *qn_admit(struct qn_conn *c, bool is_unix)
{
    struct qn_frontend *fe = c->fe;
    const struct qn_config *config = qn_replica_config(fe->o.replica);
    if (config->protected_mode && !is_unix && is_remote(c)) {
        return denied;
    }
    uint64_t most = config->maxclients;
    if (fe->admitted + fe->o.ops.clients_elsewhere(fe->o.ctx, most) >= most) {
        return full;
    }
    c->admitted = true;
    fe->admitted++;
    publish(fe);
    return NULL;
}

void qn_admit_gone(struct qn_conn *c)
{
    if (c->admitted) {
        c->admitted = false;
        c->fe->admitted--;
        publish(c->fe);
    }
}
