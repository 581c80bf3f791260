/*
 * Faults are cut, never overrun: the head (file, line, field) is written
 * first, so that what is lost of a long line is its end.
 */
#include "core/machine/parse_error.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/text.h"

static size_t used(int written, size_t room)
{
    return written < 0 ? 0 : QN_MIN((size_t)written, room - 1);
}

int qn_parse_error_set(struct qn_parse_error *f, const char *file,
                       uint32_t line, const char *field, const char *fmt, ...)
{
    if (f == NULL) {
        return QN_EINVAL;
    }
    size_t n = used(snprintf(f->text, sizeof f->text, "%.200s:", file), 208);
    if (line > 0) {
        n += used(snprintf(f->text + n, sizeof f->text - n, "%u:", line), 16);
    }
    if (field != NULL) {
        n += used(snprintf(f->text + n, sizeof f->text - n, " %.32s:", field),
                  40);
    }
    f->text[n++] = ' ';
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(f->text + n, sizeof f->text - n, fmt, args);
    va_end(args);
    qn_text_clean(f->text);
    return QN_EINVAL;
}
