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

/* Take a varint off the front. @return false: malformed or not all there. */
static bool take_varint(struct qn_slice *from, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < VARINT_MAX && i < from->len; i++) {
        uint8_t byte = from->data[i];
        v |= (uint64_t)(byte & 0x7f) << (7 * i);
        if ((byte & 0x80) == 0) {
            bool shortest = byte != 0 || i == 0;
            bool fits = i < VARINT_MAX - 1 || byte == 1;
            from->data += i + 1;
            from->len -= i + 1;
            *out = v;
            return shortest && fits && v <= max;
        }
    }
    return false;
}

/* The name as arguments, borrowed from the table: two for a subcommand. */
struct name_words {
    struct qn_slice word[2];
    uint32_t n;
};

static struct name_words name_words(const struct qn_cmd *cmd)
{
    const char *end = strchrnul(cmd->name, '|');
    struct name_words w = {.n = 1};
    w.word[0].data = (const uint8_t *)cmd->name;
    w.word[0].len = (size_t)(end - cmd->name);
    if (*end == '|') {
        w.word[1].data = (const uint8_t *)end + 1;
        w.word[1].len = strlen(end + 1);
        w.n = 2;
    }
    return w;
}

static bool executable(const struct qn_cmd *cmd)
{
    return cmd->run != NULL &&
           (cmd->where == QN_CMD_WRITE || cmd->where == QN_CMD_READ);
}

uint32_t qn_cmd_encode(const struct qn_cmd_call *c, struct qn_buf *head,
                       struct qn_slice *parts)
{
    uint32_t words = name_words(c->cmd).n;
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
    const struct qn_cmd *cmd;
    uint32_t db;
    uint32_t args; /* behind the name */
    struct name_words name;
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
    h->cmd = qn_cmd_by_id((uint16_t)id);
    if (h->cmd == NULL || !executable(h->cmd)) {
        return QN_ECORRUPT;
    }
    h->db = (uint32_t)db;
    h->args = (uint32_t)n;
    h->name = name_words(h->cmd);
    return qn_cmd_check_arity(h->cmd, h->args + h->name.n, NULL) ? QN_OK
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
    uint32_t argc = h.args + h.name.n;
    if (argv_cap < argc) {
        *need = argc;
        return QN_ENOMEM;
    }
    err = take_args(bytes, argv_store + h.name.n, h.args);
    if (err != QN_OK) {
        return err;
    }
    memcpy(argv_store, h.name.word, h.name.n * sizeof *argv_store);
    c->cmd = h.cmd;
    c->db = h.db;
    c->argv = argv_store;
    c->argc = argc;
    return QN_OK;
}
