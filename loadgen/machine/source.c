/*
 * Which reader a name belongs to is found by looking: no option has to say it.
 * XML begins with '<' behind blanks; JSON does not.
 */
#include "loadgen/machine/source.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/machine/topology.h"

static bool looks_like_xml(const char *path)
{
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return false;
    }
    int c = fgetc(f);
    while (c != EOF && isspace(c)) {
        c = fgetc(f);
    }
    (void)fclose(f);
    return c == '<';
}

/* hwloc would write lines of its own about an odd machine. */
static void silence_hwloc(void)
{
    (void)setenv("HWLOC_HIDE_ERRORS", "2", 0);
    (void)setenv("HWLOC_LIBXML", "0", 0); /* what it writes is for us */
}

int qn_source_open(struct qn_machine **out, const char *what,
                   struct qn_fault *fault)
{
    silence_hwloc();
    if (strcmp(what, "live") == 0) {
        return qn_machine_discover(out, fault);
    }
    if (strchr(what, ':') != NULL && access(what, F_OK) != 0) {
        return qn_machine_synthetic(out, what, fault);
    }
    return looks_like_xml(what) ? qn_machine_read_xml(out, what, fault)
                                : qn_machine_load(out, what, fault);
}
