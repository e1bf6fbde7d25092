//! Notes of a record: what readers of its counts must know.

use fxscope_counts::Signal;
use fxscope_linux::pages::{MemoryPolicy, list};
use fxscope_linux::{Denied, End, Guest, Refusal, hwpfctl};
use fxscope_record::functions::meant;
use fxscope_sim::part::{PartPlan, PartSummary, Selection, Warming};
use fxscope_sim::{Bias, Jobs, MOST_INTERVALS, Mode, Outcome, SampleSummary, SkipSummary, ThreadStarts, Unpaired};

use crate::Request;

/// Reports how much was simulated in parallel.
fn host_threads(threads: usize, outcome: &Outcome) -> Option<String> {
    let all = outcome.regions.first()?.threads.values();
    let instructions: u64 = all.map(|counted| counted.signals().get(Signal::InstRetired)).sum();
    let share = 100.0 * outcome.parallel_instructions as f64 / instructions.max(1) as f64;
    match (threads, outcome.parallel_instructions) {
        (0 | 1, _) => None,
        (_, 0) => Some(format!("{threads} host threads: nothing was simulated in parallel.")),
        _ => Some(format!(
            "{threads} host threads: {share:.0} % of the instructions were simulated in parallel. Figures differ a little \
             from those of one host thread."
        )),
    }
}

/// Reports that intervals were timed. The record does not depend on how many at a time.
fn in_intervals() -> String {
    format!(
        "Timed in intervals of {} million instructions (--jobs): before each of them, caches, TLBs, prefetchers and branch predictors followed \
         the program. While it ran, its clock advanced by a cycle for each instruction.",
        Jobs::INTERVAL / 1_000_000
    )
}

pub(crate) fn notes(request: &Request, outcome: &Outcome, process: &Guest) -> Vec<String> {
    let mut notes = request.notes.clone();
    notes.extend(Some(&request.spec.identity.note).filter(|note| !note.is_empty()).cloned());
    if request.options.stream_detect != 0 {
        notes.push(format!("Hardware prefetch: {}.", hwpfctl::describe(request.options.stream_detect.into())));
    }
    if request.options.mode == Mode::Functional {
        notes.push(
            "Functional mode: results and instruction counts only; time and cycles are nominal, one nanosecond for \
             each instruction of any process."
                .to_owned(),
        );
    }
    notes.extend(request.options.part.as_ref().zip(outcome.part.as_ref()).into_iter().flat_map(part));
    notes.extend(request.options.part.as_ref().into_iter().flat_map(|plan| made_of_functions(plan, process)));
    notes.extend(outcome.sample.as_ref().and_then(too_short));
    notes.extend(outcome.sample.as_ref().and_then(skipped));
    notes.extend(outcome.sample.as_ref().and_then(waiting));
    for (class, count) in &outcome.unknown_classes {
        notes.push(format!(
            "The machine has no timing for '{class}' (instructions of the program: {count}); theirs is assumed."
        ));
    }
    for (number, name, calls) in process.unknown_calls() {
        notes.push(format!("System call {number} ({name}) is not implemented; calls answered with ENOSYS: {calls}."));
    }
    notes.extend(host_threads(request.options.host_threads, outcome));
    notes.extend(request.options.jobs.map(|_| in_intervals()));
    notes.extend(last_interval(outcome));
    notes.extend(full_stacks(outcome));
    notes.extend(unpaired(outcome));
    notes.extend(outcome.regions.iter().filter_map(thread_starts));
    notes.extend(memory_policy(request.memory_policy));
    notes.extend(process.page_notes().iter().cloned());
    notes.extend(process.refusals().iter().map(refusal));
    notes.extend(process.unwritten_files().map(|(path, error)| {
        format!("Changes of {} through a shared mapping could not be written to it: {error}.", path.display())
    }));
    notes.extend(missing_library(outcome, process));
    notes
}

/// Reports from when on call stacks are missing.
fn full_stacks(outcome: &Outcome) -> Option<String> {
    let stacks = &outcome.stacks;
    stacks.is_full.then(|| {
        format!(
            "Call stacks: the {} samples that a run keeps were full before its end; later ones are missing. Sample at longer distances \
             (--stacks).",
            stacks.samples.len()
        )
    })
}

/// Reports which functions the names stand for with which the part begins or ends.
fn made_of_functions(plan: &PartPlan, process: &Guest) -> Vec<String> {
    let symbols: Vec<&str> = process.running_symbols().functions().map(|(name, _)| name).collect();
    let note = |name: &String| {
        let meant = meant(name, symbols.iter().copied());
        let is_made = meant.first().is_some_and(|first| first != name);
        is_made.then(|| {
            format!("The program has no function {name}, but what the compiler has made of it: {}.", meant.join(", "))
        })
    };
    plan.functions().iter().filter_map(note).collect()
}

/// Reports which part of the run was timed.
fn part((plan, summary): (&PartPlan, &PartSummary)) -> Vec<String> {
    let PartSummary { skipped, followed, timed, behind, executions, .. } = *summary;
    let all = skipped + followed + timed + behind;
    let million = |n: u64| if n < 1_000_000 { n.to_string() } else { format!("{:.1} million", n as f64 / 1e6) };
    if executions == 0 {
        return vec![format!(
            "{plan}: nothing was timed, since the part never began: the run ended after {} instructions. Check the name, or the number.",
            million(all)
        )];
    }
    let times = if executions == 1 { String::new() } else { format!(" in {executions} executions") };
    let share = 100.0 * timed as f64 / all.max(1) as f64;
    let mut notes = vec![format!(
        "{plan}: {} instructions{times} were timed, {share:.1} % of {}; {} were followed, {} before and {} behind the part executed \
         without a model. All counts are those of the part.",
        million(timed),
        million(all),
        million(followed),
        million(skipped),
        million(behind)
    )];
    let is_cold = skipped > 0 && plan.warming == Warming::Nothing;
    if is_cold && executions == 1 {
        notes.push("Caches, TLBs and branch predictors were empty when the part began (--warm none).".to_owned());
    } else if is_cold {
        notes.push(
            "Caches, TLBs and branch predictors were empty when the first execution began (--warm none); what is between executions was \
             followed."
                .to_owned(),
        );
    }
    if !summary.ended
        && let Selection::Between { until: Some(until), .. } = &plan.selection
    {
        notes.push(format!("--until {until} did not come: the part lasts to the end of the run."));
    }
    notes
}

/// Reports that a program was too short to be sampled.
fn too_short(sample: &SampleSummary) -> Option<String> {
    (sample.followed + sample.timed == 0).then(|| {
        format!(
            "Sampling had nothing to save: all {:.1} million instructions were timed, since the beginning of a run always is, so that counts \
             are no estimates. Leave --sample out, run a larger problem, or let less of it be timed, such as with --sample begin=1000000.",
            sample.exact as f64 / 1e6
        )
    })
}

/// Reports how much of a sampled run was not even followed, and what that changes.
fn skipped(sample: &SampleSummary) -> Option<String> {
    let SkipSummary { instructions, follow, bias } = sample.skipped.as_ref()?;
    let all = sample.exact + sample.timed + sample.followed + instructions;
    let share = 100.0 * *instructions as f64 / all.max(1) as f64;
    let effect = match bias {
        Some(Bias { relative, standard_error, trials }) => format!(
            "{trials} windows were also timed with much more followed: after skipped code they take {:+.2} % (±{:.2}) longer",
            100.0 * relative,
            200.0 * standard_error
        ),
        None => "How much that changes times was not tried".to_owned(),
    };
    Some(format!(
        "Sampling skipped {share:.0} % of the instructions: caches, translations and predictors were kept up to date only for the last \
         {:.1} million before each window. {effect}.",
        *follow as f64 / 1e6
    ))
}

/// The share of all cycles from which it is said that threads wait.
const MUCH_WAITING: f64 = 0.2;

/// Reports that threads of a sampled run mostly wait, which is known less well than what they execute.
fn waiting(sample: &SampleSummary) -> Option<String> {
    (sample.windows > 0 && sample.waiting >= MUCH_WAITING).then(|| {
        format!(
            "Sampling: in {:.0} % of all cycles threads wait for others, asleep or in spin loops. How long follows from their clocks, which \
             advance by mean costs of code and end {:+.1} % from the estimates. Intervals include that difference.",
            100.0 * sample.waiting,
            100.0 * sample.clocks
        )
    })
}

/// Reports that the last interval was extended because of the limit.
fn last_interval(outcome: &Outcome) -> Option<String> {
    let from = outcome.intervals.iter().nth_back(1).filter(|_| outcome.intervals.len() == MOST_INTERVALS)?;
    let seconds = from.end_ns as f64 / 1e9;
    Some(format!(
        "The last of {MOST_INTERVALS} intervals lasts from {seconds} s to the end of the run, since there are no more: a longer \
         --interval separates all of it."
    ))
}

/// Reports unpaired marks of regions. A stopped run does not report those that were still open.
fn unpaired(outcome: &Outcome) -> impl Iterator<Item = String> + '_ {
    let ended = matches!(outcome.finish, fxscope_sim::Finish::Ended(_));
    outcome.unpaired.iter().filter_map(move |unpaired| match unpaired {
        Unpaired::NeverLeft(name) => {
            ended.then(|| format!("Region '{name}' was never left: it counts up to the end of the run."))
        }
        Unpaired::NeverEntered(name, times) => Some(format!(
            "Region '{name}' was left without having been entered by the same thread, {times}×; that counts nothing."
        )),
    })
}

/// Reports how much of a region is the start of threads.
fn thread_starts(region: &fxscope_sim::Region) -> Option<String> {
    let ThreadStarts { threads, calls, until_ns, creating_ns, region_ns } = region.starts?;
    let us = |ns: u64| format!("{:.1} µs", ns as f64 / 1e3);
    let share = 100.0 * until_ns as f64 / region_ns.max(1) as f64;
    let s = if threads == 1 { "" } else { "s" };
    let of_calls = if region.calls == 1 { String::new() } else { format!(" in {calls} of {} calls", region.calls) };
    Some(format!(
        "Region '{}' contains the start of {threads} thread{s}{of_calls}: {} of its {} ({share:.1} %) pass until the last one \
         executes its first instruction, the last {} of them after the first clone. To measure the work alone, start the \
         threads before it, with a parallel region as warm-up, or mark the work after it as a separate region and \
         report that with --region.",
        region.name,
        us(until_ns),
        us(region_ns),
        us(creating_ns),
    ))
}

/// Reports the requested memory policy.
fn memory_policy(policy: MemoryPolicy) -> Option<String> {
    match policy {
        MemoryPolicy::Local => None,
        MemoryPolicy::Bind(nodes) => Some(format!("Memory is from node {} only (--membind).", list(nodes))),
        MemoryPolicy::Interleave(nodes, weights) if weights.are_equal() => {
            Some(format!("Pages are on nodes {} in turn (--interleave).", list(nodes)))
        }
        MemoryPolicy::Interleave(nodes, weights) => {
            let all = (0..u64::BITS).filter(|node| nodes >> node & 1 != 0).enumerate();
            let turns: Vec<_> = all.map(|(index, node)| format!("{} on node {node}", weights.of(index))).collect();
            Some(format!("Pages are on several nodes in turn, {} (--interleave).", turns.join(", ")))
        }
    }
}

/// Reports where libraries were searched: the dynamic linker exits with status 127 if one is missing, after naming it.
fn missing_library(outcome: &Outcome, process: &Guest) -> Option<String> {
    let linker_gave_up = matches!(outcome.finish, fxscope_sim::Finish::Ended(End::Exit { code: 127 }));
    let searched = process.searched().filter(|_| linker_gave_up)?;
    Some(format!(
        "Exit status 127: if a library is missing, it was looked for in {searched}; --sysroot DIR names another folder."
    ))
}

/// Reports what the program was refused, and how to allow it.
fn refusal(refusal: &Refusal) -> String {
    let Refusal { denied, folder, calls } = refusal;
    let shown = folder.display();
    let (what, switch) = match denied {
        Denied::Network => ("network sockets".to_owned(), "--allow net".to_owned()),
        Denied::Device => {
            return format!(
                "The program was refused devices in {shown} (calls: {calls}); those of the host are unchanged."
            );
        }
        Denied::KernelFile => {
            return format!(
                "The program was refused files of the kernel in {shown} (calls: {calls}): no procfs, sysfs or the like of the \
                 host may be used."
            );
        }
        Denied::Read | Denied::Write => {
            let (doing, key) = if *denied == Denied::Read { ("reading", "read") } else { ("writing", "write") };
            if folder.as_os_str().is_empty() {
                (format!("{doing} in further folders"), format!("--allow {key}=DIR"))
            } else {
                (format!("{doing} in {shown}"), format!("--allow {key}={shown}"))
            }
        }
    };
    format!("The program was refused {what} (calls: {calls}); {switch} permits it.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampled_run_says_how_much_its_threads_wait_if_that_is_much() {
        let sample = |windows, waiting| SampleSummary {
            plan: "auto".to_owned(),
            windows,
            exact: 0,
            timed: 0,
            followed: 0,
            skipped: None,
            unseen: 0.0,
            waiting,
            clocks: -0.034,
            regions: Vec::new(),
        };
        let note = super::waiting(&sample(100, 0.42)).expect("a note");
        assert!(note.contains("in 42 % of all cycles") && note.contains("end -3.4 % from the estimates"), "{note}");
        assert_eq!((super::waiting(&sample(100, 0.19)), super::waiting(&sample(0, 0.9))), (None, None));
    }
}
