/*
 * TSO. Stores go into the buffer of their node, where they are its own affair;
 * what others see is that they leave it. A seq_cst store, a read-modify-write,
 * a seq_cst fence and a system call empty the buffer, which may hold anything:
 * they depend on all loads.
 *
 * C11. Accesses to different words of memory depend on each other only by the
 * view of seq_cst: a seq_cst fence, and a system call on a word, which is one,
 * depend on every other seq_cst access. Other fences concern their node alone.
 * So do plain copies, unless there are checked ones to find what they wrote:
 * whether a copy is a race is told by happens-before, in whatever order the two
 * are run.
 */
#include "core/sim/explore/independent.h"

#define WORD 8u /* bytes that share a history (c11_internal.h) */

static bool is_call(const struct qn_sim_access *a)
{
    return a->kind == QN_SIM_PARK || a->kind == QN_SIM_WAKE;
}

bool qn_access_writes(const struct qn_sim_access *a)
{
    return a->kind == QN_SIM_STORE || a->kind == QN_SIM_RMW ||
           a->kind == QN_SIM_COPY_OUT || a->kind == QN_SIM_TOUCH_OUT;
}

bool qn_access_full_fence(const struct qn_sim_access *a)
{
    return is_call(a) ||
           (a->kind == QN_SIM_FENCE && a->order == memory_order_seq_cst);
}

bool qn_access_empties(const struct qn_sim_access *a)
{
    return qn_access_full_fence(a) || a->kind == QN_SIM_RMW ||
           (a->kind == QN_SIM_STORE && a->order == memory_order_seq_cst);
}

static bool local_tso(const struct qn_sim_access *a)
{
    return !qn_access_empties(a) && a->kind != QN_SIM_LOAD &&
           a->kind != QN_SIM_COPY_IN;
}

static bool local_c11(const struct qn_sim_access *a, bool checked)
{
    switch (a->kind) {
    case QN_SIM_FENCE:
        return a->order != memory_order_seq_cst;
    case QN_SIM_COPY_IN:
        return !a->checked;
    case QN_SIM_COPY_OUT:
        return !checked;
    default:
        return a->kind == QN_SIM_TOUCH_IN || a->kind == QN_SIM_TOUCH_OUT;
    }
}

bool qn_access_local(enum qn_explore_memory m, const struct qn_sim_access *a,
                     bool checked)
{
    return m == QN_EXPLORE_TSO ? local_tso(a) : local_c11(a, checked);
}

bool qn_access_seen(const struct qn_sim_access *a)
{
    return qn_access_writes(a) || qn_access_full_fence(a);
}

static bool meet(const struct qn_sim_access *a, const struct qn_sim_access *b)
{
    uintptr_t from_a = (uintptr_t)a->at / WORD * WORD;
    uintptr_t from_b = (uintptr_t)b->at / WORD * WORD;
    return a->bytes != 0 && b->bytes != 0 &&
           from_a < (uintptr_t)b->at + b->bytes &&
           from_b < (uintptr_t)a->at + a->bytes;
}

static bool independent_tso(const struct qn_sim_access *a,
                            const struct qn_sim_access *b, bool drain)
{
    if (drain) {
        return !qn_access_empties(a) && !meet(a, b);
    }
    if (local_tso(a) || local_tso(b)) {
        return true;
    }
    return !qn_access_empties(a) && !qn_access_empties(b); /* two loads */
}

static bool independent_c11(const struct qn_sim_access *a,
                            const struct qn_sim_access *b)
{
    if (is_call(a) && is_call(b)) {
        return false;
    }
    if ((qn_access_full_fence(a) && b->order == memory_order_seq_cst) ||
        (qn_access_full_fence(b) && a->order == memory_order_seq_cst)) {
        return false;
    }
    return (!qn_access_writes(a) && !qn_access_writes(b)) || !meet(a, b);
}

bool qn_access_independent(enum qn_explore_memory m,
                           const struct qn_sim_access *a,
                           const struct qn_sim_access *b, bool drain)
{
    return m == QN_EXPLORE_TSO ? independent_tso(a, b, drain)
                               : independent_c11(a, b);
}
