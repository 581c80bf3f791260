#ifndef QN_MACHINE_CSV_H
#define QN_MACHINE_CSV_H

/**
 * A reader for tables of numbers: header, then one row per line, fields
 * separated by commas, no quotes. Blank lines and lines that begin with '#'
 * are skipped; a line may end in CR LF. The last line must end too: without
 * its newline a whole number cannot be told from a cut one.
 *
 * Reads bytes in memory, allocates nothing; one reader is used by one thread.
 * Every failure fills the fault and returns QN_EINVAL.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/machine/parse_error.h"

struct qn_csv {
    const char *file; /* borrowed, for faults */
    const char *at;   /* next byte of the current line */
    const char *eol;  /* its end, without CR LF */
    const char *next; /* first byte of the next line */
    const char *end;
    uint32_t line; /* number of the current line, from 1 */
    uint32_t column;
    struct qn_parse_error *parse_error; /* may be NULL */
};

/** Begin; `bytes` [len] are borrowed as long as the reader is used. */
void qn_csv_init(struct qn_csv *c, const char *file, const char *bytes,
                 size_t len, struct qn_parse_error *parse_error);

/** Go to the next line, comments included. @return 1, 0 at the end, or
 *  QN_EINVAL: the last line is cut. */
int qn_csv_line(struct qn_csv *c);

/** Go to the next row. @return as qn_csv_line. */
int qn_csv_row(struct qn_csv *c);

/** The first row must be exactly `names`. @return QN_OK or QN_EINVAL. */
int qn_csv_header(struct qn_csv *c, const char *names);

/** The next field of the row, decimal, 0 .. max. `name` is for faults. */
int qn_csv_u32(struct qn_csv *c, const char *name, uint32_t max, uint32_t *v);

/** The next field, a cost: decimal with optional fraction and exponent,
 *  greater than 0 and at most QN_COST_MAX. */
int qn_csv_cost(struct qn_csv *c, const char *name, double *v);

/** No field may be left in the row. */
int qn_csv_done(struct qn_csv *c);

/** The line without its ending, for comments that mean something. */
static inline size_t qn_csv_rest(const struct qn_csv *c)
{
    return (size_t)(c->eol - c->at);
}

/**
 * A decimal number at the start of [p, end): digits, fraction, exponent; no
 * sign, no hexadecimal, no inf or nan. Correctly rounded, as strtod does it.
 *
 * @return The first byte behind it, NULL if there is none.
 */
const char *qn_decimal_parse(const char *p, const char *end, double *v);

/** Read a whole file. *bytes is the caller's, freed by free(). @return QN_OK,
 *  QN_EIO, QN_ENOENT, QN_ENOMEM or QN_EMSGSIZE (more than `max` bytes), fault
 *  filled. */
int qn_file_read(const char *path, size_t max, char **bytes, size_t *len,
                 struct qn_parse_error *parse_error);

#endif
