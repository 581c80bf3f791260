#!/usr/bin/env bash
# An invalidate or a drain that is no mutant, one that shares a name, and a name
# that no search of seeds finds: the check must find each.
set -u
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
status=0

# $1: what is found; $2: file; $3: sed script
must_find() {
    rm -rf "$room/tree"
    mkdir -p "$room/tree/transports" "$room/tree/tests/unit/transports"
    cp -r transports/mpb "$room/tree/transports"
    cp -r tests/unit/transports/mpb "$room/tree/tests/unit/transports"
    sed -i "$3" "$room/tree/$2"
    if python3 tests/structure/chip_mutants.py "$room/tree" > "$room/said" ||
        ! grep -q "$1" "$room/said"; then
        echo "not found: $1 in $2" >&2
        status=1
    fi
}

must_find "without a mutant" transports/mpb/mpb_send.c \
    's/^static void announce(.*/static void more(struct qn_mpb *m)\n{\n    qn_mpb_drain(m);\n}\n\n&/'
must_find "is that of" transports/mpb/mpb_send.c 's/WANT_KEPT/SENT_KEPT/'
must_find "no search of 100 seeds" transports/mpb/mutant.h \
    's/X(WANT_KEPT, STRICT/X(WANT_KEPT, LIVES/'
must_find "no search of 100 seeds" \
    tests/unit/transports/mpb/twosided/test_rivals_mutants.c 's/(TWO, /(LIVES, /'
must_find "is nowhere" transports/mpb/mpb.c 's/MUTANT(SENT_LEFT)/MUTANT(SENT_STALE)/'
if ! python3 tests/structure/chip_mutants.py; then
    echo "finds something without a seeded violation" >&2
    status=1
fi
exit $status
