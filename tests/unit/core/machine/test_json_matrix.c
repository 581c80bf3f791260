#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/machine/json_line_internal.h"
#include "core/machine/json_matrix_internal.h"
#include "tests/support/test.h"

static struct qn_json_matrices take(const char *text)
{
    struct qn_json_matrices t;
    cr_assert_eq(qn_json_matrices_take(text, strlen(text), &t), QN_OK);
    t.rest[t.len] = '\0'; /* room for it is there */
    return t;
}

/* Each is x in {"send":[[0,x],[7.25,0.0]]}, with what jansson makes of it. */
Test(json_matrix, numbers_are_what_a_parser_makes_of_them)
{
    static const char *const numbers[] = {
        "1",
        "63.7",
        "0.01",
        "1e2",
        "1E+2",
        "25e-1",
        "1e12",
        " 12 ",
        "\n3\t",
        "0.1e1",
        "225.123456789",
        "1.0e00002",
        "123456789012",
        "0.1000000000000000055511151231257827",
        "33.333333333333336"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char text[200];
        snprintf(text, sizeof text, "{\"send\":[[0,%s],[7.25,0.0]]}",
                 numbers[i]);
        json_t *root = json_loads(text, 0, NULL);
        struct qn_json_matrices t = take(text);
        const struct qn_json_matrix *m = qn_json_matrices_find(&t, "send");
        cr_assert(root != NULL && m != NULL, "%s", text);
        cr_assert_eq(m->n, 2);
        double want = json_number_value(json_array_get(
            json_array_get(json_object_get(root, "send"), 0), 1));
        cr_expect(memcmp(&m->cost[1], &want, sizeof want) == 0, "%s: %.17g",
                  numbers[i], m->cost[1]);
        cr_expect(m->cost[0] == 0 && m->cost[2] == 7.25 && m->cost[3] == 0);
        qn_json_matrices_fini(&t);
        json_decref(root);
    }
}

/* The parser behind it has to say what is wrong. */
Test(json_matrix, what_is_odd_stays_where_it_is)
{
    static const char *const odd[] = {
        "{\"send\":[[0,01],[1,0]]}",
        "{\"send\":[[0,1.],[1,0]]}",
        "{\"send\":[[0,.5],[1,0]]}",
        "{\"send\":[[0,-1],[1,0]]}",
        "{\"send\":[[0,+1],[1,0]]}",
        "{\"send\":[[0,1e],[1,0]]}",
        "{\"send\":[[0,1.e5],[1,0]]}",
        "{\"send\":[[0,NaN],[1,0]]}",
        "{\"send\":[[0,null],[1,0]]}",
        "{\"send\":[[0,\"1\"],[1,0]]}",
        "{\"send\":[[0,0],[1,0]]}",
        "{\"send\":[[1,1],[1,0]]}",
        "{\"send\":[[0,2e12],[1,0]]}",
        "{\"send\":[[0,1e999],[1,0]]}",
        "{\"send\":[[0,1,],[1,0]]}",
        "{\"send\":[[0,1],[1,0],]}",
        "{\"send\":[[0,1],[1]]}",
        "{\"send\":[[0,1],[1,0],[1,0]]}",
        "{\"send\":[[0,1]]}",
        "{\"send\":[[0,1],[1,0]",
        "{\"send\":[[0 1],[1,0]]}",
        "{\"send\":[]}",
        "{\"send\":[[]]}",
        "{\"send\" [[0]]}",
        "{\"sent\":[[0]]}",
        "{\"a\":{\"send\":[[0]]}}",
        "[{\"send\":[[0]]}]",
        "{\"a\":\"\\\",\\\"send\\\":[[0]]\"}",
        "{\"s\\u0065nd\":[[0]]}",
        "{\"send\":",
        "{\"send",
        "{",
        "",
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct qn_json_matrices t = take(odd[i]);
        cr_expect(qn_json_matrices_find(&t, "send") == NULL, "%s", odd[i]);
        cr_expect_str_eq(t.rest, odd[i]);
        qn_json_matrices_fini(&t);
    }
}

Test(json_matrix, the_rest_keeps_its_lines_and_what_is_there_twice)
{
    struct qn_json_matrices t =
        take("{\"a\": [\n1],\n \"send\" : [[0,\n1],\n[2,0]],\n\"level\":[[0]],"
             "\n\"send\":[[0]], \"b\":2}\n");
    cr_expect_str_eq(t.rest, "{\"a\": [\n1],\n \"send\" :[\n\n],\n\"level\":[],"
                             "\n\"send\":[[0]], \"b\":2}\n");
    cr_expect_eq(qn_json_matrices_find(&t, "send")->n, 2);
    cr_expect_eq(qn_json_matrices_find(&t, "level")->n, 1);
    cr_expect(qn_json_matrices_find(&t, "receive") == NULL);
    qn_json_matrices_fini(&t);
}

/* A row of 1025 numbers is no reason to ask for their square. */
Test(json_matrix, more_than_the_most_cores_is_not_taken)
{
    char text[3000] = "{\"send\":[[0";
    for (int i = 0; i < 1024; i++) {
        strcat(text, ",1");
    }
    strcat(text, "]]}");
    struct qn_json_matrices t = take(text);
    cr_expect(qn_json_matrices_find(&t, "send") == NULL);
    cr_expect_str_eq(t.rest, text);
    qn_json_matrices_fini(&t);
}

Test(json_matrix, a_place_is_called_by_its_way)
{
    static const struct {
        const char *text, *name; /* of the place of the first '@' */
    } places[] = {
        {"{\"send\": [[0, 1], [2, @", "send[1][1]"},
        {"{\"a\": {\"x\": 1, \"b\": @", "a.b"},
        {"{\"a\": 1, \"b,[\\\"{\": @", "b,[\\\"{"},
        {"{\"a\": [1, {\"c\": [@", "a[1].c[0]"},
        {"{\"a\": [[[[[[[@", "a[0][0][0]"},
        {"{\"a\": [1], @", "a"},
        {"@", ""},
        {"]]}@", ""},
        {"{\"a\": 1} @", ""},
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *text = places[i].text;
        char name[64], cut[4];
        qn_json_name(text, strlen(text), strcspn(text, "@"), name, sizeof name);
        cr_expect_str_eq(name, places[i].name, "%s: %s", text, name);
        qn_json_name(text, strlen(text), strcspn(text, "@"), cut, sizeof cut);
        cr_expect_eq(strncmp(cut, name, 3), 0, "%s", cut);
        cr_expect_lt(strlen(cut), 4);
    }
}
