/*
 * Interrupts: SIGINT and SIGTERM are blocked before the runner starts its
 * threads, which inherit the mask, and are polled whenever the runner reports
 * progress, ten times a second. So there is no handler, the runner ends in
 * order, and then the signal is delivered: the shell sees a process that was
 * terminated by it.
 */
#include "loadgen/machine/measure_progress.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/place/place.h"
#include "loadgen/machine/machine_source.h"
#include "transports/registry.h"

enum { BAR = 30, TOLD = 8 };

struct show {
    const char *program;
    bool quiet, bar;
    double told;     /* time of the last line, seconds */
    sigset_t caught; /* signals that end the measurement */
    int signal;      /* signal received; 0: none */
};

static void draw(const struct qn_runner_progress *p)
{
    char bar[BAR + 1];
    int full = (int)(p->part * BAR);
    for (int i = 0; i < BAR; i++) {
        bar[i] = i < full ? '#' : '.';
    }
    bar[BAR] = '\0';
    (void)fprintf(stderr, "\r[%s] %3.0f %%  %u pair%s, %.0f s left\033[K", bar,
                  100 * p->part, p->pairs, p->pairs == 1 ? "" : "s",
                  ceil(p->left_s));
}

static bool progress(void *arg, const struct qn_runner_progress *p)
{
    struct show *s = arg;
    const struct timespec now = {0, 0};
    int signal = sigtimedwait(&s->caught, NULL, &now);
    if (signal > 0) {
        s->signal = signal;
        return false;
    }
    if (s->quiet) {
        return true;
    }
    if (s->bar) {
        draw(p);
    } else if (p->elapsed_s - s->told >= 1) {
        s->told = p->elapsed_s;
        (void)fprintf(stderr, "%s: %u pair%s, %.0f %%, %.0f s left\n",
                      s->program, p->pairs, p->pairs == 1 ? "" : "s",
                      100 * p->part, ceil(p->left_s));
    }
    return true;
}

/* Number of pairs at the same time that the CPU quota permits; 0: no limit. */
static uint32_t quota_limit(const struct qn_measure_progress_opts *o,
                            uint32_t cores)
{
    static struct qn_places places; /* too large for the stack */
    if (qn_places_discover(&places) != QN_OK || places.quota_milli == 0 ||
        places.quota_milli >= cores * 1000) {
        return 0;
    }
    uint32_t pairs = QN_MAX(places.quota_milli / 2000, 1u);
    (void)fprintf(
        stderr,
        "%s: CPU quota of %.1f cores: measuring %u pair%s at a time%s\n",
        o->program, places.quota_milli / 1000.0, pairs, pairs == 1 ? "" : "s",
        places.quota_milli < 2000
            ? "; less than the two cores that a pair needs, so "
              "results may be unstable"
            : "");
    return pairs;
}

/* List the unstable pairs by core numbers, the first TOLD of them. */
static void tell_unstable(const struct qn_machine *m)
{
    uint32_t found = 0;
    for (uint32_t u = 0; u < m->n; u++) {
        for (uint32_t v = u + 1; v < m->n; v++) {
            if (qn_machine_unstable(m, u, v) && found++ < TOLD) {
                (void)fprintf(stderr, "%s%u-%u", found > 1 ? " " : "",
                              m->core[u].os, m->core[v].os);
            }
        }
    }
    (void)fputs(found > TOLD ? " ..." : "", stderr);
}

static void tell_result(const struct qn_measure_progress_opts *o,
                        const struct qn_machine *m,
                        const struct qn_runner_report *r)
{
    (void)fprintf(stderr, "%s: %u pair%s in %.1f s", o->program, r->pairs,
                  r->pairs == 1 ? "" : "s", r->seconds);
    if (r->unstable > 0) {
        (void)fprintf(stderr, ", %u of them unstable (", r->unstable);
        tell_unstable(m);
        (void)fprintf(stderr,
                      "; %u never on one level): there was other load, or the "
                      "machine changed; measure again",
                      r->levels);
    }
    (void)fputc('\n', stderr);
}

static void tell_error(const struct qn_measure_progress_opts *o, int err)
{
    const char *what =
        err == QN_EPERM ? "a core can no longer be used; check the affinity "
                          "of the process"
        : err == QN_ETIMEDOUT ? "a core was busy with another process; choose "
                                "other cores with taskset"
                              : qn_strerror(err);
    (void)fprintf(stderr, "%s: %s\n", o->program, what);
}

int qn_measure_progress_run(struct qn_machine *m,
                            const struct qn_measure_progress_opts *o,
                            struct qn_runner_report *report)
{
    struct show s = {.program = o->program,
                     .quiet = o->quiet,
                     .bar = isatty(STDERR_FILENO) == 1};
    sigset_t before;
    const struct qn_runner_opts r = {
        .transport = qn_transport_find(o->transport),
        .seconds = o->seconds,
        .spread_s = o->spread_s,
        .parallel = o->parallel != 0 ? o->parallel : quota_limit(o, m->n),
        .progress = progress,
        .arg = &s};
    if (r.transport == NULL) {
        (void)fprintf(stderr, "%s: unknown transport '%s'\n", o->program,
                      o->transport);
        return 2;
    }
    if (m->n == 1) {
        (void)fprintf(stderr,
                      "%s: only one core is usable, so messages between cores "
                      "cannot be measured; allow two or more (taskset)\n",
                      o->program);
    }
    sigemptyset(&s.caught);
    sigaddset(&s.caught, SIGINT);
    sigaddset(&s.caught, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &s.caught, &before);
    int err = qn_machine_measure(m, &r, report);
    if (s.bar && !s.quiet && m->n > 1) {
        (void)fputs("\r\033[K", stderr);
    }
    if (s.signal != 0) {
        (void)signal(s.signal, SIG_DFL);
        (void)raise(s.signal);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err != QN_OK) {
        tell_error(o, err);
    } else if (!o->quiet && m->n > 1) {
        tell_result(o, m, report);
    }
    return err == QN_OK ? 0 : 1;
}

int qn_measure_progress_open(struct qn_machine **out, const char *what,
                             const char *program)
{
    struct qn_parse_error parse_error = {""};
    struct qn_machine *m = NULL;
    struct qn_runner_report report;
    const struct qn_measure_progress_opts o = {
        .program = program,
        .transport = QN_MEASURE_DEFAULT_TRANSPORT,
        .seconds = QN_MEASURE_DEFAULT_SECONDS,
        .spread_s = QN_MEASURE_DEFAULT_SPREAD_S};
    int err = qn_machine_source_open(&m, what, &parse_error);
    if (err != QN_OK) {
        (void)fprintf(stderr, "%s: %s\n", program,
                      parse_error.text[0] != '\0' ? parse_error.text
                                                  : qn_strerror(err));
        return 2;
    }
    int status = 0;
    if (strcmp(what, "live") == 0) {
        status = qn_measure_progress_run(m, &o, &report);
    } else if (!qn_machine_has_costs(m)) {
        (void)fprintf(stderr,
                      "%s: %s: the machine has no costs; measure it (`quoin "
                      "machine --measure -o FILE`) and use that file\n",
                      program, what);
        status = 2;
    }
    if (status != 0) {
        qn_machine_destroy(m);
        return status;
    }
    *out = m;
    return 0;
}
