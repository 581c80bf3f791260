#!/usr/bin/env bash
# Makes a manual: the text of TEMPLATE, with the line `.\" @options@` replaced by
# the options of PROGRAM's help, so that each is described only once, in the
# program's table. A program with subcommands gets a subsection for each; one
# with a manual of its own (PROGRAM-SUBCOMMAND.1.in beside TEMPLATE) is only
# named there.
# Usage: make.sh PROGRAM TEMPLATE [SUBCOMMAND] > MANUAL
set -euo pipefail
program=$1 template=$2 only=${3:-}

# `  --name ARG   text` becomes an item of a list, `Title:` a subsection;
# `SUBCOMMAND --help` on stdin.
items() {
    awk -v of="$1" '
        /^[A-Z][a-z ]*:$/ {
            sub(/:$/, "")
            print ".El\n.Ss " $0 "\n.Bl -tag -width Ds"
        }
        /^  --help, --version$/ { next }
        /^  --/ {
            if (!match($0, /^  --[^ ]+( [^ ]+)?  +/)) {
                print of ": two blanks must end an option: " $0 > "/dev/stderr"
                exit 1
            }
            n = split(substr($0, 3, RLENGTH - 2), word, / +/)
            arg = word[2] == "" ? "" : " Ar " word[2]
            print ".It Fl " substr(word[1], 2) arg
            print "\\&" substr($0, RLENGTH + 1)
        }'
}

# A list that would be empty is left out.
list() {
    { echo ".Bl -tag -width Ds"; items "$1"; echo ".El"; } |
        awk '/^\.Bl/ { held = $0; next }
            /^\.El/ && held { held = ""; next }
            held { print held; held = "" }
            { print }'
}

# The text before the options, without the usage line.
prose() {
    awk '/^usage:/ { next } /^  --|^[A-Z][a-z ]*:$/ { exit } NF { print "\\&" $0 }'
}

options() {
    local help names page
    if [ -n "$only" ]; then
        "$program" "$only" --help | list "$only"
        return
    fi
    help=$("$program" --help)
    names=$(sed -n 's/^  \([a-z][a-z0-9 ]*[a-z0-9]\)  .*/\1/p' <<<"$help")
    if [ -z "$names" ]; then
        list "$program" <<<"$help"
        return
    fi
    while read -r name; do
        read -ra words <<<"$name"
        help=$("$program" "${words[@]}" --help)
        echo ".Ss $name"
        prose <<<"$help"
        page=$(basename "$program")-${name// /-}
        if [ -e "$(dirname "$template")/$page.1.in" ]; then
            printf '.Pp\nIts options are in\n.Xr %s 1 .\n' "$page"
        else
            list "$name" <<<"$help"
        fi
    done <<<"$names"
}

made=$(options)
while IFS= read -r line; do
    if [ "$line" = '.\" @options@' ]; then
        printf '%s\n' "$made"
    else
        printf '%s\n' "$line"
    fi
done <"$template"
