//! Samples that look at memory after the work, over many times the work and over time; and work that several threads do.

use serde_json::{Value, json};

use crate::support::{File, fail, names, run, test_data};

fn outcome(job: &Value) -> Value {
    run(job)["outcome"].clone()
}

/// The job, done otherwise than by one thread and once.
fn conducted(mut job: Value, conduct: &Value) -> Value {
    job["conduct"] = json!({
        "threads": 1, "concurrent": 1, "cycles": 1, "timeline_ms": 10, "peak_call": null, "cpus": []
    });
    for (name, value) in conduct.as_object().unwrap() {
        job["conduct"][name] = value.clone();
    }
    job
}

fn points(outcome: &Value) -> &[Value] {
    outcome["points"].as_array().unwrap()
}

/// The phases of the points, each run of one phase once, with how many it has.
fn phases(outcome: &Value) -> Vec<(String, usize)> {
    let mut phases: Vec<(String, usize)> = Vec::new();
    for point in points(outcome) {
        let phase = point["phase"].as_str().unwrap();
        match phases.last_mut() {
            Some((last, count)) if last == phase => *count += 1,
            _ => phases.push((phase.to_owned(), 1)),
        }
    }
    phases
}

fn named(phases: &[(&str, usize)]) -> Vec<(String, usize)> {
    let owned = phases
        .iter()
        .map(|&(phase, count)| (phase.to_owned(), count));
    owned.collect()
}

/// Points are numbered from 0, and time does not go back.
fn check_order(outcome: &Value) {
    let points = points(outcome);
    for (number, point) in points.iter().enumerate() {
        assert_eq!(point["point"], number);
        assert!(point["rss_bytes"].as_u64().unwrap() > 0, "{point}");
    }
    let at = |point: &Value| point["at_s"].as_f64().unwrap();
    assert!(points.is_sorted_by_key(at), "{points:?}");
}

#[test]
fn what_settles_is_looked_at_until_after_the_purge() {
    let file = File::plain();
    let expected = outcome(&file.job("read", "rss", "pooled"));
    let one = outcome(&file.job("read", "settle", "pooled"));
    let job = file.job("write", "settle", "upstream");
    let two = outcome(&conducted(job, &json!({"concurrent": 2})));
    let rest = [("settled", 3), ("before-purge", 1), ("purged", 2)];
    let alone = [("before", 1), ("peak", 1), ("dropped", 1)];
    assert_eq!(phases(&one), named(&[&alone[..], &rest].concat()));
    let threads = [&alone[..], &[("joined", 1)], &rest].concat();
    assert_eq!(phases(&two), named(&threads));
    for settled in [&one, &two] {
        check_order(settled);
        assert_eq!(settled["fold"], expected["fold"]);
        assert_eq!(settled["measures"]["heap"], Value::Null);
        let points = points(settled);
        assert_eq!(points[1]["rss_bytes"], settled["measures"]["max_rss_bytes"]);
        let at = |phase: &str| {
            let of_phase = points.iter().filter(|point| point["phase"] == phase);
            of_phase
                .map(|point| point["at_s"].as_f64().unwrap())
                .collect::<Vec<_>>()
        };
        assert!(at("before")[0] < 0.0 && at("peak")[0] <= 0.0);
        assert!(at("dropped")[0] < 0.1);
        for (found, asked) in at("settled").into_iter().zip([0.1, 1.0, 5.0]) {
            assert!((asked..asked + 0.5).contains(&found), "{found} for {asked}");
        }
        assert!(at("purged")[1] >= at("purged")[0] + 0.1);
    }
}

// snmalloc has no purge.
#[cfg(not(feature = "snmalloc"))]
#[test]
fn a_purge_brings_the_rss_back_whatever_thread_did_the_work() {
    const MIB: i64 = 1 << 20;
    let file = File::large();
    let settle = |readers: i64| {
        let job = file.job("read", "settle", "retained");
        outcome(&conducted(job, &json!({"concurrent": readers})))
    };
    // Most of the time they wait.
    let (one, two) = std::thread::scope(|scope| {
        let two = scope.spawn(|| settle(2));
        (settle(1), two.join().unwrap())
    });
    for (readers, settled) in [(1, one), (2, two)] {
        let rss = |phase: &str| {
            let mut of_phase = points(&settled).iter().rev();
            let point = of_phase.find(|point| point["phase"] == phase).unwrap();
            point["rss_bytes"].as_i64().unwrap()
        };
        let grew = |phase: &str| rss(phase) - rss("before");
        // Shown with --nocapture.
        for phase in ["peak", "settled", "purged"] {
            eprintln!(
                "{readers} readers, {phase}: {:.1} MiB",
                grew(phase) as f64 / MIB as f64
            );
        }
        assert!(
            grew("peak") > readers * 20 * MIB,
            "there is nothing to give back: {settled}"
        );
        assert!(grew("purged").abs() <= 10 * MIB, "{settled}");
    }
}

#[test]
fn every_cycle_leaves_the_heap_as_it_was() {
    for (file, workload, strategy) in [
        (File::encrypted(), "read", "pooled"),
        (File::plain(), "read", "upstream"),
        (File::plain(), "write", "bounded"),
        (File::encrypted(), "write", "upstream"),
    ] {
        let expected = outcome(&file.job(workload, "rss", strategy));
        for conduct in [json!({"cycles": 4}), json!({"cycles": 4, "concurrent": 2})] {
            let cycles = outcome(&conducted(file.job(workload, "cycles", strategy), &conduct));
            assert_eq!(phases(&cycles), named(&[("before", 1), ("cycle", 4)]));
            check_order(&cycles);
            for name in ["rows", "values", "fold"] {
                assert_eq!(cycles[name], expected[name], "{name} is that of one cycle");
            }
            let live: Vec<u64> = points(&cycles)
                .iter()
                .map(|point| point["heap_live_bytes"].as_u64().unwrap())
                .collect();
            let before = &cycles["measures"]["heap"]["heap_before_bytes"];
            assert_eq!(*before, live[0]);
            // The first encryption makes something that its library keeps as long as the process lives.
            let kept = if workload == "write" { 128 } else { 0 };
            assert!(
                live[1..].iter().all(|&bytes| bytes == live[1]) && live[1] <= live[0] + kept,
                "{live:?} of {workload} by {strategy}"
            );
        }
    }
}

/// Two files of apache/parquet-testing; they have two row groups each.
#[test]
fn real_files_are_read_alike_however_it_is_done() {
    let Some(folder) = test_data() else { return };
    let file = File::plain();
    for name in ["sort_columns.parquet", "floating_orders_nan_count.parquet"] {
        let mut job = file.job("read", "heap", "pooled");
        job["file"] = json!(folder.join(name));
        job["dataset"] = Value::Null;
        let alone = outcome(&job);
        for conduct in [json!({"threads": 2}), json!({"concurrent": 3})] {
            let several = outcome(&conducted(job.clone(), &conduct));
            for fact in ["rows", "values", "fold", "checksum"] {
                assert_eq!(several[fact], alone[fact], "{fact} of {name}, {conduct}");
            }
        }
        for (kind, conduct) in [("cycles", json!({"cycles": 3})), ("timeline", json!({}))] {
            job["kind"] = json!(kind);
            let watched = outcome(&conducted(job.clone(), &conduct));
            assert_eq!(watched["fold"], alone["fold"], "{kind} of {name}");
            assert!(points(&watched).len() >= 3, "{kind} of {name}");
        }
    }
}

#[test]
fn a_timeline_goes_through_its_phases() {
    let file = File::plain();
    let expected = outcome(&file.job("read", "heap", "pooled"));
    let job = file.job("read", "timeline", "pooled");
    let timeline = outcome(&conducted(job, &json!({"timeline_ms": 1})));
    check_order(&timeline);
    let found = phases(&timeline);
    let order: Vec<&str> = found.iter().map(|(phase, _)| phase.as_str()).collect();
    assert_eq!(order, ["before", "work", "dropped"]);
    assert_eq!(points(&timeline)[0]["at_s"], 0.0);
    assert_eq!(timeline["fold"], expected["fold"]);
    let heap = |outcome: &Value, name: &str| outcome[name].as_u64().unwrap();
    let (counted, alone) = (&timeline["measures"]["heap"], &expected["measures"]);
    for name in ["allocations", "reallocations", "allocated_bytes"] {
        let what = "the thread that looks allocates nothing while the work is done";
        assert_eq!(heap(counted, name), heap(alone, name), "{what}: {name}");
    }
    let cost = timeline["flags"][0].as_str().unwrap();
    let of_points = format!("s CPU for {} points of 1 ms", points(&timeline).len());
    assert!(
        cost.starts_with("timeline-cost: ") && cost.ends_with(&of_points),
        "{cost}"
    );
}

#[test]
fn threads_that_share_a_file_read_what_one_reads() {
    for file in [File::plain(), File::encrypted()] {
        for strategy in ["pooled", "direct", "upstream"] {
            for kind in ["heap", "rss"] {
                let job = file.job("read", kind, strategy);
                let alone = outcome(&job);
                let shared = outcome(&conducted(job.clone(), &json!({"threads": 2})));
                for name in [
                    "rows",
                    "values",
                    "nulls",
                    "decoded_bytes",
                    "fold",
                    "checksum",
                ] {
                    assert_eq!(shared[name], alone[name], "{name} of {strategy}, {kind}");
                }
                let metadata =
                    |outcome: &Value| outcome["ledger"]["by_purpose"]["metadata"].clone();
                assert_eq!(metadata(&shared), metadata(&alone), "it is shared");
            }
        }
    }
}

#[test]
fn threads_share_the_columns_of_a_single_row_group() {
    let file = File::single();
    for strategy in ["pooled", "direct", "retained"] {
        for kind in ["heap", "rss", "cycles"] {
            let job = file.job("read", kind, strategy);
            let alone = outcome(&job);
            let several = json!({"threads": 4});
            let several = outcome(&conducted(job, &several));
            for name in ["rows", "fold", "checksum"] {
                assert_eq!(several[name], alone[name], "{name} of {strategy}, {kind}");
            }
        }
    }
    let job = conducted(file.job("read", "rss", "upstream"), &json!({"threads": 2}));
    assert!(fail(&job).contains("has 1 row group,"));
}

#[test]
fn readers_and_writers_at_once_do_all_of_the_work_each() {
    let file = File::plain();
    let before = names(file.folder.path());
    for (workload, strategy) in [
        ("read", "pooled"),
        ("write", "bounded"),
        ("write", "upstream"),
    ] {
        let job = file.job(workload, "heap", strategy);
        let one = outcome(&job);
        let two = outcome(&conducted(job, &json!({"concurrent": 2})));
        for name in ["rows", "values", "fold", "checksum", "file_bytes"] {
            assert_eq!(two[name], one[name], "{name} of {workload} is that of one");
        }
        let calls = |outcome: &Value| outcome["measures"]["allocations"].as_u64().unwrap();
        assert!(
            calls(&two) > calls(&one) * 19 / 10,
            "{workload} by {strategy}"
        );
        assert_eq!(two["memory_size_error"], Value::Null);
        let ledger = |outcome: &Value| outcome["ledger"]["total_bytes"].as_u64();
        assert!(ledger(&two) >= ledger(&one), "{workload} by {strategy}");
    }
    assert_eq!(names(file.folder.path()), before);
    let job = file.job("read", "heap", "pooled");
    let alone = outcome(&job);
    let four = outcome(&conducted(job, &json!({"concurrent": 2, "threads": 2})));
    assert_eq!(
        (&four["fold"], &four["checksum"]),
        (&alone["fold"], &alone["checksum"])
    );
}

#[test]
fn what_threads_cannot_do_is_refused_with_a_way_out() {
    let file = File::plain();
    let refused = |workload: &str, strategy: &str, conduct: &Value| {
        fail(&conducted(file.job(workload, "rss", strategy), conduct))
    };
    let told = refused("read", "upstream", &json!({"threads": 3}));
    assert!(
        told.contains("has 2 row groups") && told.contains("3 threads"),
        "{told}"
    );
    assert!(told.contains(file.path.to_str().unwrap()), "{told}");
    let told = refused("read", "limit", &json!({"threads": 2}));
    assert!(told.contains("one thread, not 2"), "{told}");
    let told = refused("write", "bounded", &json!({"threads": 2}));
    assert!(told.contains("use concurrent"), "{told}");
}

#[test]
fn a_damaged_share_is_an_error_and_nobody_waits() {
    let file = File::plain();
    let mut bytes = std::fs::read(&file.path).unwrap();
    // The first row group begins behind the four bytes of the magic number.
    bytes[4..2000].fill(0xff);
    std::fs::write(&file.path, bytes).unwrap();
    for kind in ["rss", "heap", "cycles", "timeline"] {
        let mut job = conducted(file.job("read", kind, "pooled"), &json!({"threads": 2}));
        job["conduct"]["cycles"] = json!(2);
        let told = fail(&job);
        assert!(told.contains(file.path.to_str().unwrap()), "{kind}: {told}");
    }
}

#[test]
fn a_worker_runs_where_it_was_told_to() {
    let file = File::plain();
    let job = file.job("read", "rss", "pooled");
    let allowed = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = allowed
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap();
    let first: String = allowed
        .trim()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    let first: usize = first.parse().unwrap();
    let there = outcome(&conducted(job.clone(), &json!({"cpus": [first]})));
    assert_eq!(there["fold"], outcome(&job)["fold"]);
    let told = fail(&conducted(job, &json!({"cpus": [first, 1023]})));
    assert!(
        told.contains(&format!("the CPUs {first},1023 alone")),
        "{told}"
    );
}

#[test]
fn an_rss_sample_says_what_the_kernel_and_libc_say_of_its_memory() {
    let file = File::plain();
    let sample = outcome(&file.job("read", "rss", "pooled"));
    let measure = |name: &str| sample["measures"][name].as_u64();
    // Some sandboxes do not have `smaps_rollup`.
    if let Some(dirty) = measure("private_dirty_bytes") {
        assert!(dirty > 0 && Some(dirty) <= measure("rss_end_bytes"));
        assert!(measure("pss_bytes") <= measure("rss_end_bytes"));
        assert!(measure("lazy_free_bytes").is_some() && measure("anon_huge_bytes").is_some());
    }
    if cfg!(target_env = "gnu") {
        assert!(measure("libc_heap_bytes").is_some() && measure("libc_free_bytes").is_some());
        assert!(measure("libc_free_after_bytes").is_some());
    }
}
