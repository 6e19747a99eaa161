//! What tables say of limits, of memory that comes back or does not, and of where the RSS is.

use alloquet_report::companions::Companions;
use alloquet_report::metric::Metric;
use alloquet_report::parts::{Part, Source};
use alloquet_report::sample::{Kind, Sample, Status, Workload};
use alloquet_report::series::Point;
use alloquet_report::table::{Format, Options, render};

const MIB: u64 = 1 << 20;

fn blank(kind: Kind, strategy: &str, allocator: &str) -> Sample {
    Sample {
        run_id: "r1".to_owned(),
        matrix: "made".to_owned(),
        dataset: "wide-float".to_owned(),
        strategy: strategy.to_owned(),
        allocator: allocator.to_owned(),
        label: allocator.to_owned(),
        fold: Some("f0".to_owned()),
        checksum: Some("c0".to_owned()),
        ..Sample::new(kind, Workload::Read)
    }
}

fn rss(strategy: &str, allocator: &str, mib: u64, repetition: u32) -> Sample {
    Sample {
        repetition,
        max_rss_bytes: Some(mib * MIB),
        rss_before_bytes: Some(10 * MIB),
        rss_after_bytes: Some(12 * MIB),
        minor_faults: Some(mib * 256),
        user_s: Some(0.5),
        sys_s: Some(0.1),
        wall_s: Some(0.6),
        ..blank(Kind::Rss, strategy, allocator)
    }
}

/// Four lanes within 256 MiB: one fits, one sometimes, one never, one is too slow.
fn limited(by: &str) -> Vec<Sample> {
    let mut all = Vec::new();
    for repetition in 0..3 {
        all.push(rss(
            "pooled",
            "system",
            200 + u64::from(repetition),
            repetition,
        ));
        let sometimes = rss("temp-both", "system", 190, repetition);
        all.push(match repetition {
            1 => sometimes.without_measures(
                Status::DidNotFit,
                "did not fit in 256.0 MiB: the kernel killed the worker",
            ),
            _ => sometimes,
        });
        let never = rss("retained", "system", 400, repetition);
        all.push(never.without_measures(
            Status::DidNotFit,
            "did not fit in 256.0 MiB: the kernel killed the worker",
        ));
        let slow = Sample {
            started_s: Some(1_000.0),
            ended_s: Some(1_060.02),
            ..rss("upstream", "system", 230, repetition)
        };
        all.push(slow.without_measures(
            Status::DidNotFinish,
            "did not finish in 60 s: the worker was killed",
        ));
    }
    for sample in &mut all {
        sample.memory_limit_bytes = Some(256 * MIB);
        sample.limited_by = by.to_owned();
        sample.threads = 4;
        sample.concurrent = 2;
    }
    all
}

#[test]
fn a_limit_that_was_met_is_a_result() {
    let text = render(&limited("cgroup-v2"), Format::Terminal, &Options::default());
    insta::assert_snapshot!(text);
    assert!(!text.contains("failed"), "{text}");
}

#[test]
fn markdown_of_limits() {
    let samples = limited("rss");
    let text = render(&samples, Format::Markdown, &Options::default());
    insta::assert_snapshot!(text);
}

#[test]
fn what_does_not_fit_does_not_win_and_has_no_figures() {
    let text = render(&limited("cgroup-v1"), Format::Json, &Options::default());
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let block = &report["runs"][0]["blocks"][0];
    assert_eq!(block["limited_by"][0], "cgroup-v1");
    // The only one that always fits and finishes: there is nothing to choose from.
    assert!(block["answer"].is_null());
    let cell = |strategy: &str| {
        let mut cells = block["cells"].as_array().unwrap().iter();
        cells.find(|cell| cell["strategy"] == strategy).unwrap()
    };
    assert!(cell("retained")["max_rss_bytes"].is_null());
    assert_eq!(cell("retained")["failures"].as_array().unwrap().len(), 0);
    assert_eq!(cell("retained")["limits"][0]["status"], "did-not-fit");
    assert_eq!(cell("temp-both")["limits"][0]["limited"], 1);
    assert_eq!(cell("temp-both")["max_rss_bytes"]["samples"], 2);
    assert_eq!(cell("upstream")["limits"][0]["waited_s"], 60);
}

#[test]
fn what_is_left_is_shown_where_it_is_asked_for() {
    let samples = [
        rss("pooled", "system", 200, 0),
        rss("upstream", "system", 210, 0),
    ];
    let usual = render(&samples, Format::Terminal, &Options::default());
    assert!(!usual.contains("RSS left"), "{usual}");
    let asked = Options {
        metrics: [Metric::RssAfter, Metric::LibcFree].into(),
        ..Options::default()
    };
    let text = render(&samples, Format::Terminal, &asked);
    assert!(
        text.contains("RSS left MiB") && text.contains("2.0"),
        "{text}"
    );
    // No sample has it: there is no column for it.
    assert!(!text.contains("libc free"), "{text}");
}

fn point(phase: &str, point: u32, at_s: f64, rss_mib: u64) -> Point {
    Point {
        phase: phase.to_owned(),
        point,
        at_s,
        rss_bytes: rss_mib * MIB,
        lazy_free_bytes: None,
        heap_live_bytes: Some(MIB),
    }
}

/// Two lanes with figures, and what they do after the work and when it is done again.
fn over_time() -> (Vec<Sample>, Companions) {
    let mut samples = Vec::new();
    let mut beside = Companions::default();
    for (place, allocator) in ["system", "jemalloc"].into_iter().enumerate() {
        let kept = 90 * place as u64;
        for repetition in 0..3 {
            samples.push(rss("pooled", allocator, 200, repetition));
        }
        let at = |kind: Kind, position: u32| Sample {
            position: position + 10 * place as u32,
            ..blank(kind, "pooled", allocator)
        };
        let settle = at(Kind::Settle, 1);
        let mut points = vec![
            point("before", 0, 0.0, 20),
            point("dropped", 1, 1.0, 20 + kept),
        ];
        for (point_number, wait) in [(2, 0.1), (3, 1.0), (4, 5.0)] {
            points.push(point("settled", point_number, 1.0 + wait, 20 + kept));
        }
        points.push(point("purged", 5, 6.1, 21));
        beside.insert(&settle, Vec::new(), points);
        let cycles = Sample {
            cycles: Some(20),
            ..at(Kind::Cycles, 2)
        };
        let points = (0..=20_u32).map(|n| {
            let rss = if n == 0 { 20 } else { 22 + kept };
            point(
                if n == 0 { "before" } else { "cycle" },
                n,
                f64::from(n),
                rss,
            )
        });
        beside.insert(&cycles, Vec::new(), points.collect());
        let explain = at(Kind::Explain, 3);
        let part = |part: &str, mib: i64| Part {
            part: part.to_owned(),
            bytes: mib << 20,
            source: Source::Measured,
            how: "counted".to_owned(),
        };
        beside.insert(
            &explain,
            vec![part("live-page", 150), part("freed-but-kept", 48)],
            Vec::new(),
        );
        samples.extend([settle, cycles, explain]);
    }
    (samples, beside)
}

#[test]
fn a_block_says_what_happens_after_the_work_and_again() {
    let (samples, companions) = over_time();
    let options = Options {
        companions,
        width: 80,
        ..Options::default()
    };
    let text = render(&samples, Format::Terminal, &options);
    assert!(text.contains("3 repetitions, heap 0"), "{text}");
    insta::assert_snapshot!("over_time_terminal", text);
    let text = render(&samples, Format::Markdown, &options);
    insta::assert_snapshot!("over_time_markdown", text);
    let json = render(&samples, Format::Json, &options);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let cell = &report["runs"][0]["blocks"][0]["cells"][1];
    assert_eq!(cell["settling"][0]["verdict"]["given_back"], "only-purged");
    assert_eq!(cell["cycles"][0]["verdict"], "levels-off");
    assert_eq!(cell["explained"][0]["rss_bytes"], 198 * MIB);
}

#[test]
fn an_explain_sample_that_failed_is_told_and_costs_its_lane_nothing() {
    let mut samples: Vec<Sample> = ["pooled", "upstream"]
        .into_iter()
        .flat_map(|strategy| (0..3).map(move |n| rss(strategy, "system", 200, n)))
        .collect();
    samples.push(blank(Kind::Explain, "pooled", "system").failed("there is no pagemap"));
    let text = render(&samples, Format::Terminal, &Options::default());
    let told = "explain samples of pooled on system: failed: there is no pagemap";
    assert!(text.contains(told), "{text}");
    assert!(text.contains("Lowest max RSS: pooled on system"), "{text}");
}
