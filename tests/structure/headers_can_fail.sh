#!/usr/bin/env bash
# Creates faulty headers and folders in an empty tree; each must be found.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT

fresh() {
    rm -rf "$tmp/t"
    mkdir -p "$tmp/t"/{core,transports,paxos,kvs/deep,loadgen,tests}
    echo >"$tmp/t/tests/README.md"
}
must_fail() { # must_fail CHECK WHAT
    if bash "$here/$1" "$tmp/t" >/dev/null 2>&1; then
        echo "not found: $2" >&2
        exit 1
    fi
}
must_pass() {
    bash "$here/$1" "$tmp/t" || exit 1
}

fresh
printf '#ifndef QN_KVS_X_H\n#define QN_KVS_X_H\nuint8_t x;\n#endif\n' >"$tmp/t/kvs/x.h"
must_fail headers.sh "a type without its include"
printf '#include <stdint.h>\n#include "kvs/x.h"\n' >"$tmp/t/kvs/x.c"
must_fail headers.sh "the same behind an include of its source"
rm "$tmp/t/kvs/x.c"
printf '#ifndef QN_KVS_Y_H\n#define QN_KVS_Y_H\n#endif\n' >"$tmp/t/kvs/x.h"
must_fail headers.sh "the guard of another header"
printf '#ifndef QN_KVS_X_H\n#define QN_KVS_X_H\n#endif\n' >"$tmp/t/kvs/x.h"
must_pass headers.sh

must_fail readmes.sh "a folder without README.md"
echo "all about y" >"$tmp/t/kvs/README.md"
must_fail readmes.sh "a file that the README does not name"
echo "\`x.h\`" >"$tmp/t/kvs/README.md"
must_pass readmes.sh
{
    echo "\`x.h\`"
    seq 80
} >"$tmp/t/kvs/README.md"
must_fail readmes.sh "a README of more than a page"
echo "\`x.h\`" >"$tmp/t/kvs/README.md"
must_pass readmes.sh
echo '[x](deep/y.md#z)' >"$tmp/t/kvs/README.md"
if /usr/bin/python3 "$here/links.py" "$tmp/t" >/dev/null; then
    echo "not found: a link to no file" >&2
    exit 1
fi
echo "\`x.h\`, [x](deep)" >"$tmp/t/kvs/README.md"
/usr/bin/python3 "$here/links.py" "$tmp/t" || exit 1
echo >"$tmp/t/kvs/deep/z.c"
must_fail readmes.sh "a deeper folder without README.md"
