#include "loadgen/base/options.h"

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/suggest.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Why not argp: it does not suggest the nearest option, prints two lines for
 * one error and accepts any unambiguous abbreviation, so that a new option can
 * break a script. A table and a loop do all that is needed.
 */

int qn_parse_count(const char *text, uint64_t *value)
{
    if (!isdigit((unsigned char)*text)) {
        return QN_EINVAL;
    }
    errno = 0;
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    if (errno == ERANGE) {
        return QN_ERANGE;
    }
    uint64_t factor = 1;
    if (*end != '\0') {
        static const char suffixes[] = "kmg";
        const char *s = strchr(suffixes, tolower((unsigned char)*end));
        if (s == NULL) {
            return QN_EINVAL;
        }
        end++;
        bool binary = tolower((unsigned char)*end) == 'i';
        end += binary;
        for (const char *p = suffixes; p <= s; p++) {
            factor *= binary ? 1024 : 1000;
        }
    }
    if (*end != '\0') {
        return QN_EINVAL;
    }
    if (n > UINT64_MAX / factor) {
        return QN_ERANGE;
    }
    *value = n * factor;
    return QN_OK;
}

int qn_option_flag(const struct qn_option *o, const char *text)
{
    (void)text;
    *(bool *)o->to = true;
    return QN_OK;
}

int qn_option_string(const struct qn_option *o, const char *text)
{
    *(const char **)o->to = text;
    return QN_OK;
}

int qn_option_count(const struct qn_option *o, const char *text)
{
    uint64_t n;
    if (qn_parse_count(text, &n) != QN_OK || n < o->min ||
        (o->max != 0 && n > o->max)) {
        return QN_EINVAL;
    }
    *(uint64_t *)o->to = n;
    return QN_OK;
}

static int take_double(const struct qn_option *o, const char *text, double most)
{
    char *end;
    double x = strtod(text, &end);
    bool in_range = x >= 0 && x <= most; /* false for NaN */
    if (end == text || *end != '\0' || !in_range) {
        return QN_EINVAL;
    }
    *(double *)o->to = x;
    return QN_OK;
}

int qn_option_double(const struct qn_option *o, const char *text)
{
    return take_double(o, text, QN_OPTION_DOUBLE_MAX);
}

int qn_option_part(const struct qn_option *o, const char *text)
{
    return take_double(o, text, 1);
}

static void print_help(const struct qn_options *o)
{
    bool grouped = o->table[0].parse == NULL;
    printf("usage: %s [OPTIONS]\n%s\n%s", o->program, o->summary,
           grouped ? "" : "\n");
    for (size_t i = 0; i < o->count; i++) {
        if (o->table[i].parse == NULL) {
            printf("%s:\n", o->table[i].help);
            continue;
        }
        char left[64];
        const char *arg = o->table[i].arg;
        snprintf(left, sizeof left, "--%s%s%s", o->table[i].name,
                 arg != NULL ? " " : "", arg != NULL ? arg : "");
        printf("  %-22s %s\n", left, o->table[i].help);
    }
}

static const struct qn_option *find(const struct qn_options *o,
                                    const char *name, size_t len)
{
    for (size_t i = 0; i < o->count; i++) {
        if (o->table[i].parse != NULL && strlen(o->table[i].name) == len &&
            memcmp(o->table[i].name, name, len) == 0) {
            return &o->table[i];
        }
    }
    return NULL;
}

static void print_unknown(const struct qn_options *o, const char *typed)
{
    char name[QN_SUGGEST_LEN_MAX + 1];
    const char *bare = typed + strspn(typed, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(bare, "="), bare);
    const char *near = NULL;
    if (strcmp(name, "h") == 0 || qn_edit_distance(name, "help") <= 1) {
        near = "help";
    } else if (name[0] != '\0' && typed[0] == '-') {
        near =
            qn_suggest(name, &o->table[0].name, sizeof o->table[0], o->count);
    }
    if (near != NULL && near[0] != '\0') { /* headings have an empty name */
        fprintf(stderr, "%s: unknown option '%s'; did you mean '--%s'?\n",
                o->program, typed, near);
    } else {
        fprintf(stderr, "%s: %s '%s'; see %s --help\n", o->program,
                typed[0] == '-' ? "unknown option" : "unexpected argument",
                typed, o->program);
    }
}

static void print_refused(const struct qn_options *o,
                          const struct qn_option *opt, const char *value)
{
    fprintf(stderr, "%s: --%s: invalid value '%s'; expected %s", o->program,
            opt->name, value, opt->arg);
    if (opt->parse == qn_option_count && opt->max != 0) {
        fprintf(stderr, " from %" PRIu64 " to %" PRIu64, opt->min, opt->max);
    } else if (opt->parse == qn_option_count) {
        fprintf(stderr, ", at least %" PRIu64, opt->min);
    } else if (opt->parse == qn_option_part) {
        fputs(" from 0 to 1", stderr);
    }
    fprintf(stderr, " (%s)\n", opt->help);
}

/* Parse one option at argv[*i]; moves *i past its value. Returns false after
 * printing an error. */
static bool take(const struct qn_options *o, int argc, char **argv, int *i,
                 bool *given)
{
    const char *typed = argv[*i];
    const struct qn_option *opt = NULL;
    size_t len = 0;
    if (strcmp(typed, "-o") == 0) {
        typed = "--output";
    }
    if (strncmp(typed, "--", 2) == 0) {
        len = strcspn(typed + 2, "=");
        opt = find(o, typed + 2, len);
    }
    if (opt == NULL) {
        print_unknown(o, argv[*i]);
        return false;
    }
    const char *value = typed[2 + len] == '=' ? typed + 2 + len + 1 : NULL;
    if (opt->arg == NULL && value != NULL) {
        fprintf(stderr, "%s: --%s takes no value; remove '%s'\n", o->program,
                opt->name, value - 1);
        return false;
    }
    if (opt->arg != NULL && value == NULL) {
        if (*i + 1 == argc) {
            fprintf(stderr, "%s: --%s needs a value: %s (%s)\n", o->program,
                    opt->name, opt->arg, opt->help);
            return false;
        }
        value = argv[++*i];
    }
    struct qn_option placed = *opt;
    placed.to = (char *)o->base + opt->at;
    int err = opt->parse(&placed, value);
    if (err == QN_EINVAL) {
        print_refused(o, opt, value);
    }
    if (err == QN_OK && given != NULL) {
        given[opt - o->table] = true;
    }
    return err == QN_OK;
}

bool qn_options_parse(const struct qn_options *o, int argc, char **argv,
                      int *exit_status)
{
    return qn_options_parse_given(o, argc, argv, exit_status, NULL);
}

bool qn_options_parse_needing(const struct qn_options *o, int argc, char **argv,
                              int *exit_status, const char *name,
                              const char *example)
{
    const struct qn_option *needed = find(o, name, strlen(name));
    QN_ASSERT(needed != NULL && needed->parse == qn_option_string);
    if (!qn_options_parse(o, argc, argv, exit_status)) {
        return false;
    }
    if (*(const char **)((char *)o->base + needed->at) == NULL) {
        fprintf(stderr, "%s: --%s is required; for example --%s %s\n",
                o->program, name, name, example);
        *exit_status = 2;
        return false;
    }
    return true;
}

bool qn_options_parse_given(const struct qn_options *o, int argc, char **argv,
                            int *exit_status, bool *given)
{
    QN_ASSERT(o->count > 0);
    if (given != NULL) {
        memset(given, 0, o->count * sizeof *given);
    }
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            print_help(o);
            *exit_status = 0;
            return false;
        }
        if (strcmp(argv[i], "--version") == 0) {
            puts("quoin " QN_VERSION);
            *exit_status = 0;
            return false;
        }
        if (!take(o, argc, argv, &i, given)) {
            *exit_status = 2;
            return false;
        }
    }
    return true;
}

static unsigned ways_of(const struct qn_option_way *rule, size_t rules,
                        const char *name)
{
    for (size_t i = 0; i < rules; i++) {
        if (strcmp(rule[i].name, name) == 0) {
            return rule[i].ways;
        }
    }
    return ~0u;
}

bool qn_options_fit(const struct qn_options *o, const bool *given,
                    const struct qn_option_way *rule, size_t rules,
                    unsigned way, const char *called)
{
    for (size_t i = 0; i < o->count; i++) {
        const char *name = o->table[i].name;
        if (given[i] && (ways_of(rule, rules, name) & way) == 0) {
            fprintf(stderr, "%s: --%s cannot be used with %s; remove it\n",
                    o->program, name, called);
            return false;
        }
    }
    return true;
}
