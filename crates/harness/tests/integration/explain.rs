//! Planted memory shows in the part where it belongs, and nowhere else.

use serde_json::{Value, json};

use crate::support::{File, alloquet, run};

const MIB: i64 = 1 << 20;

/// Whether the binary that is tested has jemalloc.
const JEMALLOC: bool = cfg!(feature = "jemalloc");

struct Planted {
    case: String,
    bytes: i64,
    before: Value,
    after: Value,
}

/// Plants a case with some variables set; `None`, with the reason printed, where this system has no such thing.
fn plant(case: &str, variables: &[(&str, &str)]) -> Option<Planted> {
    let mut command = alloquet();
    command
        .args(["plant", case])
        .envs(variables.iter().copied());
    let output = command.assert().success().stderr("");
    let reply: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    if let Some(reason) = reply["skipped"].as_str() {
        eprintln!("{case} is skipped: {reason}");
        return None;
    }
    Some(Planted {
        case: case.to_owned(),
        bytes: reply["bytes"].as_i64().unwrap(),
        before: reply["baseline"].clone(),
        after: reply["explanation"].clone(),
    })
}

fn part(explanation: &Value, name: &str) -> i64 {
    let parts = explanation["parts"].as_array().unwrap();
    let found = parts.iter().find(|part| part["part"] == name);
    found.unwrap_or_else(|| panic!("{name} in {explanation}"))["bytes"]
        .as_i64()
        .unwrap()
}

fn rss(explanation: &Value) -> i64 {
    explanation["rss_bytes"].as_i64().unwrap()
}

impl Planted {
    fn growth(&self, name: &str) -> i64 {
        part(&self.after, name) - part(&self.before, name)
    }

    /// At least 95 % of `bytes`, and no more than 105 %, are in the part; what is left over is small, and the parts are
    /// all there is.
    fn is_in(&self, name: &str, bytes: i64) {
        let growth = self.growth(name);
        // Shown with --nocapture.
        let share = growth as f64 / bytes as f64 * 100.0;
        eprintln!("planted {}: {share:.2} % in {name}", self.case);
        assert!(
            (growth - bytes).abs() <= bytes.abs() / 20,
            "{growth} of {bytes} in {name}: {} and then {}",
            self.before,
            self.after
        );
        for explanation in [&self.before, &self.after] {
            let left = part(explanation, "left-over");
            assert!(left.abs() < 2 * MIB, "{left} left over: {explanation}");
            let parts = explanation["parts"].as_array().unwrap();
            let sum: i64 = parts
                .iter()
                .map(|part| part["bytes"].as_i64().unwrap())
                .sum();
            assert_eq!(sum, rss(explanation));
        }
    }

    /// The resident size grew by so much, but for this sample's own tables.
    fn is_resident(&self, bytes: i64) {
        let growth = rss(&self.after) - rss(&self.before) - self.growth("own-tables");
        assert!(
            (growth - bytes).abs() <= bytes / 20 + 4 * MIB,
            "{growth} of {bytes}"
        );
    }
}

#[test]
fn a_leak_is_live() {
    let planted = plant("leak", &[]).unwrap();
    planted.is_in("live-outside-ledger", planted.bytes);
    planted.is_resident(planted.bytes);
}

#[test]
fn freed_blocks_among_live_ones_are_kept() {
    let planted = plant("keep", &[]).unwrap();
    planted.is_in("freed-but-kept", planted.bytes);
    planted.is_resident(planted.bytes);
}

#[test]
fn pages_given_back_lazily_are_lazily_freed() {
    let planted = plant("lazy", &[]).unwrap();
    planted.is_in("lazily-freed", planted.bytes);
}

#[test]
fn an_allocator_that_decays_to_muzzy_frees_lazily() {
    if JEMALLOC {
        // At 0 it gives pages back at once, and never lazily.
        let settings = "dirty_decay_ms:10,muzzy_decay_ms:-1";
        let planted = plant("lazy-block", &[("_RJEM_MALLOC_CONF", settings)]).unwrap();
        planted.is_in("lazily-freed", planted.bytes);
    }
}

#[test]
fn what_is_reserved_is_live_and_never_touched() {
    let planted = plant("reserve", &[]).unwrap();
    planted.is_in("live-outside-ledger", planted.bytes);
    planted.is_in("live-never-touched", -planted.bytes);
}

#[test]
fn chunks_of_c_are_on_its_side() {
    for case in ["c", "c-small"] {
        let planted = plant(case, &[]).unwrap();
        planted.is_in("c-heap", planted.bytes);
        planted.is_resident(planted.bytes);
    }
}

#[test]
fn a_mapped_file_is_backed_by_it() {
    let planted = plant("map", &[]).unwrap();
    planted.is_in("file-backed", planted.bytes);
}

#[test]
fn a_byte_in_each_huge_page_is_rounding() {
    if let Some(planted) = plant("thp", &[]) {
        planted.is_in("huge-page-rounding", planted.bytes);
    }
}

#[test]
fn a_deep_stack_is_a_stack() {
    let planted = plant("stack", &[]).unwrap();
    planted.is_in("stacks-and-binary", planted.bytes);
}

#[test]
fn blocks_that_are_no_size_class_need_more_than_they_hold() {
    let planted = plant("metadata", &[]).unwrap();
    let live = planted.growth("live-outside-ledger");
    assert!(live >= planted.bytes);
    // Of blocks of 33 bytes; every allocator here takes 48 for one.
    planted.is_in("allocator-metadata", planted.bytes / 33 * 15);
}

#[test]
fn a_sample_is_explained_at_the_peak_of_its_heap() {
    let file = File::plain();
    for (workload, strategy) in [
        ("read", "pooled"),
        ("write", "upstream"),
        ("write", "pooled"),
    ] {
        let heap = run(&file.job(workload, "heap", strategy));
        let measures = &heap["outcome"]["measures"];
        let mut job = file.job(workload, "explain", strategy);
        job["conduct"] = json!({
            "threads": 1, "concurrent": 1, "cycles": 1, "timeline_ms": 10, "cpus": [],
            "peak_call": measures["heap_peak_call"],
        });
        let explained = run(&job)["outcome"].clone();
        let again = &explained["measures"]["heap"];
        assert_eq!(again["heap_peak_call"], measures["heap_peak_call"]);
        assert_eq!(explained["checksum"], heap["outcome"]["checksum"]);
        let peak = again["heap_peak_bytes"].as_i64().unwrap();
        let parts = explained["parts"].as_array().unwrap();
        let live = parts.iter().filter(|part| {
            let name = part["part"].as_str().unwrap();
            name.starts_with("live-") && !["live-never-touched", "live-swapped-out"].contains(&name)
        });
        let live: i64 = live.map(|part| part["bytes"].as_i64().unwrap()).sum();
        // What was allocated before `main` is in neither, or in one of them.
        assert!((live - peak).abs() < 4096, "{live} of {peak} in {workload}");
        let left = part(&explained, "left-over");
        assert!(left.abs() < MIB, "{left} left over in {workload}");
    }
}

#[test]
fn a_sample_of_other_work_says_so() {
    let file = File::plain();
    let mut job = file.job("read", "explain", "pooled");
    job["conduct"] = json!({
        "threads": 1, "concurrent": 1, "cycles": 1, "timeline_ms": 10, "cpus": [],
        "peak_call": 1_000_000_000,
    });
    let error = crate::support::fail(&job);
    assert!(
        error.contains("it is not the work of the heap sample"),
        "{error}"
    );
}
