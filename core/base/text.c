/*
 * Printable text. Control characters are those of ASCII and those of Latin 1
 * (U+0080 to U+009F, two bytes in UTF-8), which some terminals obey, too.
 *
 * Cleaning never lengthens a text, so it works in place.
 */
#include "core/base/text.h"

#include <stdbool.h>
#include <string.h>

#include "core/base/assert.h"

/* Bytes that a sequence has by its first one; 0: none begins so. */
static size_t announced(unsigned char c)
{
    return c < 0x80               ? 1
           : c < 0xc2 || c > 0xf4 ? 0
           : c < 0xe0             ? 2
           : c < 0xf0             ? 3
                                  : 4;
}

size_t qn_utf8_length(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = announced(s[0]);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    /* Not from a table: overlong and surrogate forms must fail, too. */
    bool bad = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
               (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f) ||
               (s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe);
    return bad ? 0 : n;
}

/* Does the text end within the sequence at s, good so far? */
static bool is_cut(const char *s)
{
    size_t left = strnlen(s, 4), n = announced((unsigned char)*s);
    for (size_t i = 1; i < left && i < n; i++) {
        if (((unsigned char)s[i] & 0xc0) != 0x80) {
            return false;
        }
    }
    return left < n;
}

static bool is_control(const char *s, size_t len)
{
    const unsigned char *c = (const unsigned char *)s;
    return c[0] < 0x20 || c[0] == 0x7f ||
           (len == 2 && c[0] == 0xc2 && c[1] < 0xa0);
}

void qn_text_clean(char *text)
{
    char *to = text;
    for (const char *s = text; *s != '\0';) {
        size_t n = qn_utf8_length(s);
        if (n == 0 && is_cut(s)) {
            break;
        }
        if (n == 0 || is_control(s, n)) {
            *to++ = '?';
            s += n > 0 ? n : 1;
            continue;
        }
        memmove(to, s, n);
        to += n;
        s += n;
    }
    *to = '\0';
}

void qn_text_copy(char *to, size_t room, const char *from)
{
    QN_ASSERT(room >= 1);
    size_t n = strnlen(from, room - 1);
    memcpy(to, from, n);
    to[n] = '\0';
    qn_text_clean(to);
}
