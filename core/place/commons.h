#ifndef QN_PLACE_COMMONS_H
#define QN_PLACE_COMMONS_H

/**
 * The commons: the one area that outlives every node, and that several write.
 *
 *   +--------------------+ 0
 *   | read index         |   written by all (PROTOCOL.md 8.2)
 *   +--------------------+ one page
 *   | header             |   magic, version, nodes, page; never changes
 *   | incarnations       |   given out so far
 *   | accept register    |   {epoch, hi}: what is decided (PROTOCOL.md 5)
 *   | owners[64], spare  |   whose ring holds an epoch, by epoch % 64
 *   +--------------------+ two pages; then for each node:
 *   | liveness           |   {incarnation, robust futex}, core/place/liveness.h
 *   | record             |   what the voter must not forget (PROTOCOL.md 4)
 *   +--------------------+ behind all nodes
 *   | device             |   of the transport, if it has one (core/device.h)
 *   +--------------------+
 *
 * Every node maps all of it, but writable is only what a node needs now: the
 * first page and the device always; the second while it is claimed, by a node
 * that leads or is about to; its own pages, by the process that runs as that
 * node. A store elsewhere faults. So a misbehaving node can spoil the read
 * index and its own pages, not the agreement, unless it leads. It is a guard
 * against accidents: a process that calls mprotect itself is not stopped.
 * Whatever is read from the first page, from the device or from another node's
 * pages must be checked.
 *
 * Between processes it is a memfd, allocated in full and sealed against a
 * change of size; threads use private pages, all writable. Fresh memory is 0.
 *
 * | concurrently | own, claim, next_life, owner_set, destroy | the rest |
 * |---|---|---|
 * | own, claim, next_life, owner_set, destroy | same thread, per handle | free
 * | | the rest | free (destroy: same thread) | free |
 *
 * Handles of the private form may be used by many threads: there own, claim,
 * next_life and owner_set are free, too. Nothing blocks.
 */

#include <stddef.h>

#include "core/base/atomic.h"
#include "core/node.h"

#define QN_COMMONS_VERSION 2u

/** Owners kept: those of the newest epochs. */
#define QN_COMMONS_OWNERS 64u

/** Size of a voter's record: room for two copies of its vote and of the
 *  QN_UL_KEPT entries of its utility log. */
#define QN_COMMONS_RECORD_BYTES ((size_t)28 << 10)

/** Incarnations are below it, so that an owner fits into one word. */
#define QN_COMMONS_LIVES_MAX ((uint64_t)1 << 56)

/** Bytes of a device, at most. */
#define QN_COMMONS_DEVICE_MAX ((size_t)1 << 30)

struct qn_commons; /* opaque: a mapping */

/**
 * Make the commons of a new group.
 *
 * @param out     Filled; destroy it.
 * @param nodes   1 .. QN_NODES_MAX.
 * @param device_bytes  0: no device; at most QN_COMMONS_DEVICE_MAX.
 * @param shared  true: a memfd that other processes map; false: private pages.
 * @param fd      Filled: the descriptor, the caller's to close; -1 if private.
 * @return QN_OK; QN_EINVAL; QN_ENOMEM; QN_EMFILE; QN_ENOSYS (no memfd). On
 *         failure nothing is filled.
 */
int qn_commons_create(struct qn_commons **out, uint32_t nodes,
                      size_t device_bytes, bool shared, int *fd);

/** Map an existing one; `fd` borrowed. @return QN_OK; QN_EPERM if the seals
 *  are missing; QN_ECORRUPT if size, magic, version, nodes or device
 *  differ; QN_ENOMEM. */
int qn_commons_map(struct qn_commons **out, int fd, uint32_t nodes,
                   size_t device_bytes);

/** A child of fork(2) does not have the mapping: from here on, and but for
 *  memory for it. */
void qn_commons_keep_from_children(const struct qn_commons *c);

/** Unmap. An incarnation that began on it is not ended by that: the kernel
 * marks it only if the pages are still mapped when the thread ends, so a node
 * keeps its commons to its end. NULL is fine. */
void qn_commons_destroy(struct qn_commons *c);

uint32_t qn_commons_nodes(const struct qn_commons *c);

/** What a group of `nodes` takes, all of it allocated at creation. Pure. */
size_t qn_commons_bytes(uint32_t nodes, size_t device_bytes);

/** The memory of the device, page aligned; NULL: there is none. Writable by
 *  all. */
void *qn_commons_device(const struct qn_commons *c);

/** The shared read index, own line; only grows, but for a forced recovery
 *  (PROTOCOL.md 9). Writable by all. */
qn_a64 *qn_commons_read_index(const struct qn_commons *c);

/** The accept register, own line. Loads any time; a CAS, even one that fails,
 *  only while page is claimed. */
struct qn_pair *qn_commons_word(const struct qn_commons *c);

/** Make the page of the accept register writable for this process, or read-only
 *  again. Not counted: the last call says. One mprotect if it changes, about a
 *  microsecond. Private form: nothing to do. */
void qn_commons_claim(struct qn_commons *c, bool writable);

bool qn_commons_claimed(const struct qn_commons *c);

/**
 * Record the owner of `epoch`: the node whose ring will hold what is decided in
 * it. Claimed. To be called before the CAS that moves the word to `epoch`, so
 * that a node that finds the epoch in the word finds its owner. An epoch has
 * one owner, the first to call this; a later epoch in the same place of the
 * table stays. The owner of the epoch that the word names stays in any case: an
 * epoch that would take its place gets the spare one.
 *
 * @param epoch  Below UINT64_MAX.
 * @param inc    Below QN_COMMONS_LIVES_MAX.
 *
 * @return false: that incarnation does not own it: another one does, or it is
 * too old.
 *
 * Lock-free; any number of processes.
 */
bool qn_commons_owner_set(struct qn_commons *c, uint64_t epoch, qn_node_t node,
                          uint64_t inc);

/** The owner of `epoch`. @return false: the table does not say (any more), or
 *  its entry is damaged; nothing is filled. */
bool qn_commons_owner(const struct qn_commons *c, uint64_t epoch,
                      qn_node_t *node, uint64_t *inc);

/**
 * Become `self`: its pages are writable from now on. Once per handle, by a
 * process that knows that every earlier one of that node has certainly ended.
 *
 * @return QN_OK, also if it is `self` already; QN_EINVAL: no such node;
 *         QN_EBUSY: this handle is another node (private form: may be all);
 *         QN_ENOMEM.
 */
int qn_commons_own(struct qn_commons *c, qn_node_t self);

/** The record of `node`, QN_COMMONS_RECORD_BYTES, aligned to a line. Writable
 *  only for its owner; it survives processes, at whatever byte they end. */
void *qn_commons_record(const struct qn_commons *c, qn_node_t node);

/** An incarnation that was never given out: from 1 on, over all nodes. For a
 *  supervisor, which takes the larger of it and of what it knows (a wild
 *  leader may have spoiled the counter). Claims the page for a moment. */
uint64_t qn_commons_next_incarnation(struct qn_commons *c);

#endif
