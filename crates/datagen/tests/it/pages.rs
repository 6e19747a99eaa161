//! The page sizes that files turn out to have.

use alloquet_datagen::{Spread, generate};

use crate::support::{scaled, with};

#[test]
fn pages_of_wide_float_have_one_mebibyte_exactly() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["wide-float", "wide-float-encrypted"] {
        let dataset = scaled(name, 0.5, 0.004);
        let report = generate(&dataset, folder.path(), &()).unwrap().report;
        assert_eq!(report.columns, 4, "{name}");
        assert_eq!(report.data_pages.count, 4 * 2 * 2, "{name}");
        let exactly = |value| Spread {
            min: value,
            median: value,
            max: value,
        };
        assert_eq!(report.data_pages.page_bytes, exactly(1 << 20), "{name}");
        assert_eq!(report.data_pages.rows, exactly(262_144), "{name}");
        assert!(report.dictionary_pages.is_none());
    }
}

#[test]
fn encryption_adds_its_framing_to_each_stored_page() {
    let folder = tempfile::tempdir().unwrap();
    let stored = |name: &str| {
        let dataset = scaled(name, 0.1, 0.01);
        generate(&dataset, folder.path(), &()).unwrap().report
    };
    let (plain, encrypted) = (stored("wide-float"), stored("wide-float-encrypted"));
    for (plain, encrypted) in plain.column_pages.iter().zip(&encrypted.column_pages) {
        assert_eq!(plain.column, encrypted.column);
        assert_eq!(plain.largest_page_bytes, encrypted.largest_page_bytes);
        assert_eq!(
            plain.largest_stored_page_bytes + 32,
            encrypted.largest_stored_page_bytes
        );
    }
}

#[test]
fn pages_of_lists_are_counted_in_rows() {
    let folder = tempfile::tempdir().unwrap();
    for version in [1, 2] {
        let dataset = with(
            &format!(
                "row_groups = 1\nrows_per_row_group = 3_000\npage_bytes = 1_048_576\npage_row_limit = 700\ndata_page_version = {version}\ncompression = 'none'"
            ),
            "[[columns]]\nname = 'l'\ntype = 'int32'\nlist = { min_items = 2, max_items = 4 }\n",
        );
        let pages = generate(&dataset, folder.path(), &())
            .unwrap()
            .report
            .data_pages;
        assert_eq!(pages.count, 5, "version {version}");
        assert_eq!(
            pages.rows,
            Spread {
                min: 200,
                median: 700,
                max: 700
            },
            "version {version}"
        );
    }
}
