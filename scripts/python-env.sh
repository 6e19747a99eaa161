#!/usr/bin/env bash
# Prints the path of a Python interpreter that has what requirements.txt lists.
#
# The first call makes a virtual environment under target/ and installs into it; later
# calls find it there. Calls at the same time wait for each other. ALLOQUET_PYTHON names
# an interpreter to use as it is instead. Anything but a path goes to standard error;
# without Python, pip or a network the exit status is 1.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
requirements=$root/scripts/requirements.txt

fail() {
    echo "python-env: $*" >&2
    exit 1
}

if [[ -n ${ALLOQUET_PYTHON:-} ]]; then
    python=$(command -v "$ALLOQUET_PYTHON") || fail "ALLOQUET_PYTHON: $ALLOQUET_PYTHON is not there"
    "$python" -c 'import duckdb, pyarrow.parquet' >&2 ||
        fail "ALLOQUET_PYTHON: $python has no pyarrow or no duckdb; install scripts/requirements.txt into it"
    echo "$python"
    exit
fi

target=${CARGO_TARGET_DIR:-$root/target}
mkdir -p "$target"
target=$(cd "$target" && pwd)
# Another list of packages is another environment.
environment=$target/python-$(cksum <"$requirements" | cut -d ' ' -f 1)
python=$environment/bin/python
finished=$environment/finished

# Held until this script ends, so that only one call installs.
exec 9>"$target/python-env.lock"
if command -v flock >/dev/null; then
    flock 9
fi

if [[ ! -e $finished ]]; then
    command -v python3 >/dev/null || fail "there is no python3; install it or set ALLOQUET_PYTHON"
    # What an interrupted call left is not to be trusted.
    rm -rf "$environment"
    python3 -m venv "$environment" >&2 ||
        fail "python3 cannot make a virtual environment (on Debian: apt install python3-venv)"
    "$python" -m pip install --quiet --disable-pip-version-check --no-input \
        --only-binary :all: --retries 2 --timeout 20 --requirement "$requirements" >&2 ||
        fail "pip cannot install $requirements; is there a network?"
    touch "$finished"
fi
echo "$python"
