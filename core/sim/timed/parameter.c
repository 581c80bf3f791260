/*
 * Reading parameters of machine descriptions: parameter.h has the form.
 */
#include "core/sim/timed/parameter.h"

#include <jansson.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/text.h"

static const char *const source_name[QN_PARAMETER_SOURCES] = {
    "documented", "fitted", "assumed"};

const char *qn_parameter_source_name(enum qn_parameter_source source)
{
    return source_name[source];
}

/* The line of the first `"name"`, 1 if there is none. */
static uint32_t line_of(const struct qn_parameter_file *f, const char *name)
{
    size_t n = strlen(name);
    uint32_t line = 1;
    for (size_t i = 0; i + n + 2 <= f->len; i++) {
        const char *at = f->text + i;
        if (at[0] == '"' && memcmp(at + 1, name, n) == 0 && at[n + 1] == '"') {
            return line;
        }
        line += at[0] == '\n';
    }
    return 1;
}

int qn_parameter_fault(const struct qn_parameter_file *f, const char *name,
                       const char *what)
{
    return qn_parse_error_set(f->parse_error, f->name, line_of(f, name), name,
                              "%s", what);
}

int qn_parameter_parse(const struct qn_parameter_file *f, json_t **root)
{
    json_error_t e;
    *root = json_loadb(f->text, f->len, JSON_REJECT_DUPLICATES, &e);
    if (*root == NULL) {
        bool full = json_error_code(&e) == json_error_out_of_memory;
        (void)qn_parse_error_set(f->parse_error, f->name,
                                 (uint32_t)QN_MAX(e.line, 1), "JSON",
                                 "%s; correct it", e.text);
        return full ? QN_ENOMEM : QN_EINVAL;
    }
    return QN_OK;
}

/* ---- the head ---- */

static bool is_known(const char *const *known, uint32_t count, const char *key)
{
    uint32_t i = 0;
    while (i < count && strcmp(key, known[i]) != 0) {
        i++;
    }
    return i < count;
}

int qn_parameter_head(const struct qn_parameter_file *f, const json_t *root,
                      const char *format, const char *const *known,
                      uint32_t count)
{
    const char *is = json_string_value(json_object_get(root, "format"));
    if (is == NULL || strcmp(is, format) != 0) {
        return qn_parse_error_set(
            f->parse_error, f->name, line_of(f, "format"), "format",
            "this describes no such machine; it must say \"format\": \"%s\"",
            format);
    }
    if (json_integer_value(json_object_get(root, "version")) != 1) {
        return qn_parameter_fault(f, "version", "only version 1 is known");
    }
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)root, key, value)
    {
        if (!is_known(known, count, key)) {
            return qn_parameter_fault(
                f, key, "unknown member; remove it or correct it");
        }
    }
    return QN_OK;
}

/* ---- parameters ---- */

static bool read_source(const json_t *member, enum qn_parameter_source *to)
{
    const char *s = json_string_value(json_object_get(member, "source"));
    for (uint32_t i = 0; s != NULL && i < QN_PARAMETER_SOURCES; i++) {
        if (strcmp(s, source_name[i]) == 0) {
            *to = (enum qn_parameter_source)i;
            return true;
        }
    }
    return false;
}

static int read_one(const struct qn_parameter_file *f, const json_t *member,
                    const struct qn_parameter_kind *k, struct qn_parameter *p)
{
    json_t *value = json_object_get(member, "value");
    const char *unit = json_string_value(json_object_get(member, "unit"));
    const char *note = json_string_value(json_object_get(member, "note"));
    p->name = k->name;
    p->unit = k->unit;
    p->value = json_number_value(value);
    if (!json_is_number(value) || !(k->zero ? p->value >= 0 : p->value > 0) ||
        p->value > QN_PARAMETER_VALUE_MAX) {
        return qn_parameter_fault(
            f, k->name,
            k->zero ? "write its value as a number from 0 to 1e9"
                    : "write its value, above 0 and up to 1e9");
    }
    if (unit == NULL || strcmp(unit, k->unit) != 0) {
        return qn_parse_error_set(f->parse_error, f->name, line_of(f, k->name),
                                  k->name, "its unit must be \"%s\"", k->unit);
    }
    if (!read_source(member, &p->source)) {
        return qn_parameter_fault(
            f, k->name,
            "its source must be \"documented\", \"fitted\" or \"assumed\"");
    }
    if (note == NULL || json_object_size(member) != 4) {
        return qn_parameter_fault(f, k->name,
                                  "a parameter has value, unit, source and "
                                  "note, and nothing else");
    }
    qn_text_copy(p->note, sizeof p->note, note);
    return QN_OK;
}

/* Members that are no parameter of the kind. Called when all of its own are
 * there. */
static int fault_unknown(const struct qn_parameter_file *f, json_t *all,
                         const struct qn_parameter_kind *kind, uint32_t count)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(all, key, value)
    {
        uint32_t i = 0;
        while (i < count && strcmp(kind[i].name, key) != 0) {
            i++;
        }
        if (i == count) {
            return qn_parameter_fault(
                f, key, "this kind has no such parameter; remove it");
        }
    }
    return QN_OK;
}

int qn_parameter_read(const struct qn_parameter_file *f, const json_t *root,
                      const struct qn_parameter_kind *kind, uint32_t count,
                      struct qn_parameter *out)
{
    json_t *all = json_object_get(root, "parameters");
    uint32_t fitted = 0;
    for (uint32_t i = 0; i < count; i++) {
        json_t *member = json_object_get(all, kind[i].name);
        if (member == NULL) {
            return qn_parse_error_set(
                f->parse_error, f->name, line_of(f, "parameters"), kind[i].name,
                "this parameter is missing; each of its kind must be there");
        }
        int err = read_one(f, member, &kind[i], &out[i]);
        if (err != QN_OK) {
            return err;
        }
        fitted += out[i].source == QN_PARAMETER_FITTED;
    }
    if (fitted > QN_PARAMETER_FITTED_MAX) {
        return qn_parameter_fault(f, "parameters",
                                  "at most four may be fitted");
    }
    return fault_unknown(f, all, kind, count);
}

void qn_parameter_print(const struct qn_parameter *p, uint32_t count, FILE *f)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)fprintf(f, "  %-12s %8g %-8s %-10s  %s\n", p[i].name, p[i].value,
                      p[i].unit, source_name[p[i].source], p[i].note);
    }
}
