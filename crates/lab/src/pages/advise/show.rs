//! The advice as a document and as JSON.

use fxscope_linux::pages::MappingPages;
use fxscope_machine::settings::size;
use fxscope_record::Finish;
use fxscope_report::document::{Document, Row, Section, Value};
use fxscope_report::render::quantity::quantity;
use serde_json::{Value as Json, json};

use super::advice::{NoHugePage, ON_DEMAND, POLICY, pages};
use super::evaluate::PageRemedy;
use super::{Advice, Choice, Group, Library, PagePlacement, PartMisses, Simulated, UsedPart};

impl Advice {
    /// Returns the advice for people.
    #[must_use]
    pub fn document(&self) -> Document {
        let mut sections = vec![now(self), parts(self)];
        if !self.choices.is_empty() {
            sections.extend([times(self), causes(self), counts(self)]);
        }
        sections.push(Section::notes("Advice", recommendation(self)));
        sections.push(Section::notes("Notes", remarks(self)));
        let program = self.command.first().map_or("", String::as_str);
        let name = program.rsplit('/').next().unwrap_or(program);
        Document::of(format!("Pages of {name} on {}", self.machine), sections)
    }

    /// Returns the advice for programs.
    #[must_use]
    pub fn json(&self) -> Json {
        json(self)
    }
}

fn word(text: impl Into<String>) -> Option<Value> {
    Some(Value::text(text))
}

fn table(headings: &[&str], rows: Vec<Row>) -> Section {
    Section::table("", headings.iter().copied(), rows)
}

fn number(n: u64) -> Option<Value> {
    word(n.to_string())
}

fn now(advice: &Advice) -> Section {
    let now = |part: usize| pages(advice.base.pages[part]);
    let groups = Group::ALL.into_iter().filter(|&group| advice.used.iter().any(|used| Group::of(used.part) == group));
    let pages = groups.map(|group| (group.name(), now(group.part())));
    let time = advice.base.simulated.as_ref().map(|run| ("time", quantity(run.seconds, "s")));
    Section::facts("Now", pages.chain(time))
}

fn parts(advice: &Advice) -> Section {
    let best = |name: &str| advice.best_parts.iter().find(|part| part.name == name);
    let simulated = !advice.best_parts.is_empty();
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
    table(headings, advice.parts.iter().map(row).collect())
}

/// Returns the label of a choice.
fn label(place: usize) -> String {
    (place + 1).to_string()
}

fn all(advice: &Advice) -> impl Iterator<Item = (String, &Choice)> {
    let others = advice.choices.iter().enumerate().map(|(i, choice)| (label(i), choice));
    std::iter::once(("now".to_owned(), &advice.base)).chain(others)
}

/// Returns the relative difference of a time from the current one.
fn change(advice: &Advice, seconds: f64) -> f64 {
    let base = advice.base.simulated.as_ref().map_or(0.0, |base| base.seconds);
    if base > 0.0 { seconds / base - 1.0 } else { 0.0 }
}

fn times(advice: &Advice) -> Section {
    let time = |seconds: Option<f64>| seconds.map(|seconds| Value::Text(quantity(seconds, "s")));
    let row = |(label, choice): (String, &Choice)| {
        let simulated = choice.simulated.as_ref().map(|run| run.seconds);
        let percent = |seconds: Option<f64>| {
            seconds.map(|seconds| Value::Text(format!("{:+.1} %", 100.0 * change(advice, seconds))))
        };
        let changed = |seconds| if label == "now" { None } else { percent(seconds) };
        let values = vec![
            time(choice.predicted),
            changed(choice.predicted),
            time(simulated),
            changed(simulated),
            word(advice.describe(choice)),
        ];
        Row { label, values }
    };
    table(&["", "predicted", "change", "simulated", "change", "pages"], all(advice).map(row).collect())
}

/// The predicted change of the time by its causes.
fn causes(advice: &Advice) -> Section {
    let base = advice.base.simulated.as_ref().map_or(0.0, |base| base.seconds);
    let percent = |seconds: f64| word(format!("{:+.1} %", if base > 0.0 { 100.0 * seconds / base } else { 0.0 }));
    let row = |(i, choice): (usize, &Choice)| {
        let change = choice.change.as_ref()?;
        let values = vec![percent(change.repeated), percent(change.first_touches), percent(change.kernel)];
        Some(Row { label: label(i), values })
    };
    let rows = advice.choices.iter().enumerate().filter_map(row).collect();
    table(&["change predicted by", "repeated misses", "first touches", "kernel's work on pages"], rows)
}

fn counts(advice: &Advice) -> Section {
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
    table(&headings, all(advice).map(row).collect())
}

/// The recommendation.
fn recommendation(advice: &Advice) -> Vec<String> {
    let Some(best) = advice.best.and_then(|best| Some((best, advice.choices.get(best)?))) else {
        return vec![leave_it(advice)];
    };
    let (place, choice) = best;
    let seconds = choice.simulated.as_ref().map_or(0.0, |run| run.seconds);
    let gain = -100.0 * change(advice, seconds);
    let mut lines = vec![format!("{}: {} takes {gain:.1} % less time.", label(place), advice.describe(choice))];
    lines.extend(start_only(advice, choice));
    lines.extend(setting(advice, choice));
    lines
}

/// Says so if a choice gains enough in this run, but not in one that continues with the same work.
fn start_only(advice: &Advice, choice: &Choice) -> Option<String> {
    let base = advice.base.simulated.as_ref()?.seconds;
    let lasting = -choice.change?.repeated / base;
    (lasting < advice.least).then(|| {
        format!(
            "This gain is made once: first touches of pages and the kernel's work on them. A longer run of the same work gains {:.1} % at \
             most from these pages.",
            100.0 * lasting.max(0.0)
        )
    })
}

/// Returns the choice that gains most from misses that a longer run repeats, with its share of the time, if that is enough although this
/// run gains less.
fn lasting(advice: &Advice) -> Option<(usize, f64)> {
    let base = advice.base.simulated.as_ref()?.seconds;
    let share = |choice: &Choice| -choice.change.map_or(0.0, |change| change.repeated) / base;
    let all = advice.choices.iter().enumerate().map(|(i, choice)| (i, share(choice)));
    all.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, share)| *share >= advice.least)
}

fn leave_it(advice: &Advice) -> String {
    let least = format!("{} %", 100.0 * advice.least);
    let sizes = match advice.too_little {
        Some(0.0) => "no other page sizes have fewer TLB misses".to_owned(),
        Some(share) => {
            format!("fewer TLB misses can hardly gain {:.2} % of the time, which is below {least}", 100.0 * share)
        }
        None => {
            let longer = lasting(advice).map_or_else(String::new, |(place, share)| {
                format!(
                    " In a longer run of the same work, {} avoids misses that take {:.1} % of the time; here, first touches of pages \
                     and the kernel's work on them take as much.",
                    label(place),
                    100.0 * share
                )
            });
            return format!("Change nothing: no simulated assignment gains {least} of the time.{longer}");
        }
    };
    let places = if advice.choices.is_empty() { "" } else { ", and no other placement of its pages gains as much" };
    format!("Change nothing: {sizes}{places}.")
}

/// A choice as a remedy.
pub(super) fn remedy(advice: &Advice, choice: &Choice) -> PageRemedy {
    let variables = |library: Library| {
        let variable = |(name, value): &(&str, &str)| format!("{name}={value}");
        library.variables().iter().map(variable).collect::<Vec<_>>()
    };
    let machine = match choice.library {
        _ if choice.default => "no variable and no option: they are the default".to_owned(),
        Some(library) => variables(library).join(" "),
        None => by_hand(advice, choice).join(" "),
    };
    let options = match choice.library {
        Some(library @ Library::Transparent) => {
            variables(library).into_iter().flat_map(|variable| ["-e".to_owned(), variable]).collect()
        }
        _ => vec!["--pages".to_owned(), options(advice, choice)],
    };
    PageRemedy { pages: advice.describe(choice), machine, options }
}

/// How to set a choice.
fn setting(advice: &Advice, choice: &Choice) -> Vec<String> {
    let program = shell(&advice.command);
    let changed = choice.pages != advice.base.pages;
    let mut variables = Vec::new();
    if changed && let Some(library) = choice.library {
        variables.extend(library.variables().iter().map(|(name, value)| format!("{name}={value}")));
    }
    if choice.placement == PagePlacement::OnDemand {
        variables.push(format!("{POLICY}={ON_DEMAND}"));
    }
    let mut lines = Vec::new();
    if changed && choice.library.is_none() {
        let cpus = advice.cpus.as_ref().map_or_else(String::new, |cpus| format!("--cpus {cpus} "));
        lines.push(format!("fxscope run {cpus}--pages {} -- {program}", options(advice, choice)));
        lines.extend(by_hand(advice, choice));
    }
    if !variables.is_empty() || choice.placement == PagePlacement::Interleaved {
        variables.push(numactl(advice, choice) + &program);
        lines.push(variables.join(" "));
    }
    if changed && choice.default {
        lines.push("These pages are the machine's default, without any variable or option.".to_owned());
    }
    if changed && choice.library.is_some_and(Library::is_on_demand) {
        lines.push("Without the library's large pages, all pages are allocated on demand.".to_owned());
    }
    lines
}

/// Returns the numactl(8) command for a choice. The program's command comes after `--`, so that numactl leaves its options
/// alone.
fn numactl(advice: &Advice, choice: &Choice) -> String {
    let cpus = advice.cpus.as_ref().map(|cpus| format!("--physcpubind={cpus}"));
    let memory = (choice.placement == PagePlacement::Interleaved).then(|| "--interleave=all".to_owned());
    let options: String = cpus.into_iter().chain(memory).map(|option| option + " ").collect();
    if options.is_empty() { options } else { format!("numactl {options}-- ") }
}

/// How to set a choice that no variable sets.
fn by_hand(advice: &Advice, choice: &Choice) -> Vec<String> {
    let text = Group::Text.part();
    let mut lines = vec!["The system's large-page library has no variable for all of these pages.".to_owned()];
    for used in advice.used.iter().filter(|used| choice.pages[used.part] != advice.base.pages[used.part]) {
        match (&used.call, choice.pages[used.part]) {
            (Some(call), MappingPages::Transparent) => {
                lines.push(format!("In the source: madvise(..., MADV_HUGEPAGE) for what {} maps.", call.text));
            }
            (Some(call), MappingPages::Size(bytes)) if bytes > advice.normal => lines.push(format!(
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

/// Formats the pages of a choice for `--pages`.
fn options(advice: &Advice, choice: &Choice) -> String {
    let differs = |used: &&UsedPart| choice.pages[used.part] != advice.base.pages[used.part];
    let rest = advice.rest(choice);
    let groups = advice.used.iter().filter(differs).filter(|used| Group::of(used.part) != Group::Mmap);
    let of_group = |used: &UsedPart| {
        let pages = pages(choice.pages[used.part]);
        Group::of(used.part).segments().iter().map(move |segment| format!("{}={pages}", segment.name()))
    };
    let mmap = (rest != advice.base.pages[Group::Mmap.part()]).then(|| format!("mmap={}", pages(rest)));
    let calls = advice.calls_apart(choice).map(|(call, kind)| format!("mmap@{call}={}", pages(kind)));
    groups.flat_map(of_group).chain(mmap).chain(calls).collect::<Vec<_>>().join(",")
}

/// Quotes a command for a shell.
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

/// Remarks on the advice.
fn remarks(advice: &Advice) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Finish::Exited(code @ 1..) = advice.finish {
        remarks.push(format!("The program ended with status {code}: check that this is the run you want."));
    }
    if advice.finish == Finish::Limit {
        remarks.push("The run ended at the limit of instructions.".to_owned());
    }
    if let Some(from) = advice.steady_from {
        remarks.push(format!("All times and misses are of the second half of the run, from instruction {from} on."));
    }
    if let Some(exposed) = advice.exposed {
        let (hit, walk) = (advice.costs.hit, advice.costs.walk);
        let free = advice.free.map_or_else(String::new, |seconds| quantity(seconds, "s"));
        remarks.push(format!(
            "Where misses take no time, the program takes {free}: they cost it {exposed:.2} times their time without overlap ({hit} \
             cycles, {walk} with a walk)."
        ));
    }
    if advice.mixed {
        remarks.push(
            "Pages of .bss that are allocated at once cost no time, as that happens before the first instruction; on demand they do.".to_owned(),
        );
    }
    if !advice.other_sites.is_empty() {
        remarks.push(format!("Other mmap: also what {} maps.", advice.other_sites.join(", ")));
    }
    match advice.transparent {
        Ok(_) => {}
        Err(NoHugePage::NoMapping(bytes)) => remarks.push(format!(
            "Transparent huge pages have {} here; no mapping of the program holds one, so they would be normal pages.",
            size(bytes)
        )),
        Err(NoHugePage::Off(bytes)) => remarks.push(format!(
            "Transparent huge pages of {} are off (--thp, or thp.enabled of the machine), and were not tried.",
            size(bytes)
        )),
    }
    remarks
}

/// Everything, as JSON.
fn json(advice: &Advice) -> Json {
    let misses = |list: &[PartMisses]| -> Vec<Json> {
        let one = |s: &PartMisses| json!({ "segment": s.name, "l1_tlb_misses": s.first, "walks": s.walks });
        list.iter().map(one).collect()
    };
    json!({
        "command": advice.command,
        "steady_from": advice.steady_from,
        "machine": advice.machine,
        "exit_code": advice.finish.exit_code(),
        "now": choice_json(advice, &advice.base),
        "segments": misses(&advice.parts),
        "segments_with_first": misses(&advice.best_parts),
        "choices": advice.choices.iter().map(|choice| choice_json(advice, choice)).collect::<Vec<_>>(),
        "best": advice.best.map(|best| best + 1),
        "parts": advice.used.iter().map(|used| json!({ "name": used.name(), "bytes": used.bytes })).collect::<Vec<_>>(),
        "leave_it": advice.best.is_none(),
        "least_gain": advice.least,
        "most_gain": advice.too_little,
        "miss_cycles": { "l2_dtlb_hit": advice.costs.hit, "walk": advice.costs.walk },
        "exposed": advice.exposed,
        "seconds_without_misses": advice.free,
        "nodes_of_cpus": advice.cpu_nodes,
        "advice": recommendation(advice),
        "notes": remarks(advice),
    })
}

fn choice_json(advice: &Advice, choice: &Choice) -> Json {
    let of_part = |used: &UsedPart| (used.name().to_owned(), json!(pages(choice.pages[used.part])));
    let parts: serde_json::Map<String, Json> = advice.used.iter().map(of_part).collect();
    let library = choice.library.map(|library| {
        let variable = |(name, value): &(&str, &str)| format!("{name}={value}");
        library.variables().iter().map(variable).collect::<Vec<_>>()
    });
    json!({
        "pages": parts,
        "placement": match choice.placement {
            PagePlacement::Unchanged => "unchanged",
            PagePlacement::OnDemand => "demand",
            PagePlacement::Interleaved => "interleave",
        },
        "default": choice.default,
        "variables": library,
        "predicted": {
            "seconds": choice.predicted,
            "change_by": choice.change.map(|change| json!({
                "repeated_misses": change.repeated,
                "first_touches": change.first_touches,
                "kernel": change.kernel,
            })),
            "l1_dtlb_misses": choice.misses.map(|m| m.first),
            "walks": choice.misses.map(|m| m.walks),
            "l1_itlb_misses": choice.misses.map(|m| m.code[0]),
            "instruction_walks": choice.misses.map(|m| m.code[1]),
        },
        "simulated": choice.simulated.as_ref().map(|run| json!({
            "seconds": run.seconds,
            "change": change(advice, run.seconds),
            "l1_dtlb_misses": run.first,
            "walks": run.walks,
            "l1_itlb_misses": run.code[0],
            "instruction_walks": run.code[1],
            "bytes_lost": run.lost,
            "nodes": run.nodes,
        })),
    })
}
