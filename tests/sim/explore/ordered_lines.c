#include "tests/sim/explore/ordered_lines.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

enum { LINES_MAX = 2000, PATH_BYTES = 1024 };

static char line[LINES_MAX + 1][ORDERED_LINE_TEXT]; /* code only; from 1 */

/* Cut what is comment. @return is the end of the line inside of one? */
static bool cut_comment(char *text, bool inside)
{
    char *end = inside ? strstr(text, "*/") : NULL;
    if (inside && end == NULL) {
        *text = '\0';
        return true;
    }
    if (inside) {
        memset(text, ' ', (size_t)(end + 2 - text));
    }
    char *begin = strstr(text, "/*");
    if (begin == NULL) {
        return false;
    }
    const bool open = strstr(begin, "*/") == NULL;
    *begin = '\0';
    return open;
}

static void cut_end(char *text)
{
    size_t n = strlen(text);
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\n')) {
        text[--n] = '\0';
    }
}

static char last_of(const char *text)
{
    const size_t n = strlen(text);
    return n > 0 ? text[n - 1] : '\0';
}

/* @return lines. */
static int read_code(const char *file)
{
    const char *path = strstr(file, "core/");
    char name[PATH_BYTES];
    bool inside = false;
    int n = 0;
    cr_assert_not_null(path, "%s", file);
    snprintf(name, sizeof name, "%s/%s", QN_SOURCE_ROOT, path);
    FILE *in = fopen(name, "r");
    cr_assert_not_null(in, "%s", name);
    while (n < LINES_MAX && fgets(line[n + 1], ORDERED_LINE_TEXT, in) != NULL) {
        n++;
        inside = cut_comment(line[n], inside);
        cut_end(line[n]);
    }
    (void)fclose(in);
    return n;
}

static bool is_ordered(const char *text)
{
    return last_of(text) != '\\' && strstr(text, "#define") == NULL &&
           (strstr(text, "QN_ACQUIRE") != NULL ||
            strstr(text, "QN_RELEASE") != NULL ||
            strstr(text, "QN_ACQ_REL") != NULL ||
            strstr(text, "QN_SEQ_CST") != NULL);
}

/* Where what only a defect does ends, that begins at this line; else the line
 * itself. */
static int behind_mutant(int at, int n)
{
    const size_t indent = strspn(line[at], " ");
    if (strstr(line[at], "if (") == NULL ||
        strstr(line[at], "_MUTANT(") == NULL || last_of(line[at]) != '{') {
        return at;
    }
    do {
        at++;
    } while (at < n &&
             (strspn(line[at], " ") != indent || line[at][0] == '\0'));
    return at;
}

static bool ends_statement(const char *text)
{
    return text[0] == '\0' || strchr(";{}", last_of(text)) != NULL;
}

uint32_t ordered_lines(const char *file, struct ordered_line *out)
{
    const int n = read_code(file);
    uint32_t count = 0;
    for (int i = behind_mutant(1, n); i <= n; i = behind_mutant(i + 1, n)) {
        struct ordered_line *o = &out[count];
        if (!is_ordered(line[i])) {
            continue;
        }
        cr_assert_lt(count, ORDERED_LINES_MAX);
        o->first = o->last = i;
        while (o->first > 1 && !ends_statement(line[o->first - 1])) {
            o->first--;
        }
        while (o->last < n && !ends_statement(line[o->last])) {
            o->last++;
        }
        snprintf(o->text, sizeof o->text, "%s", line[i] + strspn(line[i], " "));
        count++;
    }
    return count;
}
