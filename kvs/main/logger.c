/*
 * A ring of finished lines. Who logs copies a line behind its end; the thread
 * writes the first one, without the lock, and then takes it out: so an empty
 * ring means that all is written.
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
    pthread_cond_t more;  /* a line has come */
    pthread_cond_t fewer; /* one was written */
    bool runs;            /* the thread writes; under the lock, as the rest */
    uint32_t head, tail;  /* the first line, behind the last one; they wrap */
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
    (void)written; /* where else could one complain? */
}

/* Under the lock: until the ring is empty, for END_S at most. */
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

/* All that came before the gap is written. Under the lock, which is let go
 * meanwhile. */
static void tell_dropped(void)
{
    char text[80];
    struct line l;
    snprintf(text, sizeof text,
             "%llu lines were dropped: this log was not written fast enough",
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
        line_write(l); /* nobody touches it while it is in the ring */
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
    pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are the loop's */
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
