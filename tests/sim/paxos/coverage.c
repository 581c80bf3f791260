/*
 * The table of what was reached (coverage.h). What cannot occur with an
 * acceptor is not asked for and printed as a dash: with the memory acceptor no
 * message decides; SNAP_REQ and SNAP are formats without a handler, and STATE
 * is handled by the driver.
 */
#include "tests/sim/paxos/coverage.h"

#include <inttypes.h>

static const char *const inputs[COVERAGE_INPUTS] = {
    "RECV", "FRAGMENT", "TICK", "SUBMIT",  "STAMP", "BEAT", "ROOM", "SUSPECT",
    "DOWN", "UP",       "LEAD", "RECOVER", "GO",    "READ", "SEAT"};
static const char *const outputs[COVERAGE_OUTPUTS] = {
    "SEND", "SEND_ALL", "BCAST", "PERSIST", "APPLY", "NEED_SNAPSHOT"};
static const char *const roles[COVERAGE_ROLES] = {"FOLLOWER", "PREPARING",
                                                  "ACTIVE", "HANDING_OVER"};
static const char *const rows[COVERAGE_ROWS] = {
#define X(name, text) text,
    COVERAGE_ROW_MAP(X)
#undef X
};

void coverage_add(struct coverage *sum, const struct coverage *x)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)x;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) {
        to[i] += from[i];
    }
}

/* ------------------------------------------------------ what must occur -- */

/** Handlers that only the process acceptor has. */
static bool message_needed(uint32_t kind, bool memory)
{
    switch (kind) {
    case QN_MSG_SNAP_REQ:
    case QN_MSG_SNAP:
    case QN_MSG_STATE: /* the driver's */
    case QN_MSG_ORDER:
    case QN_MSG_TAKEN:
        return false;
    case QN_MSG_ACCEPT:
    case QN_MSG_ACCEPTED:
    case QN_MSG_NACK:
    case QN_MSG_PREPARE:
    case QN_MSG_PREPARED:
    case QN_MSG_STAGE:
    case QN_MSG_STAGED:
    case QN_MSG_SEAL:
    case QN_MSG_SEALED:
    case QN_MSG_READ_INDEX:
    case QN_MSG_READ_AT:
        return !memory;
    default:
        return true;
    }
}

static bool role_needed(uint32_t from, uint32_t to, bool memory)
{
    static const uint8_t some[][2] = {
        {QN_FOLLOWER, QN_PREPARING},     {QN_PREPARING, QN_ACTIVE},
        {QN_PREPARING, QN_FOLLOWER},     {QN_ACTIVE, QN_FOLLOWER},
        {QN_ACTIVE, QN_HANDING_OVER},    {QN_PREPARING, QN_HANDING_OVER},
        {QN_HANDING_OVER, QN_PREPARING}, {QN_HANDING_OVER, QN_FOLLOWER},
    };
    for (size_t i = 0; i < (memory ? 4 : sizeof some / sizeof some[0]); i++) {
        if (some[i][0] == from && some[i][1] == to) {
            return true;
        }
    }
    return false;
}

/* ---------------------------------------------------------------- print -- */

struct table {
    FILE *to;
    uint32_t zero;
};

static void cell(struct table *t, uint64_t count, bool needed)
{
    if (count == 0 && !needed) {
        fprintf(t->to, "%13s", "-");
        return;
    }
    fprintf(t->to, "%12" PRIu64 "%s", count, count == 0 ? "!" : " ");
    t->zero += count == 0;
}

static void line(struct table *t, const char *what, const uint64_t count[2],
                 const bool needed[2])
{
    fprintf(t->to, "%-26s", what);
    cell(t, count[0], needed[0]);
    cell(t, count[1], needed[1]);
    fputc('\n', t->to);
}

static void title(struct table *t, const char *what)
{
    fprintf(t->to, "\n%-26s%13s%13s\n", what, "process", "memory");
}

static void print_roles(struct table *t, const struct coverage *c)
{
    for (uint32_t a = 0; a < COVERAGE_ROLES; a++) {
        for (uint32_t b = 0; b < COVERAGE_ROLES; b++) {
            char what[32];
            const uint64_t n[2] = {c->role[0][a][b], c->role[1][a][b]};
            const bool needed[2] = {role_needed(a, b, false),
                                    role_needed(a, b, true)};
            snprintf(what, sizeof what, "%s -> %s", roles[a], roles[b]);
            if (n[0] + n[1] != 0 || needed[0] || needed[1]) {
                line(t, what, n, needed);
            }
        }
    }
}

uint32_t coverage_print(const struct coverage *c, FILE *to)
{
    static const bool both[2] = {true, true};
    struct table t = {.to = to};
    title(&t, "schedules, by nodes");
    for (uint32_t n = 3; n < COVERAGE_NODES; n++) {
        char what[32];
        snprintf(what, sizeof what, "%u", n);
        line(&t, what, (const uint64_t[2]){c->runs[0][n], c->runs[1][n]}, both);
    }
    for (uint32_t n = 1; n < COVERAGE_NODES; n++) {
        char what[32];
        snprintf(what, sizeof what, "%u seats", n);
        line(&t, what, (const uint64_t[2]){0, c->seats[n]},
             (const bool[2]){false, true});
    }
    title(&t, "inputs");
    for (uint32_t i = 0; i < COVERAGE_INPUTS; i++) {
        const bool needed[2] = {i != QN_IN_SEAT, i != QN_IN_READ};
        line(&t, inputs[i], (const uint64_t[2]){c->input[0][i], c->input[1][i]},
             needed);
    }
    line(&t, "a slowed leader waits", c->held_back, both);
    line(&t, "one that is slow pauses", c->squeezed,
         (const bool[2]){false, false});
    title(&t, "messages handled");
    for (uint32_t k = 1; k < QN_MSG_KINDS; k++) {
        line(
            &t, qn_msg_name((uint8_t)k),
            (const uint64_t[2]){c->message[0][k], c->message[1][k]},
            (const bool[2]){message_needed(k, false), message_needed(k, true)});
    }
    title(&t, "outputs");
    for (uint32_t o = 0; o < COVERAGE_OUTPUTS; o++) {
        line(&t, outputs[o],
             (const uint64_t[2]){c->output[0][o], c->output[1][o]}, both);
    }
    title(&t, "changes of role");
    print_roles(&t, c);
    fprintf(to, "\nwhat happened\n");
    for (uint32_t r = 0; r < COVERAGE_ROWS; r++) {
        fprintf(to, "%-62s", rows[r]);
        cell(&t, c->row[r], true);
        fputc('\n', to);
    }
    return t.zero;
}
