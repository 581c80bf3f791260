/*
 * Reading a flight recorder costs about 10 us; turning its events into lines
 * costs milliseconds. The command QUOIN EVENTS makes its lines in the loop,
 * because a client asked for them. After a death the loop has other work. So
 * the events are copied a second later, and a thread that ends by itself makes
 * lines and file of the copies: a slow disk delays no turn. A replica that
 * finds that the file is there already throws its copies away.
 *
 * A thread and not libuv's pool, whose four threads would stay for ever.
 */
#include "kvs/server/events.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "kvs/base/number.h"
#include "kvs/resp/reply.h"
#include "kvs/server/server.h"

#define LIVES_MAX (2 * QN_NODES_MAX) /* of each node: kept, and present */

/* Events of many incarnations. */
struct book {
    uint32_t count;
    struct qn_events_incarnation incarnation[LIVES_MAX];
};

/* ---- one incarnation
 * ------------------------------------------------------------ */

int qn_events_incarnation_read(struct qn_events_incarnation *l, qn_node_t node,
                               uint64_t incarnation, const void *flight)
{
    struct qn_flight_event *e = calloc(QN_FLIGHT_ENTRIES, sizeof *e);
    if (e == NULL) {
        return QN_ENOMEM;
    }
    *l = (struct qn_events_incarnation){
        .node = node,
        .incarnation = incarnation,
        .born_ms = qn_flight_recorder_started_ms(flight),
        .count = qn_flight_recorder_read(flight, QN_FLIGHT_ENTRIES, e),
        .event = e,
    };
    return QN_OK;
}

void qn_events_incarnation_free(struct qn_events_incarnation *l)
{
    free(l->event);
    *l = (struct qn_events_incarnation){0};
}

void qn_events_incarnation_print(const struct qn_events_incarnation *l,
                                 int64_t wall, struct qn_buf *out)
{
    const struct qn_event_source s = {l->node, l->incarnation, wall};
    for (uint32_t i = 0; i < l->count; i++) {
        char line[QN_EVENT_LINE_MAX];
        size_t n = qn_event_print(line, &s, &l->event[i]);
        qn_buf_append(out, line, n);
    }
}

/* ---- all that are known -------------------------------------------------- */

static void book_free(struct book *b)
{
    for (uint32_t i = 0; i < b->count; i++) {
        qn_events_incarnation_free(&b->incarnation[i]);
    }
    free(b);
}

/* An incarnation that there is no memory for is missing. */
static void book_add(struct book *b, const struct qn_member *m, qn_node_t node)
{
    uint64_t incarnation = 0;
    const void *flight = qn_member_flight(m, node, &incarnation);
    QN_ASSERT(b->count < LIVES_MAX);
    if (flight != NULL &&
        qn_events_incarnation_read(&b->incarnation[b->count], node, incarnation,
                                   flight) == QN_OK) {
        b->count++;
    }
}

static void book_add_kept(struct book *b,
                          const struct qn_events_incarnation *kept)
{
    struct qn_events_incarnation *l = &b->incarnation[b->count];
    QN_ASSERT(b->count < LIVES_MAX);
    QN_ASSERT(kept->count <= QN_FLIGHT_ENTRIES);
    if (kept->incarnation == 0) {
        return;
    }
    *l = *kept;
    l->event = malloc(QN_FLIGHT_ENTRIES * sizeof *l->event);
    if (l->event != NULL) {
        memcpy(l->event, kept->event, kept->count * sizeof *l->event);
        b->count++;
    }
}

/* Of one node, or of all. NULL: no memory. */
static struct book *book_make(const struct qn_server *s, qn_node_t first,
                              qn_node_t end)
{
    struct book *b = calloc(1, sizeof *b);
    for (qn_node_t i = first; b != NULL && i < end; i++) {
        book_add_kept(b, &s->events.kept[i]);
        book_add(b, s->member, i);
    }
    return b;
}

/* ---- the command --------------------------------------------------------- */

void qn_quoin_events(struct qn_conn *c, struct qn_cmd_call *call)
{
    const struct qn_server *s = c->fe->o.ctx;
    int64_t only = 0;
    struct qn_buf text = {0};
    if (call->argc > 3) {
        qn_reply_error(call->reply, "ERR syntax error");
        return;
    }
    if (call->argc > 2 && (!qn_number_parse(call->argv[2], &only) || only < 0 ||
                           only >= s->boot->nodes)) {
        qn_reply_error(call->reply, "ERR no such replica: there are 0 to %u",
                       s->boot->nodes - 1);
        return;
    }
    struct book *b = call->argc > 2
                         ? book_make(s, (qn_node_t)only, (qn_node_t)only + 1)
                         : book_make(s, 0, s->boot->nodes);
    int64_t wall = qn_event_wall();
    for (uint32_t i = 0; b != NULL && i < b->count; i++) {
        qn_events_incarnation_print(&b->incarnation[i], wall, &text);
    }
    if (b == NULL || text.oom) {
        qn_reply_error(call->reply, "ERR out of memory");
    } else {
        qn_reply_text(call->reply, call->proto, (const char *)text.data,
                      text.len);
    }
    qn_buf_free(&text);
    if (b != NULL) {
        book_free(b);
    }
}

/* ---- the file ------------------------------------------------------------ */

struct dump {
    qn_node_t self;
    qn_node_t ended;
    uint64_t incarnation;
    int64_t wall;
    struct book *book;
    char path[512];
};

void qn_events_file_name(char *to, size_t cap, const char *dir,
                         const struct qn_events_incarnation *l)
{
    time_t seconds = (time_t)(l->born_ms / 1000);
    struct tm tm = {0};
    char date[32] = "";
    (void)gmtime_r(&seconds, &tm);
    strftime(date, sizeof date, "%Y%m%dT%H%M%S", &tm);
    snprintf(to, cap, "%s/replica-%u-incarnation-%llu-%s.%03uZ.events", dir,
             (unsigned)l->node, (unsigned long long)l->incarnation, date,
             (unsigned)(l->born_ms % 1000));
}

static void dump_free(struct dump *d)
{
    book_free(d->book);
    free(d);
}

static bool dump_write(const struct dump *d, FILE *f)
{
    fprintf(f,
            "# quoind: what all replicas recorded, as replica %u saw it %u s "
            "after incarnation %llu of replica %u had ended.\n"
            "# `quoin events FILE` puts it in order.\n",
            (unsigned)d->self, (unsigned)(QN_EVENTS_DUMP_AFTER / QN_S),
            (unsigned long long)d->incarnation, (unsigned)d->ended);
    for (uint32_t i = 0; i < d->book->count; i++) {
        struct qn_buf text = {0};
        qn_events_incarnation_print(&d->book->incarnation[i], d->wall, &text);
        (void)fwrite(text.data, 1, text.len, f); /* ferror tells below */
        qn_buf_free(&text);
    }
    return !ferror(f);
}

static void *dump_run(void *arg)
{
    struct dump *d = arg;
    int fd = open(d->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 && errno == EEXIST) { /* another survivor was faster */
        dump_free(d);
        return NULL;
    }
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool ok = f != NULL && dump_write(d, f);
    ok = f != NULL && fclose(f) == 0 && ok;
    if (ok) {
        qn_log(QN_LOG_INFO,
               "replica %u: the events around the end of replica %u are in %s",
               d->self, d->ended, d->path);
    } else {
        qn_log(QN_LOG_WARN, "replica %u: cannot write %s: %s", d->self, d->path,
               strerror(errno));
    }
    dump_free(d);
    return NULL;
}

static void dump_start(struct dump *d)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are the loop's */
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int err = pthread_create(&thread, &attr, dump_run, d);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err != 0) {
        qn_log(QN_LOG_WARN, "replica %u: cannot write %s: %s", d->self, d->path,
               strerror(err));
        dump_free(d);
    }
}

/* The incarnation in the book that has ended, for the name of the file. */
static const struct qn_events_incarnation *book_find(const struct book *b,
                                                     qn_node_t node,
                                                     uint64_t incarnation)
{
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->incarnation[i].node == node &&
            b->incarnation[i].incarnation == incarnation) {
            return &b->incarnation[i];
        }
    }
    return NULL;
}

static void dump_make(const struct qn_server *s, qn_node_t ended,
                      uint64_t incarnation)
{
    struct dump *d = calloc(1, sizeof *d);
    struct book *b = book_make(s, 0, s->boot->nodes);
    const struct qn_events_incarnation *l =
        b != NULL ? book_find(b, ended, incarnation) : NULL;
    if (d == NULL || l == NULL) {
        qn_log(QN_LOG_WARN, "replica %u: the events of replica %u are lost",
               s->boot->self, ended);
        free(d);
        if (b != NULL) {
            book_free(b);
        }
        return;
    }
    *d = (struct dump){.self = s->boot->self,
                       .ended = ended,
                       .incarnation = incarnation,
                       .wall = qn_event_wall(),
                       .book = b};
    qn_events_file_name(d->path, sizeof d->path, s->boot->config->events_dir,
                        l);
    dump_start(d);
}

/* ---- open and close ------------------------------------------------------ */

void qn_server_events_note(struct qn_server *s, uint8_t kind, qn_node_t node,
                           uint64_t slot, uint64_t a)
{
    struct qn_driver_status st = {0};
    if (s->replica != NULL) {
        qn_driver_status(qn_replica_driver(s->replica), &st);
    }
    const struct qn_flight_event e = {.kind = kind,
                                      .node = (uint8_t)node,
                                      .epoch = (uint32_t)st.epoch,
                                      .slot = slot,
                                      .a = a};
    qn_events_note(qn_member_events(s->member), &e);
}

void qn_server_events_keep(struct qn_server_events *v, qn_node_t node,
                           uint64_t incarnation, const void *flight)
{
    struct qn_events_incarnation l;
    QN_ASSERT(node < QN_NODES_MAX);
    if (qn_events_incarnation_read(&l, node, incarnation, flight) == QN_OK) {
        qn_events_incarnation_free(&v->kept[node]);
        v->kept[node] = l;
    }
}

void qn_server_events_ended(struct qn_server_events *v, qn_node_t node,
                            uint64_t incarnation, qn_time_t now)
{
    QN_ASSERT(incarnation != 0);
    v->ended[node] = incarnation;
    if (v->dump_at == 0) {
        v->dump_at = now + QN_EVENTS_DUMP_AFTER;
    }
}

/* Snapshots are asked for, given, and given to the end. */
static void note_rejoin(struct qn_server *s)
{
    struct qn_state_transfer_status *was = &s->events.rejoin;
    struct qn_state_transfer_status is;
    qn_slot_t applied = qn_replica_applied(s->replica);
    qn_member_transfer_status(s->member, &is);
    if (is.attempts != was->attempts) {
        qn_server_events_note(s, QN_EVENT_SNAPSHOT_ASKED, is.donor, applied, 0);
    }
    if (is.given != was->given) {
        qn_server_events_note(s, QN_EVENT_SNAPSHOT_SERVED, was->joiner, applied,
                              0);
    }
    if (is.giving && (!was->giving || is.joiner != was->joiner)) {
        qn_server_events_note(s, QN_EVENT_SNAPSHOT_BEGUN, is.joiner, applied,
                              0);
    }
    *was = is;
}

qn_time_t qn_server_events_turn(struct qn_server *s, qn_time_t now)
{
    struct qn_server_events *v = &s->events;
    note_rejoin(s);
    if (v->dump_at == 0) {
        return QN_TIME_NEVER;
    }
    if (now < v->dump_at) {
        return v->dump_at;
    }
    v->dump_at = 0;
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        if (v->ended[i] != 0) {
            dump_make(s, i, v->ended[i]);
            v->ended[i] = 0;
        }
    }
    return QN_TIME_NEVER;
}

void qn_server_events_fini(struct qn_server_events *v)
{
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        qn_events_incarnation_free(&v->kept[i]);
    }
}
