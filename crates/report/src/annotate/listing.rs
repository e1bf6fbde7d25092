//! The instructions of a function on the terminal.

use fxscope_record::Run;

use super::nest::{brackets, describe, groups};
use super::{Annotation, Function, Instruction, Source, in_flight, longest_wait, mark, name, pipes, share, used};
use crate::document::{Body, Line, Row, Section, Value};
use crate::sections::plain;

/// The instructions of a function, by loop, those with most cycles first. Dynamic columns come before static ones.
pub(super) fn instructions(run: &Run, annotation: &Annotation, function: &Function, list: &[Instruction]) -> Section {
    let groups = groups(list);
    let has_loops = groups.iter().any(|group| group.of.is_some());
    let mut lines = Vec::new();
    for group in &groups {
        if has_loops {
            lines.push(Line::Caption(plain(&describe(run, annotation, function, group))));
        }
        let mut source = None;
        for (index, instruction) in group.instructions.iter().enumerate() {
            if instruction.source.is_some() && instruction.source != source {
                source.clone_from(&instruction.source);
                lines.extend(source.as_ref().map(|s| Line::Caption(plain(&caption(s)))));
            }
            lines.push(Line::Row(row(run, function, instruction, &brackets(run, group, index))));
        }
    }
    let percent = 100.0 * share(function.cycles, annotation.cycles);
    let place = if function.name.is_empty() { String::new() } else { format!(" at {:#x}", function.address) };
    let title = format!("{}{place}, {percent:.1} % of all cycles{}", name(run, function), mark(run));
    let headings = ["Offset", "times", "each", "share", "flight", "waits for", "µops", "instruction", "pipes"];
    let headings = headings.map(str::to_owned).to_vec();
    Section { title, body: Body::Listing { headings, lines } }
}

/// A source line: its place, and what it says if that is known.
fn caption(source: &Source) -> String {
    let text = source.text.as_ref().map_or_else(String::new, |text| format!(": {text}"));
    format!("{}:{}{text}", source.file, source.line)
}

fn row(run: &Run, function: &Function, instruction: &Instruction, brackets: &str) -> Row {
    let code = instruction.code.as_ref();
    let label = if function.name.is_empty() {
        format!("{brackets}{:#x}", instruction.address)
    } else {
        format!("{brackets}+{:#x}", instruction.offset)
    };
    let values = vec![
        Some(Value::number(instruction.executions as f64, "count")),
        Some(Value::number(share(instruction.cycles, instruction.executions), "cycles/execution")),
        Some(Value::Share(share(instruction.cycles, function.cycles))),
        in_flight(run, instruction).map(|cycles| Value::number(cycles, "cycles/execution")),
        Some(Value::Text(longest_wait(run, instruction))),
        code.map(|c| Value::number(c.uops.len() as f64, "count")),
        code.map(|c| Value::Text(c.text.clone().unwrap_or_else(|| format!(".inst {:#010x}", c.word)))),
        Some(Value::Text(used(run, instruction).or(code.map(|c| pipes(&c.uops))).unwrap_or_default())),
    ];
    Row { label, values }
}
