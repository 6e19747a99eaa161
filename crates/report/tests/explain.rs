//! What waterfalls look like, on parts made up here.

use alloquet_report::explain::{Explained, render, render_pair};
use alloquet_report::parts::{Part, Source};
use alloquet_report::sample::{Kind, Sample, Workload};
use alloquet_report::table::Format;

const MIB: f64 = 1024.0 * 1024.0;

fn part(part: &str, mib: f64, source: Source, how: &str) -> Part {
    Part {
        part: part.to_owned(),
        bytes: (mib * MIB) as i64,
        source,
        how: how.to_owned(),
    }
}

fn sample(kind: Kind, settings: &str) -> Sample {
    Sample {
        dataset: "gh-11149".to_owned(),
        strategy: "pooled".to_owned(),
        allocator: "mimalloc".to_owned(),
        label: "mimalloc".to_owned(),
        settings: settings.to_owned(),
        ..Sample::new(kind, Workload::Read)
    }
}

fn bare(settings: &str, rss_mib: &[f64]) -> Vec<Sample> {
    let bare = rss_mib.iter().map(|mib| Sample {
        max_rss_bytes: Some((mib * MIB) as u64),
        ..sample(Kind::Rss, settings)
    });
    bare.collect()
}

/// arrow-rs #11149 on mimalloc: reserved, never touched, and resident all the same where pages are huge.
fn untouched(rounding: f64) -> Vec<Part> {
    use Source::{Derived, Measured};
    vec![
        part("live-fetch", 0.3, Measured, "the ledger"),
        part("live-decrypt", 0.0, Measured, "the ledger"),
        part("live-page", 1.4, Measured, "the ledger"),
        part("live-output", 0.1, Measured, "the ledger"),
        part("live-metadata", 0.0, Measured, "the ledger"),
        part(
            "live-other",
            208.2,
            Measured,
            "the counted heap, less the ledger",
        ),
        part(
            "never-touched",
            -208.0,
            Derived,
            "pages of zeros under live blocks, by pagemap",
        ),
        part("c-heap", 0.6, Derived, "mallinfo2: in use by C"),
        part(
            "allocator-metadata",
            1.1,
            Derived,
            "size classes above what was asked for, and headers",
        ),
        part(
            "freed-but-kept",
            2.0,
            Derived,
            "pages that held a block and hold none",
        ),
        part("lazily-freed", 0.0, Measured, "LazyFree of smaps"),
        part(
            "huge-page-rounding",
            rounding,
            Derived,
            "pages of zeros in huge pages of which another part was touched",
        ),
        part("mapped-files", 0.02, Measured, "smaps"),
        part("stacks-and-binary", 6.2, Measured, "smaps"),
        part("own-tables", 3.0, Measured, "counted"),
        part("left-over", 0.1, Derived, "RSS, less all of the above"),
    ]
}

/// An allocator that gives nothing back.
fn kept() -> Vec<Part> {
    use Source::{Derived, Measured};
    vec![
        part("live-page", 410.0, Measured, "the ledger"),
        part(
            "live-other",
            220.0,
            Measured,
            "the counted heap, less the ledger",
        ),
        part("freed-but-kept", 6900.0, Derived, "committed, less live"),
        part("lazily-freed", 980.0, Measured, "LazyFree of smaps"),
        part("stacks-and-binary", 6.0, Measured, "smaps"),
        part("dark-matter", 1.0, Derived, "nobody's"),
        part("left-over", -1.0, Derived, "RSS, less all of the above"),
    ]
}

#[test]
fn what_is_reserved_and_never_touched_is_taken_off_and_put_back_by_huge_pages() {
    let parts = untouched(208.0);
    let samples = bare("", &[219.0, 220.5, 219.2]);
    let explained = Explained {
        sample: &sample(Kind::Explain, ""),
        parts: &parts,
        samples: &samples,
    };
    let text = render(&explained, Format::Terminal, 80);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!("untouched_at_80", text);
    insta::assert_snapshot!(
        "untouched_at_120",
        render(&explained, Format::Terminal, 120)
    );
    insta::assert_snapshot!(
        "untouched_markdown",
        render(&explained, Format::Markdown, 80)
    );
}

#[test]
fn what_an_allocator_keeps_is_named_first() {
    let explained = Explained {
        sample: &sample(Kind::Explain, ""),
        parts: &kept(),
        samples: &[],
    };
    let text = render(&explained, Format::Terminal, 80);
    assert!(
        text.contains("RSS 8516.0 MiB: 6900.0 MiB is freed but kept by the allocator; 980.0 MiB"),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn json_has_every_part_and_its_sum() {
    let parts = untouched(208.0);
    let samples = bare("", &[219.0]);
    let explained = Explained {
        sample: &sample(Kind::Explain, ""),
        parts: &parts,
        samples: &samples,
    };
    let json: serde_json::Value =
        serde_json::from_str(&render(&explained, Format::Json, 80)).unwrap();
    let steps = json["steps"].as_array().unwrap();
    assert_eq!(steps.len(), parts.len());
    assert_eq!(steps.last().unwrap()["sum_bytes"], json["rss_bytes"]);
    let sum: i64 = parts.iter().map(|part| part.bytes).sum();
    assert_eq!(json["rss_bytes"], sum);
    assert_eq!(steps[6]["bytes"], -208 * 1024 * 1024);
    assert_eq!(json["dataset"], "gh-11149");
}

#[test]
fn two_samples_stand_side_by_side() {
    let (first, second) = (untouched(208.0), untouched(0.0));
    let mut samples = bare("", &[219.0, 220.5]);
    samples.extend(bare("MIMALLOC_ALLOW_THP=0", &[11.5, 11.5]));
    let a = Explained {
        sample: &sample(Kind::Explain, ""),
        parts: &first,
        samples: &samples,
    };
    let b = Explained {
        sample: &sample(Kind::Explain, "MIMALLOC_ALLOW_THP=0"),
        parts: &second,
        samples: &samples,
    };
    let text = render_pair(&a, &b, Format::Terminal, 80);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!("pair_at_80", text);
    insta::assert_snapshot!("pair_markdown", render_pair(&a, &b, Format::Markdown, 80));
    let json: serde_json::Value =
        serde_json::from_str(&render_pair(&a, &b, Format::Json, 80)).unwrap();
    let parts = json["differences"].as_array().unwrap();
    let more: i64 = parts
        .iter()
        .filter_map(|part| part["more_bytes"].as_i64())
        .sum();
    assert_eq!(more, -208 * 1024 * 1024);
}
