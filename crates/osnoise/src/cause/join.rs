//! Attributes detours to events on the same core at the same time.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};

use super::{Event, NO_EVENT, REALTIME_LIMIT, Recognised, TICK};
use crate::trace::{Cause, Detour, Error, Header, Item, Kind, Method, Reader, Summary, UNKNOWN, Writer};

/// Tolerance between the clocks of detours and of events, ns: traces have whole µs.
const SLACK: u64 = 2_000;
/// A detour may be this many times as long as the event that names it: entry and exit, cache pollution and a
/// hypervisor's work are not part of events.
const LEAST: u64 = 10;
/// Maximum number of a core's events waiting for detours.
const MOST: usize = 1 << 20;

/// What is known about the events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventContext<'a> {
    /// Start of the trace in the tracer's clock, ns.
    pub start: u64,
    /// Whether the events cover everything that the kernel does: a detour without an event is then due to hardware or
    /// host.
    pub complete: bool,
    /// Whether the machine is virtual.
    pub virtual_machine: bool,
    /// Ticks and throttling recognised in the trace itself.
    pub recognised: &'a Recognised,
}

/// Copies a trace, naming detours without a cause. Returns the trace's summary with `notes` added, or `None` if the
/// trace was cut off. Events must be sorted by their ends.
///
/// # Errors
/// If the trace cannot be read or the copy cannot be written.
pub fn name<R: Read, W: Write>(
    mut trace: Reader<R>,
    mut events: impl Iterator<Item = Event>,
    naming: EventContext<'_>,
    out: W,
    notes: &dyn Fn() -> Vec<String>,
) -> Result<Option<Summary>, Error> {
    let header = trace.header().clone();
    let mut copy = Writer::new(out, &header)?;
    let mut waiting: BTreeMap<u32, VecDeque<Event>> = BTreeMap::new();
    let mut seen = 0;
    while let Some(item) = trace.next_item()? {
        match item {
            Item::Detours(core, detours) => {
                let last = detours.last().map_or(0, |&detour| {
                    detour.start.saturating_add(reach(&header, detour)).saturating_add(naming.start)
                });
                // A thread's event ends when the thread is switched out, slightly after the detour.
                while seen <= last.saturating_add(SLACK) {
                    let Some(event) = events.next() else { break };
                    seen = event.end();
                    let queue = waiting.entry(event.core).or_default();
                    if queue.len() >= MOST {
                        queue.pop_front();
                    }
                    queue.push_back(event);
                }
                let queue = waiting.entry(core).or_default();
                copy_named(&mut copy, core, &detours, (&header, trace.causes()), queue, naming)?;
            }
            Item::End(mut summary) => {
                summary.notes.extend(notes());
                copy.finish(&summary)?;
                return Ok(Some(*summary));
            }
            Item::CutOff => break,
        }
    }
    copy.flush()?;
    Ok(None)
}

/// Maximum time from a detour's start to the end of its cause, ns. Loops with a quantum show in which piece of work or
/// interval time was lost, but not where in it.
fn reach(header: &Header, detour: Detour) -> u64 {
    match header.method {
        Method::Fwq | Method::Dgemm => detour.length.saturating_add(header.quantum),
        Method::Ftq => detour.length.max(header.quantum),
        Method::Spin | Method::Barrier | Method::Imported => detour.length,
    }
}

fn copy_named<W: Write>(
    copy: &mut Writer<W>,
    core: u32,
    detours: &[Detour],
    (header, causes): (&Header, &[Cause]),
    events: &mut VecDeque<Event>,
    naming: EventContext<'_>,
) -> io::Result<()> {
    for &detour in detours {
        let from = detour.start.saturating_add(naming.start);
        let to = from.saturating_add(reach(header, detour));
        while events.front().is_some_and(|event| event.end().saturating_add(SLACK) < from) {
            events.pop_front();
        }
        let overlap = |event: &Event| {
            let begin = event.start.saturating_sub(SLACK).max(from);
            (event.end().saturating_add(SLACK)).min(to).saturating_sub(begin).min(event.length.max(1))
        };
        let near = events.iter().take_while(|event| event.end() <= to.saturating_add(SLACK) || event.start <= to);
        let near = near.map(|event| (overlap(event), event)).filter(|(time, _)| *time > 0);
        let largest = near.max_by_key(|(time, _)| *time);
        let largest = largest.filter(|(time, _)| time.saturating_mul(LEAST) >= detour.length);
        let known = causes.get(detour.cause as usize).filter(|_| detour.cause != UNKNOWN);
        // A thread that ran after a tick took less time than the tick itself.
        let is_tick = !naming.complete && naming.recognised.is_tick(core, detour);
        let largest = largest.filter(|(_, event)| !is_tick || event.length.saturating_mul(2) >= detour.length);
        let cause = match (known, largest) {
            (Some(known), _) => copy.cause(known),
            _ if naming.recognised.is_limited(core, detour) => {
                copy.cause(&Cause::new(Kind::Throttling, REALTIME_LIMIT))
            }
            (None, Some((_, event))) if event.cause.kind == Kind::Throttling && header.priority.is_some() => {
                copy.cause(&Cause::new(Kind::Throttling, REALTIME_LIMIT))
            }
            (None, Some((_, event))) => copy.cause(&event.cause),
            (None, None) if is_tick => copy.cause(&Cause::new(Kind::Interrupt, TICK)),
            (None, None) if naming.complete => {
                let kind = if naming.virtual_machine { Kind::Hypervisor } else { Kind::Hardware };
                copy.cause(&Cause::new(kind, NO_EVENT))
            }
            (None, None) => UNKNOWN,
        };
        copy.push(core, Detour { cause, ..detour })?;
    }
    Ok(())
}
