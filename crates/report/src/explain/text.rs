//! Waterfalls as text: one sample's, or those of two beside one another.

use super::{Explained, Step, Waterfall, names};
use crate::cell::{Block, Cell, Lane};
use crate::format;
use crate::parts::Source;
use crate::table::grid::{self, Align, Column, Rows};
use crate::table::{Format, text};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a bar is drawn with: what a sum is, what adds to it, what takes from it.
const SUM: char = '█';
const ADDS: char = '▒';
const TAKES: char = '░';

/// The waterfall of one sample; a terminal's is `width` columns wide.
#[must_use]
pub fn render(explained: &Explained<'_>, format: Format, width: usize) -> String {
    let (cell, waterfall) = explained.waterfall();
    if format == Format::Json {
        return json(&Named::new(&cell, &waterfall));
    }
    let lines = lines(&waterfall);
    let column = |heading: &str, align, field: &dyn Fn(&Line) -> String| Column {
        heading: heading.to_owned(),
        fields: lines.iter().map(field).collect(),
        align,
    };
    let rows = Rows {
        heading: "part".to_owned(),
        names: lines.iter().map(|line| line.name.clone()).collect(),
        groups: Vec::new(),
    };
    let mut columns = vec![
        column("MiB", Align::Right, &|line| line.number()),
        column("sum MiB", Align::Right, &|line| {
            line.sum
                .map_or_else(String::new, |sum| format::mib_number(sum as f64))
        }),
        column("known as", Align::Left, &|line| line.source.to_owned()),
    ];
    let title = heading(&cell);
    let below = [waterfall.text.clone(), beside_bare(&waterfall)];
    if format == Format::Markdown {
        columns.push(column("from", Align::Left, &|line| line.how.clone()));
        let below: String = below.iter().map(|line| format!("\n- {line}")).collect();
        return format!(
            "### {title}\n\n{}{below}\n",
            grid::markdown(&rows, &columns)
        );
    }
    let bars = room(&rows, &columns, width);
    let most = lines.iter().map(|line| line.from.max(line.to)).max();
    columns.push(column(
        &format!("{ADDS} adds {TAKES} takes"),
        Align::Left,
        &|line| bar(line.from, line.to, most.unwrap_or(0), line.mark, bars),
    ));
    let mut out = text::wrapped(&title, " ", width);
    out.push_str(&grid::terminal(&rows, &columns));
    for line in &below {
        out.push_str(&text::wrapped(line, " ", width));
    }
    out.push_str("From what each part is known:\n");
    for line in lines.iter().filter(|line| !line.how.is_empty()) {
        let from = format!("- {}: {}", line.name.trim_start(), line.how);
        out.push_str(&text::wrapped(&from, " ", width));
    }
    out
}

/// The waterfalls of two samples, part by part, with what the second has more or less.
#[must_use]
pub fn render_pair(
    first: &Explained<'_>,
    second: &Explained<'_>,
    format: Format,
    width: usize,
) -> String {
    let ((cell_a, a), (cell_b, b)) = (first.waterfall(), second.waterfall());
    let differences = differences(&a, &b);
    let said = compared(&a, &b, &differences);
    if format == Format::Json {
        return json(&Pair {
            first: Named::new(&cell_a, &a),
            second: Named::new(&cell_b, &b),
            differences: &differences,
            text: &said,
        });
    }
    let tiny = a.tiny().max(b.tiny());
    let lines = pair_lines(&a, &b, &differences, tiny);
    let column = |heading: &str, field: &dyn Fn(&PairLine) -> String| Column {
        heading: heading.to_owned(),
        fields: lines.iter().map(field).collect(),
        align: Align::Right,
    };
    let rows = Rows {
        heading: "part".to_owned(),
        names: lines.iter().map(|line| line.name.clone()).collect(),
        groups: Vec::new(),
    };
    let number = |bytes: i64| plain(bytes);
    let mut columns = vec![
        column("A MiB", &|line| number(line.first)),
        column("B MiB", &|line| number(line.second)),
        column("B − A", &|line| signed(line.second - line.first)),
    ];
    let titles = [
        format!("A: {}", heading(&cell_a)),
        format!("B: {}", heading(&cell_b)),
    ];
    let below = [
        said,
        format!("A: {}", beside_bare(&a)),
        format!("B: {}", beside_bare(&b)),
    ];
    if format == Format::Markdown {
        let below: String = below.iter().map(|line| format!("\n- {line}")).collect();
        return format!(
            "### {}\n\n{}{below}\n",
            titles.join(" · "),
            grid::markdown(&rows, &columns)
        );
    }
    let bars = room(&rows, &columns, width);
    let most = lines
        .iter()
        .map(|line| (line.second - line.first).abs())
        .max();
    columns.push(Column {
        heading: format!("{ADDS} more {TAKES} less"),
        fields: lines
            .iter()
            .map(|line| {
                let more = line.second - line.first;
                let mark = if more < 0 { TAKES } else { ADDS };
                bar(0, more.abs(), most.unwrap_or(0), mark, bars)
            })
            .collect(),
        align: Align::Left,
    });
    let mut out: String = titles
        .iter()
        .map(|title| text::wrapped(title, " ", width))
        .collect();
    out.push_str(&grid::terminal(&rows, &columns));
    for line in &below {
        out.push_str(&text::wrapped(line, " ", width));
    }
    out
}

/// The largest parts in one sentence, those of the live heap as one.
pub(super) fn largest(rss: i64, live: i64, steps: &[Step]) -> String {
    const MOST: usize = 4;
    let mut parts: Vec<(i64, String)> = steps
        .iter()
        .filter(|step| !step.live)
        .map(|step| (step.bytes, names::said(&step.part)))
        .collect();
    parts.push((live, "is live heap".to_owned()));
    parts.sort_by_key(|(bytes, _)| -bytes.abs());
    let told: Vec<String> = parts
        .into_iter()
        .filter(|(bytes, _)| bytes.abs() * 20 >= rss && *bytes != 0)
        .take(MOST)
        .map(|(bytes, said)| {
            let lead = if bytes < 0 && !said.starts_with("of ") {
                "minus "
            } else {
                ""
            };
            format!("{lead}{} {said}", format::mib(bytes.unsigned_abs()))
        })
        .collect();
    let rss = format!("RSS {} MiB", plain(rss));
    if told.is_empty() {
        return format!("{rss}: there are no parts.");
    }
    format!("{rss}: {}.", told.join("; "))
}

/// What was measured, in one line.
fn heading(cell: &Cell) -> String {
    format!("{}: {}", text::block_title(&cell.block), cell.lane)
}

fn beside_bare(waterfall: &Waterfall) -> String {
    let (Some(bare), Some(above)) = (waterfall.bare_max_rss_bytes, waterfall.above_bare_bytes)
    else {
        return "There is no bare sample of the same to hold it against.".to_owned();
    };
    let side = if above < 0.0 { "below" } else { "above" };
    let own = waterfall
        .steps
        .iter()
        .find(|step| step.part == "own-tables" && step.bytes >= waterfall.tiny());
    let own = own.map_or_else(String::new, |step| {
        format!(
            ", {} MiB of which is what explaining takes itself",
            plain(step.bytes)
        )
    });
    format!(
        "Bare max RSS: {} MiB (+{}) over {}; this sample is {} MiB {side} the smallest{own}.",
        format::mib_number(bare.min),
        format::mib_number(bare.spread()),
        format::plural(bare.samples as u64, "sample"),
        format::mib_number(above.abs()),
    )
}

/// One line of a waterfall's table.
struct Line {
    name: String,
    bytes: i64,
    sum: Option<i64>,
    source: &'static str,
    how: String,
    /// Where its bar begins and ends, in bytes.
    from: i64,
    to: i64,
    mark: char,
}

impl Line {
    fn number(&self) -> String {
        if self.mark == SUM || self.sum.is_none() {
            plain(self.bytes)
        } else {
            signed(self.bytes)
        }
    }

    fn sum(name: &str, bytes: i64) -> Self {
        Self {
            name: name.to_owned(),
            bytes,
            sum: Some(bytes),
            source: "",
            how: String::new(),
            from: 0,
            to: bytes,
            mark: SUM,
        }
    }
}

/// Live heap with its parts, the other parts, and the RSS; what is tiny is one line of either.
fn lines(waterfall: &Waterfall) -> Vec<Line> {
    let mut lines = vec![Line::sum("live heap", waterfall.live_bytes)];
    let mut sum = 0;
    for live in [true, false] {
        let steps = waterfall.steps.iter().filter(|step| step.live == live);
        let (tiny, large): (Vec<&Step>, Vec<&Step>) = steps.partition(|step| {
            // What is left over says how far the rest is to be believed.
            step.bytes.abs() < waterfall.tiny() && step.part != "left-over"
        });
        // One alone needs no line that hides it.
        let (tiny, large) = if tiny.len() == 1 {
            let all = waterfall.steps.iter().filter(|step| step.live == live);
            (Vec::new(), all.collect())
        } else {
            (tiny, large)
        };
        let indent = if live { "  " } else { "" };
        let mut line = |name: String, bytes: i64, source, how: String| {
            sum += bytes;
            lines.push(Line {
                name: format!("{indent}{name}"),
                bytes,
                sum: (!live).then_some(sum),
                source,
                how,
                from: sum - bytes,
                to: sum,
                mark: if bytes < 0 { TAKES } else { ADDS },
            });
        };
        let (left_over, large): (Vec<&Step>, Vec<&Step>) =
            large.into_iter().partition(|step| step.part == "left-over");
        for step in large {
            line(
                step.title.clone(),
                step.bytes,
                source(step.source),
                step.how.clone(),
            );
        }
        if !tiny.is_empty() {
            let of = |step: &&Step| format!("{} {}", step.title, plain(step.bytes));
            line(
                format::plural(tiny.len() as u64, "smaller part"),
                tiny.iter().map(|step| step.bytes).sum(),
                "",
                tiny.iter().map(of).collect::<Vec<_>>().join(", "),
            );
        }
        for step in left_over {
            line(
                step.title.clone(),
                step.bytes,
                source(step.source),
                step.how.clone(),
            );
        }
    }
    lines.push(Line::sum("RSS", waterfall.rss_bytes));
    lines
}

fn source(source: Source) -> &'static str {
    match source {
        Source::Measured => "measured",
        Source::Derived => "derived",
    }
}

/// A waterfall for a program.
#[derive(Serialize)]
struct Named<'a> {
    #[serde(flatten)]
    block: &'a Block,
    #[serde(flatten)]
    lane: &'a Lane,
    #[serde(flatten)]
    waterfall: &'a Waterfall,
}

impl<'a> Named<'a> {
    fn new(cell: &'a Cell, waterfall: &'a Waterfall) -> Self {
        Self {
            block: &cell.block,
            lane: &cell.lane,
            waterfall,
        }
    }
}

/// Two waterfalls for a program.
#[derive(Serialize)]
struct Pair<'a> {
    first: Named<'a>,
    second: Named<'a>,
    differences: &'a [Difference],
    text: &'a str,
}

/// One part of two samples.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Difference {
    part: String,
    title: String,
    live: bool,
    first_bytes: i64,
    second_bytes: i64,
    more_bytes: i64,
}

/// Part by part, in the order of the first; what only the second has stands last of its like.
fn differences(a: &Waterfall, b: &Waterfall) -> Vec<Difference> {
    let bytes = |waterfall: &Waterfall| -> BTreeMap<String, i64> {
        let steps = waterfall.steps.iter();
        steps.map(|step| (step.part.clone(), step.bytes)).collect()
    };
    let (first, second) = (bytes(a), bytes(b));
    let only_second = b
        .steps
        .iter()
        .filter(|step| !first.contains_key(&step.part));
    let mut steps: Vec<&Step> = a.steps.iter().chain(only_second).collect();
    steps.sort_by_key(|step| (!step.live, step.part == "left-over"));
    let difference = |step: &Step| {
        let of = |parts: &BTreeMap<String, i64>| parts.get(&step.part).copied().unwrap_or(0);
        Difference {
            part: step.part.clone(),
            title: step.title.clone(),
            live: step.live,
            first_bytes: of(&first),
            second_bytes: of(&second),
            more_bytes: of(&second) - of(&first),
        }
    };
    steps.into_iter().map(difference).collect()
}

/// One line of the table of two samples.
struct PairLine {
    name: String,
    first: i64,
    second: i64,
}

fn pair_lines(a: &Waterfall, b: &Waterfall, parts: &[Difference], tiny: i64) -> Vec<PairLine> {
    let line = |name: &str, first: i64, second: i64| PairLine {
        name: name.to_owned(),
        first,
        second,
    };
    let mut lines = vec![line("live heap", a.live_bytes, b.live_bytes)];
    for live in [true, false] {
        let indent = if live { "  " } else { "" };
        let of_kind = parts.iter().filter(|part| part.live == live);
        let (small, large): (Vec<&Difference>, Vec<&Difference>) = of_kind.partition(|part| {
            part.first_bytes.abs().max(part.second_bytes.abs()) < tiny && part.part != "left-over"
        });
        let mut push = |name: &str, first, second| {
            lines.push(line(&format!("{indent}{name}"), first, second));
        };
        let is_last = |part: &&&Difference| part.part == "left-over";
        for part in large.iter().filter(|part| !is_last(part)) {
            push(&part.title, part.first_bytes, part.second_bytes);
        }
        if !small.is_empty() {
            push(
                &format::plural(small.len() as u64, "smaller part"),
                small.iter().map(|part| part.first_bytes).sum(),
                small.iter().map(|part| part.second_bytes).sum(),
            );
        }
        for part in large.iter().filter(is_last) {
            push(&part.title, part.first_bytes, part.second_bytes);
        }
    }
    lines.push(line("RSS", a.rss_bytes, b.rss_bytes));
    lines
}

/// By which parts two samples differ most.
fn compared(a: &Waterfall, b: &Waterfall, parts: &[Difference]) -> String {
    const MOST: usize = 4;
    let more = b.rss_bytes - a.rss_bytes;
    let side = if more < 0 { "less" } else { "more" };
    let tiny = a.tiny().max(b.tiny());
    let mut parts: Vec<&Difference> = parts
        .iter()
        .filter(|part| part.more_bytes.abs() >= tiny)
        .collect();
    parts.sort_by_key(|part| -part.more_bytes.abs());
    let told = parts
        .iter()
        .map(|part| format!("{} {} MiB", part.title, signed(part.more_bytes)));
    let lead = format!("B has {} MiB {side} RSS", plain(more.abs()));
    if parts.is_empty() {
        return format!(
            "{lead}, and no part differs by more than {} MiB.",
            plain(tiny)
        );
    }
    format!("{lead}: {}.", format::listed(told, MOST))
}

/// How many columns are left for bars.
fn room(rows: &Rows, columns: &[Column], width: usize) -> usize {
    let taken = rows.width() + grid::width(columns) + 2;
    width.saturating_sub(taken).clamp(12, 60)
}

/// A bar from one figure to another, on a scale that ends at `most`. What is anything at all is seen.
fn bar(from: i64, to: i64, most: i64, mark: char, width: usize) -> String {
    let place = |bytes: i64| {
        let share = bytes.max(0) as f64 / most.max(1) as f64;
        ((share * width as f64).round() as usize).min(width)
    };
    let (low, high) = (place(from.min(to)), place(from.max(to)));
    let low = low.min(width - 1);
    let length = (high.saturating_sub(low)).max(usize::from(from != to));
    " ".repeat(low) + &mark.to_string().repeat(length)
}

fn plain(bytes: i64) -> String {
    format::mib_number(bytes as f64)
}

/// Bytes as MiB with their sign.
fn signed(bytes: i64) -> String {
    let number = plain(bytes);
    if bytes < 0 || number == "0.0" {
        number
    } else {
        format!("+{number}")
    }
}

fn json<T: Serialize>(value: &T) -> String {
    // Strings and finite numbers only: there is nothing in it that JSON cannot say.
    let json = serde_json::to_string_pretty(value);
    json.map_or_else(
        |error| format!("{{\"error\": \"{error}\"}}\n"),
        |json| json + "\n",
    )
}
