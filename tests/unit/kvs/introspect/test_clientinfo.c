#include "kvs/introspect/clientinfo.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#define WORDS_MAX 12

static struct qn_slice words[WORDS_MAX];
static struct qn_buf reply;

/* Split at blanks; `_` is an empty word. */
static uint32_t split(const char *text)
{
    uint32_t n = 0;
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        bool empty = len == 1 && *text == '_';
        words[n++] = (struct qn_slice){(const uint8_t *)text, empty ? 0 : len};
        text += len + (text[len] == ' ');
    }
    return n;
}

static void expect_reply(const char *request, const char *text)
{
    cr_expect(
        reply.len == strlen(text) && memcmp(reply.data, text, reply.len) == 0,
        "%s: got %.*s", request, (int)reply.len, (const char *)reply.data);
    reply.len = 0;
}

static void free_reply(void)
{
    qn_buf_free(&reply);
}

#define CASE(name) Test(clientinfo, name, .fini = free_reply)

static const struct qn_client_info sample = {
    .id = 194,
    .addr = "127.0.0.1:50770",
    .laddr = "127.0.0.1:7379",
    .fd = 8,
    .name = "web",
    .age_s = 61,
    .idle_s = 3,
    .db = 2,
    .qbuf = 26,
    .qbuf_free = 20448,
    .argv_mem = 10,
    .out_buffer = 1024,
    .out_used = 84,
    .total_mem = 22298,
    .cmd = "client|list",
    .user = "default",
    .proto = 3,
    .lib_name = "redis-py",
    .lib_ver = "5.0.1",
};

static void expect_line(const struct qn_client_info *c, const char *text)
{
    qn_client_info_line(&reply, c);
    expect_reply("line", text);
}

CASE(line_has_the_fields_of_redis_in_their_order)
{
    expect_line(&sample,
                "id=194 addr=127.0.0.1:50770 laddr=127.0.0.1:7379 fd=8 "
                "name=web age=61 idle=3 flags=N db=2 sub=0 psub=0 ssub=0 "
                "multi=-1 qbuf=26 qbuf-free=20448 argv-mem=10 multi-mem=0 "
                "rbs=1024 rbp=84 obl=84 oll=0 omem=0 tot-mem=22298 events=r "
                "cmd=client|list user=default redir=-1 resp=3 "
                "lib-name=redis-py lib-ver=5.0.1\n");
}

CASE(line_of_a_new_connection_has_empty_fields)
{
    const struct qn_client_info c = {.fd = -1, .proto = 2};
    expect_line(&c, "id=0 addr= laddr= fd=-1 name= age=0 idle=0 flags=N db=0 "
                    "sub=0 psub=0 ssub=0 multi=-1 qbuf=0 qbuf-free=0 "
                    "argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 "
                    "tot-mem=0 events=r cmd=NULL user= redir=-1 resp=2 "
                    "lib-name= lib-ver=\n");
}

CASE(line_shows_state_as_flags)
{
    const struct qn_client_info c = {.id = UINT64_MAX,
                                     .blocked = true,
                                     .closing = true,
                                     .is_unix = true,
                                     .no_evict = true,
                                     .no_touch = true,
                                     .writing = true,
                                     .out_queued = 70000,
                                     .proto = 2};
    expect_line(&c, "id=18446744073709551615 addr= laddr= fd=0 name= age=0 "
                    "idle=0 flags=bcUeT db=0 sub=0 psub=0 ssub=0 multi=-1 "
                    "qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 "
                    "obl=0 oll=1 omem=70000 tot-mem=0 events=rw cmd=NULL "
                    "user= redir=-1 resp=2 lib-name= lib-ver=\n");
}

/* ---- CLIENT LIST --------------------------------------------------------- */

static void expect_list_error(const char *request, const char *error)
{
    struct qn_client_list f = {.id_count = 77};
    uint32_t n = split(request);
    cr_expect_not(qn_client_list_parse(words, n, &f, &reply), "%s", request);
    cr_expect_eq(f.id_count, 77);
    expect_reply(request, error);
    cr_expect_not(qn_client_list_parse(words, n, &f, NULL));
}

CASE(list_refuses_what_redis_refuses)
{
    expect_list_error("client list foo", "-ERR syntax error\r\n");
    expect_list_error("client list id", "-ERR syntax error\r\n");
    expect_list_error("client list type", "-ERR syntax error\r\n");
    expect_list_error("client list type normal x", "-ERR syntax error\r\n");
    expect_list_error("client list type foo",
                      "-ERR Unknown client type 'foo'\r\n");
    expect_list_error("client list type _", "-ERR Unknown client type ''\r\n");
    expect_list_error("client list id a", "-ERR Invalid client ID\r\n");
    expect_list_error("client list id 1 2x", "-ERR Invalid client ID\r\n");
}

static bool listed(const char *request)
{
    struct qn_client_list f;
    cr_assert(qn_client_list_parse(words, split(request), &f, &reply), "%s",
              request);
    return qn_client_list_matches(&f, &sample);
}

CASE(list_selects_by_type_or_ids)
{
    cr_expect(listed("client list"));
    cr_expect(listed("CLIENT LIST TYPE Normal"));
    cr_expect_not(listed("client list type replica"));
    cr_expect_not(listed("client list type slave"));
    cr_expect_not(listed("client list type master"));
    cr_expect_not(listed("client list type pubsub"));
    cr_expect(listed("client list id 194"));
    cr_expect(listed("client list ID 1 194 7"));
    cr_expect_not(listed("client list id 1 -194"));
    cr_expect_eq(reply.len, 0);
}

/* ---- CLIENT KILL --------------------------------------------------------- */

static void expect_kill_error(const char *request, const char *error)
{
    struct qn_client_kill f = {.id = 77};
    uint32_t n = split(request);
    cr_expect_not(qn_client_kill_parse(words, n, &f, &reply), "%s", request);
    cr_expect_eq(f.id, 77);
    expect_reply(request, error);
}

CASE(kill_refuses_what_redis_refuses)
{
    expect_kill_error("client kill a b", "-ERR syntax error\r\n");
    expect_kill_error("client kill addr 1:1 laddr", "-ERR syntax error\r\n");
    expect_kill_error("client kill skipme maybe", "-ERR syntax error\r\n");
    expect_kill_error("client kill type foo",
                      "-ERR Unknown client type 'foo'\r\n");
    expect_kill_error("client kill user foo", "-ERR No such user 'foo'\r\n");
    expect_kill_error("client kill user DEFAULT",
                      "-ERR No such user 'DEFAULT'\r\n");
    expect_kill_error("client kill id 0",
                      "-ERR client-id should be greater than 0\r\n");
    expect_kill_error("client kill id -1",
                      "-ERR client-id should be greater than 0\r\n");
    expect_kill_error("client kill id x",
                      "-ERR client-id should be greater than 0\r\n");
}

static bool killed(const char *request, bool me)
{
    struct qn_client_kill f;
    cr_assert(qn_client_kill_parse(words, split(request), &f, &reply), "%s",
              request);
    return qn_client_kill_matches(&f, &sample, me);
}

CASE(kill_selects_by_all_filters_together)
{
    cr_expect(killed("client kill id 194", false));
    cr_expect_not(killed("client kill id 195", false));
    cr_expect(killed("client kill ADDR 127.0.0.1:50770", false));
    cr_expect_not(killed("client kill addr 127.0.0.1:5077", false));
    cr_expect_not(killed("client kill addr _", false));
    cr_expect(killed("client kill laddr 127.0.0.1:7379", false));
    cr_expect_not(killed("client kill laddr 127.0.0.1:50770", false));
    cr_expect(killed("client kill type normal", false));
    cr_expect_not(killed("client kill type pubsub", false));
    cr_expect(killed("client kill user default", false));
    cr_expect(killed("client kill id 194 type normal user default", false));
    cr_expect_not(killed("client kill id 194 type master", false));
    cr_expect(killed("client kill id 1 id 194", false));
}

CASE(kill_spares_the_asker_unless_told)
{
    cr_expect_not(killed("client kill id 194", true));
    cr_expect_not(killed("client kill id 194 skipme YES", true));
    cr_expect(killed("client kill id 194 skipme no", true));
    cr_expect(killed("client kill skipme yes skipme no", true));
    cr_expect(killed("client kill 127.0.0.1:50770", true));
    cr_expect_not(killed("client kill 127.0.0.1:1", true));
}

CASE(kill_replies_by_its_form)
{
    struct qn_client_kill f = {0};
    qn_client_kill_reply(&f, 3, &reply);
    expect_reply("new", ":3\r\n");
    qn_client_kill_reply(&f, 0, &reply);
    expect_reply("new", ":0\r\n");
    f.old_form = true;
    qn_client_kill_reply(&f, 1, &reply);
    expect_reply("old", "+OK\r\n");
    qn_client_kill_reply(&f, 0, &reply);
    expect_reply("old", "-ERR No such client\r\n");
}
