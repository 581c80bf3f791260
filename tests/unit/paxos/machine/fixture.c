#include "tests/unit/paxos/machine/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

int64_t fx_refbufs;

struct qn_params fx_params(void)
{
    struct qn_params v = qn_params_default(true);
    v.ring = 64;
    v.window = 4;
    v.batch_commands = 4;
    v.queue = 12;
    return v;
}

static void *fx_resize(void *ctx, void *p, size_t bytes)
{
    struct fx *f = ctx;
    if (bytes == 0) {
        fx_refbufs -= p != NULL;
        free(p);
        return NULL;
    }
    if (f->memory_left-- <= 0) {
        return NULL;
    }
    fx_refbufs += p == NULL;
    return realloc(p, bytes);
}

static void make_of(struct fx *f, qn_node_t self, uint32_t nodes,
                    uint64_t voters, const struct qn_params *v,
                    struct qn_memory_acceptor *s, const struct qn_uploads *u,
                    const struct qn_resume *resume)
{
    uint64_t inc[QN_NODES_MAX];
    for (uint32_t i = 0; i < QN_NODES_MAX; i++) {
        bool vacant = voters != 0 && (voters >> i & 1) == 0;
        inc[i] = vacant ? 0 : 10 + i;
    }
    memset(f, 0, sizeof *f);
    f->alloc = (struct qn_alloc){fx_resize, f};
    f->memory_left = INT64_MAX;
    f->now = QN_S;
    f->wall_ms = 1000;
    struct qn_onepaxos_opts o = {.self = self,
                                 .nodes = nodes,
                                 .incarnation = inc,
                                 .voters = voters,
                                 .parent = nodes > 1 ? 1 : 0,
                                 .alloc = &f->alloc,
                                 .params = *v,
                                 .memory = s,
                                 .uploads = u,
                                 .resume = resume};
    size_t size = qn_onepaxos_size(&o);
    cr_assert_neq(size, 0u);
    f->p = qn_onepaxos_init(calloc(1, size), &o);
}

static void make(struct fx *f, qn_node_t self, uint32_t nodes,
                 const struct qn_params *v, struct qn_memory_acceptor *s,
                 const struct qn_uploads *u)
{
    make_of(f, self, nodes, 0, v, s, u, NULL);
}

void fx_make_seats(struct fx *f, qn_node_t self, uint32_t nodes,
                   uint64_t voters, const struct qn_params *v,
                   struct qn_memory_acceptor *s)
{
    make_of(f, self, nodes, voters, v, s, NULL, NULL);
}

void fx_make_resumed(struct fx *f, qn_node_t self, uint32_t nodes,
                     uint64_t voters, const struct qn_params *v,
                     struct qn_memory_acceptor *s, const struct qn_resume *r)
{
    make_of(f, self, nodes, voters, v, s, NULL, r);
}

void fx_make(struct fx *f, qn_node_t self, uint32_t nodes,
             const struct qn_params *v)
{
    make(f, self, nodes, v, NULL, NULL);
}

void fx_make_shared(struct fx *f, qn_node_t self, uint32_t nodes,
                    const struct qn_params *v, struct qn_memory_acceptor *s)
{
    make(f, self, nodes, v, s, NULL);
}

void fx_make_uploads(struct fx *f, qn_node_t self, uint32_t nodes,
                     const struct qn_params *v, const struct qn_uploads *u)
{
    make(f, self, nodes, v, NULL, u);
}

void fx_end(struct fx *f)
{
    qn_step_out_release(&f->out);
    qn_onepaxos_fini(f->p);
    free(f->p);
}

static void record(struct fx *f, const struct qn_apply *a)
{
    struct qn_slice list = a->run.commands, c;
    for (uint64_t seq = a->run.first; qn_commands_next(&list, &c); seq++) {
        struct fx_applied *to = &f->applied[f->applied_count++ % 512];
        *to = (struct fx_applied){.slot = a->slot,
                                  .stamp_ms = a->stamp_ms,
                                  .origin = a->run.origin,
                                  .seq = seq,
                                  .mine = a->mine};
        memcpy(to->text, c.data, c.len < 23 ? c.len : 23);
    }
    f->slots += a->last;
}

static int step(struct fx *f, const struct qn_input *in)
{
    qn_step_out_release(&f->out);
    int err = qn_onepaxos_step(f->p, in, f->now, f->wall_ms, &f->out);
    for (uint32_t i = 0; i < f->out.count; i++) {
        if (f->out.out[i].kind == QN_OUT_APPLY) {
            record(f, &f->out.out[i].apply);
        }
    }
    return err;
}

int fx_submit(struct fx *f, const char *text)
{
    struct qn_slice part = {(const uint8_t *)text, strlen(text)};
    return step(f,
                &(struct qn_input){.kind = QN_IN_SUBMIT, .submit = {&part, 1}});
}

int fx_recv(struct fx *f, qn_node_t from, const struct qn_msg *m)
{
    return step(f, &(struct qn_input){.kind = QN_IN_RECV, .recv = {from, m}});
}

void fx_fragment(struct fx *f, qn_node_t from, uint8_t kind, qn_slot_t slot)
{
    step(f, &(struct qn_input){.kind = QN_IN_FRAGMENT,
                               .fragment = {from, kind, slot}});
}

void fx_beat(struct fx *f, qn_node_t peer, qn_slot_t applied, qn_slot_t learned)
{
    step(f,
         &(struct qn_input){
             .kind = QN_IN_BEAT,
             .beat = {.peer = peer, .applied = applied, .learned = learned}});
}

void fx_room(struct fx *f, uint64_t peers)
{
    step(f, &(struct qn_input){.kind = QN_IN_ROOM, .room = {peers}});
}

void fx_down(struct fx *f, qn_node_t peer)
{
    step(f, &(struct qn_input){.kind = QN_IN_DOWN, .down = {peer}});
}

void fx_up(struct fx *f, qn_node_t peer, uint64_t inc)
{
    step(f, &(struct qn_input){.kind = QN_IN_UP, .up = {peer, inc}});
}

int fx_seat_of(struct fx *f, struct qn_voter_change s)
{
    return step(f, &(struct qn_input){.kind = QN_IN_SEAT, .seat = s});
}

int fx_seat(struct fx *f, qn_node_t node, bool votes, bool forced)
{
    return fx_seat_of(f, (struct qn_voter_change){
                             .node = node, .votes = votes, .forced = forced});
}

void fx_suspect(struct fx *f, uint64_t peers)
{
    step(f, &(struct qn_input){.kind = QN_IN_SUSPECT, .suspect = {peers}});
}

void fx_stamp(struct fx *f)
{
    step(f, &(struct qn_input){.kind = QN_IN_STAMP});
}

void fx_go(struct fx *f)
{
    step(f, &(struct qn_input){.kind = QN_IN_GO});
}

void fx_read(struct fx *f, bool fresh)
{
    step(f, &(struct qn_input){.kind = QN_IN_READ, .read = {fresh}});
}

void fx_tick(struct fx *f)
{
    step(f, &(struct qn_input){.kind = QN_IN_TICK});
}

void fx_later(struct fx *f, qn_time_t ns)
{
    f->now += ns;
    fx_tick(f);
}

static const struct qn_out *find(const struct fx *f, uint8_t kind, uint32_t k)
{
    for (uint32_t i = 0; i < f->out.count; i++) {
        const struct qn_out *o = &f->out.out[i];
        bool msg = o->kind == QN_OUT_SEND || o->kind == QN_OUT_SEND_ALL ||
                   o->kind == QN_OUT_BCAST;
        if (msg && o->msg.kind == kind && k-- == 0) {
            return o;
        }
    }
    return NULL;
}

const struct qn_msg *fx_sent(const struct fx *f, uint8_t kind, uint32_t k)
{
    const struct qn_out *o = find(f, kind, k);
    return o != NULL ? &o->msg : NULL;
}

qn_node_t fx_to(const struct fx *f, uint8_t kind, uint32_t k)
{
    const struct qn_out *o = find(f, kind, k);
    cr_assert(o != NULL);
    return o->kind == QN_OUT_BCAST ? QN_NODES_MAX : o->to;
}

uint32_t fx_count(const struct fx *f, uint8_t kind)
{
    uint32_t n = 0;
    while (find(f, kind, n) != NULL) {
        n++;
    }
    return n;
}

struct qn_onepaxos_status fx_status(const struct fx *f)
{
    struct qn_onepaxos_status st;
    qn_onepaxos_status(f->p, &st);
    return st;
}

static struct qn_refbuf *commands(const char *const *text, uint32_t n)
{
    struct qn_refbuf *b = qn_refbuf_create(&qn_alloc_malloc, 0);
    for (uint32_t i = 0; i < n; i++) {
        struct qn_slice part = {(const uint8_t *)text[i], strlen(text[i])};
        cr_assert_eq(qn_commands_add(&b, &part, 1), QN_OK);
    }
    return b;
}

struct qn_refbuf *fx_batch(qn_node_t origin, uint64_t first,
                           const char *const *text, uint32_t n)
{
    struct qn_refbuf *c = commands(text, n);
    struct qn_refbuf *b = qn_batch_create(&qn_alloc_malloc, 0);
    struct qn_command_run g = {
        origin, 10 + origin, first, n, {c->bytes, c->len}};
    if (n != 0) {
        cr_assert_eq(qn_batch_add(&b, &g), QN_OK);
    }
    qn_batch_set_stamp(b, 1000);
    qn_refbuf_unref(c);
    return b;
}

struct qn_msg fx_accept(qn_slot_t slot, const struct qn_refbuf *batch)
{
    return (struct qn_msg){.kind = QN_MSG_ACCEPT,
                           .slot = slot,
                           .total = batch->len,
                           .body = {batch->bytes, batch->len}};
}

struct qn_msg fx_learn(qn_slot_t slot, const struct qn_refbuf *batch,
                       qn_slot_t hi)
{
    struct qn_msg m = fx_accept(slot, batch);
    m.kind = QN_MSG_LEARN;
    m.learn.hi = hi;
    return m;
}

struct qn_msg fx_request(uint64_t first, const char *const *text, uint32_t n,
                         struct qn_refbuf **owner)
{
    *owner = commands(text, n);
    return (struct qn_msg){.kind = QN_MSG_REQUEST,
                           .slot = first,
                           .total = (*owner)->len,
                           .body = {(*owner)->bytes, (*owner)->len}};
}

struct qn_refbuf *fx_slot_batch(qn_slot_t s)
{
    return fx_batch(0, s, (const char *const[]){"x"}, 1);
}

void fx_learn_slot(struct fx *f, qn_slot_t s, qn_slot_t hi)
{
    struct qn_refbuf *x = fx_slot_batch(s);
    struct qn_msg m = fx_learn(s, x, hi);
    fx_recv(f, 1, &m);
    qn_refbuf_unref(x);
}

void fx_fill_slot(struct fx *f, qn_node_t from, qn_slot_t s, qn_slot_t hi,
                  bool last)
{
    struct qn_refbuf *x = fx_slot_batch(s);
    struct qn_msg m = fx_accept(s, x);
    m.kind = QN_MSG_FILL;
    m.flags = last ? QN_MSG_LAST : 0;
    m.fill.log_lo = 1;
    m.fill.hi = hi;
    fx_recv(f, from, &m);
    qn_refbuf_unref(x);
}
