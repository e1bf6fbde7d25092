//! What is said about a program's pages.

use fxscope::advise::{Group, Library, SegmentMisses};
use fxscope::machine::settings::size;
use fxscope::record::Finish;
use fxscope::report::document::{Body, Document, Row, Section, Value};
use fxscope::report::render::quantity::quantity;
use fxscope::report::render::terminal::{self, Style};
use serde_json::{Value as Json, json};

use super::weigh::{Choice, Findings, ON_DEMAND, POLICY, Placing, Simulated};

/// The text for a terminal.
pub(super) fn text(findings: &Findings, style: Style) -> String {
    let mut sections = vec![now(findings), segments(findings)];
    if !findings.choices.is_empty() {
        sections.extend([times(findings), counts(findings)]);
    }
    sections.push(notes("Advice", advice(findings)));
    sections.push(notes("Notes", remarks(findings)));
    let program = findings.command.first().map_or("", String::as_str);
    let name = program.rsplit('/').next().unwrap_or(program);
    let title = format!("Pages of {name} on {}", findings.machine);
    terminal::render(&[Document { title, columns: vec![String::new()], sections }], style)
}

fn notes(title: &str, sentences: Vec<String>) -> Section {
    Section { title: title.to_owned(), body: Body::Notes(sentences) }
}

fn word(text: impl Into<String>) -> Option<Value> {
    Some(Value::Text(text.into()))
}

fn table(headings: &[&str], rows: Vec<Row>) -> Section {
    let headings = headings.iter().map(|&heading| heading.to_owned()).collect();
    Section { title: String::new(), body: Body::Table { headings, rows } }
}

fn number(n: u64) -> Option<Value> {
    word(n.to_string())
}

fn now(findings: &Findings) -> Section {
    let fact = |(label, value): (&str, String)| Row { label: label.to_owned(), values: vec![word(value)] };
    let pages = findings.used.iter().map(|&group| (group.name(), size(findings.base.bytes[group as usize - 1])));
    let time = findings.base.simulated.as_ref().map(|run| ("time", quantity(run.seconds, "s")));
    Section { title: "Now".to_owned(), body: Body::Facts(pages.chain(time).map(fact).collect()) }
}

fn segments(findings: &Findings) -> Section {
    let best = |name: &str| findings.best_segments.iter().find(|segment| segment.name == name);
    let simulated = !findings.best_segments.is_empty();
    let row = |segment: &SegmentMisses| {
        let mut values = vec![number(segment.first), number(segment.walks)];
        if simulated {
            let then = best(&segment.name);
            values.push(number(then.map_or(0, |then| then.first)));
            values.push(number(then.map_or(0, |then| then.walks)));
        }
        Row { label: segment.name.clone(), values }
    };
    let headings: &[&str] = match simulated {
        true => &["data accesses to", "L1 DTLB misses now", "walks now", "misses with 1", "walks with 1"],
        false => &["data accesses to", "L1 DTLB misses now", "walks now"],
    };
    table(headings, findings.segments.iter().map(row).collect())
}

/// The label of a choice.
fn label(place: usize) -> String {
    (place + 1).to_string()
}

fn all(findings: &Findings) -> impl Iterator<Item = (String, &Choice)> {
    let others = findings.choices.iter().enumerate().map(|(i, choice)| (label(i), choice));
    std::iter::once(("now".to_owned(), &findings.base)).chain(others)
}

/// By how much a time differs from that of the program as it is.
fn change(findings: &Findings, seconds: f64) -> f64 {
    let base = findings.base.simulated.as_ref().map_or(0.0, |base| base.seconds);
    if base > 0.0 { seconds / base - 1.0 } else { 0.0 }
}

fn times(findings: &Findings) -> Section {
    let time = |seconds: Option<f64>| seconds.map(|seconds| Value::Text(quantity(seconds, "s")));
    let row = |(label, choice): (String, &Choice)| {
        let simulated = choice.simulated.as_ref().map(|run| run.seconds);
        let percent = |seconds: Option<f64>| {
            seconds.map(|seconds| Value::Text(format!("{:+.1} %", 100.0 * change(findings, seconds))))
        };
        let changed = |seconds| if label == "now" { None } else { percent(seconds) };
        let values = vec![
            time(choice.predicted),
            changed(choice.predicted),
            time(simulated),
            changed(simulated),
            word(findings.describe(choice)),
        ];
        Row { label, values }
    };
    table(&["", "predicted", "change", "simulated", "change", "pages"], all(findings).map(row).collect())
}

fn counts(findings: &Findings) -> Section {
    let row = |(label, choice): (String, &Choice)| {
        let counted = |get: fn(&Simulated) -> u64| choice.simulated.as_ref().and_then(|run| number(get(run)));
        let values = vec![
            choice.misses.and_then(|misses| number(misses.first)),
            choice.misses.and_then(|misses| number(misses.walks)),
            counted(|run| run.first),
            counted(|run| run.walks),
            choice.simulated.as_ref().map(|run| Value::Text(quantity(run.lost as f64, "B"))),
            choice.simulated.as_ref().and_then(|run| word(run.nodes.clone())),
        ];
        Row { label, values }
    };
    let headings = ["", "L1 DTLB misses predicted", "walks", "misses simulated", "walks", "lost to rounding", "nodes"];
    table(&headings, all(findings).map(row).collect())
}

/// What to do.
fn advice(findings: &Findings) -> Vec<String> {
    let Some(best) = findings.best.and_then(|best| Some((best, findings.choices.get(best)?))) else {
        return vec![leave_it(findings)];
    };
    let (place, choice) = best;
    let seconds = choice.simulated.as_ref().map_or(0.0, |run| run.seconds);
    let gain = -100.0 * change(findings, seconds);
    let mut lines = vec![format!("{}: {} takes {gain:.1} % less time.", label(place), findings.describe(choice))];
    lines.extend(setting(findings, choice));
    lines
}

fn leave_it(findings: &Findings) -> String {
    let least = format!("{} %", 100.0 * findings.least);
    let sizes = match findings.too_little {
        Some(0.0) => "no other page sizes have fewer TLB misses".to_owned(),
        Some(share) => {
            format!("fewer TLB misses can hardly gain {:.2} % of the time, which is below {least}", 100.0 * share)
        }
        None => return format!("Leave it: nothing that was simulated gains {least} of the time."),
    };
    let places = if findings.choices.is_empty() { "" } else { ", and no other place of its pages gains as much" };
    format!("Leave it: {sizes}{places}.")
}

/// What sets a choice.
fn setting(findings: &Findings, choice: &Choice) -> Vec<String> {
    let program = shell(&findings.command);
    let changed = choice.bytes != findings.base.bytes;
    let mut variables = Vec::new();
    if changed && let Some(library) = choice.library {
        variables.extend(library.variables().iter().map(|(name, value)| format!("{name}={value}")));
    }
    if choice.placing == Placing::OnDemand {
        variables.push(format!("{POLICY}={ON_DEMAND}"));
    }
    let numactl = if choice.placing == Placing::Interleaved { "numactl --interleave=all " } else { "" };
    let mut lines = Vec::new();
    if changed && choice.library.is_none() {
        lines.push(format!("fxscope run --pages {} -- {program}", options(findings, choice)));
        lines.push("The system's large-page library has no variable for these sizes.".to_owned());
    }
    if !variables.is_empty() || !numactl.is_empty() {
        variables.push(format!("{numactl}{program}"));
        lines.push(variables.join(" "));
    }
    if changed && choice.default {
        lines.push("The machine gives these pages without any variable or option.".to_owned());
    }
    if changed && choice.library == Some(Library::None) {
        lines.push("Without the library, all pages are taken on demand.".to_owned());
    }
    lines
}

/// The sizes of a choice as `--pages` takes them.
fn options(findings: &Findings, choice: &Choice) -> String {
    let used = findings.used.iter().filter(|&&group| {
        let place = group as usize - 1;
        choice.bytes[place] != findings.base.bytes[place]
    });
    let of_group = |&group: &Group| {
        let bytes = size(choice.bytes[group as usize - 1]);
        group.segments().iter().map(move |segment| format!("{}={bytes}", segment.name()))
    };
    used.flat_map(of_group).collect::<Vec<_>>().join(",")
}

/// A command as a shell takes it.
fn shell(command: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    let word = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            return word.clone();
        }
        format!("'{}'", word.replace('\'', "'\\''"))
    };
    command.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// What a reader should know.
fn remarks(findings: &Findings) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Finish::Exited(code @ 1..) = findings.finish {
        remarks.push(format!("The program ended with status {code}: this may not be the run that you mean."));
    }
    if findings.finish == Finish::Limit {
        remarks.push("The run ended at the limit of instructions.".to_owned());
    }
    if let Some(exposed) = findings.exposed {
        let (hit, walk) = (findings.costs.hit, findings.costs.walk);
        remarks.push(format!(
            "Run 1 sets what misses cost, so it has no prediction: {exposed:.2} times what they take by themselves ({hit} cycles, \
             {walk} with a walk)."
        ));
    }
    if findings.mixed {
        remarks.push(
            "Pages of .bss taken at once take no time, as they are taken before the first instruction; on demand they do.".to_owned(),
        );
    }
    if !findings.other_sites.is_empty() {
        remarks.push(format!("Other mmap: also what {} maps.", findings.other_sites.join(", ")));
    }
    if findings.used.contains(&Group::Mmap) && !findings.choices.is_empty() {
        remarks
            .push("All private mappings get one size: neither the library nor a run can tell them apart.".to_owned());
    }
    remarks.push(
        "Text and files keep their pages; fetches of instructions are not among the predicted misses.".to_owned(),
    );
    remarks
}

/// Everything.
pub(super) fn json(findings: &Findings) -> Json {
    let misses = |list: &[SegmentMisses]| -> Vec<Json> {
        let one = |s: &SegmentMisses| json!({ "segment": s.name, "l1_dtlb_misses": s.first, "walks": s.walks });
        list.iter().map(one).collect()
    };
    json!({
        "command": findings.command,
        "machine": findings.machine,
        "exit_code": findings.finish.exit_code(),
        "now": choice_json(findings, &findings.base),
        "segments": misses(&findings.segments),
        "segments_with_first": misses(&findings.best_segments),
        "choices": findings.choices.iter().map(|choice| choice_json(findings, choice)).collect::<Vec<_>>(),
        "best": findings.best.map(|best| best + 1),
        "leave_it": findings.best.is_none(),
        "least_gain": findings.least,
        "most_gain": findings.too_little,
        "miss_cycles": { "l2_dtlb_hit": findings.costs.hit, "walk": findings.costs.walk },
        "exposed": findings.exposed,
        "nodes_of_cpus": findings.cpu_nodes,
        "advice": advice(findings),
        "notes": remarks(findings),
    })
}

fn choice_json(findings: &Findings, choice: &Choice) -> Json {
    let pages: serde_json::Map<String, Json> = Group::ALL
        .into_iter()
        .filter(|group| findings.used.contains(group))
        .map(|group| (group.name().to_owned(), json!(size(choice.bytes[group as usize - 1]))))
        .collect();
    let library = choice.library.map(|library| {
        let variable = |(name, value): &(&str, &str)| format!("{name}={value}");
        library.variables().iter().map(variable).collect::<Vec<_>>()
    });
    json!({
        "pages": pages,
        "placement": match choice.placing {
            Placing::Unchanged => "unchanged",
            Placing::OnDemand => "demand",
            Placing::Interleaved => "interleave",
        },
        "default": choice.default,
        "variables": library,
        "predicted": {
            "seconds": choice.predicted,
            "l1_dtlb_misses": choice.misses.map(|m| m.first),
            "walks": choice.misses.map(|m| m.walks),
        },
        "simulated": choice.simulated.as_ref().map(|run| json!({
            "seconds": run.seconds,
            "change": change(findings, run.seconds),
            "l1_dtlb_misses": run.first,
            "walks": run.walks,
            "bytes_lost": run.lost,
            "nodes": run.nodes,
        })),
    })
}
