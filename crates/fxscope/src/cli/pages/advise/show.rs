//! What is said about a program's pages.

use fxscope::advise::{Group, Library, PartMisses};
use fxscope::linux::pages::MappingPages;
use fxscope::machine::settings::size;
use fxscope::record::Finish;
use fxscope::report::document::{Body, Document, Row, Section, Value};
use fxscope::report::render::quantity::quantity;
use fxscope::report::render::terminal::{self, Style};
use serde_json::{Value as Json, json};

use super::weigh::{Choice, Findings, ON_DEMAND, POLICY, Placing, Simulated, Used, pages};

/// The text for a terminal.
pub(super) fn text(findings: &Findings, style: Style) -> String {
    let mut sections = vec![now(findings), parts(findings)];
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
    let now = |part: usize| pages(findings.base.pages[part]);
    let groups = Group::ALL.into_iter().filter(|&group| findings.used.iter().any(|used| Group::of(used.part) == group));
    let pages = groups.map(|group| (group.name(), now(group.part())));
    let time = findings.base.simulated.as_ref().map(|run| ("time", quantity(run.seconds, "s")));
    Section { title: "Now".to_owned(), body: Body::Facts(pages.chain(time).map(fact).collect()) }
}

fn parts(findings: &Findings) -> Section {
    let best = |name: &str| findings.best_parts.iter().find(|part| part.name == name);
    let simulated = !findings.best_parts.is_empty();
    let row = |part: &PartMisses| {
        let mut values = vec![number(part.first), number(part.walks)];
        if simulated {
            let then = best(&part.name);
            values.push(number(then.map_or(0, |then| then.first)));
            values.push(number(then.map_or(0, |then| then.walks)));
        }
        Row { label: part.name.clone(), values }
    };
    let headings: &[&str] = match simulated {
        true => &["accesses to", "L1 TLB misses now", "walks now", "misses with 1", "walks with 1"],
        false => &["accesses to", "L1 TLB misses now", "walks now"],
    };
    table(headings, findings.parts.iter().map(row).collect())
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
    let changed = choice.pages != findings.base.pages;
    let mut variables = Vec::new();
    if changed && let Some(library) = choice.library {
        variables.extend(library.variables().iter().map(|(name, value)| format!("{name}={value}")));
    }
    if choice.placing == Placing::OnDemand {
        variables.push(format!("{POLICY}={ON_DEMAND}"));
    }
    let mut lines = Vec::new();
    if changed && choice.library.is_none() {
        let cpus = findings.cpus.as_ref().map_or_else(String::new, |cpus| format!("--cpus {cpus} "));
        lines.push(format!("fxscope run {cpus}--pages {} -- {program}", options(findings, choice)));
        lines.extend(by_hand(findings, choice));
    }
    if !variables.is_empty() || choice.placing == Placing::Interleaved {
        variables.push(numactl(findings, choice) + &program);
        lines.push(variables.join(" "));
    }
    if changed && choice.default {
        lines.push("The machine gives these pages without any variable or option.".to_owned());
    }
    if changed && choice.library.is_some_and(Library::is_on_demand) {
        lines.push("Without the library's large pages, all pages are taken on demand.".to_owned());
    }
    lines
}

/// What numactl(8) sets of a choice. Behind the dashes stands the command, whose own options it leaves alone.
fn numactl(findings: &Findings, choice: &Choice) -> String {
    let cpus = findings.cpus.as_ref().map(|cpus| format!("--physcpubind={cpus}"));
    let memory = (choice.placing == Placing::Interleaved).then(|| "--interleave=all".to_owned());
    let options: String = cpus.into_iter().chain(memory).map(|option| option + " ").collect();
    if options.is_empty() { options } else { format!("numactl {options}-- ") }
}

/// How a choice that no variable gives comes about on the machine.
fn by_hand(findings: &Findings, choice: &Choice) -> Vec<String> {
    let text = Group::Text.part();
    let mut lines = vec!["The system's large-page library has no variable for all of these pages.".to_owned()];
    for used in findings.used.iter().filter(|used| choice.pages[used.part] != findings.base.pages[used.part]) {
        match (&used.call, choice.pages[used.part]) {
            (Some(call), MappingPages::Transparent) => {
                lines.push(format!("In the source: madvise(..., MADV_HUGEPAGE) for what {} maps.", call.text));
            }
            (Some(call), MappingPages::Size(bytes)) if bytes > findings.normal => lines.push(format!(
                "In the source: mmap(..., MAP_HUGETLB | {} << MAP_HUGE_SHIFT) for what {} maps; by hugetlbfs, where the system has \
                 such pages.",
                bytes.trailing_zeros(),
                call.text
            )),
            (None, MappingPages::Size(bytes)) if used.part == text => lines.push(format!(
                "Text: hugectl --text={} of libhugetlbfs, where it is installed and the program is linked for it \
                 (--hugetlbfs-align); the large-page library leaves text as it is.",
                size(bytes)
            )),
            _ => {}
        }
    }
    lines
}

/// The pages of a choice as `--pages` takes them.
fn options(findings: &Findings, choice: &Choice) -> String {
    let differs = |used: &&Used| choice.pages[used.part] != findings.base.pages[used.part];
    let rest = findings.rest(choice);
    let groups = findings.used.iter().filter(differs).filter(|used| Group::of(used.part) != Group::Mmap);
    let of_group = |used: &Used| {
        let pages = pages(choice.pages[used.part]);
        Group::of(used.part).segments().iter().map(move |segment| format!("{}={pages}", segment.name()))
    };
    let mmap = (rest != findings.base.pages[Group::Mmap.part()]).then(|| format!("mmap={}", pages(rest)));
    let calls = findings.calls_apart(choice).map(|(call, kind)| format!("mmap@{call}={}", pages(kind)));
    groups.flat_map(of_group).chain(mmap).chain(calls).collect::<Vec<_>>().join(",")
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
    if let Err(bytes) = findings.transparent {
        remarks.push(format!(
            "Transparent huge pages have {} here; nothing that the program maps holds one, so that they would be normal pages.",
            size(bytes)
        ));
    }
    remarks
}

/// Everything.
pub(super) fn json(findings: &Findings) -> Json {
    let misses = |list: &[PartMisses]| -> Vec<Json> {
        let one = |s: &PartMisses| json!({ "segment": s.name, "l1_tlb_misses": s.first, "walks": s.walks });
        list.iter().map(one).collect()
    };
    json!({
        "command": findings.command,
        "machine": findings.machine,
        "exit_code": findings.finish.exit_code(),
        "now": choice_json(findings, &findings.base),
        "segments": misses(&findings.parts),
        "segments_with_first": misses(&findings.best_parts),
        "choices": findings.choices.iter().map(|choice| choice_json(findings, choice)).collect::<Vec<_>>(),
        "best": findings.best.map(|best| best + 1),
        "parts": findings.used.iter().map(|used| json!({ "name": used.name(), "bytes": used.bytes })).collect::<Vec<_>>(),
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
    let of_part = |used: &Used| (used.name().to_owned(), json!(pages(choice.pages[used.part])));
    let parts: serde_json::Map<String, Json> = findings.used.iter().map(of_part).collect();
    let library = choice.library.map(|library| {
        let variable = |(name, value): &(&str, &str)| format!("{name}={value}");
        library.variables().iter().map(variable).collect::<Vec<_>>()
    });
    json!({
        "pages": parts,
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
            "l1_itlb_misses": choice.misses.map(|m| m.code[0]),
            "instruction_walks": choice.misses.map(|m| m.code[1]),
        },
        "simulated": choice.simulated.as_ref().map(|run| json!({
            "seconds": run.seconds,
            "change": change(findings, run.seconds),
            "l1_dtlb_misses": run.first,
            "walks": run.walks,
            "l1_itlb_misses": run.code[0],
            "instruction_walks": run.code[1],
            "bytes_lost": run.lost,
            "nodes": run.nodes,
        })),
    })
}
