//! Text of the kernel's tracers: samples of osnoise, named by its events; without samples, the events themselves.

use std::collections::BTreeMap;

use super::{Error, Imported, Source, lines, wrong_file};
use crate::cause::{Event, NO_EVENT, Parser, Start, Who};
use crate::trace::{Cause, Kind};

/// Threads whose names are the kernel's.
const KERNEL: [&str; 12] = [
    "kworker/",
    "ksoftirqd/",
    "ktimers/",
    "migration/",
    "rcu",
    "irq/",
    "irq_work/",
    "kcompactd",
    "kswapd",
    "khungtaskd",
    "watchdog",
    "cpuhp/",
];

fn who(name: &str, number: u32) -> Who {
    match name {
        _ if number == 0 || name.starts_with("osnoise/") || name.starts_with("timerlat/") => Who::Nobody,
        _ if KERNEL.iter().any(|known| name.starts_with(known)) => Who::Kernel,
        _ => Who::Program,
    }
}

/// Reads traces; lines that are none of events are left out, as there are headers and other events.
pub fn read(sources: &[Source<'_>]) -> Result<Imported, Error> {
    let mut imported = Imported { program: "kernel tracer".to_owned(), ..Imported::default() };
    let mut all: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
    for source in sources {
        let mut parser = Parser::new(Start::Field, who);
        let mut found = 0;
        for (_, line) in lines(source) {
            if let Some(event) = parser.line(&line) {
                found += 1;
                all.entry(event.core).or_default().push(event);
            }
        }
        if found == 0 {
            return Err(wrong_file(
                source,
                "has no event that is understood; osnoise:sample_threshold, osnoise:*_noise, irq, irq_vectors and \
                 sched:sched_switch events are, in the text of the kernel's file trace",
            ));
        }
        if parser.lost() > 0 {
            imported.summary.notes.push(format!("{}: the tracer lost {} events", source.name, parser.lost()));
        }
    }
    let begin = all.values().flatten().map(|event| event.start).min().unwrap_or(0);
    let sampled = all.values().flatten().any(|event| event.cause.kind == Kind::Unknown);
    for (core, events) in all {
        imported.cores.insert(core, detours(events, begin, sampled));
    }
    if !sampled {
        let note =
            "the trace has no samples of osnoise: its events are taken for detours, without what entry and exit cost";
        imported.summary.notes.push(note.to_owned());
    }
    Ok(imported)
}

fn detours(events: Vec<Event>, begin: u64, sampled: bool) -> Vec<(u64, u64, Cause)> {
    let (samples, mut others): (Vec<Event>, Vec<Event>) =
        events.into_iter().partition(|e| e.cause.kind == Kind::Unknown);
    others.sort_by_key(|event| event.start);
    if !sampled {
        return others.into_iter().map(|event| (event.start - begin, event.length, event.cause)).collect();
    }
    let named = |sample: Event| {
        // Events are net: those within a sample begin and end in it.
        let from = others.partition_point(|event| event.start < sample.start);
        let within = others[from..].iter().take_while(|event| event.start <= sample.end());
        let longest = within.max_by_key(|event| event.length).map(|event| event.cause.clone());
        let cause = longest.unwrap_or_else(|| Cause::new(Kind::Hardware, NO_EVENT));
        (sample.start - begin, sample.length, cause)
    };
    samples.into_iter().map(named).collect()
}
