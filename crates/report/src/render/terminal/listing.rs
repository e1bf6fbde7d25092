//! Long tables: all lines have the same columns, with captions in between.

use super::{Terminal, width, wrap};
use crate::document::{Line, Row, Tone, Value};

/// Width of a bar in a listing.
const BAR: usize = 5;
/// Columns that labels leave to the others.
const OTHERS: usize = 44;
/// Start of the first column.
const LEFT: usize = 4;

/// A cell as shown: its text with colour, and its width on the screen.
struct Cell {
    text: String,
    shown: usize,
}

/// Column layout of a listing.
struct Layout {
    widths: Vec<usize>,
    /// Words and bars are left-aligned, numbers right-aligned.
    left: Vec<bool>,
    /// The first of the trailing columns that contain only words. Words that do not fit continue on the next line.
    words: usize,
}

impl Layout {
    /// Start of the columns of words.
    fn start_of_words(&self) -> usize {
        LEFT + self.widths[..self.words].iter().map(|width| width + 1).sum::<usize>()
    }
}

impl Terminal {
    /// Rows under headings: numbers right-aligned, words and bars left-aligned.
    pub(super) fn listing(&mut self, title: &str, headings: &[String], lines: &[Line]) {
        for line in wrap(title.split(' ').map(str::to_owned), " ", self.style.width - 2) {
            self.line(&format!("  {line}"));
        }
        let layout = self.layout(headings, lines);
        let head = headings.iter().map(|heading| self.ascii(heading)).map(|text| Cell { shown: width(&text), text });
        self.cells(&layout, &head.collect::<Vec<_>>());
        for line in lines {
            match line {
                Line::Caption(text) => self.line(&format!("    {}", keep_end(text, self.style.width - LEFT))),
                Line::Row(row) => {
                    let cells: Vec<Cell> = (0..headings.len()).map(|i| self.shown(row, i)).collect();
                    self.cells(&layout, &cells);
                }
            }
        }
    }

    fn layout(&self, headings: &[String], lines: &[Line]) -> Layout {
        let columns = headings.len();
        let words = |i: usize| {
            i > 0 && rows(lines).all(|row| !matches!(value(row, i), Some(Value::Number(..) | Value::Estimate(..))))
        };
        let bars = |i: usize| rows(lines).any(|row| matches!(value(row, i), Some(Value::Share(_))));
        let mut layout = Layout {
            widths: (0..columns).map(|i| self.column_width(i, headings, lines)).collect(),
            left: (0..columns).map(|i| i == 0 || rows(lines).any(|row| is_left(row, i))).collect(),
            words: (0..columns).rev().take_while(|&i| words(i) && !bars(i)).last().unwrap_or(columns),
        };
        if layout.words + 1 < columns {
            let room = self.style.width.saturating_sub(layout.start_of_words());
            layout.widths[columns - 2] = self.width_before_last(columns, lines, room, layout.widths[columns - 2]);
        }
        layout
    }

    /// The width of the last column but one, at most `widest`, with which most rows keep both last cells in their
    /// columns, given `room` characters for the two.
    fn width_before_last(&self, columns: usize, lines: &[Line], room: usize, widest: usize) -> usize {
        let cells = |row| [columns - 2, columns - 1].map(|i| width(&self.cell(row, i)));
        let cells: Vec<[usize; 2]> = rows(lines).map(cells).collect();
        let aligned =
            |column: usize| cells.iter().filter(|[text, last]| *text <= column && column + 1 + last <= room).count();
        (0..=widest).rev().max_by_key(|&column| aligned(column)).unwrap_or(widest)
    }

    /// One row of cells, on several lines if its words need it.
    fn cells(&mut self, layout: &Layout, cells: &[Cell]) {
        let (aligned, words) = cells.split_at(layout.words);
        let mut out = " ".repeat(LEFT);
        for (i, cell) in aligned.iter().enumerate() {
            let gap = " ".repeat(layout.widths[i].saturating_sub(cell.shown));
            out += &if layout.left[i] { format!("{}{gap} ", cell.text) } else { format!("{gap}{} ", cell.text) };
        }
        let start = layout.start_of_words();
        for (i, line) in
            flow(words, &layout.widths[layout.words..], self.style.width.saturating_sub(start)).iter().enumerate()
        {
            let before = if i == 0 { std::mem::take(&mut out) } else { " ".repeat(start) };
            self.line(&(before + line));
        }
    }

    fn column_width(&self, column: usize, headings: &[String], lines: &[Line]) -> usize {
        let cells = rows(lines).map(|row| width(&self.cell(row, column)));
        let bars = rows(lines).any(|row| matches!(value(row, column), Some(Value::Share(_))));
        cells.chain([width(&headings[column]), if bars { BAR } else { 0 }]).max().unwrap_or(0)
    }

    /// A cell without colour.
    fn cell(&self, row: &Row, column: usize) -> String {
        if column == 0 {
            return self.cut(&row.label, self.style.width - OTHERS);
        }
        match value(row, column) {
            Some(Value::Share(fraction)) => self.plain_bar(*fraction, BAR, Tone::Work),
            other => self.value(other),
        }
    }

    /// A cell with its colour.
    fn shown(&self, row: &Row, column: usize) -> Cell {
        let plain = self.cell(row, column);
        let shown = width(&plain);
        let text = match value(row, column) {
            Some(Value::Share(fraction)) => self.bar(*fraction, BAR, Tone::Work),
            _ => plain,
        };
        Cell { text, shown }
    }

    /// A heading as the terminal can show it.
    fn ascii(&self, text: &str) -> String {
        if self.style.unicode { text.to_owned() } else { text.replace('µ', "u") }
    }
}

fn rows(lines: &[Line]) -> impl Iterator<Item = &Row> {
    lines.iter().filter_map(|line| match line {
        Line::Row(row) => Some(row),
        Line::Caption(_) => None,
    })
}

/// The value in a column; the label is column 0.
fn value(row: &Row, column: usize) -> Option<&Value> {
    row.values.get(column.checked_sub(1)?)?.as_ref()
}

fn is_left(row: &Row, column: usize) -> bool {
    matches!(value(row, column), Some(Value::Text(_) | Value::Share(_)))
}

/// Lays out cells of words in lines of `room` characters. A cell starts in its column if that is free, otherwise
/// directly after the previous cell, otherwise right-aligned on the next line.
fn flow(cells: &[Cell], widths: &[usize], room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut column = 0;
    for (cell, column_width) in cells.iter().zip(widths) {
        let free = if line.is_empty() { 0 } else { width(&line) + 1 };
        let mut at = column.max(free);
        if at + cell.shown > room && free > 0 && cell.shown > 0 {
            at = if free + cell.shown <= room { room - cell.shown } else { room + 1 };
        }
        if at > room {
            lines.push(std::mem::take(&mut line));
            at = column.min(room.saturating_sub(cell.shown));
        }
        for (i, part) in wrap(cell.text.split(' ').map(str::to_owned), " ", room).into_iter().enumerate() {
            if i > 0 {
                lines.push(std::mem::take(&mut line));
            }
            line = format!("{line:<at$}{part}");
            at = 0;
        }
        column += column_width + 1;
    }
    lines.push(line);
    lines
}

/// The last characters of `text`, since the end of a path is the most specific.
fn keep_end(text: &str, room: usize) -> String {
    let length = width(text);
    if length <= room {
        return text.to_owned();
    }
    std::iter::once('~').chain(text.chars().skip(length + 1 - room)).collect()
}
