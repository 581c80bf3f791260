#include "kvs/listen/protected_mode.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "core/base/bits.h"
#include "tests/support/test.h"

static bool is_local(const char *text)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    struct sockaddr_in in4 = {.sin_family = AF_INET};
    if (inet_pton(AF_INET, text, &in4.sin_addr) == 1) {
        return qn_protected_mode_is_local((const struct sockaddr *)&in4);
    }
    cr_assert_eq(inet_pton(AF_INET6, text, &in6.sin6_addr), 1, "%s", text);
    return qn_protected_mode_is_local((const struct sockaddr *)&in6);
}

Test(protected_mode, loopback_addresses_of_all_kinds_are_local)
{
    static const char *const local[] = {"127.0.0.1", "127.255.255.255", "::1",
                                        "::ffff:127.0.0.1", "::ffff:127.9.9.9"};
    for (size_t i = 0; i < QN_ARRAY_COUNT(local); i++) {
        cr_assert(is_local(local[i]), "%s", local[i]);
    }
}

Test(protected_mode, all_others_are_not)
{
    static const char *const remote[] = {"126.255.255.255",
                                         "128.0.0.1",
                                         "0.0.0.0",
                                         "10.0.0.127",
                                         "1.0.0.127",
                                         "192.168.127.1",
                                         "::",
                                         "::2",
                                         "1::1",
                                         "fe80::1",
                                         "::127.0.0.1",
                                         "::ffff:10.0.0.1",
                                         "::ffff:1.0.0.127"};
    for (size_t i = 0; i < QN_ARRAY_COUNT(remote); i++) {
        cr_assert_not(is_local(remote[i]), "%s", remote[i]);
    }
    const struct sockaddr_un path = {.sun_family = AF_UNIX};
    cr_assert_not(qn_protected_mode_is_local((const struct sockaddr *)&path));
}
