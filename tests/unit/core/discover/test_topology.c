#include <hwloc.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/discover/topology.h"
#include "core/machine/csv.h"
#include "tests/support/test.h"

/* How many different labels the cores have at `offset` of theirs. */
static uint32_t distinct(const struct qn_machine *m, size_t offset)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        uint32_t j = 0;
        while (memcmp((char *)&m->core[j] + offset,
                      (char *)&m->core[i] + offset, sizeof(uint32_t)) != 0) {
            j++;
        }
        count += j == i;
    }
    return count;
}

#define DISTINCT(m, member)                                                    \
    distinct((m), offsetof(struct qn_machine_core, member))

static const struct {
    const char *text;
    uint32_t cores, phys, cache, node, socket;
    const char *name;
} shapes[] = {
    {"package:2 numa:1 l3:2 core:4 pu:2", 32, 16, 4, 2, 2, "machine_2x8x2"},
    {"package:4 numa:2 l3:1 l2:2 core:2 pu:1", 32, 32, 8, 8, 4, "machine_4x8"},
    {"package:2 l2:3 core:1 pu:1", 6, 6, 6, 1, 2, "machine_2x3"},
    {"package:2 core:3 pu:1", 6, 6, 2, 1, 2, "machine_2x3"},
    {"core:5 pu:1", 5, 5, 1, 1, 1, "machine_1x5"},
    {"pu:1", 1, 1, 1, 1, 1, "machine_1x1"},
};

Test(topology, synthetic_machines_have_the_shape_they_say)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct qn_machine *m = NULL;
        struct qn_parse_error f = {""};
        cr_assert_eq(qn_machine_synthetic(&m, shapes[i].text, &f), QN_OK, "%s",
                     f.text);
        const char *s = shapes[i].text;
        cr_expect_eq(m->n, shapes[i].cores, "%s: %u cores", s, m->n);
        cr_expect_eq(DISTINCT(m, phys), shapes[i].phys, "%s: phys", s);
        cr_expect_eq(DISTINCT(m, cache), shapes[i].cache, "%s: cache", s);
        cr_expect_eq(DISTINCT(m, node), shapes[i].node, "%s: node", s);
        cr_expect_eq(DISTINCT(m, socket), shapes[i].socket, "%s: socket", s);
        cr_expect_str_eq(m->name, shapes[i].name);
        for (uint32_t k = 1; k < m->n; k++) {
            cr_assert_lt(m->core[k - 1].os, m->core[k].os);
        }
        cr_expect(m->n == 1 || !qn_machine_has_costs(m));
        qn_machine_destroy(m);
    }
}

/* Core numbers dealt round robin over the sockets, as some firmware does. */
Test(topology, groups_follow_the_objects_and_not_the_numbers)
{
    struct qn_machine *m = NULL;
    struct qn_parse_error f = {""};
    const char *text = "package:2 l3:1 core:2 pu:1(indexes=0,2,1,3)";
    cr_assert_eq(qn_machine_synthetic(&m, text, &f), QN_OK, "%s", f.text);
    cr_assert_eq(m->n, 4);
    cr_expect_eq(m->core[0].socket, m->core[2].socket);
    cr_expect_eq(m->core[1].cache, m->core[3].cache);
    cr_expect_neq(m->core[0].cache, m->core[1].cache);
    qn_machine_destroy(m);
}

Test(topology, what_hwloc_does_not_understand_is_one_line)
{
    static const char *const texts[] = {"",
                                        "nonsense",
                                        "core:0",
                                        "core[[:1000000 pu:1",
                                        "core:2(memory=1 pu:1",
                                        "[numa core:2 pu:1",
                                        "core:2x pu:1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct qn_machine *m = NULL;
        struct qn_parse_error f = {""};
        cr_expect_eq(qn_machine_synthetic(&m, texts[i], &f), QN_EINVAL, "%s",
                     texts[i]);
        cr_expect(f.text[0] != '\0' && strchr(f.text, '\n') == NULL);
        cr_assert_null(m);
    }
}

/* Before hwloc builds them: a million cores take it minutes. */
Test(topology, more_cores_than_the_most_are_refused_at_once, .timeout = 60)
{
    static const char *const texts[] = {"core:1025 pu:1",
                                        "core:1000000 pu:1000",
                                        "package:33 core:32 pu:1",
                                        "4000000000",
                                        "2 0x201",
                                        "l3:2 [numa(memory=1)] core:600 pu:1",
                                        "package:2(x=1) core:1000 pu:1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct qn_machine *m = NULL;
        struct qn_parse_error f = {""};
        cr_expect_eq(qn_machine_synthetic(&m, texts[i], &f), QN_EINVAL);
        cr_expect(strstr(f.text, "more than 1024 cores; ask") != NULL, "%s",
                  f.text);
    }
    struct qn_machine *m = NULL;
    cr_assert_eq(qn_machine_synthetic(
                     &m, "package:32 [numa(memory=2000)] core:32 pu:1", NULL),
                 QN_OK);
    cr_expect_eq(m->n, 1024);
    qn_machine_destroy(m);
}

/* The same machine by hwloc and by way of its XML. */
Test(topology, xml_says_what_hwloc_says)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        hwloc_topology_t t;
        char *xml = NULL;
        int len = 0;
        struct qn_machine *a = NULL, *b = NULL;
        struct qn_parse_error f = {""};
        const char *s = shapes[i].text;
        cr_assert_eq(hwloc_topology_init(&t), 0);
        cr_assert_eq(hwloc_topology_set_synthetic(t, s), 0);
        cr_assert_eq(hwloc_topology_load(t), 0);
        cr_assert_eq(hwloc_topology_export_xmlbuffer(t, &xml, &len, 0), 0);
        cr_assert_eq(qn_machine_synthetic(&a, s, &f), QN_OK);
        cr_assert_eq(qn_machine_parse_xml(&b, "x", xml, strlen(xml), &f), QN_OK,
                     "%s: %s", s, f.text);
        cr_assert_eq(a->n, b->n, "%s", s);
        cr_expect_eq(memcmp(a->core, b->core, a->n * sizeof *a->core), 0, "%s",
                     s);
        cr_expect_str_eq(a->name, b->name);
        hwloc_free_xmlbuffer(t, xml);
        hwloc_topology_destroy(t);
        qn_machine_destroy(a);
        qn_machine_destroy(b);
    }
}

/* Each is a file, and how its fault begins. */
Test(topology, xml_that_is_none_is_told_with_its_line)
{
#define ROOT "<topology version=\"2.0\">\n<object type=\"Machine\""
#define UNIT "\n<object type=\"PU\" os_index=\"0\"/>"
#define END  "\n</object></topology>"
    static const struct {
        const char *xml, *parse_error;
    } files[] = {
        {"", "x:1: XML: no element found; the file may be cut"},
        {"<topology vers", "x:1: XML: unclosed token; the file may be cut"},
        {ROOT ">" UNIT, "x:3: XML: no element found; the file may be cut"},
        {ROOT "></topology>", "x:2: XML: mismatched tag; correct it"},
        {"<a>\n</a>", "x:1: this is no topology"},
        {"<topology/>", "x:1: version: hwloc 1 wrote this"},
        {"<topology version=\"1.0\"/>", "x:1: version: hwloc 1 wrote this"},
        {"<topology version=\"4\"/>", "x:1: version: only 2 and 3.0"},
        {ROOT ">" END, "x: there is no usable core"},
        {ROOT ">\n<object type=\"PU\"/>" END, "x:3: os_index: write"},
        {ROOT ">\n<object type=\"PU\" os_index=\"-1\"/>" END,
         "x:3: os_index: write"},
        {ROOT ">\n<object type=\"PU\" os_index=\"65536\"/>" END,
         "x:3: os_index: write"},
        {ROOT ">" UNIT UNIT END, "x: core 0 is there twice"},
        {ROOT ">\n<object/>" END, "x:3: type: this object is not known"},
        {ROOT ">\n<info>" UNIT "</info>" END, "x:4: object: an object must"},
        {ROOT " allowed_cpuset=\"0x2\">" UNIT END, "x: there is no usable"},
        {ROOT " allowed_cpuset=\"0x2,0xf...f\">" UNIT END,
         "x:2: allowed_cpuset: write a set"},
        {ROOT " allowed_cpuset=\"0xfffffffff\">" UNIT END,
         "x:2: allowed_cpuset: write a set"},
        {ROOT ">\n<object type=\"PU\" os_index=\"0\" nodeset=\"1\"/>" END,
         "x:3: nodeset: write a set"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct qn_machine *m = NULL;
        struct qn_parse_error f = {""};
        const char *xml = files[i].xml;
        cr_expect_eq(qn_machine_parse_xml(&m, "x", xml, strlen(xml), &f),
                     QN_EINVAL, "%s", xml);
        cr_expect(strncmp(f.text, files[i].parse_error,
                          strlen(files[i].parse_error)) == 0,
                  "%s: %s", xml, f.text);
    }
}

/* Sets of 32 bits a word, the lowest last; "0xf...f" is all above. */
Test(topology, sets_of_xml_are_read_at_any_length)
{
    static const struct {
        const char *allowed, *nodes;
        uint32_t core, node; /* core UINT32_MAX: there is none */
    } sets[] = {
        {"0x1", "0x4", 0, 2},
        {"0x00000001,0x0", "0x00000001,,0x0", 32, 64},
        {"0x80000000,,", "0x0,0x80000000", 95, 31},
        {"0xf...f", "0xf...f,0x0", 40, 32},
        {"0xf...f,0x0", "0x1", 40, 0},
        {"0xf...f,0x0", "0x1", 31, UINT32_MAX},
        {"0x1", "", 0, 0},
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        struct qn_machine *m = NULL;
        char xml[400];
        bool there = sets[i].node != UINT32_MAX;
        snprintf(xml, sizeof xml,
                 ROOT " allowed_cpuset=\"%s\"><object type=\"PU\" "
                      "os_index=\"%u\" nodeset=\"%s\"/>" END,
                 sets[i].allowed, sets[i].core, sets[i].nodes);
        int err = qn_machine_parse_xml(&m, "x", xml, strlen(xml), NULL);
        cr_expect_eq(err, there ? QN_OK : QN_EINVAL, "%s", xml);
        cr_expect(m == NULL || m->core[0].node == sets[i].node, "%s: %u", xml,
                  m != NULL ? m->core[0].node : 0);
        qn_machine_destroy(m);
    }
}

/* What this machine writes of itself is read as what it is, and does not say
 * whose machine it is. */
Test(topology, the_xml_of_this_machine_reads_back)
{
    char *xml = NULL, host[256] = "";
    struct qn_machine *a = NULL, *b = NULL;
    struct qn_parse_error f = {""};
    cr_assert_eq(qn_machine_topology_xml(&xml, &f), QN_OK, "%s", f.text);
    cr_assert_eq(gethostname(host, sizeof host), 0);
    cr_assert_null(strstr(xml, "HostName"), "%s", xml);
    cr_assert_null(strstr(xml, "OSVersion"));
    cr_assert_eq(qn_machine_discover(&a, &f), QN_OK, "%s", f.text);
    cr_assert_eq(qn_machine_parse_xml(&b, "t.xml", xml, strlen(xml), &f), QN_OK,
                 "%s", f.text);
    cr_expect_leq(a->n, b->n); /* the file is not cut to our own mask */
    cr_expect_str_eq(a->facts.cpu, b->facts.cpu);
    for (uint32_t i = 0; i < a->n; i++) {
        cr_assert_lt(qn_machine_find(b, a->core[i].os), b->n);
    }
    free(xml);
    qn_machine_destroy(a);
    qn_machine_destroy(b);
}

Test(topology, only_cores_that_may_be_used_are_discovered)
{
    cpu_set_t all, one;
    struct qn_machine *m = NULL;
    struct qn_parse_error f = {""};
    cr_assert_eq(sched_getaffinity(0, sizeof all, &all), 0);
    size_t cpu = CPU_SETSIZE - 1;
    while (!CPU_ISSET(cpu, &all)) {
        cpu--;
    }
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    cr_assert_eq(qn_machine_discover(&m, &f), QN_OK, "%s", f.text);
    cr_assert_eq(sched_setaffinity(0, sizeof all, &all), 0);
    cr_expect_eq(m->n, 1);
    cr_expect_eq(m->core[0].os, (uint32_t)cpu);
    qn_machine_destroy(m);
}

/* A machine with gaps, as hwloc 3 wrote it, of which the data set says what it
 * is: XML is NUL-terminated, freed by free(). */
#define SPARSE QN_DATA "/amd64_sparse_10"

static char *sparse_xml(void)
{
    char *bytes = NULL;
    size_t len = 0;
    cr_assert_eq(
        qn_file_read(SPARSE "/topology.xml", 1 << 20, &bytes, &len, NULL),
        QN_OK);
    char *xml = strndup(bytes, len);
    free(bytes);
    return xml;
}

/* Whether a and b put the same cores together. */
static bool same_groups(const struct qn_machine *a, const struct qn_machine *b,
                        size_t offset)
{
    bool same = true;
    for (uint32_t i = 0; i < a->n; i++) {
        for (uint32_t j = 0; j < i; j++) {
            bool in_a = memcmp((char *)&a->core[i] + offset,
                               (char *)&a->core[j] + offset, 4) == 0;
            bool in_b = memcmp((char *)&b->core[i] + offset,
                               (char *)&b->core[j] + offset, 4) == 0;
            same = same && in_a == in_b;
        }
    }
    return same;
}

static void must_be_the_sparse_machine(const char *xml)
{
    struct qn_machine *a = NULL, *b = NULL;
    struct qn_parse_error f = {""};
    cr_assert_eq(qn_machine_load_csv(&a, SPARSE, &f), QN_OK, "%s", f.text);
    cr_assert_eq(qn_machine_parse_xml(&b, "t.xml", xml, strlen(xml), &f), QN_OK,
                 "%s", f.text);
    cr_assert_eq(a->n, b->n, "%u cores", b->n);
    for (uint32_t i = 0; i < a->n; i++) {
        cr_expect_eq(a->core[i].os, b->core[i].os);
    }
    cr_expect(same_groups(a, b, offsetof(struct qn_machine_core, phys)));
    cr_expect(same_groups(a, b, offsetof(struct qn_machine_core, node)));
    cr_expect(same_groups(a, b, offsetof(struct qn_machine_core, socket)));
    qn_machine_destroy(a);
    qn_machine_destroy(b);
}

/* Overwrite all places of `from` in text by `to`, which is as long. */
static void replace(char *text, const char *from, const char *to)
{
    cr_assert_eq(strlen(from), strlen(to));
    cr_assert_not_null(strstr(text, from), "%s", from);
    for (char *at = strstr(text, from); at != NULL; at = strstr(at, from)) {
        memcpy(at, to, strlen(to));
    }
}

/* Three packages have no memory of their own; two of them share one label if
 * only what is there now is asked for. */
Test(topology, xml_of_hwloc_3_is_the_machine_that_it_says)
{
    char *xml = sparse_xml();
    cr_assert_not_null(strstr(xml, "<topology version=\"3.0\">"));
    must_be_the_sparse_machine(xml);
    replace(xml, "<topology version=\"3.0\">", "<topology version=\"2.0\">");
    must_be_the_sparse_machine(xml);
    struct qn_machine *m = NULL;
    cr_assert_eq(qn_machine_parse_xml(&m, "t.xml", xml, strlen(xml), NULL),
                 QN_OK);
    cr_expect_eq(m->core[qn_machine_find(m, 12)].node, 6); /* taken out */
    cr_expect_eq(m->core[qn_machine_find(m, 2)].node, 1);
    qn_machine_destroy(m);
    free(xml);
}

Test(topology, cores_without_any_memory_node_get_one_per_package)
{
    char *xml = sparse_xml();
    replace(xml, "complete_nodeset=\"0x00000040\"",
            "complete_nodeset=\"0x00000000\"");
    replace(xml, "complete_nodeset=\"0x00000080\"",
            "complete_nodeset=\"0x00000000\"");
    must_be_the_sparse_machine(xml);
    free(xml);
}

/* What a later version means is not guessed; neither is an object. */
Test(topology, xml_that_is_newer_than_its_readers_is_refused)
{
    struct qn_machine *m = NULL;
    struct qn_parse_error f = {""};
    char *xml = sparse_xml();
    replace(xml, "version=\"3.0\"", "version=\"3.1\"");
    cr_expect_eq(qn_machine_parse_xml(&m, "t.xml", xml, strlen(xml), &f),
                 QN_EINVAL);
    cr_expect_str_eq(f.text, "t.xml:3: version: only 2 and 3.0 are known; "
                             "write the file with `lstopo --export-xml-flags "
                             "v2 FILE.xml`");
    replace(xml, "version=\"3.1\"", "version=\"3.0\"");
    replace(xml, "type=\"Package\"", "type=\"Chiplet\"");
    cr_expect_eq(qn_machine_parse_xml(&m, "t.xml", xml, strlen(xml), &f),
                 QN_EINVAL);
    cr_expect_str_eq(f.text, "t.xml:8: type: this object is not known; write "
                             "the file with an older hwloc");
    free(xml);
}
