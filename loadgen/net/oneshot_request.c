#include "loadgen/net/oneshot_request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/net/address.h"
#include "loadgen/net/reply.h"

/*
 * A blocking connection for one request, with a time limit on each step. Bytes
 * are scanned as they arrive, so the end of a reply of any size is found.
 */

enum { PATIENCE_S = 5, CHUNK = 65536 };

static int say(char *why, size_t cap, const char *what)
{
    snprintf(why, cap, "%s", what);
    return -1;
}

static int connect_to(const char *text, int patience_s, char *why, size_t cap)
{
    struct qn_address a;
    int err = qn_address_resolve(&a, text);
    if (err != QN_OK) {
        return say(why, cap, qn_address_refusal(err));
    }
    int fd = socket(a.addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval patience = {.tv_sec = patience_s};
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    }
    if (fd < 0 || connect(fd, (const struct sockaddr *)&a.addr, a.len) != 0) {
        qn_address_why(patience_s, why, cap);
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

/* Read the whole reply; fills *head with its type and number. Returns 0 or
 * -1. */
static int reply_read(int fd, int patience_s, struct qn_buf *in,
                      struct qn_reply *head, char *why, size_t cap)
{
    struct qn_reply_scanner scanner = {0};
    int got = 0;
    while (got == 0) {
        uint8_t *at = qn_buf_reserve(in, CHUNK);
        ssize_t n = at != NULL ? read(fd, at, CHUNK) : -1;
        if (n <= 0) {
            qn_address_why(patience_s, why, cap);
            return n == 0 ? say(why, cap, "the server closed the connection")
                          : -1;
        }
        in->len += (size_t)n;
        size_t used;
        got = qn_reply_scan(&scanner, at, (size_t)n, &used, head);
    }
    return got == 1 ? 0 : say(why, cap, "the reply is not RESP");
}

/* `in` holds a whole reply. */
static void body_append(const struct qn_buf *in, const struct qn_reply *head,
                        struct qn_buf *out)
{
    const uint8_t *line_end = memchr(in->data, '\n', in->len);
    if (head->type == '$') {
        qn_buf_append(out, line_end + 1, (size_t)head->number);
    } else {
        qn_buf_append(out, head->head, head->head_len);
    }
}

int qn_oneshot_request_within(const char *address, const char *request,
                              int patience_s, struct qn_buf *out, char *why,
                              size_t cap)
{
    struct qn_buf in = {0};
    struct qn_reply head = {0};
    int type = 0;
    int fd = connect_to(address, patience_s, why, cap);
    if (fd < 0) {
        return 0;
    }
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0) {
        qn_address_why(patience_s, why, cap);
    } else if (reply_read(fd, patience_s, &in, &head, why, cap) == 0) {
        body_append(&in, &head, out);
        type = head.type;
    }
    qn_buf_free(&in);
    close(fd);
    return type;
}

int qn_oneshot_request(const char *address, const char *request,
                       struct qn_buf *out, char *why, size_t cap)
{
    return qn_oneshot_request_within(address, request, PATIENCE_S, out, why,
                                     cap);
}
