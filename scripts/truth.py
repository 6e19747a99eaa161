#!/usr/bin/env python3
"""Holds this program's figures against those of others, taken of the same work.

    scripts/truth.py [--profile NAME] [--system BINARY --dhat BINARY] [FILE ...]

Max RSS of a sample against VmHWM as a parent sees it that polls, and against `/usr/bin/time -v`; peak heap against valgrind's
massif (system allocator) and against the profile that a build with the feature `dhat` writes. Without a FILE it generates three
small datasets. Prints each pair and its ratio, and ends with 1 where one is further off than 1 %.

The others see the whole process, from its start to its end. So the work is such that its window needs the most: strategies that
hold a row group write, by several writers where one is not enough. Otherwise a table that is decoded, or what was written as it is
read back, would be what they saw.

Needs valgrind and GNU time.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BAR = 0.01
# Workload, strategy, writers. The ledger adds up the contexts that writers have each at its own time, so one writer is held by it.
READS = [("read", "pooled", 1), ("read", "upstream", 1)]
WRITES = [("write", "upstream", 4), ("write", "eager", 1)]
DATASETS = [
    ("wide-float", "0.1", "0.1", READS + [("write", "upstream", 4), ("write", "eager", 4)]),
    ("wide-mixed", "1", "1", READS + WRITES),
    ("lists", "0.1", "1", READS),
]


def build(profile, features):
    subprocess.run(
        ["cargo", "build", "--quiet", "--package", "alloquet", "--profile", profile, "--features", features],
        cwd=ROOT,
        check=True,
    )
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = target / ("debug" if profile == "dev" else profile) / "alloquet"
    kept = Path(tempfile.mkdtemp()) / f"alloquet-{features or 'system'}"
    kept.write_bytes(built.read_bytes())
    kept.chmod(0o755)
    return str(kept)


def job(file, workload, kind, strategy, writers, profile=None):
    told = {"file": file, "workload": workload, "kind": kind, "strategy": strategy, "batch_rows": 8192}
    told |= {"dataset": None, "keys": None, "conduct": {"profile": profile}}
    told |= {"writing": {"situation": "resident", "writers": writers, "changes": {}}}
    return json.dumps(told).encode()


def reply(output):
    answer = json.loads(output)
    if "error" in answer:
        sys.exit(f"a worker failed: {answer['error']}")
    return answer["outcome"]


def worker(before, binary, kind, told):
    done = subprocess.run([*before, binary, "worker", "--kind", kind], input=told, capture_output=True, env={}, check=False)
    return reply(done.stdout), done.stderr.decode(errors="replace")


def polled(binary, told):
    """The sample's own outcome, the largest VmHWM that was seen from outside, and the largest since it was reset."""
    child = subprocess.Popen([binary, "worker", "--kind", "rss"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={})
    child.stdin.write(told)
    child.stdin.close()
    seen, last, since = 0, 0, 0
    while child.poll() is None:
        try:
            status = Path(f"/proc/{child.pid}/status").read_text()
        except OSError:
            break
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        if found:
            now = int(found[1]) * 1024
            # It never falls but where the window resets it.
            since = now if now < last else max(since, now)
            last, seen = now, max(seen, now)
        time.sleep(0.0005)
    return reply(child.stdout.read()), seen, since


def massif(binary, told, folder):
    """The outcome, the most that massif saw, and what of it was zstd's, which is C and not counted.

    What massif calls the peak is the most before a free. A peak that a shrinking realloc ended is in its other snapshots, of which
    it is told to take many.
    """
    out = Path(folder) / "massif.out"
    tool = ["valgrind", "--quiet", "--tool=massif", "--peak-inaccuracy=0", "--heap-admin=0", "--threshold=0", "--max-snapshots=1000"]
    outcome, _ = worker([*tool, f"--massif-out-file={out}"], binary, "heap", told)
    text = out.read_text()
    size = max(map(int, re.findall(r"^mem_heap_B=(\d+)$", text, re.M)))
    peak = next(part for part in text.split("#-----------\nsnapshot=") if "heap_tree=peak" in part)
    # Who called malloc stands one step in.
    callers = re.findall(r"^ n\d+: (\d+) 0x[0-9A-F]+: (\S+)", peak, re.M)
    return outcome, size, sum(int(bytes) for bytes, name in callers if "ZSTD" in name)


def dhat(binary, told, path):
    worker([], binary, "rss", told)
    profile = json.loads(Path(path).read_text())
    # Bytes of each place at the moment when all of them were most.
    return sum(place["gb"] for place in profile["pps"])


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--profile", default="release", help="Cargo profile of the builds (default: release)")
    arguments.add_argument("--system", metavar="BINARY", help="a build of the system allocator; built if not given")
    arguments.add_argument("--dhat", metavar="BINARY", help="a build with the feature dhat; built if not given")
    arguments.add_argument("files", nargs="*", metavar="FILE", help="Parquet files in the clear")
    args = arguments.parse_args()
    system = args.system or build(args.profile, "")
    profiled = args.dhat or build(args.profile, "dhat")
    files = [(file, READS + WRITES) for file in args.files]
    if not files:
        for name, rows, columns, work in DATASETS:
            command = [system, "generate", name, "--scale-rows", rows, "--scale-columns", columns, "--format", "json"]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
            files.append((str(ROOT / json.loads(done.stdout)[0]["path"]), work))

    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        for file, work in files:
            for workload, strategy, writers in work:
                by = f"{strategy}, {writers} writers" if writers > 1 else strategy
                print(f"{workload} {Path(file).name} by {by}")

                def held(what, ours, theirs):
                    nonlocal missed
                    ratio = ours / theirs
                    off = abs(ratio - 1) > BAR
                    missed += off
                    mib = 1 << 20
                    print(f"  {what:<44} {ours / mib:10.2f} MiB {theirs / mib:10.2f} MiB  {ratio:.4f}{'  MISSED' if off else ''}")

                outcome, seen, since = polled(system, job(file, workload, "rss", strategy, writers))
                measures = outcome["measures"]
                held("max RSS of the process, polled by its parent", measures["process_max_rss_bytes"], seen)
                if measures["process_max_rss_bytes"] > (1 + BAR) * measures["max_rss_bytes"]:
                    # What the process says of all of its life was just held against what its parent saw.
                    print("  max RSS of the window: less than that of the process, so no other saw it")
                else:
                    held("max RSS of the window, polled by its parent", measures["max_rss_bytes"], since)
                outcome, said = worker(["/usr/bin/time", "-v"], system, "rss", job(file, workload, "rss", strategy, writers))
                timed = int(re.search(r"Maximum resident set size \(kbytes\): (\d+)", said)[1]) * 1024
                held("max RSS of the process, by /usr/bin/time -v", outcome["measures"]["process_max_rss_bytes"], timed)

                outcome, peak, zstd = massif(system, job(file, workload, "heap", strategy, writers), folder)
                counted = outcome["measures"]["heap_peak_bytes"]
                codec = (outcome.get("ledger") or {}).get("by_purpose", {}).get("codec", 0)
                if codec or not zstd:
                    held("peak heap, C's added, by massif", counted + codec, peak)
                # Of the controls the ledger knows no contexts.
                held("peak heap without C's, by massif", counted, peak - zstd)
                if codec:
                    held("zstd's contexts by the ledger, by massif", codec, zstd)

                path = str(Path(folder) / "dhat-heap.json")
                counted = worker([], system, "heap", job(file, workload, "heap", strategy, writers))[0]["measures"]["heap_peak_bytes"]
                held("peak heap without C's, by dhat", counted, dhat(profiled, job(file, workload, "rss", strategy, writers, path), path))
    print("all within 1 %" if missed == 0 else f"{missed} further off than 1 %")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
