#include "loadgen/net/address.h"

#include "core/base/err.h"
#include "loadgen/net/reply.h"

#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { HOST_MAX = 255, PORT_MAX = 65535, PATIENCE_S = 2 };

static bool is_unix(const char *text)
{
    return strncmp(text, "unix:", 5) == 0;
}

static int check_unix(const char *path)
{
    size_t len = strlen(path);
    return len > 0 && len < sizeof((struct sockaddr_un){0}).sun_path
               ? QN_OK
               : QN_EINVAL;
}

/* Checked here, because getaddrinfo takes a port modulo 65536. */
static int check_port(const char *port)
{
    size_t digits = strspn(port, "0123456789");
    if (digits == 0 || port[digits] != '\0') {
        return QN_EINVAL;
    }
    unsigned long n = strtoul(port, NULL, 10); /* ULONG_MAX on overflow */
    return n >= 1 && n <= PORT_MAX ? QN_OK : QN_ERANGE;
}

/* Split HOST:PORT or [V6]:PORT: fills host [HOST_MAX + 1]; *port points into
 * the text. */
static int split(const char *text, char *host, const char **port)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL) {
        return QN_EINVAL;
    }
    size_t len = (size_t)(colon - text);
    if (len >= 2 && text[0] == '[' && colon[-1] == ']') {
        text++;
        len -= 2;
    }
    if (len == 0 || len > HOST_MAX) {
        return QN_EINVAL;
    }
    memcpy(host, text, len);
    host[len] = '\0';
    *port = colon + 1;
    return check_port(*port);
}

int qn_address_check(const char *text)
{
    char host[HOST_MAX + 1];
    const char *port;
    return is_unix(text) ? check_unix(text + 5) : split(text, host, &port);
}

static void fill_unix(struct qn_address *a, const char *path)
{
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)&a->addr;
    un->sun_family = AF_UNIX;
    snprintf(un->sun_path, sizeof un->sun_path, "%s", path);
    a->len = sizeof *un;
}

int qn_address_resolve(struct qn_address *a, const char *text)
{
    *a = (struct qn_address){.text = text};
    int err = qn_address_check(text);
    if (err != QN_OK) {
        return err;
    }
    if (is_unix(text)) {
        fill_unix(a, text + 5);
        return QN_OK;
    }
    char host[HOST_MAX + 1];
    const char *port = NULL;
    (void)split(text, host, &port);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found;
    if (getaddrinfo(host, port, &hints, &found) != 0) {
        return QN_ENOENT;
    }
    memcpy(&a->addr, found->ai_addr, found->ai_addrlen);
    a->len = found->ai_addrlen;
    freeaddrinfo(found);
    return QN_OK;
}

const char *qn_address_refusal(int err)
{
    return err == QN_ENOENT   ? "unknown host"
           : err == QN_ERANGE ? "the port must be 1 to 65535"
                              : "expected HOST:PORT, [V6]:PORT or unix:PATH";
}

void qn_address_why(int seconds, char *why, size_t size)
{
    /* errno of the kernel when SO_RCVTIMEO or SO_SNDTIMEO expires. */
    if (errno == EAGAIN || errno == EINPROGRESS) {
        snprintf(why, size, "no answer within %d s", seconds);
    } else {
        snprintf(why, size, "%s", strerror(errno));
    }
}

/* Read `want` replies; the first error ends it. */
static int await(int fd, int want, char *error, size_t error_size)
{
    struct qn_reply_scanner scanner = {0};
    while (want > 0) {
        uint8_t buf[4096];
        ssize_t n = read(fd, buf, sizeof buf);
        if (n <= 0) {
            qn_address_why(PATIENCE_S, error, error_size);
            if (n == 0) {
                snprintf(error, error_size, "the server closed the connection");
            }
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
                snprintf(error, error_size, "the reply is not RESP");
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
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    int err = QN_EIO;
    size_t len = strlen(requests);
    if (connect(fd, (const struct sockaddr *)&a->addr, a->len) != 0 ||
        send(fd, requests, len, MSG_NOSIGNAL) != (ssize_t)len) {
        qn_address_why(PATIENCE_S, error, error_size);
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
