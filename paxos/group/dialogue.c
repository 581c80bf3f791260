/*
 * The codec of dialogue.h. What was decoded is encoded again, and must be what
 * was received: so no byte is ignored, and no text is longer than its zero
 * says.
 */
#include "paxos/group/dialogue.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/little_endian.h"

#define MAGIC 0x64676e71u /* "qngd" */

enum { BODY = 8 };

static_assert(BODY + 8 * QN_NODES_MAX <= QN_DIALOGUE_BYTES, "BEGIN fits");

/* ---- bytes --------------------------------------------------------------- */

static void put_voters(uint8_t *b, const struct qn_dialogue_voters *v)
{
    qn_put_le(b, v->mask, 8);
    qn_put_le(b + 8, v->entries, 4);
}

static void put_welcome(uint8_t *b, const struct qn_dialogue_layout *l)
{
    qn_put_le(b, l->nodes, 4);
    qn_put_le(b + 4, l->cells, 4);
    qn_put_le(b + 8, l->log_bytes, 8);
    qn_put_le(b + 16, l->command_max, 8);
    qn_put_le(b + 24, l->process_acceptor, 1);
}

void qn_dialogue_encode(const struct qn_dialogue_msg *m, uint8_t *bytes)
{
    uint8_t *b = bytes + BODY;
    memset(bytes, 0, QN_DIALOGUE_BYTES);
    qn_put_le(bytes, MAGIC, 4);
    qn_put_le(bytes + 4, QN_DIALOGUE_VERSION, 2);
    qn_put_le(bytes + 6, m->kind, 2);
    switch (m->kind) {
    case QN_DIALOGUE_REFUSE:
        qn_put_le(b, (uint32_t)m->refuse.err, 4);
        memcpy(b + 4, m->refuse.text, strlen(m->refuse.text));
        break;
    case QN_DIALOGUE_HELLO:
        memcpy(b, m->hello.application, strlen(m->hello.application));
        memcpy(b + 64, m->hello.transport, strlen(m->hello.transport));
        qn_put_le(b + 128, m->hello.version, 8);
        qn_put_le(b + 136, m->hello.formats, 8);
        break;
    case QN_DIALOGUE_WELCOME:
        put_welcome(b, &m->welcome.layout);
        put_voters(b + 25, &m->welcome.voters);
        break;
    case QN_DIALOGUE_PEER:
        qn_put_le(b, m->peer.node, 4);
        qn_put_le(b + 4, m->peer.pid, 4);
        qn_put_le(b + 8, m->peer.incarnation, 8);
        qn_put_le(b + 16, m->peer.ended, 1);
        qn_put_le(b + 17, m->peer.observer, 1);
        break;
    case QN_DIALOGUE_DONE:
        qn_put_le(b, m->done.first, 8);
        put_voters(b + 8, &m->done.voters);
        break;
    case QN_DIALOGUE_BEGIN:
        for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
            qn_put_le(b + 8 * i, m->begin.incarnation[i], 8);
        }
        break;
    default:
        QN_ASSERT(m->kind <= QN_DIALOGUE_BEGIN);
    }
}

/* Of `cap` bytes, ended by a zero; printable. */
static bool text(char *to, const uint8_t *from, size_t cap)
{
    size_t len = strnlen((const char *)from, cap);
    for (size_t i = 0; i < len; i++) {
        if (from[i] < ' ' || from[i] > '~') {
            return false;
        }
    }
    if (len < cap) {
        memcpy(to, from, len + 1);
    }
    return len < cap;
}

static void take_voters(const uint8_t *b, struct qn_dialogue_voters *v)
{
    v->mask = qn_get_le(b, 8);
    v->entries = (uint32_t)qn_get_le(b + 8, 4);
}

static bool take_welcome(const uint8_t *b, struct qn_dialogue_layout *l)
{
    l->nodes = (uint32_t)qn_get_le(b, 4);
    l->cells = (uint32_t)qn_get_le(b + 4, 4);
    l->log_bytes = qn_get_le(b + 8, 8);
    l->command_max = qn_get_le(b + 16, 8);
    l->process_acceptor = b[24] != 0;
    return l->nodes >= 1 && l->nodes <= QN_NODES_MAX && l->cells >= 16 &&
           qn_is_pow2(l->cells);
}

static bool take_peer(const uint8_t *b, struct qn_dialogue_msg *m)
{
    m->peer.node = (qn_node_t)qn_get_le(b, 4);
    m->peer.pid = (uint32_t)qn_get_le(b + 4, 4);
    m->peer.incarnation = qn_get_le(b + 8, 8);
    m->peer.ended = b[16] != 0;
    m->peer.observer = b[17] != 0;
    return m->peer.node < QN_NODES_MAX && m->peer.incarnation != 0;
}

/* The fields; all that they leave open is found by encoding them again. */
static bool take(const uint8_t *b, struct qn_dialogue_msg *m)
{
    switch (m->kind) {
    case QN_DIALOGUE_REFUSE:
        m->refuse.err = (int)(int32_t)(uint32_t)qn_get_le(b, 4);
        return m->refuse.err < 0 &&
               text(m->refuse.text, b + 4, sizeof m->refuse.text);
    case QN_DIALOGUE_HELLO:
        m->hello.version = qn_get_le(b + 128, 8);
        m->hello.formats = qn_get_le(b + 136, 8);
        return text(m->hello.application, b, QN_DIALOGUE_NAME) &&
               text(m->hello.transport, b + 64, QN_DIALOGUE_NAME);
    case QN_DIALOGUE_WELCOME:
        take_voters(b + 25, &m->welcome.voters);
        return take_welcome(b, &m->welcome.layout) &&
               (m->welcome.voters.mask &
                ~qn_low_bits(m->welcome.layout.nodes)) == 0;
    case QN_DIALOGUE_PEER:
        return take_peer(b, m);
    case QN_DIALOGUE_DONE:
        m->done.first = qn_get_le(b, 8);
        take_voters(b + 8, &m->done.voters);
        return true;
    case QN_DIALOGUE_BEGIN:
        for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
            m->begin.incarnation[i] = qn_get_le(b + 8 * i, 8);
        }
        return true;
    default:
        return false;
    }
}

static uint32_t fds_of(const struct qn_dialogue_msg *m)
{
    return m->kind == QN_DIALOGUE_WELCOME ? 1 + m->welcome.layout.nodes
           : m->kind == QN_DIALOGUE_PEER  ? 1
                                          : 0;
}

int qn_dialogue_decode(struct qn_slice bytes, uint32_t fds,
                       struct qn_dialogue_msg *m)
{
    uint8_t again[QN_DIALOGUE_BYTES];
    struct qn_dialogue_msg x = {.kind = 0};
    if (bytes.len != QN_DIALOGUE_BYTES || qn_get_le(bytes.data, 4) != MAGIC) {
        return QN_ECORRUPT;
    }
    const uint64_t version = qn_get_le(bytes.data + 4, 2);
    x.kind = (enum qn_dialogue_kind)qn_get_le(bytes.data + 6, 2);
    if (version != QN_DIALOGUE_VERSION && x.kind != QN_DIALOGUE_REFUSE) {
        return QN_ENOSYS;
    }
    if (!take(bytes.data + BODY, &x) || fds != fds_of(&x)) {
        return QN_ECORRUPT;
    }
    qn_dialogue_encode(&x, again);
    qn_put_le(again + 4, version, 2);
    if (memcmp(again, bytes.data, sizeof again) != 0) {
        return QN_ECORRUPT;
    }
    *m = x;
    return QN_OK;
}

/* ---- may it come in ------------------------------------------------------ */

int qn_dialogue_check(const struct qn_dialogue_hello *ours,
                      const struct qn_dialogue_hello *guest,
                      char why[QN_DIALOGUE_TEXT])
{
    if (strcmp(ours->application, guest->application) != 0) {
        snprintf(why, QN_DIALOGUE_TEXT, "the group is of %s, not of %s",
                 ours->application, guest->application);
    } else if (ours->version != guest->version) {
        snprintf(why, QN_DIALOGUE_TEXT,
                 "the group has version %" PRIu64 " of %s, not %" PRIu64,
                 ours->version, ours->application, guest->version);
    } else if (ours->formats != guest->formats) {
        snprintf(why, QN_DIALOGUE_TEXT,
                 "the group has another version of the library");
    } else if (strcmp(ours->transport, guest->transport) != 0) {
        snprintf(why, QN_DIALOGUE_TEXT, "the group has transport %s, not %s",
                 ours->transport, guest->transport);
    } else {
        return QN_OK;
    }
    return QN_EINVAL;
}
