//! Events in the text of `trace_pipe` and of `perf script`: of the osnoise tracer, of interrupts, soft interrupts and the
//! scheduler, and perf's records of context switches.

use std::collections::{HashMap, HashSet};

use super::Event;
use crate::trace::{Cause, Kind};

/// Which of the times of an osnoise event says when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// That of the line, less the duration: the tracer's clock.
    Line,
    /// That of the event: a clock of osnoise's own.
    Field,
}

/// Whose thread one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The kernel's.
    Kernel,
    /// A program's.
    Program,
    /// The measurement's own beside the measuring threads.
    Own,
    /// The idle thread: noise where one that measures could run.
    Idle,
    /// One that measures: no noise.
    Nobody,
}

/// Understands lines one after another.
pub struct Parser<F> {
    start: Start,
    who: F,
    /// What runs on a core since when: interrupts and soft interrupts, and below them a thread.
    open: HashMap<u32, Vec<(Kind, String, u64)>>,
    running: HashMap<u32, (String, u32, u64)>,
    /// Cores that a measuring thread was taken off though it could run.
    taken_off: HashSet<u32>,
    lost: u64,
}

/// A line taken apart.
struct Line<'a> {
    task: &'a str,
    core: u32,
    time: u64,
    event: &'a str,
}

impl<F: FnMut(&str, u32) -> Who> Parser<F> {
    /// A parser. `who` says whose a thread is, by name and number.
    pub fn new(start: Start, who: F) -> Parser<F> {
        Parser { start, who, open: HashMap::new(), running: HashMap::new(), taken_off: HashSet::new(), lost: 0 }
    }

    /// Events that the tracer says it lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The event that a line ends, if there is one. Lines that are not understood are left out.
    pub fn line(&mut self, text: &str) -> Option<Event> {
        if let Some(lost) = text.split_once("[LOST ").and_then(|(_, rest)| rest.split_once(" EVENTS]")) {
            self.lost = self.lost.saturating_add(lost.0.trim().parse().unwrap_or(1));
            return None;
        }
        let line = take_apart(text)?;
        if let Some(switch) = line.event.strip_prefix("PERF_RECORD_SWITCH") {
            return self.perf_switch(&line, switch);
        }
        let (name, arguments) = line.event.split_once(':')?;
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

    /// `local_timer:236 start 5789.857529929 duration 1845 ns`; NMI and samples have no name.
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
            // Measuring threads do not sleep: where one is idle instead, it was kept from running.
            _ => self.thread(bare, number.parse().ok()?, true)?,
        };
        let start = if self.start == Start::Field { start } else { line.time.saturating_sub(length) };
        Some(Event { core: line.core, start, length, net: true, cause })
    }

    /// What a thread is to the one that measures; `taken_off` is whether that could run.
    fn thread(&mut self, name: &str, number: u32, taken_off: bool) -> Option<Cause> {
        let kind = match (self.who)(name, number) {
            Who::Kernel => Kind::KernelThread,
            Who::Program => Kind::Task,
            Who::Own => Kind::Own,
            Who::Idle if taken_off => return Some(Cause::new(Kind::Throttling, "")),
            Who::Idle | Who::Nobody => return None,
        };
        Some(Cause::new(kind, name))
    }

    /// A thread leaves a core; `could_run` is whether it would have gone on.
    fn leaves(&mut self, core: u32, name: &str, number: u32, could_run: bool) {
        if (self.who)(name, number) != Who::Nobody {
            return;
        }
        match could_run {
            true => self.taken_off.insert(core),
            false => self.taken_off.remove(&core),
        };
    }

    fn enter(&mut self, line: &Line<'_>, kind: Kind, name: String) -> Option<Event> {
        let open = self.open.entry(line.core).or_default();
        // What never ends, as its end was lost, must not pile up.
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

    /// `prev_comm=a prev_pid=1 … prev_state=R+ ==> next_comm=b next_pid=2 next_prio=120`
    fn sched_switch(&mut self, line: &Line<'_>, arguments: &str) -> Option<Event> {
        let ended = self.stop(line.core, line.time);
        let (previous, next) = arguments.split_once(" ==> ")?;
        let (name, rest) = previous.strip_prefix("prev_comm=")?.rsplit_once(" prev_pid=")?;
        let could_run = rest.rsplit_once(" prev_state=").is_some_and(|(_, state)| state.starts_with('R'));
        self.leaves(line.core, name, rest.split_whitespace().next()?.parse().ok()?, could_run);
        let (name, rest) = next.strip_prefix("next_comm=")?.rsplit_once(" next_pid=")?;
        let number = rest.split_whitespace().next()?.parse().ok()?;
        self.running.insert(line.core, (name.to_owned(), number, line.time));
        ended
    }

    /// Of `perf script --show-switch-events -F comm,tid,cpu,time`: `_CPU_WIDE OUT preempt next …`, `_CPU_WIDE IN prev …`.
    fn perf_switch(&mut self, line: &Line<'_>, switch: &str) -> Option<Event> {
        let way = switch.split_whitespace().find(|word| matches!(*word, "IN" | "OUT"))?;
        let ended = self.stop(line.core, line.time);
        let (name, number) = line.task.rsplit_once(char::is_whitespace)?;
        // Of threads that it has not seen start perf knows the number only.
        let unnamed = |name: &str| name.strip_prefix(':').is_some_and(|rest| rest == number);
        let name = Some(name.trim()).filter(|name| !unnamed(name)).unwrap_or_default();
        let number = number.parse().ok()?;
        match way {
            "IN" => drop(self.running.insert(line.core, (name.to_owned(), number, line.time))),
            _ => self.leaves(line.core, name, number, switch.contains("preempt")),
        }
        ended
    }

    /// The thread that ran on a core until now.
    fn stop(&mut self, core: u32, time: u64) -> Option<Event> {
        let (name, number, start) = self.running.remove(&core)?;
        let cause = self.thread(&name, number, self.taken_off.contains(&core))?;
        let length = time.checked_sub(start)?;
        Some(Event { core, start, length, net: false, cause })
    }
}

/// `  task-pid  [core] flags  time: event`, with or without flags.
fn take_apart(text: &str) -> Option<Line<'_>> {
    // Names of tasks may hold brackets: the core is the first number in brackets before a time.
    for (at, _) in text.match_indices('[') {
        let Some((core, rest)) = text[at + 1..].split_once(']') else { break };
        let Ok(core) = core.trim().parse::<u32>() else { continue };
        let Some((before, event)) = rest.split_once(": ") else { continue };
        let Some(time) = before.split_whitespace().next_back().and_then(seconds) else { continue };
        return Some(Line { task: text[..at].trim(), core, time, event: event.trim() });
    }
    None
}

/// A time in seconds with up to nine decimals, as ns.
fn seconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    let digits = part.len();
    if digits == 0 || digits > 9 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let part: u64 = part.parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part * 10u64.pow(9 - digits as u32))
}

/// `irq=24 name=eth0`
fn interrupt_name(arguments: &str) -> Option<String> {
    let (number, name) = arguments.strip_prefix("irq=")?.split_once(" name=")?;
    Some(format!("{number} {name}"))
}

/// `vec=1 [action=TIMER]`
fn bracketed(arguments: &str) -> Option<String> {
    Some(arguments.split_once("[action=")?.1.trim_end_matches(']').to_owned())
}
