#include "tests/unit/kvs/session/session_world.h"

#include <stdio.h>
#include <stdlib.h>

#include "kvs/resp/reply.h"
#include "tests/support/test.h"

enum { PENDING_MAX = 4096 };

/* A submission, with arguments of its own. */
struct submitted {
    struct qn_cmd_call call;
    struct qn_slice *args;
};

struct world world;
static struct submitted pending[PENDING_MAX];
static uint32_t pending_head, pending_tail;
static qn_slot_t slot;
static struct qn_buf write_reply;

/* ---- the replica --------------------------------------------------------- */

static void submit(const struct qn_cmd_call *call)
{
    size_t bytes = call->argc * sizeof(struct qn_slice);
    for (uint32_t i = 0; i < call->argc; i++) {
        bytes += call->argv[i].len;
    }
    struct qn_slice *args = malloc(bytes);
    cr_assert(args != NULL && pending_tail - pending_head < PENDING_MAX);
    uint8_t *to = (uint8_t *)(args + call->argc);
    for (uint32_t i = 0; i < call->argc; i++) {
        if (call->argv[i].len > 0) {
            memcpy(to, call->argv[i].data, call->argv[i].len);
        }
        args[i] = (struct qn_slice){to, call->argv[i].len};
        to += call->argv[i].len;
    }
    struct submitted *p = &pending[pending_tail++ % PENDING_MAX];
    *p = (struct submitted){.call = *call, .args = args};
    p->call.argv = args;
    world.replica.room--;
    world.replica.submissions++;
}

static enum qn_submit submit_write(void *ctx, const struct qn_cmd_call *call)
{
    struct fake_replica *r = &((struct world *)ctx)->replica;
    if (r->unavailable) {
        return QN_SUBMIT_UNAVAILABLE;
    }
    if (r->room == 0) {
        return QN_SUBMIT_NO_ROOM;
    }
    if (r->no_memory) {
        return QN_SUBMIT_NO_MEMORY;
    }
    submit(call);
    return QN_SUBMIT_TAKEN;
}

static enum qn_submit submit_read(void *ctx, const struct qn_cmd_call *call,
                                  qn_slot_t index)
{
    struct fake_replica *r = &((struct world *)ctx)->replica;
    if (r->unavailable || r->room == 0) {
        return QN_SUBMIT_NO_ROOM;
    }
    if (r->no_memory) {
        return QN_SUBMIT_NO_MEMORY;
    }
    r->last_index = index;
    submit(call);
    return QN_SUBMIT_TAKEN;
}

static void prefetch(void *ctx, const struct qn_session_key *keys, uint32_t n)
{
    struct fake_replica *r = &((struct world *)ctx)->replica;
    size_t len = 0;
    cr_assert(n > 1 && n <= QN_SESSION_AHEAD);
    for (uint32_t i = 0; i < n && len < sizeof r->ahead - 1; i++) {
        size_t more = QN_MIN(keys[i].key.len, sizeof r->ahead - 1 - len);
        memcpy(r->ahead + len, keys[i].key.data, more);
        len += more;
    }
    r->ahead[len] = '\0';
    r->ahead_reads = r->reads;
    r->aheads++;
}

static void run_read(void *ctx, struct qn_cmd_call *call)
{
    struct world *w = ctx;
    w->replica.reads++;
    (void)qn_cmd_run(w->store, call);
}

static bool can_submit(void *ctx)
{
    const struct fake_replica *r = &((struct world *)ctx)->replica;
    return r->room > 0 || r->unavailable;
}

static const char *unavailable_reason(void *ctx)
{
    (void)ctx;
    return "CLUSTERDOWN no quorum";
}

static void wait_index(void *ctx, qn_slot_t index)
{
    struct fake_replica *r = &((struct world *)ctx)->replica;
    r->index_wanted = index;
    r->index_waits++;
}

static uint32_t tick(void *ctx)
{
    struct fake_replica *r = &((struct world *)ctx)->replica;
    r->ticks_asked++;
    return r->tick;
}

static bool timed_out(void *ctx, uint32_t since)
{
    const struct fake_replica *r = &((struct world *)ctx)->replica;
    return r->tick - since > r->tick_limit;
}

void world_apply(unsigned n)
{
    for (; n > 0; n--) {
        cr_assert(pending_head != pending_tail, "nothing is pending");
        struct submitted *p = &pending[pending_head++ % PENDING_MAX];
        world.replica.room++;
        if (p->call.cmd->where == QN_CMD_READ) {
            (void)qn_turn_run_deferred(&world.turn, world.store, &p->call);
        } else {
            write_reply.len = 0;
            p->call.reply = &write_reply;
            p->call.slot = ++slot;
            cr_assert(qn_cmd_run(world.store, &p->call) == QN_OK);
            world.replica.applied = QN_MAX(world.replica.applied, slot);
            (void)qn_turn_complete(
                &world.turn,
                (struct qn_slice){write_reply.data, write_reply.len}, slot);
        }
        free(p->args);
    }
}

void world_give_up(void)
{
    static const char error[] = "-ERR given up\r\n";
    cr_assert(pending_head != pending_tail);
    free(pending[pending_head++ % PENDING_MAX].args);
    (void)qn_turn_complete(
        &world.turn,
        (struct qn_slice){(const uint8_t *)error, sizeof error - 1}, ++slot);
}

void world_complete_without_memory(void)
{
    cr_assert(pending_head != pending_tail);
    free(pending[pending_head++ % PENDING_MAX].args);
    (void)qn_turn_complete(&world.turn, (struct qn_slice){0}, ++slot);
}

/* ---- local commands ------------------------------------------------------ */

static bool is_word(struct qn_slice a, const char *word)
{
    return a.len == strlen(word) && memcmp(a.data, word, a.len) == 0;
}

static bool is_local_write(void *ctx, const struct qn_cmd_call *call)
{
    (void)ctx;
    cr_assert(call->cmd->where == QN_CMD_WRITE && call->cmd->key_first == 0);
    return call->argc > 2 && is_word(call->argv[2], "lag-timeout");
}

static void client_reply(struct qn_client_session *s, struct qn_slice mode)
{
    if (is_word(mode, "ON")) {
        qn_reply_mode_on(&s->mode);
        qn_reply_ok(&s->out);
    } else if (is_word(mode, "OFF")) {
        qn_reply_mode_off(&s->mode);
    } else {
        qn_reply_mode_skip(&s->mode);
    }
}

static void info(struct qn_client_session *s, struct qn_cmd_call *call)
{
    qn_session_block_remote(s);
    if (world.replica.kills != NULL) {
        qn_session_close(&world.replica.kills->session);
    } else if (world.replica.late_fails) {
        qn_session_unblock_remote(s);
        qn_reply_error(call->reply, "ERR cannot ask");
    } else if (world.replica.late_now) {
        s->last_cmd = call->cmd;
        qn_reply_error(qn_session_late_reply(&world.turn.env, s), "ERR now");
        qn_session_late_reply_done(&world.turn.env, s);
        qn_turn_late_reply_done(&world.turn, s);
    }
}

static void run_local(void *ctx, struct qn_client_session *s,
                      struct qn_cmd_call *call)
{
    const char *name = call->cmd->name;
    (void)ctx;
    cr_assert(s->pending == 0, "%s runs before an earlier write", name);
    if (strcmp(name, "ping") == 0) {
        qn_reply_status(call->reply, "PONG");
    } else if (strcmp(name, "quit") == 0) {
        qn_reply_ok(call->reply);
        qn_session_close_after_replies(s);
    } else if (strcmp(name, "reset") == 0) {
        qn_reply_mode_reset(&s->mode);
        qn_reply_status(call->reply, "RESET");
    } else if (strcmp(name, "client|reply") == 0) {
        client_reply(s, call->argv[2]);
    } else if (strcmp(name, "config|set") == 0) {
        qn_reply_status(call->reply, "BESIDE");
    } else if (strcmp(name, "info") == 0) {
        info(s, call);
    } else {
        qn_reply_error(call->reply, "ERR no such command here");
    }
}

void world_answer(struct client *c, const char *text)
{
    qn_reply_status(qn_session_late_reply(&world.turn.env, &c->session), text);
    qn_session_late_reply_done(&world.turn.env, &c->session);
    qn_turn_late_reply_done(&world.turn, &c->session);
}

/* ---- clients ------------------------------------------------------------- */

void client_send_bytes(struct client *c, const void *bytes, size_t n)
{
    qn_buf_append(&c->socket, bytes, n);
}

void client_send(struct client *c, const char *text)
{
    client_send_bytes(c, text, strlen(text));
}

void client_call(struct client *c, const char *words, unsigned n)
{
    char args[4096];
    char request[4200];
    int len = 0;
    unsigned argc = 0;
    for (const char *at = words; *at != '\0'; argc++) {
        size_t word = strcspn(at, " ");
        len += snprintf(args + len, sizeof args - (size_t)len,
                        "$%zu\r\n%.*s\r\n", word, (int)word, at);
        at += word + (at[word] == ' ');
    }
    snprintf(request, sizeof request, "*%u\r\n%s", argc, args);
    for (; n > 0; n--) {
        client_send(c, request);
    }
}

void client_eof(struct client *c)
{
    c->sent_eof = true;
}

size_t client_unread(const struct client *c)
{
    return c->socket.len - c->socket_at;
}

void client_reads(struct client *c, size_t n)
{
    n = QN_MIN(n, c->sending.len);
    qn_buf_append(&c->received, c->sending.data, n);
    memmove(c->sending.data, c->sending.data + n, c->sending.len - n);
    c->sending.len -= n;
    if (c->sending.len == 0 && !qn_session_is_closed(&c->session)) {
        qn_session_set_sending(&world.turn.env, &c->session, 0);
        qn_turn_flush_later(&world.turn, &c->session);
        qn_turn_sent(&world.turn, &c->session);
    }
}

/* ---- the front end ------------------------------------------------------- */

static void input_free(struct client *c)
{
    if (c->input != NULL) {
        memset(c->input, 0xee, c->input_len);
        free(c->input);
        c->input = NULL;
    }
}

static void conn_close(struct client *c)
{
    qn_session_close(&c->session);
    input_free(c);
}

/* One read of the socket, into the reader's room or memory of this turn. */
static void socket_read(struct client *c)
{
    struct qn_resp_reader *in = &c->session.in;
    size_t n = QN_MIN(c->chunk, client_unread(c));
    uint8_t *to = NULL;
    if (qn_resp_holds(in)) {
        size_t room = 0;
        to = qn_resp_room(in, &room);
        if (to == NULL) {
            c->error = QN_ENOMEM;
            conn_close(c);
            return;
        }
        n = QN_MIN(n, room);
    } else {
        cr_assert(c->input == NULL);
        to = c->input = malloc(n);
        c->input_len = n;
    }
    memcpy(to, c->socket.data + c->socket_at, n);
    c->socket_at += n;
    qn_turn_count_read(&world.turn, n);
    qn_session_feed(&c->session, to, n);
    qn_turn_run_later(&world.turn, &c->session);
}

static void sockets_read(void)
{
    for (int i = 0; i < WORLD_CLIENTS; i++) {
        struct client *c = &world.client[i];
        if (!qn_session_wants_input(&c->session) ||
            !qn_turn_may_read(&world.turn)) {
            continue;
        }
        if (client_unread(c) > 0 && qn_resp_wants(&c->session.in)) {
            socket_read(c);
        } else if (client_unread(c) == 0 && c->sent_eof) {
            qn_session_eof(&c->session);
            qn_turn_run_later(&world.turn, &c->session);
        }
    }
}

static struct client *client_of(struct qn_client_session *s)
{
    return QN_CONTAINER_OF(s, struct client, session);
}

static void conn_run(struct client *c)
{
    c->runs++;
    int err = qn_session_run(&world.turn.env, &c->session);
    if (qn_session_is_closed(&c->session)) {
        return;
    }
    if (err == QN_OK) {
        err = qn_session_save_partial_input(&world.turn.env, &c->session);
        input_free(c);
    }
    if (err != QN_OK) {
        c->error = err;
        conn_close(c);
        return;
    }
    qn_turn_ran(&world.turn, &c->session);
}

static void conn_write(struct client *c)
{
    struct qn_buf *out = &c->session.out;
    size_t n = QN_MIN(c->accepts, out->len);
    qn_buf_append(&c->received, out->data, n);
    if (n < out->len) {
        qn_buf_append(&c->sending, out->data + n, out->len - n);
    }
    out->len = 0;
    qn_session_set_sending(&world.turn.env, &c->session, c->sending.len);
    if (c->sending.len == 0) {
        qn_turn_sent(&world.turn, &c->session);
    }
}

static void conn_flush(struct client *c)
{
    struct qn_client_session *s = &c->session;
    if (s->out.oom) {
        c->dropped = true;
        conn_close(c);
        return;
    }
    if (s->out.len > 0 && c->sending.len == 0) {
        conn_write(c);
    }
    if (qn_session_is_finished(s)) {
        conn_close(c);
    }
}

void world_turn(void)
{
    struct qn_turn *t = &world.turn;
    struct qn_client_session *s = NULL;
    sockets_read();
    t->again = false;
    qn_turn_begin_inputs(t, world.replica.read_index, world.replica.applied,
                         world.replica.has_store);
    while ((s = qn_turn_next_input(t)) != NULL) {
        if (!qn_session_is_closed(s)) {
            conn_run(client_of(s));
        }
    }
    qn_turn_begin_outputs(t);
    while ((s = qn_turn_next_output(t)) != NULL) {
        if (!qn_session_is_closed(s)) {
            conn_flush(client_of(s));
        }
    }
    qn_turn_end(t, world.replica.applied);
}

static bool is_readable(const struct client *c)
{
    return qn_session_wants_input(&c->session) &&
           (client_unread(c) > 0 || c->sent_eof);
}

void world_settle(void)
{
    bool again = true;
    for (int turns = 0; again; turns++) {
        cr_assert(turns < 100000, "the turns do not end");
        world_turn();
        again = world.turn.again;
        for (int i = 0; i < WORLD_CLIENTS; i++) {
            again = again || is_readable(&world.client[i]);
        }
    }
}

static const struct qn_session_ops ops = {
    .is_local_write = is_local_write,
    .run_local = run_local,
    .prefetch = prefetch,
    .run_read = run_read,
    .submit_write = submit_write,
    .submit_read = submit_read,
    .can_submit = can_submit,
    .unavailable_reason = unavailable_reason,
    .wait_index = wait_index,
    .tick = tick,
    .timed_out = timed_out,
};

void world_setup(void)
{
    const struct qn_store_opts o = {.seed = 7, .dbs = 1};
    world = (struct world){
        .limits = {.bulk_max = 1 << 20,
                   .args_max = 1024,
                   .buffer_max = 1 << 24},
        .replica = {.room = UINT32_MAX, .tick_limit = 3, .has_store = true},
    };
    pending_head = pending_tail = 0;
    slot = 0;
    cr_assert(qn_store_create(&world.store, &o) == QN_OK);
    cr_assert(qn_turn_init(&world.turn, &ops, &world, &world.part) == QN_OK);
    world.turn.env.output_pause = 4096;
    world.turn.env.output_limit = 1 << 20;
    world.turn.env.value_max = world.limits.bulk_max;
    world.turn.env.key_max = 65536;
    for (int i = 0; i < WORLD_CLIENTS; i++) {
        struct client *c = &world.client[i];
        qn_session_init(&c->session, &world.limits);
        qn_session_set_sending(&world.turn.env, &c->session, 0);
        c->chunk = c->accepts = SIZE_MAX;
    }
}

void world_teardown(void)
{
    for (int i = 0; i < WORLD_CLIENTS; i++) {
        struct client *c = &world.client[i];
        if (!qn_session_is_closed(&c->session)) {
            conn_close(c);
        }
        input_free(c);
    }
    while (qn_turn_release(&world.turn) != NULL) {
    }
    for (; pending_head != pending_tail; pending_head++) {
        free(pending[pending_head % PENDING_MAX].args);
    }
    for (int i = 0; i < WORLD_CLIENTS; i++) {
        struct client *c = &world.client[i];
        cr_expect(!qn_session_is_referenced(&c->session));
        qn_session_fini(&c->session);
        qn_buf_free(&c->socket);
        qn_buf_free(&c->received);
        qn_buf_free(&c->sending);
    }
    qn_turn_fini(&world.turn);
    qn_store_destroy(world.store);
    qn_buf_free(&write_reply);
}
