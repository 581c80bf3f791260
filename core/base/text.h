#ifndef QN_BASE_TEXT_H
#define QN_BASE_TEXT_H

/**
 * Text that came from outside (names in files, damaged files) and goes to a
 * terminal, a report or a picture: UTF-8 without control characters.
 *
 * Pure, any thread.
 */

#include <stddef.h>

/** Bytes of the UTF-8 sequence at s, 1 to 4; 0 if there is none: overlong and
 *  surrogate forms, U+FFFE and U+FFFF are none. `s` is NUL-terminated; NUL is a
 *  sequence of one byte. */
size_t qn_utf8_length(const char *s);

/**
 * Make text printable in place: each byte that is not UTF-8 and each control
 * character becomes '?'. A sequence that its end has cut goes, so a text that
 * was shortened to fit ends in a whole character.
 */
void qn_text_clean(char *text);

/** As much of `from` as fits into to [room], room >= 1, printable as above. */
void qn_text_copy(char *to, size_t room, const char *from);

#endif
