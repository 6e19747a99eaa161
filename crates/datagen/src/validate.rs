//! What a definition must fulfil beyond its names: sizes that make sense, values
//! that fit their type, encodings that fit both. Messages say what is allowed.

use crate::column::{ColumnGroup, Encoding, List};
use crate::definition::Layout;
use crate::distribution::{Distribution, Prefix, Scalar};
use crate::value_type::{Physical, ValueType};

/// Row groups and columns of an encrypted file are numbered in 16 bits; the
/// same bound serves every file.
pub(crate) const MOST_COLUMNS: usize = i16::MAX as usize;
const MOST_ROW_GROUPS: usize = i16::MAX as usize;
const MOST_ROWS: usize = i32::MAX as usize;
const LEAST_PAGE: usize = 64;
const MOST_PAGE: usize = 1 << 30;
const MOST_VALUES: u128 = 1 << 40;
const MOST_ITEMS: usize = 1 << 20;
const MOST_LENGTH: usize = 16 << 20;
/// Of a text that stands in the definition. The parquet crate encodes 1,024 values
/// before it looks at a page's size; of drawn text it is given fewer at once.
const MOST_GIVEN_LENGTH: usize = 64 << 10;
/// Of one column's values in one row, which are drawn and encoded at once.
const MOST_ROW_BYTES: usize = 64 << 20;
const MOST_DISTINCT: usize = 1 << 20;
const MOST_POOL_BYTES: usize = 64 << 20;

type Checked = Result<(), String>;

fn between(name: &str, value: usize, least: usize, most: usize) -> Checked {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(format!("{name} is {value}, it must be {least} to {most}"))
    }
}

/// Checks `[file]`.
pub(crate) fn layout(layout: &Layout) -> Checked {
    between("row_groups", layout.row_groups, 1, MOST_ROW_GROUPS)?;
    between(
        "rows_per_row_group",
        layout.rows_per_row_group,
        1,
        MOST_ROWS,
    )?;
    between("page_bytes", layout.page_bytes, LEAST_PAGE, MOST_PAGE)?;
    between(
        "dictionary_page_bytes",
        layout.dictionary_page_bytes,
        LEAST_PAGE,
        MOST_PAGE,
    )?;
    if let Some(rows) = layout.page_row_limit {
        between("page_row_limit", rows, 1, MOST_ROWS)?;
    }
    Ok(())
}

/// Checks that the whole is neither empty nor absurd.
pub(crate) fn total(layout: &Layout, columns: &[ColumnGroup]) -> Checked {
    let count: usize = columns.iter().map(|group| group.count).sum();
    between("the number of columns", count, 1, MOST_COLUMNS)?;
    let rows = layout.row_groups as u128 * layout.rows_per_row_group as u128;
    let values: u128 = columns
        .iter()
        .map(|group| {
            let items = group.list.as_ref().map_or(1, |list| list.max_items.max(1));
            rows * group.count as u128 * items as u128
        })
        .sum();
    if values > MOST_VALUES {
        return Err(format!(
            "the file would hold {values} values, more than {MOST_VALUES}; use fewer rows, row groups or columns"
        ));
    }
    Ok(())
}

/// Checks one `[[columns]]` table of a file with so many rows.
pub(crate) fn group(group: &ColumnGroup, rows: u64) -> Checked {
    name(group)?;
    if !(0.0..=1.0).contains(&group.nulls) {
        return Err(format!("nulls is {}, it must be 0.0 to 1.0", group.nulls));
    }
    if group.nulls > 0.0 && !group.optional {
        return Err("nulls needs optional = true".to_owned());
    }
    let physical = group.value_type.physical();
    if !group.encoding.fits(physical) {
        let fitting: Vec<_> = Encoding::ALL
            .iter()
            .filter(|encoding| encoding.fits(physical))
            .map(|encoding| encoding.name())
            .collect();
        return Err(format!(
            "encoding {} does not fit type {}, which takes {}",
            group.encoding.name(),
            group.value_type,
            fitting.join(", ")
        ));
    }
    if group.dictionary && physical == Physical::Boolean {
        return Err("a boolean column has no dictionary; use dictionary = false".to_owned());
    }
    if let Some(list) = &group.list {
        items(list)?;
        let by_row = match &group.values {
            Some(Distribution::Sequence { .. }) => Some(("sequence", "uniform")),
            Some(Distribution::Cycle { .. }) => Some(("cycle", "choices")),
            _ => None,
        };
        if let Some((kind, other)) = by_row {
            return Err(format!(
                "values of kind {kind} go by row, which a list has many items of; use {other}"
            ));
        }
    }
    if let Some(values) = &group.values {
        distribution(values, group.value_type, rows)?;
    }
    row(group)?;
    distinct(group)
}

fn name(group: &ColumnGroup) -> Checked {
    let name = &group.name;
    if name.is_empty() || name.contains('.') || name.chars().any(char::is_control) {
        return Err(format!(
            "column name `{}` must not be empty or hold a dot or control characters",
            name.escape_debug()
        ));
    }
    between("count", group.count, 1, MOST_COLUMNS)?;
    if group.count > 1 && !name.contains("{n}") {
        return Err(format!(
            "column name `{name}` stands for {} columns: put {{n}} where their number goes, as in `{name}{{n}}`",
            group.count
        ));
    }
    Ok(())
}

fn items(list: &List) -> Checked {
    between("list.max_items", list.max_items, 1, MOST_ITEMS)?;
    between("list.min_items", list.min_items, 0, list.max_items)
}

/// Checks the most that a row can take.
fn row(group: &ColumnGroup) -> Checked {
    let items = group.list.as_ref().map_or(1, |list| list.max_items);
    let length = longest_value(group);
    let bytes = items.saturating_mul(length);
    if bytes > MOST_ROW_BYTES {
        return Err(format!(
            "column `{}`: a row of up to {items} items of up to {length} bytes would take {bytes} bytes, more than {MOST_ROW_BYTES}; use fewer items or shorter values",
            group.name
        ));
    }
    Ok(())
}

/// Bytes of the group's longest value.
fn longest_value(group: &ColumnGroup) -> usize {
    let length = |value: &Scalar| value.text().map_or(1, str::len);
    match (&group.values, group.value_type.plain_width()) {
        (_, Some(width)) => width,
        (Some(Distribution::Text { max_length, .. }), None) => *max_length,
        (Some(Distribution::Constant { value }), None) => length(value),
        (Some(Distribution::Choices { values, .. } | Distribution::Cycle { values }), None) => {
            values.iter().map(length).max().unwrap_or(1)
        }
        (None, None) if group.value_type.is_bytes() => crate::distribution::DEFAULT_TEXT.1,
        _ => 1,
    }
}

fn distribution(values: &Distribution, value_type: ValueType, rows: u64) -> Checked {
    match values {
        Distribution::Uniform { min, max } => uniform(min, max, value_type),
        Distribution::Sequence {
            start,
            step,
            repeat,
        } => sequence(*start, *step, *repeat, value_type, rows),
        Distribution::Constant { value } => scalar("value", value, value_type),
        Distribution::Cycle { values } => scalars("cycle", values, value_type),
        Distribution::Choices { values, weights } => {
            scalars("choices", values, value_type)?;
            match weights {
                Some(weights) if weights.len() != values.len() => Err(format!(
                    "there are {} values and {} weights",
                    values.len(),
                    weights.len()
                )),
                Some(weights) if weights.iter().all(|weight| *weight == 0) => {
                    Err("all weights are 0".to_owned())
                }
                _ => Ok(()),
            }
        }
        Distribution::Text {
            min_length,
            max_length,
            prefix,
            prefix_length,
        } => {
            if value_type.physical() != Physical::ByteArray {
                return Err(format!(
                    "values of kind text do not fit type {value_type}, only string and binary"
                ));
            }
            between("max_length", *max_length, 0, MOST_LENGTH)?;
            between("min_length", *min_length, 0, *max_length)?;
            match prefix {
                Prefix::Distinct => between("prefix_length without a prefix", *prefix_length, 0, 0),
                Prefix::Shared => between(
                    "prefix_length of a shared prefix",
                    *prefix_length,
                    1,
                    *min_length,
                ),
                Prefix::Partial => between(
                    "prefix_length of a partial prefix",
                    *prefix_length,
                    1,
                    *max_length,
                ),
            }
        }
    }
}

fn uniform(min: &Scalar, max: &Scalar, value_type: ValueType) -> Checked {
    if value_type.integer_range().is_none()
        && !matches!(value_type, ValueType::Float32 | ValueType::Float64)
    {
        return Err(format!(
            "values of kind uniform do not fit type {value_type}, only numbers and dates"
        ));
    }
    scalar("min", min, value_type)?;
    scalar("max", max, value_type)?;
    let ordered = match (min.integer(), max.integer()) {
        (Some(min), Some(max)) => min <= max,
        _ => min.float() <= max.float(),
    };
    if ordered {
        Ok(())
    } else {
        Err("min is above max".to_owned())
    }
}

fn sequence(start: i64, step: i64, repeat: u64, value_type: ValueType, rows: u64) -> Checked {
    let Some((least, most)) = value_type.integer_range() else {
        return Err(format!(
            "values of kind sequence do not fit type {value_type}, only integers, dates, timestamps and decimals"
        ));
    };
    if repeat == 0 {
        return Err("repeat is 0, it must be at least 1".to_owned());
    }
    let steps = i128::from(rows.saturating_sub(1) / repeat);
    let last = i128::from(start) + i128::from(step) * steps;
    let fits = |value: i128| (i128::from(least)..=i128::from(most)).contains(&value);
    if fits(start.into()) && fits(last) {
        Ok(())
    } else {
        Err(format!(
            "the sequence goes from {start} to {last}, type {value_type} from {least} to {most}"
        ))
    }
}

/// Checks the values that a distribution of `kind` lists.
fn scalars(kind: &str, values: &[Scalar], value_type: ValueType) -> Checked {
    if values.is_empty() {
        return Err(format!("values of kind {kind} need at least one value"));
    }
    values
        .iter()
        .try_for_each(|value| scalar("a value", value, value_type))
}

/// Checks that one value of a definition is one of the type.
fn scalar(what: &str, value: &Scalar, value_type: ValueType) -> Checked {
    if let Some(length) = value.text().map(str::len) {
        between(
            &format!("the length of {what}"),
            length,
            0,
            MOST_GIVEN_LENGTH,
        )?;
    }
    let fits = match value_type {
        ValueType::Boolean => value.boolean().is_some(),
        ValueType::Float32 => value
            .float()
            .is_some_and(|value| value.abs() <= f64::from(f32::MAX)),
        // Half the range, so that max - min is finite.
        ValueType::Float64 => value
            .float()
            .is_some_and(|value| value.abs() <= f64::MAX / 2.0),
        ValueType::String | ValueType::Binary => value.text().is_some(),
        ValueType::FixedBinary { bytes } => value
            .text()
            .is_some_and(|text| text.len() == usize::from(bytes)),
        _ => match (value.integer(), value_type.integer_range()) {
            (Some(value), Some((least, most))) => (least..=most).contains(&value),
            _ => false,
        },
    };
    if fits {
        Ok(())
    } else {
        Err(format!("{what} is not a value of type {value_type}"))
    }
}

fn distinct(group: &ColumnGroup) -> Checked {
    let Some(distinct) = group.distinct else {
        return Ok(());
    };
    between("distinct", distinct, 1, MOST_DISTINCT)?;
    let possible: u128 = match (&group.values, group.value_type) {
        (Some(Distribution::Uniform { min, max }), _) => match (min.integer(), max.integer()) {
            (Some(min), Some(max)) => max.abs_diff(min).into(),
            _ => u128::from(u64::MAX),
        },
        (
            Some(Distribution::Text {
                max_length,
                prefix,
                prefix_length,
                ..
            }),
            value_type,
        ) => {
            let free = match prefix {
                Prefix::Shared => max_length - prefix_length,
                _ => *max_length,
            };
            strings_of(
                free,
                if value_type == ValueType::String {
                    64
                } else {
                    256
                },
            )
        }
        (Some(_), _) => {
            return Err("distinct goes with values of kind uniform or text only, the others say themselves how many there are".to_owned());
        }
        (None, ValueType::Boolean) => 1,
        (None, ValueType::FixedBinary { bytes }) => strings_of(bytes.into(), 256),
        (None, value_type) => match value_type.integer_range() {
            Some((least, most)) => most.abs_diff(least).into(),
            None => u128::from(u64::MAX),
        },
    };
    // `possible` is one less than the number of values.
    if distinct as u128 > possible + 1 {
        return Err(format!(
            "distinct is {distinct}, but only {} values are possible",
            possible + 1
        ));
    }
    let length = longest_value(group);
    if distinct.saturating_mul(length) > MOST_POOL_BYTES {
        return Err(format!(
            "{distinct} distinct values of up to {length} bytes are more than {MOST_POOL_BYTES} bytes to hold; use fewer or shorter ones"
        ));
    }
    Ok(())
}

/// One less than the number of strings of exactly `length`, capped.
fn strings_of(length: usize, letters: u128) -> u128 {
    match length {
        0 => 0,
        1..=8 => letters.pow(length as u32) - 1,
        _ => u128::from(u64::MAX),
    }
}
