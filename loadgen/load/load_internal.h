#ifndef QN_LOADGEN_LOAD_LOAD_INTERNAL_H
#define QN_LOADGEN_LOAD_LOAD_INTERNAL_H

/**
 * `quoin load`: options (load_options.c), CPUs of its threads (load_pin.c), the
 * run as seen by the main thread (load_run.c), conditions and verdict of
 * --verify (load_verify.c), and main (load.c). One thread.
 */

#include "loadgen/client/client.h"
#include "loadgen/client/stats_sink.h"
#include "loadgen/engine/worker.h"
#include "loadgen/net/address.h"
#include "loadgen/report/output.h"
#include "loadgen/verify/verify.h"
#include "loadgen/workload/workload_spec.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    QN_LOAD_ADDRESSES_MAX = 64,
    QN_LOAD_THREADS_MAX = 256,
    QN_LOAD_PIDS_MAX = 1024,
};

struct qn_load {
    /* options */
    const char *to[QN_LOAD_ADDRESSES_MAX];
    uint32_t to_count;
    const char *read_from[QN_LOAD_ADDRESSES_MAX];
    uint32_t read_from_count;
    struct qn_workload_spec spec;
    struct qn_workload_opts workload_opts;
    uint64_t connections;
    uint64_t pipeline;
    uint64_t threads;
    uint64_t requests;
    uint64_t repeat;
    uint64_t seed;
    double seconds;
    double interval; /* seconds */
    double warmup;
    bool preload;
    bool resp3;
    struct qn_output output;
    bool spread_requests;
    bool poisson;
    bool cas_given;
    bool verify;
    bool mixed_by_default; /* no option set the sizes of values */
    const char *rate_text; /* NULL: closed loop */
    const char *pin_text;
    pid_t pid[QN_LOAD_PIDS_MAX];
    uint32_t pid_count;
    /* derived from the options */
    struct qn_workload workload;
    struct qn_address address[QN_LOAD_ADDRESSES_MAX]; /* to, then read_from */
    uint32_t address_count;
    struct qn_rate rate;          /* its times are set by qn_rate_fit */
    int cpu[QN_LOAD_THREADS_MAX]; /* CPU of each thread; -1: not pinned */
    char addresses[1024];
    pthread_barrier_t start;
    struct qn_recorder recorder[QN_LOAD_THREADS_MAX];
    struct qn_worker_plan plan;
    struct qn_worker *worker[QN_LOAD_THREADS_MAX];
    pthread_t thread[QN_LOAD_THREADS_MAX];
    bool unanswered[QN_LOAD_ADDRESSES_MAX]; /* did not answer before the run */
    /* results */
    struct qn_report_opened opened[QN_LOAD_ADDRESSES_MAX];
    uint64_t server_cpu_ns; /* during the measurement, all runs */
    uint64_t own_cpu_ns;
    double measured;                /* measured seconds, all runs */
    struct qn_stats *total;         /* of all runs */
    struct qn_report_second *run;   /* [repeat] each run as a whole */
    uint32_t run_count;             /* finished runs */
    struct qn_report_second warmed; /* warm-up of the first run */
    struct qn_verify_result verified;
    struct qn_report_verdict verdict; /* no name: not checked */
    struct qn_stats_sink_recent *recent;
    struct qn_op_stats *sum; /* scratch */
};

/** Set the defaults, parse and check the options, and resolve the addresses.
 *  @param exit_status  Filled when the result is false.
 *  @return true to continue, false to exit. */
bool qn_load_options(struct qn_load *l, int argc, char **argv,
                     int *exit_status);

/** Choose the CPUs according to --pin. @return QN_OK; QN_EINVAL after an error
 *  line. */
int qn_load_pin(struct qn_load *l);

/** Maximum of operations that --verify records, 40 bytes each. */
#define QN_LOAD_VERIFY_MAX UINT64_C(50000000)

/** Mean bytes of all values if --verify chooses the sizes. */
#define QN_LOAD_VERIFY_BYTES (UINT64_C(256) << 20)

/** Check the other options for --verify. @return QN_OK; QN_EINVAL after an
 *  error line. */
int qn_load_check_verify(struct qn_load *l);

/** Find the form of compare-and-set that the server accepts, if the mix has
 *  one. Blocks. @return QN_OK; QN_EINVAL after an error line if the server
 *  accepts none. */
int qn_load_probe_cas(struct qn_load *l);

/** Check the recorded history: fills `verified` and `verdict`, prints
 *  violations. @return the exit status: 0; 1 after an error line if it could
 *  not be checked; else qn_verify_status. */
int qn_load_judge(struct qn_load *l);

/** Print the verdict, if there is one. */
void qn_load_print_verdict(const struct qn_load *l);

/** Allocate what the runs need. @return QN_OK; QN_ENOMEM; QN_EIO after an error
 *  line. Call qn_load_clean_up in any case. */
int qn_load_prepare(struct qn_load *l);

/** Preload, then warm up and measure --repeat times. @return QN_OK, also after
 *  Ctrl-C; an error, after an error line, if no run was completed. */
int qn_load_run(struct qn_load *l);

void qn_load_clean_up(struct qn_load *l);

#endif
