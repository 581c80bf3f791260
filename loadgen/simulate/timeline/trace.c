/*
 * Recording, and the trace file. The picture is in trace_svg.c.
 *
 * In the trace file each node is a thread. An access that moves a line is a
 * span; a read of another node's line also has an arrow from that node, which
 * the format draws between spans of the same id.
 */
#include "loadgen/simulate/timeline/trace.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"

#define ROOM_FIRST 1024u

void qn_trace_init(struct qn_trace *t)
{
    *t = (struct qn_trace){.until = QN_PS_NEVER};
}

void qn_trace_fini(struct qn_trace *t)
{
    free(t->event);
    *t = (struct qn_trace){0};
}

void qn_trace_begin(struct qn_trace *t, qn_ps_t from, qn_ps_t until)
{
    t->count = 0;
    t->left_out = 0;
    t->from = from;
    t->until = until;
}

static bool make_room(struct qn_trace *t)
{
    if (t->count < t->room) {
        return true;
    }
    size_t room = QN_MIN(QN_MAX(2 * t->room, ROOM_FIRST), QN_TRACE_MAX);
    struct qn_timed_event *event =
        room > t->room ? realloc(t->event, room * sizeof *event) : NULL;
    if (event == NULL) {
        return false;
    }
    t->event = event;
    t->room = room;
    return true;
}

static bool shows(const struct qn_timed_event *e)
{
    return e->kind != QN_TIMED_ACCESS || e->transfer != QN_TRANSFER_HIT;
}

void qn_trace_add(struct qn_trace *t, const struct qn_timed_event *e)
{
    if (!shows(e) || e->until <= t->from || e->from >= t->until) {
        return;
    }
    if (!make_room(t)) {
        t->left_out++;
        return;
    }
    t->event[t->count++] = *e;
}

/* ---- trace file ---- */

static const char *name_of(const struct qn_timed_event *e)
{
    static const char *const mark[] = {
#define X(name, text) text,
        QN_MARK_MAP(X)
#undef X
    };
    static const char *const device[] = {
#define X(name, text) text,
        QN_DEVICE_MAP(X)
#undef X
    };
    switch (e->kind) {
    case QN_TIMED_ACCESS:
        return e->transfer == QN_TRANSFER_READ    ? "read"
               : e->transfer == QN_TRANSFER_WRITE ? "write"
                                                  : "first use";
    case QN_TIMED_MARK:
        return mark[e->mark];
    case QN_TIMED_WORK:
        return "work";
    case QN_TIMED_PAUSED:
        return "paused";
    case QN_TIMED_PARKED:
        return "parked";
    case QN_TIMED_RANG:
        return "ring";
    case QN_TIMED_STOPPED:
        return "stopped";
    case QN_TIMED_KILLED:
        return "killed";
    case QN_TIMED_ENDED:
        return "ended";
    case QN_TIMED_DEVICE:
        return device[e->device];
    case QN_TIMED_BLOCKED:
        return "blocked";
    }
    return "";
}

static double us(const struct qn_trace *t, qn_ps_t at)
{
    return (double)(QN_MAX(at, t->from) - t->from) / 1e6;
}

/* @return false: the stream has failed, or no memory. */
static bool put(FILE *to, json_t *object, bool *first)
{
    bool good = object != NULL && fputs(*first ? "\n" : ",\n", to) != EOF &&
                json_dumpf(object, to, JSON_COMPACT) == 0;
    *first = false;
    json_decref(object);
    return good;
}

static bool put_event(const struct qn_trace *t, size_t i, FILE *to, bool *first)
{
    const struct qn_timed_event *e = &t->event[i];
    double from = us(t, e->from);
    bool good = put(
        to,
        json_pack("{s:s,s:s,s:i,s:i,s:f,s:f,s:{s:I}}", "name", name_of(e), "ph",
                  "X", "pid", 0, "tid", (int)e->node, "ts", from, "dur",
                  us(t, e->until) - from, "args", "line", (json_int_t)e->line),
        first);
    if (good && e->kind == QN_TIMED_ACCESS && e->transfer == QN_TRANSFER_READ &&
        e->peer != QN_SIM_NO_NODE) {
        good = put(to,
                   json_pack("{s:s,s:s,s:I,s:i,s:i,s:f}", "name", "line", "ph",
                             "s", "id", (json_int_t)i, "pid", 0, "tid",
                             (int)e->peer, "ts", from),
                   first) &&
               put(to,
                   json_pack("{s:s,s:s,s:s,s:I,s:i,s:i,s:f}", "name", "line",
                             "ph", "f", "bp", "e", "id", (json_int_t)i, "pid",
                             0, "tid", (int)e->node, "ts", us(t, e->until)),
                   first);
    }
    return good;
}

int qn_trace_json(const struct qn_trace *t, uint32_t nodes,
                  const uint32_t *name, FILE *to)
{
    bool first = true;
    bool good = fputs("{\"traceEvents\":[", to) != EOF;
    for (uint32_t v = 0; v < nodes && good; v++) {
        char text[64];
        snprintf(text, sizeof text, "node %u, core %u", v, name[v]);
        good = put(to,
                   json_pack("{s:s,s:s,s:i,s:i,s:{s:s}}", "name", "thread_name",
                             "ph", "M", "pid", 0, "tid", (int)v, "args", "name",
                             text),
                   &first);
    }
    for (size_t i = 0; i < t->count && good; i++) {
        good = put_event(t, i, to, &first);
    }
    good = good && fputs("\n],\"displayTimeUnit\":\"ns\"}\n", to) != EOF;
    return good && fflush(to) == 0 ? QN_OK : QN_EIO;
}
