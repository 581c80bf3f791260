/*
 * Names in the run-time folder.
 *
 * A name may be long and may contain any byte, but the address of a socket has
 * 107 bytes. A file is therefore named by the readable beginning of the name
 * and a hash of all of it.
 *
 * A lock is flock(2): it belongs to the descriptor, so every process that
 * inherits or receives the descriptor holds the lock, too. The kernel releases
 * it with the last of them, however that process ends. Files stay (rundir.h).
 */
#include "kvs/config/rundir.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/base/err.h"

#define SHOWN 24 /* bytes of a name that can be read */

static int folder(const struct qn_config *c, char *path, size_t cap)
{
    struct stat st;
    uid_t self = geteuid();
    int n = c->run_dir[0] != '\0' && strcmp(c->run_dir, "auto") != 0
                ? snprintf(path, cap, "%s", c->run_dir)
            : self == 0 ? snprintf(path, cap, "/run/quoin")
                        : snprintf(path, cap, "/tmp/quoin-%u", (unsigned)self);
    if (n < 0 || (size_t)n >= cap) {
        return QN_EMSGSIZE;
    }
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return QN_ENOENT;
    }
    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != self ||
        (st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return QN_EPERM;
    }
    return access(path, W_OK | X_OK) == 0 ? QN_OK : QN_ENOENT;
}

int qn_rundir_path(const struct qn_config *c, const char *name,
                   const char *role, char path[QN_RUNDIR_PATH_MAX])
{
    struct stat net = {0};
    char shown[SHOWN + 1];
    int err = folder(c, path, QN_RUNDIR_PATH_MAX);
    if (err != QN_OK) {
        return err;
    }
    (void)stat("/proc/self/ns/net", &net); /* if it is hidden: one name for
                                              all */
    snprintf(shown, sizeof shown, "%s", name);
    for (char *at = shown; *at != '\0'; at++) {
        *at = isalnum((unsigned char)*at) || *at == '.' ? *at : '-';
    }
    uint64_t hash = XXH3_64bits_withSeed(name, strlen(name), net.st_ino);
    size_t at = strlen(path);
    int n = snprintf(path + at, QN_RUNDIR_PATH_MAX - at, "/%s-%016llx.%s",
                     shown, (unsigned long long)hash, role);
    return n > 0 && (size_t)n < QN_RUNDIR_PATH_MAX - at ? QN_OK : QN_EMSGSIZE;
}

int qn_rundir_lock(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return errno == EMFILE || errno == ENFILE ? QN_EMFILE : QN_EIO;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        return fd;
    }
    int err = errno == EWOULDBLOCK ? QN_EADDRINUSE : QN_EIO;
    close(fd);
    return err;
}
