/* A region with tasks, which its barrier must run. */
#include "tests/process/openmp/tasks.h"

#include <omp.h>

#include "core/base/atomic.h"

#define TASKS 40

/* One thread makes tasks and does not wait for them; behind the barrier all are
 * done. */
int openmp_tasks(void)
{
    int wrong = 0;
    for (int threads = 1; threads <= 4; threads++) {
        static qn_a32 done;
        qn_store(&done, 0, QN_SEQ_CST);
#pragma omp parallel num_threads(threads) reduction(+ : wrong)
        {
#pragma omp master
            for (int i = 0; i < TASKS; i++) {
#pragma omp task
                (void)qn_fetch_add(&done, 1, QN_SEQ_CST);
            }
#pragma omp barrier
            wrong += qn_load(&done, QN_SEQ_CST) != TASKS;
        }
    }
    return wrong;
}
