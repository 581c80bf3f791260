#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/machine/machine.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

/* Three cores with everything that can be known. */
static struct qn_machine *known(void)
{
    struct qn_machine *m = NULL;
    cr_assert_eq(qn_machine_create(&m, 3), QN_OK);
    cr_assert_eq(qn_machine_make_room(m), QN_OK);
    for (uint32_t u = 0; u < 3; u++) {
        for (uint32_t v = 0; v < 3; v++) {
            size_t at = (size_t)u * 3 + v;
            m->send[at] = u == v ? 0 : 10.5 + u;
            m->receive[at] = u == v ? 0 : 90 + v;
            m->facts.round_trip[at] = u == v ? 0 : 200.25 * (u + v);
            m->facts.level[at] = u == v ? 0 : 100.0 / 3 + u;
        }
    }
    m->core[2].os = 9;
    m->facts.unstable[1] = m->facts.unstable[3] = true;
    m->facts.unstable[5] = m->facts.unstable[7] = true;
    m->facts.clock_ghz = 2.596;
    m->facts.queued_factor = 0.19;
    for (uint32_t b = 0; b < QN_BANDWIDTHS; b++) {
        m->facts.bandwidth[b] = 7.25 + b;
    }
    strcpy(m->facts.cpu, "AMD \"EPYC\"");
    strcpy(m->facts.measured, "2026-11-21T21:30:00Z");
    strcpy(m->facts.transport, "ump");
    cr_assert_eq(qn_machine_check(m), QN_OK);
    return m;
}

static char *text_of(const struct qn_machine *m)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    cr_assert_eq(qn_machine_write_json(m, f), QN_OK);
    fclose(f);
    return text;
}

static void expect_equal(const struct qn_machine *a, const struct qn_machine *b)
{
    cr_expect_str_eq(b->facts.cpu, a->facts.cpu);
    cr_expect_str_eq(b->facts.measured, a->facts.measured);
    cr_expect_str_eq(b->facts.transport, a->facts.transport);
    cr_expect_eq(b->facts.clock_ghz, a->facts.clock_ghz);
    cr_expect_eq(b->facts.queued_factor, a->facts.queued_factor);
    for (uint32_t i = 0; i < QN_BANDWIDTHS; i++) {
        cr_expect_eq(b->facts.bandwidth[i], a->facts.bandwidth[i]);
    }
    size_t bytes = 9 * sizeof(double);
    cr_assert_not_null(b->facts.round_trip);
    cr_assert_not_null(b->facts.level);
    cr_assert_not_null(b->facts.unstable);
    cr_expect_eq(memcmp(b->facts.round_trip, a->facts.round_trip, bytes), 0);
    cr_expect_eq(memcmp(b->facts.level, a->facts.level, bytes), 0);
    cr_expect_eq(memcmp(b->facts.unstable, a->facts.unstable, 9), 0);
}

Test(machine_facts, the_machine_file_keeps_them_all)
{
    struct qn_machine *a = known(), *b = NULL;
    struct qn_parse_error f = {""};
    char *text = text_of(a);
    int err = qn_machine_parse_json(&b, "m", text, strlen(text), &f);
    cr_assert_eq(err, QN_OK, "%s", f.text);
    expect_equal(a, b);
    free(text);
    qn_machine_destroy(a);
    qn_machine_destroy(b);
}

/* Those that are matrices are in a table of their own, which goes with the
 * machine that it belongs to. */
Test(machine_facts, a_folder_keeps_them_all_and_none_of_another_machine)
{
    char folder[] = "/tmp/qn_facts_XXXXXX", path[64];
    struct qn_machine *a = known(), *b = NULL, *bare = NULL;
    struct qn_parse_error f = {""};
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(qn_machine_save_csv(a, folder, &f), QN_OK, "%s", f.text);
    cr_assert_eq(qn_machine_load(&b, folder, &f), QN_OK, "%s", f.text);
    cr_expect_eq(qn_machine_check(b), QN_OK);
    expect_equal(a, b);
    qn_machine_destroy(b);

    snprintf(path, sizeof path, "%s/roundtrip.csv", folder);
    cr_expect_eq(access(path, R_OK), 0);
    cr_assert_eq(qn_machine_create(&bare, 1), QN_OK);
    cr_assert_eq(qn_machine_save_csv(bare, folder, &f), QN_OK, "%s", f.text);
    cr_expect_eq(access(path, R_OK), -1);
    cr_assert_eq(qn_machine_load(&b, folder, &f), QN_OK, "%s", f.text);
    cr_expect_null(b->facts.round_trip);
    cr_expect_null(b->facts.unstable);
    qn_machine_destroy(a);
    qn_machine_destroy(b);
    qn_machine_destroy(bare);
    cr_expect_eq(folder_remove(folder), 3);
}

/* X in a file of either form. @return the line that refuses it; "": none. */
static const char *refusal(const char *x, bool json)
{
    static struct qn_parse_error f;
    static const char numa[] = "core,phys,cache,node,socket\n0,0,0,0,0\n";
    static const char pairs[] = "from,to,send_cycles,receive_cycles\n";
    struct qn_machine *m = NULL, *one = NULL;
    char meta[64], file[1024], *text, *end;
    f.text[0] = '\0';
    snprintf(meta, sizeof meta, "{\"copy_gb_s\": %s}", x);
    const struct qn_machine_text t = {.folder = "d",
                                      .numa = {numa, sizeof numa - 1},
                                      .pairs = {pairs, sizeof pairs - 1},
                                      .meta = {meta, strlen(meta)}};
    cr_assert_eq(qn_machine_create(&one, 1), QN_OK);
    one->facts.bandwidth[QN_BANDWIDTH_COPY] = 123;
    text = text_of(one);
    end = strstr(text, "123");
    cr_assert_not_null(end);
    snprintf(file, sizeof file, "%.*s%s\n}\n", (int)(end - text), text, x);
    const int rc = json ? qn_machine_parse_json(&m, "m", file, strlen(file), &f)
                        : qn_machine_parse_csv(&m, &t, &f);
    cr_expect_eq(rc, f.text[0] == '\0' ? QN_OK : QN_EINVAL, "%s", f.text);
    free(text);
    qn_machine_destroy(one);
    qn_machine_destroy(m);
    return f.text;
}

Test(machine_facts, a_bandwidth_out_of_range_is_refused_in_either_form)
{
    static const char *const wrong[] = {"1e-5", "0", "-1", "1001", "\"8\""};
    for (int json = 0; json <= 1; json++) {
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            const char *line = refusal(wrong[i], json);
            cr_expect(strstr(line, "copy_gb_s") != NULL &&
                          strstr(line, "from 0.001 to 1000") != NULL,
                      "%s: '%s'", wrong[i], line);
        }
        cr_expect_str_eq(refusal("0.001", json), "");
        cr_expect_str_eq(refusal("1000", json), "");
    }
}

static int parse_trips(struct qn_machine **m, const char *trips,
                       struct qn_parse_error *f)
{
    static const char numa[] = "core,phys,cache,node,socket\n0,0,0,0,0\n"
                               "4,1,0,0,0\n7,2,0,0,0\n";
    static const char pairs[] =
        "from,to,send_cycles,receive_cycles\n0,4,1,1\n0,7,1,1\n4,0,1,1\n"
        "4,7,1,1\n7,0,1,1\n7,4,1,1\n";
    const struct qn_machine_text t = {.folder = "d",
                                      .numa = {numa, sizeof numa - 1},
                                      .pairs = {pairs, sizeof pairs - 1},
                                      .trips = {trips, strlen(trips)}};
    return qn_machine_parse_csv(m, &t, f);
}

Test(machine_facts, a_folder_may_know_some_of_them)
{
    struct qn_machine *m = NULL;
    struct qn_parse_error f = {""};
    cr_assert_eq(parse_trips(&m,
                             "from,to,rtt_cycles,unstable\n7,4,2.5,1\n"
                             "# a comment\n0,4,3,0\n7,0,4,0\n",
                             &f),
                 QN_OK, "%s", f.text);
    cr_expect_eq(qn_machine_check(m), QN_OK);
    cr_expect_eq(m->facts.round_trip[1 * 3 + 2], 2.5);
    cr_expect_eq(m->facts.round_trip[2 * 3 + 1], 2.5);
    cr_expect(qn_machine_unstable(m, 1, 2) && qn_machine_unstable(m, 2, 1));
    cr_expect(!qn_machine_unstable(m, 0, 1));
    cr_expect_eq(qn_machine_unstable_pairs(m), 1);
    cr_expect_null(m->facts.level);
    qn_machine_destroy(m);
}

#define TRIPS "from,to,rtt_cycles,level_cycles,level_back_cycles,unstable\n"

static const struct {
    const char *text, *parse_error; /* how it begins */
} wrong_trips[] = {
    {"", "d/roundtrip.csv:1: header: write \"from,to,rtt_cycles,"},
    {"from,to\n", "d/roundtrip.csv:1: header:"},
    {"from,to,rtt\n", "d/roundtrip.csv:1: header:"},
    {"from,to,unstable,rtt_cycles\n", "d/roundtrip.csv:1: header:"},
    {TRIPS "0,4,1,1,1,0", "d/roundtrip.csv:2: the last line has no end"},
    {TRIPS "0,4,1,1,1\n", "d/roundtrip.csv:2: unstable: missing"},
    {TRIPS "0,4,1,1,1,0,0\n", "d/roundtrip.csv:2: too many fields"},
    {TRIPS "0,4,nan,1,1,0\n", "d/roundtrip.csv:2: rtt_cycles: \"nan\""},
    {TRIPS "0,4,1,-1,1,0\n", "d/roundtrip.csv:2: level_cycles: \"-1\""},
    {TRIPS "0,4,1,1,-1,0\n", "d/roundtrip.csv:2: level_back_cycles: \"-1\""},
    {"from,to,level_cycles\n", "d/roundtrip.csv:1: header:"},
    {TRIPS "0,4,1,1,1,2\n", "d/roundtrip.csv:2: unstable: \"2\""},
    {TRIPS "0,5,1,1,1,0\n", "d/roundtrip.csv:2: to: core 5 is not in"},
    {TRIPS "0,0,1,1,1,0\n", "d/roundtrip.csv:2: to: core 0 sends to itself"},
    {TRIPS "0,4,1,1,1,0\n4,0,1,1,1,0\n",
     "d/roundtrip.csv:3: from,to: the pair 4,0 is there twice"},
    {TRIPS "0,4,1,1,1,0\n7,4,1,1,1,0\n",
     "d/roundtrip.csv:3: from,to: the file ends without the pair 0,7; each "
     "pair of cores needs a row"},
};

Test(machine_facts, a_wrong_table_is_refused_at_its_line_and_field)
{
    for (size_t i = 0; i < sizeof wrong_trips / sizeof *wrong_trips; i++) {
        struct qn_machine *m = NULL;
        struct qn_parse_error f = {""};
        const char *parse_error = wrong_trips[i].parse_error;
        cr_expect_eq(parse_trips(&m, wrong_trips[i].text, &f), QN_EINVAL);
        cr_expect(strncmp(f.text, parse_error, strlen(parse_error)) == 0,
                  "got \"%s\", expected \"%s\"", f.text, parse_error);
        cr_assert_null(m);
    }
}

Test(machine_facts, without_any_the_file_is_of_version_1)
{
    struct qn_machine *m = NULL;
    cr_assert_eq(qn_machine_create(&m, 1), QN_OK);
    char *text = text_of(m);
    cr_assert_not_null(strstr(text, "\"version\": 1,"), "%s", text);
    cr_assert_null(strstr(text, "unstable"));
    free(text);
    strcpy(m->facts.cpu, "x");
    text = text_of(m);
    cr_assert_not_null(strstr(text, "\"version\": 2,"), "%s", text);
    free(text);
    qn_machine_destroy(m);
}

Test(machine_facts, a_subset_keeps_those_of_its_pairs)
{
    struct qn_machine *m = known(), *r = NULL;
    const uint32_t index[] = {1, 2};
    cr_assert_eq(qn_machine_restrict(&r, m, index, 2), QN_OK);
    cr_expect_eq(qn_machine_check(r), QN_OK);
    cr_expect(qn_machine_unstable(r, 0, 1));
    cr_expect_eq(r->facts.round_trip[1], 200.25 * 3);
    cr_expect_eq(r->facts.queued_factor, 0.19);
    qn_machine_destroy(r);
    const uint32_t ends[] = {0, 2};
    cr_assert_eq(qn_machine_restrict(&r, m, ends, 2), QN_OK);
    cr_expect(!qn_machine_unstable(r, 0, 1));
    qn_machine_destroy(r);
    qn_machine_destroy(m);
}

Test(machine_facts, those_out_of_range_make_no_machine)
{
    struct qn_machine *m = known();
    m->facts.bandwidth[QN_BANDWIDTH_LINK] = QN_BANDWIDTH_LEAST / 2;
    cr_expect_eq(qn_machine_check(m), QN_EINVAL);
    m->facts.bandwidth[QN_BANDWIDTH_LINK] = QN_BANDWIDTH_LEAST;
    cr_expect_eq(qn_machine_check(m), QN_OK);
    m->facts.unstable[1] = false; /* of one direction only */
    cr_expect_eq(qn_machine_check(m), QN_EINVAL);
    m->facts.unstable[1] = true;
    m->facts.round_trip[1] += 1;
    cr_expect_eq(qn_machine_check(m), QN_EINVAL);
    m->facts.round_trip[1] -= 1;
    cr_expect_eq(qn_machine_check(m), QN_OK);
    m->facts.queued_factor = 1.5;
    cr_expect_eq(qn_machine_check(m), QN_EINVAL);
    qn_machine_destroy(m);
}

/* Two cores; one fact after the other is put in at the end. */
static const char head[] = "{\"format\": \"quoin-machine\", \"version\": 2,"
                           "\"name\": \"\", \"units\": \"cycles\", \"cores\": ["
                           "{\"core\": 3, \"phys\": 0, \"cache\": 0,"
                           " \"node\": 0, \"socket\": 0},"
                           "{\"core\": 5, \"phys\": 1, \"cache\": 0,"
                           " \"node\": 0, \"socket\": 0}],"
                           "\"send\": [[0, 1], [2, 0]],"
                           "\"receive\": [[0, 3], [4, 0]],\n";

static const struct {
    const char *fact, *parse_error;
} wrong[] = {
    {"\"cpu\": 7", "m:2: cpu: write a string"},
    {"\"link_gb_s\": 0", "m:2: link_gb_s: write a number from 0.001"},
    {"\"cache_mib\": 1001", "m:2: cache_mib: write a number from 0.001"},
    {"\"queued_factor\": 0", "m:2: queued_factor: write a number"},
    {"\"queued_factor\": 1.01", "m:2: queued_factor: write a number"},
    {"\"queued_factor\": \"x\"", "m:2: queued_factor: write a number"},
    {"\"clock_ghz\": -2", "m:2: clock_ghz: write a number"},
    {"\"clock_ghz\": 2000", "m:2: clock_ghz: write a number"},
    {"\"round_trip\": [[0, 1]]", "m:2: round_trip: write a list"},
    {"\"round_trip\": [[0, 1],\n[2, 0]]", "m:3: round_trip[1][0]: the matrix"},
    {"\"level\": [[0, 1],\n[-1, 0]]", "m:3: level[1][0]: write cycles"},
    {"\"unstable\": 7", "m:2: unstable: write a list"},
    {"\"unstable\": [[3, 5],\n[3, 5]]", "m:3: unstable[1]: the pair is there"},
    {"\"unstable\": [[5, 3]]", "m:2: unstable[0]: write two cores"},
    {"\"unstable\": [[3, 3]]", "m:2: unstable[0]: write two cores"},
    {"\"unstable\": [[3, 4]]", "m:2: unstable[0]: write two cores"},
    {"\"unstable\": [[3]]", "m:2: unstable[0]: write two cores"},
    {"\"unstable\": [7]", "m:2: unstable[0]: write two cores"},
    {"\"unstabel\": []", "m:2: unstabel: unknown member"},
};

Test(machine_facts, wrong_ones_are_refused_at_their_line_and_field)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[1000];
        struct qn_machine *m = NULL;
        struct qn_parse_error f = {""};
        snprintf(text, sizeof text, "%s%s}", head, wrong[i].fact);
        int err = qn_machine_parse_json(&m, "m", text, strlen(text), &f);
        cr_expect_eq(err, QN_EINVAL, "%s", wrong[i].fact);
        cr_expect(strncmp(f.text, wrong[i].parse_error,
                          strlen(wrong[i].parse_error)) == 0,
                  "got \"%s\", expected \"%s\"", f.text, wrong[i].parse_error);
        cr_assert_null(m);
    }
}
