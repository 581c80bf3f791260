/* See member_requests.h. */
#include "kvs/server/machine/member_requests.h"

#include <stddef.h>

#include "core/base/assert.h"

static struct qn_member_request *find(struct qn_member_requests *r,
                                      uint64_t client)
{
    for (uint32_t i = 0; i < QN_MEMBER_REQUESTS; i++) {
        struct qn_member_request *w = &r->waiting[i];
        const bool waits = w->kind != QN_MEMBER_REQUEST_NONE;
        if (waits == (client != 0) && w->client == client) {
            return w;
        }
    }
    return NULL;
}

bool qn_member_requests_hold(struct qn_member_requests *r,
                             const struct qn_member_request *q)
{
    struct qn_member_request *vacant = find(r, 0);
    QN_ASSERT(q->client != 0);
    QN_ASSERT(q->kind != QN_MEMBER_REQUEST_NONE);
    QN_ASSERT(find(r, q->client) == NULL); /* it is blocked meanwhile */
    if (vacant == NULL) {
        return false;
    }
    *vacant = *q;
    return true;
}

bool qn_member_requests_end(struct qn_member_requests *r, uint64_t client,
                            struct qn_member_request *out)
{
    struct qn_member_request *w = client != 0 ? find(r, client) : NULL;
    if (w == NULL) {
        return false;
    }
    *out = *w;
    *w = (struct qn_member_request){.kind = QN_MEMBER_REQUEST_NONE};
    return true;
}

bool qn_member_requests_any(const struct qn_member_requests *r,
                            struct qn_member_request *out)
{
    for (uint32_t i = 0; i < QN_MEMBER_REQUESTS; i++) {
        if (r->waiting[i].kind != QN_MEMBER_REQUEST_NONE) {
            *out = r->waiting[i];
            return true;
        }
    }
    return false;
}

bool qn_member_requests_of(const struct qn_member_requests *r, qn_node_t node,
                           struct qn_member_request *out)
{
    for (uint32_t i = 0; i < QN_MEMBER_REQUESTS; i++) {
        const struct qn_member_request *w = &r->waiting[i];
        if (w->kind == QN_MEMBER_REQUEST_REMOVE && w->node == node) {
            *out = *w;
            return true;
        }
    }
    return false;
}
