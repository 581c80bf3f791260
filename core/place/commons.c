/*
 * The commons.
 *
 * One memfd, mapped in one piece and read-only; then mprotect makes writable
 * what the caller may write. The pages come in the order in which they are
 * opened: the first for all, the second while it is claimed, then one stretch
 * per node. The seals fix the size, so that no access can fail; they cannot
 * guard the stretches, because the next process of a node must write them, too.
 *
 * Header and counter of incarnations lie in the second page, although they are
 * rarely needed: a misbehaving node that could spoil them would keep every
 * successor from mapping the commons at all.
 *
 * An owner is one pair of words that changes by one CAS: {epoch + 1, node and
 * incarnation}. A process may be stopped anywhere and go on much later, when
 * its epoch is long forgotten and its place taken by a later one; the CAS does
 * not let it put the old one back, and no process sees half of an entry. Zero,
 * the content of fresh memory, means no owner.
 *
 * Why not one memfd per node, sealed like an outbox (F_SEAL_FUTURE_WRITE):
 * no process could ever map it writable again, and the record of a voter is
 * there for its next incarnation.
 */
#include "core/place/commons.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/place/commons_internal.h"
#include "core/place/memfd_internal.h"

#define MAGIC      0x6d6d6f636e6f6e71u /* "qnoncomm" */
#define SEALS      (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define NODE_SHIFT 56 /* of an owner's second word */
#define NO_NODE    UINT32_MAX

static_assert(QN_COMMONS_LIVES_MAX >> NODE_SHIFT == 1, "one word");
static_assert(QN_NODES_MAX <= 256, "a node fits above it");

struct header {
    uint64_t magic;
    uint32_t version;
    uint32_t nodes;
    uint32_t page; /* bytes */
    uint32_t pad;
    uint64_t device_bytes;
};

/* The second page. */
struct agreed {
    alignas(QN_CACHELINE) struct header header;
    alignas(QN_CACHELINE) qn_a64 incarnations;
    alignas(QN_CACHELINE) struct qn_pair word;
    alignas(QN_CACHELINE) struct qn_pair owner[QN_COMMONS_OWNERS];
    alignas(
        QN_CACHELINE) struct qn_pair spare; /* of one whose place is taken */
};

static_assert(offsetof(struct agreed, incarnations) == 64,
              "layout of version 2");
static_assert(offsetof(struct agreed, word) == 128, "layout of version 2");
static_assert(offsetof(struct agreed, owner) == 192, "layout of version 2");
static_assert(offsetof(struct agreed, spare) == 1216, "layout of version 2");
static_assert(sizeof(struct agreed) <= 4096, "the smallest page");

/* The stretch of a node: its liveness word in a line of its own, then the
 * record. */
#define RECORD_OFFSET ((size_t)QN_CACHELINE)

struct qn_commons {
    uint8_t *base;
    size_t page, bytes, device_bytes;
    uint32_t nodes;
    bool shared;
    bool claimed;
    qn_node_t own; /* NO_NODE */
};

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t stretch_bytes(void)
{
    return qn_align_up(RECORD_OFFSET + QN_COMMONS_RECORD_BYTES, page_bytes());
}

static uint8_t *stretch(const struct qn_commons *c, qn_node_t node)
{
    QN_ASSERT(node < c->nodes);
    /* Each turn of a member looks at its own: no sysconf. */
    return c->base + 2 * c->page +
           node * qn_align_up(RECORD_OFFSET + QN_COMMONS_RECORD_BYTES, c->page);
}

static struct agreed *agreed(const struct qn_commons *c)
{
    return (struct agreed *)(void *)(c->base + c->page);
}

static struct header header_of(uint32_t nodes, size_t device_bytes)
{
    return (struct header){.magic = MAGIC,
                           .version = QN_COMMONS_VERSION,
                           .nodes = nodes,
                           .page = (uint32_t)page_bytes(),
                           .device_bytes = device_bytes};
}

static size_t device_offset(uint32_t nodes)
{
    return 2 * page_bytes() + nodes * stretch_bytes();
}

size_t qn_commons_bytes(uint32_t nodes, size_t device_bytes)
{
    return device_offset(nodes) + qn_align_up(device_bytes, page_bytes());
}

/* ---------------------------------------------------- create, map, destroy */

/* A handle on `base`, which it owns from then on if all goes well. */
static int wrap(struct qn_commons **out, void *base, const struct header *h,
                bool shared)
{
    struct qn_commons *c = malloc(sizeof *c);
    if (c == NULL) {
        return QN_ENOMEM;
    }
    *c = (struct qn_commons){.base = base,
                             .page = page_bytes(),
                             .bytes =
                                 qn_commons_bytes(h->nodes, h->device_bytes),
                             .device_bytes = h->device_bytes,
                             .nodes = h->nodes,
                             .shared = shared,
                             .own = NO_NODE};
    *out = c;
    return QN_OK;
}

static int create_private(struct qn_commons **out, const struct header *h)
{
    size_t bytes = qn_commons_bytes(h->nodes, h->device_bytes);
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        return QN_ENOMEM;
    }
    int err = wrap(out, base, h, false);
    if (err != QN_OK) {
        munmap(base, bytes);
        return err;
    }
    qn_copy_out(&agreed(*out)->header, h, sizeof *h);
    return QN_OK;
}

/* Make writable what all may write: the first page, the device. */
static bool open_to_all(uint8_t *base, const struct header *h)
{
    const int both = PROT_READ | PROT_WRITE;
    return mprotect(base, page_bytes(), both) == 0 &&
           (h->device_bytes == 0 || mprotect(base + device_offset(h->nodes),
                                             h->device_bytes, both) == 0);
}

static int open_shared(struct qn_commons **out, int fd, const struct header *h)
{
    void *base;
    size_t bytes = qn_commons_bytes(h->nodes, h->device_bytes);
    int err = qn_memfd_map(&base, fd, bytes, PROT_READ);
    if (err != QN_OK) {
        return err;
    }
    err = open_to_all(base, h) ? wrap(out, base, h, true) : QN_ENOMEM;
    if (err != QN_OK) {
        munmap(base, bytes);
    }
    return err;
}

static int create_shared(struct qn_commons **out, const struct header *h,
                         int *fd)
{
    struct qn_commons *c;
    size_t bytes = qn_commons_bytes(h->nodes, h->device_bytes);
    int memfd = qn_memfd_open("quoin-commons", bytes);
    if (memfd < 0) {
        return memfd;
    }
    int err = qn_memfd_fill(memfd, 0, bytes);
    if (err == QN_OK) {
        err = qn_memfd_seal(memfd, SEALS);
    }
    if (err == QN_OK) {
        err = open_shared(&c, memfd, h);
    }
    if (err != QN_OK) {
        close(memfd);
        return err;
    }
    qn_commons_claim(c, true);
    qn_copy_out(&agreed(c)->header, h, sizeof *h); /* published by passing fd */
    qn_commons_claim(c, false);
    *out = c;
    *fd = memfd;
    return QN_OK;
}

static bool is_valid(uint32_t nodes, size_t device_bytes)
{
    return nodes >= 1 && nodes <= QN_NODES_MAX &&
           device_bytes <= QN_COMMONS_DEVICE_MAX;
}

int qn_commons_create(struct qn_commons **out, uint32_t nodes,
                      size_t device_bytes, bool shared, int *fd)
{
    const struct header h = header_of(nodes, device_bytes);
    if (!is_valid(nodes, device_bytes)) {
        return QN_EINVAL;
    }
    if (shared) {
        return create_shared(out, &h, fd);
    }
    int err = create_private(out, &h);
    if (err == QN_OK) {
        *fd = -1;
    }
    return err;
}

int qn_commons_map(struct qn_commons **out, int fd, uint32_t nodes,
                   size_t device_bytes)
{
    struct qn_commons *c;
    const struct header want = header_of(nodes, device_bytes);
    if (!is_valid(nodes, device_bytes)) {
        return QN_ECORRUPT;
    }
    int err = qn_memfd_check(fd, qn_commons_bytes(nodes, device_bytes), SEALS);
    if (err == QN_OK) {
        err = open_shared(&c, fd, &want);
    }
    if (err != QN_OK) {
        return err;
    }
    struct header have;
    qn_copy_in(&have, &agreed(c)->header, sizeof have); /* published by fd */
    if (memcmp(&have, &want, sizeof have) != 0) {
        qn_commons_destroy(c);
        return QN_ECORRUPT;
    }
    *out = c;
    return QN_OK;
}

void qn_commons_keep_from_children(const struct qn_commons *c)
{
    (void)madvise(c->base, c->bytes, MADV_DONTFORK);
}

void qn_commons_destroy(struct qn_commons *c)
{
    if (c != NULL) {
        munmap(c->base, c->bytes);
        free(c);
    }
}

/* ----------------------------------------------------------------- writers */

void qn_commons_claim(struct qn_commons *c, bool writable)
{
    if (!c->shared || c->claimed == writable) {
        return;
    }
    int prot = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    int err = mprotect(c->base + c->page, c->page, prot);
    /* To open a page of an allocated file costs the kernel nothing but perhaps
     * a mapping's description. Without it this node could not lead. That it
     * stays open when it should be closed, for the same reason, does no harm.
     */
    QN_ASSERT(err == 0 || !writable);
    c->claimed = writable || err != 0;
}

bool qn_commons_claimed(const struct qn_commons *c)
{
    return c->claimed || !c->shared;
}

int qn_commons_own(struct qn_commons *c, qn_node_t self)
{
    if (self >= c->nodes) {
        return QN_EINVAL;
    }
    if (!c->shared || c->own == self) {
        return QN_OK;
    }
    if (c->own != NO_NODE) {
        return QN_EBUSY;
    }
    if (mprotect(stretch(c, self), stretch_bytes(), PROT_READ | PROT_WRITE) !=
        0) {
        return QN_ENOMEM;
    }
    c->own = self;
    return QN_OK;
}

bool qn_commons_owns(const struct qn_commons *c, qn_node_t node)
{
    return !c->shared || c->own == node;
}

bool qn_commons_lend_liveness(struct qn_commons *c, qn_node_t node,
                              bool writable)
{
    const int prot = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    QN_ASSERT(c->shared && node < c->nodes && node != c->own);
    return mprotect(stretch(c, node), c->page, prot) == 0;
}

/* -------------------------------------------------------------- addresses */

uint32_t qn_commons_nodes(const struct qn_commons *c)
{
    return c->nodes;
}

bool qn_commons_is_shared(const struct qn_commons *c)
{
    return c->shared;
}

qn_a64 *qn_commons_read_index(const struct qn_commons *c)
{
    return (qn_a64 *)(void *)c->base;
}

struct qn_pair *qn_commons_word(const struct qn_commons *c)
{
    return &agreed(c)->word;
}

void *qn_commons_record(const struct qn_commons *c, qn_node_t node)
{
    return stretch(c, node) + RECORD_OFFSET;
}

void *qn_commons_device(const struct qn_commons *c)
{
    return c->device_bytes == 0 ? NULL : c->base + device_offset(c->nodes);
}

struct qn_pair *qn_commons_liveness(const struct qn_commons *c, qn_node_t node)
{
    return (struct qn_pair *)(void *)stretch(c, node);
}

/* ---- owners, incarnations ------------------------------------------------ */

static struct qn_pair *place_of(const struct qn_commons *c, uint64_t epoch)
{
    return &agreed(c)->owner[epoch % QN_COMMONS_OWNERS];
}

/* What the word says is decided lies in a ring that only its owner names: that
 * is never overwritten while it does, however many epochs pass. */
static bool is_needed(const struct qn_commons *c, const struct qn_pair *at,
                      uint64_t epoch)
{
    uint64_t first;
    uint64_t second;
    uint64_t word = qn_load(&agreed(c)->word.first, QN_SEQ_CST);
    qn_load_pair(at, &first, &second);
    return first == word + 1 && word != epoch;
}

/* First come: @return false: another one has that epoch. */
bool qn_commons_owner_set(struct qn_commons *c, uint64_t epoch, qn_node_t node,
                          uint64_t inc)
{
    struct qn_pair *at = place_of(c, epoch);
    uint64_t first;
    uint64_t second;
    qn_node_t owner;
    uint64_t incarnation;
    QN_ASSERT(qn_commons_claimed(c) && epoch < UINT64_MAX);
    QN_ASSERT(node < c->nodes && inc < QN_COMMONS_LIVES_MAX);
    if (qn_commons_owner(c, epoch, &owner, &incarnation)) {
        return owner == node && incarnation == inc;
    }
    at = is_needed(c, at, epoch) ? &agreed(c)->spare : at;
    do {
        /* The first word only grows, as qn_load_pair asks for. */
        qn_load_pair(at, &first, &second);
    } while (first < epoch + 1 &&
             !qn_cas_pair(at, first, second, epoch + 1,
                          (uint64_t)node << NODE_SHIFT | inc));
    return qn_commons_owner(c, epoch, &owner, &incarnation) && owner == node &&
           incarnation == inc;
}

bool qn_commons_owner(const struct qn_commons *c, uint64_t epoch,
                      qn_node_t *node, uint64_t *inc)
{
    uint64_t first;
    uint64_t second;
    qn_load_pair(place_of(c, epoch), &first, &second);
    if (first != epoch + 1) {
        qn_load_pair(&agreed(c)->spare, &first, &second);
    }
    if (epoch == UINT64_MAX || first != epoch + 1 ||
        second >> NODE_SHIFT >= c->nodes) {
        return false;
    }
    *node = (qn_node_t)(second >> NODE_SHIFT);
    *inc = second % QN_COMMONS_LIVES_MAX;
    return true;
}

uint64_t qn_commons_next_incarnation(struct qn_commons *c)
{
    bool claimed = qn_commons_claimed(c);
    qn_commons_claim(c, true);
    /* seq_cst: only that each value comes once counts. */
    uint64_t incarnation =
        qn_fetch_add(&agreed(c)->incarnations, 1, QN_SEQ_CST) + 1;
    qn_commons_claim(c, claimed);
    return incarnation;
}
