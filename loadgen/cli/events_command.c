#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "kvs/base/buf.h"
#include "loadgen/base/options.h"
#include "loadgen/cli/events.h"
#include "loadgen/cli/quoin.h"
#include "loadgen/net/address.h"
#include "loadgen/net/oneshot_request.h"

/*
 * `quoin events`: flight recorders of running servers and from files, merged
 * into one order. Any replica shows the recorders of all replicas, so one
 * address is enough; with several addresses each event still counts once. An
 * address that does not answer is an error only if no address answers.
 */

enum { ADDRESSES_MAX = 64 };

struct command {
    const char *to[ADDRESSES_MAX];
    uint32_t to_count;
    bool json, raw;
    uint64_t last;
    struct qn_events_table table;
    struct qn_buf *text; /* [texts] the strings of the table point into them */
    size_t texts;
};

static int take_to(const struct qn_option *o, const char *text)
{
    struct command *c = o->to;
    if (c->to_count == ADDRESSES_MAX) {
        fprintf(stderr,
                "quoin events: too many --to; give at most %d addresses\n",
                ADDRESSES_MAX);
        return QN_ERANGE;
    }
    int err = qn_address_check(text);
    if (err != QN_OK) {
        fprintf(stderr, "quoin events: --to %s: %s\n", text,
                qn_address_refusal(err));
        return QN_ERANGE;
    }
    c->to[c->to_count++] = text;
    return QN_OK;
}

/* ---- servers ------------------------------------------------------------- */

/* Request the events of a server, as text in `out`. Returns 0 or 1. */
static int fetch(const char *address, struct qn_buf *out)
{
    char why[128] = "";
    int type = qn_oneshot_request(
        address, "*2\r\n$5\r\nQUOIN\r\n$6\r\nEVENTS\r\n", out, why, sizeof why);
    if (type == 0) {
        fprintf(stderr, "quoin events: %s: %s\n", address, why);
    } else if (type != '$') {
        fprintf(stderr,
                "quoin events: %s: not a quoind, or an older one: %.*s\n",
                address, (int)out->len, (const char *)out->data);
    }
    return type == '$' ? 0 : 1;
}

/* ---- files --------------------------------------------------------------- */

static int read_file(const char *path, struct qn_buf *out)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *f = standard ? stdin : fopen(path, "r");
    size_t n = 1;
    while (f != NULL && n > 0) {
        uint8_t *at = qn_buf_reserve(out, 65536);
        n = at != NULL ? fread(at, 1, 65536, f) : 0;
        out->len += n;
    }
    bool ok = f != NULL && !ferror(f) && !out->oom;
    if (!ok) {
        fprintf(stderr, "quoin events: cannot read %s: %s\n", path,
                strerror(errno));
    }
    if (f != NULL && !standard) {
        fclose(f);
    }
    return ok ? 0 : 2;
}

/* ---- merge and print ----------------------------------------------------- */

/* Add the events of `from`. Returns 0, or 2 if the text has other lines. */
static int add(struct command *c, const char *from, struct qn_buf *text)
{
    uint64_t line;
    qn_buf_append(text, "", 1);
    int err = text->oom ? QN_ENOMEM
                        : qn_events_add(&c->table, (char *)text->data, &line);
    if (err == QN_EINVAL) {
        fprintf(stderr,
                "quoin events: %s:%llu: not a line of events; give a "
                "file of quoind --events-dir or of --raw\n",
                from, (unsigned long long)line);
    } else if (err != QN_OK) {
        fprintf(stderr, "quoin events: %s\n", qn_strerror(err));
    }
    return err == QN_OK ? 0 : 2;
}

static int collect(struct command *c, int files, char **file)
{
    uint32_t failed = 0;
    int status = 0;
    for (uint32_t i = 0; i < c->to_count && status == 0; i++) {
        if (fetch(c->to[i], &c->text[c->texts]) != 0) {
            failed++;
        } else {
            status = add(c, c->to[i], &c->text[c->texts]);
        }
        c->texts++;
    }
    for (int i = 0; i < files && status == 0; i++) {
        status = read_file(file[i], &c->text[c->texts]);
        if (status == 0) {
            status = add(c, file[i], &c->text[c->texts]);
        }
        c->texts++;
    }
    bool no_answer = failed != 0 && failed == c->to_count && files == 0;
    return status != 0 ? status : no_answer ? 1 : 0;
}

static int print(struct command *c)
{
    struct qn_events_table *t = &c->table;
    qn_events_sort(t);
    struct qn_events_table shown = *t;
    if (c->last != 0 && t->count > c->last) {
        shown.row += t->count - c->last;
        shown.count = c->last;
    }
    bool ok = c->json  ? qn_events_print_json(&shown, stdout)
              : c->raw ? qn_events_print_raw(&shown, stdout)
                       : qn_events_print(&shown, stdout);
    if (!ok) {
        fprintf(stderr, "quoin events: cannot write: %s\n", strerror(errno));
    }
    return ok ? 0 : 1;
}

/* Options come first; the first argument that is not an option begins the list
 * of files. */
static int count_options(int argc, char **argv)
{
    int i = 1;
    while (i < argc && strncmp(argv[i], "--", 2) == 0 && argv[i][2] != '\0') {
        bool flag = strcmp(argv[i], "--help") == 0 ||
                    strcmp(argv[i], "--version") == 0 ||
                    strcmp(argv[i], "--json") == 0 ||
                    strcmp(argv[i], "--raw") == 0;
        i += flag || strchr(argv[i], '=') != NULL ? 1 : 2;
    }
    return QN_MIN(i, argc);
}

#define AT(member) offsetof(struct command, member)

static const struct qn_option table[] = {
    QN_OPTION("to", "ADDR", take_to, 0,
              "HOST:PORT or unix:PATH of a running quoind; any replica shows "
              "the events of all"),
    QN_OPTION_COUNT("last", "N", AT(last), "print only the last N events", 1,
                    0),
    QN_OPTION("json", NULL, qn_option_flag, AT(json),
              "print one JSON object per line"),
    QN_OPTION("raw", NULL, qn_option_flag, AT(raw),
              "print the lines as the server sends them, to be read again"),
};

int qn_events_command(int argc, char **argv)
{
    struct command c = {0};
    const struct qn_options o = {
        "quoin events",
        "Show the events that replicas have recorded: roles, deaths, "
        "elections,\n"
        "stalls. `quoin events --to ADDR` asks a running server; `quoin "
        "events\n"
        "FILE...` reads files of quoind --events-dir or --raw; - is stdin.\n"
        "Each line: time (UTC), seconds since the previous event, "
        "replica.incarnation,\n"
        "event, details.",
        table, QN_ARRAY_COUNT(table), &c};
    int options = count_options(argc, argv);
    int status = 0;
    if (!qn_options_parse(&o, options, argv, &status)) {
        return status;
    }
    if (c.to_count == 0 && options == argc) {
        fprintf(stderr,
                "quoin events: missing --to HOST:PORT (a running quoind) "
                "or a file\n");
        return 2;
    }
    c.text = calloc(c.to_count + (size_t)(argc - options), sizeof *c.text);
    if (c.text == NULL) {
        fprintf(stderr, "quoin events: %s\n", qn_strerror(QN_ENOMEM));
        return 1;
    }
    status = collect(&c, argc - options, argv + options);
    if (status == 0) {
        status = print(&c);
    }
    for (size_t i = 0; i < c.texts; i++) {
        qn_buf_free(&c.text[i]);
    }
    free(c.text);
    qn_events_free(&c.table);
    return status;
}
