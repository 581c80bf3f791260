#include <stdio.h>
#include <string.h>

#include "core/base/err.h"
#include "kvs/config/config.h"

#define LINE_MAX_BYTES 1024u /* with line feed and NUL */

/* A line that did not fit: its rest would be taken for another line. */
static bool cut(const char *line)
{
    return strlen(line) == LINE_MAX_BYTES - 1 &&
           line[LINE_MAX_BYTES - 2] != '\n';
}

/* Cut the blanks off both ends, in place. */
static char *trim(char *s)
{
    s += strspn(s, " \t\r\n");
    size_t n = strlen(s);
    while (n > 0 && strchr(" \t\r\n", s[n - 1]) != NULL) {
        s[--n] = '\0';
    }
    return s;
}

/* One line, without its blanks. "" in quotes is how an empty text is written.
 */
static int take_line(struct qn_config *c, char *line, char *why, size_t cap)
{
    if (line[0] == '\0' || line[0] == '#') {
        return QN_OK;
    }
    size_t name = strcspn(line, " \t");
    char *value = trim(line + name);
    line[name] = '\0';
    if (strcmp(value, "\"\"") == 0) {
        value = "";
    }
    return qn_config_start(c, line, value, why, cap);
}

int qn_config_file(struct qn_config *c, const char *path, char *why, size_t cap)
{
    char line[LINE_MAX_BYTES];
    char reason[QN_CONFIG_WHY_MAX];
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        snprintf(why, cap, "cannot read %.128s: %s", path, strerror(errno));
        return QN_EIO;
    }
    struct qn_config next = *c;
    int err = QN_OK;
    for (int n = 1; err == QN_OK && fgets(line, sizeof line, f) != NULL; n++) {
        if (cut(line)) {
            snprintf(reason, sizeof reason, "longer than %u bytes",
                     LINE_MAX_BYTES - 2);
            err = QN_EINVAL;
        } else {
            err = take_line(&next, trim(line), reason, sizeof reason);
        }
        if (err != QN_OK) {
            snprintf(why, cap, "%.128s line %d: %s", path, n, reason);
            err = QN_EINVAL;
        }
    }
    if (err == QN_OK && ferror(f)) {
        snprintf(why, cap, "cannot read %.128s: %s", path, strerror(errno));
        err = QN_EIO;
    }
    fclose(f);
    if (err == QN_OK) {
        *c = next;
    }
    return err;
}
