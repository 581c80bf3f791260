/*
 * Values as text: a number within limits, a word that stands for a number
 * (`none`, `local`, `yes`), or a text.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "kvs/config/config_internal.h"

static bool read_word(const struct qn_config_row *r, const char *text,
                      uint64_t *v)
{
    for (const struct qn_config_word *w = r->word; w != NULL && w->name != NULL;
         w++) {
        if (strcasecmp(w->name, text) == 0) {
            *v = w->value;
            return true;
        }
    }
    return false;
}

/* Bytes of a unit; 0: unknown. */
static uint64_t unit_bytes(const char *unit)
{
    static const struct qn_config_word units[] = {
        {"", 1},        {"b", 1},        {"k", 1000},       {"kb", 1 << 10},
        {"m", 1000000}, {"mb", 1 << 20}, {"g", 1000000000}, {"gb", 1 << 30}};
    for (size_t i = 0; i < QN_ARRAY_COUNT(units); i++) {
        if (strcasecmp(units[i].name, unit) == 0) {
            return units[i].value;
        }
    }
    return 0;
}

/* Digits, and for a size a unit. */
static bool read_number(const struct qn_config_row *r, const char *text,
                        uint64_t *v)
{
    uint64_t n = 0;
    size_t i = 0;
    for (; text[i] >= '0' && text[i] <= '9'; i++) {
        if (n > (UINT64_MAX - 9) / 10) {
            return false;
        }
        n = n * 10 + (uint64_t)(text[i] - '0');
    }
    bool sized = r->storage == QN_CONFIG_U64 || r->storage == QN_CONFIG_OUTPUT;
    uint64_t unit = sized ? unit_bytes(text + i) : text[i] == '\0';
    if (i == 0 || unit == 0 || n > UINT64_MAX / unit) {
        return false;
    }
    *v = n * unit;
    return true;
}

/* A limit of output: a size, or Redis' list for a class of clients. All are of
 * the class `normal`, and there is no soft limit. */
static bool read_output(const struct qn_config_row *r, const char *text,
                        uint64_t *v)
{
    char hard[32], soft[32], seconds[32], more;
    uint64_t none[2];
    return read_number(r, text, v) ||
           (sscanf(text, "normal %31s %31s %31s %c", hard, soft, seconds,
                   &more) == 3 &&
            read_number(r, soft, &none[0]) && none[0] == 0 &&
            read_number(r, seconds, &none[1]) && none[1] == 0 &&
            read_number(r, hard, v));
}

static void why_words(const struct qn_config_row *r, char *why, size_t cap)
{
    size_t n = (size_t)snprintf(why, cap, "argument must be one of:");
    for (const struct qn_config_word *w = r->word; w->name != NULL && n < cap;
         w++) {
        n += (size_t)snprintf(why + n, cap - n, " %s", w->name);
    }
    if (r->max != 0 && n < cap) {
        snprintf(why + n, cap - n, ", or between %llu and %llu",
                 (unsigned long long)r->min, (unsigned long long)r->max);
    }
}

void qn_config_why(const struct qn_config_row *r, bool parsed, char *why,
                   size_t cap)
{
    if (r->word != NULL) {
        why_words(r, why, cap);
    } else if (r->storage == QN_CONFIG_OUTPUT) {
        snprintf(why, cap,
                 "argument must be a size, or 'normal SIZE 0 0': all clients "
                 "are normal, and there is no soft limit");
    } else if (parsed) {
        snprintf(why, cap, "argument must be between %llu and %llu inclusive",
                 (unsigned long long)r->min, (unsigned long long)r->max);
    } else {
        snprintf(why, cap, "%s",
                 r->storage == QN_CONFIG_U64
                     ? "argument must be a memory value"
                     : "argument couldn't be parsed into an "
                       "integer");
    }
}

int qn_config_read(const struct qn_config_row *r, struct qn_config *c,
                   const char *text, char *why, size_t cap)
{
    char *at = (char *)c + r->at;
    if (r->storage == QN_CONFIG_TEXT) {
        if (strlen(text) >= QN_CONFIG_TEXT_MAX) {
            snprintf(why, cap, "argument must be shorter than %u bytes",
                     QN_CONFIG_TEXT_MAX);
            return QN_EINVAL;
        }
        memcpy(at, text, strlen(text) + 1);
        return QN_OK;
    }
    uint64_t v = 0;
    if (!read_word(r, text, &v)) {
        bool parsed = r->storage == QN_CONFIG_OUTPUT ? read_output(r, text, &v)
                                                     : read_number(r, text, &v);
        if (!parsed || v < r->min || v > r->max) {
            qn_config_why(r, parsed, why, cap);
            return QN_EINVAL;
        }
    }
    if (r->storage == QN_CONFIG_BOOL) {
        *(bool *)at = v != 0;
    } else if (r->storage == QN_CONFIG_U32) {
        *(uint32_t *)(void *)at = (uint32_t)v;
    } else {
        *(uint64_t *)(void *)at = v;
    }
    return QN_OK;
}

const char *qn_config_write(const struct qn_config_row *r,
                            const struct qn_config *c, char *room)
{
    const char *at = (const char *)c + r->at;
    uint64_t v;
    switch (r->storage) {
    case QN_CONFIG_FIXED:
        return r->initial;
    case QN_CONFIG_TEXT:
        return at;
    case QN_CONFIG_BOOL:
        v = *(const bool *)at;
        break;
    case QN_CONFIG_U32:
        v = *(const uint32_t *)(const void *)at;
        break;
    default:
        v = *(const uint64_t *)(const void *)at;
    }
    for (const struct qn_config_word *w = r->word; w != NULL && w->name != NULL;
         w++) {
        if (w->value == v) {
            return w->name;
        }
    }
    snprintf(room, QN_CONFIG_NUMBER_MAX,
             r->storage == QN_CONFIG_OUTPUT ? "normal %llu 0 0" : "%llu",
             (unsigned long long)v);
    return room;
}
