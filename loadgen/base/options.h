#ifndef QN_LOADGEN_BASE_OPTIONS_H
#define QN_LOADGEN_BASE_OPTIONS_H

/**
 * Options of the subcommands of `quoin`: one table gives parser, help and the
 * line that names the nearest option when somebody mistypes one.
 *
 *     uint64_t keys = 1000000;
 *     bool json = false;
 *     const struct qn_option table[] = {
 *         {"keys", "N", qn_option_count, &keys, "keys in use", 1, UINT64_MAX},
 *         {"json", NULL, qn_option_flag, &json, "print a JSON object"},
 *     };
 *     const struct qn_options o = {"quoin bench store", "Measure the store.",
 *                                  table, QN_ARRAY_COUNT(table)};
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

/** Take one value; `text` lives as long as argv. @return QN_OK; QN_EINVAL if it
 *  is not one, then a line is printed that repeats it and `help`; any other
 *  error if the function has printed a better line itself. */
typedef int qn_option_fn(const struct qn_option *o, const char *text);

/** A row of the table that is no option: the help goes on under this title. */
#define QN_OPTION_HEADING(title)                                               \
    {                                                                          \
        "", NULL, NULL, NULL, title, 0, 0                                      \
    }

struct qn_option {
    const char *name;    /* without the dashes */
    const char *arg;     /* what the help calls the value; NULL: takes none */
    qn_option_fn *parse; /* called once per occurrence; NULL: a heading */
    void *to;            /* where the value goes; its type is parse's affair */
    const char *help;
    uint64_t min; /* qn_option_count only */
    uint64_t max; /* qn_option_count only; 0: no limit */
};

struct qn_options {
    const char *program; /* "quoin load": begins each error line */
    const char *summary; /* first lines of the help */
    const struct qn_option *table;
    size_t count;
};

/**
 * Parse argv[1..argc).
 *
 * @param exit_status  Filled when the answer is false: 0 after --help or
 *                     --version was printed on stdout, 2 after an error line on
 * stderr.
 * @return true to go on, false to leave.
 */
bool qn_options_parse(const struct qn_options *o, int argc, char **argv,
                      int *exit_status);

/** The same, and which options were there: given [o->count] is filled. */
bool qn_options_parse_given(const struct qn_options *o, int argc, char **argv,
                            int *exit_status, bool *given);

/**
 * Options that go with some ways to call a subcommand only: none is ignored
 * silently.
 */
struct qn_option_way {
    const char *name; /* of an option */
    unsigned ways;    /* mask of those that it goes with */
};

/** Prints a line if an option was given that does not go with `way`, one bit;
 *  `called` is what it is called. Options that `rule` [rules] does not name go
 *  with every way. @return whether all go with it. */
bool qn_options_fit(const struct qn_options *o, const bool *given,
                    const struct qn_option_way *rule, size_t rules,
                    unsigned way, const char *called);

qn_option_fn qn_option_flag;   /* to: bool, becomes true */
qn_option_fn qn_option_string; /* to: const char * */
qn_option_fn qn_option_count;  /* to: uint64_t, as qn_parse_count */
qn_option_fn qn_option_double; /* to: double, 0 to QN_OPTION_DOUBLE_MAX */

/** Seconds, say: 31 years of them, in 63 bits of nanoseconds. */
#define QN_OPTION_DOUBLE_MAX 1e9

/**
 * A count or a size: digits and perhaps a suffix, k m g (powers of 1000) or
 * ki mi gi (powers of 1024), in either case.
 *
 * @param value  Filled.
 * @return QN_OK, QN_EINVAL if it is none, QN_ERANGE beyond 64 bits.
 */
int qn_parse_count(const char *text, uint64_t *value);

#endif
