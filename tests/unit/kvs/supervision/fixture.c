#include "tests/unit/kvs/supervision/fixture.h"

#include <string.h>

#include "core/base/err.h"

struct qn_supervision_opts opts_of(uint32_t n)
{
    return (struct qn_supervision_opts){.replicas = n,
                                        .restart = true,
                                        .memory_acceptor = true,
                                        .shutdown_timeout_s = 10,
                                        .upgrade_timeout_s = 60};
}

void bench_init(struct bench *b, uint32_t n)
{
    const struct qn_supervision_opts o = opts_of(n);
    *b = (struct bench){.now = 1000 * QN_S, .facts.group_known = true};
    qn_supervision_init(&b->s, &o);
}

void step(struct bench *b, struct qn_supervision_event e)
{
    e.facts = b->facts;
    b->steps++;
    qn_supervision_step(&b->s, &e, b->now, &b->out);
}

void timer(struct bench *b)
{
    step(b, (struct qn_supervision_event){.kind = QN_ON_TIMER});
}

void later(struct bench *b, uint64_t ms)
{
    b->now += ms * QN_MS;
    timer(b);
}

void spawned(struct bench *b, qn_node_t i)
{
    const uint64_t incarnation = b->s.replica[i].ordered;
    step(b, (struct qn_supervision_event){
                .kind = QN_ON_SPAWNED,
                .node = i,
                .incarnation = incarnation,
                .pid = (pid_t)(100 + i + 10 * incarnation)});
}

void spawn_failed(struct bench *b, qn_node_t i, int err)
{
    step(b, (struct qn_supervision_event){
                .kind = QN_ON_SPAWN_FAILED, .node = i, .number = err});
}

void ended(struct bench *b, qn_node_t i, int status)
{
    step(b, (struct qn_supervision_event){
                .kind = QN_ON_EXIT, .node = i, .number = status});
}

void killed(struct bench *b, qn_node_t i)
{
    ended(b, i, KILLED);
}

void signalled(struct bench *b, int signum)
{
    step(b,
         (struct qn_supervision_event){.kind = QN_ON_SIGNAL, .number = signum});
}

void says(struct bench *b, qn_node_t from, struct qn_control_msg m)
{
    step(b, (struct qn_supervision_event){.kind = QN_ON_MESSAGE,
                                          .node = from,
                                          .message = &m,
                                          .with_outbox =
                                              m.kind == QN_CTL_HELLO ||
                                              m.kind == QN_CTL_PEER_UP});
}

void says_kind(struct bench *b, qn_node_t from, enum qn_control_kind kind)
{
    says(b, from, (struct qn_control_msg){.kind = kind});
}

void says_hello(struct bench *b, qn_node_t from)
{
    says(b, from,
         (struct qn_control_msg){
             .kind = QN_CTL_HELLO,
             .u.hello = {.node = from,
                         .incarnation = b->s.replica[from].incarnation}});
}

void comes(struct bench *b, qn_node_t i)
{
    spawned(b, i);
    says_hello(b, i);
    says_kind(b, i, QN_CTL_READY);
}

void bench_serve(struct bench *b, uint32_t n)
{
    bench_init(b, n);
    step(b, (struct qn_supervision_event){.kind = QN_ON_START});
    for (qn_node_t i = 0; i < n; i++) {
        spawned(b, i);
    }
    for (qn_node_t i = 0; i < n; i++) {
        says_hello(b, i);
    }
    for (qn_node_t i = 0; i < n; i++) {
        says_kind(b, i, QN_CTL_READY);
    }
    b->now += 60 * QN_S; /* each has lived for long */
}

void owned_by(struct bench *b, qn_node_t node, uint64_t incarnation)
{
    b->facts.owned = incarnation != 0;
    b->facts.owner = node;
    b->facts.owner_incarnation = incarnation;
}

uint32_t count(const struct bench *b, enum qn_supervision_do kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->out.count; i++) {
        n += b->out.action[i].kind == kind;
    }
    return n;
}

const struct qn_supervision_action *find(const struct bench *b,
                                         enum qn_supervision_do kind,
                                         qn_node_t node)
{
    for (uint32_t i = 0; i < b->out.count; i++) {
        const struct qn_supervision_action *a = &b->out.action[i];
        if (a->kind == kind && a->node == node) {
            return a;
        }
    }
    return NULL;
}

static bool is_message(const struct qn_supervision_action *a, qn_node_t to,
                       enum qn_control_kind kind)
{
    return a->kind == QN_DO_SEND && a->node == to && a->message.kind == kind;
}

uint32_t told(const struct bench *b, qn_node_t to, enum qn_control_kind kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->out.count; i++) {
        n += is_message(&b->out.action[i], to, kind);
    }
    return n;
}

const struct qn_control_msg *message(const struct bench *b, qn_node_t to,
                                     enum qn_control_kind kind)
{
    for (uint32_t i = 0; i < b->out.count; i++) {
        if (is_message(&b->out.action[i], to, kind)) {
            return &b->out.action[i].message;
        }
    }
    return NULL;
}

bool logged(const struct bench *b, const char *text)
{
    for (uint32_t i = 0; i < b->out.texts; i++) {
        if (strstr(b->out.text[i], text) != NULL) {
            return true;
        }
    }
    return false;
}

int64_t restart_in_ms(const struct bench *b, qn_node_t i)
{
    const qn_time_t at = b->s.replica[i].restart_at;
    return at == QN_TIME_NEVER ? -1 : (int64_t)((at - b->now) / QN_MS);
}
