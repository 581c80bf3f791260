/*
 * The table is the only place that lists what a build speaks. All ranges are
 * single versions so far: no build has been released that speaks others.
 */
#include "kvs/control/formats.h"

#include <assert.h>
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "kvs/control/adopt.h"
#include "kvs/control/control_protocol.h"
#include "kvs/replica/replica.h"
#include "kvs/snapshot/snapshot.h"
#include "paxos/member/member_formats.h"

static_assert(QN_FORMATS <= QN_CTL_FORMATS_MAX, "each has a number in FORMAT");

static const struct qn_format_range ranges[QN_FORMATS] = {
    [QN_FORMAT_HANDOVER] = {"hand-over", QN_ADOPT_VERSION, QN_ADOPT_VERSION},
    [QN_FORMAT_OUTBOX] = {"outbox", QN_MEMBER_FORMAT_OUTBOX,
                          QN_MEMBER_FORMAT_OUTBOX},
    [QN_FORMAT_COMMONS] = {"commons", QN_MEMBER_FORMAT_COMMONS,
                           QN_MEMBER_FORMAT_COMMONS},
    [QN_FORMAT_MESSAGES] = {"messages", QN_MEMBER_FORMAT_MESSAGES,
                            QN_MEMBER_FORMAT_MESSAGES},
    [QN_FORMAT_COMMANDS] = {"commands", QN_ENTRY_VERSION, QN_ENTRY_VERSION},
    [QN_FORMAT_SNAPSHOT] = {"snapshot", QN_SNAPSHOT_VERSION,
                            QN_SNAPSHOT_VERSION},
    [QN_FORMAT_TRANSFER] = {"transfer", QN_MEMBER_FORMAT_TRANSFER,
                            QN_MEMBER_FORMAT_TRANSFER},
};

const struct qn_format_range *qn_format_at(uint32_t format)
{
    return format < QN_FORMATS ? &ranges[format] : NULL;
}

static int misfit(const struct qn_format_range *own, uint32_t spoken, char *why,
                  size_t cap)
{
    char can[48];
    QN_ASSERT(own->oldest <= own->newest);
    if (own->oldest == own->newest) {
        snprintf(can, sizeof can, "%u", own->newest);
    } else {
        snprintf(can, sizeof can, "%u to %u", own->oldest, own->newest);
    }
    snprintf(
        why, cap,
        "the running replicas speak version %u of the %s format, this quoind "
        "speaks %s; use a quoind that speaks %u, or end the replicas first",
        spoken, own->name, can, spoken);
    return QN_EINVAL;
}

int qn_formats_fit_ranges(const struct qn_format_range *own, uint32_t own_count,
                          const uint32_t *spoken, uint32_t count, char *why,
                          size_t cap)
{
    for (uint32_t i = 0; i < QN_MAX(own_count, count); i++) {
        static const struct qn_format_range unknown = {"unknown", 0, 0};
        const struct qn_format_range *r = i < own_count ? &own[i] : &unknown;
        uint32_t version = i < count ? spoken[i] : 0;
        if (version < r->oldest || version > r->newest) {
            return misfit(r, version, why, cap);
        }
    }
    return QN_OK;
}

int qn_formats_fit(const uint32_t *spoken, uint32_t count, char *why,
                   size_t cap)
{
    return qn_formats_fit_ranges(ranges, QN_FORMATS, spoken, count, why, cap);
}
