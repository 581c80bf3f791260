#ifndef QN_TESTS_PROCESS_HOST_SAY_H
#define QN_TESTS_PROCESS_HOST_SAY_H

/* What a host says: a line to standard output, or what is wrong to standard
 * error. Any thread; also a forked child. */

void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The process ends with 1. */
void say_wrong(const char *what, int err) __attribute__((noreturn));

#endif
