#include "core/base/bits.h"
#include "core/base/suggest.h"
#include "tests/support/test.h"

#include <string.h>

static const char *const names[] = {"load", "bench channel", "bench store",
                                    "machine"};

static const char *suggest(const char *word)
{
    return qn_suggest(word, names, sizeof names[0], QN_ARRAY_COUNT(names));
}

Test(edit_distance, counts_each_kind_of_slip_once)
{
    cr_assert_eq(qn_edit_distance("", ""), 0);
    cr_assert_eq(qn_edit_distance("", "abc"), 3);
    cr_assert_eq(qn_edit_distance("abc", ""), 3);
    cr_assert_eq(qn_edit_distance("load", "load"), 0);
    cr_assert_eq(qn_edit_distance("lod", "load"), 1, "left out");
    cr_assert_eq(qn_edit_distance("loaad", "load"), 1, "twice");
    cr_assert_eq(qn_edit_distance("loxd", "load"), 1, "wrong");
    cr_assert_eq(qn_edit_distance("laod", "load"), 1, "swapped");
    cr_assert_eq(qn_edit_distance("kitten", "sitting"), 3);
}

Test(edit_distance, clips_long_words_instead_of_overrunning)
{
    char a[500];
    char b[500];
    memset(a, 'a', sizeof a);
    memset(b, 'b', sizeof b);
    a[sizeof a - 1] = b[sizeof b - 1] = '\0';
    cr_assert_eq(qn_edit_distance(a, b), QN_SUGGEST_LEN_MAX);
    cr_assert_eq(qn_edit_distance(a, a), 0);
}

Test(suggest, finds_the_name_behind_a_slip)
{
    cr_assert_str_eq(suggest("laod"), "load");
    cr_assert_str_eq(suggest("bench chanel"), "bench channel");
    cr_assert_str_eq(suggest("bench sotre"), "bench store");
}

Test(suggest, a_prefix_is_nearest)
{
    cr_assert_str_eq(suggest("bench"), "bench channel");
    cr_assert_str_eq(suggest("m"), "machine");
}

/* `--prot` means --port, although --proto-max-bulk-len begins so. */
Test(suggest, one_slip_is_nearer_than_a_prefix)
{
    static const char *const options[] = {"proto-max-bulk-len", "port", "pin"};
    const size_t n = QN_ARRAY_COUNT(options);
    const size_t stride = sizeof options[0];
    cr_assert_str_eq(qn_suggest("prot", options, stride, n), "port");
    cr_assert_str_eq(qn_suggest("porto", options, stride, n), "port");
    cr_assert_str_eq(qn_suggest("proto", options, stride, n),
                     "proto-max-bulk-len");
    cr_assert_str_eq(qn_suggest("proto-max-bulk-ln", options, stride, n),
                     "proto-max-bulk-len");
    cr_assert_str_eq(qn_suggest("po", options, stride, n), "port");
    cr_assert_str_eq(qn_suggest("p", options, stride, n), "proto-max-bulk-len",
                     "too short for a slip");
}

Test(suggest, says_nothing_when_nothing_is_near)
{
    cr_assert_null(suggest("xyzzy"));
    cr_assert_null(suggest(""));
    cr_assert_null(qn_suggest("load", names, sizeof names[0], 0));
}
