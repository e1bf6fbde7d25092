//! Parses events in the text of `trace_pipe` and `perf script`: the osnoise tracer, interrupts, soft interrupts, the
//! scheduler, and perf's context switches.

use std::collections::{HashMap, HashSet};

use super::Event;
use crate::trace::{Cause, Kind};

/// Where the start time of an osnoise event comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The line's time minus the duration: the tracer's clock.
    Line,
    /// The event's own field: osnoise's clock.
    Field,
}

/// Whose thread it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// The kernel's.
    Kernel,
    /// A program's.
    Program,
    /// A helper thread of the measurement.
    Helper,
    /// The idle thread: noise if a measuring thread could run.
    Idle,
    /// A measuring thread: no noise.
    Measuring,
}

/// What perf and trace-cmd may write before an event's name.
const SUBSYSTEMS: [&str; 4] = ["osnoise:", "sched:", "irq:", "irq_vectors:"];

/// Parses lines one after another.
pub struct Parser<F> {
    start: Start,
    who: F,
    /// For each core, what is running and since when: nested interrupts and soft interrupts, and below them a thread.
    open: HashMap<u32, Vec<(Kind, String, u64)>>,
    running: HashMap<u32, (String, u32, u64)>,
    /// Cores from which a measuring thread was preempted although it could run.
    taken_off: HashSet<u32>,
    lost: u64,
}

/// The parts of a line.
struct Line<'a> {
    task: &'a str,
    core: u32,
    time: u64,
    event: &'a str,
}

impl<F: FnMut(&str, u32) -> ThreadKind> Parser<F> {
    /// Creates a parser. `who` classifies a thread by its name and number.
    pub fn new(start: Start, who: F) -> Parser<F> {
        Parser { start, who, open: HashMap::new(), running: HashMap::new(), taken_off: HashSet::new(), lost: 0 }
    }

    /// Events that the tracer reports as lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the event that ends with this line, if any. Malformed lines are skipped.
    pub fn line(&mut self, text: &str) -> Option<Event> {
        if let Some(lost) = text.split_once("[LOST ").and_then(|(_, rest)| rest.split_once(" EVENTS]")) {
            self.lost = self.lost.saturating_add(lost.0.trim().parse().unwrap_or(1));
            return None;
        }
        let line = take_apart(text)?;
        if let Some(switch) = line.event.strip_prefix("PERF_RECORD_SWITCH") {
            return self.perf_switch(&line, switch);
        }
        let event = SUBSYSTEMS.iter().find_map(|subsystem| line.event.strip_prefix(subsystem)).unwrap_or(line.event);
        let (name, arguments) = event.split_once(':')?;
        let arguments = arguments.trim();
        match name {
            "irq_noise" | "softirq_noise" | "thread_noise" | "nmi_noise" | "sample_threshold" => {
                self.osnoise(&line, name, arguments)
            }
            "sched_switch" => self.sched_switch(&line, arguments),
            "irq_handler_entry" => self.enter(&line, Kind::Interrupt, interrupt_name(arguments)?),
            "irq_handler_exit" => self.leave(&line, Kind::Interrupt),
            "softirq_entry" => self.enter(&line, Kind::SoftInterrupt, bracketed(arguments)?),
            "softirq_exit" => self.leave(&line, Kind::SoftInterrupt),
            _ if arguments.starts_with("vector=") => match (name.strip_suffix("_entry"), name.strip_suffix("_exit")) {
                (Some(vector), _) => self.enter(&line, Kind::Interrupt, vector.to_owned()),
                (_, Some(_)) => self.leave(&line, Kind::Interrupt),
                _ => None,
            },
            _ => None,
        }
    }

    /// Parses `local_timer:236 start 5789.857529929 duration 1845 ns`; NMIs and samples have no name.
    fn osnoise(&mut self, line: &Line<'_>, event: &str, arguments: &str) -> Option<Event> {
        let (name, rest) = match arguments.strip_prefix("start ") {
            Some(rest) => ("", rest),
            None => arguments.rsplit_once(" start ")?,
        };
        let mut words = rest.split_whitespace();
        let start = seconds(words.next()?)?;
        let length = words.nth(1)?.parse().ok()?;
        let (bare, number) = name.rsplit_once(':').unwrap_or((name, ""));
        let cause = match event {
            "irq_noise" => Cause::new(Kind::Interrupt, name),
            "softirq_noise" => Cause::new(Kind::SoftInterrupt, name),
            "nmi_noise" => Cause::new(Kind::Nmi, ""),
            "sample_threshold" => Cause::unknown(),
            // Measuring threads do not sleep: if the core is idle instead, the thread was kept from running.
            _ => self.thread(bare, number.parse().ok()?, true)?,
        };
        let start = if self.start == Start::Field { start } else { line.time.saturating_sub(length) };
        Some(Event { core: line.core, start, length, net: true, cause })
    }

    /// Classifies a thread; `taken_off`: whether a measuring thread was preempted although it could run.
    fn thread(&mut self, name: &str, number: u32, taken_off: bool) -> Option<Cause> {
        let kind = match (self.who)(name, number) {
            ThreadKind::Kernel => Kind::KernelThread,
            ThreadKind::Program => Kind::Task,
            ThreadKind::Helper => Kind::Own,
            ThreadKind::Idle if taken_off => return Some(Cause::new(Kind::Throttling, "")),
            ThreadKind::Idle | ThreadKind::Measuring => return None,
        };
        Some(Cause::new(kind, name))
    }

    /// A thread leaves a core; `could_run`: whether it was still runnable.
    fn leaves(&mut self, core: u32, name: &str, number: u32, could_run: bool) {
        if (self.who)(name, number) != ThreadKind::Measuring {
            return;
        }
        match could_run {
            true => self.taken_off.insert(core),
            false => self.taken_off.remove(&core),
        };
    }

    fn enter(&mut self, line: &Line<'_>, kind: Kind, name: String) -> Option<Event> {
        let open = self.open.entry(line.core).or_default();
        // Entries whose end was lost must not accumulate.
        if open.len() >= 16 {
            open.clear();
        }
        open.push((kind, name, line.time));
        None
    }

    fn leave(&mut self, line: &Line<'_>, kind: Kind) -> Option<Event> {
        let open = self.open.get_mut(&line.core)?;
        let at = open.iter().rposition(|(of, ..)| *of == kind)?;
        let (kind, name, start) = open.drain(at..).next()?;
        let length = line.time.checked_sub(start)?;
        Some(Event { core: line.core, start, length, net: false, cause: Cause::new(kind, name) })
    }

    /// Parses `prev_comm=a prev_pid=1 … prev_state=R+ ==> next_comm=b next_pid=2 next_prio=120`, or as perf and trace-cmd
    /// write it, `a:1 [120] R ==> b:2 [120]`.
    fn sched_switch(&mut self, line: &Line<'_>, arguments: &str) -> Option<Event> {
        let ended = self.stop(line.core, line.time);
        let (previous, next) = arguments.split_once(" ==> ")?;
        let (name, number, state) = thread_of_switch(previous, "prev")?;
        self.leaves(line.core, name, number, state.starts_with('R'));
        let (name, number, _) = thread_of_switch(next, "next")?;
        self.running.insert(line.core, (name.to_owned(), number, line.time));
        ended
    }

    /// Parses `perf script --show-switch-events -F comm,tid,cpu,time`: `_CPU_WIDE OUT preempt next …`, `_CPU_WIDE IN
    /// prev …`.
    fn perf_switch(&mut self, line: &Line<'_>, switch: &str) -> Option<Event> {
        let way = switch.split_whitespace().find(|word| matches!(*word, "IN" | "OUT"))?;
        let ended = self.stop(line.core, line.time);
        let (name, number) = line.task.rsplit_once(char::is_whitespace)?;
        // For threads whose start it has not seen, perf knows only the number.
        let unnamed = |name: &str| name.strip_prefix(':').is_some_and(|rest| rest == number);
        let name = Some(name.trim()).filter(|name| !unnamed(name)).unwrap_or_default();
        let number = number.parse().ok()?;
        match way {
            "IN" => drop(self.running.insert(line.core, (name.to_owned(), number, line.time))),
            _ => self.leaves(line.core, name, number, switch.contains("preempt")),
        }
        ended
    }

    /// Ends the thread that ran on a core until now.
    fn stop(&mut self, core: u32, time: u64) -> Option<Event> {
        let (name, number, start) = self.running.remove(&core)?;
        let cause = self.thread(&name, number, self.taken_off.contains(&core))?;
        let length = time.checked_sub(start)?;
        Some(Event { core, start, length, net: false, cause })
    }
}

/// One side of a switch: name, number and state of the thread.
fn thread_of_switch<'a>(text: &'a str, side: &str) -> Option<(&'a str, u32, &'a str)> {
    let Some(rest) = text.trim().strip_prefix(side).and_then(|rest| rest.strip_prefix("_comm=")) else {
        let (thread, state) = text.rsplit_once(" [")?;
        let (name, number) = thread.trim().rsplit_once(':')?;
        return Some((name, number.parse().ok()?, state.split_once(']')?.1.trim()));
    };
    let (name, rest) = rest.rsplit_once(&format!(" {side}_pid="))?;
    let state = rest.rsplit_once("_state=").map_or("", |(_, state)| state);
    Some((name, rest.split_whitespace().next()?.parse().ok()?, state))
}

/// A line in which the osnoise tracer sums up a period of a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Core.
    pub core: u32,
    /// Time that was measured, us.
    pub runtime: u64,
    /// Noise in it, us.
    pub noise: u64,
    /// The longest single noise, us.
    pub longest: u64,
    /// Numbers of hardware noise, NMIs, interrupts, soft interrupts and threads.
    pub counts: [u64; 5],
}

/// Parses `task-pid [core] flags time: 1000000 190 99.98100 9 18 0 1007 18 1`.
#[must_use]
pub fn sums(text: &str) -> Option<Sums> {
    let line = take_apart(text)?;
    let words: Vec<&str> = line.event.split_whitespace().collect();
    let [runtime, noise, available, longest, counts @ ..] = &words[..] else { return None };
    available.parse::<f64>().ok()?;
    let counts: Option<Vec<u64>> = counts.iter().map(|word| word.parse().ok()).collect();
    let counts: [u64; 5] = counts?.try_into().ok()?;
    let (runtime, noise, longest) = (runtime.parse().ok()?, noise.parse().ok()?, longest.parse().ok()?);
    Some(Sums { core: line.core, runtime, noise, longest, counts })
}

/// Splits `  task-pid  [core] flags  time: event`, with or without flags.
fn take_apart(text: &str) -> Option<Line<'_>> {
    // Task names may contain brackets: the core is the first number in brackets before a time.
    for (at, _) in text.match_indices('[') {
        let Some((core, rest)) = text[at + 1..].split_once(']') else { break };
        let Ok(core) = core.trim().parse::<u32>() else { continue };
        let Some((before, event)) = rest.split_once(": ") else { continue };
        let Some(time) = before.split_whitespace().next_back().and_then(seconds) else { continue };
        return Some(Line { task: text[..at].trim(), core, time, event: event.trim() });
    }
    None
}

/// Parses a time in seconds with up to nine decimals; returns ns.
fn seconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    let digits = part.len();
    if digits == 0 || digits > 9 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let part: u64 = part.parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part * 10u64.pow(9 - digits as u32))
}

/// Parses `irq=24 name=eth0`.
fn interrupt_name(arguments: &str) -> Option<String> {
    let (number, name) = arguments.strip_prefix("irq=")?.split_once(" name=")?;
    Some(format!("{number} {name}"))
}

/// Parses `vec=1 [action=TIMER]`.
fn bracketed(arguments: &str) -> Option<String> {
    Some(arguments.split_once("[action=")?.1.trim_end_matches(']').to_owned())
}
