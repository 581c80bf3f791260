#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/options.h"
#include "tests/support/test.h"

#include <inttypes.h>
#include <stddef.h>

static const struct {
    const char *text;
    int err;
    uint64_t value;
} counts[] = {
    {"0", QN_OK, 0},
    {"16", QN_OK, 16},
    {"1k", QN_OK, 1000},
    {"1K", QN_OK, 1000},
    {"2ki", QN_OK, 2048},
    {"1m", QN_OK, 1000000},
    {"3Mi", QN_OK, 3 << 20},
    {"4g", QN_OK, 4000000000},
    {"1gi", QN_OK, 1 << 30},
    {"18446744073709551615", QN_OK, UINT64_MAX},
    {"18446744073709551616", QN_ERANGE, 0},
    {"18446744073709551k", QN_OK, UINT64_C(18446744073709551000)},
    {"18446744073709552k", QN_ERANGE, 0},
    {"", QN_EINVAL, 0},
    {"k", QN_EINVAL, 0},
    {"-1", QN_EINVAL, 0},
    {"+1", QN_EINVAL, 0},
    {" 1", QN_EINVAL, 0},
    {"1 ", QN_EINVAL, 0},
    {"1x", QN_EINVAL, 0},
    {"1kb", QN_EINVAL, 0},
    {"1kii", QN_EINVAL, 0},
    {"1i", QN_EINVAL, 0},
    {"1.5k", QN_EINVAL, 0},
};

Test(options, counts_take_suffixes_and_nothing_else)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(counts); i++) {
        uint64_t value = 0;
        cr_assert_eq(qn_parse_count(counts[i].text, &value), counts[i].err,
                     "'%s'", counts[i].text);
        cr_assert_eq(value, counts[i].value, "'%s': %" PRIu64, counts[i].text,
                     value);
    }
}

static struct values {
    uint64_t number;
    double seconds, part;
    bool flag;
    const char *word;
} got;

#define AT(member) offsetof(struct values, member)

static const struct qn_option table[] = {
    QN_OPTION_HEADING("Some"),
    QN_OPTION_COUNT("number", "N", AT(number), "a number", 1, 100),
    QN_OPTION("seconds", "S", qn_option_double, AT(seconds), "a time"),
    QN_OPTION("part", "PART", qn_option_part, AT(part), "a part"),
    QN_OPTION("flag", NULL, qn_option_flag, AT(flag), "a flag"),
    QN_OPTION("word", "W", qn_option_string, AT(word), "a word"),
    QN_OPTION("output", "FILE", qn_option_string, AT(word), "a file"),
};

static const struct qn_options options = {"test", "A test.", table,
                                          QN_ARRAY_COUNT(table), &got};

/* True if these arguments are accepted; otherwise the exit status must be 2. */
static bool takes(int argc, const char *const *argv)
{
    char *copy[8] = {(char *)"test"};
    for (int i = 0; i < argc; i++) {
        copy[i + 1] = (char *)argv[i];
    }
    int status = 77;
    bool ok = qn_options_parse(&options, argc + 1, copy, &status);
    cr_assert_eq(status, ok ? 77 : 2);
    return ok;
}

#define TAKES(...)                                                             \
    takes((int)QN_ARRAY_COUNT(((const char *[]){__VA_ARGS__})),                \
          (const char *const[]){__VA_ARGS__})

Test(options, values_follow_or_are_joined_by_an_equals_sign)
{
    cr_assert(TAKES("--number", "7", "--seconds=0.5", "--flag", "--word", ""));
    cr_assert_eq(got.number, 7);
    cr_assert_eq(got.seconds, 0.5);
    cr_assert(got.flag);
    cr_assert_str_eq(got.word, "");
    cr_assert(TAKES("--number=8", "--number", "9", "--word=a=b"));
    cr_assert_eq(got.number, 9, "the last one counts");
    cr_assert_str_eq(got.word, "a=b");
}

Test(options, o_is_short_for_output_and_nothing_else_is_short)
{
    cr_assert(TAKES("-o", "a.svg"));
    cr_assert_str_eq(got.word, "a.svg");
    cr_assert(!TAKES("-o"), "no value");
    cr_assert(!TAKES("-oa.svg"), "joined");
    cr_assert(!TAKES("-w", "x"), "another letter");
}

Test(options, help_and_version_are_status_0)
{
    static const char *const asked[] = {"--help", "--version"};
    for (size_t i = 0; i < QN_ARRAY_COUNT(asked); i++) {
        char *argv[] = {(char *)"test", (char *)"--flag", (char *)asked[i],
                        (char *)"--nonsense"};
        int status = 77;
        cr_assert(!qn_options_parse(&options, 4, argv, &status));
        cr_assert_eq(status, 0, "%s", asked[i]);
    }
}

Test(options, no_arguments_are_valid)
{
    cr_assert(takes(0, NULL));
}

Test(options, everything_else_is_refused)
{
    cr_assert(!TAKES("--numbre", "7"), "unknown");
    cr_assert(!TAKES("--num", "7"), "abbreviated");
    cr_assert(!TAKES("-number", "7"), "one dash");
    cr_assert(!TAKES("number"), "no dash");
    cr_assert(!TAKES("--"), "only dashes");
    cr_assert(!TAKES(""), "empty");
    cr_assert(!TAKES("--number"), "no value");
    cr_assert(!TAKES("--flag=1"), "a value for a flag");
    cr_assert(!TAKES("--number", "0"), "below the least");
    cr_assert(!TAKES("--number", "101"), "above the most");
    cr_assert(!TAKES("--seconds", "-1"));
    cr_assert(!TAKES("--seconds", "nan"));
    cr_assert(!TAKES("--seconds", "1e300"));
    cr_assert(!TAKES("-h"), "a heading is not near");
    cr_assert(!TAKES("--=x"), "a heading's name");
    cr_assert(!TAKES("--seconds", "1s"));
    cr_assert(!TAKES("--part", "-0.1"));
    cr_assert(!TAKES("--part", "1.1"));
    cr_assert(!TAKES("--part", "nan"));
    cr_assert(!TAKES("--part", ""));
    cr_assert_eq(got.number, 0, "nothing was stored");
}

Test(options, the_ends_of_a_range_belong_to_it)
{
    cr_assert(TAKES("--number", "1"));
    cr_assert(TAKES("--number", "100"));
    cr_assert(TAKES("--part", "1"));
    cr_assert_eq(got.part, 1);
    cr_assert(TAKES("--part", "0"));
    cr_assert_eq(got.part, 0);
}

Test(options, one_that_is_needed_is_refused_if_it_is_not_there)
{
    char *without[] = {(char *)"test", (char *)"--flag"};
    char *with[] = {(char *)"test", (char *)"--word", (char *)"x"};
    char *help[] = {(char *)"test", (char *)"--help"};
    int status = 77;
    got.word = NULL;
    cr_assert(
        !qn_options_parse_needing(&options, 2, without, &status, "word", "x"));
    cr_assert_eq(status, 2);
    cr_assert(
        !qn_options_parse_needing(&options, 2, help, &status, "word", "x"));
    cr_assert_eq(status, 0);
    cr_assert(
        qn_options_parse_needing(&options, 3, with, &status, "word", "x"));
    cr_assert_str_eq(got.word, "x");
}
