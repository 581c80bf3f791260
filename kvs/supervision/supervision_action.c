/*
 * Appending to the actions of a step. FINISH is the last one: what a part wants
 * to do after it is a defect of that part.
 */
#include "kvs/supervision/supervision_action.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/base/assert.h"

void qn_supervision_actions_clear(struct qn_supervision_actions *out)
{
    out->count = 0;
    out->texts = 0;
    out->deadline = QN_TIME_NEVER;
}

static bool is_finished(const struct qn_supervision_actions *out)
{
    return out->count > 0 && out->action[out->count - 1].kind == QN_DO_FINISH;
}

void qn_supervision_do(struct qn_supervision_actions *out,
                       const struct qn_supervision_action *a)
{
    QN_ASSERT(out->count < QN_SUPERVISION_ACTIONS_MAX);
    QN_ASSERT(!is_finished(out));
    QN_ASSERT(a->node < QN_NODES_MAX);
    out->action[out->count++] = *a;
}

static void append_text(struct qn_supervision_actions *out,
                        enum qn_supervision_do kind, int level, const char *fmt,
                        va_list args)
{
    QN_ASSERT(out->texts < QN_SUPERVISION_TEXTS_MAX);
    vsnprintf(out->text[out->texts], QN_SUPERVISION_TEXT_MAX, fmt, args);
    const struct qn_supervision_action a = {
        .kind = kind, .number = level, .text = out->texts++};
    qn_supervision_do(out, &a);
}

void qn_supervision_log(struct qn_supervision_actions *out,
                        enum qn_log_level level, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    append_text(out, QN_DO_LOG, (int)level, fmt, args);
    va_end(args);
}

void qn_supervision_progress(struct qn_supervision_actions *out,
                             const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    append_text(out, QN_DO_PROGRESS, 0, fmt, args);
    va_end(args);
}
