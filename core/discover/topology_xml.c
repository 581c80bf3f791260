/*
 * hwloc's XML, of which little is needed: units, the cores, caches and packages
 * around them, and their sets of memory nodes.
 *
 * Not by hwloc: version 2 of it refuses what version 3 writes, and its plain
 * parser runs behind the end of a file that is cut within the root element.
 * expat reads any bytes, and knows the line.
 *
 * In what is read here XML versions 2 and 3.0 are the same: hwloc 3 itself
 * writes version 2 with other numbers for the kinds of devices and of
 * distances, without the attribute `id`, and with the topology's notes inside
 * its root object. Version 1 nests memory nodes otherwise, and a version
 * after 3.0 is not specified yet, so both are refused, as is an object of an
 * unknown type: a wrong reading is worse than none. Elements that are no
 * objects and attributes that are not asked for change nothing.
 *
 * Each open object knows the core, the largest data cache and the package that
 * it is in; a unit takes those of the object around it.
 */
#include <ctype.h>
#include <expat.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/text.h"
#include "core/discover/topology.h"
#include "core/discover/topology_internal.h"
#include "core/machine/csv.h"

#define DEPTH_MAX     64u    /* hwloc's own trees have a dozen */
#define WORD_BITS     32u    /* of a set, between two commas */
#define SET_BYTES_MAX 32768u /* 65536 numbers are 23 KB */

enum kind { KIND_OTHER, KIND_CORE, KIND_CACHE, KIND_PACKAGE, KIND_UNIT };

/* An open element; what it is in. 0: in none. */
struct level {
    bool object;
    enum kind kind;
    uint64_t core, cache, package;
};

struct reader {
    XML_Parser parser;
    const char *file;
    struct qn_parse_error *parse_error;
    int err;
    uint32_t depth;
    struct level level[DEPTH_MAX]; /* [depth] */
    uint64_t objects;              /* met so far: the number of each */
    struct qn_unit *unit;          /* [QN_CORES_MAX] */
    uint32_t units;
    char *allowed; /* set of the cores that may be used; may be NULL */
    char cpu[QN_MACHINE_NAME_MAX + 1];
};

static void refuse(struct reader *r, const char *field, const char *what)
{
    if (r->err == QN_OK) {
        r->err = qn_parse_error_set(
            r->parse_error, r->file,
            (uint32_t)XML_GetCurrentLineNumber(r->parser), field, "%s", what);
        (void)XML_StopParser(r->parser, XML_FALSE);
    }
}

static const char *attribute(const char **list, const char *name)
{
    for (; list[0] != NULL; list += 2) {
        if (strcmp(list[0], name) == 0) {
            return list[1];
        }
    }
    return NULL;
}

/* ---- sets: "0x0000ffff,,0x1", 32 bits each, the lowest last ---- */

/* Is this a set? Words are empty or up to 8 digits; the highest may be
 * "0xf...f", all above. */
static bool is_set(const char *set)
{
    static const char all[] = "0xf...f";
    const char *at = set;
    if (strlen(set) > SET_BYTES_MAX) {
        return false;
    }
    at += strncmp(at, all, sizeof all - 1) == 0 ? sizeof all - 1 : 0;
    while (*at != '\0') {
        if (strncmp(at, "0x", 2) == 0 && (at == set || at[-1] == ',')) {
            size_t digits = strspn(at + 2, "0123456789abcdefABCDEF");
            if (digits < 1 || digits > 8) {
                return false;
            }
            at += 2 + digits;
        }
        if (*at != ',' && *at != '\0') {
            return false;
        }
        at += *at == ',';
    }
    return true;
}

/* Walk the words of a set from the lowest. @return false at the end; *at is
 * where the word before ends. */
static bool next_word(const char *set, const char **at, uint32_t *word)
{
    if (*at == NULL) {
        return false;
    }
    const char *end = *at, *begin = end;
    while (begin > set && begin[-1] != ',') {
        begin--;
    }
    *at = begin > set ? begin - 1 : NULL;
    *word = 0;
    if (begin < end) {
        char *stop = NULL;
        *word = (uint32_t)strtoul(begin, &stop, 16);
        *word = stop == end ? *word : UINT32_MAX; /* "0xf...f" */
    }
    return true;
}

/* The lowest number in a set; QN_NODE_UNKNOWN if it is empty. */
static uint32_t first_of(const char *set)
{
    const char *at = set + strlen(set);
    uint32_t word = 0, base = 0;
    for (; base <= QN_CORE_NUMBER_MAX && next_word(set, &at, &word);
         base += WORD_BITS) {
        if (word != 0) {
            return base + (uint32_t)__builtin_ctz(word);
        }
    }
    return QN_NODE_UNKNOWN;
}

static bool contains(const char *set, uint32_t number)
{
    const char *at = set + strlen(set);
    uint32_t word = 0, last = 0;
    for (uint32_t i = 0; i <= number / WORD_BITS; i++) {
        if (!next_word(set, &at, &word)) {
            return last == UINT32_MAX && strstr(set, "...") != NULL;
        }
        last = word;
    }
    return (word >> number % WORD_BITS & 1) != 0;
}

/* ---- objects ---- */

static bool kind_of(const char *type, enum kind *kind)
{
    static const struct {
        const char *type;
        enum kind kind;
    } all[] = {
        {"Machine", KIND_OTHER},  {"Package", KIND_PACKAGE},
        {"Die", KIND_OTHER},      {"Group", KIND_OTHER},
        {"Core", KIND_CORE},      {"PU", KIND_UNIT},
        {"L1Cache", KIND_CACHE},  {"L2Cache", KIND_CACHE},
        {"L3Cache", KIND_CACHE},  {"L4Cache", KIND_CACHE},
        {"L5Cache", KIND_CACHE},  {"L1iCache", KIND_OTHER},
        {"L2iCache", KIND_OTHER}, {"L3iCache", KIND_OTHER},
        {"NUMANode", KIND_OTHER}, {"MemCache", KIND_OTHER},
        {"Bridge", KIND_OTHER},   {"PCIDev", KIND_OTHER},
        {"OSDev", KIND_OTHER},    {"Misc", KIND_OTHER},
    };
    for (size_t i = 0; i < QN_ARRAY_COUNT(all); i++) {
        if (strcmp(type, all[i].type) == 0) {
            *kind = all[i].kind;
            return true;
        }
    }
    return false;
}

/* An attribute that is a set; NULL if it is not there or was refused. */
static const char *take_set(struct reader *r, const char **attributes,
                            const char *name)
{
    const char *set = attribute(attributes, name);
    if (set != NULL && !is_set(set)) {
        refuse(r, name,
               "write a set as hwloc does, like 0x00000001,0x000000ff");
        return NULL;
    }
    return set;
}

/* The node of a unit. One that has none of its own now (taken out, or not
 * allowed to us) still says where it belongs. */
static uint32_t node_of(struct reader *r, const char **attributes)
{
    const char *now = take_set(r, attributes, "nodeset");
    const char *ever = take_set(r, attributes, "complete_nodeset");
    uint32_t node = now != NULL ? first_of(now) : QN_NODE_UNKNOWN;
    return node == QN_NODE_UNKNOWN && ever != NULL ? first_of(ever) : node;
}

static void take_unit(struct reader *r, const struct level *in,
                      const char **attributes)
{
    const char *number = attribute(attributes, "os_index");
    char *end = NULL;
    unsigned long os = 0;
    if (number != NULL && isdigit((unsigned char)*number)) {
        os = strtoul(number, &end, 10);
    }
    if (end == NULL || *end != '\0' || os > QN_CORE_NUMBER_MAX) {
        refuse(r, "os_index", "write the unit's number, from 0 to 65535");
        return;
    }
    if (r->allowed != NULL && !contains(r->allowed, (uint32_t)os)) {
        return;
    }
    if (r->units == QN_CORES_MAX) {
        refuse(r, "object", "more than 1024 cores; leave some out");
        return;
    }
    uint64_t package = in->package;
    r->unit[r->units++] =
        (struct qn_unit){.os = (uint32_t)os,
                         .node = node_of(r, attributes),
                         .phys = in->core != 0 ? in->core : r->objects,
                         .cache = in->cache != 0 ? in->cache : package,
                         .socket = package};
}

static void begin_object(struct reader *r, struct level *l,
                         const char **attributes)
{
    const char *type = attribute(attributes, "type");
    if (type == NULL || !kind_of(type, &l->kind)) {
        refuse(r, "type",
               "this object is not known; write the file with an "
               "older hwloc");
        return;
    }
    l->object = true;
    uint64_t number = ++r->objects;
    if (number == 1) {
        const char *set = take_set(r, attributes, "allowed_cpuset");
        r->allowed = set != NULL ? strdup(set) : NULL;
    }
    if (l->kind == KIND_CORE) {
        l->core = number;
    } else if (l->kind == KIND_CACHE && l->cache == 0) {
        l->cache = number;
    } else if (l->kind == KIND_PACKAGE) {
        l->package = number;
    } else if (l->kind == KIND_UNIT) {
        take_unit(r, l, attributes);
    }
}

static void check_root(struct reader *r, const char *name,
                       const char **attributes)
{
    const char *version = attribute(attributes, "version");
    if (strcmp(name, "topology") != 0) {
        refuse(r, NULL,
               "this is no topology of hwloc; write one with `lstopo "
               "FILE.xml`");
    } else if (version == NULL || strncmp(version, "0.", 2) == 0 ||
               strncmp(version, "1.", 2) == 0) {
        refuse(r, "version",
               "hwloc 1 wrote this; convert it with `lstopo -i FILE.xml "
               "NEW.xml`");
    } else if (strncmp(version, "2.", 2) != 0 && strcmp(version, "3.0") != 0) {
        refuse(r, "version",
               "only 2 and 3.0 are known; write the file with `lstopo "
               "--export-xml-flags v2 FILE.xml`");
    }
}

static void take_info(struct reader *r, const struct level *in,
                      const char **attributes)
{
    const char *name = attribute(attributes, "name");
    const char *value = attribute(attributes, "value");
    if (in->kind == KIND_PACKAGE && name != NULL && value != NULL &&
        strcmp(name, "CPUModel") == 0 && r->cpu[0] == '\0') {
        qn_text_copy(r->cpu, sizeof r->cpu, value);
    }
}

static void on_begin(void *arg, const char *name, const char **attributes)
{
    struct reader *r = arg;
    if (r->err != QN_OK) {
        return;
    }
    if (r->depth == DEPTH_MAX) {
        refuse(r, "object", "too deep; hwloc writes no such file");
        return;
    }
    struct level *l = &r->level[r->depth];
    *l = (struct level){0};
    if (r->depth == 0) {
        check_root(r, name, attributes);
    } else if (strcmp(name, "object") == 0) {
        const struct level *in = l - 1;
        *l = (struct level){
            .core = in->core, .cache = in->cache, .package = in->package};
        if (r->depth > 1 && !in->object) {
            refuse(r, "object", "an object must be in an object");
            return;
        }
        begin_object(r, l, attributes);
    } else if (strcmp(name, "info") == 0) {
        take_info(r, l - 1, attributes);
    }
    r->depth++;
}

static void on_end(void *arg, const char *name)
{
    struct reader *r = arg;
    (void)name;
    r->depth -= r->depth > 0;
}

/* ---- files ---- */

static int fault_syntax(struct reader *r)
{
    enum XML_Error code = XML_GetErrorCode(r->parser);
    bool cut = code == XML_ERROR_NO_ELEMENTS ||
               code == XML_ERROR_UNCLOSED_TOKEN ||
               code == XML_ERROR_PARTIAL_CHAR ||
               code == XML_ERROR_UNCLOSED_CDATA_SECTION;
    if (code == XML_ERROR_NO_MEMORY) {
        (void)qn_parse_error_set(r->parse_error, r->file, 0, NULL,
                                 "not enough memory");
        return QN_ENOMEM;
    }
    return qn_parse_error_set(
        r->parse_error, r->file, (uint32_t)XML_GetCurrentLineNumber(r->parser),
        "XML", "%s; %s", XML_ErrorString(code),
        cut ? "the file may be cut, copy it again"
            : "correct it, or write one with `lstopo FILE.xml`");
}

int qn_machine_parse_xml(struct qn_machine **out, const char *file,
                         const char *bytes, size_t len,
                         struct qn_parse_error *parse_error)
{
    struct reader r = {.file = file, .parse_error = parse_error};
    r.parser = XML_ParserCreate(NULL);
    r.unit = malloc(QN_CORES_MAX * sizeof *r.unit);
    if (r.parser == NULL || r.unit == NULL || len > INT32_MAX) {
        (void)qn_parse_error_set(parse_error, file, 0, NULL,
                                 "not enough memory");
        r.err = QN_ENOMEM;
    } else {
        XML_SetUserData(r.parser, &r);
        XML_SetElementHandler(r.parser, on_begin, on_end);
        enum XML_Status s = XML_Parse(r.parser, bytes, (int)len, 1);
        r.err = r.err == QN_OK && s != XML_STATUS_OK ? fault_syntax(&r) : r.err;
    }
    if (r.err == QN_OK) {
        r.err =
            qn_units_to_machine(out, r.unit, r.units, r.cpu, file, parse_error);
    }
    if (r.parser != NULL) {
        XML_ParserFree(r.parser);
    }
    free(r.unit);
    free(r.allowed);
    return r.err;
}
