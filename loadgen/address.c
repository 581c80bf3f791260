#include "loadgen/address.h"

#include "core/base/err.h"
#include "loadgen/reply.h"

#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static int resolve_unix(struct qn_address *a, const char *path)
{
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)&a->addr;
    if (*path == '\0' || strlen(path) >= sizeof un->sun_path) {
        return QN_EINVAL;
    }
    un->sun_family = AF_UNIX;
    snprintf(un->sun_path, sizeof un->sun_path, "%s", path);
    a->len = sizeof *un;
    return QN_OK;
}

int qn_address_resolve(struct qn_address *a, const char *text)
{
    *a = (struct qn_address){.text = text};
    if (strncmp(text, "unix:", 5) == 0) {
        return resolve_unix(a, text + 5);
    }
    const char *colon = strrchr(text, ':');
    if (colon == NULL || colon == text || colon[1] == '\0') {
        return QN_EINVAL;
    }
    const char *host = text;
    size_t host_len = (size_t)(colon - text);
    if (host[0] == '[' && colon[-1] == ']') {
        host++;
        host_len -= 2;
    }
    char name[256];
    if (host_len == 0 || host_len >= sizeof name ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1)) {
        return QN_EINVAL;
    }
    memcpy(name, host, host_len);
    name[host_len] = '\0';
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found;
    if (getaddrinfo(name, colon + 1, &hints, &found) != 0) {
        return QN_ENOENT;
    }
    memcpy(&a->addr, found->ai_addr, found->ai_addrlen);
    a->len = found->ai_addrlen;
    freeaddrinfo(found);
    return QN_OK;
}

/* Read replies until `want` have come; the first error ends it. */
static int await(int fd, int want, char *error, size_t error_size)
{
    struct qn_reply_scanner scanner = {0};
    while (want > 0) {
        uint8_t buf[4096];
        ssize_t n = read(fd, buf, sizeof buf);
        if (n <= 0) {
            snprintf(error, error_size, "%s",
                     n == 0 ? "it closed the connection" : strerror(errno));
            return QN_EIO;
        }
        size_t at = 0;
        while (at < (size_t)n) {
            size_t used;
            struct qn_reply r;
            int got =
                qn_reply_scan(&scanner, buf + at, (size_t)n - at, &used, &r);
            at += used;
            if (got < 0) {
                snprintf(error, error_size, "what it sends is not RESP");
                return QN_EIO;
            }
            if (got == 1 && r.type == '-') {
                snprintf(error, error_size, "%.*s", (int)r.head_len,
                         (const char *)r.head);
                return QN_EPERM;
            }
            want -= got;
        }
    }
    return QN_OK;
}

int qn_address_ask(const struct qn_address *a, const char *requests, int count,
                   char *error, size_t error_size)
{
    int fd = socket(a->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        snprintf(error, error_size, "%s", strerror(errno));
        return QN_EIO;
    }
    const struct timeval patience = {.tv_sec = 2};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    int err = QN_EIO;
    size_t len = strlen(requests);
    if (connect(fd, (const struct sockaddr *)&a->addr, a->len) != 0 ||
        send(fd, requests, len, MSG_NOSIGNAL) != (ssize_t)len) {
        snprintf(error, error_size, "%s", strerror(errno));
    } else {
        err = await(fd, count, error, error_size);
    }
    close(fd);
    return err;
}

int qn_address_probe(const struct qn_address *a, bool resp3, char *error,
                     size_t error_size)
{
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    static const char both[] = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"
                               "*1\r\n$4\r\nPING\r\n";
    int err = qn_address_ask(a, resp3 ? both : ping, resp3 ? 2 : 1, error,
                             error_size);
    return err == QN_OK ? QN_OK : QN_EIO;
}
