/* A region with tasks, which its barrier must run. */
#include "tests/process/openmp/tasks.h"

#include <omp.h>

#include "core/base/atomic.h"

#define TASKS 40

/* One thread makes tasks and does not wait for them; behind the barrier all are
 * done. */
static int make_and_meet(qn_a32 *done)
{
#pragma omp master
    for (int i = 0; i < TASKS; i++) {
#pragma omp task
        (void)qn_fetch_add(done, 1, QN_SEQ_CST);
    }
#pragma omp barrier
    return qn_load(done, QN_SEQ_CST) != TASKS;
}

/* Regions of the first kind begin by another function of libgomp. No other
 * region has found out that there are tasks. */
int openmp_tasks(void)
{
    int wrong = 0;
    for (int threads = 1; threads <= 4; threads++) {
        static qn_a32 done;
        qn_store(&done, 0, QN_SEQ_CST);
#pragma omp parallel num_threads(threads) reduction(task, + : wrong)
        wrong += make_and_meet(&done);
    }
    for (int threads = 1; threads <= 4; threads++) {
        static qn_a32 done;
        qn_store(&done, 0, QN_SEQ_CST);
#pragma omp parallel num_threads(threads) reduction(+ : wrong)
        wrong += make_and_meet(&done);
    }
    return wrong;
}
