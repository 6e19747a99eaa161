//! Tables as text: named rows, columns that are put side by side as far as the width allows.
//!
//! It knows nothing of metrics; what stands in a field is made in [`super::panel`].

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle, presets};

/// A rule below the heading and nothing else: what is left to see are the figures.
const PLAIN: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Between one panel and the next where panels have several columns.
const DIVIDER: &str = "│";

/// What lies between two columns.
const GAP: usize = 2;

/// A heading, whose lines may be several, and a field for each row.
pub(crate) struct Column {
    pub(crate) heading: String,
    pub(crate) fields: Vec<String>,
    pub(crate) align: Align,
}

/// To which side a column's fields are put.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// For names.
    Left,
    /// For figures.
    Right,
}

/// The rows of a table: their names, and lines that stand before some of them.
pub(crate) struct Rows {
    pub(crate) heading: String,
    pub(crate) names: Vec<String>,
    pub(crate) groups: Vec<(usize, String)>,
}

impl Column {
    pub(crate) fn width(&self) -> usize {
        widest(
            self.heading
                .lines()
                .chain(self.fields.iter().map(String::as_str)),
        )
    }
}

impl Rows {
    pub(crate) fn width(&self) -> usize {
        let names = self.names.iter().map(String::as_str);
        widest(names.chain([self.heading.as_str()]))
    }
}

/// What columns take up beside others.
pub(crate) fn width(columns: &[Column]) -> usize {
    columns.iter().map(|column| GAP + column.width()).sum()
}

/// Puts panels side by side, and begins a new table where the next has no room.
pub(crate) fn pack(rows: &Rows, panels: Vec<Vec<Column>>, room: usize, divided: bool) -> String {
    let divider = || Column {
        heading: DIVIDER.to_owned(),
        fields: vec![DIVIDER.to_owned(); rows.names.len()],
        align: Align::Left,
    };
    let mut tables = Vec::new();
    let mut columns: Vec<Column> = Vec::new();
    for mut panel in panels {
        if divided && !columns.is_empty() {
            panel.insert(0, divider());
        }
        if !columns.is_empty() && rows.width() + width(&columns) + width(&panel) > room {
            tables.push(terminal(rows, &columns));
            columns.clear();
            panel.retain(|column| column.heading != DIVIDER);
        }
        columns.extend(panel);
    }
    tables.push(terminal(rows, &columns));
    tables.join("\n")
}

/// One table for the terminal.
pub(crate) fn terminal(rows: &Rows, columns: &[Column]) -> String {
    let lines = columns.iter().map(|column| column.heading.lines().count());
    let lines = lines.max().unwrap_or(1);
    let heading = |column: &Column| match column.heading.as_str() {
        DIVIDER => vec![DIVIDER; lines].join("\n"),
        heading => heading.to_owned(),
    };
    let mut table = table(rows, columns, PLAIN, heading, Clone::clone);
    let aligns = columns.iter().map(|column| column.align);
    let aligns = [Align::Left].into_iter().chain(aligns);
    for (column, align) in table.column_iter_mut().zip(aligns) {
        // The style takes one space of each gap.
        column.set_padding((if column.index == 0 { 0 } else { 1 }, 0));
        column.set_cell_alignment(match align {
            Align::Left => CellAlignment::Left,
            Align::Right => CellAlignment::Right,
        });
    }
    let mut lines = lines_of(&table);
    // Heading and rule stand above the rows. Later groups first, so that places hold.
    let above = lines.len().saturating_sub(rows.names.len());
    for (row, name) in rows.groups.iter().rev() {
        lines.insert(above + row, name.clone());
    }
    lines.join("\n") + "\n"
}

/// One table for a document.
pub(crate) fn markdown(rows: &Rows, columns: &[Column]) -> String {
    let escape = |text: &String| text.replace('|', "\\|");
    let heading = |column: &Column| escape(&column.heading);
    let table = table(rows, columns, presets::ASCII_MARKDOWN, heading, escape);
    lines_of(&table).join("\n") + "\n"
}

fn table(
    rows: &Rows,
    columns: &[Column],
    style: TableStyle,
    heading: impl Fn(&Column) -> String,
    field: impl Fn(&String) -> String,
) -> Table {
    let mut table = Table::new();
    table.load_style(style);
    let headings = columns.iter().map(heading);
    table.set_header([rows.heading.clone()].into_iter().chain(headings));
    for (place, name) in rows.names.iter().enumerate() {
        let fields = columns.iter().filter_map(|column| column.fields.get(place));
        table.add_row([name].into_iter().chain(fields).map(&field));
    }
    table
}

fn lines_of(table: &Table) -> Vec<String> {
    let lines = table.lines();
    lines.map(|line| line.trim_end().to_owned()).collect()
}

fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}
