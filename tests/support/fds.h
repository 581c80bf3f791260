#ifndef QN_TESTS_SUPPORT_FDS_H
#define QN_TESTS_SUPPORT_FDS_H

/** Number of open descriptors of this process, including the one that counts
 *  them: to compare before and after. */

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
