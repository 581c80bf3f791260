#include <string.h>

#include "core/base/text.h"
#include "tests/support/test.h"

Test(text, lengths_are_those_of_utf_8)
{
    static const struct {
        const char *s;
        size_t n;
    } all[] = {
        {"", 1},
        {"a", 1},
        {"\x7f", 1},
        {"\xc3\xa4", 2},
        {"\xe2\x82\xac", 3},
        {"\xf0\x9f\x98\x80", 4},
        {"\xed\x9f\xbf", 3},
        {"\xf4\x8f\xbf\xbd", 4},
        {"\x80", 0},
        {"\xc0\x80", 0},
        {"\xc1\xbf", 0},
        {"\xe0\x9f\xbf", 0},
        {"\xed\xa0\x80", 0},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf4\x90\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0},
        {"\xef\xbf\xbe", 0},
        {"\xef\xbf\xbf", 0},
        {"\xc3", 0},
        {"\xe2\x82", 0},
        {"\xc3"
         "a",
         0},
        {"\xff", 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        cr_expect_eq(qn_utf8_length(all[i].s), all[i].n, "%zu", i);
    }
}

Test(text, what_steers_a_terminal_becomes_a_question_mark)
{
    static const struct {
        const char *from, *to;
    } all[] = {
        {"", ""},
        {"r\xc3\xa4tsel \xe2\x82\xac", "r\xc3\xa4tsel \xe2\x82\xac"},
        {"a\x1b[31mb\n\t\x7f", "a?[31mb???"},
        {"a\xc2\x9b"
         "b\xc2\xa0",
         "a?b\xc2\xa0"},
        {"a\x9b"
         "b\xff",
         "a?b?"},
        {"\xed\xa0\x80", "???"},
        {"a\xc3", "a"},
        {"a\xe2\x82", "a"},
        {"a\xf0\x9f\x98", "a"},
        {"\xc3\xc3", "?"},
        {"\xe2"
         "a",
         "?a"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[40];
        memcpy(text, all[i].from, strlen(all[i].from) + 1);
        qn_text_clean(text);
        cr_expect_str_eq(text, all[i].to, "%zu: %s", i, text);
    }
}

Test(text, a_copy_ends_in_a_whole_character_at_any_room)
{
    static const char from[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z";
    static const size_t ends[] = {0, 1, 3, 6, 10, 11};
    for (size_t room = 1; room < 14; room++) {
        char to[20];
        memset(to, '!', sizeof to);
        qn_text_copy(to, room, from);
        size_t want = 0;
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            want = ends[i] < room ? ends[i] : want;
        }
        cr_expect_eq(strlen(to), want, "room %zu: %s", room, to);
        cr_expect_eq(memcmp(to, from, want), 0);
        cr_expect_eq(to[room], '!');
    }
}
