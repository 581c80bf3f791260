/*
 * A ring of finished lines. A thread that logs copies its line to the end of
 * the ring. The logger's thread writes the first line, without the lock, and
 * then removes it: an empty ring therefore means that all lines are written.
 */
#include "kvs/main/logger.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/bits.h"
#include "core/base/err.h"

#define END_S 1

struct line {
    size_t len;
    char text[QN_LOGGER_BYTES];
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;  /* a line was added */
    pthread_cond_t fewer; /* one was written */
    bool runs;            /* the thread writes; under the lock, like the
                             fields below */
    uint32_t head, tail;  /* first line, end of the last one; they wrap */
    uint64_t dropped;
    struct line line[QN_LOGGER_LINES];
} logger = {.lock = PTHREAD_MUTEX_INITIALIZER,
            .more = PTHREAD_COND_INITIALIZER};

static void line_make(struct line *l, enum qn_log_level level, const char *text)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &tm);
    int n =
        snprintf(l->text, sizeof l->text,
                 "%02d:%02d:%02d.%03ld quoind %s: %s\n", tm.tm_hour, tm.tm_min,
                 tm.tm_sec, now.tv_nsec / 1000000, names[level], text);
    l->len = QN_MIN((size_t)n, sizeof l->text - 1);
}

/* One write per line, so that lines of several processes do not mix. */
static void line_write(const struct line *l)
{
    ssize_t written = write(STDERR_FILENO, l->text, l->len);
    (void)written; /* there is no other place to report the error */
}

/* Wait until the ring is empty, END_S at most. Under the lock. */
static void drain(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += END_S;
    int late = 0;
    while (logger.head != logger.tail && late == 0) {
        late = pthread_cond_timedwait(&logger.fewer, &logger.lock, &until);
    }
}

static void log_line(void *ctx, enum qn_log_level level, const char *text)
{
    (void)ctx;
    struct line l;
    line_make(&l, level, text);
    pthread_mutex_lock(&logger.lock);
    if (level == QN_LOG_ERROR) {
        drain(); /* so that there is room */
    }
    bool direct = !logger.runs;
    bool full = logger.tail - logger.head == QN_LOGGER_LINES;
    if (!direct && (full || logger.dropped > 0)) { /* the gap is one */
        logger.dropped++;
    } else if (!direct) {
        struct line *to = &logger.line[logger.tail++ % QN_LOGGER_LINES];
        to->len = l.len;
        memcpy(to->text, l.text, l.len);
        pthread_cond_signal(&logger.more);
    }
    if (level == QN_LOG_ERROR) {
        drain();
    }
    pthread_mutex_unlock(&logger.lock);
    if (direct) {
        line_write(&l);
    }
}

/* Write all lines before the gap. Under the lock, which is released
 * meanwhile. */
static void tell_dropped(void)
{
    char text[80];
    struct line l;
    snprintf(
        text, sizeof text,
        "%llu log lines were dropped: standard error accepts them too slowly",
        (unsigned long long)logger.dropped);
    logger.dropped = 0;
    pthread_mutex_unlock(&logger.lock);
    line_make(&l, QN_LOG_WARN, text);
    line_write(&l);
    pthread_mutex_lock(&logger.lock);
}

static void *run(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&logger.lock);
    for (;;) {
        while (logger.head == logger.tail) {
            pthread_cond_wait(&logger.more, &logger.lock);
        }
        const struct line *l = &logger.line[logger.head % QN_LOGGER_LINES];
        pthread_mutex_unlock(&logger.lock);
        line_write(l); /* no other thread changes it while it is in the ring */
        pthread_mutex_lock(&logger.lock);
        logger.head++;
        if (logger.head == logger.tail && logger.dropped > 0) {
            tell_dropped();
        }
        pthread_cond_broadcast(&logger.fewer);
    }
    return NULL;
}

void qn_logger_init(enum qn_log_level lowest)
{
    qn_log_set(log_line, NULL, lowest);
}

int qn_logger_start(void)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&logger.fewer, &monotonic);
    pthread_condattr_destroy(&monotonic);

    pthread_attr_t detached;
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* the loop's thread handles
                                                  signals */
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    logger.runs = pthread_create(&thread, &detached, run, NULL) == 0;
    pthread_attr_destroy(&detached);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return logger.runs ? QN_OK : QN_ENOMEM;
}

void qn_logger_end(void)
{
    pthread_mutex_lock(&logger.lock);
    drain();
    logger.runs = logger.runs && logger.head != logger.tail;
    pthread_mutex_unlock(&logger.lock);
}
