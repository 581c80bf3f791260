#!/usr/bin/env bash
# Fails unless MANUAL has every option and subcommand of PROGRAM in the right
# section, and the standard sections. A subcommand with a manual of its own
# (SUBCOMMAND is given then) is only referred to.
# Usage: manual.sh PROGRAM MANUAL [SUBCOMMAND]
set -u
program=$1 manual=$2 only=${3:-}
status=0

wrong() {
    echo "$manual: $1" >&2
    status=1
}

# Lines of a subsection; all lines without a name.
section() {
    if [ $# = 0 ]; then
        cat "$manual"
    else
        awk -v head=".Ss $1" '$0 == head { in_it = 1; next }
            /^\.S[hs] / { in_it = 0 } in_it' "$manual"
    fi
}

check_options() { # help text, lines of the section, name
    local found=0 name
    while read -r name; do
        [ "$name" = --help ] && continue
        found=1
        grep -qE "^\.It Fl -${name#--}( |\$)" <<<"$2" ||
            wrong "$3 lacks $name"
    done < <(grep -oE '^  --[a-z0-9-]+' <<<"$1")
    [ $found = 1 ] || wrong "$3: the help lists no option"
}

[ -s "$manual" ] || { wrong "does not exist"; exit 1; }
for title in NAME SYNOPSIS DESCRIPTION "EXIT STATUS" "SEE ALSO"; do
    grep -qx "\.Sh $title" "$manual" || wrong "no section $title"
done
if [ -n "$only" ]; then
    help=$("$program" "$only" --help) || wrong "$only --help fails"
else
    help=$("$program" --help) || wrong "--help fails"
fi
names=$(sed -n 's/^  \([a-z][a-z0-9 ]*[a-z0-9]\)  .*/\1/p' <<<"$help")
if [ -z "$names" ]; then
    check_options "$help" "$(section)" "$(basename "$program")"
fi
while [ -n "$names" ] && read -r name; do
    read -ra words <<<"$name"
    page=$(basename "$program")-${name// /-}
    section "$name" | grep -qx "\.Xr $page 1 \." && continue
    check_options "$("$program" "${words[@]}" --help)" "$(section "$name")" \
        "$name"
done <<<"$names"
grep -q '@options@' "$manual" && wrong "the options are missing"
exit $status
