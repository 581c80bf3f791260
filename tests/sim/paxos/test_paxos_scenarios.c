/*
 * Scenarios: text files that are run and must come out as they are.
 *
 * A line that begins with "> " is a command; what it makes the nodes put out
 * follows, indented; other lines at the margin are comment. The transcript is
 * the whole file. QN_REWRITE=1 writes the files anew: commit a changed line
 * only if you can explain it.
 *
 *     nodes N [window W] [batch B]  begin; tiny bounds, ring 64
 *     memory N                      begin, with the memory acceptor
 *     submit NODE TEXT              TEXT does not begin with a digit
 *     stamp NODE                    wants time to pass in the log
 *     tick [TIME]                   clock goes on (50us, 5ms); TICK everywhere
 *     tick NODE                     TICK at one node
 *     deliver A->B, A=>B            oldest message of the direct lane, of the
 *                                   tree
 *     drop A->B, A=>B               it is lost (direct: never in reality)
 *     settle                        deliver and tick until nothing moves
 *     beat NODE PEER                NODE reads PEER's position
 *     room NODE                     transfers of NODE go on by one slot
 *     down NODE PEER                NODE is told that PEER has ended
 *     kill NODE                     its incarnation ends; what it sent arrives
 *     restart NODE DONOR            its next one, from a snapshot of DONOR
 *     suspect NODE PEER             NODE suspects PEER (-: no node)
 *     status NODE
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/paxos/cluster.h"
#include "tests/support/replay.h"
#include "tests/support/test.h"

#define TEXT_MAX 65536u

struct scenario {
    struct cluster c;
    bool started;
    char text[TEXT_MAX]; /* the transcript so far */
    size_t len;
};

static struct scenario *s;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(s->text + s->len, TEXT_MAX - s->len, fmt, args);
    va_end(args);
    cr_assert(n >= 0 && s->len + (size_t)n < TEXT_MAX);
    s->len += (size_t)n;
}

/* -------------------------------------------------------------- output -- */

static void say_commands(uint64_t first, struct qn_slice list, qn_node_t origin)
{
    struct qn_slice one;
    for (uint64_t seq = first; qn_commands_next(&list, &one); seq++) {
        say(" %u#%" PRIu64 " '%.*s'", origin, seq, (int)one.len,
            (const char *)one.data);
    }
}

static void say_batch(struct qn_slice batch)
{
    struct qn_command_run g;
    for (uint32_t at = 0; qn_batch_next(batch, &at, &g);) {
        say_commands(g.first, g.commands, g.origin);
    }
}

static void say_entries(struct qn_slice body)
{
    static const char *const kinds[] = {"INIT", "LEADER", "ACCEPTOR", "VOTER"};
    struct qn_ul_entry e;
    for (uint32_t i = 0; qn_ul_decode(&e, body, i) == QN_OK; i++) {
        say(" [%u %s, %u leads, %u accepts]", e.index, kinds[e.kind], e.leader,
            e.acceptor);
    }
}

/* A part of a long answer. */
static void say_part(const struct qn_msg *m)
{
    uint64_t hi = m->kind == QN_MSG_PREPARED ? m->prepared.hi
                  : m->kind == QN_MSG_SEALED ? m->sealed.hi
                                             : m->stage.hi;
    say(" epoch %u, up to %" PRIu64, m->epoch, hi);
    if ((m->flags & QN_MSG_UL) != 0) {
        say_entries(m->body);
    } else if (m->body.len != 0) {
        say(", slot %" PRIu64 ":", m->slot);
        say_batch(m->body);
    }
    say("%s", (m->flags & QN_MSG_LAST) != 0 ? " (last)" : "");
}

static void say_msg(qn_node_t from, const struct qn_msg *m)
{
    say("%s", qn_msg_name(m->kind));
    switch (m->kind) {
    case QN_MSG_REQUEST:
        say_commands(m->slot, m->body, from);
        break;
    case QN_MSG_LEARN:
        say(" slot %" PRIu64 ", decided %" PRIu64 ":", m->slot, m->learn.hi);
        say_batch(m->body);
        break;
    case QN_MSG_ACCEPT:
        say(" slot %" PRIu64 ":", m->slot);
        say_batch(m->body);
        break;
    case QN_MSG_ACCEPTED:
        say(" slot %" PRIu64, m->slot);
        break;
    case QN_MSG_FETCH:
        say(" slots %" PRIu64 "..%" PRIu64, m->slot, m->fetch.last);
        break;
    case QN_MSG_FILL:
        say(" learned %" PRIu64 ", keeps %" PRIu64 "..", m->fill.hi,
            m->fill.log_lo);
        if (m->body.len != 0) {
            say(", slot %" PRIu64 ":", m->slot);
            say_batch(m->body);
        }
        say("%s", (m->flags & QN_MSG_LAST) != 0 ? " (last)" : "");
        break;
    case QN_MSG_REDIRECT:
        say(" to %u", m->redirect.leader);
        break;
    case QN_MSG_PREPARE:
        say(" epoch %u, slots from %" PRIu64, m->epoch, m->slot);
        break;
    case QN_MSG_SEAL:
        say(" epoch %u asks about %u", m->epoch, m->seal.target);
        break;
    case QN_MSG_PREPARED:
    case QN_MSG_SEALED:
    case QN_MSG_STAGE:
        say_part(m);
        break;
    case QN_MSG_STAGED:
        say(" %s", (m->flags & QN_MSG_OK) != 0 ? "ok" : "no");
        break;
    case QN_MSG_U_PREPARE:
    case QN_MSG_U_PROMISE:
    case QN_MSG_U_ACCEPT:
    case QN_MSG_U_ACCEPTED:
    case QN_MSG_U_CHOSEN:
        say(" entry %u", m->epoch);
        say_entries(m->body);
        break;
    default:
        break;
    }
}

static void on_outputs(struct cluster *c, qn_node_t node)
{
    const struct qn_step_out *out = &c->member[node].out;
    for (uint32_t i = 0; i < out->count; i++) {
        const struct qn_out *o = &out->out[i];
        say("    %u ", node);
        switch (o->kind) {
        case QN_OUT_SEND:
            say("-> %u  ", o->to);
            say_msg(node, &o->msg);
            break;
        case QN_OUT_SEND_ALL:
            say("-> all  ");
            say_msg(node, &o->msg);
            break;
        case QN_OUT_PERSIST:
            say("keeps its vote for entry %u", o->vote.index);
            break;
        case QN_OUT_BCAST:
            say("=> rest  ");
            say_msg(node, &o->msg);
            break;
        case QN_OUT_APPLY:
            say("applies slot %" PRIu64 ":", o->apply.slot);
            say_commands(o->apply.run.first, o->apply.run.commands,
                         o->apply.run.origin);
            say("%s", o->apply.mine ? " (own)" : "");
            break;
        case QN_OUT_NEED_SNAPSHOT:
            say("needs a snapshot, slot %" PRIu64 " is gone", o->apply.slot);
            break;
        }
        say("\n");
    }
}

/* ------------------------------------------------------------ commands -- */

static void do_nodes(const char *args)
{
    struct cluster *c = &s->c;
    unsigned nodes = 0, window = 4, batch = 4;
    int n = sscanf(args, "%u window %u batch %u", &nodes, &window, &batch);
    cr_assert(n >= 1 && !s->started);
    c->nodes = nodes;
    c->now = QN_S;
    c->wall_ms = 1000;
    c->params = qn_params_default(false);
    c->params.ring = 64;
    c->params.window = window;
    c->params.batch_commands = batch;
    c->params.queue = 8 * nodes;
    c->on_outputs = on_outputs;
    replay_by("test_paxos_scenarios");
    cluster_start(c);
    s->started = true;
}

static void do_memory(const char *args)
{
    s->c.in_memory = true;
    s->c.ring_slots = 64;
    s->c.ring_bytes = 4096;
    s->c.ring_span = 512;
    s->c.ring_keep = 4096;
    do_nodes(args);
}

static void do_submit(const char *args)
{
    unsigned node = 0;
    int at = 0;
    cr_assert(sscanf(args, "%u %n", &node, &at) == 1);
    int err = cluster_submit(&s->c, node, args + at, strlen(args + at));
    if (err != QN_OK) {
        say("    %u %s\n", node, qn_strerror(err));
    }
}

static void tick_all(void)
{
    for (qn_node_t i = 0; i < s->c.nodes; i++) {
        if (s->c.member[i].p != NULL) {
            cluster_tick(&s->c, i);
        }
    }
}

static void do_tick(const char *args)
{
    unsigned n = 0;
    char unit[3] = "";
    int fields = sscanf(args, "%u%2s", &n, unit);
    if (fields == 1) {
        cluster_tick(&s->c, n);
        return;
    }
    s->c.now += strcmp(unit, "ms") == 0 ? n * QN_MS : n * QN_US;
    tick_all();
}

static struct lane *lane_of(const char *args, bool *tree)
{
    unsigned from = 0, to = 0;
    char arrow = 0;
    cr_assert(sscanf(args, "%u%c>%u", &from, &arrow, &to) == 3, "%s", args);
    *tree = arrow == '=';
    return *tree ? &s->c.tree[from][to] : &s->c.direct[from][to];
}

static void do_deliver(const char *args)
{
    bool tree;
    struct lane *l = lane_of(args, &tree);
    cr_assert(cluster_deliver(&s->c, l, tree), "nothing to deliver: %s", args);
}

static void do_drop(const char *args)
{
    bool tree;
    struct lane *l = lane_of(args, &tree);
    cr_assert(l->head != NULL, "nothing to drop: %s", args);
    cluster_drop(&s->c, l);
}

static bool deliver_all(void)
{
    struct cluster *c = &s->c;
    bool moved = false;
    for (qn_node_t i = 0; i < c->nodes; i++) {
        for (qn_node_t k = 0; k < c->nodes; k++) {
            moved |= cluster_deliver(c, &c->direct[i][k], false);
            moved |= cluster_deliver(c, &c->tree[i][k], true);
        }
    }
    return moved;
}

static void do_settle(const char *args)
{
    (void)args;
    bool moved = true;
    while (moved) {
        tick_all();
        moved = deliver_all();
        for (qn_node_t i = 0; i < s->c.nodes; i++) {
            if (s->c.member[i].transfers != 0) {
                cluster_room(&s->c, i, UINT64_MAX);
                moved = true;
            }
        }
    }
}

static void do_beat(const char *args)
{
    unsigned node = 0, peer = 0;
    cr_assert(sscanf(args, "%u %u", &node, &peer) == 2);
    cluster_beat(&s->c, node, peer);
}

static void do_down(const char *args)
{
    unsigned node = 0, peer = 0;
    cr_assert(sscanf(args, "%u %u", &node, &peer) == 2);
    const struct qn_input in = {.kind = QN_IN_DOWN, .down = {peer}};
    cluster_step(&s->c, node, &in);
}

static void do_kill(const char *args)
{
    cluster_kill(&s->c, (qn_node_t)strtoul(args, NULL, 10), UINT64_MAX);
}

static void do_restart(const char *args)
{
    unsigned node = 0, donor = 0;
    cr_assert(sscanf(args, "%u %u", &node, &donor) == 2);
    cr_assert(cluster_restart(&s->c, node, donor));
}

static void do_suspect(const char *args)
{
    unsigned node = 0, peer = 0;
    bool one = sscanf(args, "%u %u", &node, &peer) == 2;
    cluster_suspect(&s->c, node, one ? UINT64_C(1) << peer : 0);
}

static void do_lead(const char *args)
{
    cluster_lead(&s->c, (qn_node_t)strtoul(args, NULL, 10));
}

static void do_room(const char *args)
{
    cluster_room(&s->c, (qn_node_t)strtoul(args, NULL, 10), UINT64_MAX);
}

static void do_stamp(const char *args)
{
    const struct qn_input in = {.kind = QN_IN_STAMP};
    cluster_step(&s->c, (qn_node_t)strtoul(args, NULL, 10), &in);
}

static void do_status(const char *args)
{
    static const char *const roles[] = {"follower", "preparing", "active",
                                        "handing-over"};
    qn_node_t node = (qn_node_t)strtoul(args, NULL, 10);
    struct qn_onepaxos_status st;
    qn_onepaxos_status(s->c.member[node].p, &st);
    say("    %u %s, applied %" PRIu64 ", learned %" PRIu64 ", decided %" PRIu64
        ", keeps %" PRIu64 ".., queued %" PRIu64 ", own unapplied %" PRIu64
        "\n",
        node, roles[st.role], st.applied, st.learned_hi, st.decided_hi,
        st.log_lo, st.queued, st.unapplied);
}

static void run_command(const char *line)
{
    static const struct {
        const char *name;
        void (*run)(const char *args);
    } verbs[] = {
        {"nodes", do_nodes},   {"memory", do_memory},   {"submit", do_submit},
        {"tick", do_tick},     {"deliver", do_deliver}, {"drop", do_drop},
        {"settle", do_settle}, {"beat", do_beat},       {"down", do_down},
        {"room", do_room},     {"stamp", do_stamp},     {"status", do_status},
        {"kill", do_kill},     {"suspect", do_suspect}, {"restart", do_restart},
        {"lead", do_lead}};
    for (size_t i = 0; i < QN_ARRAY_COUNT(verbs); i++) {
        size_t n = strlen(verbs[i].name);
        if (strncmp(line, verbs[i].name, n) == 0 &&
            (line[n] == ' ' || line[n] == '\0')) {
            verbs[i].run(line + n);
            return;
        }
    }
    cr_assert_fail("unknown command: %s", line);
}

/* ---------------------------------------------------------------- files -- */

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    cr_assert(f != NULL, "%s", path);
    char *text = calloc(1, TEXT_MAX);
    size_t n = fread(text, 1, TEXT_MAX - 1, f);
    cr_assert(n < TEXT_MAX - 1);
    fclose(f);
    return text;
}

static void run_text(char *text)
{
    for (char *line = strtok(text, "\n"); line != NULL;
         line = strtok(NULL, "\n")) {
        if (line[0] == ' ') {
            continue; /* old output */
        }
        say("%s\n", line);
        if (strncmp(line, "> ", 2) == 0) {
            run_command(line + 2 + strspn(line + 2, " "));
        }
    }
}

static void run_scenario(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.txt", QN_SCENARIOS, name);
    s = calloc(1, sizeof *s);
    char *text = read_file(path), *want = read_file(path);
    run_text(text);
    if (getenv("QN_REWRITE") != NULL) {
        FILE *f = fopen(path, "wb");
        cr_assert(f != NULL && fwrite(s->text, 1, s->len, f) == s->len);
        fclose(f);
    } else {
        cr_assert(strcmp(s->text, want) == 0, "%s gives:\n%s", path, s->text);
    }
    cluster_end(&s->c);
    free(text);
    free(want);
    free(s);
}

#define SCENARIO(name)                                                         \
    Test(scenario, name)                                                       \
    {                                                                          \
        run_scenario(#name);                                                   \
    }

SCENARIO(normal_case)
SCENARIO(batching_and_window)
SCENARIO(lost_learn)
SCENARIO(slow_learner)
SCENARIO(repeated_request)
SCENARIO(alone)
SCENARIO(leader_dies)
SCENARIO(two_die_at_once)
SCENARIO(acceptor_dies)
SCENARIO(leader_slow_acceptor_dies)
