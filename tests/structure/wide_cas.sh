#!/usr/bin/env bash
# Fails if a compare-and-swap of two words calls a library, whose lock would be
# private to one process; and if a machine without such an operation is not
# refused by name.
# Usage: wide_cas.sh compiler [compiler of another machine...]
set -u
header=core/base/atomic.h
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
cat > "$room/pair.c" <<'END'
#include "core/base/atomic.h"
bool pair(struct qn_pair *p);
bool pair(struct qn_pair *p)
{
    return qn_cas_pair(p, 1, 2, 3, 4);
}
END
status=0
for cc in "$@"; do
    command -v "$cc" > /dev/null || continue
    if ! "$cc" -std=c11 -O2 -Wall -Wextra -Werror -I. -S -o "$room/pair.s" \
        "$room/pair.c"; then
        echo "does not compile: $header with $cc" >&2
        status=1
    elif grep -q '__atomic' "$room/pair.s"; then
        echo "calls a library: qn_cas_pair with $cc" >&2
        status=1
    fi
done
mkdir -p "$room/core/base"
sed 's/defined(__x86_64__)/0/; s/defined(__aarch64__)/0/' "$header" \
    > "$room/core/base/atomic.h"
if ! "$1" -std=c11 -I"$room" -I. -S -o "$room/pair.s" "$room/pair.c" 2>&1 |
    grep -q 'error.*compare-and-swap of 16 bytes'; then
    echo "no #error without the operation: $header" >&2
    status=1
fi
exit $status
