/*
 * Lines are cut in place, so the table is an array of pointers into the texts,
 * and 100 000 events can be sorted in memory.
 */
#include "loadgen/cli/events.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/err.h"

#define WALL_LEN 30 /* "2026-11-21T18:02:35.123456789Z" */

/* ---- reading ------------------------------------------------------------- */

/* Parse a number that ends with `end`; skips both. */
static bool take_number(char **at, char end, uint64_t *value)
{
    if (**at < '0' || **at > '9') {
        return false;
    }
    errno = 0;
    *value = strtoull(*at, at, 10);
    if (errno != 0 || **at != end) {
        return false;
    }
    ++*at;
    return true;
}

/* Parse a time such as "5123.000456789 ". */
static bool take_time(char **at, uint64_t *time)
{
    uint64_t seconds;
    uint64_t ns;
    if (!take_number(at, '.', &seconds) || seconds > UINT64_MAX / QN_S - 1 ||
        strspn(*at, "0123456789") != 9 || !take_number(at, ' ', &ns)) {
        return false;
    }
    *time = seconds * QN_S + ns;
    return true;
}

/* Parse a wall time into ns since 1970. */
static bool wall_read(const char *text, uint64_t *wall)
{
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    if (rest == NULL || *rest != '.' || rest - text != WALL_LEN - 11) {
        return false;
    }
    time_t seconds = timegm(&tm);
    *wall = (uint64_t)seconds * QN_S + strtoull(rest + 1, NULL, 10);
    return seconds >= 0;
}

static bool row_read(char *line, struct qn_events_row *r, uint64_t *wall)
{
    uint64_t replica;
    char *at = line + WALL_LEN + 1;
    if (strcspn(line, " ") != WALL_LEN || line[WALL_LEN] != ' ' ||
        line[WALL_LEN - 1] != 'Z' || !wall_read(line, wall)) {
        return false;
    }
    line[WALL_LEN] = '\0';
    r->wall = line;
    if (!take_time(&at, &r->time) || !take_number(&at, '.', &replica) ||
        replica > UINT32_MAX || !take_number(&at, '#', &r->incarnation) ||
        !take_number(&at, ' ', &r->index) || *at == '\0' || *at == ' ') {
        return false;
    }
    r->replica = (uint32_t)replica;
    r->kind = at;
    at += strcspn(at, " ");
    r->what = *at == '\0' ? at : at + 1;
    *at = '\0';
    return true;
}

static int table_push(struct qn_events_table *t, struct qn_events_row r,
                      uint64_t wall)
{
    if (t->count == t->cap) {
        size_t cap = t->cap == 0 ? 4096 : t->cap * 2;
        struct qn_events_row *row = realloc(t->row, cap * sizeof *row);
        if (row == NULL) {
            return QN_ENOMEM;
        }
        t->row = row;
        t->cap = cap;
    }
    uint64_t base = wall - r.time;
    if (t->count == 0) {
        t->base = base;
    }
    /* Same boot if the two bases agree within a minute, since clocks are
     * adjusted. */
    bool same = base - t->base + 60 * QN_S <= 120 * QN_S;
    r.order = same ? t->base + r.time : wall;
    t->row[t->count++] = r;
    return QN_OK;
}

int qn_events_add(struct qn_events_table *t, char *text, uint64_t *line)
{
    for (*line = 1; *text != '\0'; ++*line) {
        struct qn_events_row r;
        uint64_t wall;
        char *end = text + strcspn(text, "\n");
        char *next = *end == '\0' ? end : end + 1;
        *end = '\0';
        if (end > text && end[-1] == '\r') {
            end[-1] = '\0';
        }
        if (*text != '\0' && *text != '#') {
            int err =
                row_read(text, &r, &wall) ? table_push(t, r, wall) : QN_EINVAL;
            if (err != QN_OK) {
                return err;
            }
        }
        text = next;
    }
    return QN_OK;
}

/* ---- order --------------------------------------------------------------- */

static int sign(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Events of one replica at the same time keep their order. */
static int compare(const void *x, const void *y)
{
    const struct qn_events_row *a = x;
    const struct qn_events_row *b = y;
    int by_time = sign(a->order, b->order);
    int by_replica = sign(a->replica, b->replica);
    int by_incarnation = sign(a->incarnation, b->incarnation);
    return by_time != 0          ? by_time
           : by_replica != 0     ? by_replica
           : by_incarnation != 0 ? by_incarnation
                                 : sign(a->index, b->index);
}

/* The same event from two sources. */
static bool same(const struct qn_events_row *a, const struct qn_events_row *b)
{
    return a->replica == b->replica && a->incarnation == b->incarnation &&
           a->index == b->index && a->time == b->time;
}

void qn_events_sort(struct qn_events_table *t)
{
    size_t n = 0;
    if (t->count == 0) {
        return;
    }
    qsort(t->row, t->count, sizeof *t->row, compare);
    for (size_t i = 1; i < t->count; i++) {
        if (!same(&t->row[n], &t->row[i])) {
            t->row[++n] = t->row[i];
        }
    }
    t->count = n + 1;
}

/* ---- writing ------------------------------------------------------------- */

static bool written(FILE *to)
{
    return fflush(to) == 0 && !ferror(to);
}

bool qn_events_print(const struct qn_events_table *t, FILE *to)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct qn_events_row *r = &t->row[i];
        uint64_t since = i == 0 ? 0 : r->order - t->row[i - 1].order;
        char replica[48];
        snprintf(replica, sizeof replica, "%" PRIu32 ".%" PRIu64, r->replica,
                 r->incarnation);
        fprintf(to, "%.10s %.15s %+14.6f  %-8s %-18s %s\n", r->wall,
                r->wall + 11, (double)since / (double)QN_S, replica, r->kind,
                r->what);
    }
    return written(to);
}

bool qn_events_print_raw(const struct qn_events_table *t, FILE *to)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct qn_events_row *r = &t->row[i];
        fprintf(to,
                "%s %" PRIu64 ".%09" PRIu64 " %" PRIu32 ".%" PRIu64 "#%" PRIu64
                " %s%s%s\n",
                r->wall, r->time / QN_S, r->time % QN_S, r->replica,
                r->incarnation, r->index, r->kind, *r->what == '\0' ? "" : " ",
                r->what);
    }
    return written(to);
}

/* Convert "node=1 role=leader" to an object; NULL without memory. */
static json_t *what_object(const char *what)
{
    json_t *o = json_object();
    while (o != NULL && *what != '\0') {
        size_t len = strcspn(what, " ");
        size_t key = strcspn(what, "= ");
        const char *value = what + key + (what[key] == '=');
        size_t value_len = len - (size_t)(value - what);
        bool number = value_len > 0 && value_len < 19 &&
                      strspn(value, "0123456789") == value_len;
        json_t *v = number ? json_integer(strtoll(value, NULL, 10))
                           : json_stringn(value, value_len);
        json_object_setn_new(o, what, key, v);
        what += len + (what[len] == ' ');
    }
    return o;
}

bool qn_events_print_json(const struct qn_events_table *t, FILE *to)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct qn_events_row *r = &t->row[i];
        json_t *o =
            json_pack("{s:s, s:I, s:i, s:I, s:I, s:s, s:o*}", "time", r->wall,
                      "monotonic_ns", (json_int_t)r->time, "replica",
                      (int)r->replica, "incarnation",
                      (json_int_t)r->incarnation, "index", (json_int_t)r->index,
                      "event", r->kind, "what", what_object(r->what));
        if (o == NULL || json_dumpf(o, to, JSON_COMPACT) != 0) {
            json_decref(o);
            return false;
        }
        fputc('\n', to);
        json_decref(o);
    }
    return written(to);
}

void qn_events_free(struct qn_events_table *t)
{
    free(t->row);
    *t = (struct qn_events_table){0};
}
