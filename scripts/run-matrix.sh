#!/usr/bin/env bash
# Builds one binary per allocator and measures them interleaved in one run.
#
#   scripts/run-matrix.sh [MATRIX] [OPTIONS]             a matrix of bench-data/matrices (default: quick)
#   scripts/run-matrix.sh --file FILE [OPTIONS]          which allocator and strategy for my file?
#   scripts/run-matrix.sh --file FILE --within SIZE      does it fit in so much memory, and what gets it there?
#
#   --file FILE         measure reading this Parquet file
#   --write             with --file: measure writing its contents anew
#   --key-file FILE     its keys, if it is encrypted (TOML: footer_key, [column_keys], aad_prefix)
#   --allocators LIST   comma-separated; default: system,mimalloc,jemalloc,snmalloc. There are also mimalloc-v2, and those
#                       that take C code's memory too, mimalloc-override and jemalloc-override; dhat is not for figures
#   --profile NAME      Cargo profile of the builds; default: release
#   --results DIR       where the CSV goes; default: results/local
#   -h, --help          this text
#
# A matrix with the strategy upstream-eager, such as gh-11149, gets binaries that have it.
#
# All other options go to `alloquet run`, `read`, `write` or `fit`, such as --reps, --seed, --strategy,
# --dataset, --format: `target/matrix/release/alloquet-system run --help` lists them.
set -euo pipefail
caller=$PWD
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

fail() { echo "run-matrix.sh: $*" >&2; exit 2; }
# A path as the caller meant it, for use from the project's root.
from_caller() { case $1 in /*) echo "$1" ;; *) echo "$caller/$1" ;; esac; }

allocators=system,mimalloc,jemalloc,snmalloc
profile=release
results=results/local
matrix=
file=
write=
within=
pass=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "${BASH_SOURCE[0]}"; exit 0 ;;
    --write) write=1; shift ;;
    --within) [ $# -ge 2 ] || fail "$1 needs a value"
      within=$2; shift 2 ;;
    --explain | --settle | --resume | --dry-run) pass+=("$1"); shift ;;
    --file | --key-file | --allocators | --profile | --results)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case $1 in
        --file) file=$(from_caller "$2") ;;
        --key-file) pass+=(--key-file "$(from_caller "$2")") ;;
        --allocators) allocators=$2 ;;
        --profile) profile=$2 ;;
        --results) results=$(from_caller "$2") ;;
      esac
      shift 2 ;;
    --*=*) pass+=("$1"); shift ;;
    --*) [ $# -ge 2 ] || fail "$1 needs a value"
      pass+=("$1" "$2"); shift 2 ;;
    *) [ -z "$matrix" ] || fail "more than one matrix: $matrix and $1"
      matrix=$1; shift ;;
  esac
done
[ -z "$file" ] || [ -z "$matrix" ] || fail "name a matrix or a --file, not both"
[ -n "$file" ] || [ -z "$write$within" ] || fail "--write and --within are of a --file: name one"
[ -z "$file" ] || [ -r "$file" ] || fail "cannot read $file"

# The older parquet crate is in a build only where it is asked for.
older=
if grep -qs '"upstream-eager"' "bench-data/matrices/${matrix:-quick}.toml" ||
  grep -qs upstream-eager <<<"${pass[*]}"; then
  older=upstream-eager
fi

folder=target/matrix/$profile
mkdir -p "$folder"
# Cargo's own name for the folder of its dev profile.
output=${CARGO_TARGET_DIR:-target}/$([ "$profile" = dev ] && echo debug || echo "$profile")
first=
with=()
IFS=, read -r -a names <<<"$allocators"
for name in "${names[@]}"; do
  case $name in
    system) features=(--features "$older") ;;
    mimalloc | mimalloc-v2 | mimalloc-override | jemalloc | jemalloc-override | snmalloc | dhat)
      features=(--features "$name,$older") ;;
    *) fail "unknown allocator '$name': there are system, mimalloc, mimalloc-v2, mimalloc-override, jemalloc," \
      "jemalloc-override, snmalloc, dhat" ;;
  esac
  echo "building with $name" >&2
  cargo build --quiet --package alloquet --profile "$profile" "${features[@]}"
  binary=$folder/alloquet-$name
  # A new file, then a rename: the old one may be running.
  cp "$output/alloquet" "$binary.new"
  mv "$binary.new" "$binary"
  if [ -z "$first" ]; then first=$binary; else with+=(--with "$name=$binary"); fi
done
[ -n "$first" ] || fail "--allocators names none"

if [ -n "$file" ]; then
  command=read
  if [ -n "$within" ]; then
    command=fit
    pass+=(--within "$within")
    [ -z "$write" ] || pass+=(--write)
  elif [ -n "$write" ]; then
    command=write
  fi
  exec "$first" "$command" "$file" --results "$results" "${with[@]}" "${pass[@]}"
fi
exec "$first" run "${matrix:-quick}" --results "$results" "${with[@]}" "${pass[@]}"
