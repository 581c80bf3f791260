#!/usr/bin/env bash
# Fails if a folder of sources has no README.md, or one of more than 80 lines, or
# if its README does not name each module in it (by file name, or by noun: `tree`
# for tree.h and tree.c).
# Usage: readmes.sh [root]
set -u
cd "${1:-.}" || exit 2
status=0
for folder in $(find core transports paxos kvs loadgen -name '*.[ch]' -printf '%h\n' | sort -u) tests; do
    if [ ! -f "$folder/README.md" ]; then
        echo "no README.md: $folder" >&2
        status=1
        continue
    fi
    if [ "$folder" != tests ] && [ "$(wc -l <"$folder/README.md")" -gt 80 ]; then
        echo "$folder/README.md has more than 80 lines; move the rest to a separate page" >&2
        status=1
    fi
    for file in "$folder"/*.[ch]; do
        noun=$(basename "${file%.[ch]}")
        noun=${noun%_internal}
        if [ -f "$file" ] && ! grep -qE "\b$noun(_internal)?\b" "$folder/README.md"; then
            echo "$folder/README.md does not name $(basename "$file")" >&2
            status=1
        fi
    done
done
exit $status
