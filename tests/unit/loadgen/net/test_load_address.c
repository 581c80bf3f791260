#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/net/address.h"
#include "tests/support/test.h"

#include <string.h>

static const struct {
    const char *text;
    int err;
} cases[] = {
    {"localhost:1", QN_OK},
    {"127.0.0.1:65535", QN_OK},
    {"[::1]:7379", QN_OK},
    {"::1:7379", QN_OK},
    {"unix:/tmp/s", QN_OK},
    {"h:007379", QN_OK},
    {"127.0.0.1:0", QN_ERANGE},
    {"127.0.0.1:00", QN_ERANGE},
    {"127.0.0.1:65536", QN_ERANGE},
    {"127.0.0.1:73737", QN_ERANGE},
    {"127.0.0.1:4294967297", QN_ERANGE},
    {"127.0.0.1:18446744073709551617", QN_ERANGE},
    {"", QN_EINVAL},
    {":", QN_EINVAL},
    {":7379", QN_EINVAL},
    {"[]:7379", QN_EINVAL},
    {"127.0.0.1", QN_EINVAL},
    {"127.0.0.1 7379", QN_EINVAL},
    {"127.0.0.1:", QN_EINVAL},
    {"127.0.0.1:http", QN_EINVAL},
    {"127.0.0.1:-1", QN_EINVAL},
    {"127.0.0.1:+1", QN_EINVAL},
    {"127.0.0.1: 1", QN_EINVAL},
    {"127.0.0.1:1x", QN_EINVAL},
    {"unix:", QN_EINVAL},
};

Test(address, has_a_form_and_a_port_that_exists)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(cases); i++) {
        cr_assert_eq(qn_address_check(cases[i].text), cases[i].err, "'%s'",
                     cases[i].text);
    }
}

Test(address, that_is_too_long_is_refused)
{
    char text[400];
    memset(text, 'x', sizeof text);
    memcpy(text + 255, ":1", 3);
    cr_assert_eq(qn_address_check(text), QN_OK);
    memcpy(text + 255, "x:1", 4);
    cr_assert_eq(qn_address_check(text), QN_EINVAL);
    memset(text, 'x', sizeof text);
    memcpy(text, "unix:", 5);
    text[5 + 107] = '\0';
    cr_assert_eq(qn_address_check(text), QN_OK);
    text[5 + 107] = 'x';
    text[5 + 108] = '\0';
    cr_assert_eq(qn_address_check(text), QN_EINVAL);
}

Test(address, a_refused_one_is_not_resolved)
{
    struct qn_address a;
    cr_assert_eq(qn_address_resolve(&a, "127.0.0.1:73737"), QN_ERANGE);
    cr_assert_eq(qn_address_resolve(&a, "127.0.0.1:7379"), QN_OK);
    cr_assert_eq(a.addr.ss_family, AF_INET);
    cr_assert_eq(qn_address_resolve(&a, "unix:/tmp/s"), QN_OK);
    cr_assert_str_eq(qn_address_path(&a), "/tmp/s");
}
