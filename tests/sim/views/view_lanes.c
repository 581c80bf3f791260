/* Lanes: messages in order, and what a source submits. */
#include "tests/sim/views/view_net_internal.h"

struct message *view_first_of(struct lane *l)
{
    return &l->message[l->head % VIEW_NET_ROOM];
}

void view_pop(struct lane *l)
{
    free(view_first_of(l)->bytes);
    l->head++;
}

bool view_has_room(const struct net *net, const struct lane *l)
{
    return l->tail - l->head < net->room;
}

void view_put(struct net *net, struct lane *l, const struct message *m,
              const uint8_t *bytes)
{
    struct message *to = &l->message[l->tail++ % VIEW_NET_ROOM];
    *to = *m;
    to->bytes = malloc(m->len + 1);
    cr_assert_not_null(to->bytes);
    if (m->len > 0) {
        memcpy(to->bytes, bytes, m->len);
    }
    l->last = QN_MAX(l->last, view_soon(net));
    to->visible = l->last;
}

void view_empty(struct lane *l)
{
    while (l->head != l->tail) {
        view_pop(l);
    }
}

/* What a source submits: told from its tag. */
uint32_t view_length_of(const struct net *net, const struct qn_tag *t)
{
    const uint64_t x = t->number * 2654435761u + t->source * 40503u;
    return (uint32_t)(x >> 7) % (net->len_max + 1);
}

uint8_t view_byte_of(const struct qn_tag *t, uint32_t i)
{
    return (uint8_t)(t->number + t->source * 31 + t->incarnation * 7 + i);
}
