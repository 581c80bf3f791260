/*
 * GOMP's barrier as a team of `quoin bench barrier` (barrier_control.h): a
 * parallel region in which the threads wait for rounds.
 *
 *     barrier_gomp CONTROL MEMBERS
 */
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "loadgen/barrier/barrier_control.h"

static void pass(void *arg)
{
    (void)arg;
#pragma omp barrier
}

int main(int argc, char **argv)
{
    const int members = argc == 3 ? atoi(argv[2]) : 0;
    const int fd = members > 0 ? open(argv[1], O_RDWR) : -1;
    struct qn_barrier_control *c =
        fd < 0
            ? MAP_FAILED
            : mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (c == MAP_FAILED) {
        fprintf(stderr, "barrier_gomp: run by quoin bench barrier\n");
        return 2;
    }
#pragma omp parallel num_threads(members)
    {
        const uint32_t self = (uint32_t)omp_get_thread_num();
        qn_barrier_bind(self);
        while (qn_barrier_next(c, self)) {
            qn_barrier_round(c, self, pass, NULL);
        }
    }
    return 0;
}
