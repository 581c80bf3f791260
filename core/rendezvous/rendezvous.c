/*
 * A rendezvous (rendezvous.h).
 *
 *     file   0 .. 15        magic and version
 *            16 .. 23       group: a random number
 *            24 + 8 * seat  token of the seat, or of one that had it before
 *     locks  byte `seat`    by the process that has it
 *            byte ENTRY     by the process that founds, or takes a seat
 *
 * All seats are taken by the owner of ENTRY, and the founder writes the group
 * while it has it, when no member lives. So the group in the file is that of
 * every living member. A guest reads it before it looks whether the member
 * that it asks lives, and compares when it takes its seat: if it has changed,
 * or no member lives any more, what the guest was told is of a group that has
 * ended.
 *
 * That no member lives is one question to the kernel about all seats: asked one
 * by one, they might have been taken and left meanwhile.
 *
 * A token is a random number; the socket of a member has the abstract name that
 * is made of it. A member listens, locks its byte, and then writes its token,
 * which only the owner of the lock does. In between a guest finds the token of
 * an earlier member, and no socket or one of another process: it comes again.
 *
 * Why not listen at the name itself: an abstract socket lives as long as any
 * process has it open, a child of a dead member for instance, and a socket in a
 * folder outlives all; neither says that a member lives.
 */
#include "core/rendezvous/rendezvous.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

#define MAGIC   UINT64_C(0x7a656472656e6f71) /* "qonerdez" */
#define VERSION UINT64_C(1)
#define ENTRY   ((off_t)QN_NODES_MAX) /* its byte */
#define NO_SEAT UINT32_MAX

enum { PATH_MAX_BYTES = 256 };

struct qn_rendezvous {
    struct qn_rendezvous *next; /* of this process */
    dev_t device;
    ino_t inode;
    int file;
    int listener;   /* -1 */
    qn_node_t seat; /* NO_SEAT */
    bool founds;    /* it has ENTRY */
    uint64_t group; /* of the member that was asked */
    pid_t owner;    /* the process that has opened it */
};

/* A second descriptor of a file would end the locks of the first when it is
 * closed. */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct qn_rendezvous *all; /* of this process, by `guard` */

/* ---- the file ------------------------------------------------------------ */

static bool is_word(const char *s)
{
    while (isalnum((unsigned char)*s) || strchr(".-_", *s) != NULL) {
        if (*s == '\0') {
            return true;
        }
        s++;
    }
    return false;
}

static int path_of(const char *name, char *path)
{
    size_t len = strlen(name);
    if (len == 0 || len > QN_RENDEZVOUS_NAME_MAX) {
        return QN_EINVAL;
    }
    if (name[0] != '@') {
        memcpy(path, name, len + 1);
        return QN_OK;
    }
    if (len == 1 || !is_word(name + 1)) {
        return QN_EINVAL;
    }
    snprintf(path, PATH_MAX_BYTES, "/dev/shm/quoin-%u-%s", (unsigned)geteuid(),
             name + 1);
    return QN_OK;
}

static int error_of(int e)
{
    switch (e) {
    case ENOENT:
    case ENOTDIR:
        return QN_ENOENT;
    case EACCES:
    case EPERM:
    case EROFS:
        return QN_EPERM;
    case ELOOP: /* a link, perhaps of another user */
    case EISDIR:
    case ENXIO:
        return QN_ECORRUPT;
    case EMFILE:
    case ENFILE:
        return QN_EMFILE;
    case ENOMEM:
        return QN_ENOMEM;
    default:
        return QN_EIO;
    }
}

static void close_all(struct qn_rendezvous *r)
{
    if (r->file >= 0) {
        close(r->file); /* and with it, of the process that opened it, the
                           locks */
    }
    if (r->listener >= 0) {
        close(r->listener);
    }
    r->file = r->listener = -1;
}

/* What a forked child has inherited would end its own locks when it is closed
 * later. It may have closed it already and have another file under its number.
 * By `guard`. */
static void close_inherited(void)
{
    struct stat st;
    for (struct qn_rendezvous *r = all; r != NULL; r = r->next) {
        if (r->owner == getpid() || r->file < 0) {
            continue;
        }
        if (fstat(r->file, &st) == 0 && st.st_dev == r->device &&
            st.st_ino == r->inode) {
            close(r->file);
        }
        r->file = -1;
    }
}

/* By `guard`. */
static bool is_open(dev_t device, ino_t inode)
{
    for (const struct qn_rendezvous *r = all; r != NULL; r = r->next) {
        if (r->file >= 0 && r->device == device && r->inode == inode) {
            return true;
        }
    }
    return false;
}

#define GROUP_AT 16

static off_t token_at(qn_node_t seat)
{
    return GROUP_AT + 8 + 8 * (off_t)seat;
}

/* To write beyond the limit would be a signal (SIGXFSZ), which ends a host. */
static bool may_be_written(void)
{
    struct rlimit l;
    return getrlimit(RLIMIT_FSIZE, &l) != 0 || l.rlim_cur == RLIM_INFINITY ||
           l.rlim_cur >= (rlim_t)token_at(QN_NODES_MAX);
}

/* Two that make the file write the same. */
static int check_file(struct qn_rendezvous *r)
{
    const uint64_t want[2] = {MAGIC, VERSION};
    uint64_t have[2];
    struct stat st;
    if (fstat(r->file, &st) != 0) {
        return QN_EIO;
    }
    if (!S_ISREG(st.st_mode)) {
        return QN_ECORRUPT;
    }
    if (st.st_uid != geteuid()) {
        return QN_EPERM;
    }
    if (!may_be_written()) {
        return QN_EIO;
    }
    r->device = st.st_dev;
    r->inode = st.st_ino;
    if (st.st_size == 0) {
        return pwrite(r->file, want, sizeof want, 0) == (ssize_t)sizeof want
                   ? QN_OK
                   : QN_EIO;
    }
    return pread(r->file, have, sizeof have, 0) == (ssize_t)sizeof have &&
                   memcmp(have, want, sizeof want) == 0
               ? QN_OK
               : QN_ECORRUPT;
}

/* By `guard`. */
static int open_file(struct qn_rendezvous *r, const char *path)
{
    struct stat st;
    close_inherited();
    if (lstat(path, &st) == 0 && is_open(st.st_dev, st.st_ino)) {
        return QN_EEXIST;
    }
    r->file = open(
        path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
        0600);
    if (r->file < 0) {
        return error_of(errno);
    }
    int err = check_file(r);
    if (err != QN_OK) {
        close(r->file);
    }
    return err;
}

int qn_rendezvous_open(struct qn_rendezvous **out, const char *name)
{
    char path[PATH_MAX_BYTES];
    int err = path_of(name, path);
    if (err != QN_OK) {
        return err;
    }
    struct qn_rendezvous *r = malloc(sizeof *r);
    if (r == NULL) {
        return QN_ENOMEM;
    }
    *r = (struct qn_rendezvous){
        .listener = -1, .seat = NO_SEAT, .owner = getpid()};
    pthread_mutex_lock(&guard);
    err = open_file(r, path);
    if (err == QN_OK) {
        r->next = all;
        all = r;
    }
    pthread_mutex_unlock(&guard);
    if (err != QN_OK) {
        free(r);
        return err;
    }
    *out = r;
    return QN_OK;
}

void qn_rendezvous_close(struct qn_rendezvous *r)
{
    if (r == NULL) {
        return;
    }
    pthread_mutex_lock(&guard);
    struct qn_rendezvous **at = &all;
    while (*at != r) {
        at = &(*at)->next;
    }
    *at = r->next;
    close_all(r);
    pthread_mutex_unlock(&guard);
    free(r);
}

/* ---- locks --------------------------------------------------------------- */

static struct flock bytes_of(off_t first, off_t count, int type)
{
    return (struct flock){.l_type = (short)type,
                          .l_whence = SEEK_SET,
                          .l_start = first,
                          .l_len = count};
}

/* @return QN_OK; QN_EBUSY: another process has it; QN_EIO. */
static int lock(const struct qn_rendezvous *r, off_t byte)
{
    struct flock l = bytes_of(byte, 1, F_WRLCK);
    if (fcntl(r->file, F_SETLK, &l) == 0) {
        return QN_OK;
    }
    return errno == EAGAIN || errno == EACCES ? QN_EBUSY : QN_EIO;
}

static void unlock(const struct qn_rendezvous *r, off_t byte)
{
    struct flock l = bytes_of(byte, 1, F_UNLCK);
    (void)fcntl(r->file, F_SETLK, &l);
}

/* Another process has one of these seats. @param pid  Filled then; 0: of
 * another pid namespace. */
static bool is_living(const struct qn_rendezvous *r, qn_node_t first,
                      uint32_t count, pid_t *pid)
{
    struct flock l = bytes_of((off_t)first, (off_t)count, F_WRLCK);
    if (fcntl(r->file, F_GETLK, &l) != 0 || l.l_type == F_UNLCK) {
        return false;
    }
    *pid = QN_MAX(l.l_pid, 0);
    return true;
}

static bool any_living(const struct qn_rendezvous *r)
{
    pid_t pid;
    return is_living(r, 0, QN_NODES_MAX, &pid);
}

uint64_t qn_rendezvous_living(const struct qn_rendezvous *r)
{
    uint64_t living = 0;
    pid_t pid;
    if (r->seat != NO_SEAT && r->owner == getpid()) {
        living |= UINT64_C(1) << r->seat;
    }
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        living |= (uint64_t)is_living(r, i, 1, &pid) << i;
    }
    return living;
}

/* ---- sockets ------------------------------------------------------------- */

static socklen_t address_of(uint64_t token, struct sockaddr_un *a)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    int len = snprintf(a->sun_path + 1, sizeof a->sun_path - 1,
                       "quoin-rendezvous-%016llx", (unsigned long long)token);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)len);
}

/* @return false: there is no such word yet. */
static bool read_word(const struct qn_rendezvous *r, off_t at, uint64_t *word)
{
    return pread(r->file, word, sizeof *word, at) == (ssize_t)sizeof *word;
}

static bool write_word(const struct qn_rendezvous *r, off_t at, uint64_t word)
{
    return pwrite(r->file, &word, sizeof word, at) == (ssize_t)sizeof word;
}

static int socket_open(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 ? fd : error_of(errno);
}

/* The other end is a process of this user. `pid` filled. */
static bool is_of_this_user(int connection, pid_t *pid)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 ||
        peer.uid != geteuid()) {
        return false;
    }
    *pid = QN_MAX(peer.pid, 0);
    return true;
}

/* @return a connection to the process that has that seat; QN_EAGAIN: it cannot
 *  be had now; QN_EMFILE, QN_EIO. */
static int connect_to(const struct qn_rendezvous *r, qn_node_t seat, pid_t pid)
{
    struct sockaddr_un a;
    uint64_t token;
    pid_t peer;
    if (!read_word(r, token_at(seat), &token)) {
        return QN_EAGAIN;
    }
    int fd = socket_open();
    if (fd < 0) {
        return fd;
    }
    socklen_t len = address_of(token, &a);
    if (connect(fd, (struct sockaddr *)&a, len) == 0 &&
        is_of_this_user(fd, &peer) && peer == pid) {
        return fd;
    }
    close(fd); /* its backlog is full, or it has just ended */
    return QN_EAGAIN;
}

/* ---- coming in ----------------------------------------------------------- */

static int enter_as_guest(struct qn_rendezvous *r, uint64_t skip,
                          qn_node_t *seat, int *connection)
{
    int err = QN_EAGAIN;
    pid_t pid;
    if (!read_word(r, GROUP_AT, &r->group)) {
        return QN_EAGAIN;
    }
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        int fd = (skip >> i & 1) == 0 && is_living(r, i, 1, &pid)
                     ? connect_to(r, i, pid)
                     : QN_EAGAIN;
        if (fd >= 0) {
            *seat = i;
            *connection = fd;
            return QN_OK;
        }
        err = fd != QN_EAGAIN ? fd : err;
    }
    return err;
}

int qn_rendezvous_enter(struct qn_rendezvous *r, uint64_t skip, qn_node_t *seat,
                        int *connection)
{
    if (r->owner != getpid()) {
        return QN_EPERM;
    }
    QN_ASSERT(r->seat == NO_SEAT);
    if (!r->founds && !any_living(r)) {
        int err = lock(r, ENTRY);
        if (err != QN_OK) {
            return err == QN_EBUSY ? QN_EAGAIN : err;
        }
        r->founds = !any_living(r); /* another may have been faster */
        if (!r->founds) {
            unlock(r, ENTRY);
        }
    }
    if (r->founds) {
        *connection = -1;
        return QN_OK;
    }
    return enter_as_guest(r, skip, seat, connection);
}

static int random_word(uint64_t *word)
{
    return getrandom(word, sizeof *word, 0) == (ssize_t)sizeof *word ? QN_OK
                                                                     : QN_EIO;
}

/* @return a socket that listens at the address of *token, which is filled. */
static int listen_somewhere(uint64_t *token)
{
    struct sockaddr_un a;
    int err = random_word(token);
    int fd = err == QN_OK ? socket_open() : err;
    if (fd < 0) {
        return fd;
    }
    socklen_t len = address_of(*token, &a);
    if (bind(fd, (struct sockaddr *)&a, len) != 0 ||
        listen(fd, QN_RENDEZVOUS_GUESTS_MAX) != 0) {
        close(fd);
        return QN_EIO;
    }
    return fd;
}

/* With ENTRY: a new group, or is it still the one that was entered? */
static int check_group(const struct qn_rendezvous *r)
{
    uint64_t group;
    if (r->founds) {
        int err = random_word(&group);
        return err == QN_OK && !write_word(r, GROUP_AT, group) ? QN_EIO : err;
    }
    return any_living(r) && read_word(r, GROUP_AT, &group) && group == r->group
               ? QN_OK
               : QN_ESTALE;
}

/* With ENTRY. */
static int take_seat(struct qn_rendezvous *r, qn_node_t seat)
{
    uint64_t token;
    int err = check_group(r);
    int fd = err == QN_OK ? listen_somewhere(&token) : err;
    if (fd < 0) {
        return fd;
    }
    err = lock(r, (off_t)seat);
    if (err == QN_OK && !write_word(r, token_at(seat), token)) {
        unlock(r, (off_t)seat);
        err = QN_EIO;
    }
    if (err != QN_OK) {
        close(fd);
        return err;
    }
    r->listener = fd;
    r->seat = seat;
    return QN_OK;
}

int qn_rendezvous_seat(struct qn_rendezvous *r, qn_node_t seat)
{
    QN_ASSERT(seat < QN_NODES_MAX);
    if (r->owner != getpid()) {
        return QN_EPERM;
    }
    if (r->seat != NO_SEAT) {
        return QN_EEXIST;
    }
    int err = r->founds ? QN_OK : lock(r, ENTRY);
    if (err != QN_OK) {
        return err == QN_EBUSY ? QN_EAGAIN : err;
    }
    err = take_seat(r, seat);
    if (err == QN_OK || !r->founds) {
        unlock(r, ENTRY);
        r->founds = false;
    }
    return err;
}

int qn_rendezvous_reach(struct qn_rendezvous *r, qn_node_t seat,
                        int *connection)
{
    pid_t pid;
    QN_ASSERT(seat < QN_NODES_MAX);
    if (r->owner != getpid()) {
        return QN_EPERM;
    }
    if (!is_living(r, seat, 1, &pid)) {
        return QN_ENOENT;
    }
    int fd = connect_to(r, seat, pid);
    if (fd < 0) {
        return fd;
    }
    *connection = fd;
    return QN_OK;
}

int qn_rendezvous_fd(const struct qn_rendezvous *r)
{
    return r->listener;
}

int qn_rendezvous_accept(struct qn_rendezvous *r, int *connection, pid_t *pid)
{
    if (r->owner != getpid()) {
        return QN_EPERM;
    }
    for (int i = 0; r->listener >= 0 && i < QN_RENDEZVOUS_GUESTS_MAX; i++) {
        int fd = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0 && is_of_this_user(fd, pid)) {
            *connection = fd;
            return QN_OK;
        }
        if (fd >= 0) {
            close(fd);
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return errno == EAGAIN ? QN_EAGAIN : error_of(errno);
        }
    }
    return QN_EAGAIN;
}
