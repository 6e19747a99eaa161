//! The table of one block: how its panels are laid out for a terminal and for a document.

use super::grid::{self, Align, Column, Rows};
use super::panel::{Field, Panel, Whose};
use crate::cell::Setup;
use crate::summary::BlockSummary;

/// Widest line of a setup's heading before it is broken.
const HEADING_WIDTH: usize = 22;

/// A block for the terminal: setups across where every panel has room for them all, and otherwise
/// below one another.
pub(super) fn terminal(block: &BlockSummary, panels: &[Panel], room: usize) -> String {
    if block.strategies.len() == 1 || block.setups.len() == 1 {
        let (rows, columns) = metrics_across(block, panels, aligned);
        let columns = columns.into_iter().map(|column| vec![column]);
        return grid::pack(&rows, columns.collect(), room, false);
    }
    let rows = strategies(block);
    let across: Vec<Vec<Column>> = panels.iter().map(across).collect();
    if across
        .iter()
        .all(|columns| rows.width() + grid::width(columns) <= room)
    {
        return grid::pack(&rows, across, room, true);
    }
    let (rows, columns) = stacked(block, panels);
    grid::pack(&rows, columns, room, false)
}

/// A block for a document: one table a metric where there are several setups and strategies, one
/// in all otherwise.
pub(super) fn markdown(block: &BlockSummary, panels: &[Panel]) -> String {
    if block.strategies.len() == 1 || block.setups.len() == 1 {
        let (rows, columns) = metrics_across(block, panels, in_markdown);
        return grid::markdown(&rows, &columns);
    }
    let mut tables = Vec::new();
    for panel in panels {
        let rows = Rows {
            heading: panel.title.clone(),
            ..strategies(block)
        };
        let columns = panel.columns();
        let columns: Vec<Column> = columns
            .map(|(whose, fields)| {
                let heading = match whose {
                    Whose::Setup(setup) => setup.to_string(),
                    Whose::All(all) => all.to_owned(),
                };
                column(heading, in_markdown(fields.iter().collect()))
            })
            .collect();
        tables.push(grid::markdown(&rows, &columns));
    }
    tables.join("\n")
}

/// Strategies down, or setups where there is but one strategy; each panel is one column.
fn metrics_across(
    block: &BlockSummary,
    panels: &[Panel],
    texts: fn(Vec<&Field>) -> Vec<String>,
) -> (Rows, Vec<Column>) {
    let by_setup = block.setups.len() > 1;
    let rows = if by_setup {
        Rows {
            heading: "allocator".to_owned(),
            names: block.setups.iter().map(ToString::to_string).collect(),
            groups: Vec::new(),
        }
    } else {
        strategies(block)
    };
    let fields = |panel: &Panel| {
        let fields = (0..rows.names.len()).map(|row| match by_setup {
            true => panel.field(row, 0),
            false => panel.field(0, row),
        });
        texts(fields.collect())
    };
    let columns = panels
        .iter()
        .map(|panel| column(panel.title.clone(), fields(panel)));
    let columns = columns.collect();
    (rows, columns)
}

fn column(heading: String, fields: Vec<String>) -> Column {
    Column {
        heading,
        fields,
        align: Align::Right,
    }
}

fn strategies(block: &BlockSummary) -> Rows {
    Rows {
        heading: "strategy".to_owned(),
        names: block.strategies.iter().map(ToString::to_string).collect(),
        groups: Vec::new(),
    }
}

/// A panel's columns, one a setup, or one for all; the metric is named once, above the first.
fn across(panel: &Panel) -> Vec<Column> {
    let columns = panel.columns().enumerate();
    columns
        .map(|(place, (whose, fields))| {
            let title = if place == 0 { &panel.title } else { " " };
            let lines = match whose {
                Whose::Setup(setup) => setup_lines(setup).join("\n"),
                Whose::All(all) => all.to_owned(),
            };
            let heading = format!("{title}\n{lines}");
            column(heading, aligned(fields.iter().collect()))
        })
        .collect()
}

/// All setups below one another, each under its own line; each panel is one column.
fn stacked(block: &BlockSummary, panels: &[Panel]) -> (Rows, Vec<Vec<Column>>) {
    // Lanes without a sample have no row here: with many settings most would be empty.
    let mut rows = Rows {
        names: Vec::new(),
        ..strategies(block)
    };
    let mut there = Vec::new();
    for (column, setup) in block.setups.iter().enumerate() {
        rows.groups.push((rows.names.len(), setup.to_string()));
        for (row, strategy) in block.strategies.iter().enumerate() {
            if block.cell(strategy, setup).is_some() {
                rows.names.push(format!("  {strategy}"));
                there.push((column, row));
            }
        }
    }
    let columns = panels.iter().map(|panel| {
        let fields = there.iter().map(|(column, row)| panel.field(*column, *row));
        vec![column(panel.title.clone(), aligned(fields.collect()))]
    });
    let columns = columns.collect();
    (rows, columns)
}

fn setup_lines(setup: &Setup) -> Vec<String> {
    let mut lines = vec![setup.title()];
    for setting in setup.short_settings() {
        let mut line = String::new();
        for piece in setting.split_inclusive(['=', ',', ':']) {
            if !line.is_empty() && line.chars().count() + piece.chars().count() > HEADING_WIDTH {
                lines.push(std::mem::take(&mut line));
            }
            line.push_str(piece);
        }
        lines.push(line);
    }
    lines
}

/// Fields with their numbers right below one another, whatever follows them.
fn aligned(fields: Vec<&Field>) -> Vec<String> {
    let marked = fields.iter().any(|field| field.lowest);
    let rests = fields.iter().map(|field| field.rest.chars().count()).max();
    let rests = rests.unwrap_or(0);
    fields
        .iter()
        .map(|field| {
            let mark = match (marked, field.lowest) {
                (_, true) => "*",
                (true, false) => " ",
                (false, false) => "",
            };
            format!("{}{mark}{:<rests$}", field.number, field.rest)
        })
        .collect()
}

fn in_markdown(fields: Vec<&Field>) -> Vec<String> {
    fields.into_iter().map(Field::markdown).collect()
}
