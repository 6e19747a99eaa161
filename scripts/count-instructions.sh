#!/bin/sh
# Counts the instructions of writing or reading, lane by lane, with valgrind's callgrind, and prints each lane's ratio to `upstream`.
#
#   scripts/count-instructions.sh CASE...
#
# A CASE is a bench without its lane, such as writer_overhead/1000_cols, arrow_writer/string/parquet_2 or reader/int32/delta_nulls.
# LANES="upstream grow pooled" chooses other lanes; PROFILE=release another build profile. A case with few rows is written unless FULL=1
# is set, which takes minutes and counts what encoding costs rather than what a file costs.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2; }
command -v valgrind >/dev/null || { echo "valgrind is missing: install it (package valgrind)" >&2; exit 1; }
few=--test
[ -z "${FULL:-}" ] || few=
case $1 in
    reader/*) bench=reader_instructions counted=read_once lanes=${LANES:-upstream pooled direct} ;;
    *) bench=writer_instructions counted=write_once lanes=${LANES:-upstream grow exact bounded pooled} ;;
esac
binary=$(cargo bench --profile "${PROFILE:-dev}" -p alloquet-core --bench "$bench" --no-run 2>&1 |
    sed -n 's/^ *Executable .*(\(.*\))$/\1/p')
[ -n "$binary" ] || { echo "the bench $bench does not build; run cargo bench --no-run to see why" >&2; exit 1; }
for case in "$@"; do
    base=
    for lane in $lanes; do
        count=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="*$counted*" \
            "$binary" $few "$case/$lane" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p')
        if [ "${count:-0}" = 0 ]; then
            echo "$case/$lane: nothing was counted: is that a case? (cargo bench -- --list)" >&2
            exit 1
        fi
        base=${base:-$count}
        awk -v name="$case/$lane" -v count="$count" -v base="$base" \
            'BEGIN { printf "%-64s %14d instructions  %.3f\n", name, count, count / base }'
    done
done
