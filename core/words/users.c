/*
 * Several users of one attachment: queues that they take, and room that is
 * promised to them.
 *
 * Both are private to the attachment, whose thread opens and closes its users.
 * Only numbers come from the device, so that those of all nodes differ.
 */
#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/words/words_internal.h"

bool qn_words_is(const struct qn_device *d)
{
    return d->type->detach == qn_words_detach;
}

uint32_t qn_words_nodes(const struct qn_device *d)
{
    return qn_words_port_seen(d)->nodes;
}

bool qn_words_sleeps(const struct qn_device *d)
{
    return qn_words_port_seen(d)->doorbell != NULL;
}

uint32_t qn_words_number(struct qn_device *d)
{
    uint32_t number;
    do {
        /* relaxed: the number is all that is said. */
        number = 1 + qn_fetch_add(&qn_words_port_of(d)->memory->numbers, 1,
                                  QN_RELAXED);
    } while (number == 0);
    return number;
}

bool qn_words_take_queue(struct qn_device *d, uint32_t *queue)
{
    struct qn_words_port *p = qn_words_port_of(d);
    for (uint32_t i = 0; i < QN_WORDS_QUEUES; i++) {
        if ((p->taken >> i & 1) == 0) {
            p->taken |= 1u << i;
            *queue = i;
            return true;
        }
    }
    return false;
}

void qn_words_give_queue(struct qn_device *d, uint32_t queue)
{
    struct qn_words_port *p = qn_words_port_of(d);
    QN_ASSERT((p->taken >> queue & 1) != 0);
    QN_ASSERT(p->promised[queue] == 0);
    p->taken &= ~(1u << queue);
}

uint32_t qn_words_unpromised(const struct qn_device *d, uint32_t queue,
                             uint32_t most)
{
    const struct qn_words_port *p = qn_words_port_seen(d);
    if (p->shape->split) {
        return most - p->promised[queue];
    }
    uint32_t left = QN_MIN(most, p->shape->room);
    for (uint32_t i = 0; i < QN_WORDS_QUEUES; i++) {
        left -= p->promised[i];
    }
    return left;
}

bool qn_words_is_unpromised(const struct qn_device *d, uint32_t queue)
{
    const struct qn_words_port *p = qn_words_port_seen(d);
    bool none = true;
    for (uint32_t i = 0; i < QN_WORDS_QUEUES; i++) {
        none &= (p->shape->split && i != queue) || p->promised[i] == 0;
    }
    return none;
}

bool qn_words_promise(struct qn_device *d, uint32_t queue, uint32_t words,
                      uint32_t most)
{
    if (words > qn_words_unpromised(d, queue, most)) {
        return false;
    }
    qn_words_port_of(d)->promised[queue] += words;
    return true;
}

void qn_words_promise_back(struct qn_device *d, uint32_t queue, uint32_t words)
{
    struct qn_words_port *p = qn_words_port_of(d);
    QN_ASSERT(p->promised[queue] >= words);
    p->promised[queue] -= words;
}
