#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/machine/machine.h"
#include "tests/support/test.h"

static int parse(struct qn_machine **m, const char *text,
                 struct qn_parse_error *f)
{
    return qn_machine_parse_json(m, "m.json", text, strlen(text), f);
}

Test(machine_json, what_is_written_reads_back_bit_by_bit)
{
    struct qn_machine *a = NULL, *b = NULL;
    struct qn_parse_error f = {""};
    char *text = NULL;
    size_t len = 0;
    cr_assert_eq(qn_machine_load(&a, QN_DATA "/amd64_sparse_10", &f), QN_OK);
    a->send[1] = 100.0 / 3;
    FILE *out = open_memstream(&text, &len);
    cr_assert_eq(qn_machine_write_json(a, out), QN_OK);
    fclose(out);
    cr_assert_eq(qn_machine_parse_json(&b, "m.json", text, len, &f), QN_OK,
                 "%s", f.text);
    size_t bytes = sizeof(double) * a->n * a->n;
    cr_expect_str_eq(a->name, b->name);
    cr_assert_eq(a->n, b->n);
    cr_expect_eq(memcmp(a->core, b->core, sizeof *a->core * a->n), 0);
    cr_expect_eq(memcmp(a->send, b->send, bytes), 0);
    cr_expect_eq(memcmp(a->receive, b->receive, bytes), 0);
    for (size_t i = 0; i + 2 < len; i++) { /* cut anywhere, it is refused */
        struct qn_machine *c = NULL;
        cr_assert_neq(qn_machine_parse_json(&c, "m.json", text, i, &f), QN_OK);
    }
    qn_machine_destroy(a);
    qn_machine_destroy(b);
    free(text);
}

/* One field per line: the line of a fault is the line of its field. */
static const char good[] = "{\"format\": \"quoin-machine\",\n"
                           "\"version\": 1,\n"
                           "\"name\": \"two \\\"[{\\\" cores\",\n"
                           "\"units\": \"cycles\",\n"
                           "\"cores\": [\n"
                           "{\"core\": 0, \"phys\": 0, \"cache\": 0,\n"
                           " \"node\": 0, \"socket\": 0},\n"
                           "{\"core\": 5, \"phys\": 1, \"cache\": 0,\n"
                           " \"node\": 7, \"socket\": 0}],\n"
                           "\"send\": [[0, 11.5],\n"
                           " [12.5, 0]],\n"
                           "\"receive\": [[0, 13.5],\n"
                           " [14.5,\n"
                           " 0]]}\n";

static const struct damage {
    const char *from, *to, *parse_error;
} damages[] = {
    {"quoin-machine", "other", "m.json:1: format:"},
    {"\"version\": 1", "\"version\": 3", "m.json:2: version:"},
    {"\"version\": 1", "\"version\": 0", "m.json:2: version:"},
    {"\"version\": 1", "\"version\": \"1\"", "m.json:2: version:"},
    {"\"version\"", "\"vision\"", "m.json:1: version:"},
    {"\"cycles\"", "\"ns\"", "m.json:4: units:"},
    {"\"units\"", "\"name\"",
     "m.json:4: name: duplicate object key near '\"name\"'; remove one"},
    {"\"units\": \"cycles\"", "\"units\": \"cycles\", \"more\": []",
     "m.json:4: more: unknown"},
    {"\"units\": \"cycles\"", "\"units\": \"cycles\", \"cpu\": \"x\"",
     "m.json:4: cpu: unknown"},
    {"\"core\": 5", "\"core\": 0", "m.json:8: cores[1].core: core numbers"},
    {"\"core\": 5", "\"core\": -5", "m.json:8: cores[1].core: write"},
    {"\"core\": 5", "\"core\": 1000000", "m.json:8: cores[1].core: write"},
    {"\"node\": 7", "\"node\": 7.5", "m.json:9: cores[1].node: write"},
    {"\"node\": 7", "\"knot\": 7", "m.json:8: cores[1].node: write"},
    {"\"node\": 7", "\"node\": 7, \"x\": 1", "m.json:8: cores[1]: a core"},
    {"11.5", "0", "m.json:10: send[0][1]: write cycles"},
    {"12.5", "-12.5", "m.json:11: send[1][0]: write cycles"},
    {"[0, 11.5]", "[1, 11.5]", "m.json:10: send[0][0]: a core's cost"},
    {"[0, 11.5]", "[0]", "m.json:10: send[0]: the row"},
    {"[0, 11.5]", "7", "m.json:10: send[0]: the row"},
    {"14.5", "null", "m.json:13: receive[1][0]: write"},
    {"14.5", "NaN",
     "m.json:13: receive[1][0]: invalid token near 'NaN'; this is not JSON"},
    {"14.5", "nan", "m.json:13: receive[1][0]: invalid token near 'nan'"},
    {"14.5", "1e999",
     "m.json:13: receive[1][0]: real number overflow near '1e999'; write a "
     "smaller number"},
    {" 0]]}", " 0]",
     "m.json:15: receive[1]: ']' expected near end of file; the "
     "file may be cut"},
    {"14.5", "2e12", "m.json:13: receive[1][0]: write"},
    {" 0]]}", " null]]}", "m.json:14: receive[1][1]: a core's"},
    {" 0]]}", " 0], [1, 2]]}", "m.json:12: receive: write a list"},
    {" 0]]}", " 0]]} x", "m.json:14: JSON:"},
};

Test(machine_json, bad_files_are_refused_at_their_line_and_field)
{
    struct qn_machine *m = NULL;
    struct qn_parse_error f = {""};
    cr_assert_eq(parse(&m, good, &f), QN_OK, "%s", f.text);
    cr_expect_eq(qn_receive_cost(m, 1, 0), 14.5);
    cr_expect_eq(m->core[1].node, 7);
    qn_machine_destroy(m);
    for (uint32_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        const struct damage *d = &damages[i];
        char text[2000];
        const char *at = strstr(good, d->from);
        cr_assert_not_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, d->to,
                 at + strlen(d->from));
        m = NULL;
        cr_expect_eq(parse(&m, text, &f), QN_EINVAL, "%s -> %s", d->from,
                     d->to);
        cr_expect(strncmp(f.text, d->parse_error, strlen(d->parse_error)) == 0,
                  "got \"%s\", expected \"%s\"", f.text, d->parse_error);
        cr_assert_null(m);
    }
}

/* A file of one core whose name is this. */
static void read_name(const char *name, char *out)
{
    char text[600];
    struct qn_machine *m = NULL;
    struct qn_parse_error f = {""};
    snprintf(text, sizeof text,
             "{\"format\": \"quoin-machine\", \"version\": 1, \"name\": "
             "\"%s\", \"units\": \"cycles\", \"cores\": [{\"core\": 0, "
             "\"phys\": 0, \"cache\": 0, \"node\": 0, \"socket\": 0}], "
             "\"send\": [[0]], \"receive\": [[0]]}",
             name);
    cr_assert_eq(parse(&m, text, &f), QN_OK, "%s", f.text);
    strcpy(out, m->name);
    qn_machine_destroy(m);
}

Test(machine_json, a_name_is_printable_and_ends_in_a_whole_character)
{
    char name[QN_MACHINE_NAME_MAX + 1];
    read_name("a\\u001b[31m\\nb", name);
    cr_expect_str_eq(name, "a?[31m?b");
    read_name("12345678901234567890123456789012345678901234567890123456789012"
              "\xc3\xa4",
              name);
    cr_expect_eq(strlen(name), 62, "%s", name);
    read_name("1234567890123456789012345678901234567890123456789012345678901"
              "\xc3\xa4z",
              name);
    cr_expect_str_eq(name + 61, "\xc3\xa4");
}

Test(machine_json, what_is_no_object_is_no_machine)
{
    static const char *const texts[] = {"", "[]", "1", "{}", "[[[[", "\"a"};
    for (uint32_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct qn_machine *m = NULL;
        struct qn_parse_error f = {""};
        cr_expect_eq(parse(&m, texts[i], &f), QN_EINVAL, "%s", texts[i]);
        cr_expect(strncmp(f.text, "m.json:1: ", 10) == 0, "%s", f.text);
    }
}

Test(machine_json, a_missing_file_is_named)
{
    struct qn_machine *m = NULL;
    struct qn_parse_error f = {""};
    cr_expect_eq(qn_machine_load(&m, "/nowhere/m.json", &f), QN_ENOENT);
    cr_expect_str_eq(f.text, "/nowhere/m.json: No such file or directory");
}
