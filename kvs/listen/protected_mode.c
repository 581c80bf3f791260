#include "kvs/listen/protected_mode.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "core/base/log.h"

bool qn_protected_mode_is_local(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *in4 = (const void *)sa;
        return ntohl(in4->sin_addr.s_addr) >> 24 == 127;
    }
    if (sa->sa_family != AF_INET6) {
        return false;
    }
    const struct in6_addr *a =
        &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(a) ||
           (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

void qn_protected_mode_log(const struct qn_config *c)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    const struct sockaddr *sa = (const void *)&in6;
    if (inet_pton(AF_INET, c->bind, &in4.sin_addr) == 1) {
        sa = (const void *)&in4;
    } else {
        (void)inet_pton(AF_INET6, c->bind, &in6.sin6_addr);
    }
    if (c->unixsocket[0] != '\0' || qn_protected_mode_is_local(sa)) {
        return;
    }
    if (c->protected_mode) {
        qn_log(QN_LOG_INFO,
               "bind %s: there is no password, so clients on other machines "
               "are refused, until CONFIG SET protected-mode no",
               c->bind);
    } else {
        qn_log(QN_LOG_WARN,
               "bind %s, protected-mode no, and there is no password: any "
               "client that "
               "reaches this address can read and write everything",
               c->bind);
    }
}
