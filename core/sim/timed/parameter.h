#ifndef QN_SIM_TIMED_PARAMETER_H
#define QN_SIM_TIMED_PARAMETER_H

/**
 * Parameters of machine descriptions: members of a JSON object, each with its
 * value, its unit, where the value comes from, and a note.
 *
 *     "l1": {"value": 2, "unit": "cycles", "source": "documented",
 *            "note": "a load that hits"}
 *
 * `source` says how far to trust it: `documented` (by the maker or by a
 * measurement in print), `fitted` (to a published result that the note names)
 * or `assumed` (no source; never moved to meet a result). At most four are
 * fitted: a model with more could meet anything.
 *
 * A fault names the line of its member: names are unique in such a file, so the
 * first line that quotes the name is it. Pure.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/machine/parse_error.h"

#define QN_PARAMETER_NOTE_MAX   159u
#define QN_PARAMETER_VALUE_MAX  1e9
#define QN_PARAMETER_FITTED_MAX 4u

struct json_t;

enum qn_parameter_source {
    QN_PARAMETER_DOCUMENTED,
    QN_PARAMETER_FITTED,
    QN_PARAMETER_ASSUMED,
    QN_PARAMETER_SOURCES
};

/** What a kind of file must have. */
struct qn_parameter_kind {
    const char *name, *unit;
    bool zero; /* is 0 a value? */
};

struct qn_parameter {
    const char *name, *unit; /* constants */
    double value;
    enum qn_parameter_source source;
    char note[QN_PARAMETER_NOTE_MAX + 1]; /* printable */
};

/** A file that is being read, for faults. Borrowed. */
struct qn_parameter_file {
    const char *name, *text;
    size_t len;
    struct qn_parse_error *parse_error;
};

/** "documented", "fitted", "assumed". */
const char *qn_parameter_source_name(enum qn_parameter_source source);

/** Say what is wrong with member `name`. @return QN_EINVAL. */
int qn_parameter_fault(const struct qn_parameter_file *f, const char *name,
                       const char *what);

/** `format`, `version`, and no member but `known`. @return QN_OK, QN_EINVAL. */
int qn_parameter_head(const struct qn_parameter_file *f,
                      const struct json_t *root, const char *format,
                      const char *const *known, uint32_t count);

/** Parse the whole text. @param root  Filled: the caller's.
 *  @return QN_OK, QN_EINVAL, QN_ENOMEM. */
int qn_parameter_parse(const struct qn_parameter_file *f, struct json_t **root);

/** Member "parameters" of `root`: each of `kind`, and no other.
 *  @param out  [count] filled, in the order of `kind`.
 *  @return QN_OK, QN_EINVAL. */
int qn_parameter_read(const struct qn_parameter_file *f,
                      const struct json_t *root,
                      const struct qn_parameter_kind *kind, uint32_t count,
                      struct qn_parameter *out);

/** Each with value, unit, source and note, for reports. */
void qn_parameter_print(const struct qn_parameter *p, uint32_t count, FILE *f);

#endif
