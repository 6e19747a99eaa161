//! What the types of a sample's fields allow and a sample does not.

use super::{Sample, Status};

/// What the types allow and a sample does not.
pub(super) fn check(sample: &Sample) -> Result<(), (&'static str, String)> {
    let fail = |column, problem| Err((column, problem));
    let seconds = [
        ("wall_s", sample.wall_s),
        ("user_s", sample.user_s),
        ("sys_s", sample.sys_s),
        ("started_s", sample.started_s),
        ("ended_s", sample.ended_s),
    ];
    for (column, value) in seconds {
        if let Some(value) = value.filter(|value| !value.is_finite() || *value < 0.0) {
            return fail(column, format!("{value} is no time"));
        }
    }
    let scales = [
        ("scale_rows", sample.scale_rows),
        ("scale_columns", sample.scale_columns),
    ];
    for (column, value) in scales {
        if !value.is_finite() || value <= 0.0 {
            return fail(column, format!("{value} is no scale"));
        }
    }
    if let Some(error) = sample.memory_size_error
        && (!error.is_finite() || error < 0.0)
    {
        return fail("memory_size_error", format!("{error} is no share"));
    }
    if sample.status != Status::Ok && sample.error.is_empty() {
        return fail("error", "a sample that is not ok must say why".to_owned());
    }
    Ok(())
}
