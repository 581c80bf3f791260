#ifndef QN_TESTS_SUPPORT_FDS_H
#define QN_TESTS_SUPPORT_FDS_H

/** Descriptors that this process has open, the one that counts them included:
 *  to be compared before and after. */

#include <dirent.h>

static inline int open_descriptors(void)
{
    int count = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d) != NULL) {
        count++;
    }
    closedir(d);
    return count;
}

#endif
