/* A plugin with a parallel region, linked with libquoin-gomp.so. */
#include <omp.h>

#include "tests/process/openmp/plugin.h"

#define THREADS 3

int openmp_plugin(void)
{
    static int value[THREADS];
    int wrong = 0;
#pragma omp parallel num_threads(THREADS) reduction(+ : wrong)
    {
        value[omp_get_thread_num()] = 1;
#pragma omp barrier
        for (int i = 0; i < omp_get_num_threads(); i++) {
            wrong += value[i] != 1;
        }
    }
    return wrong;
}
