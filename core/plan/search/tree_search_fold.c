/*
 * Down: children are sorted by r + T, largest first, which is optimal for a
 * fixed tree (core/topo/README.md); the value is the largest (sends so far + r
 * + T), or what the core itself needs: all sends and what it has to do then.
 *
 * Up: messages are taken in order of visibility, whatever the children's order.
 *
 * Acknowledged broadcast looks as if it needed two passes, since a core takes
 * acknowledgements only after its last send. But whatever happens below a core
 * happens in the same way however late it is informed. So the time from being
 * informed to having all acknowledgements is a value of the subtree alone, and
 * one fold does.
 *
 * Rate: the most that a core of the subtree spends per operation.
 *
 * A child's lag is what lies between the two cores on any way to the cost:
 * value(c) + lag(c) <= value(v). Summed up to the root, it tells whether a
 * subtree can be as late as that without touching anything.
 */
#include "core/base/bits.h"
#include "core/plan/search/tree_search_internal.h"

/* A move may gain a thirty-second of the sum in the other cost. */
#define SECOND_SHIFT 5u
#define SORTED_MAX   8u /* children up to which a bound is worth its sorting */

static bool acknowledged(const struct qn_tree_search *x)
{
    return x->o.fold == QN_FOLD_ACK || x->o.fold == QN_FOLD_COMMIT;
}

/* An answer takes at least this once it is visible. */
static uint32_t least_receive(const struct qn_tree_search *x,
                              const struct qn_edge *e)
{
    return (uint32_t)((uint64_t)e->back_receive * x->q >> 10);
}

static uint32_t fold_down(struct qn_tree_search *x, uint32_t v)
{
    struct qn_cell *cell = x->cell;
    uint32_t sent = 0, value = 0;
    uint16_t critical = QN_NONE;
    for (uint16_t c = cell[v].first; c != QN_NONE; c = cell[c].next) {
        sent += cell[c].e.send;
        cell[c].lag = sent + cell[c].e.receive;
        uint32_t t = cell[c].lag + cell[c].value;
        if (t > value) {
            value = t;
            critical = c;
        }
    }
    if (sent + x->start[v] > value) {
        value = sent + x->start[v];
        critical = QN_NONE;
    }
    cell[v].critical = critical;
    return value;
}

/* The broadcast alone, beside one with `start`. */
static uint32_t second_down(const struct qn_tree_search *x, uint32_t v)
{
    const struct qn_cell *cell = x->cell;
    uint32_t sent = 0, value = 0;
    for (uint16_t c = cell[v].first; c != QN_NONE; c = cell[c].next) {
        sent += cell[c].e.send;
        value = QN_MAX(value, sent + cell[c].e.receive + cell[c].second);
    }
    return value;
}

struct arrival {
    uint32_t visible, receive;
    uint16_t from;
};

static void sort_by_visibility(struct arrival *in, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct arrival a = in[i];
        uint32_t k = i;
        for (; k > 0 && in[k - 1].visible > a.visible; k--) {
            in[k] = in[k - 1];
        }
        in[k] = a;
    }
}

/* Until when a core that is ready at t takes all messages; the last one that
 * it waited for is critical. */
static uint32_t take(const struct qn_tree_search *x, struct arrival *in,
                     uint32_t count, uint32_t t, uint16_t *critical)
{
    sort_by_visibility(in, count);
    *critical = count > 0 ? in[count - 1].from : QN_NONE;
    for (uint32_t i = 0; i < count; i++) {
        if (in[i].visible < t) {
            t += (uint32_t)((uint64_t)in[i].receive * x->q >> 10);
        } else {
            t = in[i].visible + in[i].receive;
            *critical = in[i].from;
        }
    }
    return t;
}

static uint32_t fold_up(struct qn_tree_search *x, uint32_t v)
{
    struct qn_cell *cell = x->cell;
    struct arrival in[QN_CORES_MAX];
    uint32_t count = 0;
    for (uint16_t c = cell[v].first; c != QN_NONE; c = cell[c].next) {
        uint32_t visible = cell[c].value + cell[c].e.back_send;
        uint32_t receive = cell[c].e.back_receive;
        cell[c].lag = cell[c].e.back_send + least_receive(x, &cell[c].e);
        in[count++] = (struct arrival){visible, receive, c};
    }
    return take(x, in, count, x->start[v], &cell[v].critical);
}

/* The reduction beside a broadcast on the same tree; the latter has lags. */
static uint32_t second_up(struct qn_tree_search *x, uint32_t v)
{
    const struct qn_cell *cell = x->cell;
    struct arrival in[QN_CORES_MAX];
    uint32_t count = 0;
    uint16_t unused;
    for (uint16_t c = cell[v].first; c != QN_NONE; c = cell[c].next) {
        uint32_t visible = cell[c].second + cell[c].e.back_send;
        in[count++] = (struct arrival){visible, cell[c].e.back_receive, c};
    }
    return take(x, in, count, 0, &unused);
}

static uint32_t fold_acked(struct qn_tree_search *x, uint32_t v, uint32_t *down)
{
    struct qn_cell *cell = x->cell;
    struct arrival in[QN_CORES_MAX];
    uint32_t count = 0, sent = 0;
    for (uint16_t c = cell[v].first; c != QN_NONE; c = cell[c].next) {
        const struct qn_edge *e = &cell[c].e;
        sent += e->send;
        uint32_t told = sent + e->receive;
        uint32_t visible = told + cell[c].value + e->back_send;
        *down = QN_MAX(*down, told + cell[c].second);
        cell[c].lag = told + e->back_send + least_receive(x, e);
        in[count++] = (struct arrival){visible, e->back_receive, c};
    }
    return take(x, in, count, sent, &cell[v].critical);
}

/* What v itself spends per operation. */
static uint32_t own_work(const struct qn_tree_search *x, uint32_t v, bool acks)
{
    const struct qn_cell *cell = x->cell;
    uint32_t own = cell[v].e.receive + (acks ? cell[v].e.back_send : 0);
    for (uint16_t c = cell[v].first; c != QN_NONE; c = cell[c].next) {
        own += cell[c].e.send + (acks ? cell[c].e.back_receive : 0);
    }
    return own;
}

static uint32_t fold_rate(struct qn_tree_search *x, uint32_t v)
{
    struct qn_cell *cell = x->cell;
    uint32_t value = own_work(x, v, x->o.fold == QN_FOLD_RATE);
    uint16_t critical = QN_NONE;
    for (uint16_t c = cell[v].first; c != QN_NONE; c = cell[c].next) {
        cell[c].lag = 0;
        if (cell[c].value > value) {
            value = cell[c].value;
            critical = c;
        }
    }
    cell[v].critical = critical;
    return value;
}

uint32_t qn_tree_search_fold(struct qn_tree_search *x, uint32_t v,
                             uint32_t *second)
{
    *second = 0;
    switch (x->o.fold) {
    case QN_FOLD_DOWN:
        return fold_down(x, v);
    case QN_FOLD_TWICE:
        *second = second_down(x, v);
        return fold_down(x, v);
    case QN_FOLD_UP:
        return fold_up(x, v);
    case QN_FOLD_BOTH:
        *second = second_up(x, v);
        return fold_down(x, v);
    case QN_FOLD_ACK:
    case QN_FOLD_COMMIT:
        return fold_acked(x, v, second);
    case QN_FOLD_RATE:
    case QN_FOLD_STREAM:
        break;
    }
    return fold_rate(x, v);
}

uint32_t qn_tree_search_key(const struct qn_tree_search *x,
                            const struct qn_cell *c)
{
    if (x->o.fold == QN_FOLD_DOWN || x->o.fold == QN_FOLD_TWICE ||
        x->o.fold == QN_FOLD_BOTH) {
        return c->e.receive + c->value;
    }
    return acknowledged(x) ? c->e.receive + c->value + c->e.back_send : 0;
}

uint32_t qn_tree_search_total(const struct qn_tree_search *x)
{
    const struct qn_cell *r = &x->cell[x->root];
    bool sum = x->o.fold == QN_FOLD_TWICE || x->o.fold == QN_FOLD_BOTH ||
               x->o.fold == QN_FOLD_COMMIT;
    return r->value + (sum ? r->second : 0);
}

uint32_t qn_tree_search_bound(const struct qn_tree_search *x, uint32_t limit)
{
    switch (x->o.fold) {
    case QN_FOLD_DOWN:
    case QN_FOLD_ACK:
        return limit;
    case QN_FOLD_TWICE:
    case QN_FOLD_BOTH:
    case QN_FOLD_COMMIT: {
        uint32_t second = x->cell[x->root].second;
        return limit - QN_MIN(second, limit) + (limit >> SECOND_SHIFT);
    }
    case QN_FOLD_UP:
    case QN_FOLD_RATE:
    case QN_FOLD_STREAM:
        break;
    }
    return UINT32_MAX;
}

static uint32_t lag_to_root(const struct qn_tree_search *x, uint32_t u)
{
    uint32_t lag = 0;
    for (; u != x->root; u = x->cell[u].parent) {
        lag += x->cell[u].lag;
    }
    return lag;
}

uint32_t qn_tree_search_lower_bound(const struct qn_tree_search *x, uint32_t v,
                                    uint32_t value, uint32_t u,
                                    uint32_t without)
{
    const struct qn_cell *cell = x->cell;
    const struct qn_edge *e = &x->edge[(size_t)u * x->n + v];
    uint32_t key = e->receive + value + (acknowledged(x) ? e->back_send : 0);
    uint32_t sent = 0, most = 0;
    uint32_t answer = acknowledged(x) ? least_receive(x, e) : 0;
    bool placed = false;
    for (uint16_t c = cell[u].first; c != QN_NONE; c = cell[c].next) {
        if (c == v || c == without) {
            continue;
        }
        if (!placed && cell[c].key <= key) {
            placed = true;
            sent += e->send;
            most = QN_MAX(most, sent + key + answer);
        }
        sent += cell[c].e.send;
        most = QN_MAX(most, sent + cell[c].key);
    }
    if (!placed) {
        most = QN_MAX(most, sent + e->send + key + answer);
    }
    return most + lag_to_root(x, u);
}

/* Value of v with the children of w; 0 if that is not simple. */
static uint32_t value_instead(const struct qn_tree_search *x, uint32_t v,
                              uint32_t w)
{
    uint32_t key[SORTED_MAX], send[SORTED_MAX], count = 0;
    for (uint16_t c = x->cell[w].first; c != QN_NONE; c = x->cell[c].next) {
        if (c == v || count == SORTED_MAX) {
            return 0;
        }
        const struct qn_edge *e = &x->edge[(size_t)v * x->n + c];
        uint32_t k = e->receive + x->cell[c].value, i = count++;
        k += acknowledged(x) ? e->back_send : 0;
        for (; i > 0 && key[i - 1] < k; i--) {
            key[i] = key[i - 1];
            send[i] = send[i - 1];
        }
        key[i] = k;
        send[i] = e->send;
    }
    uint32_t sent = 0, most = 0;
    for (uint32_t i = 0; i < count; i++) {
        sent += send[i];
        most = QN_MAX(most, sent + key[i]);
    }
    return most;
}

uint32_t qn_tree_search_instead(const struct qn_tree_search *x, uint32_t v,
                                uint32_t w)
{
    const struct qn_cell *cell = x->cell;
    uint32_t most = value_instead(x, v, w), p = cell[w].parent;
    if (w == x->root || p == v) {
        return w == x->root ? most : 0;
    }
    const struct qn_edge *e = &x->edge[(size_t)p * x->n + v];
    most += e->receive + (acknowledged(x) ? e->back_send : 0);
    uint32_t key = most;
    for (uint16_t c = cell[p].first; c != QN_NONE && cell[c].key > key;
         c = cell[c].next) {
        most += c != w && c != v ? cell[c].e.send : 0;
    }
    most += acknowledged(x) ? least_receive(x, e) : 0;
    return most + e->send + lag_to_root(x, p);
}

bool qn_tree_search_within_cap(const struct qn_tree_search *x)
{
    for (uint32_t i = 0; i < x->logged; i++) {
        if (own_work(x, x->log[i].v, x->o.cap_acks) > x->cap) {
            return false;
        }
    }
    return true;
}
