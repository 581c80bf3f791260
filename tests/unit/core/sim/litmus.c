#include "tests/unit/core/sim/litmus.h"

#include <string.h>

static struct {
    const struct litmus_program *program;
    struct litmus_ends *ends;
    qn_a64 variable[3];
    uint8_t reg[QN_EXPLORE_NODES][LITMUS_REGS];
} l;

static void setup(void *ctx)
{
    (void)ctx;
    for (uint32_t v = 0; v < 3; v++) {
        qn_store(&l.variable[v], 0, QN_SEQ_CST);
    }
    memset(l.reg, 0xf, sizeof l.reg);
}

static void run_op(uint32_t node, const struct litmus_op *op)
{
    qn_a64 *at = &l.variable[op->variable];
    uint64_t got = 0;
    switch (op->kind) {
    case LITMUS_LOAD:
        got = qn_load(at, op->order);
        break;
    case LITMUS_STORE:
        qn_store(at, op->value, op->order);
        break;
    case LITMUS_STREAM:
        qn_store_streaming(at, op->value);
        break;
    case LITMUS_ADD:
        got = qn_fetch_add(at, op->value, op->order);
        break;
    default:
        qn_fence(op->order);
        break;
    }
    if (op->reg != 0) {
        l.reg[node][op->reg - 1] = (uint8_t)got;
    }
}

static void run_thread(uint32_t node)
{
    const struct litmus_op *op = l.program->thread[node];
    for (uint32_t i = 0; i < LITMUS_OPS && op[i].kind != LITMUS_END; i++) {
        run_op(node, &op[i]);
    }
}

static void thread_0(void *ctx)
{
    (void)ctx;
    run_thread(0);
}

static void thread_1(void *ctx)
{
    (void)ctx;
    run_thread(1);
}

static void thread_2(void *ctx)
{
    (void)ctx;
    run_thread(2);
}

static void thread_3(void *ctx)
{
    (void)ctx;
    run_thread(3);
}

/* A killed thread has no registers. */
static uint64_t this_end(void)
{
    uint64_t end = 0;
    for (uint32_t r = 0; r < LITMUS_REGS; r++) {
        uint64_t reg = 0xf;
        for (uint32_t n = 0; n < l.program->threads; n++) {
            if (l.reg[n][r] != 0xf && qn_sim_end_of(n) != QN_SIM_KILLED) {
                reg = l.reg[n][r];
            }
        }
        end |= reg << (4 * r);
    }
    for (uint32_t v = 0; v < 3; v++) {
        end |= qn_load(&l.variable[v], QN_SEQ_CST) << (4 * (LITMUS_REGS + v));
    }
    return end;
}

bool litmus_has(const struct litmus_ends *ends, uint64_t end)
{
    for (uint32_t i = 0; i < ends->count; i++) {
        if (ends->end[i] == end) {
            return true;
        }
    }
    return false;
}

static const char *note_end(void *ctx)
{
    (void)ctx;
    uint64_t end = this_end();
    if (l.ends->wanted != 0 && end == l.ends->wanted) {
        return "wanted";
    }
    if (litmus_has(l.ends, end)) {
        return NULL;
    }
    if (l.ends->count == LITMUS_ENDS) {
        return "too many ends";
    }
    l.ends->end[l.ends->count++] = end;
    return NULL;
}

bool litmus_explore(const struct litmus_program *p, struct qn_explore_opts o,
                    struct litmus_ends *ends)
{
    l.program = p;
    l.ends = ends;
    ends->count = 0;
    o.nodes = p->threads;
    o.node[0] = thread_0;
    o.node[1] = thread_1;
    o.node[2] = thread_2;
    o.node[3] = thread_3;
    o.setup = setup;
    o.check = note_end;
    return qn_explore(&o, &ends->found) && ends->found.complete;
}

bool litmus_has_registers(const struct litmus_ends *ends, const uint8_t *reg,
                          uint32_t n)
{
    for (uint32_t i = 0; i < ends->count; i++) {
        uint32_t same = 0;
        while (same < n && (ends->end[i] >> (4 * same) & 0xf) == reg[same]) {
            same++;
        }
        if (same == n) {
            return true;
        }
    }
    return false;
}

bool litmus_has_memory(const struct litmus_ends *ends, uint8_t x, uint8_t y)
{
    const uint64_t want = (uint64_t)y << 4 | x;
    for (uint32_t i = 0; i < ends->count; i++) {
        if ((ends->end[i] >> (4 * LITMUS_REGS) & 0xff) == want) {
            return true;
        }
    }
    return false;
}
