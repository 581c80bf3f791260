#ifndef QN_BASE_ERR_H
#define QN_BASE_ERR_H

/**
 * Error values.
 *
 * Functions return `int`: 0 (QN_OK), a non-negative count where said, or one
 * of the negative values below. One list makes enumerator, value and text, so
 * that they cannot drift apart. Values that the operating system knows are its
 * own errno, negated; ours begin at -10001.
 *
 * Any thread; nothing here blocks or allocates.
 */

#include <errno.h>

#define QN_ERR_MAP(X)                                                          \
    X(EINVAL, -EINVAL, "invalid argument")                                     \
    X(EAGAIN, -EAGAIN, "would block, try again")                               \
    X(ENOMEM, -ENOMEM, "not enough memory")                                    \
    X(ENOENT, -ENOENT, "no such thing")                                        \
    X(EEXIST, -EEXIST, "exists already")                                       \
    X(EBUSY, -EBUSY, "busy")                                                   \
    X(EIO, -EIO, "input/output error")                                         \
    X(ENOSYS, -ENOSYS, "not supported on this system")                         \
    X(EPERM, -EPERM, "not permitted")                                          \
    X(EMFILE, -EMFILE, "too many open files")                                  \
    X(EADDRINUSE, -EADDRINUSE, "address in use")                               \
    X(ETIMEDOUT, -ETIMEDOUT, "timed out")                                      \
    X(EMSGSIZE, -EMSGSIZE, "message too long")                                 \
    X(ERANGE, -ERANGE, "out of range")                                         \
    X(EDQUOT, -EDQUOT, "more than is allowed")                                 \
    X(EDEADLK, -EDEADLK, "would wait for itself")                              \
    X(ENOTLEADER, -10001, "this node is not the leader")                       \
    X(EPEERDEAD, -10002, "the peer has ended")                                 \
    X(ECORRUPT, -10003, "damaged or malformed data")                           \
    X(ESTALE, -10004, "of an earlier incarnation")                             \
    X(EABORTED, -10005, "the message was aborted by its sender")               \
    X(ENOQUORUM, -10006, "no quorum of replicas")                              \
    X(EUNKNOWN, -10007, "the outcome is unknown")                              \
    X(EREMOVED, -10008, "this node was removed from the group")                \
    X(EGONE, -10009, "no longer kept")                                         \
    X(EAPPLY, -10010, "a decided command cannot be applied")

enum qn_err {
    QN_OK = 0,
#define X(name, value, text) QN_##name = (value),
    QN_ERR_MAP(X)
#undef X
};

/**
 * One line of text for an error value.
 *
 * @param err  A value of enum qn_err, or any negated errno.
 * @return A constant string, never NULL; "unknown error" for what is in no
 *         list.
 */
const char *qn_strerror(int err);

#endif
