#!/usr/bin/env bash
# subproject.sh must reject a list that names the outer project's folder.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d) || exit 2
trap 'rm -rf "$tree"' EXIT
mkdir "$tree"/{core,transports,paxos,kvs,loadgen,docs}
# shellcheck disable=SC2016 # a variable of CMake
echo 'add_library(x ${PROJECT_SOURCE_DIR}/x.c)' | tee "$tree/CMakeLists.txt" >"$tree/core/CMakeLists.txt"
if ! bash "$here/subproject.sh" "$tree"; then
    echo "a tree without defects is refused" >&2
    exit 1
fi
# shellcheck disable=SC2016 # likewise
echo 'add_library(x ${CMAKE_SOURCE_DIR}/x.c)' >"$tree/core/CMakeLists.txt"
if bash "$here/subproject.sh" "$tree" >/dev/null 2>&1; then
    echo "not found: CMAKE_SOURCE_DIR" >&2
    exit 1
fi
