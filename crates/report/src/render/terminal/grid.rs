//! Tables for threads, CMGs and processes: one line per quantity, one column per part.

use std::ops::Range;

use super::{GREEN, NARROW_COLUMN, Terminal, YELLOW, cut, width};
use crate::document::{Bar, Family, Gauge, Grid, Heading, Matrix, Part, Stack};
use crate::render::quantity::quantity;
use crate::render::scale::Scale;

/// Maximum length of a label.
const LABEL: usize = 50;
/// Width of a column of values, including the mark.
const CELL: usize = NARROW_COLUMN + 3;
/// Shown after a marked cell.
const SIGN: char = '!';

impl Terminal {
    /// The table, in as many blocks as its parts need.
    pub(super) fn grid(&mut self, title: &str, grid: &Grid) {
        let labels: Vec<String> = grid.headings.iter().map(label).collect();
        let longest = labels.iter().map(|l| width(l)).max().unwrap_or(0).min(LABEL);
        let at_once = (self.style.width - 4 - longest) / (CELL + 1);
        let count = grid.records.len();
        for first in (0..count).step_by(at_once) {
            let shown = first..count.min(first + at_once);
            let places = grid.records[shown.clone()]
                .iter()
                .map(|r| format!(" {:>CELL$}", cut(&self.interval(&r.place.label()), CELL - 1)));
            // A single column is the total and needs no heading.
            let places: String = if count > 1 { places.collect() } else { String::new() };
            let head = format!("{:<w$}{places}", cut(title, longest + 2), w = longest + 2);
            self.line(&format!("  {}", head.trim_end()));
            for (column, label) in labels.iter().enumerate() {
                let mut line = format!("    {:<longest$}", cut(label, longest));
                shown.clone().for_each(|record| self.push_cell(&mut line, grid, record, column));
                self.line(&line);
            }
            self.readings(grid, shown);
        }
    }

    fn push_cell(&self, line: &mut String, grid: &Grid, record: usize, column: usize) {
        let number = |number| self.number(number, &grid.headings[column].unit);
        let text = grid.records[record].values[column].map_or_else(|| "-".to_owned(), number);
        let room = CELL.saturating_sub(width(&text));
        match grid.mark(record, column) {
            Some(mark) => {
                let text = format!("{:room$}{text}{SIGN}", "");
                line.push_str(&self.paint(if mark.good { GREEN } else { YELLOW }, &text));
            }
            None => {
                line.extend(std::iter::repeat_n(' ', room));
                line.push_str(&text);
                line.push(' ');
            }
        }
    }

    /// Interpretations of marked cells, once per quantity.
    fn readings(&mut self, grid: &Grid, shown: Range<usize>) {
        let mut explained = Vec::new();
        for mark in grid.marks.iter().filter(|m| shown.contains(&m.record)) {
            let heading = &grid.headings[mark.column];
            if !explained.contains(&mark.column) {
                explained.push(mark.column);
                let words = format!("{SIGN} {}: {}", heading.id, mark.reading);
                self.flow("", words.split(' ').map(str::to_owned), " ");
            }
        }
    }

    /// The units in sequence, and interpretations of marked ones.
    pub(super) fn gauges(&mut self, title: &str, gauges: &[Gauge]) {
        let sign = |g: &Gauge| if g.is_high() { SIGN.to_string() } else { String::new() };
        let busy = |g: &Gauge| format!("{} {}{}", g.label, quantity(g.fraction, "ratio"), sign(g));
        self.flow(title, gauges.iter().map(busy), "   ");
        for gauge in gauges.iter().filter(|g| g.is_high()) {
            self.flow("", format!("{SIGN} {}: {}", gauge.label, gauge.reading).split(' ').map(str::to_owned), " ");
        }
    }

    /// Rows for sources, columns for destinations.
    pub(super) fn matrix(&mut self, title: &str, matrix: &Matrix) {
        let scale = Scale::of(&matrix.unit, matrix.values.iter().flatten().flatten().copied());
        self.line(&format!("  {title}, {}", scale.unit));
        let labels = matrix.rows.iter().map(|row| width(row)).max().unwrap_or(0);
        let heads: String = matrix.columns.iter().map(|column| format!(" {:>CELL$}", cut(column, CELL))).collect();
        if 4 + labels + heads.len() > self.style.width {
            let size = format!(
                "{} × {} values: too wide here; -o FILE.html or FILE.csv shows them.",
                matrix.rows.len(),
                matrix.columns.len()
            );
            return self.flow("", size.split(' ').map(str::to_owned), " ");
        }
        self.line(&format!("    {:labels$}{heads}", ""));
        for (row, values) in matrix.rows.iter().zip(&matrix.values) {
            let cells = values.iter().map(|value| value.map_or("-".to_owned(), |v| scale.cell(Some(v))));
            let cells: String = cells.map(|cell| format!(" {cell:>CELL$}")).collect();
            self.line(&format!("    {row:<labels$}{cells}"));
        }
        if !matrix.reading.is_empty() {
            self.flow("", matrix.reading.split(' ').map(str::to_owned), " ");
        }
    }

    /// The components of a single bar, one per line, as shares of the total.
    fn only_bar(&mut self, title: &str, stack: &Stack, bar: &Bar) {
        let whole: f64 = bar.values.iter().sum();
        let parts = stack.parts.iter().zip(&bar.values).filter(|(_, value)| **value > 0.0).map(|(part, value)| Part {
            label: format!("{} {}", part.id, part.label),
            tone: part.family.tone(),
            fractions: vec![Some(value / whole)],
            half_widths: vec![None],
        });
        self.bars(title, &parts.collect::<Vec<_>>());
    }

    /// One line per bar, in which a character is about a hundredth of the longest bar.
    pub(super) fn stack(&mut self, title: &str, stack: &Stack) {
        if let [bar] = stack.bars.as_slice() {
            return self.only_bar(title, stack, bar);
        }
        self.line(&format!("  {title}"));
        let labels = stack.bars.iter().map(|bar| width(&bar.label)).max().unwrap_or(0);
        let room = self.style.width.saturating_sub(4 + labels + 2);
        let longest = stack.bars.iter().map(|bar| bar.values.iter().sum::<f64>()).fold(0.0, f64::max);
        for bar in &stack.bars {
            let mut reached = 0.0;
            let mut drawn = 0;
            let mut text = String::new();
            // Work first, since it is at the bottom of the chart's bars.
            for (part, value) in stack.parts.iter().zip(&bar.values).rev() {
                reached += value;
                let end = if longest > 0.0 { (reached / longest * room as f64).round() as usize } else { 0 };
                let sign = sign(part.family).to_string().repeat(end - drawn);
                let colour = if part.family == Family::Commit { GREEN } else { YELLOW };
                text.push_str(&if sign.is_empty() { sign } else { self.paint(colour, &sign) });
                drawn = end;
            }
            self.line(&format!("    {:<labels$}  {text}", bar.label));
        }
        let legend = FAMILIES.iter().map(|&(family, name)| format!("{} {name}", sign(family)));
        self.flow("", legend, "   ");
    }
}

/// A quantity's identifier and title.
fn label(heading: &Heading) -> String {
    format!("{} {}", heading.id, heading.title)
}

const FAMILIES: &[(Family, &str)] = &[
    (Family::Commit, "commit"),
    (Family::Barrier, "barrier"),
    (Family::Kernel, "kernel"),
    (Family::Other, "other wait"),
    (Family::Operation, "operation"),
    (Family::L1, "L1D"),
    (Family::L2, "L2"),
    (Family::Memory, "memory"),
    (Family::Prefetch, "prefetch port"),
];

fn sign(family: Family) -> char {
    match family {
        Family::Commit => '=',
        Family::Barrier => '.',
        Family::Kernel => 'K',
        Family::Other => '-',
        Family::Operation => '+',
        Family::L1 => '1',
        Family::L2 => '2',
        Family::Memory => 'M',
        Family::Prefetch => 'P',
    }
}
