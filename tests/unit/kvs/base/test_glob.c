#include "kvs/base/glob.h"

#include <string.h>

#include "tests/support/test.h"

static struct qn_slice slice(const char *text)
{
    return (struct qn_slice){(const uint8_t *)text, strlen(text)};
}

static void expect(const char *pattern, const char *text, bool match)
{
    cr_expect_eq(qn_glob_match(slice(pattern), slice(text), false), match,
                 "pattern '%s', text '%s'", pattern, text);
}

static void yes(const char *pattern, const char *text)
{
    expect(pattern, text, true);
}

static void no(const char *pattern, const char *text)
{
    expect(pattern, text, false);
}

Test(glob, plain_bytes_match_themselves_and_the_whole_text)
{
    yes("", "");
    yes("abc", "abc");
    no("abc", "abd");
    no("abc", "ab");
    no("abc", "abcd");
    no("", "a");
    no("a", "");
    no("abc", "ABC");
}

Test(glob, star_matches_any_bytes_but_not_an_empty_text)
{
    yes("*", "a");
    yes("a*", "a");
    yes("a**", "a");
    yes("*a*b*c*", "xxaxxbxxcxx");
    yes("*ab", "aab");
    yes("*abab", "abaabab");
    no("*b", "ba");
    no("a*b*c", "acb");
    no("*", "");
    no("**", "");
}

Test(glob, question_mark_matches_exactly_one_byte)
{
    yes("h?llo", "hello");
    no("h?llo", "hllo");
    no("?", "");
    yes("??", "ab");
    yes("*?", "a");
}

Test(glob, classes_hold_bytes_ranges_and_their_negation)
{
    yes("h[ae]llo", "hallo");
    no("h[ae]llo", "hillo");
    yes("h[^e]llo", "hallo");
    no("h[^e]llo", "hello");
    yes("[a-c]", "b");
    yes("[c-a]", "b");
    no("[a-c]", "d");
    yes("[a-cx-z]", "y");
    no("[]", "a");
    yes("[^]", "a");
    yes("[a^]", "^");
}

/* Strange, but what Redis does. */
Test(glob, malformed_classes_end_with_the_pattern)
{
    no("[", "a");
    yes("[^", "a");
    yes("[ab", "b");
    no("[ab", "bc");
    yes("[a-", "-");
    yes("[a-]", "_"); /* the range a..] , turned round */
    no("[a-]", "-");
    yes("x[a-]", "x^");
}

Test(glob, backslash_takes_the_meaning_away)
{
    yes("\\*", "*");
    no("\\*", "a");
    yes("a\\?c", "a?c");
    yes("\\\\", "\\");
    yes("\\", "\\");
    yes("[\\]]", "]");
    yes("[\\^a]", "^");
    yes("[\\a-c]", "-");
    no("[\\a-c]", "b");
}

Test(glob, ranges_compare_signed_bytes)
{
    yes("[\x80-\xff]", "\x90");
    no("[\x80-\xff]", "a");
    yes("[\xf0-a]", "A"); /* from -16 to 97 */
}

Test(glob, bytes_may_be_nul)
{
    struct qn_slice text = {(const uint8_t *)"a\0b", 3};
    cr_assert(qn_glob_match(slice("a?b"), text, false));
    cr_assert(qn_glob_match(text, text, false));
    cr_assert_not(qn_glob_match(slice("a"), text, false));
}

Test(glob, case_is_ignored_on_request)
{
    cr_assert(qn_glob_match(slice("MAX*"), slice("maxmemory"), true));
    cr_assert(qn_glob_match(slice("[A-C]x"), slice("bX"), true));
    cr_assert_not(qn_glob_match(slice("[\\A]"), slice("a"), true));
    cr_assert_not(qn_glob_match(slice("MAX*"), slice("maxmemory"), false));
}

/* With recursion per star this would take longer than the universe. */
Test(glob, many_stars_cost_no_more_than_the_product, .timeout = 10)
{
    char pattern[201], text[4001];
    for (size_t i = 0; i < 200; i += 2) {
        pattern[i] = 'a';
        pattern[i + 1] = '*';
    }
    strcpy(pattern + 198, "b");
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    no(pattern, text);
}
