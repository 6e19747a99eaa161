#!/usr/bin/env bash
# What the counting wrapper around the allocator costs, in instructions, by valgrind's callgrind: a write with the wrapper
# there and off against a build without it, and a wide read with counting on against off.
#
#   scripts/wrapper-cost.sh [DATASET]      what is written; default: lists, or delta-strings where there is no lists
#
# Bars: off at most 1.005 of none; on at most 1.02 of off. The exit status is 1 where one is missed.
# SCALE_ROWS (default 0.02) and SCALE_COLUMNS (default 0.25) scale the wide read, WRITE_SCALE (default 0.1) the write;
# STRATEGY (default: upstream, which allocates the most) is what reads and writes.
# ALLOCATOR (default: the system's) is a feature such as mimalloc; PROFILE (default: release) the build's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
case ${1:-} in -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}"; exit 0 ;; esac
fail() { echo "wrapper-cost.sh: $*" >&2; exit 2; }
command -v valgrind >/dev/null || fail "valgrind is missing: install it (package valgrind)"
command -v python3 >/dev/null || fail "python3 is missing: install it"

written=${1:-lists}
[ -n "${1:-}" ] || [ -e bench-data/datasets/lists.toml ] || written=delta-strings
[ -e "bench-data/datasets/$written.toml" ] || fail "there is no dataset $written: alloquet list shows them"
profile=${PROFILE:-release}
output=${CARGO_TARGET_DIR:-target}/$([ "$profile" = dev ] && echo debug || echo "$profile")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for build in bare wrapped; do
  features=${ALLOCATOR:-}
  [ $build = wrapped ] || features=bare,$features
  echo "building: $build" >&2
  cargo build --quiet --package alloquet --profile "$profile" --features "$features"
  cp "$output/alloquet" "$work/$build"
done

# The same definitions, and generated files of its own.
mkdir "$work/bench-data"
ln -s "$PWD/bench-data/datasets" "$work/bench-data/datasets"

# Generates a dataset and prints its file.
generate() { # DATASET ROWS COLUMNS
  "$work/wrapped" generate "$1" --scale-rows "$2" --scale-columns "$3" --bench-data "$work/bench-data" --format json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["path"])'
}

# Instructions of one worker, or, of a write, those of writing: making the batches and reading back are not what is compared.
instructions() { # BINARY COUNTED WORKLOAD FILE DATASET ROWS COLUMNS
  local job worker=(worker --kind rss) collect=() count
  [ "$2" = off ] || worker+=(--counted)
  [ "$3" = read ] || collect=("--toggle-collect=*::measure::write::Ready>::write")
  job=$(python3 - "$@" <<'PY'
import json, os, sys
_, _, _, workload, file, dataset, rows, columns = sys.argv
source = {"definition": os.path.abspath(f"bench-data/datasets/{dataset}.toml"), "scale_rows": float(rows), "scale_columns": float(columns)}
print(json.dumps({"workload": workload, "kind": "rss", "file": file, "strategy": os.environ.get("STRATEGY", "upstream"), "batch_rows": 65536,
                  "dataset": source, "keys": None}))
PY
  )
  # A cleared environment, as a run gives its workers.
  env -i "$(command -v valgrind)" --tool=callgrind --callgrind-out-file=/dev/null "${collect[@]}" "$1" "${worker[@]}" \
    <<<"$job" >"$work/reply" 2>"$work/said" || { cat "$work/reply" "$work/said" >&2; fail "the worker failed"; }
  count=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$work/said")
  [ "${count:-0}" != 0 ] || fail "nothing was counted: is the function that writes named otherwise now?"
  echo "$count"
}

missed=0
compare() { # WHAT COUNT BASE BAR
  awk -v what="$1" -v count="$2" -v base="$3" -v bar="$4" 'BEGIN {
    printf "%-40s %14d against %14d  %.4f (bar %.3f)\n", what, count, base, count / base, bar
    exit count / base > bar }' || missed=1
}

scale=${WRITE_SCALE:-0.1}
file=$(generate "$written" "$scale" 1)
none=$(instructions "$work/bare" off write "$file" "$written" "$scale" 1)
off=$(instructions "$work/wrapped" off write "$file" "$written" "$scale" 1)
compare "write $written: off against none" "$off" "$none" 1.005

rows=${SCALE_ROWS:-0.02} columns=${SCALE_COLUMNS:-0.25}
file=$(generate wide-float "$rows" "$columns")
off=$(instructions "$work/wrapped" off read "$file" wide-float "$rows" "$columns")
on=$(instructions "$work/wrapped" on read "$file" wide-float "$rows" "$columns")
compare "read wide-float: on against off" "$on" "$off" 1.020
exit $missed
