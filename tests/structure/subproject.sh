#!/usr/bin/env bash
# Fails if what a program needs that adds this tree to its own
# (add_subdirectory, docs/embedding.md) names the top folder of that program.
# The tests and examples are built here only. Usage: subproject.sh [FOLDER]
set -u
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}" || exit 2
files=$(find CMakeLists.txt core transports paxos kvs loadgen docs -name CMakeLists.txt) || exit 2
# shellcheck disable=SC2086 # names of files, one word each
if grep -nE 'CMAKE_(SOURCE|BINARY)_DIR' $files /dev/null; then
    echo "this is the outer project's: take PROJECT_SOURCE_DIR" >&2
    exit 1
fi
