//! Imports the kernel's trace text, also as perf script and trace-cmd write it: osnoise samples, named by its events;
//! without samples, the events themselves; without events, the osnoise tracer's sums.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Error, Imported, Source, lines, wrong_file};
use crate::cause::{Event, NO_EVENT, Parser, Start, Sums, ThreadKind, sums};
use crate::trace::{Cause, CoreSummary, Counted, Kind};

/// What the tracer counts in its sums.
const KINDS: [Kind; 5] = [Kind::Hardware, Kind::Nmi, Kind::Interrupt, Kind::SoftInterrupt, Kind::KernelThread];

/// Names of kernel threads.
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

fn who(name: &str, number: u32) -> ThreadKind {
    match name {
        _ if number == 0 || name.starts_with("osnoise/") || name.starts_with("timerlat/") => ThreadKind::Measuring,
        _ if KERNEL.iter().any(|known| name.starts_with(known)) => ThreadKind::Kernel,
        _ => ThreadKind::Program,
    }
}

/// Reads traces. Lines that are not events are skipped, such as headers.
pub fn read(sources: &[Source<'_>]) -> Result<Imported, Error> {
    let mut imported = Imported { program: "kernel tracer".to_owned(), ..Imported::default() };
    let mut all: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
    let mut summed: Vec<Sums> = Vec::new();
    for source in sources {
        let mut parser = Parser::new(Start::Field, who);
        let mut found = 0;
        for (_, line) in lines(source) {
            if let Some(event) = parser.line(&line) {
                found += 1;
                all.entry(event.core).or_default().push(event);
            } else if let Some(sums) = sums(&line) {
                found += 1;
                summed.push(sums);
            }
        }
        if found == 0 {
            return Err(wrong_file(
                source,
                "has no recognisable event; osnoise:sample_threshold, osnoise:*_noise, irq, irq_vectors and \
                 sched:sched_switch events are, in the text of the kernel's file trace, of perf script or trace-cmd report",
            ));
        }
        if parser.lost() > 0 {
            imported.summary.notes.push(format!("{}: the tracer lost {} events", source.name, parser.lost()));
        }
    }
    if all.is_empty() {
        return Ok(totals(imported, summed));
    }
    if !summed.is_empty() {
        let note = "the tracer's sums of each period are left out: its events have the same time";
        imported.summary.notes.push(note.to_owned());
    }
    let begin = all.values().flatten().map(|event| event.start).min().unwrap_or(0);
    let mut unsampled: Vec<String> = Vec::new();
    for (core, events) in all {
        let sampled = events.iter().any(|event| event.cause.kind == Kind::Unknown);
        if !sampled {
            unsampled.push(core.to_string());
        }
        imported.cores.insert(core, detours(events, begin, sampled));
    }
    let what = "has no osnoise samples: its events are taken as detours, which excludes the cost of entry and exit";
    match unsampled.len() {
        0 => {}
        all if all == imported.cores.len() => imported.summary.notes.push(format!("the trace {what}")),
        _ => imported.summary.notes.extend(unsampled.iter().map(|core| format!("CPU {core} {what}"))),
    }
    Ok(imported)
}

/// The sums of a trace that has nothing else.
fn totals(mut imported: Imported, summed: Vec<Sums>) -> Imported {
    let mut cores: BTreeMap<u32, Sums> = BTreeMap::new();
    for sums in summed {
        let known = cores.entry(sums.core).or_insert(Sums {
            core: sums.core,
            runtime: 0,
            noise: 0,
            longest: 0,
            counts: [0; 5],
        });
        known.runtime = known.runtime.saturating_add(sums.runtime);
        known.noise = known.noise.saturating_add(sums.noise);
        known.longest = known.longest.max(sums.longest);
        for (sum, count) in known.counts.iter_mut().zip(sums.counts) {
            *sum = sum.saturating_add(count);
        }
    }
    for (core, sums) in cores {
        let counts = KINDS.into_iter().zip(sums.counts);
        let counts = counts.map(|(kind, amount)| Counted { cause: Cause::new(kind, ""), amount, time: false });
        let ns = |us: u64| us.saturating_mul(1000);
        let noise = Counted { cause: Cause::unknown(), amount: ns(sums.noise), time: true };
        let (total, longest) = (ns(sums.runtime), ns(sums.longest));
        imported.summary.duration = imported.summary.duration.max(total);
        let counted = std::iter::once(noise).chain(counts).collect();
        imported.summary.cores.push(CoreSummary {
            core,
            total: total as f64,
            longest,
            counted,
            ..CoreSummary::default()
        });
    }
    let note = "the trace has the tracer's sums of each period only: there are no individual detours to fit or replay";
    imported.summary.notes.push(note.to_owned());
    imported
}

/// The detours of one core: named osnoise samples, or otherwise the events in sequence.
fn detours(events: Vec<Event>, begin: u64, sampled: bool) -> Vec<(u64, u64, Cause)> {
    let (samples, others): (Vec<Event>, Vec<Event>) = events.into_iter().partition(|e| e.cause.kind == Kind::Unknown);
    let others = net(others);
    if !sampled {
        return in_turn(others, begin);
    }
    let named = |sample: Event| {
        // Events that belong to a sample lie within it.
        let from = others.partition_point(|event| event.start < sample.start);
        let within = others[from..].iter().take_while(|event| event.start <= sample.end());
        let longest = within.max_by_key(|event| event.length).map(|event| event.cause.clone());
        let cause = longest.unwrap_or_else(|| Cause::new(Kind::Hardware, NO_EVENT));
        (sample.start - begin, sample.length, cause)
    };
    samples.into_iter().map(named).collect()
}

/// The events of a core with net durations, by start. Events of the osnoise tracer are already net and complete; other
/// events beside them would be counted twice and are dropped.
fn net(mut events: Vec<Event>) -> Vec<Event> {
    if events.iter().any(|event| event.net) {
        events.retain(|event| event.net);
        events.sort_by_key(|event| event.start);
        return events;
    }
    events.sort_by_key(|event| (event.start, Reverse(event.end())));
    let own = own_times(&events);
    for (event, own) in events.iter_mut().zip(own) {
        (event.length, event.net) = (own, true);
    }
    events
}

/// The time of each event without nested events: every instant belongs to the most recently started event. Events are
/// sorted by start, and for equal starts by descending length.
fn own_times(events: &[Event]) -> Vec<u64> {
    let mut own = vec![0; events.len()];
    let mut going_on: Vec<usize> = Vec::new();
    let mut now = 0;
    let starts = events.iter().map(|event| event.start).chain([u64::MAX]);
    for (next, until) in starts.enumerate() {
        while let Some(&innermost) = going_on.last() {
            let end = events[innermost].end();
            let to = end.clamp(now, until);
            own[innermost] += to - now;
            now = to;
            if end > until {
                break;
            }
            going_on.pop();
        }
        now = until;
        going_on.push(next);
    }
    own
}

/// Turns events with net durations into consecutive detours. Nested events fill the time from the start of the first to
/// the end of the last, without gaps or overlaps.
fn in_turn(events: Vec<Event>, begin: u64) -> Vec<(u64, u64, Cause)> {
    let mut free = 0;
    let place = |event: Event| {
        let start = event.start.max(free);
        free = start.saturating_add(event.length);
        (start - begin, event.length, event.cause)
    };
    events.into_iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(start: u64, length: u64, number: usize) -> Event {
        Event { core: 0, start, length, net: false, cause: Cause::new(Kind::Interrupt, number.to_string()) }
    }

    /// The same, computed for every nanosecond: it belongs to the last of the events that cover it.
    fn nanosecond_by_nanosecond(events: &[Event]) -> Vec<u64> {
        let mut own = vec![0; events.len()];
        for now in 0..events.iter().map(Event::end).max().unwrap_or(0) {
            let covers = |event: &Event| (event.start..event.end()).contains(&now);
            if let Some(innermost) = events.iter().rposition(covers) {
                own[innermost] += 1;
            }
        }
        own
    }

    proptest! {
        #[test]
        fn nested_and_crossing_events_count_every_nanosecond_once(
            spans in prop::collection::vec((0..300u64, 0..120u64), 0..24)
        ) {
            let events = spans.iter().enumerate().map(|(i, &(start, length))| event(start, length, i));
            let mut sorted: Vec<Event> = events.clone().collect();
            sorted.sort_by_key(|event| (event.start, Reverse(event.end())));
            let expected = nanosecond_by_nanosecond(&sorted);
            prop_assert_eq!(&own_times(&sorted), &expected);

            let detours = detours(events.collect(), 0, false);
            prop_assert_eq!(detours.iter().map(|detour| detour.1).collect::<Vec<_>>(), expected);
            for pair in detours.windows(2) {
                prop_assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{:?} overlap", pair);
            }
            let end = sorted.iter().map(Event::end).max().unwrap_or(0);
            prop_assert!(detours.iter().all(|detour| detour.0 + detour.1 <= end));
        }
    }
}
