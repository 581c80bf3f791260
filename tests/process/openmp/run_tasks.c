/* A program with tasks, which must keep the barriers of libgomp. */
#include "tests/process/openmp/case.h"
#include "tests/process/openmp/tasks.h"

int main(int argc, char **argv)
{
    static const struct openmp_case all[] = {
        {"tasks", openmp_tasks, 2 * (1 + 2 + 3 + 4)},
    };
    return openmp_cases(all, 1, argc, argv);
}
