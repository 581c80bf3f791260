#!/usr/bin/env bash
# Plants one word of each kind; words.py must see each, in comments, strings,
# documents, names of things and of files, must see a limit that is too high,
# and must not mind longer words.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/words.txt" <<'TABLE'
name 0 qn_bell(_\w+)?  doorbell
file 0 bell  doorbell
prose 0 somebody|who  the role
shown 0 life  incarnation
TABLE
# run FILE TEXT: in a tree of this file.
run() {
    rm -rf "$tmp/t"
    mkdir -p "$tmp/t/$(dirname "$1")"
    printf '%s\n' "$2" >"$tmp/t/$1"
    /usr/bin/python3 "$here/words.py" "$tmp/t" "$tmp/words.txt"
}
plant() {
    if run "$@" >/dev/null 2>&1; then
        echo "not found: $1: $2" >&2
        exit 1
    fi
}
plant core/x.h 'struct qn_bell { int i; };'
plant core/x.h 'struct qn_x { int qn_bell_size; };'
plant core/x.c 'int qn_bell_ring(void) { return 1; }'
plant core/bell.c 'int x;'
plant tests/unit/test_bell.c 'int x;'
plant core/x.c '/* somebody rings */'
plant core/x.c '/* the replica
 * who rings */'
plant core/x.c 'const char *x = "Who rings?";'
plant core/x.c 'const char *x = "a new life";'
plant docs/x.md 'It rings for somebody.'
if ! run core/x.c '/* whose doorbell, a whole life */ int qn_bells, bell; char c[] = "lifeless";'; then
    echo "longer words were found" >&2
    exit 1
fi
sed -i 's/^prose 0/prose 1/' "$tmp/words.txt"
plant core/x.c 'int x;'
