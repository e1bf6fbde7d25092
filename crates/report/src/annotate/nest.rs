//! The instructions of a function by loop.

use fxscope_record::Run;

use super::{Annotation, Function, Instruction, share};
use crate::loops;
use crate::render::quantity::digits;

/// The instructions of a function that are in no inner loop of a loop, or in none at all.
pub(crate) struct Group<'a> {
    /// The loop, as an index into [`fxscope_record::Profile::loops`].
    pub of: Option<u32>,
    /// The instructions, by ascending address.
    pub instructions: Vec<&'a Instruction>,
}

impl Group<'_> {
    /// Returns the cycles of its instructions.
    pub(crate) fn cycles(&self) -> u64 {
        self.instructions.iter().map(|instruction| instruction.cycles).sum()
    }
}

/// Returns the groups of a function, those with most cycles first.
pub(crate) fn groups(list: &[Instruction]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    for instruction in list {
        let of = instruction.loops.last().copied();
        match groups.iter_mut().find(|group| group.of == of) {
            Some(group) => group.instructions.push(instruction),
            None => groups.push(Group { of, instructions: vec![instruction] }),
        }
    }
    // Of equal ones, the first in the code is first.
    groups.sort_by_key(|group| std::cmp::Reverse(group.cycles()));
    groups
}

/// Returns what is to know about a group in one line: its loop, the share of the function, the share of its commit slots that are used.
pub(crate) fn describe(run: &Run, annotation: &Annotation, function: &Function, group: &Group) -> String {
    let percent = |part: u64, whole: u64| format!("{:.1} %", 100.0 * share(part, whole));
    let cycles = group.cycles();
    let executed: u64 = group.instructions.iter().map(|instruction| instruction.executions).sum();
    let slots = cycles.saturating_mul(annotation.commit_width.into());
    let mut text = match group.of.and_then(|of| run.profile.loops.get(of as usize)) {
        Some(of) => {
            let around = of.parent.and_then(|parent| run.profile.loops.get(parent as usize));
            let inside = around.map_or_else(String::new, |around| format!(" in {}", place(around)));
            let trips = of.trips().map_or_else(String::new, |trips| format!("{} trips, ", digits(trips)));
            format!("Loop {}{inside}: {trips}", place(of))
        }
        None => "Outside of loops: ".to_owned(),
    };
    text += &format!("{} of the function", percent(cycles, function.cycles));
    if slots > 0 {
        text += &format!(", {} of slots", percent(executed, slots));
    }
    text
}

/// The place of a loop in its function.
fn place(of: &fxscope_record::Loop) -> String {
    match &of.source {
        Some(lines) => lines.to_string(),
        None => loops::name(of),
    }
}

/// Returns the brackets before an instruction of a group: one for each loop that it is in, the innermost open at its head.
pub(crate) fn brackets(run: &Run, group: &Group, index: usize) -> String {
    let Some(of) = group.of else { return String::new() };
    let instruction = group.instructions[index];
    let is_head = run.profile.loops.get(of as usize).is_some_and(|l| l.offset == instruction.offset);
    let innermost = if is_head {
        '['
    } else if index + 1 == group.instructions.len() {
        ']'
    } else {
        '|'
    };
    let outer = "|".repeat(instruction.loops.len().saturating_sub(1));
    format!("{outer}{innermost} ")
}
