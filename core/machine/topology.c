/*
 * Topologies by hwloc.
 *
 * A processing unit of hwloc is a core of ours; what it shares are the objects
 * above it. hwloc's own numbers of those may repeat (logical numbers per level,
 * operating system numbers per package), so they are numbered as they are met.
 * Only memory nodes keep theirs, since that is how the rest of the house calls
 * them.
 *
 * libnuma adds nothing here: hwloc reads the same files in /sys, gives at least
 * one memory node everywhere, and does so for XML files too.
 *
 * Discovery must not bind itself to each core in turn, which on a busy machine
 * waits for each of them (DONT_CHANGE_BINDING), and needs no devices.
 */
#include "core/machine/topology.h"

#include <ctype.h>
#include <hwloc.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/text.h"
#include "core/machine/csv.h"
#include "core/machine/topology_xml_internal.h"

#define NODE_UNKNOWN UINT32_MAX

/* Objects that were met on one level; the place in the list is the number. */
struct numbering {
    uint32_t count;
    hwloc_obj_t met[QN_CORES_MAX];
};

struct numberings {
    struct numbering phys, cache, socket;
};

static uint32_t number_of(struct numbering *n, hwloc_obj_t o)
{
    uint32_t i = 0;
    while (i < n->count && n->met[i] != o) {
        i++;
    }
    if (i == n->count) {
        n->met[n->count++] = o;
    }
    return i;
}

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
    return node >= 0 ? (uint32_t)node : NODE_UNKNOWN;
}

static void fill_core(struct qn_machine_core *c, hwloc_topology_t t,
                      hwloc_obj_t pu, struct numberings *n)
{
    *c = (struct qn_machine_core){
        .os = pu->os_index,
        .phys = number_of(&n->phys, above(t, HWLOC_OBJ_CORE, pu, pu)),
        .cache = number_of(&n->cache, cache_above(pu)),
        .node = node_of(pu),
        .socket = number_of(&n->socket, above(t, HWLOC_OBJ_PACKAGE, pu,
                                              hwloc_get_root_obj(t)))};
}

/* Cores of which no memory node is known are a node per package, beside those
 * that there are: they are near each other and near no other memory. */
static void give_nodes(struct qn_machine *m)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->core[i].node != NODE_UNKNOWN) {
            next = QN_MAX(next, m->core[i].node + 1);
        }
    }
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->core[i].node == NODE_UNKNOWN) {
            m->core[i].node = next + m->core[i].socket;
        }
    }
}

/* "Intel(R) Xeon(R) E5-2670 v2 @ 2.50GHz" becomes intel_xeon_e5_2670_v2. */
static void slug(char *to, size_t room, const char *from)
{
    size_t n = 0;
    for (; *from != '\0' && *from != '@' && n + 1 < room; from++) {
        if (strncmp(from, "(R)", 3) == 0 || strncmp(from, "(r)", 3) == 0) {
            from += 2;
        } else if (strncasecmp(from, "(TM)", 4) == 0) {
            from += 3;
        } else if (isalnum((unsigned char)*from)) {
            to[n++] = (char)tolower((unsigned char)*from);
        } else if (n > 0 && to[n - 1] != '_') {
            to[n++] = '_';
        }
    }
    while (n > 0 && to[n - 1] == '_') {
        n--;
    }
    to[n] = '\0';
}

static void give_name(struct qn_machine *m, hwloc_topology_t t,
                      const struct numberings *n)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(t, HWLOC_OBJ_PACKAGE, 0);
    const char *cpu = package != NULL
                          ? hwloc_obj_get_info_by_name(package, "CPUModel")
                          : NULL;
    char base[40];
    qn_text_copy(m->facts.cpu, sizeof m->facts.cpu, cpu != NULL ? cpu : "");
    slug(base, sizeof base, cpu != NULL ? cpu : "machine");
    uint32_t cores = n->phys.count / n->socket.count;
    uint32_t threads = m->n / n->phys.count;
    int len = snprintf(m->name, sizeof m->name, "%s_%ux%u", base,
                       n->socket.count, cores);
    if (threads > 1 && len > 0) {
        (void)snprintf(m->name + len, sizeof m->name - (size_t)len, "x%u",
                       threads);
    }
}

/* The units of a loaded topology that may be used, in ascending order of the
 * operating system's numbers, which is not hwloc's. @return how many; QN_ERANGE
 * if too many. */
static int collect(hwloc_topology_t t, hwloc_const_cpuset_t usable,
                   hwloc_obj_t *pu)
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
        if (count == (int)QN_CORES_MAX || i > (int)QN_CORE_NUMBER_MAX) {
            return QN_ERANGE;
        }
        pu[count++] = o;
    }
    return count;
}

static int fill(struct qn_machine **out, hwloc_topology_t t,
                hwloc_const_cpuset_t usable, const char *file,
                struct qn_fault *fault)
{
    hwloc_obj_t *pu = calloc(QN_CORES_MAX, sizeof *pu);
    struct numberings *n = calloc(1, sizeof *n);
    struct qn_machine *m = NULL;
    int err = pu != NULL && n != NULL ? QN_OK : QN_ENOMEM;
    int count = err == QN_OK ? collect(t, usable, pu) : 0;
    if (err == QN_OK && count <= 0) {
        err = qn_fault_set(fault, file, 0, NULL,
                           count == 0 ? "there is no usable core"
                                      : "there are more than 1024 cores, or "
                                        "numbers above 65535; restrict the "
                                        "process (taskset) or the file");
    }
    err = err != QN_OK ? err : qn_machine_create(&m, (uint32_t)count);
    if (err == QN_OK) {
        for (int i = 0; i < count; i++) {
            fill_core(&m->core[i], t, pu[i], n);
        }
        give_nodes(m);
        give_name(m, t, n);
        *out = m;
    } else if (err == QN_ENOMEM) {
        (void)qn_fault_set(fault, file, 0, NULL, "not enough memory");
    }
    free(pu);
    free(n);
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
static int load_live(hwloc_topology_t *t, struct qn_fault *fault)
{
    int err = begin(t);
    if (err == QN_OK && hwloc_topology_load(*t) != 0) {
        hwloc_topology_destroy(*t);
        err = QN_EIO;
    }
    if (err != QN_OK) {
        (void)qn_fault_set(fault, "live", 0, NULL,
                           "the topology of this machine cannot be read: %s",
                           qn_strerror(err));
    }
    return err;
}

int qn_machine_discover(struct qn_machine **out, struct qn_fault *fault)
{
    hwloc_topology_t t;
    int err = load_live(&t, fault);
    if (err != QN_OK) {
        return err;
    }
    hwloc_cpuset_t usable = hwloc_bitmap_alloc();
    bool masked = usable != NULL &&
                  hwloc_get_cpubind(t, usable, HWLOC_CPUBIND_THREAD) == 0;
    err = fill(out, t, masked ? usable : NULL, "live", fault);
    hwloc_bitmap_free(usable);
    hwloc_topology_destroy(t);
    return err;
}

int qn_machine_parse_xml(struct qn_machine **out, const char *file,
                         const char *bytes, size_t len, struct qn_fault *fault)
{
    hwloc_topology_t t;
    char *xml = len < INT_MAX ? malloc(len + 1) : NULL;
    int err = xml != NULL ? begin(&t) : QN_ENOMEM;
    if (err != QN_OK) {
        free(xml);
        (void)qn_fault_set(fault, file, 0, NULL, "not enough memory");
        return err;
    }
    memcpy(xml, bytes, len);
    xml[len] = '\0';
    err = qn_xml_settle_version(xml, file, fault);
    if (err == QN_OK &&
        (hwloc_topology_set_xmlbuffer(t, xml, (int)len + 1) != 0 ||
         hwloc_topology_load(t) != 0)) {
        err = qn_fault_set(fault, file, 0, NULL,
                           "hwloc finds no topology in it; write one with "
                           "`lstopo FILE.xml`");
    }
    err = err != QN_OK ? err : fill(out, t, NULL, file, fault);
    hwloc_topology_destroy(t);
    free(xml);
    return err;
}

int qn_machine_read_xml(struct qn_machine **out, const char *path,
                        struct qn_fault *fault)
{
    char *bytes = NULL;
    size_t len = 0;
    int err = qn_file_read(path, QN_MACHINE_FILE_MAX, &bytes, &len, fault);
    err =
        err != QN_OK ? err : qn_machine_parse_xml(out, path, bytes, len, fault);
    free(bytes);
    return err;
}

/* Units that a synthetic text asks for, at most one more than `limit`: the
 * product of the numbers that stand alone or behind a colon; what is in (..)
 * or [..] describes an object or its memory. hwloc would build them all, a
 * million for minutes, before they could be counted. */
static uint64_t units_asked(const char *text, uint64_t limit)
{
    uint64_t units = 1;
    const char *p = text;
    while (*p != '\0' && units <= limit) {
        bool begins = p == text || strchr(": \t\n)]", p[-1]) != NULL;
        if (*p == '(' || *p == '[') {
            p += strcspn(p, *p == '(' ? ")" : "]");
        } else if (begins && isdigit((unsigned char)*p)) {
            char *end = NULL;
            uint64_t n = strtoull(p, &end, 0); /* as hwloc reads it */
            units *= QN_MAX(QN_MIN(n, limit + 1), (uint64_t)1);
            p = end;
        } else {
            p++;
        }
    }
    return QN_MIN(units, limit + 1);
}

int qn_machine_synthetic(struct qn_machine **out, const char *text,
                         struct qn_fault *fault)
{
    hwloc_topology_t t;
    if (units_asked(text, QN_CORES_MAX) > QN_CORES_MAX) {
        return qn_fault_set(fault, text, 0, NULL,
                            "more than %u cores; ask for fewer", QN_CORES_MAX);
    }
    int err = begin(&t);
    if (err != QN_OK) {
        return err;
    }
    if (hwloc_topology_set_synthetic(t, text) != 0 ||
        hwloc_topology_load(t) != 0) {
        hwloc_topology_destroy(t);
        return qn_fault_set(fault, text, 0, NULL,
                            "hwloc does not understand this; write for "
                            "example \"package:2 numa:1 l3:1 core:4 pu:2\"");
    }
    err = fill(out, t, NULL, text, fault);
    hwloc_topology_destroy(t);
    return err;
}

int qn_machine_topology_xml(char **xml, struct qn_fault *fault)
{
    hwloc_topology_t t;
    char *text = NULL;
    int len = 0;
    int err = load_live(&t, fault);
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
        qn_xml_strip(*xml);
    } else {
        (void)qn_fault_set(fault, "live", 0, NULL, "the topology as XML: %s",
                           qn_strerror(err));
    }
    return err;
}
