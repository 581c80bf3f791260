#include "core/plan/tree_io.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/topo/adaptive.h"
#include "tests/support/test.h"
#include "tests/unit/core/topo/world.h"

#define HEAD "parent,child,order\n"

/* Cores 0, 4, 6, 10. */
static int parse(struct qn_shape *s, const char *text, struct qn_parse_error *f)
{
    struct qn_machine *m = scattered(4, 1);
    int err = qn_tree_parse_csv(s, m, "t.csv", text, strlen(text), f);
    qn_machine_destroy(m);
    return err;
}

Test(tree_io, reads_edges_in_any_order_with_and_without_root)
{
    struct qn_shape s;
    struct qn_parse_error f = {""};
    cr_assert_eq(parse(&s, HEAD "4,0,1\n4,6,0\n\n# x\n6,10,0\n", &f), QN_OK,
                 "%s", f.text);
    cr_expect_eq(s.root, 1);
    cr_expect_eq(qn_shape_children(&s, 1)[0], 2);
    cr_expect_eq(qn_shape_children(&s, 1)[1], 0);
    cr_expect_eq(s.parent[3], 2);
    cr_expect_eq(parse(&s, "# root=4\n" HEAD "4,0,1\n4,6,0\n6,10,0\n", &f),
                 QN_OK);
}

static const struct {
    const char *text, *parse_error;
} bad[] = {
    {"", "t.csv:1: header:"},
    {HEAD, "t.csv:1: child: core 4 is missing"},
    {HEAD "4,0,0\n4,6,1\n", "t.csv:3: child: core 10 is missing"},
    {HEAD "4,0,0\n4,7,1\n", "t.csv:3: child: core 7 is not on this"},
    {HEAD "0,4,0\n0,6,1\n4,6,0\n", "t.csv:4: child: core 6 has two parents"},
    {HEAD "0,0,0\n", "t.csv:2: child: core 0 is its own parent"},
    {"# root=6\n" HEAD "0,6,0\n", "t.csv:3: child: core 6 is the root"},
    {"# root=7\n" HEAD, "t.csv:1: root: core 7 is not"},
    {"# root=x\n" HEAD, "t.csv:1: root: \"x\""},
    {"# root=0\n" HEAD "0,4,0\n6,10,0\n10,6,0\n",
     "t.csv:5: parent: core 6 is on a cycle"},
    {HEAD "4,0,0\n0,4,0\n6,10,0\n10,6,0\n", "t.csv:2: parent: core 0 is on"},
    {HEAD "0,4,0\n0,6,2\n0,10,1\n4,0,0\n", "t.csv:5: parent: core 0 is on"},
    /* Core 0 hangs below the cycle, and is not on it. */
    {HEAD "0,4,0\n6,0,1\n10,6,0\n6,10,0\n",
     "t.csv:4: parent: core 6 is on a cycle: every core has a parent"},
    {"# root=4\n" HEAD "6,0,1\n10,6,0\n6,10,0\n",
     "t.csv:4: parent: core 6 is on a cycle; the root"},
    {HEAD "0,4,0\n0,6,3\n0,10,1\n", "t.csv:3: order: core 6 has a place"},
    {HEAD "0,4,0\n0,6,0\n0,10,1\n", "t.csv:3: order: core 6 has a place"},
    {HEAD "0,4,0\n0,6,-1\n", "t.csv:3: order: \"-1\""},
    {HEAD "0,4,0\n0,6,1\n0,10,2", "t.csv:4: the last line"},
    {HEAD "0,4,0,0\n", "t.csv:2: too many"},
};

Test(tree_io, bad_trees_are_refused_at_their_line_and_field)
{
    for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct qn_shape s;
        struct qn_parse_error f = {""};
        cr_expect_eq(parse(&s, bad[i].text, &f), QN_EINVAL, "%u", i);
        cr_expect(strncmp(f.text, bad[i].parse_error,
                          strlen(bad[i].parse_error)) == 0,
                  "%u: got \"%s\", expected \"%s\"", i, f.text,
                  bad[i].parse_error);
        cr_expect_eq(parse(&s, bad[i].text, NULL), QN_EINVAL);
    }
}

Test(tree_io, what_is_written_reads_back_equal)
{
    for (uint32_t n = 1; n <= 20; n++) {
        struct qn_machine *m = scattered(n, n);
        struct qn_shape s, t;
        char *text = NULL;
        size_t len = 0;
        cr_assert_eq(qn_adaptive_build(&s, m, n / 2, QN_LEVEL_NODE), QN_OK);
        FILE *f = open_memstream(&text, &len);
        cr_assert_eq(qn_tree_write_csv(m, &s, f), QN_OK);
        fclose(f);
        struct qn_parse_error e = {""};
        cr_assert_eq(qn_tree_parse_csv(&t, m, "t", text, len, &e), QN_OK, "%s",
                     e.text);
        cr_expect(qn_shape_equal(&s, &t));
        free(text);
        qn_machine_destroy(m);
    }
}

Test(tree_io, pictures_and_json_have_every_edge)
{
    struct qn_machine *m = scattered(3, 1);
    static const uint8_t edge[][2] = {{0, 2}, {2, 1}};
    struct qn_shape s = shape_of(3, 0, edge);
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    cr_assert_eq(qn_tree_write_dot(m, &s, "tree", f), QN_OK);
    cr_assert_eq(qn_tree_write_json(m, &s, f), QN_OK);
    fclose(f);
    cr_expect(strstr(text, "0 -> 6 [label=\"0\"]") != NULL, "%s", text);
    cr_expect(strstr(text, "6 -> 4 [label=\"0\"]") != NULL, "%s", text);
    cr_expect(strstr(text, "{\"parent\": 6, \"child\": 4, \"order\": 0") !=
                  NULL,
              "%s", text);
    free(text);
    qn_machine_destroy(m);
}

Test(tree_io, maps_of_rings_are_permutations)
{
    struct qn_machine *m = scattered(3, 1);
    const struct qn_diamond_ring_opts o = {.n = 3, .k = 2};
    struct qn_diamond_ring *r = NULL;
    struct qn_parse_error f = {""};
    cr_assert_eq(qn_diamond_ring_create(&r, &o), QN_OK);
    static const char good[] = "logical,core\n0,6\n2,0\n1,4\n";
    cr_assert_eq(
        qn_diamond_ring_parse_map(r, m, "r", good, sizeof good - 1, &f), QN_OK,
        "%s", f.text);
    cr_expect(r->core[0] == 2 && r->core[1] == 1 && r->core[2] == 0);
    static const char *const wrong[] = {
        "logical,core\n0,6\n0,0\n", "logical,core\n0,6\n1,6\n",
        "logical,core\n3,6\n",      "logical,core\n0,6\n1,0\n",
        "logical,core\n0,5\n",      ""};
    for (uint32_t i = 0; i < 6; i++) {
        cr_expect_eq(qn_diamond_ring_parse_map(r, m, "r", wrong[i],
                                               strlen(wrong[i]), &f),
                     QN_EINVAL, "%u", i);
    }
    cr_expect_eq(r->core[0], 2);
    qn_diamond_ring_destroy(r);
    qn_machine_destroy(m);
}
