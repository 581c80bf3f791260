#!/usr/bin/env bash
# Fails if a header does not compile alone, or has no include guard of the form
# QN_<FOLDER>_<NOUN>_H. A header that its source includes before all else has been
# compiled alone by the build.
# Usage: headers.sh [root [compiler]]
set -u
cd "${1:-.}" || exit 2
cc=${2:-cc}
status=0

# included_first HEADER: by the source beside it
included_first() {
    local source=${1%.h}.c
    [ -f "$source" ] && [ "$(grep -m 1 '^ *#' "$source")" = "#include \"$1\"" ]
}

for header in $(find core transports paxos kvs loadgen -name '*.h' | sort); do
    if ! included_first "$header" && ! "$cc" -std=c11 -D_GNU_SOURCE -I. -fsyntax-only -Wall -Wextra -Werror \
        -include "$header" -x c /dev/null; then
        echo "does not compile alone: $header" >&2
        status=1
    fi
    guard="^#ifndef QN_([A-Z0-9]+_)*$(basename "$header" .h | tr '[:lower:]' '[:upper:]')_H\$"
    if ! grep -qE "$guard" "$header"; then
        echo "no guard like QN_FOLDER_NOUN_H: $header" >&2
        status=1
    fi
done
exit $status
