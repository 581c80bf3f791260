/*
 * The rows of `quoin sim replay locks`, machine by machine.
 */
#include "loadgen/simulate/locks/locks_replay.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/simulate/locks/locks_replay_internal.h"

static const struct {
    const char *file;
    void (*rows)(struct qn_locks_replay *r);
} machines[] = {
    {"tilegx_8036.json", qn_locks_replay_mesh},
    {"westmere_8x10x2", qn_locks_replay_xeon},
    {"by_formula/opteron_6176_4x12", qn_locks_replay_opteron},
};

/* The first run that failed. */
static void note(struct qn_locks_replay *r, int rc, bool wrong)
{
    if (r->rc == QN_OK) {
        r->rc = rc != QN_OK ? rc : wrong ? QN_ECORRUPT : QN_OK;
    }
}

struct qn_locks_result qn_locks_replay_run(struct qn_locks_replay *r,
                                           struct qn_locks_opts o)
{
    struct qn_locks_result result = {0};
    o.machine = &r->machine;
    o.seed = r->o->seed;
    o.jitter = r->o->jitter;
    const int rc = qn_locks_run(&result, &o);
    note(r, rc, result.wrong);
    return result;
}

struct qn_locks_queue_result qn_locks_replay_queue(struct qn_locks_replay *r,
                                                   struct qn_locks_queue_opts o)
{
    struct qn_locks_queue_result result = {0};
    o.machine = &r->machine;
    o.seed = r->o->seed;
    o.jitter = r->o->jitter;
    const int rc = qn_locks_queue_run(&result, &o);
    note(r, rc, result.wrong);
    return result;
}

/* Is `id` one of the words of `ids`? */
static bool has_id(const char *ids, const char *id)
{
    const size_t length = strlen(id);
    for (const char *at = ids; *at != 0; at += strspn(at, " ")) {
        const size_t word = strcspn(at, " ");
        if (word == length && memcmp(at, id, word) == 0) {
            return true;
        }
        at += word;
    }
    return false;
}

static bool wanted(const struct qn_locks_replay *r, const char *ids)
{
    return r->o->only == NULL || has_id(ids, r->o->only);
}

void qn_locks_replay_groups(struct qn_locks_replay *r,
                            const struct qn_locks_group *group, uint32_t count)
{
    for (uint32_t i = 0; i < count && r->rc == QN_OK; i++) {
        if (wanted(r, group[i].ids) && (group[i].small || !r->o->small)) {
            group[i].rows(r);
        }
    }
}

void qn_locks_replay_row(struct qn_locks_replay *r,
                         const struct qn_replay_claim *c, double got,
                         const char *what, ...)
{
    struct qn_replay_row line;
    va_list args;
    va_start(args, what);
    qn_replay_row_of(&line, c, got, what, args);
    va_end(args);
    if (r->rc == QN_OK && wanted(r, c->id)) {
        r->row(r->ctx, &line);
    }
}

double qn_locks_replay_off(double got, double published)
{
    return fabs(got / published - 1);
}

int qn_locks_replay(const struct qn_locks_replay_opts *o,
                    qn_replay_row_fn *each, void *ctx,
                    struct qn_parse_error *parse_error)
{
    struct qn_locks_replay r = {.o = o, .row = each, .ctx = ctx};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(machines) && r.rc == QN_OK; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/%s", o->machines,
                       machines[i].file);
        r.rc = qn_locks_machine_load(&r.machine, path, parse_error);
        if (r.rc == QN_OK) {
            machines[i].rows(&r);
            qn_locks_machine_free(&r.machine);
        }
    }
    return r.rc;
}
