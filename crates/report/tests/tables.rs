//! What tables look like, on small samples made up here.

use alloquet_report::metric::Metric;
use alloquet_report::sample::{Kind, Sample, Situation, Workload};
use alloquet_report::table::{Format, Options, render};

const MIB: f64 = 1024.0 * 1024.0;
const RUN: &str = "20260301T120000Z-1a2b";

/// One lane's figures; each repetition adds a little to them.
struct Lane {
    strategy: &'static str,
    allocator: &'static str,
    settings: &'static str,
    heap_mib: f64,
    rss_mib: f64,
    cpu_s: f64,
}

fn lane(strategy: &'static str, allocator: &'static str, figures: [f64; 3]) -> Lane {
    let [heap_mib, rss_mib, cpu_s] = figures;
    Lane {
        strategy,
        allocator,
        settings: "",
        heap_mib,
        rss_mib,
        cpu_s,
    }
}

fn blank(kind: Kind, dataset: &str, lane: &Lane) -> Sample {
    let versions = [
        ("system", "glibc 2.36"),
        ("mimalloc", "3.3.2"),
        ("jemalloc", "5.3.1"),
    ];
    let version = versions.iter().find(|(name, _)| *name == lane.allocator);
    Sample {
        run_id: RUN.to_owned(),
        matrix: "quick".to_owned(),
        allocator: lane.allocator.to_owned(),
        allocator_version: version.map_or_else(String::new, |(_, version)| (*version).to_owned()),
        settings: lane.settings.to_owned(),
        label: lane.allocator.to_owned(),
        thp: "madvise".to_owned(),
        profile: "dev".to_owned(),
        dataset: dataset.to_owned(),
        strategy: lane.strategy.to_owned(),
        batch_rows: 65_536,
        seed: 42,
        rows: Some(1_048_576),
        values: Some(475_004_928),
        file_bytes: Some(1_903_000_000),
        decoded_bytes: Some(1_900_019_712),
        fold: Some("9f3c".to_owned()),
        ..Sample::new(kind, Workload::Read)
    }
}

fn samples(dataset: &str, lanes: &[Lane], repetitions: u32) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (place, lane) in lanes.iter().enumerate() {
        for _ in 0..2 {
            samples.push(Sample {
                heap_peak_bytes: Some((lane.heap_mib * MIB) as u64),
                allocations: Some(1_000),
                checksum: Some("c0ffee".to_owned()),
                ..blank(Kind::Heap, dataset, lane)
            });
        }
        for repetition in 0..repetitions {
            // Some noise, the same each time this runs.
            let noise = f64::from((repetition * 7 + place as u32 * 3) % 10) / 10.0;
            samples.push(Sample {
                repetition,
                user_s: Some(lane.cpu_s * (1.0 + 0.2 * noise)),
                sys_s: Some(0.1),
                wall_s: Some(lane.cpu_s * (1.0 + 0.2 * noise) + 0.11),
                max_rss_bytes: Some(((lane.rss_mib + 2.0 * noise) * MIB) as u64),
                minor_faults: Some((lane.rss_mib * 256.0) as u64 + u64::from(repetition)),
                ..blank(Kind::Rss, dataset, lane)
            });
        }
    }
    samples
}

fn three_allocators() -> Vec<Lane> {
    vec![
        lane("upstream", "system", [252.0, 293.0, 1.37]),
        lane("pooled", "system", [252.1, 276.0, 0.94]),
        lane("retained", "system", [382.0, 427.0, 1.20]),
        lane("temp-decrypt", "system", [252.0, 277.0, 1.32]),
        lane("upstream", "mimalloc", [252.0, 337.0, 0.87]),
        lane("pooled", "mimalloc", [252.1, 329.0, 0.81]),
        lane("retained", "mimalloc", [382.0, 476.0, 0.96]),
        lane("temp-decrypt", "mimalloc", [252.0, 324.0, 0.96]),
        lane("upstream", "jemalloc", [252.0, 296.0, 1.05]),
        lane("pooled", "jemalloc", [252.1, 302.0, 0.97]),
        lane("retained", "jemalloc", [382.0, 442.0, 1.11]),
        lane("temp-decrypt", "jemalloc", [252.0, 289.0, 0.99]),
    ]
}

fn options() -> Options {
    let machine = "2 × Example CPU, 8 GiB, Linux 6.18, glibc 2.36".to_owned();
    Options {
        machines: [(RUN.to_owned(), machine)].into(),
        ..Options::default()
    }
}

fn terminal(samples: &[Sample]) -> String {
    render(samples, Format::Terminal, &options())
}

fn one_allocator() -> Vec<Lane> {
    let lanes = three_allocators().into_iter();
    lanes.filter(|lane| lane.allocator == "system").collect()
}

#[test]
fn one_allocator_has_metrics_across() {
    let mut all = samples("wide-float", &one_allocator(), 3);
    all.extend(samples("wide-float-encrypted", &one_allocator(), 3));
    insta::assert_snapshot!(terminal(&all));
}

#[test]
fn three_allocators_stand_across() {
    insta::assert_snapshot!(terminal(&samples("wide-float", &three_allocators(), 10)));
}

/// A table of peak heap alone, of two strategies on mimalloc and on what `change` makes of it.
fn peak_heap(change: fn(&mut Sample)) -> String {
    let lanes = [
        lane("pooled", "mimalloc", [252.1, 329.0, 0.81]),
        lane("upstream", "mimalloc", [252.0, 337.0, 0.87]),
    ];
    let mut all = samples("wide-float", &lanes, 1);
    let mut others = all.clone();
    others.iter_mut().for_each(change);
    all.extend(others);
    render(&all, Format::Markdown, &only(&[Metric::PeakHeap]))
}

#[test]
fn what_every_setup_shares_stands_once_and_says_whose_it_is() {
    let shared = |change, whose: &str| {
        let text = peak_heap(change);
        assert!(text.contains(&format!("MiB      | {whose}")), "{text}");
        assert_eq!(text.matches("252.1 (+0.0)").count(), 1, "{text}");
    };
    shared(
        |sample| sample.allocator = "system".to_owned(),
        "every allocator",
    );
    shared(|sample| sample.settings = "A=1".to_owned(), "every setting");
    shared(
        |sample| sample.label = "mimalloc-v2".to_owned(),
        "every binary",
    );
    // A single figure that reads otherwise, and each has its column again.
    let text = peak_heap(|sample| {
        sample.allocator = "system".to_owned();
        if sample.strategy == "pooled" {
            sample.heap_peak_bytes = sample.heap_peak_bytes.map(|bytes| bytes + 200_000);
        }
    });
    assert!(!text.contains("every"), "{text}");
    assert!(text.contains("252.3 (+0.0)      | 252.1 (+0.0)"), "{text}");
}

/// What two strategies wrote in one situation; resident, what the work adds is the same as in the other.
fn written(situation: Situation, writers: u64, properties: &str) -> Vec<Sample> {
    let lanes = [
        lane("bounded", "system", [60.0, 70.0, 0.9]),
        lane("upstream", "system", [80.0, 95.0, 1.0]),
    ];
    let mut all = samples("delta-strings", &lanes, 3);
    for sample in &mut all {
        sample.workload = Workload::Write;
        sample.situation = Some(situation);
        sample.writers = Some(writers);
        sample.properties = properties.to_owned();
        sample.leaf_columns = Some(24);
        sample.heap_before_bytes = sample.heap_peak_bytes.map(|_| 50 << 20);
    }
    all
}

#[test]
fn a_table_of_writing_says_where_the_batches_came_from() {
    let mut all = written(Situation::Resident, 1, "");
    all.extend(written(Situation::Arriving, 1, ""));
    all.extend(written(
        Situation::Arriving,
        4,
        "compression=zstd(1);dictionary=false",
    ));
    insta::assert_snapshot!(terminal(&all));
}

#[test]
fn shares_of_the_heap_are_shown_where_samples_have_them() {
    let metrics = [Metric::HeapPerColumn, Metric::HeapPerWriter];
    let written = written(Situation::Resident, 1, "");
    let text = render(&written, Format::Markdown, &only(&metrics));
    assert!(text.contains("heap/column KiB"), "{text}");
    // 10 MiB over 24 columns, and over one writer.
    assert!(text.contains("426.7") && text.contains("10240.0"), "{text}");

    let read = samples("wide-float", &one_allocator(), 1);
    let text = render(&read, Format::Markdown, &Options::default());
    assert!(!text.contains("heap/"), "{text}");
    // What failed is told even where the metrics that were asked for have nothing to show.
    let failed: Vec<Sample> = read
        .into_iter()
        .map(|sample| sample.failed("killed"))
        .collect();
    let text = render(&failed, Format::Markdown, &only(&metrics));
    assert!(
        text.contains("heap samples of pooled on system: failed: killed"),
        "{text}"
    );
}

#[test]
fn markdown_of_one_allocator() {
    let all = samples("wide-float", &one_allocator(), 10);
    insta::assert_snapshot!(render(&all, Format::Markdown, &options()));
}

#[test]
fn markdown_of_three_allocators() {
    let all = samples("wide-float", &three_allocators(), 10);
    insta::assert_snapshot!(render(&all, Format::Markdown, &options()));
}

#[test]
fn many_settings_stand_below_one_another() {
    let mut lanes = three_allocators();
    let settings = [
        ("mimalloc", "MIMALLOC_ALLOW_THP=0", 280.0),
        (
            "mimalloc",
            "MIMALLOC_ALLOW_THP=0;MIMALLOC_PURGE_DELAY=0",
            270.0,
        ),
        (
            "jemalloc",
            "_RJEM_MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0",
            260.0,
        ),
    ];
    for (allocator, settings, rss) in settings {
        lanes.push(Lane {
            settings,
            ..lane("pooled", allocator, [252.1, rss, 0.9])
        });
    }
    insta::assert_snapshot!(terminal(&samples("wide-float", &lanes, 6)));
}

#[test]
fn a_setting_or_two_fit_across() {
    let lanes = [
        lane("pooled", "mimalloc", [252.1, 329.0, 0.81]),
        Lane {
            settings: "MIMALLOC_ALLOW_THP=0",
            ..lane("pooled", "mimalloc", [252.1, 280.0, 0.9])
        },
        Lane {
            settings: "_RJEM_MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0",
            ..lane("pooled", "jemalloc", [252.1, 260.0, 0.9])
        },
    ];
    insta::assert_snapshot!(terminal(&samples("wide-float", &lanes, 2)));
}

/// One lane failed wholly, one in part, one was never measured.
fn troubled() -> Vec<Sample> {
    let mut all = samples("wide-float", &three_allocators(), 3);
    for sample in &mut all {
        let fails = match (sample.strategy.as_str(), sample.allocator.as_str()) {
            ("retained", "mimalloc") => Some("killed by signal 9: out of memory?"),
            ("pooled", "system") if sample.kind == Kind::Rss && sample.repetition == 1 => {
                Some("no answer within 600 s")
            }
            _ => None,
        };
        if let Some(error) = fails {
            *sample = sample.clone().failed(error);
        }
    }
    all.retain(|sample| {
        (sample.strategy.as_str(), sample.allocator.as_str()) != ("pooled", "jemalloc")
    });
    all
}

#[test]
fn failures_and_missing_cells_are_told() {
    insta::assert_snapshot!(terminal(&troubled()));
}

#[test]
fn markdown_of_failures() {
    insta::assert_snapshot!(render(&troubled(), Format::Markdown, &options()));
}

fn only(metrics: &[Metric]) -> Options {
    Options {
        metrics: metrics.iter().copied().collect(),
        ..options()
    }
}

#[test]
fn only_the_chosen_metrics_are_shown() {
    let mut all = samples("wide-float", &three_allocators(), 6);
    all.extend(samples("wide-float-encrypted", &three_allocators(), 6));
    let chosen = only(&[Metric::Wall, Metric::MaxRss]);
    insta::assert_snapshot!(render(&all, Format::Terminal, &chosen));
}

#[test]
fn failures_are_told_where_no_chosen_metric_shows_them() {
    let chosen = only(&[Metric::PeakHeap]);
    insta::assert_snapshot!(render(&troubled(), Format::Terminal, &chosen));
}

#[test]
fn what_does_not_agree_has_failed_and_does_not_win() {
    let mut all = samples("wide-float", &one_allocator(), 3);
    for sample in &mut all {
        match (sample.strategy.as_str(), sample.kind) {
            ("pooled", Kind::Heap) => sample.checksum = Some("0bad".to_owned()),
            ("temp-decrypt", Kind::Heap) => {
                let first = sample.heap_peak_bytes.unwrap_or(0);
                sample.heap_peak_bytes = Some(first + u64::from(sample.position) * 16);
            }
            ("retained", Kind::Rss) => {
                sample.process_max_rss_bytes = sample.max_rss_bytes;
                sample.ru_maxrss_bytes = Some(1 << 30);
            }
            _ => {}
        }
    }
    let heap = all
        .iter_mut()
        .filter(|sample| sample.strategy == "temp-decrypt" && sample.kind == Kind::Heap);
    if let Some(peak) = heap
        .last()
        .and_then(|sample| sample.heap_peak_bytes.as_mut())
    {
        *peak += 4_096;
    }
    insta::assert_snapshot!(terminal(&all));
}

#[test]
fn a_narrow_terminal_gets_several_tables() {
    let all = samples("wide-float", &one_allocator(), 6);
    let options = Options {
        width: 80,
        ..options()
    };
    let text = render(&all, Format::Terminal, &options);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn writes_scales_and_threads_are_blocks_of_their_own() {
    let lanes = [lane("upstream", "system", [10.0, 20.0, 0.1])];
    let plain = samples("lists", &lanes, 1);
    let mut all = plain.clone();
    let mut add = |change: &dyn Fn(&mut Sample)| {
        let mut changed = plain.clone();
        changed.iter_mut().for_each(change);
        all.extend(changed);
    };
    add(&|sample| sample.workload = Workload::Write);
    add(&|sample| sample.scale_rows = 0.25);
    add(&|sample| sample.threads = 4);
    insta::assert_snapshot!(terminal(&all));
}

#[test]
fn runs_are_kept_apart() {
    let lanes = [lane("upstream", "system", [10.0, 20.0, 0.1])];
    let mut all = samples("lists", &lanes, 2);
    let mut later = samples("lists", &lanes, 2);
    for sample in &mut later {
        sample.run_id = "20260302T080000Z-3c4d".to_owned();
        sample.fold = Some("another file".to_owned());
    }
    all.extend(later);
    insta::assert_snapshot!(terminal(&all));
}

#[test]
fn no_samples_are_told() {
    assert_eq!(terminal(&[]), "There are no samples.\n");
}

#[test]
fn json_has_the_same_figures() {
    let lanes = [
        lane("pooled", "system", [252.1, 276.0, 0.94]),
        lane("upstream", "system", [252.0, 293.0, 1.37]),
    ];
    let json = render(&samples("wide-float", &lanes, 6), Format::Json, &options());
    insta::assert_snapshot!(json);
}

#[test]
fn the_order_of_samples_does_not_matter() {
    let mut all = samples("wide-float", &three_allocators(), 6);
    let text = terminal(&all);
    all.reverse();
    assert_eq!(terminal(&all), text);
}
