/*
 * The operations of `quoin bench collectives` with MPI, in the same turns: what
 * they cost a program that calls them. JSON on stdout, from rank 0.
 *
 *     collectives_mpi [--seconds S] [--turns N] [--size BYTES] [--quick]
 *
 * MPI has no acknowledged broadcast and no commit. An acknowledged broadcast is
 * the cheapest that it can be made of here, which differs with the number of
 * ranks: a broadcast, then a barrier, a reduction of one byte to the root, or a
 * gather of one. All three are measured. A commit is a broadcast of the
 * question, then an all-reduction of the votes.
 *
 * Rank i binds itself to the i-th core it may use, modulo their number, as the
 * nodes of quoin are, so the ranks are to be started without a binding.
 */
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURNS_MAX   1000
#define SIZE_MAX_   4096
#define RANKS_MAX   64
#define FORM_S      2e-3 /* of one form in a turn */
#define COUNT_FIRST 16
#define COUNT_LEAST 8
#define COUNT_MOST  20000
#define COUNT_QUICK 12

static int rank, ranks, size = 64;
static uint64_t done, wrong;
static uint8_t message[SIZE_MAX_];

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static uint64_t sum_of_all(void)
{
    const uint64_t n = (uint64_t)ranks;
    return n * (n + 1) / 2 * (done + 1);
}

static uint64_t contribution(int r)
{
    return (uint64_t)(r + 1) * (done + 1);
}

static void allreduce(void)
{
    const uint64_t part = contribution(rank);
    uint64_t sum = 0;
    MPI_Allreduce(&part, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    wrong += sum != sum_of_all();
}

static void reduce(void)
{
    const uint64_t part = contribution(rank);
    uint64_t sum = 0;
    MPI_Reduce(&part, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    wrong += rank == 0 && sum != sum_of_all();
}

static void gather(void)
{
    const uint64_t part = contribution(rank);
    uint64_t all[RANKS_MAX];
    MPI_Gather(&part, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    wrong += rank == 0 && all[ranks - 1] != contribution(ranks - 1);
}

static void broadcast(void)
{
    uint64_t word = done;
    if (rank == 0) {
        memcpy(message, &word, sizeof word);
    }
    MPI_Bcast(message, size, MPI_BYTE, 0, MPI_COMM_WORLD);
    memcpy(&word, message, sizeof word);
    wrong += word != done;
}

static void ack_barrier(void)
{
    broadcast();
    MPI_Barrier(MPI_COMM_WORLD);
}

static void ack_reduce(void)
{
    const uint8_t part = 1;
    uint8_t all = 0;
    broadcast();
    MPI_Reduce(&part, &all, 1, MPI_BYTE, MPI_BAND, 0, MPI_COMM_WORLD);
    wrong += rank == 0 && all != 1;
}

static void ack_gather(void)
{
    const uint8_t part = 1;
    uint8_t all[RANKS_MAX];
    broadcast();
    MPI_Gather(&part, 1, MPI_BYTE, all, 1, MPI_BYTE, 0, MPI_COMM_WORLD);
    wrong += rank == 0 && all[ranks - 1] != 1;
}

static void commit(void)
{
    const int vote =
        done % 8 != 0 || done / 8 % (uint64_t)ranks != (uint64_t)rank;
    int all = 0;
    uint8_t question = 1;
    MPI_Bcast(&question, 1, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&vote, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    wrong += all != (done % 8 != 0);
}

static const struct form {
    const char *name;
    void (*run)(void);
} forms[] = {{"barrier", barrier},       {"allreduce", allreduce},
             {"reduce", reduce},         {"gather", gather},
             {"broadcast", broadcast},   {"ack_barrier", ack_barrier},
             {"ack_reduce", ack_reduce}, {"ack_gather", ack_gather},
             {"commit", commit}};

enum { FORMS = sizeof forms / sizeof forms[0] };

static double ns[TURNS_MAX][FORMS];

static void one_turn(const int *count, double *to)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double before = MPI_Wtime();
    for (int f = 0; f < FORMS; f++) {
        for (int i = 0; i < count[f]; i++) {
            forms[f].run();
            done++;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        const double now = MPI_Wtime();
        to[f] = (now - before) / count[f] * 1e9;
        before = now;
    }
}

static int enough(double took_ns, bool quick)
{
    const double count = FORM_S * 1e9 / (took_ns < 1 ? 1 : took_ns);
    return quick                 ? COUNT_QUICK
           : count < COUNT_LEAST ? COUNT_LEAST
           : count > COUNT_MOST  ? COUNT_MOST
                                 : (int)count;
}

/* @return the turns. */
static int run(int turns, double seconds, bool quick)
{
    int orders[1 + FORMS] = {0};
    double warm_up[FORMS];
    const double *last = warm_up;
    const double stop = MPI_Wtime() + seconds;
    for (int f = 0; f < FORMS; f++) {
        orders[1 + f] = COUNT_FIRST;
    }
    one_turn(orders + 1, warm_up);
    int turn = 0;
    for (;; turn++) {
        for (int f = 0; f < FORMS; f++) {
            orders[1 + f] = enough(last[f], quick);
        }
        orders[0] = turn == turns || (turn > 0 && MPI_Wtime() > stop);
        MPI_Bcast(orders, 1 + FORMS, MPI_INT, 0, MPI_COMM_WORLD);
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

static void report(int turns, uint64_t all_wrong)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int len;
    MPI_Get_library_version(version, &len);
    version[strcspn(version, ",\"\\\n")] = '\0';
    printf(
        "{\"library\": \"%s\", \"nodes\": %d, \"turns\": %d, \"wrong\": %llu, "
        "\"operations\": [",
        version, ranks, turns, (unsigned long long)all_wrong);
    for (int f = 0; f < FORMS; f++) {
        static double v[TURNS_MAX];
        for (int t = 0; t < turns; t++) {
            v[t] = ns[t][f];
        }
        qsort(v, (size_t)turns, sizeof v[0], by_value);
        printf("%s{\"operation\": \"%s\", \"ns\": {\"median\": %.1f, \"p10\": "
               "%.1f, \"p90\": %.1f}}",
               f > 0 ? ", " : "", forms[f].name, v[(turns - 1) / 2],
               v[(turns - 1) / 10], v[(turns - 1) * 9 / 10]);
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

int main(int argc, char **argv)
{
    double seconds = 2;
    int turns = TURNS_MAX;
    bool quick = false, usage = false;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--quick") == 0) {
            quick = true;
            continue;
        }
        i++;
        if (strcmp(argv[i - 1], "--seconds") == 0) {
            seconds = atof(value);
        } else if (strcmp(argv[i - 1], "--turns") == 0) {
            turns = atoi(value);
        } else if (strcmp(argv[i - 1], "--size") == 0) {
            size = atoi(value);
        } else {
            usage = true;
        }
    }
    if (usage || turns < 1 || turns > TURNS_MAX || size < 8 ||
        size > SIZE_MAX_ || ranks < 2 || ranks > RANKS_MAX) {
        fprintf(stderr,
                "collectives_mpi: 2 to 64 ranks, --seconds S, --turns N "
                "(1000), --size BYTES (8 to 4096), --quick\n");
        MPI_Finalize();
        return 2;
    }
    bind_self();
    turns = run(quick ? 2 : turns, seconds, quick);
    uint64_t all_wrong = 0;
    MPI_Reduce(&wrong, &all_wrong, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        report(turns, all_wrong);
    }
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
