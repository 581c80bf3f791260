/*
 * The end of a replica's process.
 *
 * The kernel would take everything back anyway. It is given back by hand so
 * that a leak checker can tell what was lost while serving from what was merely
 * still there at the end. Reverse order of replica_main.c's making; libuv lets
 * go of a handle only in a turn of its loop, hence one more run, in which
 * nothing is left that could wait.
 */
#include "core/base/assert.h"
#include "kvs/server.h"

static void close_handle(uv_handle_t *h, void *arg)
{
    (void)arg;
    if (!uv_is_closing(h)) {
        uv_close(h, NULL);
    }
}

/* Connections first: theirs are the handles with something behind them. */
static void handles_close(struct qn_server *s)
{
    while (s->waiting != NULL) {
        s->waiting->waiting = false;
        s->waiting = s->waiting->wait_next;
    }
    qn_frontend_close_all(&s->frontend);
    uv_walk(&s->loop, close_handle, NULL);
    uv_run(&s->loop, UV_RUN_DEFAULT);
}

static void memory_free(struct qn_server *s)
{
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        qn_qp_close(s->tree[i]);
        qn_qp_close(s->direct[i]);
        qn_outbox_destroy(s->peer[i]);
    }
    qn_commons_destroy(s->commons);
    qn_outbox_destroy(s->outbox);
}

void qn_server_fini(struct qn_server *s)
{
    handles_close(s);
    qn_frontend_fini(&s->frontend);
    qn_ask_destroy(s->ask);
    qn_replica_destroy(s->replica);
    memory_free(s);
    int err = uv_loop_close(&s->loop);
    QN_ASSERT(err == 0);
}
