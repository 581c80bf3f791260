/*
 * A process that follows the changes of store.c from outside of the group, and
 * keeps them in a journal: each as a frame (outlet.h), in order.
 *
 *     follow JOURNAL SOCKET...
 *
 * It reads at the first socket that answers, and goes on at the next one when
 * that member ends: positions are the same at all of them. It stores its
 * position after its work, in JOURNAL.at. So, killed and started again, it has
 * each change at least once; or the journal says with a gap what was not to be
 * had any more, and has a copy of the items behind it. What must be kept over
 * a loss of power needs fsync before the position is stored.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "examples/outlet.h"

enum { PAUSE_MS = 5, KEEP_BYTES = 64 << 10 };

static int journal, place;

static struct {
    struct qn_feed_position at; /* the next change */
    uint64_t bytes;             /* of the journal then */
} kept = {.at = {.slot = 1}};

static void must(bool good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

/* Seldom: what it costs is that more is read again. */
static void keep(void)
{
    static uint64_t at;
    if (kept.bytes - at < KEEP_BYTES) {
        return;
    }
    at = kept.bytes;
    must(pwrite(place, &kept, sizeof kept, 0) == sizeof kept, "the position");
}

/* Whole frames that were written after the position was stored stay, and come
 * again. A part of one does not. */
static void recover(const char *path)
{
    char name[4096];
    struct frame f;
    snprintf(name, sizeof name, "%s.at", path);
    journal = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    place = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    must(journal >= 0 && place >= 0, path);
    (void)pread(place, &kept, sizeof kept, 0); /* nothing: it is the first */
    const uint64_t end = (uint64_t)lseek(journal, 0, SEEK_END);
    while (kept.bytes + sizeof f <= end &&
           pread(journal, &f, sizeof f, (off_t)kept.bytes) == sizeof f &&
           kept.bytes + sizeof f + f.len <= end) {
        kept.bytes += sizeof f + f.len;
    }
    must(ftruncate(journal, (off_t)kept.bytes) == 0, path);
}

/* The whole frames at the begin of `b`. @return their bytes. */
static size_t work(const char *b, size_t have)
{
    size_t done = 0;
    struct frame f;
    while (have - done >= sizeof f) {
        memcpy(&f, b + done, sizeof f);
        if (have - done < sizeof f + f.len) {
            break;
        }
        done += sizeof f + f.len;
        kept.at = f.kind != FRAME_GAP ? f.to : kept.at; /* its copy comes */
    }
    must(pwrite(journal, b, done, (off_t)kept.bytes) == (ssize_t)done,
         "the journal");
    kept.bytes += done;
    return done;
}

/* Until the member ends. */
static void follow(int from)
{
    size_t have = 0, room = 1 << 16;
    char *b = malloc(room);
    ssize_t n = 0;
    if (send(from, &kept.at, sizeof kept.at, MSG_NOSIGNAL) > 0) {
        while (b != NULL && (n = recv(from, b + have, room - have, 0)) > 0) {
            have += (size_t)n;
            const size_t done = work(b, have);
            have -= done;
            memmove(b, b + done, have);
            keep();
            if (have == room) {
                room *= 2;
                b = realloc(b, room);
            }
        }
    }
    must(b != NULL, "memory");
    free(b);
}

static int reach(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(fd >= 0, "socket");
    if (connect(fd, (struct sockaddr *)&a, sizeof a) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: follow JOURNAL SOCKET...\n");
        return 2;
    }
    recover(argv[1]);
    for (int i = 2;; i = i + 1 < argc ? i + 1 : 2) {
        int fd = reach(argv[i]);
        if (fd >= 0) {
            follow(fd);
            close(fd);
        }
        (void)poll(NULL, 0, PAUSE_MS); /* it may end each time at once */
    }
}
