#ifndef QN_KVS_RESOURCES_HUGE_PAGES_H
#define QN_KVS_RESOURCES_HUGE_PAGES_H

/**
 * Huge pages for the heap, which is where the store is.
 *
 * A lookup in a large store misses the TLB as often as the cache, and a replica
 * that ends gives back each of its pages. With pages of 2 MiB a server of a
 * million small keys answers 10 % more requests with pipelines of 16, and a
 * dead replica of 330 MB is gone after 2 ms and not 27 (docs/measurements.md).
 *
 * The C library asks for them if the environment variable GLIBC_TUNABLES says
 * so before the library starts. The program therefore sets the variable and
 * executes itself once more. If it names `glibc.malloc.hugetlb` already, the
 * user has decided (0: small pages). Where the system gives huge pages to all
 * processes, or to none, there is nothing to ask for.
 *
 * Threads: qn_huge_pages_request is called while the process has one thread;
 * qn_huge_pages_wanted is pure, any thread.
 */

#include <stdbool.h>
#include <stddef.h>

/**
 * The value of GLIBC_TUNABLES that makes malloc ask for huge pages.
 *
 * @param mode   What /sys/kernel/mm/transparent_hugepage/enabled says: the
 *               choice in brackets ("always [madvise] never").
 * @param now    GLIBC_TUNABLES as it is; NULL: not set.
 * @param value  [cap] Filled if the result is true: `now` with
 *               `glibc.malloc.hugetlb=1` appended.
 * @return False: nothing to ask for, or no room for it.
 */
bool qn_huge_pages_wanted(const char *mode, const char *now, char *value,
                          size_t cap);

/**
 * Execute this program again, with the same arguments and the same process id,
 * if that makes malloc ask for huge pages. Returns if it would not, or if the
 * program cannot be executed: small pages work as well.
 *
 * @param argv  As main got it. Only the standard files are open yet.
 */
void qn_huge_pages_request(char **argv);

#endif
