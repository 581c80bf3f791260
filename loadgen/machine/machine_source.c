/*
 * The reader is chosen by the content of the file, so no option is needed: XML
 * begins with '<' after blanks, JSON does not.
 */
#include "loadgen/machine/machine_source.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/discover/topology.h"
#include "core/machine/csv.h"

/* The file is read once, since it may be a pipe. */
static int open_file(struct qn_machine **out, const char *path,
                     struct qn_parse_error *parse_error)
{
    char *bytes = NULL;
    size_t len = 0, at = 0;
    int err =
        qn_file_read(path, QN_MACHINE_FILE_MAX, &bytes, &len, parse_error);
    if (err != QN_OK) {
        return err;
    }
    while (at < len && isspace((unsigned char)bytes[at])) {
        at++;
    }
    if (at < len && bytes[at] == '<') {
        err = qn_machine_parse_xml(out, path, bytes, len, parse_error);
    } else if (at < len && strchr("[{", bytes[at]) == NULL) {
        err = qn_parse_error_set(
            parse_error, path, 1, NULL,
            "neither a machine file (JSON) nor hwloc's XML; for "
            "numa.csv and pairwise.csv name their folder");
    } else {
        err = qn_machine_parse_json(out, path, bytes, len, parse_error);
    }
    free(bytes);
    return err;
}

/* Otherwise hwloc prints its own messages about an unusual machine. */
static void silence_hwloc(void)
{
    (void)setenv("HWLOC_HIDE_ERRORS", "2", 0);
    (void)setenv("HWLOC_LIBXML", "0", 0); /* use hwloc's own XML parser */
}

int qn_machine_source_open(struct qn_machine **out, const char *what,
                           struct qn_parse_error *parse_error)
{
    struct stat st;
    silence_hwloc();
    if (strcmp(what, "live") == 0) {
        return qn_machine_discover(out, parse_error);
    }
    if (strchr(what, ':') != NULL && access(what, F_OK) != 0) {
        return qn_machine_synthetic(out, what, parse_error);
    }
    bool folder = stat(what, &st) == 0 && S_ISDIR(st.st_mode);
    return folder ? qn_machine_load_csv(out, what, parse_error)
                  : open_file(out, what, parse_error);
}
