#ifndef QN_TESTS_SUPPORT_FOLDER_H
#define QN_TESTS_SUPPORT_FOLDER_H

/** A folder created by a test, with files and no folders in it. */

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/** Removes it with its files. @return the number of files; -1: it still
 *  exists. */
static inline int folder_remove(const char *path)
{
    int files = 0;
    DIR *d = opendir(path);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            files += unlinkat(dirfd(d), e->d_name, 0) == 0;
        }
    }
    if (d != NULL) {
        closedir(d);
    }
    return rmdir(path) == 0 ? files : -1;
}

#endif
