/*
 * The commons: allocated in full and sealed against a change of size, like an
 * outbox, but writable for all. Its first line is written once, before anybody
 * else knows the descriptor; every other line has rules of its own (see who
 * uses it), and its readers check what they find.
 */
#include "core/place/outbox.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/place/memfd_internal.h"

#define MAGIC 0x6d6d6f636e6f6e71u /* "qnoncomm" */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static_assert(offsetof(struct qn_commons, read_index) == 64, "own line");
static_assert(offsetof(struct qn_commons, accept_word) == 128, "own line");
static_assert(offsetof(struct qn_commons, node) == 192, "own lines");
static_assert(sizeof(((struct qn_commons *)0)->node[0]) == 64, "a line each");

static size_t commons_bytes(void)
{
    return qn_align_up(sizeof(struct qn_commons),
                       (size_t)sysconf(_SC_PAGESIZE));
}

static void write_header(struct qn_commons *c, uint32_t nodes)
{
    c->magic = MAGIC;
    c->version = QN_COMMONS_VERSION;
    c->nodes = nodes;
}

static int create_private(struct qn_commons **out, uint32_t nodes)
{
    void *at = mmap(NULL, commons_bytes(), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        return QN_ENOMEM;
    }
    write_header(at, nodes);
    *out = at;
    return QN_OK;
}

int qn_commons_create(struct qn_commons **out, uint32_t nodes, bool shared,
                      int *fd)
{
    if (nodes < 1 || nodes > QN_NODES_MAX) {
        return QN_EINVAL;
    }
    if (!shared) {
        int err = create_private(out, nodes);
        if (err == QN_OK) {
            *fd = -1;
        }
        return err;
    }
    void *at;
    int memfd = qn_memfd_open("quoin-commons", commons_bytes());
    if (memfd < 0) {
        return memfd;
    }
    int err = qn_memfd_fill(memfd, commons_bytes());
    if (err == QN_OK) {
        err = qn_memfd_seal(memfd, SEALS);
    }
    if (err == QN_OK) {
        err = qn_memfd_map(&at, memfd, commons_bytes(), PROT_READ | PROT_WRITE);
    }
    if (err != QN_OK) {
        close(memfd);
        return err;
    }
    write_header(at, nodes);
    *out = at;
    *fd = memfd;
    return QN_OK;
}

int qn_commons_map(struct qn_commons **out, int fd, uint32_t nodes)
{
    void *at;
    int err = qn_memfd_check(fd, commons_bytes(), SEALS);
    if (err != QN_OK) {
        return err;
    }
    err = qn_memfd_map(&at, fd, commons_bytes(), PROT_READ | PROT_WRITE);
    if (err != QN_OK) {
        return err;
    }
    struct {
        uint64_t magic;
        uint32_t version;
        uint32_t nodes;
    } head;
    static_assert(sizeof head == offsetof(struct qn_commons, nodes) + 4, "");
    qn_copy_in(&head, at, sizeof head); /* published by the descriptor */
    if (head.magic != MAGIC || head.version != QN_COMMONS_VERSION ||
        head.nodes != nodes) {
        munmap(at, commons_bytes());
        return QN_ECORRUPT;
    }
    *out = at;
    return QN_OK;
}

void qn_commons_destroy(struct qn_commons *c)
{
    if (c != NULL) {
        munmap(c, commons_bytes());
    }
}
