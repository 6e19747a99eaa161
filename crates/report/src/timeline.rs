//! Memory over time, drawn: for a terminal as bars of text, for a document as SVG.

use crate::format;
use crate::series::Point;

/// Eighths of a line, from below.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Lines of one graph.
const HEIGHT: usize = 8;

/// Between the graph and its figures.
const MARGIN: usize = 14;

/// One line over time: a name, and a figure in bytes for some of the points.
struct Curve {
    name: &'static str,
    colour: &'static str,
    figure: fn(&Point) -> Option<u64>,
}

const CURVES: [Curve; 2] = [
    Curve {
        name: "RSS",
        colour: "#b5472a",
        figure: |point| Some(point.rss_bytes),
    },
    Curve {
        name: "live heap",
        colour: "#2a6fb5",
        figure: |point| point.heap_live_bytes,
    },
];

/// RSS and live heap of a `timeline` sample as text of `width` columns, both to one scale; a column shows the largest
/// figure of its time. Empty where there are no points.
#[must_use]
pub fn render(points: &[Point], width: usize) -> String {
    let Some((start, end, most)) = extent(points) else {
        return String::new();
    };
    let columns = width.saturating_sub(MARGIN).clamp(10, 200);
    let mut out = String::new();
    for curve in CURVES {
        let mut largest: Vec<Option<u64>> = vec![None; columns];
        for point in points {
            let place = ((point.at_s - start) / (end - start) * columns as f64) as usize;
            let column = &mut largest[place.min(columns - 1)];
            *column = (*column).max((curve.figure)(point));
        }
        let Some(peak) = largest.iter().flatten().max().copied() else {
            continue;
        };
        out.push_str(&format!("{}: at most {}\n", curve.name, format::mib(peak)));
        // Where nobody looked it is as it was.
        let mut last = 0;
        let heights: Vec<usize> = largest
            .iter()
            .map(|figure| {
                last = figure.unwrap_or(last);
                (last as f64 / most as f64 * (HEIGHT * 8) as f64).round() as usize
            })
            .collect();
        for line in (0..HEIGHT).rev() {
            let label = match line {
                0 => "0.0 MiB".to_owned(),
                line if line == HEIGHT - 1 => format::mib(most),
                _ => String::new(),
            };
            let bars = heights.iter().map(|height| {
                let eighths = height.saturating_sub(line * 8).min(8);
                EIGHTHS[eighths]
            });
            let line = format!("{label:>12} │{}", bars.collect::<String>());
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
    let seconds = format!("{} s", format::seconds(end - start));
    out.push_str(&format!("{:>13}0{seconds:>rest$}\n", "", rest = columns));
    out
}

/// The same as a picture in SVG, with its title, axes and a name at each curve. Empty where there are no points.
#[must_use]
pub fn svg(points: &[Point], title: &str) -> String {
    const SIZE: (f64, f64) = (800.0, 400.0);
    const PLOT: (f64, f64, f64, f64) = (80.0, 40.0, 780.0, 360.0);
    let Some((start, end, most)) = extent(points) else {
        return String::new();
    };
    let (left, top, right, bottom) = PLOT;
    let x = |at_s: f64| left + (at_s - start) / (end - start) * (right - left);
    let y = |bytes: f64| bottom - bytes / most as f64 * (bottom - top);
    let text = |x: f64, y: f64, anchor: &str, colour: &str, text: &str| {
        format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{}</text>\n",
            escaped(text)
        )
    };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        SIZE.0, SIZE.1
    );
    out.push_str(&text(left, 24.0, "start", "black", title));
    for quarter in 0..=4 {
        let bytes = most as f64 * f64::from(quarter) / 4.0;
        let line = y(bytes);
        out.push_str(&format!(
            "<path d=\"M{left} {line:.1}H{right}\" stroke=\"#ddd\"/>\n"
        ));
        let label = format!("{} MiB", format::mib_number(bytes));
        out.push_str(&text(left - 6.0, line + 4.0, "end", "black", &label));
    }
    let seconds = format!("{} s", format::seconds(end - start));
    out.push_str(&text(left, bottom + 18.0, "start", "black", "0"));
    out.push_str(&text(right, bottom + 18.0, "end", "black", &seconds));
    for (place, curve) in CURVES.iter().enumerate() {
        let drawn = points.iter().filter_map(|point| {
            let bytes = (curve.figure)(point)?;
            Some(format!("{:.1},{:.1}", x(point.at_s), y(bytes as f64)))
        });
        let drawn: Vec<String> = drawn.collect();
        if drawn.is_empty() {
            continue;
        }
        out.push_str(&format!(
            "<polyline fill=\"none\" stroke=\"{}\" points=\"{}\"/>\n",
            curve.colour,
            drawn.join(" ")
        ));
        let at = right - 80.0 * place as f64;
        out.push_str(&text(at, 24.0, "end", curve.colour, curve.name));
    }
    out.push_str("</svg>\n");
    out
}

/// First and last time, in seconds, and the largest figure, in bytes.
fn extent(points: &[Point]) -> Option<(f64, f64, u64)> {
    let (first, last) = (points.first()?, points.last()?);
    let figures = points
        .iter()
        .flat_map(|point| CURVES.iter().filter_map(|curve| (curve.figure)(point)));
    // Of a single point the picture is flat; it must not be without extent.
    let end = last.at_s.max(first.at_s + 1e-3);
    Some((first.at_s, end, figures.max()?.max(1)))
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second: RSS rises to 64 MiB and stays, the heap falls back to 8 MiB.
    fn points() -> Vec<Point> {
        (0..=100)
            .map(|n: u32| Point {
                phase: "work".to_owned(),
                point: n,
                at_s: f64::from(n) / 100.0,
                rss_bytes: u64::from(n.min(64)) << 20,
                lazy_free_bytes: None,
                heap_live_bytes: Some(u64::from(if n < 60 { n } else { 8 }) << 20),
            })
            .collect()
    }

    #[test]
    fn a_terminal_gets_both_curves_to_one_scale() {
        insta::assert_snapshot!(render(&points(), 80));
        assert!(
            render(&points(), 80)
                .lines()
                .all(|line| line.chars().count() <= 80)
        );
    }

    #[test]
    fn a_document_gets_a_picture() {
        let picture = svg(&points(), "read <gh> & more");
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
        assert!(picture.contains("read &lt;gh&gt; &amp; more"));
        assert_eq!(picture.matches("<polyline").count(), 2);
        assert!(picture.contains(">64.0 MiB<") && picture.contains(">1.000 s<"));
    }

    #[test]
    fn what_was_not_looked_at_is_not_drawn() {
        assert_eq!(render(&[], 80), "");
        assert_eq!(svg(&[], ""), "");
        let mut bare = points();
        for point in &mut bare {
            point.heap_live_bytes = None;
        }
        assert!(!render(&bare, 80).contains("heap"));
        assert_eq!(svg(&bare, "").matches("<polyline").count(), 1);
        // A single look is drawn too, over no time.
        assert!(render(&bare[50..51], 80).contains("at most 50.0 MiB"));
    }
}
