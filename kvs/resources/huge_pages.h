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
 * The C library can ask for them, if it is told before it has started: by the
 * environment variable GLIBC_TUNABLES. So a program sets it and executes itself
 * once more. Whoever has named `glibc.malloc.hugetlb` there has decided already
 * (0: small pages), and where the system gives huge pages to everybody, or to
 * nobody, there is nothing to ask for.
 *
 * Threads: qn_huge_pages_request, the only one of the process; the other, any.
 */

#include <stdbool.h>
#include <stddef.h>

/**
 * What GLIBC_TUNABLES has to be, so that malloc asks for huge pages.
 *
 * @param mode   What /sys/kernel/mm/transparent_hugepage/enabled says: the
 *               choice in brackets ("always [madvise] never").
 * @param now    GLIBC_TUNABLES as it is; NULL: not set.
 * @param value  [cap] Filled if the answer is true: what is there, and
 *               `glibc.malloc.hugetlb=1` behind it.
 * @return False: nothing to ask for, or no room for it.
 */
bool qn_huge_pages_wanted(const char *mode, const char *now, char *value,
                          size_t cap);

/**
 * Execute this program again, with the same arguments and the same process id,
 * if malloc is to be told something by that. Returns if it is not, or if this
 * cannot be done: small pages work as well.
 *
 * @param argv  As main got it. Nothing is open yet but the standard files.
 */
void qn_huge_pages_request(char **argv);

#endif
