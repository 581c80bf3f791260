#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/machine/machine.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#define NUMA  "core,phys,cache,node,socket\n"
#define PAIRS "from,to,send_cycles,receive_cycles\n"

static int parse(struct qn_machine **m, const char *numa, const char *pairs,
                 struct qn_parse_error *f)
{
    const struct qn_machine_text t = {.folder = "dir/two/",
                                      .numa = {numa, strlen(numa)},
                                      .pairs = {pairs, strlen(pairs)}};
    return qn_machine_parse_csv(m, &t, f);
}

Test(machine_csv, reads_rows_in_any_order_and_keeps_directions)
{
    struct qn_machine *m = NULL;
    struct qn_parse_error f = {""};
    cr_assert_eq(parse(&m, NUMA "7,1,2,3,4\r\n# seven first\n\n3,0,9,8,6\n",
                       PAIRS "7,3,1.5,20\n3,7,4,50.25\n", &f),
                 QN_OK, "%s", f.text);
    cr_expect_eq(m->n, 2);
    cr_expect_str_eq(m->name, "two");
    cr_expect_eq(m->core[0].os, 3);
    cr_expect_eq(m->core[0].cache, 9);
    cr_expect_eq(m->core[1].socket, 4);
    cr_expect_eq(qn_send_cost(m, 1, 0), 1.5);
    cr_expect_eq(qn_receive_cost(m, 1, 0), 20);
    cr_expect_eq(qn_receive_cost(m, 0, 1), 50.25);
    cr_expect_eq(qn_machine_check(m), QN_OK);
    qn_machine_destroy(m);
}

Test(machine_csv, one_core_needs_no_pair)
{
    struct qn_machine *m = NULL;
    cr_assert_eq(parse(&m, NUMA "5,0,0,0,0\n", PAIRS, NULL), QN_OK);
    cr_expect_eq(m->n, 1);
    qn_machine_destroy(m);
}

#define TWO NUMA "0,0,0,0,0\n1,1,0,0,0\n"

static const struct bad {
    const char *numa, *pairs, *parse_error; /* how the fault begins */
} bad[] = {
    {"", PAIRS, "dir/two//numa.csv:1: header:"},
    {"core,phys\n", PAIRS, "dir/two//numa.csv:1: header:"},
    {NUMA, PAIRS, "dir/two//numa.csv:1: core: no core"},
    {NUMA "0,0,0,0\n", PAIRS, "dir/two//numa.csv:2: socket: missing"},
    {NUMA "0,0,0,0,0,0\n", PAIRS, "dir/two//numa.csv:2: too many"},
    {NUMA "0,0,x,0,0\n", PAIRS, "dir/two//numa.csv:2: cache: \"x\""},
    {NUMA "-1,0,0,0,0\n", PAIRS, "dir/two//numa.csv:2: core: \"-1\""},
    {NUMA "1000000,0,0,0,0\n", PAIRS, "dir/two//numa.csv:2: core: \"1000000\""},
    {NUMA "0,0,0,0,99999999999999999999\n", PAIRS,
     "dir/two//numa.csv:2: socket:"},
    {NUMA "0,0,0,0,0\n\n0,1,0,0,0\n", PAIRS,
     "dir/two//numa.csv:4: core: 0 is there twice, first in line 2"},
    {NUMA "0,0,0,0,0", PAIRS, "dir/two//numa.csv:2: the last line has no end"},
    {TWO, "", "dir/two//pairwise.csv:1: header:"},
    {TWO, PAIRS "0,1,1,1\n",
     "dir/two//pairwise.csv:2: from,to: the file ends "
     "without the pair 1,0"},
    {TWO, PAIRS "0,1,1,1\n1,0,1,1", "dir/two//pairwise.csv:3: the last line"},
    {TWO, PAIRS "0,1,1,1\n0,1,1,1\n",
     "dir/two//pairwise.csv:3: from,to: the pair 0,1 is there twice"},
    {TWO, PAIRS "0,0,1,1\n", "dir/two//pairwise.csv:2: to: core 0 sends to"},
    {TWO, PAIRS "0,2,1,1\n", "dir/two//pairwise.csv:2: to: core 2 is not in"},
    {TWO, PAIRS "9,0,1,1\n", "dir/two//pairwise.csv:2: from: core 9 is not"},
    {TWO, PAIRS "0,1,-1,1\n", "dir/two//pairwise.csv:2: send_cycles: \"-1\""},
    {TWO, PAIRS "0,1,0,1\n", "dir/two//pairwise.csv:2: send_cycles: \"0\""},
    {TWO, PAIRS "0,1,1,nan\n", "dir/two//pairwise.csv:2: receive_cycles: \"na"},
    {TWO, PAIRS "0,1,1,inf\n", "dir/two//pairwise.csv:2: receive_cycles: \"in"},
    {TWO, PAIRS "0,1,1,1e999\n", "dir/two//pairwise.csv:2: receive_cycles:"},
    {TWO, PAIRS "0,1,0x1p3,1\n", "dir/two//pairwise.csv:2: send_cycles:"},
    {TWO, PAIRS "0,1,1,\n", "dir/two//pairwise.csv:2: receive_cycles: \"\""},
    {TWO, PAIRS "0,1,1\n", "dir/two//pairwise.csv:2: receive_cycles: missing"},
    {TWO, PAIRS "0,1,1,1,1\n", "dir/two//pairwise.csv:2: too many fields"},
    {TWO, PAIRS "0,1,1 ,1\n", "dir/two//pairwise.csv:2: send_cycles: \"1 \""},
};

Test(machine_csv, bad_files_are_refused_at_their_line_and_field)
{
    for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct qn_machine *m = NULL;
        struct qn_parse_error f = {""};
        cr_expect_eq(parse(&m, bad[i].numa, bad[i].pairs, &f), QN_EINVAL);
        cr_expect(strncmp(f.text, bad[i].parse_error,
                          strlen(bad[i].parse_error)) == 0,
                  "got \"%s\", expected \"%s\"", f.text, bad[i].parse_error);
        cr_assert_null(m);
    }
}

Test(machine_csv, more_cores_than_fit_are_refused_before_memory_is_taken)
{
    char *numa = malloc(64 + 2000 * 20);
    cr_assert_not_null(numa);
    size_t n = (size_t)sprintf(numa, NUMA);
    for (int i = 0; i < 2000; i++) {
        n += (size_t)sprintf(numa + n, "%d,0,0,0,0\n", i);
    }
    struct qn_machine *m = NULL;
    struct qn_parse_error f = {""};
    cr_expect_eq(parse(&m, numa, PAIRS, &f), QN_EINVAL);
    cr_expect(strstr(f.text, "numa.csv:1026: core: more than 1024") != NULL,
              "%s", f.text);
    free(numa);
}

static bool equal(const struct qn_machine *a, const struct qn_machine *b)
{
    size_t bytes = sizeof(double) * a->n * a->n;
    return a->n == b->n && strcmp(a->name, b->name) == 0 &&
           memcmp(a->core, b->core, sizeof *a->core * a->n) == 0 &&
           memcmp(a->send, b->send, bytes) == 0 &&
           memcmp(a->receive, b->receive, bytes) == 0;
}

/* Also with costs that need all 17 digits. */
Test(machine_csv, what_is_written_reads_back_bit_by_bit)
{
    static const char *const names[] = {"intel_xeon_e5_v2_2x10", "syn_8x4x1",
                                        "amd64_sparse_10",
                                        "threadripper_1950x_1x16"};
    for (uint32_t i = 0; i < 4; i++) {
        char path[512];
        struct qn_parse_error f = {""};
        struct qn_machine *a = NULL, *b = NULL;
        snprintf(path, sizeof path, QN_DATA "/%s", names[i]);
        cr_assert_eq(qn_machine_load(&a, path, &f), QN_OK, "%s", f.text);
        cr_expect_str_eq(a->name, names[i]);
        a->send[1] = 100.0 / 3;
        a->receive[2] = 0.1 + 0.2;
        struct qn_machine_text t = {.folder = names[i]};
        char *numa = NULL, *pairs = NULL;
        FILE *nf = open_memstream(&numa, &t.numa.bytes);
        FILE *pf = open_memstream(&pairs, &t.pairs.bytes);
        cr_assert_eq(qn_machine_write_csv(a, nf, pf), QN_OK);
        fclose(nf);
        fclose(pf);
        t.numa.text = numa;
        t.pairs.text = pairs;
        cr_assert_eq(qn_machine_parse_csv(&b, &t, &f), QN_OK, "%s", f.text);
        cr_expect(equal(a, b), "%s", names[i]);
        qn_machine_destroy(a);
        qn_machine_destroy(b);
        free(numa);
        free(pairs);
    }
}

Test(machine_csv, a_saved_folder_is_loaded_and_a_missing_one_named)
{
    char folder[] = "/tmp/qn_machine_XXXXXX";
    struct qn_machine *a = NULL, *b = NULL;
    struct qn_parse_error f = {""};
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(parse(&a, TWO, PAIRS "0,1,1,2\n1,0,3,4\n", &f), QN_OK);
    snprintf(a->name, sizeof a->name, "a \"quoted\" name");
    cr_assert_eq(qn_machine_save_csv(a, folder, &f), QN_OK, "%s", f.text);
    cr_assert_eq(qn_machine_load(&b, folder, &f), QN_OK, "%s", f.text);
    cr_expect(equal(a, b));
    cr_expect_eq(folder_remove(folder), 3);
    cr_expect_eq(qn_machine_save_csv(a, folder, &f), QN_ENOENT);
    cr_expect_eq(qn_machine_load_csv(&b, folder, &f), QN_ENOENT);
    cr_expect(strstr(f.text, "numa.csv: No such file") != NULL, "%s", f.text);
    qn_machine_destroy(a);
    qn_machine_destroy(b);
}
