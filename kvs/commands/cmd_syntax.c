/*
 * A recursive descent over the notation, in two forms: a list of items between
 * blanks, and alternatives between bars, each a list. RESP needs the number of
 * elements before the elements, so each list is parsed twice. A syntax is one
 * line long, and only COMMAND DOCS asks for it.
 *
 * A bracket around a single item only adds its marks to the item. Blocks and
 * choices need a name in the reply; it is made of the names inside.
 */
#include "kvs/commands/cmd_syntax.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "kvs/resp/reply.h"

#define NAME_MAX_BYTES 128u

struct item {
    struct qn_slice token; /* empty: none */
    struct qn_slice name;  /* of a plain argument; empty: see body */
    struct qn_slice type;  /* empty: by the name */
    struct qn_slice body;  /* inside brackets; empty: a plain one or a token */
    bool optional, multiple;
};

static bool next_item(struct qn_slice *list, struct item *out);

static uint8_t first(struct qn_slice s)
{
    return s.len == 0 ? 0 : s.data[0];
}

static struct qn_slice take(struct qn_slice *s, size_t n)
{
    QN_ASSERT(n <= s->len);
    struct qn_slice taken = {s->data, n};
    s->data += n;
    s->len -= n;
    return taken;
}

/* Take the text up to the first of `stops` at bracket depth 0, or to the end.
 */
static struct qn_slice take_until(struct qn_slice *s, const char *stops)
{
    int depth = 0;
    size_t n = 0;
    for (; n < s->len; n++) {
        char c = (char)s->data[n];
        if (depth == 0 && strchr(stops, c) != NULL) {
            break;
        }
        depth += c == '(' || c == '[';
        depth -= c == ')' || c == ']';
    }
    return take(s, n);
}

static bool next_alternative(struct qn_slice *body, struct qn_slice *out)
{
    if (body->len == 0) {
        return false;
    }
    *out = take_until(body, "|");
    if (body->len > 0) {
        take(body, 1);
    }
    return true;
}

static uint32_t count_items(struct qn_slice list)
{
    uint32_t n = 0;
    for (struct item i; next_item(&list, &i); n++) {
    }
    return n;
}

static uint32_t count_alternatives(struct qn_slice body)
{
    uint32_t n = 0;
    for (struct qn_slice a; next_alternative(&body, &a); n++) {
    }
    return n;
}

/* `(a)`: the item inside, with the marks and the token outside. */
static void unwrap_single(struct item *i)
{
    if (count_alternatives(i->body) != 1 || count_items(i->body) != 1) {
        return;
    }
    struct item inner;
    struct qn_slice body = i->body;
    bool found = next_item(&body, &inner);
    QN_ASSERT(found); /* it was counted */
    inner.optional |= i->optional;
    inner.multiple |= i->multiple;
    if (i->token.len != 0) {
        QN_ASSERT(inner.token.len == 0);
        inner.token = i->token;
    }
    *i = inner;
}

static bool next_item(struct qn_slice *list, struct item *out)
{
    while (first(*list) == ' ') {
        take(list, 1);
    }
    if (list->len == 0) {
        return false;
    }
    struct item i = {0};
    if (isupper(first(*list))) {
        i.token = take_until(list, " .");
        if (list->len >= 2 && first(*list) == ' ' &&
            (islower(list->data[1]) || list->data[1] == '(')) {
            take(list, 1);
        }
    }
    if (first(*list) == '(' || first(*list) == '[') {
        i.optional = first(*list) == '[';
        take(list, 1);
        i.body = take_until(list, ")]");
        take(list, 1);
    } else if (islower(first(*list))) {
        i.name = take_until(list, " .:");
        if (first(*list) == ':') {
            take(list, 1);
            i.type = take_until(list, " .");
        }
    }
    if (first(*list) == '.') {
        take(list, 3);
        i.multiple = true;
    }
    unwrap_single(&i);
    *out = i;
    return true;
}

/* ---- reply --------------------------------------------------------------- */

struct name {
    char text[NAME_MAX_BYTES];
    size_t len;
};

static void name_add(struct name *n, struct qn_slice part)
{
    QN_ASSERT(n->len + part.len + 2 <= sizeof n->text);
    if (n->len != 0) {
        n->text[n->len++] = '_';
    }
    for (size_t i = 0; i < part.len; i++) {
        n->text[n->len++] = (char)tolower(part.data[i]);
    }
}

static void name_of_item(struct name *n, const struct item *i)
{
    if (i->name.len != 0) {
        name_add(n, i->name);
    } else if (i->body.len == 0) {
        name_add(n, i->token);
    } else {
        struct qn_slice body = i->body;
        struct qn_slice list;
        while (next_alternative(&body, &list)) {
            for (struct item inner; next_item(&list, &inner);) {
                name_of_item(n, &inner);
            }
        }
    }
}

static void reply_slice(struct qn_buf *b, struct qn_slice s)
{
    qn_reply_bulk(b, s.data, s.len);
}

static struct qn_slice type_of(const struct item *i)
{
    const char *text = "string";
    if (i->body.len != 0) {
        text = count_alternatives(i->body) > 1 ? "oneof" : "block";
    } else if (i->name.len == 0) {
        text = "pure-token";
    } else if (i->type.len != 0) {
        return i->type;
    } else if (i->name.len == 3 && memcmp(i->name.data, "key", 3) == 0) {
        text = "key";
    }
    return (struct qn_slice){(const uint8_t *)text, strlen(text)};
}

static void reply_items(struct qn_buf *b, uint8_t proto, struct qn_slice list);
static void reply_item(struct qn_buf *b, uint8_t proto, const struct item *i);

/* The members of a block, or the alternatives of a choice. */
static void reply_body(struct qn_buf *b, uint8_t proto, struct qn_slice body)
{
    uint32_t n = count_alternatives(body);
    if (n == 1) {
        reply_items(b, proto, body);
        return;
    }
    qn_reply_array(b, n);
    struct qn_slice list;
    while (next_alternative(&body, &list)) {
        struct item i = {.body = list};
        unwrap_single(&i);
        reply_item(b, proto, &i);
    }
}

static void reply_item(struct qn_buf *b, uint8_t proto, const struct item *i)
{
    struct name name = {.len = 0};
    name_of_item(&name, i);
    struct qn_slice type = type_of(i);
    bool key = type.len == 3 && memcmp(type.data, "key", 3) == 0;
    bool marked = i->optional || i->multiple;
    qn_reply_map(b, proto,
                 2 + (size_t)key + (i->token.len != 0) + marked +
                     (i->body.len != 0));
    qn_reply_bulk_str(b, "name");
    qn_reply_bulk(b, name.text, name.len);
    qn_reply_bulk_str(b, "type");
    reply_slice(b, type);
    if (key) {
        qn_reply_bulk_str(b, "key_spec_index");
        qn_reply_int(b, 0);
    }
    if (i->token.len != 0) {
        qn_reply_bulk_str(b, "token");
        reply_slice(b, i->token);
    }
    if (marked) {
        qn_reply_bulk_str(b, "flags");
        qn_reply_set(b, proto, (size_t)i->optional + i->multiple);
        if (i->optional) {
            qn_reply_status(b, "optional");
        }
        if (i->multiple) {
            qn_reply_status(b, "multiple");
        }
    }
    if (i->body.len != 0) {
        qn_reply_bulk_str(b, "arguments");
        reply_body(b, proto, i->body);
    }
}

static void reply_items(struct qn_buf *b, uint8_t proto, struct qn_slice list)
{
    qn_reply_array(b, count_items(list));
    for (struct item i; next_item(&list, &i);) {
        reply_item(b, proto, &i);
    }
}

void qn_cmd_syntax_reply(struct qn_buf *reply, uint8_t proto,
                         const char *syntax)
{
    struct qn_slice list = {(const uint8_t *)syntax, strlen(syntax)};
    reply_items(reply, proto, list);
}

void qn_cmd_syntax_help(const char *syntax, char *to)
{
    size_t n = 0;
    for (const char *at = syntax; *at != '\0'; at++) {
        if (*at == ':') {
            at += strspn(at, ":abcdefghijklmnopqrstuvwxyz-") - 1;
            continue;
        }
        QN_ASSERT(n + 1 < QN_CMD_SYNTAX_HELP_MAX);
        to[n++] = *at;
    }
    to[n] = '\0';
}
