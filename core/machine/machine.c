/*
 * Machines in memory: one block per array, costs as two dense matrices. An
 * algorithm that asks for all costs of a sender reads one row, in order.
 */
#include "core/machine/machine.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/assert.h"
#include "core/base/err.h"

const char *qn_bandwidth_name(uint32_t b)
{
#define X(id, name) name,
    static const char *const names[] = {QN_BANDWIDTH_MAP(X)};
#undef X
    return names[b];
}

const char *qn_level_name(uint32_t level)
{
    static const char *const names[QN_LEVELS] = {"node", "cache", "socket"};
    return level < QN_LEVELS ? names[level] : NULL;
}

int qn_machine_create(struct qn_machine **out, uint32_t n)
{
    if (n == 0 || n > QN_CORES_MAX) {
        return QN_EINVAL;
    }
    struct qn_machine *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return QN_ENOMEM;
    }
    m->n = n;
    m->core = calloc(n, sizeof *m->core);
    m->send = calloc((size_t)n * n, sizeof *m->send);
    m->receive = calloc((size_t)n * n, sizeof *m->receive);
    if (m->core == NULL || m->send == NULL || m->receive == NULL) {
        qn_machine_destroy(m);
        return QN_ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        m->core[i].os = m->core[i].phys = i;
    }
    *out = m;
    return QN_OK;
}

int qn_machine_make_room(struct qn_machine *m)
{
    size_t n = (size_t)m->n * m->n;
    double *trip = calloc(n, sizeof *trip);
    double *level = calloc(n, sizeof *level);
    bool *unstable = calloc(n, sizeof *unstable);
    if (trip == NULL || level == NULL || unstable == NULL) {
        free(trip);
        free(level);
        free(unstable);
        return QN_ENOMEM;
    }
    m->facts.round_trip = trip;
    m->facts.level = level;
    m->facts.unstable = unstable;
    return QN_OK;
}

void qn_machine_destroy(struct qn_machine *m)
{
    if (m != NULL) {
        free(m->facts.round_trip);
        free(m->facts.level);
        free(m->facts.unstable);
        free(m->core);
        free(m->send);
        free(m->receive);
        free(m);
    }
}

uint32_t qn_machine_find(const struct qn_machine *m, uint32_t os)
{
    uint32_t low = 0, high = m->n;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (m->core[mid].os < os) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < m->n && m->core[low].os == os ? low : m->n;
}

uint32_t qn_machine_unstable_pairs(const struct qn_machine *m)
{
    uint32_t n = 0;
    for (uint32_t u = 0; u < m->n; u++) {
        for (uint32_t v = u + 1; v < m->n; v++) {
            n += qn_machine_unstable(m, u, v);
        }
    }
    return n;
}

/* Facts of the pair (i, j) of r, which is (u, v) in m. */
static void copy_pair_facts(struct qn_machine *r, uint32_t i, uint32_t j,
                            const struct qn_machine *m, uint32_t u, uint32_t v)
{
    size_t to = (size_t)i * r->n + j, from = (size_t)u * m->n + v;
    if (r->facts.round_trip != NULL) {
        r->facts.round_trip[to] = m->facts.round_trip[from];
    }
    if (r->facts.level != NULL) {
        r->facts.level[to] = m->facts.level[from];
    }
    if (r->facts.unstable != NULL) {
        r->facts.unstable[to] = m->facts.unstable[from];
    }
}

/* r gets m's facts; matrices are empty yet. @return whether there is room. */
static bool copy_facts(struct qn_machine *r, const struct qn_machine *m)
{
    size_t n = (size_t)r->n * r->n;
    r->facts = m->facts;
    r->facts.round_trip =
        m->facts.round_trip != NULL ? calloc(n, sizeof(double)) : NULL;
    r->facts.level = m->facts.level != NULL ? calloc(n, sizeof(double)) : NULL;
    r->facts.unstable =
        m->facts.unstable != NULL ? calloc(n, sizeof(bool)) : NULL;
    return (r->facts.round_trip != NULL) == (m->facts.round_trip != NULL) &&
           (r->facts.level != NULL) == (m->facts.level != NULL) &&
           (r->facts.unstable != NULL) == (m->facts.unstable != NULL);
}

int qn_machine_restrict(struct qn_machine **out, const struct qn_machine *m,
                        const uint32_t *index, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (index[i] >= m->n || (i > 0 && index[i] <= index[i - 1])) {
            return QN_EINVAL;
        }
    }
    struct qn_machine *r = NULL;
    int err = qn_machine_create(&r, count);
    if (err != QN_OK) {
        return err;
    }
    if (!copy_facts(r, m)) {
        qn_machine_destroy(r);
        return QN_ENOMEM;
    }
    memcpy(r->name, m->name, sizeof r->name);
    for (uint32_t i = 0; i < count; i++) {
        r->core[i] = m->core[index[i]];
        for (uint32_t j = 0; j < count; j++) {
            size_t at = (size_t)i * count + j;
            r->send[at] = qn_send_cost(m, index[i], index[j]);
            r->receive[at] = qn_receive_cost(m, index[i], index[j]);
            copy_pair_facts(r, i, j, m, index[i], index[j]);
        }
    }
    *out = r;
    return QN_OK;
}

static bool cost_ok(double x, bool diagonal)
{
    return diagonal ? x == 0 : x > 0 && x <= QN_COST_MAX;
}

/* A fact that is a matrix: as costs are, and symmetric. */
static bool pairs_ok(const double *x, uint32_t n, uint32_t i, uint32_t j)
{
    double it = x != NULL ? x[(size_t)i * n + j] : 0;
    return x == NULL || (cost_ok(it, i == j) && !(x[(size_t)j * n + i] < it) &&
                         !(x[(size_t)j * n + i] > it));
}

static bool level_ok(const double *x, uint32_t n, uint32_t i, uint32_t j)
{
    return x == NULL || cost_ok(x[(size_t)i * n + j], i == j);
}

static bool facts_ok(const struct qn_machine_facts *f)
{
    bool good = true;
    for (uint32_t b = 0; b < QN_BANDWIDTHS; b++) {
        const double x = f->bandwidth[b];
        good = good && x <= QN_BANDWIDTH_MOST &&
               (x >= QN_BANDWIDTH_LEAST || (x >= 0 && x <= 0));
    }
    return good && f->clock_ghz >= 0 && f->clock_ghz <= QN_GHZ_MAX &&
           f->queued_factor >= 0 && f->queued_factor <= 1;
}

int qn_machine_check(const struct qn_machine *m)
{
    if (m->n == 0 || m->n > QN_CORES_MAX || !facts_ok(&m->facts)) {
        return QN_EINVAL;
    }
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->core[i].os > QN_CORE_NUMBER_MAX ||
            (i > 0 && m->core[i].os <= m->core[i - 1].os)) {
            return QN_EINVAL;
        }
        for (uint32_t j = 0; j < m->n; j++) {
            if (!cost_ok(qn_send_cost(m, i, j), i == j) ||
                !cost_ok(qn_receive_cost(m, i, j), i == j) ||
                !pairs_ok(m->facts.round_trip, m->n, i, j) ||
                !level_ok(m->facts.level, m->n, i, j) ||
                qn_machine_unstable(m, i, j) != qn_machine_unstable(m, j, i)) {
                return QN_EINVAL;
            }
        }
    }
    return QN_OK;
}

int qn_machine_load(struct qn_machine **out, const char *path,
                    struct qn_parse_error *parse_error)
{
    struct stat st;
    bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    return folder ? qn_machine_load_csv(out, path, parse_error)
                  : qn_machine_load_json(out, path, parse_error);
}
