/*
 * A rendezvous (rendezvous.h): locks of one file, of which only the places
 * count. What is locked says all, and ends with the process that has locked it.
 *
 *     byte node < QN_NODES_MAX  of the layer above (qn_rendezvous_locks)
 *     byte ENTRY                by the process that founds, or takes a seat
 *     GROUP + group             shared, by all members of one group
 *     SEATS + seat * SPAN + token  by the process that has that seat
 *
 * So a number is told by its place: the kernel names the first byte that is
 * locked in a range. `group` and `token` are random numbers below SPAN. The
 * file itself has a magic and a version only; a socket has none.
 *
 * All seats are taken by the owner of ENTRY, and the founder draws the group
 * while it has it, when no member lives. A member locks the group before its
 * seat, and gives it back before: so a group that is locked is that of every
 * living member. A guest reads it before it looks whether the member that it
 * asks lives, and compares when it takes its seat: if it has changed, or no
 * member lives any more, what the guest was told is of a group that has ended.
 *
 * That no member lives is one question to the kernel about all seats: asked one
 * by one, they might have been taken and left meanwhile.
 *
 * The socket of a member has the abstract name that is made of its token. It
 * listens before it locks its seat.
 *
 * The kernel knows processes, and tells none of its own locks. So what the
 * members of one process have locked is in a list, by `guard`, and what ends
 * for one of them is given back byte by byte. They share a descriptor: another
 * one would end all locks of the process when it is closed. It is close-on-exec
 * also where the host's socket is not: so exec(2) ends the locks.
 *
 * Why not locks of open descriptions (F_OFD_SETLK), which know no process: a
 * child that has inherited the description would hold the seat of its dead
 * parent.
 *
 * Why not listen at the name itself: an abstract socket lives as long as any
 * process has it open, a child of a dead member for instance, and a socket in a
 * folder outlives all; neither says that a member lives.
 */
#include "core/rendezvous/rendezvous.h"

#include <assert.h>
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
#define VERSION UINT64_C(2)
#define NO_SEAT UINT32_MAX

#define ENTRY ((off_t)QN_NODES_MAX) /* its byte */
#define SPAN  ((off_t)1 << 40)      /* bytes */
#define GROUP SPAN
#define SEATS (2 * SPAN)

static_assert(sizeof(off_t) == 8, "the spans fit");

enum { PATH_MAX_BYTES = 256, FILE_BYTES = 16 };

struct qn_rendezvous {
    struct qn_rendezvous *next; /* of this process */
    dev_t device;
    ino_t inode;
    int file;       /* that of all of this process at that place; -1 */
    int listener;   /* -1 */
    qn_node_t seat; /* NO_SEAT */
    off_t token;    /* of the seat */
    bool founds;    /* it has ENTRY */
    off_t group;    /* of the member that was asked; with a seat: its own */
    pid_t owner;    /* the process that has opened it */
};

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct qn_rendezvous *all; /* of this process, by `guard` */

/* By `guard`: the next one of this process at that place, from `r` on. */
static struct qn_rendezvous *at_place(struct qn_rendezvous *r, dev_t device,
                                      ino_t inode)
{
    while (r != NULL && (r->file < 0 || r->device != device ||
                         r->inode != inode || r->owner != getpid())) {
        r = r->next;
    }
    return r;
}

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

/* To write beyond the limit would be a signal (SIGXFSZ), which ends a host. */
static bool may_be_written(void)
{
    struct rlimit l;
    return getrlimit(RLIMIT_FSIZE, &l) != 0 || l.rlim_cur == RLIM_INFINITY ||
           l.rlim_cur >= (rlim_t)FILE_BYTES;
}

/* Two that make the file write the same. */
static int check_file(struct qn_rendezvous *r)
{
    const uint64_t want[2] = {MAGIC, VERSION};
    uint64_t have[2];
    struct stat st;
    static_assert(sizeof want == FILE_BYTES, "");
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

/* By `guard`. @return false: no other one of this process is at that place. */
static bool share_file(struct qn_rendezvous *r, const struct stat *st)
{
    close_inherited();
    const struct qn_rendezvous *like = at_place(all, st->st_dev, st->st_ino);
    r->device = st->st_dev;
    r->inode = st->st_ino;
    r->file = like != NULL ? like->file : -1;
    return like != NULL;
}

/* By `guard`. */
static int open_file(struct qn_rendezvous *r, const char *path)
{
    struct stat st;
    if (lstat(path, &st) == 0 && share_file(r, &st)) {
        return QN_OK;
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

/* By `guard`. */
static int copy_socket(struct qn_rendezvous *r, int socket_fd)
{
    struct stat st;
    if (fstat(socket_fd, &st) != 0 || !S_ISSOCK(st.st_mode)) {
        return QN_EINVAL;
    }
    if (!share_file(r, &st)) {
        r->file = fcntl(socket_fd, F_DUPFD_CLOEXEC, 0);
    }
    return r->file >= 0 ? QN_OK : error_of(errno);
}

/* By `guard`, and out of the list: it is closed with the last one that has
 * it. */
static void close_file(const struct qn_rendezvous *r)
{
    const struct qn_rendezvous *i = all;
    while (i != NULL && i->file != r->file) {
        i = i->next;
    }
    if (i == NULL && r->file >= 0) {
        close(r->file);
    }
}

static struct qn_rendezvous *make(void)
{
    struct qn_rendezvous *r = malloc(sizeof *r);
    if (r != NULL) {
        *r = (struct qn_rendezvous){
            .file = -1, .listener = -1, .seat = NO_SEAT, .owner = getpid()};
    }
    return r;
}

/* `err`: of opening its file. With `guard`, which is given back. */
static int opened(struct qn_rendezvous **out, struct qn_rendezvous *r, int err)
{
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

int qn_rendezvous_open(struct qn_rendezvous **out, const char *name)
{
    char path[PATH_MAX_BYTES];
    int err = path_of(name, path);
    if (err != QN_OK) {
        return err;
    }
    struct qn_rendezvous *r = make();
    if (r == NULL) {
        return QN_ENOMEM;
    }
    pthread_mutex_lock(&guard);
    return opened(out, r, open_file(r, path));
}

int qn_rendezvous_open_at(struct qn_rendezvous **out, int socket_fd)
{
    struct qn_rendezvous *r = make();
    if (r == NULL) {
        return QN_ENOMEM;
    }
    pthread_mutex_lock(&guard);
    return opened(out, r, copy_socket(r, socket_fd));
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
static int lock(const struct qn_rendezvous *r, off_t byte, int type)
{
    struct flock l = bytes_of(byte, 1, type);
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

/* Another process has locked something of that range. @param l  Filled then. */
static bool locked(const struct qn_rendezvous *r, off_t first, off_t count,
                   struct flock *l)
{
    *l = bytes_of(first, count, F_WRLCK);
    return fcntl(r->file, F_GETLK, l) == 0 && l->l_type != F_UNLCK;
}

static off_t span_of(qn_node_t seat)
{
    return SEATS + (off_t)seat * SPAN;
}

/* By `guard`, as all below: the one of this process that has that seat, or
 * any. */
static const struct qn_rendezvous *seated_here(const struct qn_rendezvous *r,
                                               qn_node_t seat)
{
    const struct qn_rendezvous *i = at_place(all, r->device, r->inode);
    while (i != NULL &&
           (i->seat == NO_SEAT || (seat != NO_SEAT && i->seat != seat))) {
        i = at_place(i->next, r->device, r->inode);
    }
    return i;
}

static bool founds_here(const struct qn_rendezvous *r)
{
    const struct qn_rendezvous *i = at_place(all, r->device, r->inode);
    while (i != NULL && !i->founds) {
        i = at_place(i->next, r->device, r->inode);
    }
    return i != NULL;
}

/* A process has that seat. @param pid  Filled then; 0: of another pid
 * namespace. @param token  Likewise. */
static bool is_living(const struct qn_rendezvous *r, qn_node_t seat, pid_t *pid,
                      off_t *token)
{
    const struct qn_rendezvous *here = seated_here(r, seat);
    struct flock l;
    if (here != NULL) {
        *pid = getpid();
        *token = here->token;
        return true;
    }
    if (!locked(r, span_of(seat), SPAN, &l)) {
        return false;
    }
    *pid = QN_MAX(l.l_pid, 0);
    *token = l.l_start - span_of(seat);
    return true;
}

static bool any_living(const struct qn_rendezvous *r)
{
    struct flock l;
    return seated_here(r, NO_SEAT) != NULL ||
           locked(r, SEATS, QN_NODES_MAX * SPAN, &l);
}

/* @return false: no member lives, or one is about to end. */
static bool group_of(const struct qn_rendezvous *r, off_t *group)
{
    const struct qn_rendezvous *here = seated_here(r, NO_SEAT);
    struct flock l;
    if (here != NULL) {
        *group = here->group;
        return true;
    }
    if (!locked(r, GROUP, SPAN, &l)) {
        return false;
    }
    *group = l.l_start - GROUP;
    return true;
}

uint64_t qn_rendezvous_living(const struct qn_rendezvous *r)
{
    uint64_t living = 0;
    pid_t pid;
    off_t token;
    pthread_mutex_lock(&guard);
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        living |= (uint64_t)is_living(r, i, &pid, &token) << i;
    }
    pthread_mutex_unlock(&guard);
    return living;
}

int qn_rendezvous_locks(const struct qn_rendezvous *r)
{
    return r->file;
}

/* Of a founder, or of a member; the group before the seat. */
static void give_back(struct qn_rendezvous *r)
{
    const qn_node_t seat = r->seat;
    if (r->owner != getpid()) {
        return;
    }
    if (r->founds) {
        unlock(r, ENTRY);
    }
    r->founds = false;
    r->seat = NO_SEAT;
    if (seat == NO_SEAT) {
        return;
    }
    if (seated_here(r, NO_SEAT) == NULL) {
        unlock(r, GROUP + r->group);
    }
    unlock(r, span_of(seat) + r->token);
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
    give_back(r);
    *at = r->next;
    close_file(r);
    pthread_mutex_unlock(&guard);
    if (r->listener >= 0) {
        close(r->listener);
    }
    free(r);
}

/* ---- sockets ------------------------------------------------------------- */

static socklen_t address_of(off_t token, struct sockaddr_un *a)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    int len = snprintf(a->sun_path + 1, sizeof a->sun_path - 1,
                       "quoin-rendezvous-%016llx", (unsigned long long)token);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)len);
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
static int connect_to(pid_t pid, off_t token)
{
    struct sockaddr_un a;
    pid_t peer;
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

/* A process that founds has no seat yet. */
static int enter_as_guest(struct qn_rendezvous *r, uint64_t skip,
                          qn_node_t *seat, int *connection)
{
    int err = QN_EAGAIN;
    pid_t pid;
    off_t token;
    if (!group_of(r, &r->group)) {
        return QN_EAGAIN;
    }
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        int fd = (skip >> i & 1) == 0 && is_living(r, i, &pid, &token)
                     ? connect_to(pid, token)
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

/* @return QN_OK; QN_EBUSY; QN_EIO. */
static int take_entry(const struct qn_rendezvous *r)
{
    return founds_here(r) ? QN_EBUSY : lock(r, ENTRY, F_WRLCK);
}

static int enter(struct qn_rendezvous *r, uint64_t skip, qn_node_t *seat,
                 int *connection)
{
    if (!r->founds && !any_living(r)) {
        int err = take_entry(r);
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

int qn_rendezvous_enter(struct qn_rendezvous *r, uint64_t skip, qn_node_t *seat,
                        int *connection)
{
    if (r->owner != getpid()) {
        return QN_EPERM;
    }
    QN_ASSERT(r->seat == NO_SEAT);
    pthread_mutex_lock(&guard);
    int err = enter(r, skip, seat, connection);
    pthread_mutex_unlock(&guard);
    return err;
}

/* Below SPAN - 1: so no byte of one range is next to one of another, which the
 * kernel would make one lock. */
static int random_place(off_t *place)
{
    uint64_t word;
    if (getrandom(&word, sizeof word, 0) != (ssize_t)sizeof word) {
        return QN_EIO;
    }
    *place = (off_t)(word % (uint64_t)(SPAN - 1));
    return QN_OK;
}

/* @return a socket that listens at the address of *token, which is filled. */
static int listen_somewhere(off_t *token)
{
    struct sockaddr_un a;
    int err = random_place(token);
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
static int check_group(struct qn_rendezvous *r)
{
    off_t group;
    if (r->founds) {
        return random_place(&r->group);
    }
    return any_living(r) && group_of(r, &group) && group == r->group
               ? QN_OK
               : QN_ESTALE;
}

/* With ENTRY: nothing of `seat` is locked. */
static int lock_seat(struct qn_rendezvous *r, qn_node_t seat)
{
    int err = lock(r, GROUP + r->group, F_RDLCK);
    if (err == QN_OK) {
        err = lock(r, span_of(seat) + r->token, F_WRLCK);
    }
    if (err == QN_OK) {
        r->seat = seat;
    } else if (seated_here(r, NO_SEAT) == NULL) {
        unlock(r, GROUP + r->group);
    }
    return err;
}

/* With ENTRY. */
static int take_seat(struct qn_rendezvous *r, qn_node_t seat)
{
    pid_t pid;
    off_t token;
    int err = check_group(r);
    if (err == QN_OK && is_living(r, seat, &pid, &token)) {
        err = QN_EBUSY;
    }
    int fd = err == QN_OK ? listen_somewhere(&r->token) : err;
    if (fd < 0) {
        return fd;
    }
    err = lock_seat(r, seat);
    if (err != QN_OK) {
        close(fd);
        return err;
    }
    r->listener = fd;
    return QN_OK;
}

static int seat_with_entry(struct qn_rendezvous *r, qn_node_t seat)
{
    int err = r->founds ? QN_OK : take_entry(r);
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

int qn_rendezvous_seat(struct qn_rendezvous *r, qn_node_t seat)
{
    QN_ASSERT(seat < QN_NODES_MAX);
    if (r->owner != getpid()) {
        return QN_EPERM;
    }
    if (r->seat != NO_SEAT) {
        return QN_EEXIST;
    }
    pthread_mutex_lock(&guard);
    int err = seat_with_entry(r, seat);
    pthread_mutex_unlock(&guard);
    return err;
}

int qn_rendezvous_reach(struct qn_rendezvous *r, qn_node_t seat,
                        int *connection)
{
    pid_t pid;
    off_t token;
    QN_ASSERT(seat < QN_NODES_MAX);
    if (r->owner != getpid()) {
        return QN_EPERM;
    }
    pthread_mutex_lock(&guard);
    const bool lives = r->seat != seat && is_living(r, seat, &pid, &token);
    pthread_mutex_unlock(&guard);
    if (!lives) {
        return QN_ENOENT;
    }
    int fd = connect_to(pid, token);
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
