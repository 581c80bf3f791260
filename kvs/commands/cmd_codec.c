/*
 * A command in the log.
 *
 *     byte 0      bits 0..2 version (1), bits 3..7 database; 31 there: the
 *                 database follows as a varint
 *     varint      id of the command
 *     varint      n, arguments behind the name
 *     n varints   their lengths in bytes
 *     bytes       the arguments, back to back, to the end
 *
 * A varint has 7 bits per byte, low bits first; the top bit says that another
 * byte follows. Only the shortest form is allowed, so equal commands have equal
 * bytes. The name is not sent: the id gives it, and both words of a subcommand.
 * SET of an 8-byte key and a 16-byte value takes 29 bytes.
 *
 * The decoder trusts nothing: a log entry that is damaged, or that a newer
 * version wrote, must be refused and not half executed. It checks that the
 * command can be executed and that the number of arguments fits its arity, so
 * the command's own code needs no check. n is compared with the bytes present
 * before anything is sized by it.
 */
#include "core/base/assert.h"
#include "kvs/commands/cmd_internal.h"

#define VERSION      1u
#define VERSION_BITS 3
#define DB_ESCAPE    31u
#define VARINT_MAX   10u /* bytes of 64 bits */

static uint8_t *put_varint(uint8_t *to, uint64_t v)
{
    while (v >= 0x80) {
        *to++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *to++ = (uint8_t)v;
    return to;
}

struct varint {
    uint64_t value;
    size_t bytes; /* 0: malformed, or not all there */
};

/* Kept out of the hot code, which takes lengths below 128: inlined and unrolled
 * it would be a tenth of the cache that all code of a command shares. A longer
 * argument costs more than its length. */
__attribute__((cold, noinline)) static struct varint long_varint(
    const uint8_t *data, size_t len)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < VARINT_MAX && i < len; i++) {
        uint8_t byte = data[i];
        v |= (uint64_t)(byte & 0x7f) << (7 * i);
        if ((byte & 0x80) == 0) {
            bool shortest = byte != 0 || i == 0;
            bool fits = i < VARINT_MAX - 1 || byte == 1;
            return (struct varint){v, shortest && fits ? i + 1 : 0};
        }
    }
    return (struct varint){0, 0};
}

/* Take a varint off the front. @return false: malformed or not all there. */
static inline bool take_varint(struct qn_slice *from, uint64_t max,
                               uint64_t *out)
{
    struct varint v = {0, 0};
    if (from->len != 0 && from->data[0] < 0x80) {
        v = (struct varint){from->data[0], 1};
    } else {
        v = long_varint(from->data, from->len);
    }
    from->data += v.bytes;
    from->len -= v.bytes;
    *out = v.value;
    return v.bytes != 0 && v.value <= max;
}

/* The commands that the log may carry, by their ids. Each command of the log is
 * decoded twice on every replica (to prefetch, and to apply), so their names
 * are cut into words when the program is loaded, before any thread exists. */
static struct logged {
    const struct qn_cmd *cmd; /* NULL: none, or it cannot be executed */
    struct qn_slice word[2];  /* the name as arguments, borrowed from the table;
                                 two for a subcommand */
    uint32_t words;
} logged[QN_CMD_IDS_MAX];

static bool executable(const struct qn_cmd *cmd)
{
    return cmd->run != NULL &&
           (cmd->where == QN_CMD_WRITE || cmd->where == QN_CMD_READ);
}

__attribute__((constructor)) static void logged_build(void)
{
    for (uint32_t row = 0; row < qn_cmd_table_rows; row++) {
        const struct qn_cmd *cmd = &qn_cmd_table[row];
        const char *end = strchrnul(cmd->name, '|');
        if (cmd->id == 0 || !executable(cmd)) {
            continue;
        }
        struct logged *l = &logged[cmd->id];
        *l = (struct logged){.cmd = cmd, .words = 1};
        l->word[0].data = (const uint8_t *)cmd->name;
        l->word[0].len = (size_t)(end - cmd->name);
        if (*end == '|') {
            l->word[1].data = (const uint8_t *)end + 1;
            l->word[1].len = strlen(end + 1);
            l->words = 2;
        }
    }
}

uint32_t qn_cmd_encode(const struct qn_cmd_call *c, struct qn_buf *head,
                       struct qn_slice *parts)
{
    QN_ASSERT(logged[c->cmd->id].cmd == c->cmd);
    uint32_t words = logged[c->cmd->id].words;
    uint32_t n = c->argc - words;
    uint8_t *start =
        qn_buf_reserve(head, 1 + 3 * (size_t)VARINT_MAX + n * VARINT_MAX);
    if (start == NULL) {
        return 0;
    }
    uint32_t db_bits = QN_MIN(c->db, DB_ESCAPE);
    uint8_t *to = start;
    *to++ = (uint8_t)(VERSION | db_bits << VERSION_BITS);
    if (db_bits == DB_ESCAPE) {
        to = put_varint(to, c->db);
    }
    to = put_varint(to, c->cmd->id);
    to = put_varint(to, n);
    for (uint32_t i = 0; i < n; i++) {
        parts[i + 1] = c->argv[words + i];
        to = put_varint(to, parts[i + 1].len);
    }
    parts[0] = (struct qn_slice){start, (size_t)(to - start)};
    head->len += parts[0].len;
    return n + 1;
}

/* The head: what precedes the lengths. */
struct header {
    const struct logged *of;
    uint32_t db;
    uint32_t args; /* behind the name */
};

/* @return QN_OK or QN_ECORRUPT. */
static int take_header(struct qn_slice *from, struct header *h)
{
    if (from->len == 0 ||
        (from->data[0] & ((1u << VERSION_BITS) - 1)) != VERSION) {
        return QN_ECORRUPT;
    }
    uint64_t db = from->data[0] >> VERSION_BITS;
    from->data++;
    from->len--;
    if (db == DB_ESCAPE &&
        (!take_varint(from, QN_STORE_DBS_MAX - 1, &db) || db < DB_ESCAPE)) {
        return QN_ECORRUPT;
    }
    uint64_t id, n;
    /* Each argument's length takes a byte at least. */
    if (!take_varint(from, QN_CMD_IDS_MAX - 1, &id) ||
        !take_varint(from, UINT32_MAX - 2, &n) || n > from->len) {
        return QN_ECORRUPT;
    }
    h->of = &logged[id];
    h->db = (uint32_t)db;
    h->args = (uint32_t)n;
    return h->of->cmd != NULL &&
                   qn_cmd_arity_fits(h->of->cmd, h->args + h->of->words)
               ? QN_OK
               : QN_ECORRUPT;
}

/* n lengths and then exactly their bytes. @return QN_OK or QN_ECORRUPT. */
static int take_args(struct qn_slice from, struct qn_slice *args, uint32_t n)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t len;
        if (!take_varint(&from, UINT32_MAX, &len)) {
            return QN_ECORRUPT;
        }
        args[i].len = (size_t)len;
        total += len;
    }
    if (total != from.len) {
        return QN_ECORRUPT;
    }
    for (uint32_t i = 0; i < n; i++) {
        args[i].data = from.data;
        from.data += args[i].len;
    }
    return QN_OK;
}

int qn_cmd_decode(struct qn_slice bytes, struct qn_slice *argv_store,
                  uint32_t argv_cap, uint32_t *need, struct qn_cmd_call *c)
{
    struct header h;
    int err = take_header(&bytes, &h);
    if (err != QN_OK) {
        return err;
    }
    uint32_t argc = h.args + h.of->words;
    if (argv_cap < argc) {
        *need = argc;
        return QN_ENOMEM;
    }
    err = take_args(bytes, argv_store + h.of->words, h.args);
    if (err != QN_OK) {
        return err;
    }
    for (uint32_t i = 0; i < h.of->words; i++) {
        argv_store[i] = h.of->word[i];
    }
    c->cmd = h.of->cmd;
    c->db = h.db;
    c->argv = argv_store;
    c->argc = argc;
    return QN_OK;
}
