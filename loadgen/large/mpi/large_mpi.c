/*
 * The operations of `quoin bench coll` with MPI, in the same turns: JSON on
 * stdout, from rank 0.
 *
 *     large_mpi [--seconds S] [--quick] BYTES ...
 *
 * Sizes are multiples of 4; the sum of a reduction is of words of 32 bits. Rank
 * i binds itself to the i-th core it may use, modulo their number, as the
 * members of quoin are, so the ranks are to be started without a binding.
 */
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZES_MAX   16
#define TURNS_MAX   100
#define ROW_S       20e-3 /* of a row in a turn */
#define COUNT_MOST  5000
#define TURNS_LEAST 10

enum { BROADCAST, REDUCE, SCATTER, GATHER, OPERATIONS };

static const char *const names[] = {"broadcast", "reduce", "scatter", "gather"};

static int rank, ranks, size[SIZES_MAX], sizes;
static uint32_t *in, *out;
static unsigned long long wrong;
static double ns[TURNS_MAX][SIZES_MAX * OPERATIONS];

static uint32_t word_of(int r, int i)
{
    return ((uint32_t)i + 1) * 0x9e3779b9u + (uint32_t)r * 0x10001u;
}

static void operate(int op, int bytes)
{
    const int words = bytes / 4;
    switch (op) {
    case BROADCAST:
        MPI_Bcast(rank == 0 ? in : out, words, MPI_UINT32_T, 0, MPI_COMM_WORLD);
        break;
    case REDUCE:
        MPI_Reduce(in, out, words, MPI_UINT32_T, MPI_SUM, 0, MPI_COMM_WORLD);
        break;
    case SCATTER:
        MPI_Scatter(in, words, MPI_UINT32_T, out, words, MPI_UINT32_T, 0,
                    MPI_COMM_WORLD);
        break;
    default:
        MPI_Gather(in, words, MPI_UINT32_T, out, words, MPI_UINT32_T, 0,
                   MPI_COMM_WORLD);
    }
}

/* The last word of the result. */
static bool is_right(int op, int bytes)
{
    const int last = bytes / 4 - 1;
    uint32_t sum = 0;
    for (int r = 0; r < ranks; r++) {
        sum += word_of(r, last);
    }
    switch (op) {
    case BROADCAST:
        return rank == 0 || out[last] == word_of(0, last);
    case REDUCE:
        return rank != 0 || out[last] == sum;
    case SCATTER:
        return out[last] == word_of(0, rank * (last + 1) + last);
    default:
        return rank != 0 ||
               out[ranks * (last + 1) - 1] == word_of(ranks - 1, last);
    }
}

static void one_turn(const int *count, double *to)
{
    for (int row = 0; row < sizes * OPERATIONS; row++) {
        const int op = row % OPERATIONS, bytes = size[row / OPERATIONS];
        MPI_Barrier(MPI_COMM_WORLD);
        const double before = MPI_Wtime();
        for (int i = 0; i < count[row]; i++) {
            operate(op, bytes);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        to[row] = (MPI_Wtime() - before) / count[row] * 1e9;
        wrong += !is_right(op, bytes);
    }
}

/* As large_bench.c does. */
static int enough(double took_ns, double seconds, bool quick)
{
    const double part = seconds / TURNS_LEAST / (sizes * OPERATIONS);
    const double row_s = part < ROW_S ? part : ROW_S;
    const double count = row_s * 1e9 / (took_ns < 1 ? 1 : took_ns);
    return quick || count < 1   ? 1
           : count > COUNT_MOST ? COUNT_MOST
                                : (int)count;
}

/* @return the turns. */
static int run(double seconds, bool quick)
{
    enum { ROWS = SIZES_MAX * OPERATIONS };
    int orders[1 + ROWS];
    double warm_up[ROWS];
    const double *last = warm_up;
    for (int row = 0; row < ROWS; row++) {
        orders[1 + row] = 1;
    }
    one_turn(orders + 1, warm_up);
    const double stop = MPI_Wtime() + seconds;
    for (int turn = 0;; turn++) {
        for (int row = 0; row < sizes * OPERATIONS; row++) {
            orders[1 + row] = enough(last[row], seconds, quick);
        }
        orders[0] =
            turn == (quick ? 1 : TURNS_MAX) || (turn > 0 && MPI_Wtime() > stop);
        MPI_Bcast(orders, 1 + ROWS, MPI_INT, 0, MPI_COMM_WORLD);
        if (orders[0]) {
            return turn;
        }
        one_turn(orders + 1, ns[turn]);
        last = ns[turn];
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(int turns)
{
    printf("{\"members\": %d, \"turns\": %d, \"rows\": [", ranks, turns);
    for (int row = 0; row < sizes * OPERATIONS; row++) {
        double v[TURNS_MAX];
        for (int t = 0; t < turns; t++) {
            v[t] = ns[t][row];
        }
        qsort(v, (size_t)turns, sizeof v[0], by_value);
        printf("%s{\"operation\": \"%s\", \"bytes\": %d, \"ns\": {\"median\": "
               "%.1f, \"p10\": %.1f, \"p90\": %.1f}}",
               row > 0 ? ", " : "", names[row % OPERATIONS],
               size[row / OPERATIONS], v[(turns - 1) / 2], v[(turns - 1) / 10],
               v[(turns - 1) * 9 / 10]);
    }
    puts("]}");
}

static void bind_self(void)
{
    cpu_set_t may, own;
    if (sched_getaffinity(0, sizeof may, &may) != 0) {
        return; /* some containers refuse it; then it is not bound */
    }
    int nth = rank % CPU_COUNT(&may);
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, &may) || nth-- > 0) {
        cpu++;
    }
    CPU_ZERO(&own);
    CPU_SET(cpu, &own);
    (void)sched_setaffinity(0, sizeof own, &own);
}

/* @return false: no memory. */
static bool take_buffers(void)
{
    size_t most = sizeof *in;
    for (int i = 0; i < sizes; i++) {
        most = (size_t)size[i] > most ? (size_t)size[i] : most;
    }
    in = malloc(most * (size_t)ranks);
    out = malloc(most * (size_t)ranks);
    for (size_t i = 0; in != NULL && i < most / 4 * (size_t)ranks; i++) {
        in[i] = word_of(rank, (int)i);
    }
    return in != NULL && out != NULL;
}

int main(int argc, char **argv)
{
    double seconds = 2;
    bool quick = false, usage = false;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            quick = true;
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            seconds = atof(argv[++i]);
        } else if (sizes < SIZES_MAX && atoi(argv[i]) >= 4) {
            size[sizes++] = atoi(argv[i]) & ~3;
        } else {
            usage = true;
        }
    }
    if (usage || sizes == 0 || !take_buffers()) {
        fprintf(stderr, "large_mpi: [--seconds S] [--quick] BYTES ..., at most "
                        "16 sizes from 4 on; or there is no memory\n");
        MPI_Finalize();
        return 2;
    }
    bind_self();
    const int turns = run(seconds, quick);
    unsigned long long all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM,
                  MPI_COMM_WORLD);
    if (rank == 0) {
        report(turns);
    }
    free(in);
    free(out);
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}
