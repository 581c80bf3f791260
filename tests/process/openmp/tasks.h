#ifndef QN_TESTS_OPENMP_TASKS_H
#define QN_TESTS_OPENMP_TASKS_H

/** Teams of 1 to 4, of two kinds, in which each thread passes one barrier;
 * behind it all tasks must be done. In the program `tasks`, and in late.so.
 *  @return how often they were not. */
int openmp_tasks(void);

#endif
