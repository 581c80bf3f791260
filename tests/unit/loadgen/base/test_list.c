/* Lists with commas: elements in order, and no comma too many. */
#include <string.h>

#include "core/base/bits.h"
#include "loadgen/base/list.h"
#include "tests/support/test.h"

Test(list, counts_are_all_valid_or_none_is_taken)
{
    static const char *const wrong[] = {"",    ",",   "2,",   ",2",  "2,,4",
                                        "2;4", "1,2", "2,1k", "2,x", "2,3,4,5"};
    uint64_t value[3];
    cr_assert_eq(qn_parse_counts("2,1ki,4", 2, 1024, value, 3), 3);
    cr_expect(value[0] == 2 && value[1] == 1024 && value[2] == 4);
    cr_expect_eq(qn_parse_counts("7", 7, 7, value, 1), 1);
    cr_assert_eq(qn_parse_counts(" 2,  4", 2, 4, value, 3), 2);
    cr_expect(value[0] == 2 && value[1] == 4);
    for (size_t i = 0; i < QN_ARRAY_COUNT(wrong); i++) {
        cr_expect_eq(qn_parse_counts(wrong[i], 2, 999, value, 3), 0, "'%s'",
                     wrong[i]);
    }
}

/* The elements, each in brackets. */
static const struct {
    const char *list, *elements;
} lists[] = {
    {NULL, ""},           {"", "[]"},       {"a", "[a]"},
    {"ab,c", "[ab][c]"},  {",a", "[][a]"},  {"a,", "[a][]"},
    {"a,,b", "[a][][b]"}, {",", "[][]"},    {"a b,c", "[a b][c]"},
    {" a, b", "[a][b]"},  {"a, ", "[a][]"}, {" ", "[]"},
};

Test(list, a_comma_too_many_is_an_empty_element)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(lists); i++) {
        char got[64] = "";
        const char *word;
        size_t len;
        for (const char *at = lists[i].list; qn_list_next(&at, &word, &len);) {
            strcat(got, "[");
            strncat(got, word, len);
            strcat(got, "]");
        }
        cr_expect_str_eq(got, lists[i].elements, "%s is %s, expected %s",
                         lists[i].list != NULL ? lists[i].list : "NULL", got,
                         lists[i].elements);
    }
}
