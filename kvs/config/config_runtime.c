/*
 * The options that change by the log, as bytes: in the first entry of a group's
 * log and at the beginning of a snapshot, so that all replicas that apply the
 * same log use the same limits. Each option goes by name, so their order has no
 * meaning.
 */
#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "kvs/config/config.h"

static uint8_t *put_string(uint8_t *to, const char *z)
{
    size_t n = strlen(z) + 1;
    memcpy(to, z, n);
    return to + n;
}

size_t qn_config_runtime_write(const struct qn_config *c, uint8_t *to)
{
    const uint8_t *from = to;
    struct qn_config_option o;
    for (uint32_t i = 0; qn_config_at(i, &o); i++) {
        char room[QN_CONFIG_NUMBER_MAX];
        if (o.when == QN_CONFIG_BY_LOG) {
            to = put_string(to, o.name);
            to = put_string(to, qn_config_value(c, i, room));
        }
    }
    *to++ = 0;
    QN_ASSERT(to - from <= QN_CONFIG_RUNTIME_MAX);
    return (size_t)(to - from);
}

/* A string that ends with NUL; NULL: none. */
static const char *take_string(struct qn_slice *s)
{
    const char *z = (const char *)s->data;
    const char *end = s->len != 0 ? memchr(z, '\0', s->len) : NULL;
    if (end == NULL) {
        return NULL;
    }
    size_t n = (size_t)(end - z) + 1;
    s->data += n;
    s->len -= n;
    return z;
}

static bool is_logged(const char *name)
{
    struct qn_config_option o;
    for (uint32_t i = 0; qn_config_at(i, &o); i++) {
        if (strcmp(o.name, name) == 0) {
            return o.when == QN_CONFIG_BY_LOG;
        }
    }
    return false;
}

int qn_config_runtime_read(struct qn_config *c, struct qn_slice *from)
{
    char why[QN_CONFIG_WHY_MAX];
    for (;;) {
        const char *name = take_string(from);
        if (name != NULL && *name == '\0') {
            return QN_OK;
        }
        const char *value = name != NULL ? take_string(from) : NULL;
        if (value == NULL || !is_logged(name) ||
            qn_config_start(c, name, value, why, sizeof why) != QN_OK) {
            return QN_ECORRUPT;
        }
    }
}
