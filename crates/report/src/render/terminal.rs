//! Documents as terminal text.

mod grid;
mod listing;
mod verdict;

use std::fmt::Write as _;
use std::ops::Range;

use rayon::prelude::*;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr};

use super::quantity::{estimate, quantity, share, two_digits};
use crate::document::{Body, Document, Part, Row, Section, Tone, Value};

/// Capabilities of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Characters beyond ASCII.
    pub unicode: bool,
    /// Colours.
    pub colour: bool,
    /// Width of the text, columns: [`NARROWEST`] to [`WIDEST`].
    pub width: usize,
    /// Whether lines of tables that are wider are cut. Files and pipes have room for them.
    pub cuts: bool,
}

/// Width of the narrowest terminal that texts are made for, columns.
pub const NARROWEST: usize = 80;
/// Width of the text if it does not go to a terminal, columns.
pub const USUAL: usize = 100;
/// Width of the widest text: longer lines are hard to read.
pub const WIDEST: usize = 160;

/// Start column of inline sections.
const INDENT: usize = 12;
/// Width of a share: "100.0 %".
const SHARE: usize = 7;
/// Width of half of an interval, in points: "±0.25" or, without characters beyond ASCII, "+-0.25".
const INTERVAL: usize = 6;
/// Width of a bar if there are several columns.
const NARROW_BAR: usize = 10;
/// Smallest and largest width of a column of values if there are several.
const NARROW_COLUMN: usize = 10;
const COLUMN: usize = 20;

const BOLD: &str = "\x1b[1m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const RESET: &str = "\x1b[0m";

/// Returns the text of `documents`, one after the other.
#[must_use]
pub fn render(documents: &[Document], style: Style) -> String {
    let one = |document: &Document| {
        let document = &document.clone().printable();
        let mut out = Terminal { style, text: String::new() };
        out.document(document);
        out.text
    };
    let texts: Vec<String> = documents.par_iter().map(one).collect();
    texts.join("\n")
}

struct Terminal {
    style: Style,
    text: String,
}

impl Terminal {
    fn document(&mut self, document: &Document) {
        self.title(&document.title);
        if document.columns.len() > 1 {
            return self.side_by_side(document);
        }
        for section in &document.sections {
            match &section.body {
                Body::Facts(rows) => self.inline(&section.title, rows),
                Body::Parts(parts) => self.bars(&section.title, parts),
                Body::Table { headings, rows } => self.table(headings, rows),
                Body::Listing { headings, lines } => self.listing(&section.title, headings, lines),
                Body::Verdict(verdict) => self.verdict(verdict),
                Body::Notes(notes) => self.notes(&section.title, notes),
                Body::Grid(grid) => self.grid(&section.title, grid),
                Body::Stack(stack) => self.stack(&section.title, stack),
                Body::Gauges(gauges) => self.gauges(&section.title, gauges),
                Body::Matrix(matrix) => self.matrix(&section.title, matrix),
                // Its numbers are in the tables.
                Body::Roofline(_) | Body::Curves(_) => {}
            }
        }
    }

    fn title(&mut self, title: &str) {
        for line in wrap(title.split(' ').map(str::to_owned), " ", self.style.width) {
            let line = self.paint(BOLD, &line);
            self.line(&line);
        }
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.style.colour { format!("{colour}{text}{RESET}") } else { text.to_owned() }
    }

    /// Facts in sequence, wrapped.
    fn inline(&mut self, title: &str, rows: &[Row]) {
        let facts: Vec<_> = rows
            .iter()
            .filter_map(|row| Some(format!("{} {}", row.label, self.value(row.values.first()?.as_ref()))))
            .collect();
        self.flow(title, facts.into_iter(), "   ");
    }

    fn notes(&mut self, title: &str, notes: &[String]) {
        for (i, note) in notes.iter().enumerate() {
            let words = note.split(' ').map(|word| self.interval(word)).collect::<Vec<_>>();
            self.flow(if i == 0 { title } else { "" }, words.into_iter(), " ");
        }
    }

    /// Pieces after a title, wrapped.
    fn flow(&mut self, title: &str, pieces: impl Iterator<Item = String>, gap: &str) {
        for (i, line) in wrap(pieces, gap, self.style.width - INDENT).into_iter().enumerate() {
            let title = if i == 0 { title } else { "" };
            self.line(&format!("  {title:<width$}{line}", width = INDENT - 2));
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn bars(&mut self, title: &str, parts: &[Part]) {
        self.line(&format!("  {title}"));
        let labels = parts.iter().map(|p| width(&p.label)).max().unwrap_or(0);
        let is_sampled = parts.iter().any(|part| part.half_widths.first().is_some_and(Option::is_some));
        let intervals = if is_sampled { INTERVAL } else { 0 };
        let room =
            self.style.width.saturating_sub(4 + labels + 2 + SHARE + 2 + if is_sampled { INTERVAL + 1 } else { 0 });
        for part in parts {
            let fraction = part.fractions.first().copied().flatten().unwrap_or(0.0);
            let share = share(fraction);
            let half_width = part.half_widths.first().copied().flatten();
            let interval = half_width.map(|half| self.interval(&format!("±{}", two_digits(100.0 * half))));
            let interval =
                if intervals > 0 { format!(" {:<intervals$}", interval.unwrap_or_default()) } else { String::new() };
            let bar = self.bar(fraction, room, part.tone);
            self.line(&format!("    {:<labels$}  {share:>SHARE$}{interval}  {bar}", part.label));
        }
    }

    /// A bar; `room` characters are 100 %.
    fn bar(&self, fraction: f64, room: usize, tone: Tone) -> String {
        let fraction = fraction.clamp(0.0, 1.0);
        let bar = if self.style.unicode {
            let eighths = (fraction * room as f64 * 8.0).round() as usize;
            let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
            "█".repeat(eighths / 8) + rest
        } else {
            let sign = if tone == Tone::Work { "=" } else { "#" };
            sign.repeat((fraction * room as f64).round() as usize)
        };
        if bar.is_empty() {
            return bar;
        }
        self.paint(if tone == Tone::Work { GREEN } else { YELLOW }, &bar)
    }

    /// Rows under headings, with minimal column widths.
    fn table(&mut self, headings: &[String], rows: &[Row]) {
        let cells = rows.iter().map(|row| {
            let values = row.values.iter().map(|v| self.value(v.as_ref()));
            std::iter::once(self.cut(&row.label, 2 * COLUMN)).chain(values).collect::<Vec<_>>()
        });
        let lines: Vec<Vec<String>> = std::iter::once(headings.to_vec()).chain(cells).collect();
        let widest = |i: usize| lines.iter().filter_map(|l| l.get(i)).map(|c| width(c)).max().unwrap_or(0);
        let widths: Vec<usize> = (0..headings.len()).map(widest).collect();
        let last = headings.len().saturating_sub(1);
        let words = rows.iter().any(|row| !row.values.get(last.wrapping_sub(1)).is_none_or(is_number));
        for line in &lines {
            let mut out = String::from(" ");
            for (i, (cell, &w)) in line.iter().zip(&widths).enumerate() {
                // Labels are left-aligned and numbers right-aligned; words in the last column are left-aligned, too.
                let gap = " ".repeat(w.saturating_sub(width(cell)));
                let left = i == 0 || i == last && words;
                let _ = if left { write!(out, " {cell}{gap}") } else { write!(out, " {gap}{cell}") };
                out.push(' ');
            }
            self.line(&self.cut(out.trim_end(), self.style.width));
        }
    }

    /// One line per value and one column per subject, in as many blocks as the columns need.
    fn side_by_side(&mut self, document: &Document) {
        let labels = document.sections.iter().flat_map(row_labels).map(width).max().unwrap_or(0);
        let room = self.style.width.saturating_sub(4 + labels);
        let count = document.columns.len();
        let at_once = (room / (NARROW_COLUMN + 1)).clamp(1, count.max(1));
        let column = (room / at_once).saturating_sub(1).clamp(NARROW_COLUMN, COLUMN);
        for first in (0..count).step_by(at_once) {
            self.columns(document, first..count.min(first + at_once), labels, column);
        }
        let notes = document.sections.iter().filter_map(|s| match &s.body {
            Body::Notes(notes) => Some((s.title.as_str(), notes)),
            _ => None,
        });
        for (title, notes) in notes.collect::<Vec<_>>() {
            self.notes(title, notes);
        }
    }

    fn columns(&mut self, document: &Document, columns: Range<usize>, labels: usize, column: usize) {
        let head = document.columns[columns.clone()].iter().map(|c| format!(" {:>column$}", cut(c, column)));
        let head = self.paint(BOLD, &format!("    {:labels$}{}", "", head.collect::<String>()));
        self.line(&head);
        for section in &document.sections {
            let rows: Vec<(&str, String)> = match &section.body {
                Body::Facts(rows) | Body::Table { rows, .. } => rows
                    .iter()
                    .map(|row| {
                        let values = row.values[columns.clone()].iter().map(|v| self.value_within(v.as_ref(), column));
                        (row.label.as_str(), values.map(|v| format!(" {:>column$}", cut(&v, column))).collect())
                    })
                    .collect(),
                Body::Parts(parts) => parts
                    .iter()
                    .map(|part| {
                        let shares = part.fractions[columns.clone()].iter();
                        (part.label.as_str(), shares.map(|f| self.bar_and_share(*f, part.tone, column)).collect())
                    })
                    .collect(),
                _ => continue,
            };
            self.line(&format!("  {}", section.title));
            for (label, cells) in rows {
                self.line(&format!("    {label:<labels$}{cells}"));
            }
        }
    }

    /// A text that may be wider than its room where nothing is cut.
    fn cut(&self, text: &str, room: usize) -> String {
        if self.style.cuts { cut(text, room) } else { text.to_owned() }
    }

    fn value(&self, value: Option<&Value>) -> String {
        match value {
            Some(Value::Number(number, unit)) => self.number(*number, unit),
            Some(Value::Estimate(number, unit, half_width)) => self.estimate(*number, unit, *half_width),
            Some(Value::Text(text)) => text.clone(),
            Some(Value::Share(fraction)) => share(*fraction),
            None => "-".to_owned(),
        }
    }

    /// A value; an estimate without its interval if both do not fit into `room` columns.
    fn value_within(&self, value: Option<&Value>, room: usize) -> String {
        let text = self.value(value);
        match value {
            Some(Value::Estimate(number, unit, _)) if width(&text) > room => self.number(*number, unit),
            _ => text,
        }
    }

    fn number(&self, number: f64, unit: &str) -> String {
        self.micro(quantity(number, unit))
    }

    fn estimate(&self, number: f64, unit: &str, half_width: f64) -> String {
        self.interval(&self.micro(estimate(number, unit, half_width)))
    }

    /// A unit as the terminal can show it.
    fn micro(&self, text: String) -> String {
        if self.style.unicode || !text.contains('µ') { text } else { text.replace('µ', "u") }
    }

    /// Half of an interval as the terminal can show it.
    fn interval(&self, text: &str) -> String {
        if self.style.unicode { text.to_owned() } else { text.replace('±', "+-") }
    }

    /// A part's bar, if there is room, and its share, right-aligned in a column.
    fn bar_and_share(&self, fraction: Option<f64>, tone: Tone, column: usize) -> String {
        let share = fraction.map_or("-".to_owned(), share);
        if column < NARROW_BAR + 1 + SHARE {
            return format!(" {share:>column$}");
        }
        let bar = self.bar(fraction.unwrap_or(0.0), NARROW_BAR, tone);
        let drawn = self.bar_width(fraction.unwrap_or(0.0));
        format!(" {:>gap$}{bar} {share:>SHARE$}", "", gap = column - SHARE - 1 - drawn)
    }

    /// Width of a narrow bar on the screen.
    fn bar_width(&self, fraction: f64) -> usize {
        width(&self.plain_bar(fraction, NARROW_BAR, Tone::Work))
    }

    /// A bar without colour.
    fn plain_bar(&self, fraction: f64, room: usize, tone: Tone) -> String {
        let plain = Terminal { style: Style { colour: false, ..self.style }, text: String::new() };
        plain.bar(fraction, room, tone)
    }
}

/// Joins pieces with `gap` into lines of at most `room` columns.
fn wrap(pieces: impl Iterator<Item = String>, gap: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces.flat_map(|piece| broken(piece, room)) {
        match lines.last_mut() {
            Some(line) if width(line) + gap.len() + width(&piece) <= room => {
                line.push_str(gap);
                line.push_str(&piece);
            }
            _ => lines.push(piece),
        }
    }
    lines
}

fn row_labels(section: &Section) -> Vec<&str> {
    match &section.body {
        Body::Facts(rows) | Body::Table { rows, .. } => rows.iter().map(|r| r.label.as_str()).collect(),
        Body::Parts(parts) => parts.iter().map(|p| p.label.as_str()).collect(),
        _ => Vec::new(),
    }
}

/// Returns whether a value is aligned like numbers: a number, a text of a number with or without a unit, or a dash.
fn is_number(value: &Option<Value>) -> bool {
    let Some(Value::Text(text)) = value else { return !matches!(value, Some(Value::Share(_))) };
    let mut words = text.split(' ');
    let number = words.next().unwrap_or_default().trim_end_matches(['%', '×']);
    let begins = number.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit());
    text == "-" || begins && number.parse::<f64>().is_ok() && words.count() <= 1
}

/// Width of a text on the screen; names may contain wide and combining characters.
fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// The beginning of `text` that fits into `room` columns.
fn head(text: &str, room: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += c.width().unwrap_or(0);
        used > room
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// `text`, truncated to `room` columns with an ellipsis.
fn cut(text: &str, room: usize) -> String {
    if width(text) <= room { text.to_owned() } else { format!("{}~", head(text, room - 1)) }
}

/// A piece of text, broken if wider than `room` columns; at least two, the width of the widest character.
fn broken(mut piece: String, room: usize) -> Vec<String> {
    let room = room.max(2);
    let mut parts = Vec::new();
    while width(&piece) > room {
        let rest = piece.split_off(head(&piece, room).len());
        parts.push(std::mem::replace(&mut piece, rest));
    }
    parts.push(piece);
    parts
}
