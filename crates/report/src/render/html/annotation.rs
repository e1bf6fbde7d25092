//! Annotations as a page: functions, loops that can be folded, and their instructions beside the source.

use fxscope_record::Run;
use maud::{DOCTYPE, Markup, html};

use super::head;
use crate::annotate::nest::{Group, describe, groups};
use crate::annotate::{
    Annotation, FUNCTIONS, Function, Instruction, in_flight, longest_wait, mark, name, share, used, waits_on,
};
use crate::render::quantity::{quantity, share as percent};
use crate::sections::{plain, title};

/// Style rules in addition to those of all pages.
const RULES: &str = "details{margin:.5rem 0 .5rem 1rem}summary{cursor:pointer}code{white-space:pre}\
td,th{padding:0 .6rem 0 0;text-align:right}td.text,th.text{text-align:left}tr.source th{text-align:left;font-weight:normal;padding-top:.4rem}";

/// Loops that are open at first: those with at least this share of their function.
const OPEN: f64 = 0.2;

/// Returns a page with the functions of a run, and the instructions of those that have them.
#[must_use]
pub fn draw(run: &Run, annotation: &Annotation) -> String {
    let title = title(run);
    let listed = annotation.functions.iter().filter(|function| function.instructions.is_some());
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&title, RULES))
            body {
                header { h1 { (title) } }
                main id="main" {
                    (functions(run, annotation))
                    @for function in listed { (instructions(run, annotation, function)) }
                    @if !annotation.notes.is_empty() {
                        h2 { "Notes" }
                        ul { @for note in &annotation.notes { li { (plain(note)) } } }
                    }
                }
                footer { p { "Made by fxscope." } }
            }
        }
    };
    page.into_string()
}

fn functions(run: &Run, annotation: &Annotation) -> Markup {
    let (shown, others) = annotation.functions.split_at(annotation.functions.len().min(FUNCTIONS));
    let cycles: u64 = others.iter().map(|function| function.cycles).sum();
    let executions: u64 = others.iter().map(|function| function.executions).sum();
    html! {
        h2 { "Functions" (mark(run)) }
        div.scroll tabindex="0" role="region" aria-label="Functions" {
            table {
                thead { tr { th.text scope="col" { "Function" } th scope="col" { "cycles" } th scope="col" { "share" } th scope="col" { "instructions" } } }
                tbody {
                    @for function in shown {
                        tr {
                            th.text scope="row" { (name(run, function)) }
                            td { (quantity(function.cycles as f64, "cycles")) }
                            td { (percent(share(function.cycles, annotation.cycles))) }
                            td { (quantity(function.executions as f64, "instructions")) }
                        }
                    }
                    @if !others.is_empty() {
                        tr {
                            th.text scope="row" { (format!("({} other functions)", others.len())) }
                            td { (quantity(cycles as f64, "cycles")) }
                            td { (percent(share(cycles, annotation.cycles))) }
                            td { (quantity(executions as f64, "instructions")) }
                        }
                    }
                    @if annotation.outside > 0 {
                        tr {
                            th.text scope="row" { "(system calls and waiting)" }
                            td { (quantity(annotation.outside as f64, "cycles")) }
                            td { (percent(share(annotation.outside, annotation.cycles))) }
                            td {}
                        }
                    }
                }
            }
        }
    }
}

/// The instructions of a function: its loops, each with those inside, hottest first.
fn instructions(run: &Run, annotation: &Annotation, function: &Function) -> Markup {
    let groups = groups(function.instructions.as_deref().unwrap_or_default());
    html! {
        h2 { (name(run, function)) ", " (percent(share(function.cycles, annotation.cycles))) " of all cycles" (mark(run)) }
        @for group in groups.iter().filter(|group| parent(run, group).is_none_or(|parent| !has(&groups, parent))) {
            (nested(run, annotation, function, group, &groups))
        }
    }
}

/// The loop around that of a group.
fn parent(run: &Run, group: &Group) -> Option<u32> {
    run.profile.loops.get(group.of? as usize)?.parent
}

fn has(groups: &[Group], of: u32) -> bool {
    groups.iter().any(|group| group.of == Some(of))
}

/// A group, and in it those of the loops inside.
fn nested(run: &Run, annotation: &Annotation, function: &Function, group: &Group, groups: &[Group]) -> Markup {
    let inside = groups.iter().filter(|other| group.of.is_some() && parent(run, other) == group.of);
    let inside: Vec<&Group> = inside.collect();
    let cycles: u64 = inside.iter().map(|other| other.cycles()).sum::<u64>() + group.cycles();
    html! {
        details open[share(cycles, function.cycles) >= OPEN] {
            summary { (plain(&describe(run, annotation, function, group))) }
            (table(run, function, group))
            @for other in inside { (nested(run, annotation, function, other, groups)) }
        }
    }
}

fn table(run: &Run, function: &Function, group: &Group) -> Markup {
    let columns = ["Offset", "times", "each", "share", "flight"];
    let texts = ["waits for", "instruction", "pipes"];
    html! {
        div.scroll tabindex="0" role="region" aria-label="Instructions" {
            table {
                thead {
                    tr {
                        @for column in columns { th scope="col" { (column) } }
                        @for column in texts { th.text scope="col" { (column) } }
                    }
                }
                tbody {
                    @for (index, instruction) in group.instructions.iter().enumerate() {
                        @if let Some(source) = new_source(group, index) { tr.source { th colspan="8" { (source) } } }
                        (row(run, function, instruction))
                    }
                }
            }
        }
    }
}

/// The source line of an instruction, unless it is that of the one before.
fn new_source(group: &Group, index: usize) -> Option<Markup> {
    let source = group.instructions[index].source.as_ref()?;
    let before = index.checked_sub(1).and_then(|before| group.instructions[before].source.as_ref());
    let text = source.text.as_deref().unwrap_or_default();
    let place = format!("{}:{}", source.file.rsplit('/').next().unwrap_or_default(), source.line);
    (before != Some(source)).then(|| html! { (plain(&place)) " " code { (plain(text)) } })
}

fn row(run: &Run, function: &Function, instruction: &Instruction) -> Markup {
    let code = instruction.code.as_ref();
    let text = code.map(|code| code.text.clone().unwrap_or_else(|| format!(".inst {:#010x}", code.word)));
    let flight = in_flight(run, instruction).map(|cycles| quantity(cycles, "cycles/execution"));
    html! {
        tr {
            th scope="row" { (format!("+{:#x}", instruction.offset)) }
            td { (quantity(instruction.executions as f64, "count")) }
            td { (quantity(share(instruction.cycles, instruction.executions), "cycles/execution")) }
            td { (percent(share(instruction.cycles, function.cycles))) }
            td { (flight.unwrap_or_default()) }
            td.text {
                (longest_wait(run, instruction))
                @if let Some(offset) = waits_on(run, instruction) { (format!(", after +{offset:#x}")) }
            }
            td.text { code { (plain(&text.unwrap_or_default())) } }
            td.text { (used(run, instruction).unwrap_or_default()) }
        }
    }
}
