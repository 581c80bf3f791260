/*
 * A program with cancellation, which must keep the barriers of libgomp. With
 * OMP_CANCELLATION=true.
 *
 * No barrier here is in a region that is cancelled while a thread may be in it:
 * with libgomp such a thread may wait for ever, if the compiler did not know
 * that the barrier is in that region.
 */
#include <omp.h>

#include "tests/process/openmp/case.h"

#define THREADS 4

static int cancelled(void)
{
    int wrong = omp_get_cancellation() == 0;
#pragma omp parallel num_threads(THREADS)
    {
        if (omp_get_thread_num() == 0) {
#pragma omp cancel parallel
        }
#pragma omp barrier
#pragma omp atomic
        wrong++;
    }
#pragma omp parallel num_threads(THREADS)
    {
#pragma omp barrier
    }
    return wrong;
}

int main(int argc, char **argv)
{
    static const struct openmp_case all[] = {
        {"cancelled", cancelled, THREADS},
    };
    return openmp_cases(all, 1, argc, argv);
}
