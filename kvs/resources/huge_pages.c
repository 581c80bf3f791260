/*
 * Huge pages by the C library (huge_pages.h).
 *
 * Why not madvise: the heap grows by sbrk, in steps that only malloc knows, and
 * huge pages would have to be asked for again after each step. Why not mallopt:
 * it has no such parameter (glibc 2.36).
 *
 * The process is named after the executed path, so that path is the program's
 * own and not /proc/self/exe. The variable stays set, which ends the recursion.
 */
#include "kvs/resources/huge_pages.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODE     "/sys/kernel/mm/transparent_hugepage/enabled"
#define VARIABLE "GLIBC_TUNABLES"
#define TUNABLE  "glibc.malloc.hugetlb"

bool qn_huge_pages_wanted(const char *mode, const char *now, char *value,
                          size_t cap)
{
    if (strstr(mode, "[madvise]") == NULL) {
        return false;
    }
    if (now == NULL) {
        now = "";
    }
    int n = snprintf(value, cap, "%s%s" TUNABLE "=1", now,
                     now[0] != '\0' ? ":" : "");
    return strstr(now, TUNABLE "=") == NULL && n > 0 && (size_t)n < cap;
}

void qn_huge_pages_request(char **argv)
{
    char mode[64] = "";
    char value[4096];
    char self[PATH_MAX];
    FILE *f = fopen(MODE, "re");
    if (f != NULL) {
        size_t n = fread(mode, 1, sizeof mode - 1, f);
        mode[n] = '\0';
        fclose(f);
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0 &&
        qn_huge_pages_wanted(mode, getenv(VARIABLE), value, sizeof value) &&
        setenv(VARIABLE, value, 1) == 0) {
        self[n] = '\0';
        execv(self, argv);
    }
}
