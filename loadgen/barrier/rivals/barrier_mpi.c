/*
 * MPI_Barrier as a team of `quoin bench barrier` (barrier_control.h). Ranks
 * sleep between rounds, as all members do.
 *
 *     mpirun -n MEMBERS barrier_mpi CONTROL MEMBERS
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/mman.h>

#include "loadgen/barrier/barrier_control.h"

static void pass(void *arg)
{
    (void)arg;
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank, fd;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fd = argc == 3 ? open(argv[1], O_RDWR) : -1;
    struct qn_barrier_control *c =
        fd < 0
            ? MAP_FAILED
            : mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (c == MAP_FAILED) {
        fprintf(stderr, "barrier_mpi: run by quoin bench barrier\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
        return 2;
    }
    qn_barrier_bind((uint32_t)rank);
    pass(NULL); /* the first one makes connections */
    while (qn_barrier_next(c, (uint32_t)rank)) {
        qn_barrier_round(c, (uint32_t)rank, pass, NULL);
    }
    MPI_Finalize();
    return 0;
}
