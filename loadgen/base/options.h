#ifndef QN_LOADGEN_BASE_OPTIONS_H
#define QN_LOADGEN_BASE_OPTIONS_H

/**
 * Options of the subcommands of `quoin`: one table gives parser, help and the
 * line that suggests the nearest option for a mistyped one.
 *
 *     struct bench {
 *         uint64_t keys;
 *         bool json;
 *     };
 *     static const struct qn_option table[] = {
 *         QN_OPTION_COUNT("keys", "N", offsetof(struct bench, keys),
 *                         "number of keys", 1, 0),
 *         QN_OPTION("json", NULL, qn_option_flag,
 *                   offsetof(struct bench, json), "print a JSON object"),
 *     };
 *     struct bench b = {.keys = 1000000};
 *     const struct qn_options o = {"quoin bench store", "Measure the store.",
 *                                  table, QN_ARRAY_COUNT(table), &b};
 *     int status;
 *     if (!qn_options_parse(&o, argc, argv, &status)) {
 *         return status;
 *     }
 *
 * Long options only, as `--name value` or `--name=value`, written in full; but
 * `-o value` is `--output value`. One thread, at start.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct qn_option;

/** Parse one value; `text` lives as long as argv. @return QN_OK; QN_EINVAL
 *  if the value is invalid: the caller then prints a line with the value and
 *  `help`; any other error if the function has already printed a better
 *  line. */
typedef int qn_option_fn(const struct qn_option *o, const char *text);

/**
 * A row of a constant table. `at` is the offset of its value in the struct at
 * qn_options.base; 0, for a `parse` that takes the whole struct.
 * QN_OPTION_COUNT takes a count from `least` to `most`; most 0: no limit.
 */
#define QN_OPTION(name, arg, parse, at, help)                                  \
    {                                                                          \
        name, arg, parse, at, help, 0, 0, NULL                                 \
    }

#define QN_OPTION_COUNT(name, arg, at, help, least, most)                      \
    {                                                                          \
        name, arg, qn_option_count, at, help, least, most, NULL                \
    }

/** A heading row: the options after it are listed under this title in the
 *  help. */
#define QN_OPTION_HEADING(title)                                               \
    {                                                                          \
        "", NULL, NULL, 0, title, 0, 0, NULL                                   \
    }

struct qn_option {
    const char *name;    /* without the dashes */
    const char *arg;     /* what the help calls the value; NULL: takes none */
    qn_option_fn *parse; /* called once per occurrence; NULL: a heading */
    size_t at;           /* offset of the value from qn_options.base */
    const char *help;
    uint64_t min; /* qn_option_count only */
    uint64_t max; /* qn_option_count only; 0: no limit */
    void *to;     /* base + at; set before `parse` is called */
};

struct qn_options {
    const char *program; /* "quoin load": begins each error line */
    const char *summary; /* first lines of the help */
    const struct qn_option *table;
    size_t count;
    void *base; /* the struct that is filled */
};

/**
 * Parse argv[1..argc).
 *
 * @param exit_status  Filled when the result is false: 0 after --help or
 *                     --version was printed on stdout, 2 after an error line on
 *                     stderr.
 * @return true to continue, false to exit.
 */
bool qn_options_parse(const struct qn_options *o, int argc, char **argv,
                      int *exit_status);

/** The same; also fills given[o->count]: which options were present. */
bool qn_options_parse_given(const struct qn_options *o, int argc, char **argv,
                            int *exit_status, bool *given);

/** The same as qn_options_parse; without the option `name`, which takes a
 * string, one line says so, with `example` as its value. */
bool qn_options_parse_needing(const struct qn_options *o, int argc, char **argv,
                              int *exit_status, const char *name,
                              const char *example);

/**
 * An option that is valid in some modes of a subcommand only. Such an option is
 * refused in the other modes, never silently ignored.
 */
struct qn_option_way {
    const char *name; /* name of the option */
    unsigned ways;    /* mask of the modes in which it is valid */
};

/** Check that all given options are valid in the mode `way` (one bit); prints
 *  an error line otherwise. `called` names the mode in that line. An option
 *  without an entry in `rule` [rules] is valid in every mode. @return true if
 *  all are valid. */
bool qn_options_fit(const struct qn_options *o, const bool *given,
                    const struct qn_option_way *rule, size_t rules,
                    unsigned way, const char *called);

qn_option_fn qn_option_flag;   /* to: bool, becomes true */
qn_option_fn qn_option_string; /* to: const char * */
qn_option_fn qn_option_count;  /* to: uint64_t, as qn_parse_count */
qn_option_fn qn_option_double; /* to: double, 0 to QN_OPTION_DOUBLE_MAX */
qn_option_fn qn_option_part;   /* to: double, 0 to 1 */

/** Largest value, for example 31 years in seconds: fits into 63 bits of
 *  nanoseconds. */
#define QN_OPTION_DOUBLE_MAX 1e9

/**
 * A count or a size: digits and an optional suffix, k m g (powers of 1000) or
 * ki mi gi (powers of 1024), in either case.
 *
 * @param value  Filled.
 * @return QN_OK, QN_EINVAL if the text is not a number, QN_ERANGE if it exceeds
 *         64 bits.
 */
int qn_parse_count(const char *text, uint64_t *value);

#endif
