#include "kvs/supervisor/startup_banner.h"

#include <string.h>

/* The address a client on this machine would use. */
static const char *reachable(const char *bind)
{
    return strcmp(bind, "0.0.0.0") == 0 ? "127.0.0.1"
           : strcmp(bind, "::") == 0    ? "::1"
                                        : bind;
}

static void print_replica(FILE *to, const struct qn_config *c,
                          const struct qn_listen *l, qn_node_t i,
                          const struct qn_place *place)
{
    char text[QN_PLACE_TEXT_MAX];
    fprintf(to, " replica %u", i);
    if (l->own_port[i] != 0) {
        fprintf(to, " on port %u", l->own_port[i]);
    } else if (l->own[i] >= 0) {
        fprintf(to, " on %s.%u", c->unixsocket, i);
    }
    fprintf(to, " at %s", qn_place_describe(place, text));
}

static void print_try(FILE *to, const struct qn_config *c, uint32_t port)
{
    const char *host = reachable(c->bind);
    if (c->unixsocket[0] != '\0') {
        fprintf(to, "redis-cli -s %s", c->unixsocket);
    } else if (strcmp(host, "127.0.0.1") == 0) {
        fprintf(to, "redis-cli -p %u", port);
    } else {
        fprintf(to, "redis-cli -h %s -p %u", host, port);
    }
}

void qn_startup_banner_print(FILE *to, const struct qn_startup_banner *b)
{
    char shown[QN_LISTEN_SHOWN_MAX];
    const uint32_t port = b->listen->port;
    const char *before = ":";
    fprintf(to, "quoind is ready on %s",
            qn_listen_shown(b->config, port, shown));
    for (uint64_t m = b->members; m != 0; m &= m - 1, before = ";") {
        const qn_node_t i = (qn_node_t)__builtin_ctzll(m);
        fputs(before, to);
        print_replica(to, b->config, b->listen, i, &b->place[i]);
    }
    if (b->adopted > 0) {
        fprintf(to, "; adopted %u replica%s", b->adopted,
                b->adopted > 1 ? "s" : "");
    }
    fprintf(to, ". Try: ");
    print_try(to, b->config, port);
    fprintf(to, " set greeting hello\n");
    fflush(to);
}
