/*
 * Versions of hwloc's XML.
 *
 * hwloc 2 refuses a file whose root element says 3.0. In what is read here (the
 * objects, their sets of cores and memory nodes, the processor's model) the two
 * versions are the same; hwloc 3 itself writes version 2 with other numbers for
 * the kinds of operating system devices and of distances, without the
 * attribute `id`, and with the topology's notes inside its root. Devices are
 * not kept here, distances not looked at, and hwloc 2 passes over attributes
 * and elements that it does not know. An object of an unknown type makes it
 * refuse the file. So another number is all that it takes. Of versions
 * behind 3.0 nobody knows this, so they are refused.
 */
#include "core/machine/topology_xml_internal.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"

/* The value of the root element's version; NULL if there is none. */
static char *find_version(char *xml)
{
    static const char root[] = "<topology ", name[] = "version=\"";
    char *at = strstr(xml, root);
    if (at == NULL) {
        return NULL;
    }
    size_t len = strcspn(at, ">");
    char *version = memmem(at, len, name, sizeof name - 1);
    return version != NULL ? version + sizeof name - 1 : NULL;
}

static uint32_t line_of(const char *xml, const char *at)
{
    uint32_t line = 1;
    for (; xml < at; xml++) {
        line += *xml == '\n';
    }
    return line;
}

int qn_xml_settle_version(char *xml, const char *file, struct qn_fault *fault)
{
    char *version = find_version(xml);
    if (version == NULL || !isdigit((unsigned char)*version)) {
        return QN_OK;
    }
    char *end = NULL;
    unsigned long major = strtoul(version, &end, 10);
    if (major < 3) {
        return QN_OK;
    }
    if (strncmp(version, "3.0\"", 4) != 0) {
        return qn_fault_set(fault, file, line_of(xml, version), "version",
                            "%.*s is not known; write the file with `lstopo "
                            "--export-xml-flags v2 FILE.xml`",
                            (int)QN_MIN(strcspn(version, "\">"), (size_t)20),
                            version);
    }
    *version = '2';
    return QN_OK;
}

/* Does the line hold a note (an `info` element) that does not speak of the
 * processor? */
static bool is_private(const char *line, size_t len)
{
    static const char *const kept[] = {"CPUVendor",    "CPUModel",
                                       "CPUFamily",    "CPUStepping",
                                       "Architecture", "Inclusive"};
    static const char begin_[] = "<info name=\"";
    const char *at = memmem(line, len, begin_, sizeof begin_ - 1);
    if (at == NULL) {
        return false;
    }
    at += sizeof begin_ - 1;
    for (size_t i = 0; i < QN_ARRAY_COUNT(kept); i++) {
        size_t n = strlen(kept[i]);
        if ((size_t)(line + len - at) > n && memcmp(at, kept[i], n) == 0) {
            return false;
        }
    }
    return true;
}

void qn_xml_strip(char *xml)
{
    char *to = xml;
    for (const char *from = xml; *from != '\0';) {
        size_t len = strcspn(from, "\n");
        len += from[len] == '\n';
        if (!is_private(from, len)) {
            memmove(to, from, len);
            to += len;
        }
        from += len;
    }
    *to = '\0';
}
