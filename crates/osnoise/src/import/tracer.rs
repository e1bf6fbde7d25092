//! Text of the kernel's tracers: samples of osnoise, named by its events; without samples, the events themselves.

use std::cmp::Reverse;
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

/// The detours of one core: samples of osnoise with names, or else the events one after another.
fn detours(events: Vec<Event>, begin: u64, sampled: bool) -> Vec<(u64, u64, Cause)> {
    let (samples, others): (Vec<Event>, Vec<Event>) = events.into_iter().partition(|e| e.cause.kind == Kind::Unknown);
    let others = net(others);
    if !sampled {
        return in_turn(others, begin);
    }
    let named = |sample: Event| {
        // Events that belong to a sample begin and end in it.
        let from = others.partition_point(|event| event.start < sample.start);
        let within = others[from..].iter().take_while(|event| event.start <= sample.end());
        let longest = within.max_by_key(|event| event.length).map(|event| event.cause.clone());
        let cause = longest.unwrap_or_else(|| Cause::new(Kind::Hardware, NO_EVENT));
        (sample.start - begin, sample.length, cause)
    };
    samples.into_iter().map(named).collect()
}

/// The events of one core with net lengths, in the order in which they begin. Events of the osnoise tracer have them
/// already and tell everything, so that others beside them would count twice.
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

/// The time of each event without those that interrupt it: every instant belongs to the event that began last of those
/// going on. Events are in the order in which they begin, of those that begin together the longest first.
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

/// Events with net lengths as detours that follow each other. Those that interrupt one another fill the time from the begin
/// of the first to the end of the last, without gap or overlap.
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

    /// The same by looking at every nanosecond: it belongs to the last of the events that cover it.
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
