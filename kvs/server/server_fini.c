/*
 * The end of a replica's process.
 *
 * The kernel would take everything back anyway. It is given back here so that a
 * leak checker can tell memory that was lost while serving from memory that was
 * in use at the end. The order is the reverse of making (replica_main.c). libuv
 * releases a handle only in a turn of its loop, hence one more run, in which
 * nothing is left that could wait.
 */
#include "core/base/assert.h"
#include "kvs/server/server.h"

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
    qn_wait_queue_clear(&s->waits); /* they are embedded in connections */
    qn_frontend_close_all(&s->frontend);
    uv_walk(&s->uv.loop, close_handle, NULL);
    uv_run(&s->uv.loop, UV_RUN_DEFAULT);
}

void qn_server_fini(struct qn_server *s)
{
    handles_close(s);
    qn_frontend_fini(&s->frontend);
    qn_fanout_destroy(s->ask);
    qn_member_stop(s->member);
    qn_snapshot_content_destroy(s->content);
    qn_replica_destroy(s->replica);
    if (s->member != NULL &&
        (s->drain.shutdown_requested || s->members.removed)) {
        qn_member_leave(s->member);
    }
    qn_member_destroy(s->member);
    qn_server_events_fini(&s->events);
    qn_buf_free(&s->seats_text);
    qn_server_adopt_fini(s);
    int err = uv_loop_close(&s->uv.loop);
    QN_ASSERT(err == 0);
}
