/*
 * The table holds for each source the last tag that was admitted (at the root)
 * or delivered (everywhere). An earlier incarnation never comes behind a later
 * one: its requests are old. A later one begins at 1.
 */
#include "core/coll/sequencer.h"

#include "core/base/assert.h"
#include "core/base/err.h"

void qn_sequencer_init(struct qn_sequencer *s, struct qn_tag *last,
                       uint32_t members)
{
    QN_ASSERT(members <= QN_MEMBERS_MAX);
    *s = (struct qn_sequencer){.members = members, .last = last};
    for (uint32_t i = 0; i < members; i++) {
        last[i] = (struct qn_tag){.source = i};
    }
}

enum qn_tag_verdict qn_sequencer_judge(const struct qn_sequencer *s,
                                       const struct qn_tag *t)
{
    if (t->source >= s->members ||
        t->incarnation < s->last[t->source].incarnation) {
        return QN_TAG_OLD;
    }
    const struct qn_tag *last = &s->last[t->source];
    const uint64_t come =
        t->incarnation == last->incarnation ? last->number : 0;
    if (t->number <= come) {
        return QN_TAG_OLD;
    }
    return t->number == come + 1 ? QN_TAG_NEXT : QN_TAG_EARLY;
}

enum qn_tag_verdict qn_sequencer_admit(struct qn_sequencer *s,
                                       const struct qn_tag *t)
{
    const enum qn_tag_verdict v = qn_sequencer_judge(s, t);
    if (v == QN_TAG_NEXT) {
        s->last[t->source] = *t;
    }
    return v;
}

void qn_sequencer_observe(struct qn_sequencer *s, const struct qn_tag *t)
{
    (void)qn_sequencer_admit(s, t); /* at the root it was admitted before */
}

void qn_source_init(struct qn_source *s, qn_node_t self, uint32_t incarnation,
                    uint32_t credit)
{
    QN_ASSERT(credit >= 1);
    QN_ASSERT(incarnation >= 1);
    *s = (struct qn_source){
        .last = {.source = self, .incarnation = incarnation}, .credit = credit};
}

int qn_source_submit(struct qn_source *s, struct qn_tag *tag)
{
    if (qn_source_open(s) >= s->credit) {
        return QN_EAGAIN;
    }
    s->last.number++;
    *tag = s->last;
    return QN_OK;
}

int qn_source_end(struct qn_source *s, uint64_t number)
{
    if (number > s->last.number) {
        return QN_ECORRUPT;
    }
    s->ended = number > s->ended ? number : s->ended;
    return QN_OK;
}
