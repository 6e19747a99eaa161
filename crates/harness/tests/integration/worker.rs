//! One sample in one process: what it reports, and how it fails.

use alloquet_core::strategy::READ_PRESETS;
use serde_json::{Value, json};

use crate::support::{File, KEY, alloquet, fail, names, run};

fn outcome(job: &Value) -> Value {
    run(job)["outcome"].clone()
}

fn number(value: &Value, name: &str) -> u64 {
    value[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} in {value}"))
}

#[test]
fn two_heap_samples_agree_exactly() {
    let file = File::encrypted();
    for strategy in READ_PRESETS.into_iter().chain(["limit"]) {
        let job = file.job("read", "heap", strategy);
        assert_eq!(outcome(&job), outcome(&job), "{strategy}");
    }
    let job = file.job("write", "heap", "upstream");
    assert_eq!(outcome(&job)["measures"], outcome(&job)["measures"]);
}

#[test]
fn every_strategy_reads_the_same() {
    let file = File::encrypted();
    let clear = File::plain();
    let plain = outcome(&clear.job("read", "heap", "upstream"));
    for strategy in READ_PRESETS.into_iter().chain(["limit"]) {
        let heap = outcome(&file.job("read", "heap", strategy));
        let rss = outcome(&file.job("read", "rss", strategy));
        for name in [
            "rows",
            "values",
            "nulls",
            "decoded_bytes",
            "fold",
            "checksum",
        ] {
            assert_eq!(heap[name], plain[name], "{name} of {strategy}");
        }
        assert_eq!(rss["fold"], plain["fold"], "{strategy}");
        assert_eq!(
            rss["checksum"],
            Value::Null,
            "a timed read takes no checksum"
        );
    }
    assert_eq!(number(&plain, "rows"), 10_000);
    assert_eq!(number(&plain, "values"), 70_000);
}

#[test]
fn the_limit_holds_one_page_however_many_columns_there_are() {
    const PAGE: u64 = 1 << 20;
    // 24 columns with one page each.
    let file = File::large();
    let held = |strategy: &str| {
        let ledger = &outcome(&file.job("read", "heap", strategy))["ledger"]["by_purpose"];
        ["page", "kept", "output"].map(|purpose| ledger[purpose].as_u64().unwrap_or(0))
    };
    let [page, kept, output] = held("limit");
    assert!((PAGE..PAGE + PAGE / 16).contains(&page), "{page}");
    assert_eq!((kept, output), (0, 0), "what is folded is the page itself");
    let [pages, kept, _] = held("direct");
    assert!(pages + kept >= 24 * PAGE, "{pages} and {kept}");
}

#[test]
fn what_is_copied_and_asked_for_is_told_of_core_alone() {
    let file = File::large();
    let copying = |strategy: &str, kind: &str| {
        let mut job = file.job("read", kind, strategy);
        // A page has as many rows.
        job["batch_rows"] = json!(262_144);
        outcome(&job)["copying"].clone()
    };
    let values = 24 * 262_144 * 4;
    for kind in ["heap", "rss"] {
        for strategy in ["direct", "limit"] {
            let found = copying(strategy, kind);
            assert_eq!(number(&found, "shared_value_bytes"), values, "{found}");
            assert_eq!(number(&found, "written_value_bytes"), 0, "{found}");
            assert!(number(&found, "read_bytes") > 0 && number(&found, "reads") >= 24);
        }
        let owned = copying("direct,arrays=owned", kind);
        assert_eq!(number(&owned, "shared_value_bytes"), 0, "{owned}");
        assert_eq!(number(&owned, "written_value_bytes"), values, "{owned}");
        let pooled = copying("pooled", kind);
        assert!(number(&pooled, "reads") >= 24);
        assert_eq!(pooled["written_value_bytes"], Value::Null);
        assert_eq!(copying("upstream", kind), Value::Null);
    }
}

#[test]
fn the_batch_size_does_not_change_what_is_read() {
    let file = File::plain();
    let mut job = file.job("read", "heap", "pooled");
    let expected = outcome(&job);
    job["batch_rows"] = json!(37);
    let smaller = outcome(&job);
    assert_eq!(
        (&smaller["fold"], &smaller["checksum"]),
        (&expected["fold"], &expected["checksum"])
    );
}

#[test]
fn a_heap_sample_counts_the_window() {
    let file = File::plain();
    let measures = &outcome(&file.job("read", "heap", "pooled"))["measures"];
    assert_eq!(measures["kind"], "heap");
    let peak = number(measures, "heap_peak_bytes") - number(measures, "heap_before_bytes");
    // A batch of 1000 rows in six columns of four bytes and one of strings.
    assert!((24_000..1_000_000).contains(&peak), "{measures}");
    assert!(number(measures, "allocated_bytes") > peak);
    assert!(number(measures, "allocations") > 10 * 7);
}

#[test]
fn an_rss_sample_leaves_the_heap_uncounted() {
    let file = File::plain();
    let sample = outcome(&file.job("read", "rss", "pooled"));
    let measures = &sample["measures"];
    assert_eq!(measures["kind"], "rss");
    assert!(measures.get("heap_peak_bytes").is_none());
    assert!(number(measures, "max_rss_bytes") >= number(measures, "rss_before_bytes"));
    assert!(
        number(measures, "rss_anon_bytes") + number(measures, "rss_file_bytes")
            <= number(measures, "rss_end_bytes")
    );
    assert!(number(measures, "minor_faults") > 0);
    assert!(measures["wall_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn written_batches_are_read_back_and_leave_no_file() {
    for file in [File::plain(), File::encrypted()] {
        let before = names(file.folder.path());
        let read = outcome(&file.job("read", "heap", "upstream"));
        for kind in ["heap", "rss"] {
            let written = outcome(&file.job("write", kind, "upstream"));
            assert_eq!(written["checksum"], read["checksum"]);
            assert_eq!(written["rows"], read["rows"]);
            assert!(number(&written, "file_bytes") > 100_000);
        }
        assert_eq!(names(file.folder.path()), before);
    }
}

#[test]
fn a_file_without_a_definition_is_written_as_it_was() {
    for file in [File::plain(), File::encrypted()] {
        let mut job = file.job("write", "heap", "upstream");
        let defined = number(&outcome(&job), "file_bytes");
        job["dataset"] = Value::Null;
        let derived = number(&outcome(&job), "file_bytes");
        // Codec and dictionaries are as they were; pages of another size cost a little.
        assert!(
            derived.abs_diff(defined) < defined / 20,
            "{derived} for {defined}"
        );
    }
}

#[test]
fn a_wrong_key_is_an_error_that_shows_no_key() {
    let file = File::encrypted();
    let mut job = file.job("read", "heap", "pooled");
    let key = job["keys"]["footer_key"].as_str().unwrap().to_owned();
    // "another-key-here", in the form that keys have on the wire.
    job["keys"]["footer_key"] = json!("YW5vdGhlci1rZXktaGVyZQ==");
    let error = fail(&job);
    assert!(
        error.contains("cannot read the Parquet metadata of"),
        "{error}"
    );
    assert!(
        !error.contains(KEY) && !error.contains(&key) && !error.contains("another-key"),
        "{error}"
    );
}

#[test]
fn a_reply_shows_no_key() {
    let file = File::encrypted();
    let job = file.job("read", "heap", "pooled");
    let key = job["keys"]["footer_key"].as_str().unwrap();
    let reply = run(&job).to_string();
    assert!(!reply.contains(KEY) && !reply.contains(key), "{reply}");
}

#[test]
fn a_missing_key_is_an_error() {
    let file = File::encrypted();
    let mut job = file.job("read", "rss", "pooled");
    job["keys"] = Value::Null;
    assert!(fail(&job).contains("cannot read the Parquet metadata of"));
}

#[test]
fn a_truncated_file_is_an_error_that_names_it() {
    let file = File::plain();
    let bytes = std::fs::read(&file.path).unwrap();
    std::fs::write(&file.path, &bytes[..bytes.len() / 2]).unwrap();
    let error = fail(&file.job("read", "heap", "pooled"));
    assert!(error.contains(file.path.to_str().unwrap()), "{error}");
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    let file = File::plain();
    let mut job = file.job("read", "heap", "pooled");
    job["file"] = json!("/no/such.parquet");
    assert!(fail(&job).starts_with("cannot read /no/such.parquet: "));
}

#[test]
fn unknown_strategies_are_errors() {
    let file = File::plain();
    assert!(fail(&file.job("read", "heap", "eager")).contains("eager"));
    assert!(fail(&file.job("write", "heap", "temp-both")).contains("temp-both"));
}

#[test]
fn a_job_that_is_none_is_an_error_on_one_line() {
    for job in ["", "{}", "{\"workload\": \"read\",\n \"speed\": 1}"] {
        let output = alloquet()
            .args(["worker", "--kind", "rss"])
            .write_stdin(job)
            .assert()
            .failure();
        let stdout = String::from_utf8_lossy(&output.get_output().stdout);
        assert!(
            stdout.starts_with("{\"error\":\"the job on standard input is not valid at line "),
            "{stdout}"
        );
        assert_eq!(stdout.lines().count(), 1);
    }
}

#[test]
fn a_worker_of_another_kind_refuses_the_job() {
    let file = File::plain();
    let job = file.job("read", "rss", "pooled").to_string();
    alloquet()
        .args(["worker", "--kind", "heap"])
        .write_stdin(job)
        .assert()
        .failure();
}

#[cfg(not(feature = "snmalloc"))]
/// A variable of this build's allocator that it takes, the option it sets, and one it cannot take.
fn variables() -> (
    (&'static str, &'static str),
    &'static str,
    (&'static str, &'static str),
) {
    if cfg!(feature = "mimalloc") {
        (
            ("MIMALLOC_PURGE_DELAY", "0"),
            "purge_delay",
            ("MIMALLOC_PURGE_DELAYS", "0"),
        )
    } else if cfg!(feature = "jemalloc") {
        (
            ("_RJEM_MALLOC_CONF", "narenas:3"),
            "opt.narenas",
            ("_RJEM_MALLOC_CONF", "narena:3"),
        )
    } else {
        (
            ("MALLOC_ARENA_MAX", "2"),
            "glibc.malloc.arena_max",
            // Without the underscore at its end glibc does not see it.
            ("MALLOC_TOP_PAD", "65536"),
        )
    }
}

#[cfg(not(feature = "snmalloc"))]
fn run_with((variable, value): (&str, &str)) -> Value {
    let file = File::plain();
    let mut job = file.job("read", "rss", "pooled");
    job["conduct"] = json!({"settings": {"variables": {variable: value}, "thp": null}});
    let output = alloquet()
        .env(variable, value)
        .env("HOME", "/nowhere")
        .args(["worker", "--kind", "rss"])
        .write_stdin(job.to_string())
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
#[cfg(not(feature = "snmalloc"))]
fn settings_are_recorded_and_read_back() {
    let ((variable, value), option, _) = variables();
    let reply = run_with((variable, value));
    assert_eq!(reply["allocator"]["environment"], json!({variable: value}));
    let effective = reply["allocator"]["settings"][option].as_str().unwrap();
    assert!(value.ends_with(effective), "{effective} for {value}");
    assert_eq!(reply["outcome"]["flags"], json!([]));
}

#[test]
#[cfg(not(feature = "snmalloc"))]
fn a_setting_that_is_not_taken_fails_the_sample() {
    let (_, _, misspelt) = variables();
    let error = run_with(misspelt)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("did not take its settings: "), "{error}");
    assert!(error.ends_with("is no setting of it"), "{error}");
}
