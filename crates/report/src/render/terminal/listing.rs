//! Long tables: every line has the same columns, some lines are captions of those below them.

use super::{COLUMN, Terminal, WIDTH, cut, width};
use crate::document::{Line, Row, Tone, Value};

/// Width of a bar in a listing.
const BAR: usize = 5;
/// Most characters of words before the last column.
const WORDS: usize = 15;

impl Terminal {
    /// Rows under headings: numbers to the right, words and bars to the left. The last column takes what room is
    /// left of the line.
    pub(super) fn listing(&mut self, title: &str, headings: &[String], lines: &[Line]) {
        for line in super::wrap(title.split(' ').map(str::to_owned), " ", 2) {
            self.line(&format!("  {line}"));
        }
        let widths: Vec<usize> = (0..headings.len()).map(|i| self.column_width(i, headings, lines)).collect();
        let left: Vec<bool> = (0..headings.len()).map(|i| i == 0 || rows(lines).any(|row| is_left(row, i))).collect();
        let head: Vec<(String, bool)> = headings.iter().zip(&left).map(|(h, &left)| (self.ascii(h), left)).collect();
        self.cells(&widths, head.iter().map(|(text, left)| (text.clone(), width(text), *left)));
        for line in lines {
            match line {
                Line::Caption(text) => self.line(&format!("    {}", keep_end(text, WIDTH - 4))),
                Line::Row(row) => {
                    let cells = (0..headings.len()).map(|i| {
                        let text = self.cell(row, i);
                        let shown = width(&text);
                        (self.painted(row, i, text), shown, left[i])
                    });
                    let cells: Vec<_> = cells.collect();
                    self.cells(&widths, cells.into_iter());
                }
            }
        }
    }

    /// One line of cells: the text, the characters it takes on the screen, and whether it stands on the left.
    fn cells(&mut self, widths: &[usize], cells: impl Iterator<Item = (String, usize, bool)>) {
        let mut out = String::from("   ");
        let mut used = 3;
        for ((text, shown, left), &column) in cells.zip(widths) {
            let text = if used + 1 + shown > WIDTH { cut(&text, WIDTH.saturating_sub(used + 1).max(1)) } else { text };
            let gap = " ".repeat(column.saturating_sub(shown));
            out.push(' ');
            out.push_str(&if left { text + &gap } else { gap + &text });
            used += 1 + column;
        }
        self.line(&out);
    }

    fn column_width(&self, column: usize, headings: &[String], lines: &[Line]) -> usize {
        let cells = rows(lines).map(|row| width(&self.cell(row, column)));
        let bars = rows(lines).any(|row| matches!(value(row, column), Some(Value::Share(_))));
        cells.chain([width(&headings[column]), if bars { BAR } else { 0 }]).max().unwrap_or(0)
    }

    /// A cell without colours.
    fn cell(&self, row: &Row, column: usize) -> String {
        if column == 0 {
            return cut(&row.label, 2 * COLUMN);
        }
        match value(row, column) {
            Some(Value::Share(fraction)) => self.plain_bar(*fraction, BAR, Tone::Work),
            Some(Value::Text(text)) if column < row.values.len() => cut(text, WORDS),
            other => self.value(other),
        }
    }

    /// The same cell with its colour.
    fn painted(&self, row: &Row, column: usize, text: String) -> String {
        match value(row, column) {
            Some(Value::Share(fraction)) => self.bar(*fraction, BAR, Tone::Work),
            _ => text,
        }
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

/// The last characters of `text`: of a path, the end says most.
fn keep_end(text: &str, room: usize) -> String {
    let length = width(text);
    if length <= room {
        return text.to_owned();
    }
    std::iter::once('~').chain(text.chars().skip(length + 1 - room)).collect()
}
