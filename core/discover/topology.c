/*
 * Topologies by hwloc: of the machine that this runs on, and of synthetic
 * texts. A processing unit of hwloc is a core of ours; what it shares are the
 * objects above it (topology_units.c numbers them).
 *
 * libnuma adds nothing here: hwloc reads the same files in /sys, and gives at
 * least one memory node everywhere.
 *
 * Discovery must not bind itself to each core in turn, which on a busy machine
 * waits for each of them (DONT_CHANGE_BINDING), and needs no devices.
 */
#include "core/discover/topology.h"

#include <ctype.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/discover/topology_internal.h"

#define BLANKS " \t\r\n"
#define NOT_SYNTHETIC                                                          \
    "hwloc does not understand this; write for example \"package:2 numa:1 "    \
    "l3:1 core:4 pu:2\""

/* The largest cache above a unit; what comes closest if there is none. */
static hwloc_obj_t cache_above(hwloc_obj_t pu)
{
    hwloc_obj_t found = NULL, package = NULL, top = pu;
    for (hwloc_obj_t o = pu->parent; o != NULL; o = o->parent) {
        if (hwloc_obj_type_is_dcache(o->type)) {
            found = o;
        } else if (o->type == HWLOC_OBJ_PACKAGE) {
            package = o;
        }
        top = o;
    }
    return found != NULL ? found : package != NULL ? package : top;
}

static hwloc_obj_t above(hwloc_topology_t t, hwloc_obj_type_t type,
                         hwloc_obj_t pu, hwloc_obj_t otherwise)
{
    hwloc_obj_t o = hwloc_get_ancestor_obj_by_type(t, type, pu);
    return o != NULL ? o : otherwise;
}

/* The memory node of a unit. One that has none of its own now (taken out, or
 * not allowed to us) still says where it belongs. */
static uint32_t node_of(hwloc_obj_t pu)
{
    int node = pu->nodeset != NULL ? hwloc_bitmap_first(pu->nodeset) : -1;
    if (node < 0 && pu->complete_nodeset != NULL) {
        node = hwloc_bitmap_first(pu->complete_nodeset);
    }
    return node >= 0 ? (uint32_t)node : QN_NODE_UNKNOWN;
}

static uint64_t number_of(hwloc_obj_t o)
{
    return (uint64_t)(uintptr_t)o;
}

static struct qn_unit unit_of(hwloc_topology_t t, hwloc_obj_t pu)
{
    return (struct qn_unit){.os = pu->os_index,
                            .node = node_of(pu),
                            .phys = number_of(above(t, HWLOC_OBJ_CORE, pu, pu)),
                            .cache = number_of(cache_above(pu)),
                            .socket = number_of(above(t, HWLOC_OBJ_PACKAGE, pu,
                                                      hwloc_get_root_obj(t)))};
}

static const char *cpu_of(hwloc_topology_t t)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(t, HWLOC_OBJ_PACKAGE, 0);
    const char *cpu = package != NULL
                          ? hwloc_obj_get_info_by_name(package, "CPUModel")
                          : NULL;
    return cpu != NULL ? cpu : "";
}

/* The units of a loaded topology that may be used. @return how many; QN_ERANGE
 * if too many. */
static int collect(hwloc_topology_t t, hwloc_const_cpuset_t usable,
                   struct qn_unit *unit)
{
    hwloc_const_cpuset_t all = hwloc_topology_get_topology_cpuset(t);
    int count = 0;
    for (int i = hwloc_bitmap_first(all); i >= 0;
         i = hwloc_bitmap_next(all, i)) {
        if (usable != NULL && !hwloc_bitmap_isset(usable, (unsigned)i)) {
            continue;
        }
        hwloc_obj_t o = hwloc_get_pu_obj_by_os_index(t, (unsigned)i);
        if (o == NULL) {
            continue;
        }
        if (count == (int)QN_CORES_MAX) {
            return QN_ERANGE;
        }
        unit[count++] = unit_of(t, o);
    }
    return count;
}

static int fill(struct qn_machine **out, hwloc_topology_t t,
                hwloc_const_cpuset_t usable, const char *file,
                struct qn_parse_error *parse_error)
{
    struct qn_unit *unit = malloc(QN_CORES_MAX * sizeof *unit);
    if (unit == NULL) {
        (void)qn_parse_error_set(parse_error, file, 0, NULL,
                                 "not enough memory");
        return QN_ENOMEM;
    }
    int count = collect(t, usable, unit);
    int err =
        count < 0
            ? qn_parse_error_set(parse_error, file, 0, NULL,
                                 "there are more than 1024 cores; restrict the "
                                 "process (taskset) or the file")
            : qn_units_to_machine(out, unit, (uint32_t)count, cpu_of(t), file,
                                  parse_error);
    free(unit);
    return err;
}

static int begin(hwloc_topology_t *t)
{
    static const hwloc_obj_type_t wanted[] = {
        HWLOC_OBJ_PACKAGE, HWLOC_OBJ_CORE,    HWLOC_OBJ_L1CACHE,
        HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE,
        HWLOC_OBJ_L5CACHE, HWLOC_OBJ_GROUP};
    if (hwloc_topology_init(t) != 0) {
        return QN_ENOMEM;
    }
    hwloc_topology_set_all_types_filter(*t, HWLOC_TYPE_FILTER_KEEP_NONE);
    for (size_t i = 0; i < QN_ARRAY_COUNT(wanted); i++) {
        /* Groups cannot be kept all; without any, hwloc forgets which cores a
         * memory node belongs to. */
        hwloc_topology_set_type_filter(*t, wanted[i],
                                       wanted[i] == HWLOC_OBJ_GROUP
                                           ? HWLOC_TYPE_FILTER_KEEP_STRUCTURE
                                           : HWLOC_TYPE_FILTER_KEEP_ALL);
    }
    hwloc_topology_set_flags(*t, HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING |
                                     HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
                                     HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
    return QN_OK;
}

/* Load this machine's topology. */
static int load_live(hwloc_topology_t *t, struct qn_parse_error *parse_error)
{
    int err = begin(t);
    if (err == QN_OK && hwloc_topology_load(*t) != 0) {
        hwloc_topology_destroy(*t);
        err = QN_EIO;
    }
    if (err != QN_OK) {
        (void)qn_parse_error_set(
            parse_error, "live", 0, NULL,
            "the topology of this machine cannot be read: %s",
            qn_strerror(err));
    }
    return err;
}

int qn_machine_discover(struct qn_machine **out,
                        struct qn_parse_error *parse_error)
{
    hwloc_topology_t t;
    int err = load_live(&t, parse_error);
    if (err != QN_OK) {
        return err;
    }
    hwloc_cpuset_t usable = hwloc_bitmap_alloc();
    bool masked = usable != NULL &&
                  hwloc_get_cpubind(t, usable, HWLOC_CPUBIND_THREAD) == 0;
    err = fill(out, t, masked ? usable : NULL, "live", parse_error);
    hwloc_bitmap_free(usable);
    hwloc_topology_destroy(t);
    return err;
}

/* ---- synthetic texts: "package:2 [numa(memory=1GB)] core:4 2(indexes=..)"
 * ----
 *
 * hwloc builds all that it is asked for, a million units for minutes, and reads
 * odd texts as it likes; so a text must be what its manual says, and its
 * numbers are multiplied before. */

/* Behind "(..)", if there is one; NULL if it does not end. */
static const char *skip_attributes(const char *p)
{
    if (*p != '(') {
        return p;
    }
    p += 1 + strcspn(p + 1, "()[]");
    return *p == ')' ? p + 1 : NULL;
}

/* One level or one piece of memory; `units` is multiplied, up to most + 1.
 * @return what is behind it, NULL if it is neither. */
static const char *take_level(const char *p, uint64_t *units, uint64_t most)
{
    bool memory = *p == '[';
    const char *word = p + memory;
    while (isalnum((unsigned char)*word)) {
        word++;
    }
    if (memory) {
        p = skip_attributes(word);
        return p != NULL && *p == ']' ? p + 1 : NULL;
    }
    const char *number = *word == ':' ? word + 1 : p;
    char *end = NULL;
    if (!isdigit((unsigned char)*number)) {
        return NULL;
    }
    uint64_t n = strtoull(number, &end, 0); /* as hwloc reads it */
    n = QN_MAX(QN_MIN(n, most + 1), (uint64_t)1);
    *units = QN_MIN(*units * n, most + 1);
    p = skip_attributes(end);
    return p != NULL && (*p == '\0' || isspace((unsigned char)*p)) ? p : NULL;
}

static int check_synthetic(const char *text, struct qn_parse_error *parse_error)
{
    uint64_t units = 1;
    const char *p = text + strspn(text, BLANKS);
    while (p != NULL && *p != '\0') {
        p = take_level(p, &units, QN_CORES_MAX);
        p = p != NULL ? p + strspn(p, BLANKS) : NULL;
    }
    if (p == NULL) {
        return qn_parse_error_set(parse_error, text, 0, NULL, NOT_SYNTHETIC);
    }
    return units <= QN_CORES_MAX
               ? QN_OK
               : qn_parse_error_set(parse_error, text, 0, NULL,
                                    "more than %u cores; ask for fewer",
                                    QN_CORES_MAX);
}

int qn_machine_synthetic(struct qn_machine **out, const char *text,
                         struct qn_parse_error *parse_error)
{
    hwloc_topology_t t;
    if (check_synthetic(text, parse_error) != QN_OK) {
        return QN_EINVAL;
    }
    int err = begin(&t);
    if (err != QN_OK) {
        return err;
    }
    if (hwloc_topology_set_synthetic(t, text) != 0 ||
        hwloc_topology_load(t) != 0) {
        hwloc_topology_destroy(t);
        return qn_parse_error_set(parse_error, text, 0, NULL, NOT_SYNTHETIC);
    }
    err = fill(out, t, NULL, text, parse_error);
    hwloc_topology_destroy(t);
    return err;
}

/* ---- XML without what tells whose machine it is ---- */

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

/* Take the private lines out, in place. */
static void strip(char *xml)
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

int qn_machine_topology_xml(char **xml, struct qn_parse_error *parse_error)
{
    hwloc_topology_t t;
    char *text = NULL;
    int len = 0;
    int err = load_live(&t, parse_error);
    if (err != QN_OK) {
        return err;
    }
    err = QN_EIO;
    if (hwloc_topology_export_xmlbuffer(t, &text, &len, 0) == 0) {
        *xml = strdup(text);
        hwloc_free_xmlbuffer(t, text);
        err = *xml != NULL ? QN_OK : QN_ENOMEM;
    }
    hwloc_topology_destroy(t);
    if (err == QN_OK) {
        strip(*xml);
    } else {
        (void)qn_parse_error_set(parse_error, "live", 0, NULL,
                                 "the topology as XML: %s", qn_strerror(err));
    }
    return err;
}
