#ifndef QN_TESTS_PROCESS_HOST_UNCHANGED_H
#define QN_TESTS_PROCESS_HOST_UNCHANGED_H

/* What a guest leaves as it was: handlers, mask and flags of signals, the
 * timer, the environment, what is called at exit, the mask of files, the
 * thread's list of robust mutexes. */

/* Once, before the first group. */
void unchanged_begin(void);
/* Of the process and the calling thread. Wrong: the process ends with 1. */
void unchanged_check(void);

/* Of a thread: once, before its group. */
void unchanged_thread_begin(void);
void unchanged_thread_check(void);

#endif
