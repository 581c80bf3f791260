#include "core/coll/payload/coll_slot.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"

#define ENTRY_BYTES 8u /* the head of an entry: a rank */

/* ---- what an operation is ---- */

static bool reduces(const struct qn_coll_call *call)
{
    return call->what == QN_COLL_REDUCE || call->what == QN_COLL_ALLREDUCE;
}

/* Its contributions travel as entries. */
static bool gathers(const struct qn_coll_call *call)
{
    return call->what == QN_COLL_GATHER ||
           (reduces(call) && call->count > 0 && !call->op->commutes);
}

static bool goes_up(const struct qn_coll_call *call)
{
    return reduces(call) || call->what == QN_COLL_GATHER ||
           call->what == QN_COLL_COMMIT;
}

/* Only the root gets a result. */
static bool ends_at_root(const struct qn_coll_call *call)
{
    return call->what == QN_COLL_REDUCE || call->what == QN_COLL_GATHER;
}

/* Each member gets all contributions. */
static bool is_exchange(const struct qn_coll_slot *o)
{
    return o->place.exchanges && o->call.what == QN_COLL_ALLREDUCE;
}

/* Bytes of one member's contribution, or of what one member gets. */
static uint64_t bytes_of(const struct qn_coll_call *call)
{
    return call->what == QN_COLL_COMMIT ? sizeof(uint64_t)
           : reduces(call) && call->count > 0
               ? (uint64_t)call->count * call->op->bytes
               : call->count;
}

static uint64_t entry_bytes(const struct qn_coll_call *call)
{
    return ENTRY_BYTES + (bytes_of(call) + 7) / 8 * 8;
}

/* Bytes that come down before all have contributed. */
static uint64_t payload_bytes(const struct qn_coll_place *p,
                              const struct qn_coll_call *call)
{
    return call->what == QN_COLL_SCATTER  ? bytes_of(call) * p->members
           : call->what == QN_COLL_COMMIT ? 0
                                          : bytes_of(call);
}

int qn_coll_slot_check(const struct qn_coll_place *p, uint32_t bytes_max,
                       const struct qn_coll_call *call)
{
    QN_ASSERT(call->what <= QN_COLL_SCATTER);
    QN_ASSERT(!reduces(call) || call->count == 0 || call->op != NULL);
    const uint64_t each = bytes_of(call);
    const uint64_t most = gathers(call) ? entry_bytes(call) * p->members
                          : call->what == QN_COLL_SCATTER ? each * p->members
                                                          : each;
    const bool reads_in = call->what == QN_COLL_COMMIT ||
                          call->what == QN_COLL_GATHER ||
                          (p->root && !goes_up(call));
    if (most > bytes_max) {
        return QN_EMSGSIZE;
    }
    return reads_in && each > 0 && call->in == NULL ? QN_EINVAL : QN_OK;
}

void qn_coll_slot_clear(struct qn_coll_slot *o, const struct qn_coll_sizes *z,
                        const struct qn_coll_place *place)
{
    o->started = o->has_payload = o->ordered = o->handed = false;
    o->payload_bytes = o->result_bytes = 0;
    o->place = *place;
    for (uint32_t i = 0; i < z->links; i++) {
        o->early.part_bytes[i] = QN_COLL_NO_PART;
    }
    memset(o->early.seen, 0, place->members);
}

/* ---- contributions ---- */

/* Entries of a child, or the own one, behind those that are there. */
static int append(struct qn_coll_slot *o, const struct qn_coll_sizes *z,
                  const uint8_t *bytes, size_t len)
{
    const size_t each = entry_bytes(&o->call);
    if (len == 0 || len % each != 0 || o->result_bytes + len > z->bytes_max) {
        return QN_ECORRUPT;
    }
    for (size_t at = 0; at < len; at += each) {
        uint64_t rank;
        memcpy(&rank, bytes + at, sizeof rank);
        if (rank >= o->place.members || o->early.seen[rank]) {
            return QN_ECORRUPT;
        }
        o->early.seen[rank] = true;
    }
    memcpy(o->result + o->result_bytes, bytes, len);
    o->result_bytes += (uint32_t)len;
    return QN_OK;
}

static int contribute(struct qn_coll_slot *o, const struct qn_coll_sizes *z,
                      const uint8_t *bytes, size_t len)
{
    if (gathers(&o->call)) {
        return append(o, z, bytes, len);
    }
    if (len != bytes_of(&o->call)) {
        return QN_ECORRUPT;
    }
    if (o->call.what == QN_COLL_COMMIT) {
        qn_and_u64.combine(o->result, bytes, 1);
    } else if (o->call.count > 0) {
        o->call.op->combine(o->result, bytes, o->call.count);
    }
    return QN_OK;
}

static void fill_neutral(uint8_t *to, const struct qn_coll_call *call)
{
    for (uint32_t i = 0; i < call->count; i++) {
        memcpy(to + (size_t)i * call->op->bytes, call->op->neutral,
               call->op->bytes);
    }
}

static void own_contribution(uint8_t *to, const struct qn_coll_call *call)
{
    if (call->what == QN_COLL_COMMIT) {
        uint64_t yes;
        memcpy(&yes, call->in, sizeof yes);
        yes = yes != 0;
        memcpy(to, &yes, sizeof yes);
    } else if (call->in != NULL) {
        memcpy(to, call->in, bytes_of(call));
    } else if (call->count > 0) {
        fill_neutral(to, call);
    }
}

/* The own contribution, and then those that came before. */
static int begin_result(struct qn_coll_slot *o, const struct qn_coll_sizes *z)
{
    if (!gathers(&o->call)) {
        own_contribution(o->result, &o->call);
        o->result_bytes = (uint32_t)bytes_of(&o->call);
    } else {
        const uint64_t rank = o->place.rank;
        memset(o->result, 0, entry_bytes(&o->call));
        memcpy(o->result, &rank, sizeof rank);
        own_contribution(o->result + ENTRY_BYTES, &o->call);
        o->result_bytes = (uint32_t)entry_bytes(&o->call);
        if (o->early.seen[rank]) {
            return QN_ECORRUPT;
        }
        o->early.seen[rank] = true;
    }
    if (is_exchange(o)) {
        o->payload_bytes = o->result_bytes;
        memcpy(o->payload, o->result, o->payload_bytes);
    }
    int rc = QN_OK;
    for (uint32_t i = 0; i < z->links && rc == QN_OK; i++) {
        if (o->early.part_bytes[i] != QN_COLL_NO_PART) {
            rc = contribute(o, z, o->early.part + (size_t)i * z->stride,
                            o->early.part_bytes[i]);
        }
    }
    return rc;
}

/* The contribution of a rank among the entries; NULL: it is missing. */
static const uint8_t *entry_of(const struct qn_coll_slot *o, uint64_t rank)
{
    const size_t each = entry_bytes(&o->call);
    for (size_t at = 0; at < o->result_bytes; at += each) {
        if (memcmp(o->result + at, &rank, sizeof rank) == 0) {
            return o->result + at + ENTRY_BYTES;
        }
    }
    return NULL;
}

/* When all entries are there: the result in the order of ranks. */
static int order(struct qn_coll_slot *o, const struct qn_coll_sizes *z)
{
    const size_t each = bytes_of(&o->call);
    size_t len = 0;
    for (uint32_t rank = 0; rank < o->place.members; rank++) {
        const uint8_t *entry = entry_of(o, rank);
        if (entry == NULL) {
            return QN_ECORRUPT;
        }
        if (o->call.what == QN_COLL_GATHER || rank == 0) {
            memcpy(z->scratch + len, entry, each);
            len += each;
        } else {
            o->call.op->combine(z->scratch, entry, o->call.count);
        }
    }
    memcpy(o->result, z->scratch, len);
    o->result_bytes = (uint32_t)len;
    return QN_OK;
}

int qn_coll_slot_settle(struct qn_coll_slot *o, const struct qn_coll_sizes *z)
{
    const bool here = o->place.root || is_exchange(o);
    if (!here || o->handed || o->ordered || !gathers(&o->call)) {
        return QN_OK;
    }
    o->ordered = true;
    int rc = order(o, z);
    if (rc != QN_OK) {
        o->result_bytes = 0;
    }
    return rc;
}

int qn_coll_slot_hand_over(struct qn_coll_slot *o,
                           const struct qn_coll_sizes *z)
{
    int rc = QN_OK;
    if (o->started && ends_at_root(&o->call)) {
        rc = qn_coll_slot_settle(o, z);
    }
    o->handed = true;
    o->payload_bytes = 0;
    return rc;
}

int qn_coll_slot_join(struct qn_coll_slot *o, const struct qn_coll_sizes *z,
                      const struct qn_coll_call *call)
{
    int rc = QN_OK;
    o->call = *call;
    o->started = true;
    if (o->handed) { /* what it was is over */
    } else if (goes_up(call)) {
        rc = begin_result(o, z);
    } else if (o->place.root) {
        o->payload_bytes = (uint32_t)payload_bytes(&o->place, call);
        if (o->payload_bytes > 0) {
            memcpy(o->payload, call->in, o->payload_bytes);
        }
    } else if (o->has_payload &&
               o->payload_bytes != payload_bytes(&o->place, call)) {
        rc = QN_ECORRUPT;
    }
    o->call.in = NULL;
    return rc;
}

/* ---- what comes and what goes ---- */

int qn_coll_slot_take_part(struct qn_coll_slot *o,
                           const struct qn_coll_sizes *z, uint32_t link,
                           const void *bytes, size_t len)
{
    if (o->started) {
        return contribute(o, z, bytes, len);
    }
    memcpy(o->early.part + (size_t)link * z->stride, bytes, len);
    o->early.part_bytes[link] = (uint32_t)len;
    return QN_OK;
}

int qn_coll_slot_take_payload(struct qn_coll_slot *o, const void *bytes,
                              size_t len)
{
    if (o->started && !o->handed && len != payload_bytes(&o->place, &o->call)) {
        return QN_ECORRUPT;
    }
    memcpy(o->payload, bytes, len);
    o->payload_bytes = (uint32_t)len;
    o->has_payload = true;
    return QN_OK;
}

int qn_coll_slot_take_result(struct qn_coll_slot *o, const void *bytes,
                             size_t len)
{
    if (!o->started || len != bytes_of(&o->call)) { /* it answers */
        return QN_ECORRUPT;
    }
    memcpy(o->result, bytes, len);
    o->result_bytes = (uint32_t)len;
    return QN_OK;
}

uint8_t *qn_coll_slot_hand_on(struct qn_coll_slot *o, size_t *len)
{
    if (o->handed || !goes_up(&o->call)) {
        *len = o->payload_bytes;
        return o->payload;
    }
    *len = ends_at_root(&o->call) ? 0 : o->result_bytes;
    return o->result;
}

int qn_coll_slot_write(struct qn_coll_slot *o, const struct qn_coll_sizes *z)
{
    const struct qn_coll_call *call = &o->call;
    int rc = qn_coll_slot_settle(o, z);
    if (ends_at_root(call) && !o->place.root) {
        return rc;
    }
    const bool down = !goes_up(call) || (o->handed && !ends_at_root(call));
    const uint8_t *from = down ? o->payload : o->result;
    size_t len = o->result_bytes;
    if (down) {
        const bool part = call->what == QN_COLL_SCATTER;
        from += part ? (size_t)o->place.rank * call->count : 0;
        len = goes_up(call) ? bytes_of(call) : call->count;
        const uint64_t want =
            goes_up(call) ? len : payload_bytes(&o->place, call);
        if (o->handed && o->payload_bytes != want) {
            return QN_ECORRUPT;
        }
    }
    if (call->out != NULL && len > 0) {
        memcpy(call->out, from, len);
    }
    return rc;
}
