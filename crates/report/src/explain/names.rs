//! What parts are called in tables and in sentences.

/// A part's name, its title in a table, and what is said of it: `208.0 MiB` …
const PARTS: [(&str, &str, &str); 27] = [
    ("live-fetch", "fetched pages", "is live: fetched pages"),
    (
        "live-decrypt",
        "decrypted pages",
        "is live: decrypted pages",
    ),
    (
        "live-page",
        "decompressed pages",
        "is live: decompressed pages",
    ),
    (
        "live-kept",
        "pages that arrays hold",
        "is live: pages that arrays alone still hold",
    ),
    ("live-dictionary", "dictionaries", "is live: dictionaries"),
    ("live-codec", "codec contexts", "is live: codec contexts"),
    ("live-output", "the last batch", "is live: the last batch"),
    ("live-metadata", "file metadata", "is live: file metadata"),
    (
        "live-input",
        "batches held back",
        "is live: batches held back",
    ),
    (
        "live-encoder",
        "values under encoding",
        "is live: values under encoding",
    ),
    (
        "live-page-store",
        "finished pages",
        "is live: finished pages",
    ),
    (
        "live-upstream",
        "the parquet crate's",
        "is live: the parquet crate's",
    ),
    ("live-other", "not in the ledger", "is live"),
    ("live-outside-ledger", "not in the ledger", "is live"),
    (
        "never-touched",
        "live, never touched",
        "of the live heap was never touched",
    ),
    (
        "live-never-touched",
        "live, never touched",
        "of the live heap was never touched",
    ),
    (
        "live-swapped-out",
        "live, swapped out",
        "of the live heap is swapped out",
    ),
    (
        "c-heap",
        "C's heap (zstd and others)",
        "is C's heap (zstd and others)",
    ),
    (
        "allocator-metadata",
        "allocator metadata",
        "is the allocator's metadata",
    ),
    (
        "freed-but-kept",
        "freed but kept",
        "is freed but kept by the allocator",
    ),
    (
        "lazily-freed",
        "lazily freed",
        "is freed lazily, and the kernel takes it when memory is short",
    ),
    (
        "huge-page-rounding",
        "huge-page rounding",
        "is huge pages of which only a part was touched",
    ),
    ("mapped-files", "mapped files", "is mapped files"),
    ("file-backed", "mapped files", "is mapped files"),
    (
        "stacks-and-binary",
        "stacks and the binary",
        "is stacks and the binary",
    ),
    (
        "own-tables",
        "what explaining takes",
        "is what explaining takes itself",
    ),
    ("left-over", "left over", "is left over: nobody knows what"),
];

fn find(part: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    PARTS.iter().find(|(name, ..)| *name == part)
}

/// What a part is called in tables; its name where it is unknown.
pub(super) fn title(part: &str) -> &str {
    find(part).map_or(part, |(_, title, _)| title)
}

/// What is said of a part behind its size.
pub(super) fn said(part: &str) -> String {
    find(part).map_or_else(|| format!("is {part}"), |(.., said)| (*said).to_owned())
}

/// Whether a part is a part of the live heap, and not what is missing of it in the RSS.
pub(super) fn is_live(part: &str) -> bool {
    part.starts_with("live-") && !matches!(part, "live-never-touched" | "live-swapped-out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_part_is_shown_as_it_is() {
        assert_eq!(title("dark-matter"), "dark-matter");
        assert_eq!(said("dark-matter"), "is dark-matter");
        assert!(is_live("live-dark-matter"));
    }

    #[test]
    fn titles_leave_room_for_bars() {
        assert!(PARTS.iter().all(|(_, title, _)| title.len() <= 26));
    }
}
