/*
 * The codec: msg.h describes the layout.
 *
 * One table says which fields each kind has, in wire order, each as wide as its
 * member of struct qn_msg. Encoding and decoding walk the same table, so they
 * cannot disagree, and a new kind is a row. There is no text and no version:
 * both ends of a channel run the same build. A head is as short as it can be,
 * and flags in it say so; a longer one than needed is malformed, so equal
 * messages have equal bytes.
 */
#include "paxos/wire/msg.h"

#include <string.h>

#include "core/base/little_endian.h"
#include "core/base/member.h"
#include "paxos/log/batch.h"
#include "paxos/wire/peer_state.h"

#define FRAGMENT_BYTES 4u /* its offset */
#define FIELDS_MAX     6u
#define CODECS_OWN     (QN_MSG_AHEAD | QN_MSG_MANY | QN_MSG_BRIEF | QN_MSG_FIRST)
/* Flags of any kind. */
#define ANY_KIND       (QN_MSG_FRAGMENT | QN_MSG_BRIEF)

enum body_kind {
    BODY_NONE,
    BODY_COMMANDS,    /* may be empty */
    BODY_BATCH,       /* never empty */
    BODY_MAYBE_BATCH, /* or empty */
    BODY_STAGE,       /* with QN_MSG_UL: entries, else as MAYBE_BATCH */
    BODY_UL,          /* any number of entries */
    BODY_UL_ONE,      /* exactly one */
    BODY_UL_MAYBE,    /* none or one */
    BODY_BYTES,
    BODY_STATE, /* exactly one */
};

struct field {
    uint8_t at;    /* offset in struct qn_msg */
    uint8_t bytes; /* there and on the wire; 0: end of the list */
    uint8_t flag;  /* not 0: it has `bytes` only with this flag ... */
    uint8_t brief; /* ... and without it this number of bytes */
};

struct format {
    const char *name;
    uint8_t flags; /* that may be set, beside QN_MSG_FRAGMENT */
    uint8_t body;  /* enum body_kind */
    struct field fields[FIELDS_MAX + 1];
};

#define F(member)                                                              \
    {                                                                          \
        offsetof(struct qn_msg, member), sizeof(((struct qn_msg *)0)->member), \
            0, 0                                                               \
    }
#define BRIEF(member, flag, brief)                                             \
    {                                                                          \
        offsetof(struct qn_msg, member), sizeof(((struct qn_msg *)0)->member), \
            flag, brief                                                        \
    }
#define BALLOT(b) F(u.b.round), F(u.b.inc), F(u.b.node)

static const struct format formats[QN_MSG_KINDS] = {
    [QN_MSG_REQUEST] = {"REQUEST", 0, BODY_COMMANDS, {{0, 0, 0, 0}}},
    [QN_MSG_REDIRECT] = {"REDIRECT",
                         0,
                         BODY_NONE,
                         {F(redirect.leader_inc), F(redirect.leader)}},
    [QN_MSG_ACCEPT] = {"ACCEPT", 0, BODY_BATCH, {{0, 0, 0, 0}}},
    [QN_MSG_LEARN] = {"LEARN",
                      QN_MSG_AHEAD | QN_MSG_MANY | QN_MSG_FIRST,
                      BODY_MAYBE_BATCH,
                      {F(learn.tree), BRIEF(learn.alive, QN_MSG_MANY, 1),
                       BRIEF(learn.hi, QN_MSG_AHEAD, 0)}},
    [QN_MSG_NACK] = {"NACK",
                     0,
                     BODY_NONE,
                     {F(nack.leader_inc), F(nack.leader)}},
    [QN_MSG_PREPARE] = {"PREPARE", 0, BODY_UL, {{0, 0, 0, 0}}},
    [QN_MSG_PREPARED] = {"PREPARED",
                         QN_MSG_LAST,
                         BODY_MAYBE_BATCH,
                         {F(prepared.log_lo), F(prepared.hi)}},
    [QN_MSG_STAGE] = {"STAGE",
                      QN_MSG_LAST | QN_MSG_UL,
                      BODY_STAGE,
                      {F(stage.base), F(stage.hi)}},
    [QN_MSG_STAGED] = {"STAGED", QN_MSG_OK, BODY_NONE, {F(staged.have)}},
    [QN_MSG_SEAL] = {"SEAL", 0, BODY_UL, {F(seal.target)}},
    [QN_MSG_SEALED] = {"SEALED",
                       QN_MSG_LAST | QN_MSG_OK,
                       BODY_MAYBE_BATCH,
                       {F(sealed.log_lo), F(sealed.hi), F(sealed.target)}},
    [QN_MSG_FETCH] = {"FETCH", 0, BODY_NONE, {F(fetch.last)}},
    [QN_MSG_FILL] = {"FILL",
                     QN_MSG_LAST,
                     BODY_MAYBE_BATCH,
                     {F(fill.log_lo), F(fill.hi)}},
    [QN_MSG_SNAP_REQ] = {"SNAP_REQ", 0, BODY_NONE, {{0, 0, 0, 0}}},
    [QN_MSG_SNAP] = {"SNAP",
                     QN_MSG_LAST,
                     BODY_BYTES,
                     {F(snap.offset), F(snap.part)}},
    [QN_MSG_BEAT] = {"BEAT",
                     0,
                     BODY_NONE,
                     {F(beat.applied), F(beat.learned), F(beat.decided),
                      F(beat.ul_len)}},
    [QN_MSG_U_PREPARE] = {"U_PREPARE", 0, BODY_UL_MAYBE, {BALLOT(bal)}},
    [QN_MSG_U_PROMISE] = {"U_PROMISE",
                          0,
                          BODY_UL_MAYBE,
                          {BALLOT(bal), BALLOT(vbal)}},
    [QN_MSG_U_REJECT] = {"U_REJECT", 0, BODY_NONE, {BALLOT(bal)}},
    [QN_MSG_U_ACCEPT] = {"U_ACCEPT", 0, BODY_UL_ONE, {BALLOT(bal)}},
    [QN_MSG_U_ACCEPTED] = {"U_ACCEPTED", 0, BODY_NONE, {BALLOT(bal)}},
    [QN_MSG_U_CHOSEN] = {"U_CHOSEN", 0, BODY_UL, {{0, 0, 0, 0}}},
    [QN_MSG_U_NEED] = {"U_NEED", 0, BODY_NONE, {{0, 0, 0, 0}}},
    [QN_MSG_ACCEPTED] = {"ACCEPTED", 0, BODY_NONE, {{0, 0, 0, 0}}},
    [QN_MSG_READ_INDEX] = {"READ_INDEX",
                           0,
                           BODY_NONE,
                           {F(read_index.number), F(read_index.inc),
                            F(read_index.origin)}},
    [QN_MSG_READ_AT] = {"READ_AT",
                        0,
                        BODY_NONE,
                        {F(read_at.number), F(read_at.inc)}},
    [QN_MSG_ORDER] = {"ORDER",
                      0,
                      BODY_NONE,
                      {F(order.inc), F(order.number), F(order.node),
                       F(order.what), F(order.forced)}},
    [QN_MSG_TAKEN] = {"TAKEN",
                      0,
                      BODY_NONE,
                      {F(order.inc), F(order.number), F(order.node),
                       F(order.what), F(order.error)}},
    [QN_MSG_STATE] = {"STATE", 0, BODY_STATE, {{0, 0, 0, 0}}},
};

static const struct format *format_of(uint8_t kind)
{
    bool known = kind != 0 && kind < QN_MSG_KINDS;
    return known ? &formats[kind] : NULL;
}

const char *qn_msg_name(uint8_t kind)
{
    const struct format *f = format_of(kind);
    return f != NULL ? f->name : "?";
}

/* Bytes of a field on the wire. */
static uint32_t width(const struct field *fl, uint8_t flags)
{
    return (flags & fl->flag) == fl->flag ? fl->bytes : fl->brief;
}

static size_t head_size(const struct format *f, uint8_t flags)
{
    size_t n = (flags & QN_MSG_BRIEF) != 0 ? QN_HEADER_BRIEF : QN_HEADER_BYTES;
    n += (flags & QN_MSG_FRAGMENT) != 0 ? FRAGMENT_BYTES : 0;
    for (const struct field *fl = f->fields; fl->bytes != 0; fl++) {
        n += width(fl, flags);
    }
    return n;
}

/* -------------------------------------------------------------- encode -- */

static bool is_brief(const struct qn_msg *m)
{
    return (m->flags & QN_MSG_FRAGMENT) == 0 && m->epoch <= UINT16_MAX &&
           m->body.len <= UINT8_MAX;
}

/* How a mask of nodes is sent: in one byte as it is, as the number of nodes if
 * it has the first ones, or in 8 bytes. */
static unsigned alive_flag(uint64_t alive)
{
    bool first = (alive & (alive + 1)) == 0;
    return alive <= UINT8_MAX ? 0 : first ? QN_MSG_FIRST : QN_MSG_MANY;
}

/* With those that say how long the head is. */
static uint8_t wire_flags(const struct qn_msg *m)
{
    unsigned flags = m->flags | (is_brief(m) ? QN_MSG_BRIEF : 0u);
    if (m->kind == QN_MSG_LEARN) {
        flags |= m->learn.hi != m->slot ? QN_MSG_AHEAD : 0u;
        flags |= alive_flag(m->learn.alive);
    }
    return (uint8_t)flags;
}

/* Bytes of the epoch, and of the body's length. */
static uint32_t epoch_width(uint8_t flags)
{
    return (flags & QN_MSG_BRIEF) != 0 ? 2 : 4;
}

static uint32_t total_width(uint8_t flags)
{
    return (flags & QN_MSG_BRIEF) != 0 ? 1 : 4;
}

size_t qn_msg_head_size(const struct qn_msg *m)
{
    const struct format *f = format_of(m->kind);
    QN_ASSERT(f != NULL);
    return head_size(f, wire_flags(m));
}

static uint64_t wire_value(const struct qn_msg *m, const struct field *fl,
                           uint8_t flags)
{
    uint64_t v = qn_member_get((const uint8_t *)m + fl->at, fl->bytes);
    bool number = (flags & QN_MSG_FIRST) != 0 && fl->flag == QN_MSG_MANY;
    return number ? (uint64_t)__builtin_popcountll(v) : v;
}

size_t qn_msg_head(const struct qn_msg *m, uint8_t *head)
{
    const struct format *f = format_of(m->kind);
    QN_ASSERT(f != NULL);
    QN_ASSERT(m->slot <= QN_SLOT_MAX);
    QN_ASSERT((m->flags & ~(unsigned)(f->flags | QN_MSG_FRAGMENT)) == 0);
    QN_ASSERT((m->flags & CODECS_OWN) == 0);
    uint8_t flags = wire_flags(m);
    QN_ASSERT(m->body.len <= QN_REFBUF_MAX);
    bool fragment = (m->flags & QN_MSG_FRAGMENT) != 0;
    QN_ASSERT(!fragment || m->offset < m->total); /* as length_sane reads it */
    QN_ASSERT(!fragment || m->body.len <= m->total - m->offset);
    head[0] = m->kind;
    head[1] = flags;
    qn_put_le(head + 2, m->slot, 6);
    uint8_t *to = head + 8;
    qn_put_le(to, m->epoch, epoch_width(flags));
    to += epoch_width(flags);
    qn_put_le(to, fragment ? m->total : m->body.len, total_width(flags));
    to += total_width(flags);
    if (fragment) {
        qn_put_le(to, m->offset, FRAGMENT_BYTES);
        to += FRAGMENT_BYTES;
    }
    for (const struct field *fl = f->fields; fl->bytes != 0; fl++) {
        qn_put_le(to, wire_value(m, fl, flags), width(fl, flags));
        to += width(fl, flags);
    }
    QN_ASSERT(to <= head + QN_HEAD_MAX);
    QN_ASSERT((size_t)(to - head) == head_size(f, flags));
    return (size_t)(to - head);
}

/* -------------------------------------------------------------- decode -- */

/** The ranges that the fields of a kind must keep. */
static bool fields_sane(const struct qn_msg *m)
{
    switch (m->kind) {
    case QN_MSG_REQUEST:
        return m->slot != 0 || m->total == 0;
    case QN_MSG_REDIRECT:
        return m->redirect.leader < QN_NODES_MAX;
    case QN_MSG_NACK:
        return m->nack.leader < QN_NODES_MAX;
    case QN_MSG_ACCEPT:
    case QN_MSG_ACCEPTED:
        return m->slot != 0;
    case QN_MSG_LEARN:
        return m->slot != 0 && m->learn.hi <= QN_SLOT_MAX;
    case QN_MSG_FETCH:
        return m->slot != 0 && m->slot <= m->fetch.last &&
               m->fetch.last <= QN_SLOT_MAX;
    case QN_MSG_FILL:
        return m->fill.log_lo <= QN_SLOT_MAX && m->fill.hi <= QN_SLOT_MAX &&
               (m->slot != 0 || m->total == 0);
    case QN_MSG_BEAT:
        return m->beat.applied <= m->beat.learned &&
               m->beat.learned <= m->beat.decided &&
               m->beat.decided <= QN_SLOT_MAX;
    case QN_MSG_READ_INDEX:
        return m->read_index.origin < QN_NODES_MAX && m->read_index.number != 0;
    case QN_MSG_READ_AT:
        return m->read_at.number != 0;
    case QN_MSG_ORDER:
        return m->order.node < QN_NODES_MAX && m->order.what < QN_ORDERS &&
               m->order.forced <= 1;
    case QN_MSG_TAKEN:
        return m->order.node < QN_NODES_MAX && m->order.what < QN_ORDERS &&
               m->order.error <= INT32_MAX;
    case QN_MSG_SNAP:
        return m->snap.part < QN_SNAP_PARTS;
    default:
        return true;
    }
}

static int check_ul(struct qn_slice body, size_t at_least, size_t at_most)
{
    size_t n = body.len / QN_UL_BYTES;
    if (body.len % QN_UL_BYTES != 0 || n < at_least || n > at_most) {
        return QN_ECORRUPT;
    }
    struct qn_ul_entry e;
    for (uint32_t i = 0; i < n; i++) {
        if (qn_ul_decode(&e, body, i) != QN_OK) {
            return QN_ECORRUPT;
        }
    }
    return QN_OK;
}

static int check_maybe_batch(struct qn_slice body)
{
    return body.len == 0 ? QN_OK : qn_batch_check(body);
}

static int check_state(struct qn_slice body)
{
    struct qn_peer_state s;
    return qn_peer_state_decode(&s, body);
}

int qn_msg_check_body(const struct qn_msg *m)
{
    struct qn_wants wants;
    switch ((enum body_kind)formats[m->kind].body) {
    case BODY_NONE:
        return m->body.len == 0 ? QN_OK : QN_ECORRUPT;
    case BODY_COMMANDS:
        return qn_wanted_check(m->body, &wants);
    case BODY_BATCH:
        return qn_batch_check(m->body);
    case BODY_MAYBE_BATCH:
        return check_maybe_batch(m->body);
    case BODY_STAGE:
        return (m->flags & QN_MSG_UL) != 0 ? check_ul(m->body, 0, SIZE_MAX)
                                           : check_maybe_batch(m->body);
    case BODY_UL:
        return check_ul(m->body, 0, SIZE_MAX);
    case BODY_UL_ONE:
        return check_ul(m->body, 1, 1);
    case BODY_UL_MAYBE:
        return check_ul(m->body, 0, 1);
    case BODY_BYTES:
        return QN_OK;
    case BODY_STATE:
        return check_state(m->body);
    }
    return QN_ECORRUPT;
}

/** The body's place in the whole: all of it, or a real part of it. */
static bool length_sane(const struct qn_msg *m)
{
    if ((m->flags & QN_MSG_FRAGMENT) == 0) {
        return m->total == m->body.len;
    }
    return m->total <= QN_REFBUF_MAX && m->body.len != 0 &&
           m->body.len < m->total && m->offset <= m->total - m->body.len;
}

/* What a brief head leaves out; and its flags are the codec's. */
static void brief_fill(struct qn_msg *m)
{
    if (m->kind == QN_MSG_LEARN && (m->flags & QN_MSG_AHEAD) == 0) {
        m->learn.hi = m->slot;
    }
    if (m->kind == QN_MSG_LEARN && (m->flags & QN_MSG_FIRST) != 0) {
        uint64_t n = m->learn.alive;
        bool sane = n >= 1 && n <= QN_NODES_MAX; /* else flags do not fit */
        m->learn.alive = sane ? UINT64_MAX >> (QN_NODES_MAX - n) : 0;
    }
    m->flags &= (uint8_t)~CODECS_OWN;
}

int qn_msg_decode(struct qn_msg *m, const void *p, size_t len)
{
    const uint8_t *from = p;
    if (len < QN_HEADER_BRIEF) {
        return QN_ECORRUPT;
    }
    const struct format *f = format_of(from[0]);
    uint8_t flags = from[1];
    if (f == NULL || (flags & ~(unsigned)(f->flags | ANY_KIND)) != 0 ||
        len < head_size(f, flags)) {
        return QN_ECORRUPT;
    }
    memset(m, 0, sizeof *m);
    m->kind = from[0];
    m->flags = flags;
    m->slot = qn_get_le(from + 2, 6);
    const uint8_t *at = from + 8;
    m->epoch = (qn_epoch_t)qn_get_le(at, epoch_width(flags));
    at += epoch_width(flags);
    m->total = (uint32_t)qn_get_le(at, total_width(flags));
    at += total_width(flags);
    if ((flags & QN_MSG_FRAGMENT) != 0) {
        m->offset = (uint32_t)qn_get_le(at, FRAGMENT_BYTES);
        at += FRAGMENT_BYTES;
    }
    for (const struct field *fl = f->fields; fl->bytes != 0; fl++) {
        qn_member_set((uint8_t *)m + fl->at, fl->bytes,
                      qn_get_le(at, width(fl, flags)));
        at += width(fl, flags);
    }
    brief_fill(m);
    QN_ASSERT((size_t)(at - from) == head_size(f, flags)); /* one table */
    m->body = (struct qn_slice){at, len - (size_t)(at - from)};
    if (!length_sane(m) || !fields_sane(m) || wire_flags(m) != flags) {
        return QN_ECORRUPT;
    }
    return (flags & QN_MSG_FRAGMENT) != 0 ? QN_OK : qn_msg_check_body(m);
}

/* ------------------------------------------------- utility log entries -- */

bool qn_ul_within(const struct qn_ul_entry *e, uint32_t nodes)
{
    QN_ASSERT(nodes <= QN_NODES_MAX);
    return e->leader < nodes && e->acceptor < nodes && e->voter < nodes &&
           (nodes == QN_NODES_MAX || e->voters >> nodes == 0);
}

static bool ul_sane(const struct qn_ul_entry *e)
{
    bool leader_votes = (e->voters >> e->leader % QN_NODES_MAX & 1) != 0;
    return e->kind <= QN_UL_SEAT && qn_ul_within(e, QN_NODES_MAX) &&
           (leader_votes || (e->voters == 0 && e->kind != QN_UL_SEAT)) &&
           e->tenure <= e->index && e->from <= e->index;
}

void qn_ul_encode(const struct qn_ul_entry *e, uint8_t *to)
{
    QN_ASSERT(ul_sane(e)); /* what is encoded can be decoded */
    qn_put_le(to, e->index, 4);
    qn_put_le(to + 4, e->tenure, 4);
    qn_put_le(to + 8, e->from, 4);
    to[12] = e->kind;
    to[13] = e->leader;
    to[14] = e->acceptor;
    to[15] = e->voter;
    qn_put_le(to + 16, e->leader_inc, 8);
    qn_put_le(to + 24, e->acceptor_inc, 8);
    qn_put_le(to + 32, e->voter_inc, 8);
    qn_put_le(to + 40, e->voters, 8);
}

int qn_ul_decode(struct qn_ul_entry *e, struct qn_slice body, uint32_t i)
{
    if (i >= body.len / QN_UL_BYTES) {
        return QN_ENOENT;
    }
    const uint8_t *from = body.data + (size_t)i * QN_UL_BYTES;
    *e = (struct qn_ul_entry){
        .index = (uint32_t)qn_get_le(from, 4),
        .tenure = (uint32_t)qn_get_le(from + 4, 4),
        .from = (uint32_t)qn_get_le(from + 8, 4),
        .kind = from[12],
        .leader = from[13],
        .acceptor = from[14],
        .voter = from[15],
        .leader_inc = qn_get_le(from + 16, 8),
        .acceptor_inc = qn_get_le(from + 24, 8),
        .voter_inc = qn_get_le(from + 32, 8),
        .voters = qn_get_le(from + 40, 8),
    };
    return ul_sane(e) ? QN_OK : QN_ECORRUPT;
}
