#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/cli/quoin.h"
#include "loadgen/load/load_internal.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

/*
 * `quoin load`: parses the options, runs the load, and reports.
 */

/* At least one address must answer; the others may start later. */
static int probe(struct qn_load *l)
{
    uint32_t good = 0;
    for (uint32_t i = 0; i < l->address_count; i++) {
        char error[200];
        if (qn_address_probe(&l->address[i], l->resp3, error, sizeof error) ==
            QN_OK) {
            good++;
        } else {
            l->unanswered[i] = true;
            fprintf(stderr, "quoin load: %s: %s\n", l->address[i].text, error);
        }
    }
    return good > 0 ? QN_OK : QN_EIO;
}

static void raise_descriptor_limit(uint64_t connections)
{
    struct rlimit limit;
    rlim_t want = (rlim_t)connections + 64;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < want) {
        limit.rlim_cur = QN_MIN(want, limit.rlim_max);
        setrlimit(
            RLIMIT_NOFILE,
            &limit); /* connections beyond the limit fail and are reported */
    }
}

/* Exit status of a reported run. Every failure also prints a line. */
static int exit_status(const struct qn_load *l, const struct qn_report *r)
{
    uint64_t ops = 0;
    uint64_t wrong = 0;
    for (int op = 0; op < QN_OP_COUNT; op++) {
        ops += l->total->op[op].ops;
        wrong += l->total->op[op].wrong;
    }
    uint64_t missing = qn_report_missing(r);
    if (ops == 0) {
        const struct qn_stats *t = l->total;
        fprintf(stderr,
                "quoin load: no request was answered within %.2f s: %s\n",
                l->measured,
                t->first_error[0] != '\0' ? t->first_error
                : t->unanswered > 0
                    ? "the server accepts requests and does not answer"
                    : "check that the server still runs");
    } else if (missing > 0) {
        fprintf(stderr,
                "quoin load: %" PRIu64 " connection%s never opened, so the "
                "load was smaller than requested; check the addresses\n",
                missing, missing == 1 ? " was" : "s were");
    }
    return ops == 0 || wrong > 0 || missing > 0;
}

static int report(struct qn_load *l)
{
    char key_size[QN_SIZES_TEXT_MAX];
    char value_size[QN_SIZES_TEXT_MAX];
    qn_sizes_print(&l->workload.opts.key_size, key_size);
    qn_sizes_print(&l->workload.opts.value_size, value_size);
    const char *address[QN_LOAD_ADDRESSES_MAX];
    for (uint32_t i = 0; i < l->address_count; i++) {
        address[i] = l->address[i].text;
    }
    const struct qn_report r = {
        .addresses = l->addresses,
        .mix = l->spec.mix,
        .dist = l->spec.dist,
        .rate = l->rate_text,
        .poisson = l->poisson,
        .connections = l->connections,
        .pipeline = l->pipeline,
        .threads = l->threads,
        .keys = l->workload_opts.keys,
        .key_size = key_size,
        .value_size = value_size,
        .seed = l->seed,
        .seconds = l->measured,
        .own_cpu_ns = l->own_cpu_ns,
        .server_cpu_ns = l->server_cpu_ns,
        .server_count = l->pid_count,
        .total = l->total,
        .warmup = &l->warmed,
        .run = l->run,
        .run_count = l->run_count,
        .unavailability = l->plan.unavailability,
        .address = address,
        .address_count = l->address_count,
        .opened = l->opened,
        .preload = l->preload,
        .verdict = l->verdict.name != NULL ? &l->verdict : NULL,
    };
    char error[QN_OUTPUT_ERROR_MAX];
    if (qn_output_finish(&l->output, &r, error) != QN_OK) {
        fprintf(stderr, "quoin load: %s\n", error);
        return 1;
    }
    return exit_status(l, &r);
}

int qn_load(int argc, char **argv)
{
    static struct qn_load l;
    int status;
    if (!qn_load_options(&l, argc, argv, &status)) {
        return status;
    }
    /* A server may close a connection during a write: an error of that
     * connection, not the end of the program. */
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit(l.connections);
    if (probe(&l) != QN_OK) {
        return 1;
    }
    if (qn_load_probe_cas(&l) != QN_OK) {
        return 2;
    }
    status = 1;
    int err = qn_load_prepare(&l);
    if (err == QN_ENOMEM) {
        fprintf(stderr, "quoin load: %s\n", qn_strerror(err));
    } else if (err == QN_OK && qn_load_run(&l) == QN_OK) {
        int verdict = l.verify ? qn_load_judge(&l) : 0;
        status = report(&l);
        qn_load_print_verdict(&l);
        status = verdict != 0 ? verdict : status;
    }
    qn_load_clean_up(&l);
    return status;
}
