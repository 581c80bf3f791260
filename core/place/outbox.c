/*
 * Outboxes.
 *
 * The order in `create` is the point: size, map writable (this is the only
 * writable mapping there will ever be), home, allocate, write the header, seal.
 * F_SEAL_FUTURE_WRITE leaves the existing mapping alone and refuses every later
 * way to write: a writable mapping, mprotect of a read-only one, write,
 * truncation, punching holes, and all of them through /proc/PID/fd too. Homing
 * comes before the allocation, which then takes the pages from the right node.
 *
 * The regions are part of the file's size from the beginning, though most of
 * them is a hole: growth is an fallocate of the owner, which the seals allow,
 * and no mapping ever changes. A store into the hole would allocate, too, but
 * could fail only by a signal; so the owner allocates before it stores.
 * Private pages get the same by mprotect of address space reserved without
 * access. Lanes to a vacant seat are such holes, too.
 *
 * With the size sealed and the pages allocated, a reader can trust addresses,
 * though not contents: the header of a peer's outbox is copied out and checked
 * once, and later only lanes and lines at computed offsets are looked at.
 *
 * A mapping is shared by the handles on it (alias), hence the count in it; in
 * memfd form there is one handle per mapping, and the kernel counts mappings.
 *
 * What this does not stop: a process of the same user that attaches as a
 * debugger. That is not an accident any more.
 */
#include "core/place/outbox.h"

#include <assert.h>
#include <fcntl.h>
#include <numaif.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/place/flight_recorder.h"
#include "core/place/memfd_internal.h"

#define MAGIC          0x786f6274756f6e71u /* "qnoutbox" */
#define SEALS          (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)
#define NUMA_NODES_MAX 1024u

struct header {
    uint64_t magic;
    uint32_t version;
    uint32_t node;
    uint16_t nodes;
    uint16_t more_lanes; /* to each peer, than QN_LANES */
    uint32_t page;       /* bytes */
    uint64_t incarnation;
    uint64_t lane_bytes;
    uint64_t region_bytes[QN_REGIONS]; /* address space */
    uint64_t bytes;                    /* of the whole outbox */
};

/* The first page. */
struct front {
    alignas(QN_CACHELINE) struct header header;
    struct qn_doorbell_line doorbell;
    struct qn_outbox_state state;
};

static_assert(sizeof(struct header) <= QN_CACHELINE, "one line");
static_assert(offsetof(struct front, doorbell) == 64, "layout of version 3");
static_assert(offsetof(struct front, state) == 128, "layout of version 3");
static_assert(sizeof(struct front) <= 4096, "the smallest page");

struct mapping {
    const struct qn_alloc *alloc; /* of this and of handles, kept */
    qn_a32 handles;
    uint8_t *base;
    size_t bytes;
    size_t grown[QN_REGIONS]; /* the owner's handle only, */
    uint64_t seats;           /* and this: mask of the seated */
};

struct qn_outbox {
    struct mapping *mapping; /* kept, counted */
    int fd;                  /* own memfd; -1 */
    struct header header;    /* private copy: the shared one is not trusted */
};

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static uint32_t lanes_of(const struct header *h)
{
    return QN_LANES + (uint32_t)h->more_lanes;
}

static size_t lane_stride(size_t lane_bytes)
{
    return qn_align_up(lane_bytes, page_bytes());
}

/* The flight recorder is behind the first page, the lanes are behind it. */
static size_t lanes_offset(void)
{
    return page_bytes() +
           qn_align_up(QN_FLIGHT_BYTES(QN_FLIGHT_ENTRIES), page_bytes());
}

/* All lanes to one peer. */
static size_t lanes_bytes(const struct header *h)
{
    return lanes_of(h) * lane_stride(h->lane_bytes);
}

/* Offset of the first lane toward `peer`; none is kept for the owner. */
static size_t lane_offset(const struct header *h, qn_node_t peer)
{
    uint32_t before = peer - (peer > h->node);
    return lanes_offset() + before * lanes_bytes(h);
}

static size_t region_offset(const struct header *h, enum qn_region region)
{
    size_t at = lanes_offset() + (h->nodes - 1u) * lanes_bytes(h);
    for (enum qn_region r = 0; r < region; r++) {
        at += qn_align_up(h->region_bytes[r], page_bytes());
    }
    return at;
}

static int check_opts(const struct qn_outbox_opts *o)
{
    bool ok =
        o->nodes >= 1 && o->nodes <= QN_NODES_MAX && o->node < o->nodes &&
        (o->seats & ~qn_low_bits(o->nodes)) == 0 &&
        o->lane_bytes <= QN_LANE_BYTES_MAX &&
        (o->lanes == 0 || (o->lanes >= QN_LANES && o->lanes <= QN_LANES_MAX)) &&
        o->ring_bytes <= QN_RING_BYTES_MAX &&
        o->arena_bytes <= QN_RING_BYTES_MAX;
    return ok ? QN_OK : QN_EINVAL;
}

/* Mask of the nodes whose lanes exist from the beginning. */
static uint64_t seats_of(const struct qn_outbox_opts *o)
{
    uint64_t seats = o->seats != 0 ? o->seats : qn_low_bits(o->nodes);
    return seats & ~(UINT64_C(1) << o->node);
}

static struct header header_of(const struct qn_outbox_opts *o)
{
    struct header h = {
        .magic = MAGIC,
        .version = QN_OUTBOX_VERSION,
        .node = o->node,
        .nodes = (uint16_t)o->nodes,
        .more_lanes =
            (uint16_t)(o->lanes == 0 ? 0 : o->lanes - (uint32_t)QN_LANES),
        .page = (uint32_t)page_bytes(),
        .incarnation = o->incarnation,
        .lane_bytes = o->lane_bytes,
        .region_bytes = {[QN_REGION_RING] = o->ring_bytes,
                         [QN_REGION_ARENA] = o->arena_bytes},
    };
    h.bytes = region_offset(&h, QN_REGIONS);
    return h;
}

static struct front *front_of(const struct qn_outbox *o)
{
    return (struct front *)(void *)o->mapping->base;
}

/* Say where pages should lie. A wish: where it cannot be had, so be it. */
static void home(void *at, size_t bytes, int numa_node)
{
    const size_t bits = 8 * sizeof(unsigned long);
    unsigned long mask[NUMA_NODES_MAX / (8 * sizeof(unsigned long))] = {0};
    if (numa_node < 0 || (size_t)numa_node >= NUMA_NODES_MAX) {
        return;
    }
    mask[(size_t)numa_node / bits] = 1ul << ((size_t)numa_node % bits);
    (void)mbind(at, bytes, MPOL_PREFERRED, mask, NUMA_NODES_MAX, 0);
}

static void home_all(uint8_t *base, const struct header *h,
                     const struct qn_outbox_opts *o)
{
    home(base, h->bytes, o->numa_node);
    if (o->reader_numa_node == NULL) {
        return;
    }
    for (qn_node_t peer = 0; peer < o->nodes; peer++) {
        if (peer != o->node) {
            home(base + lane_offset(h, peer), lanes_bytes(h),
                 o->reader_numa_node[peer]);
        }
    }
}

/* A handle on `base`, which it owns from then on. */
static int wrap(struct qn_outbox **out, void *base, const struct header *h,
                int fd, const struct qn_alloc *alloc)
{
    const struct qn_alloc *a = qn_alloc_or_malloc(alloc);
    struct qn_outbox *o = qn_alloc_zeroed(a, sizeof *o);
    struct mapping *m = qn_alloc_zeroed(a, sizeof *m);
    if (o == NULL || m == NULL) {
        qn_alloc_free(a, o);
        qn_alloc_free(a, m);
        return QN_ENOMEM;
    }
    m->alloc = a;
    m->base = base;
    m->bytes = h->bytes;
    /* relaxed: no other thread has the handle yet. */
    qn_store(&m->handles, 1, QN_RELAXED);
    *o = (struct qn_outbox){.mapping = m, .fd = fd, .header = *h};
    *out = o;
    return QN_OK;
}

static int create_private(struct qn_outbox **out,
                          const struct qn_outbox_opts *opts,
                          const struct header *h)
{
    void *base = mmap(NULL, h->bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return QN_ENOMEM;
    }
    if (mprotect(base, lanes_offset(), PROT_READ | PROT_WRITE) != 0) {
        munmap(base, h->bytes);
        return QN_ENOMEM;
    }
    home_all(base, h, opts);
    qn_copy_out(base, h, sizeof *h); /* published by handing over the handle */
    int err = wrap(out, base, h, -1, opts->alloc);
    if (err != QN_OK) {
        munmap(base, h->bytes);
    }
    return err;
}

static int create_shared(struct qn_outbox **out,
                         const struct qn_outbox_opts *opts,
                         const struct header *h)
{
    void *base;
    int fd = qn_memfd_open("quoin-outbox", h->bytes);
    if (fd < 0) {
        return fd;
    }
    int err = qn_memfd_map(&base, fd, h->bytes, PROT_READ | PROT_WRITE);
    if (err != QN_OK) {
        goto close_fd;
    }
    home_all(base, h, opts);
    err = qn_memfd_fill(fd, 0, lanes_offset());
    if (err != QN_OK) {
        goto unmap;
    }
    qn_copy_out(base, h, sizeof *h); /* published by passing the descriptor */
    err = qn_memfd_seal(fd, SEALS);
    if (err != QN_OK) {
        goto unmap;
    }
    err = wrap(out, base, h, fd, opts->alloc);
    if (err == QN_OK) {
        return QN_OK;
    }
unmap:
    munmap(base, h->bytes);
close_fd:
    close(fd);
    return err;
}

int qn_outbox_create(struct qn_outbox **out, const struct qn_outbox_opts *opts)
{
    if (check_opts(opts) != QN_OK || opts->incarnation == 0) {
        return QN_EINVAL;
    }
    struct header h = header_of(opts);
    struct qn_outbox *o;
    int err = opts->shared ? create_shared(&o, opts, &h)
                           : create_private(&o, opts, &h);
    if (err != QN_OK) {
        return err;
    }
    for (uint64_t m = seats_of(opts); err == QN_OK && m != 0; m &= m - 1) {
        err = qn_outbox_seat(o, (qn_node_t)__builtin_ctzll(m));
    }
    if (err != QN_OK) {
        qn_outbox_destroy(o);
        return err;
    }
    /* relaxed: it is not shared yet. */
    qn_store(&qn_outbox_state(o)->voted, UINT64_MAX, QN_RELAXED);
    *out = o;
    return QN_OK;
}

int qn_outbox_fd(const struct qn_outbox *o)
{
    return o->fd;
}

static int check_header(const struct header *have, const struct header *want)
{
    bool same = have->magic == want->magic && have->version == want->version &&
                have->node == want->node && have->nodes == want->nodes &&
                have->more_lanes == want->more_lanes &&
                have->page == want->page &&
                have->lane_bytes == want->lane_bytes &&
                memcmp(have->region_bytes, want->region_bytes,
                       sizeof have->region_bytes) == 0 &&
                have->bytes == want->bytes && have->incarnation != 0;
    if (!same) {
        return QN_ECORRUPT;
    }
    return want->incarnation == 0 || want->incarnation == have->incarnation
               ? QN_OK
               : QN_ESTALE;
}

int qn_outbox_map(struct qn_outbox **out, int fd,
                  const struct qn_outbox_opts *expect)
{
    if (check_opts(expect) != QN_OK) {
        return QN_EINVAL;
    }
    struct header want = header_of(expect);
    struct header have;
    void *base;
    int err = qn_memfd_check(fd, want.bytes, SEALS);
    if (err != QN_OK) {
        return err;
    }
    err = qn_memfd_map(&base, fd, want.bytes, PROT_READ);
    if (err != QN_OK) {
        return err;
    }
    qn_copy_in(&have, base, sizeof have); /* published by the descriptor */
    err = check_header(&have, &want);
    if (err == QN_OK) {
        err = wrap(out, base, &have, -1, expect->alloc);
    }
    if (err != QN_OK) {
        munmap(base, want.bytes);
    }
    return err;
}

int qn_outbox_alias(struct qn_outbox **out, struct qn_outbox *own)
{
    struct qn_outbox *o = qn_alloc_zeroed(own->mapping->alloc, sizeof *o);
    if (o == NULL) {
        return QN_ENOMEM;
    }
    *o = (struct qn_outbox){
        .mapping = own->mapping, .fd = -1, .header = own->header};
    /* relaxed: `own` keeps the mapping alive meanwhile. */
    qn_fetch_add(&o->mapping->handles, 1, QN_RELAXED);
    *out = o;
    return QN_OK;
}

void qn_outbox_keep_from_children(const struct qn_outbox *o)
{
    (void)madvise(o->mapping->base, o->mapping->bytes, MADV_DONTFORK);
}

void qn_outbox_destroy(struct qn_outbox *o)
{
    if (o == NULL) {
        return;
    }
    struct mapping *m = o->mapping;
    const struct qn_alloc *a = m->alloc;
    /* acq_rel, with the other handles' destroy: whatever they did in the pages
     * is over before the last one unmaps them. */
    if (qn_fetch_add(&m->handles, UINT32_MAX, QN_ACQ_REL) == 1) {
        munmap(m->base, m->bytes);
        qn_alloc_free(a, m);
    }
    if (o->fd >= 0) {
        close(o->fd);
    }
    qn_alloc_free(a, o);
}

static int open_one(struct qn_qp **qp, const struct qn_outbox_connect_opts *o,
                    enum qn_lane lane)
{
    struct qn_qp_opts each = o->each;
    each.tx = qn_outbox_lane(o->own, each.peer, lane);
    each.rx = qn_outbox_lane(o->peer, each.self, lane);
    each.lane = lane;
    each.self_inc = qn_outbox_incarnation(o->own);
    each.peer_inc = qn_outbox_incarnation(o->peer);
    return o->transport->open(qp, &each);
}

int qn_outbox_connect(struct qn_qp **qp, const struct qn_outbox_connect_opts *o)
{
    int err = QN_OK;
    for (uint32_t lane = 0; lane < o->lanes; lane++) {
        qp[lane] = NULL;
    }
    for (uint32_t lane = 0; lane < o->lanes && err == QN_OK; lane++) {
        err = open_one(&qp[lane], o, (enum qn_lane)lane);
    }
    for (uint32_t lane = 0; lane < o->lanes && err != QN_OK; lane++) {
        qn_qp_close(qp[lane]);
        qp[lane] = NULL;
    }
    return err;
}

uint64_t qn_outbox_incarnation(const struct qn_outbox *o)
{
    return o->header.incarnation;
}

size_t qn_outbox_bytes(const struct qn_outbox *o)
{
    return o->mapping->bytes;
}

size_t qn_outbox_bytes_fixed(const struct qn_outbox_opts *opts)
{
    const struct header h = header_of(opts);
    return lanes_offset() +
           (size_t)__builtin_popcountll(seats_of(opts)) * lanes_bytes(&h);
}

void *qn_outbox_lane(const struct qn_outbox *o, qn_node_t peer,
                     enum qn_lane lane)
{
    QN_ASSERT(peer < o->header.nodes && peer != o->header.node);
    QN_ASSERT((uint32_t)lane < lanes_of(&o->header));
    return o->header.lane_bytes == 0
               ? NULL
               : o->mapping->base + lane_offset(&o->header, peer) +
                     lane * lane_stride(o->header.lane_bytes);
}

struct qn_doorbell_line *qn_outbox_doorbell(const struct qn_outbox *o)
{
    return &front_of(o)->doorbell;
}

struct qn_outbox_state *qn_outbox_state(const struct qn_outbox *o)
{
    return &front_of(o)->state;
}

void *qn_outbox_flight(const struct qn_outbox *o)
{
    return o->mapping->base + page_bytes();
}

void *qn_outbox_region(const struct qn_outbox *o, enum qn_region region)
{
    return o->header.region_bytes[region] == 0
               ? NULL
               : o->mapping->base + region_offset(&o->header, region);
}

/* Bytes [at, at + bytes) of the outbox, whole pages. */
static int allocate(struct qn_outbox *o, size_t at, size_t bytes)
{
    if (o->fd >= 0) {
        return qn_memfd_fill(o->fd, at, bytes);
    }
    return mprotect(o->mapping->base + at, bytes, PROT_READ | PROT_WRITE) == 0
               ? QN_OK
               : QN_ENOMEM;
}

int qn_outbox_seat(struct qn_outbox *o, qn_node_t peer)
{
    const struct header *h = &o->header;
    const uint64_t seat = UINT64_C(1) << peer;
    QN_ASSERT(peer < h->nodes && peer != h->node);
    if ((o->mapping->seats & seat) != 0) {
        return QN_OK;
    }
    int err = h->lane_bytes == 0
                  ? QN_OK
                  : allocate(o, lane_offset(h, peer), lanes_bytes(h));
    if (err == QN_OK) {
        o->mapping->seats |= seat;
        /* release -> acquire in qn_outbox_seated: the memory is there. */
        qn_store(&qn_outbox_state(o)->seats, o->mapping->seats, QN_RELEASE);
    }
    return err;
}

bool qn_outbox_seated(const struct qn_outbox *o, qn_node_t peer)
{
    QN_ASSERT(peer < o->header.nodes && peer != o->header.node);
    /* acquire <- release in qn_outbox_seat. */
    return (qn_load(&qn_outbox_state(o)->seats, QN_ACQUIRE) >> peer & 1) != 0;
}

int qn_outbox_grow(struct qn_outbox *o, enum qn_region region, size_t upto)
{
    size_t *grown = &o->mapping->grown[region];
    if (upto <= *grown) {
        return QN_OK;
    }
    if (upto > o->header.region_bytes[region]) {
        return QN_ENOMEM;
    }
    size_t to = qn_align_up(upto, page_bytes());
    int err =
        allocate(o, region_offset(&o->header, region) + *grown, to - *grown);
    if (err == QN_OK) {
        *grown = to;
    }
    if (err == QN_OK && region == QN_REGION_RING) {
        /* release -> acquire of a reader that asks how much there is. */
        qn_store(&qn_outbox_state(o)->ring, to, QN_RELEASE);
    }
    return err;
}
