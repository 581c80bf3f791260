/*
 * Fuzzing control messages: the first byte describes the receiver (direction,
 * in a group of how many, with a descriptor or without), the rest is the
 * message. What is accepted must encode to the same bytes; what is refused must
 * say so in one line.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "kvs/control/control_protocol.h"
#include "tests/fuzz/fuzz.h"

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const uint32_t nodes[] = {1, 3, 63, 64};
    uint8_t again[QN_CONTROL_BYTES];
    char text[QN_CONTROL_FAULT_MAX];
    struct qn_control_msg m;
    if (n == 0) {
        return 0;
    }
    const struct qn_control_link link = {
        .direction = (enum qn_control_direction)(data[0] % QN_CTL_DIRECTIONS),
        .nodes = nodes[data[0] / 4 % 4]};
    bool with_fd = (data[0] & 16) != 0;
    int err = qn_control_decode(data + 1, n - 1, with_fd, &link, &m);
    if (err == QN_OK) {
        must(n == 1 + QN_CONTROL_BYTES);
        qn_control_encode(&m, again);
        must(memcmp(again, data + 1, sizeof again) == 0);
    } else {
        must(err == QN_ECORRUPT && m.kind == QN_CTL_INVALID);
        must(strchr(qn_control_fault_text(&m, text), '\n') == NULL);
    }
    return 0;
}
