//! Drains the rings during the measurement and writes the trace.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::Duration;

use super::native::pin;
use super::ring::Ring;
use crate::clock::{Clock, Timebase, monotonic, pair};
use crate::trace::{Cause, Detour, Kind, UNKNOWN, Writer};

/// Where detours come from.
pub struct Sources<'a> {
    /// The rings of the measured cores.
    pub rings: Vec<(u32, &'a Ring)>,
    /// Cores that are not measured.
    pub spare: &'a [u32],
    /// Start of the trace, `CLOCK_MONOTONIC`.
    pub start: u64,
    /// Called with the elapsed time, ns.
    pub progress: &'a dyn Fn(u64),
}

/// When the writer ran: start, end (`CLOCK_MONOTONIC`), and core.
type Visit = (u64, u64, u32);
/// Number of visits remembered, for detours found late.
const VISITS: usize = 8;
/// Maximum number of clock jumps reported individually.
const REPORTED_JUMPS: usize = 5;

impl Sources<'_> {
    /// Writes detours until nothing is `running`; returns the writer, and notes for the reader.
    ///
    /// # Errors
    /// If the trace cannot be written.
    pub fn drain<W: Write>(
        &self,
        mut out: Writer<W>,
        clock: &mut impl Clock,
        mut base: Timebase,
        running: impl Fn() -> bool,
    ) -> io::Result<(Writer<W>, Vec<String>)> {
        // Without a spare core, make as few visits as the rings allow.
        let pause = Duration::from_millis(if self.spare.is_empty() { 1000 } else { 200 });
        if !self.spare.is_empty() {
            // If this fails, the writer works elsewhere and appears as noise.
            let _ = pin(self.spare);
        }
        let mut visits: VecDeque<Visit> = VecDeque::new();
        let (mut notes, mut jumps) = (Vec::new(), 0);
        loop {
            let more = running();
            let (begin, core) = (monotonic(), rustix::thread::sched_getcpu() as u32);
            let (ticks, now) = pair(clock);
            if let Err(ahead) = base.follow(ticks, now) {
                jumps += 1;
                if jumps <= REPORTED_JUMPS {
                    let (at, ms) = ((now.saturating_sub(self.start)) as f64 / 1e9, ahead as f64 / 1e6);
                    notes.push(format!(
                        "{at:.1} s: the clock jumped, {ms:.1} ms against the system's; detours before may be misplaced"
                    ));
                }
            }
            self.take(&mut out, &base, &visits)?;
            out.flush()?;
            (self.progress)(now.saturating_sub(self.start));
            if self.rings.iter().any(|&(ring, _)| ring == core) {
                visits.push_back((begin, monotonic(), core));
                if visits.len() > VISITS {
                    visits.pop_front();
                }
            }
            if !more {
                break;
            }
            self.sleep(pause, &running);
        }
        if jumps > REPORTED_JUMPS {
            notes.push(format!("the clock jumped {} more times", jumps - REPORTED_JUMPS));
        }
        Ok((out, notes))
    }

    /// Sleeps; on a spare core, not beyond the end.
    fn sleep(&self, pause: Duration, running: &impl Fn() -> bool) {
        let steps = if self.spare.is_empty() { 1 } else { 20 };
        for _ in 0..steps {
            if running() {
                std::thread::sleep(pause / steps);
            }
        }
    }

    fn take<W: Write>(&self, out: &mut Writer<W>, base: &Timebase, visits: &VecDeque<Visit>) -> io::Result<()> {
        for &(core, ring) in &self.rings {
            while let Some((ticks, length)) = ring.pop() {
                let (begin, length) = (base.at(ticks), base.length(length));
                let end = begin.saturating_add(length);
                // At least half of it: another program may have taken the rest.
                let shared = |from: u64, to: u64| to.min(end).saturating_sub(from.max(begin));
                let own = visits.iter().any(|&(from, to, on)| on == core && 2 * shared(from, to) > length);
                let cause = if own { out.cause(&Cause::new(Kind::Own, "writing the trace")) } else { UNKNOWN };
                out.push(core, Detour { start: begin.saturating_sub(self.start), length, cause })?;
            }
        }
        Ok(())
    }
}
