#ifndef QN_TESTS_PROCESS_HOST_BOARD_H
#define QN_TESTS_PROCESS_HOST_BOARD_H

/* What the hosts of a run share beside the group: a file with robust mutexes,
 * of which each thread of each host has locked one, and what children of fork
 * have found. */

#include <stdint.h>

enum { BOARD_PLACES = 3, BOARD_THREADS = 3 };

/* @param place  Of this host. */
void board_open(const char *path, uint32_t place);

/* The calling thread locks the mutex of that number. Its former owner may have
 * ended with it. Once per thread. */
void board_lock(uint32_t thread);

/* Mutexes of the threads of a host, as another host finds them. */
struct board_mutexes {
    uint32_t locked, /* by a thread that lives */
        dead,        /* by one that has ended: they are free now */
        free;        /* not at all; a mask */
};
struct board_mutexes board_try(uint32_t place);

/* A child was forked there, and has found nothing wrong. */
void board_child(uint32_t where);
/* Mask of such places, in all hosts so far. */
uint64_t board_children(void);

#endif
