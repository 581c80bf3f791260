#!/usr/bin/env bash
# shellcheck disable=SC2016 # backquotes are those of Markdown
# Plants one of each that is named and is not there; links.py must see each.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
# run FILE TEXT: in a tree of this file and kvs/x.c, which has the function f.
run() {
    rm -rf "$tmp/t"
    mkdir -p "$tmp/t/kvs" "$tmp/t/$(dirname "$1")"
    echo 'int f(void);' >"$tmp/t/kvs/x.c"
    printf '%s\n' "$2" >"$tmp/t/$1"
    /usr/bin/python3 "$here/links.py" "$tmp/t"
}
plant() {
    if run "$@" >/dev/null 2>&1; then
        echo "not found: $1: $2" >&2
        exit 1
    fi
}
plant README.md '[y](kvs/y.c)'
plant kvs/README.md '`kvs/y.c` does it'
plant kvs/z.c '/* see kvs/y.h */'
plant tests/z.py '"""As kvs/y.h says."""'
plant README.md 'It is done by `kvs/x.c: g`.'
plant README.md 'It is done by `kvs/x.c: f`, `g`.'
if ! run README.md '[x](kvs/x.c): `kvs/x.c: f`, and `kvs/<noun>.c`'; then
    echo "what is there was not found" >&2
    exit 1
fi
