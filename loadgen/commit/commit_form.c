#include "loadgen/commit/commit_form.h"

#include <stddef.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"

static const struct qn_commit_form forms[] = {
    {"bare", "the driver over queuepairs", false, qn_commit_bare_run},
    {"member", "the member layer", false, qn_commit_member_run},
    {"group", "a group in the program's own loop", true, qn_commit_group_run},
};

const struct qn_commit_form *qn_commit_form(uint32_t i)
{
    return i < QN_ARRAY_COUNT(forms) ? &forms[i] : NULL;
}

static bool agree(const struct qn_commit_turn *t)
{
    const struct qn_commit_shared *s = t->shared;
    bool same = s->said[0].applied == t->warm + t->operations;
    for (qn_node_t i = 0; i < t->nodes; i++) {
        same = same && s->said[i].wrong == 0 &&
               s->said[i].applied == s->said[0].applied &&
               s->said[i].digest == s->said[0].digest;
    }
    return same;
}

int qn_commit_turn_run(const struct qn_commit_form *f,
                       const struct qn_commit_turn *t)
{
    memset(t->shared, 0, sizeof *t->shared);
    int rc = f->run(t);
    return rc == QN_OK && !agree(t) ? QN_EIO : rc;
}
