#include <errno.h>
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
#include "loadgen/net/inquiry.h"

/*
 * `quoin events`: flight recorders of running servers and from files, in one
 * order. Any replica shows the recorders of all, so one address is enough;
 * more of them do no harm, as each event counts once. One that does not answer
 * is an error only if nobody does.
 */

enum { ADDRESSES_MAX = 64 };

struct command {
    const char *to[ADDRESSES_MAX];
    uint32_t to_count;
    bool json, raw;
    uint64_t last;
    struct qn_events_table table;
    struct qn_buf *text; /* [texts] the table's strings lie in them */
    size_t texts;
};

static int take_to(const struct qn_option *o, const char *text)
{
    struct command *c = o->to;
    if (c->to_count == ADDRESSES_MAX) {
        fprintf(stderr, "quoin events: at most %d addresses\n", ADDRESSES_MAX);
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

/* ---- asking -------------------------------------------------------------- */

/* Its events, as text in `out`. 0 or 1. */
static int ask(const char *whom, struct qn_buf *out)
{
    char why[128] = "";
    int type = qn_inquire(whom, "*2\r\n$5\r\nQUOIN\r\n$6\r\nEVENTS\r\n", out,
                          why, sizeof why);
    if (type == 0) {
        fprintf(stderr, "quoin events: %s: %s\n", whom, why);
    } else if (type != '$') {
        fprintf(stderr, "quoin events: %s is no quoind: %.*s\n", whom,
                (int)out->len, (const char *)out->data);
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

/* ---- all together -------------------------------------------------------- */

/* Add what `from` has said; 0, or 2 if it is something else. */
static int add(struct command *c, const char *from, struct qn_buf *text)
{
    uint64_t line;
    qn_buf_append(text, "", 1);
    int err = text->oom ? QN_ENOMEM
                        : qn_events_add(&c->table, (char *)text->data, &line);
    if (err == QN_EINVAL) {
        fprintf(stderr, "quoin events: %s:%llu: not a line of events\n", from,
                (unsigned long long)line);
    } else if (err != QN_OK) {
        fprintf(stderr, "quoin events: %s\n", qn_strerror(err));
    }
    return err == QN_OK ? 0 : 2;
}

static int collect(struct command *c, int files, char **file)
{
    uint32_t silent = 0;
    int status = 0;
    for (uint32_t i = 0; i < c->to_count && status == 0; i++) {
        if (ask(c->to[i], &c->text[c->texts]) != 0) {
            silent++;
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
    bool nobody = silent != 0 && silent == c->to_count && files == 0;
    return status != 0 ? status : nobody ? 1 : 0;
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

/* Options first, as everywhere; the first argument that is none begins the
 * list of files. */
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

int qn_events_command(int argc, char **argv)
{
    struct command c = {0};
    const struct qn_option table[] = {
        {"to", "ADDR", take_to, &c,
         "HOST:PORT or unix:PATH of a running quoind; any replica shows all", 0,
         0},
        {"last", "N", qn_option_count, &c.last, "only the last N events", 1, 0},
        {"json", NULL, qn_option_flag, &c.json, "a JSON object per line", 0, 0},
        {"raw", NULL, qn_option_flag, &c.raw,
         "lines as the server gives them, to be kept and read again", 0, 0},
    };
    const struct qn_options o = {
        "quoin events",
        "Show what replicas have recorded: roles, deaths, elections, stalls.\n"
        "`quoin events --to ADDR` asks a running server, `quoin events FILE...`"
        "\nreads what quoind --events-dir or --raw have written; - is stdin.\n"
        "Each line: time (UTC), seconds since the one before, replica.life,\n"
        "event, and what of it.",
        table, QN_ARRAY_COUNT(table)};
    int options = count_options(argc, argv);
    int status = 0;
    if (!qn_options_parse(&o, options, argv, &status)) {
        return status;
    }
    if (c.to_count == 0 && options == argc) {
        fprintf(stderr, "quoin events: whose? --to HOST:PORT of a running "
                        "quoind, or a file\n");
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
