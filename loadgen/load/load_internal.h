#ifndef QN_LOADGEN_LOAD_LOAD_INTERNAL_H
#define QN_LOADGEN_LOAD_LOAD_INTERNAL_H

/**
 * `quoin load` itself: options (load_options.c), where its threads run
 * (load_pin.c), the run as the main thread sees it (load_run.c), what --verify
 * asks and finds (load_verify.c), and all that together (load.c). One thread.
 */

#include "loadgen/client/client.h"
#include "loadgen/client/collect.h"
#include "loadgen/engine/worker.h"
#include "loadgen/net/address.h"
#include "loadgen/report/output.h"
#include "loadgen/verify/verify.h"
#include "loadgen/workload/recipe.h"

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
    struct qn_recipe recipe;
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
    bool mixed_by_default; /* nobody named sizes of values */
    const char *rate_text; /* NULL: closed loop */
    const char *pin_text;
    pid_t pid[QN_LOAD_PIDS_MAX];
    uint32_t pid_count;
    /* made of them */
    struct qn_workload workload;
    struct qn_address address[QN_LOAD_ADDRESSES_MAX]; /* to, then read_from */
    uint32_t address_count;
    struct qn_rate rate;          /* fitted once the times are known */
    int cpu[QN_LOAD_THREADS_MAX]; /* to pin to; -1: nowhere */
    char addresses[1024];
    pthread_barrier_t start;
    struct qn_recorder recorder[QN_LOAD_THREADS_MAX];
    struct qn_worker_plan plan;
    struct qn_worker *worker[QN_LOAD_THREADS_MAX];
    pthread_t thread[QN_LOAD_THREADS_MAX];
    bool silent[QN_LOAD_ADDRESSES_MAX]; /* did not answer before the run */
    /* results */
    struct qn_report_opened opened[QN_LOAD_ADDRESSES_MAX];
    uint64_t server_cpu_ns; /* while it measured, all runs */
    uint64_t own_cpu_ns;
    double measured;                /* seconds, all runs */
    struct qn_stats *total;         /* of all runs */
    struct qn_report_second *run;   /* [repeat] each as a whole */
    uint32_t run_count;             /* of them, finished */
    struct qn_report_second warmed; /* warm-up of the first run */
    struct qn_verify_result verified;
    struct qn_report_verdict verdict; /* no name: not judged */
    struct qn_collect_recent *recent;
    struct qn_op_stats *sum; /* scratch */
};

/** Defaults, then options into `l`, checked; addresses are resolved.
 *  @param exit_status  Filled when the answer is false.
 *  @return true to go on, false to leave. */
bool qn_load_options(struct qn_load *l, int argc, char **argv,
                     int *exit_status);

/** Choose the CPUs that --pin asks for. @return QN_OK; QN_EINVAL, and a line
 * has said why. */
int qn_load_pin(struct qn_load *l);

/** Operations that --verify records, at most: 40 bytes each. */
#define QN_LOAD_VERIFY_MAX UINT64_C(50000000)

/** Bytes that all keys may hold on average, where --verify chooses sizes. */
#define QN_LOAD_VERIFY_BYTES (UINT64_C(256) << 20)

/** What --verify asks of the others. @return QN_OK; QN_EINVAL, and a line has
 *  said why. */
int qn_load_check_verify(struct qn_load *l);

/** How the server takes a compare-and-set, if one is asked for. Blocks on it.
 *  @return QN_OK; QN_EINVAL if it does not, and a line has said so. */
int qn_load_probe_cas(struct qn_load *l);

/** Judge what was recorded: fills `verified` and `verdict`, prints violations.
 *  @return the exit status: 0; 1 if it could not be judged, and a line has said
 *  why; as qn_verify_status. */
int qn_load_judge(struct qn_load *l);

/** One line, if it was judged. */
void qn_load_print_verdict(const struct qn_load *l);

/** Make what the runs need. @return QN_OK; QN_ENOMEM; QN_EIO, and a line has
 *  said why. qn_load_clean_up is still to be called. */
int qn_load_prepare(struct qn_load *l);

/** Preload, then warm up and measure as often as is wished. @return QN_OK, also
 *  after Ctrl-C; an error if not even one run was measured: a line has said
 *  so. */
int qn_load_run(struct qn_load *l);

void qn_load_clean_up(struct qn_load *l);

#endif
