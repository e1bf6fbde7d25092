//! Samples of performance events: where a thread is each time the count of an event has grown by a period.
//!
//! Only timed runs have samples. While an event samples the running thread, the driver passes what the thread has counted after
//! each of its blocks ([`Guest::sample`]); otherwise sampling costs nothing. A sample therefore belongs to the block with which the
//! count reached the period, and shows its last instruction.

use std::rc::{Rc, Weak};

use fxscope_guestmem::Region;

use super::records::{self, Clock, Mapping, Moment};
use super::ring::{Ring, Wakeup};
use super::{Event, Source, Uses};
use crate::guest::Guest;
use crate::kernel::Kernel;
use crate::stack::{Registers, Walker};
use crate::thread::Thread;

/// What an event writes apart from samples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Notes {
    /// Mappings with code; those without; with the longer record.
    pub mappings: bool,
    pub data_mappings: bool,
    pub long_mappings: bool,
    /// Names of threads; with a mark if they are from `execve`.
    pub names: bool,
    pub exec_names: bool,
    /// Starts and ends of threads.
    pub tasks: bool,
}

/// What an event writes to its buffer, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes {
    /// The first period; 0: no samples.
    pub period: u64,
    /// Samples per second of a thread's time, to which the period adapts; 0: it is fixed.
    pub frequency: u64,
    pub sample_type: u64,
    /// Whether records that are no samples say to what they belong, too.
    pub identifies_all: bool,
    /// Most addresses of a call chain; `None`: those of the user are not wanted.
    pub most_callers: Option<u16>,
    /// Registers of a sample, as a mask.
    pub registers: u64,
    pub wakeup: Wakeup,
    pub clock: Clock,
    pub notes: Notes,
}

/// How far a thread's count is from the next sample.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// The count that has been looked at.
    seen: u64,
    /// What is left until the next sample; 0: all of the period.
    left: u64,
    /// The period, where it adapts; 0: it is not known yet.
    period: u64,
    /// Time on a CPU at the last sample, ns.
    sampled_ns: u64,
}

/// Samples that are due.
struct Due {
    samples: u64,
    period: u64,
}

impl Progress {
    /// Begins again with a count.
    pub(crate) fn restart(&mut self, count: u64) {
        self.seen = count;
    }

    /// Advances to a count. `period` is that of the event.
    fn advance(&mut self, count: u64, cpu_ns: u64, period: u64, frequency: u64) -> Due {
        let grown = count.saturating_sub(self.seen);
        self.seen = self.seen.max(count);
        let period = if frequency > 0 && self.period > 0 { self.period } else { period };
        let left = if self.left == 0 { period } else { self.left.min(period) };
        if grown < left {
            self.left = left - grown;
            return Due { samples: 0, period };
        }
        let beyond = grown - left;
        let samples = 1 + beyond / period;
        self.left = period - beyond % period;
        if frequency > 0 {
            self.adapt(period, samples, cpu_ns, frequency);
        }
        Due { samples, period }
    }

    /// Chooses the period with which the last samples would have been `1 / frequency` seconds apart, within a factor of four.
    fn adapt(&mut self, period: u64, samples: u64, cpu_ns: u64, frequency: u64) {
        let elapsed = cpu_ns.saturating_sub(self.sampled_ns).max(1);
        let counted = u128::from(period) * u128::from(samples) * 1_000_000_000;
        let wanted = counted / (u128::from(elapsed) * u128::from(frequency));
        let most = u64::MAX >> 1;
        let wanted = u64::try_from(wanted).unwrap_or(most);
        self.period = wanted.clamp((period / 4).max(1), period.saturating_mul(4).min(most));
        self.left = self.left.min(self.period);
        self.sampled_ns = cpu_ns;
    }
}

/// The events that sample the thread which runs on a CPU.
#[derive(Default)]
pub(crate) struct Sampled {
    /// Whether an event has been opened that samples.
    pub any: bool,
    /// Changes with the events and with what they do.
    version: u64,
    /// For which version, thread and CPU the following holds.
    valid: Option<(u64, u32, u32)>,
    /// Those that have been closed meanwhile are gone.
    events: Vec<Weak<Event>>,
    /// The events of the machine's PMU that they count, by their index.
    pmu: Vec<usize>,
}

impl Event {
    /// Returns whether it samples this thread on this CPU now.
    fn samples(&self, thread: &Thread) -> bool {
        self.period.get() > 0
            && self.source != Source::Nothing
            && self.state.borrow().counts
            && self.notes_of(thread)
            && self.ring().is_some()
    }

    /// Returns whether what a thread does on its CPU belongs to it.
    fn notes_of(&self, thread: &Thread) -> bool {
        self.cpu.is_none_or(|cpu| cpu == thread.cpu_number()) && self.has(thread.tid)
    }

    /// Returns its buffer: its own or that of another event.
    pub(crate) fn ring(&self) -> Option<Rc<Ring>> {
        self.ring.borrow().clone()
    }
}

impl Kernel<'_> {
    /// The events that sample, or what they sample, may have changed. The driver looks again before the next block.
    pub(crate) fn sampling_changed(&mut self) {
        if self.system.sampled.any {
            self.system.sampled.version += 1;
            self.system.cpus.changed();
        }
    }

    /// Writes a record of `event` to its buffer, if it has one. Returns `false` if there is no room.
    fn record(&mut self, event: &Rc<Event>, at: Moment, record: &[u8], is_sample: bool) -> bool {
        let Some(ring) = event.ring() else { return true };
        if !ring.is_mapped(self.mem) {
            event.ring.take();
            return true;
        }
        if ring.paused.get() {
            return true;
        }
        let lost = ring.lost.get();
        let before = if lost > 0 { records::lost(event, at, lost) } else { Vec::new() };
        if !ring.has_room(self.mem, (before.len() + record.len()) as u64) {
            ring.lost.set(lost + 1);
            return false;
        }
        ring.lost.set(0);
        ring.write(self.mem, &before);
        ring.write(self.mem, record);
        if ring.wakes(event.attributes.wakeup, is_sample) {
            self.wake_readers(&ring);
        }
        true
    }

    /// Makes the events readable that use a buffer.
    fn wake_readers(&mut self, ring: &Rc<Ring>) {
        for event in self.events() {
            if event.ring().is_some_and(|own| Rc::ptr_eq(&own, ring)) {
                event.level.raise();
            }
        }
        self.system.cpus.invalidate();
        self.system.next_event_ns = self.system.next_event_ns.min(self.system.now_ns);
    }

    /// Lets events be readable only while their buffers have records that have not been read.
    pub(crate) fn show_records(&self) {
        if !self.system.sampled.any {
            return;
        }
        for event in self.events() {
            if event.ring().is_none_or(|ring| !ring.is_mapped(self.mem) || ring.unread(self.mem) == 0) {
                event.level.lower();
            }
        }
    }

    /// Returns the events that want notes of a thread.
    fn noting(&self, thread: &Thread, wants: impl Fn(&Notes) -> bool) -> Vec<Rc<Event>> {
        if !self.system.objects.have_events() {
            return Vec::new();
        }
        let mut events = self.events();
        events.retain(|event| wants(&event.attributes.notes) && event.is_enabled() && event.notes_of(thread));
        events
    }

    /// Notes the name of the running thread.
    pub(crate) fn note_name(&mut self, by_exec: bool) {
        for event in self.noting(self.thread, |notes| notes.names) {
            let at = Moment::of(self.thread, &event, self.system);
            let end = self.thread.name.iter().position(|&byte| byte == 0).unwrap_or(self.thread.name.len());
            let record = records::name(&event, at, &self.thread.name[..end], by_exec);
            self.record(&event, at, &record, false);
        }
    }

    /// Notes the mappings of the running process in `[start, end)` that events want.
    pub(crate) fn note_mappings(&mut self, start: u64, end: u64) {
        let events = self.noting(self.thread, |notes| notes.mappings || notes.data_mappings);
        if events.is_empty() {
            return;
        }
        let regions: Vec<Region> = self.mem.regions_within(start, end).copied().collect();
        for event in &events {
            for region in &regions {
                self.note_mapping(event, region);
            }
        }
    }

    fn note_mapping(&mut self, event: &Rc<Event>, region: &Region) {
        const SHARED: u32 = 1;
        const PRIVATE: u32 = 2;
        let Notes { mappings, data_mappings, .. } = event.attributes.notes;
        if !(if region.prot.exec { mappings } else { data_mappings }) {
            return;
        }
        let file = self.space().mapped.at(region.start);
        let prot = [region.prot.read, region.prot.write, region.prot.exec];
        let mapping = Mapping {
            start: region.start,
            bytes: region.end - region.start,
            offset: file.as_ref().map_or(0, |file| file.offset),
            inode: file.as_ref().map_or(0, |file| file.inode),
            prot: (0..).zip(prot).map(|(bit, has)| u32::from(has) << bit).sum(),
            flags: if region.shared { SHARED } else { PRIVATE },
            // As Linux names what has no file.
            name: file.as_ref().map_or(b"//anon", |file| &file.path),
        };
        let at = Moment::of(self.thread, event, self.system);
        let record = records::mapping(event, at, &mapping);
        self.record(event, at, &record, false);
    }

    /// Notes that the running thread starts a thread.
    pub(super) fn note_start(&mut self, pid: u32, tid: u32) {
        for event in self.noting(self.thread, |notes| notes.tasks) {
            let at = Moment::of(self.thread, &event, self.system);
            let record = records::task(&event, at, [pid, tid], [at.pid, at.tid], false);
            self.record(&event, at, &record, false);
        }
    }

    /// Notes the end of a thread.
    pub(super) fn note_end(&mut self, thread: &Thread) {
        for event in self.noting(thread, |notes| notes.tasks) {
            let at = Moment::of(thread, &event, self.system);
            let task = [thread.pid, thread.tid];
            let record = records::task(&event, at, task, task, true);
            self.record(&event, at, &record, false);
        }
    }

    /// Returns where the running thread is, and its callers: `last` is the address of the last instruction of the block that has
    /// just run. As under Linux, the caller of a function without a frame of its own is missing if the reader gets the link register:
    /// it then adds that caller itself.
    fn chain(&self, event: &Event, last: u64) -> Vec<u64> {
        const LINK: u64 = 1 << 30;
        let space = self.space();
        let walker =
            Walker { memory: self.mem, space: space.id, symbols: &self.process.symbols, mapped: &space.mapped };
        let registers = Registers { pc: last, ..Registers::of(&self.thread.cpu) };
        let gets_link =
            event.attributes.sample_type & records::sample::REGISTERS != 0 && event.attributes.registers & LINK != 0;
        walker.addresses(if gets_link { Registers { link: 0, ..registers } } else { registers })
    }

    /// Takes the samples of `event` that are due when the running thread has counted `count`.
    fn take_samples(&mut self, event: &Rc<Event>, count: u64, last: u64) {
        let cpu_ns = self.thread.used(self.system.running_ns()).cpu_ns;
        let Some(due) = event.advance(self.thread.tid, count, cpu_ns) else { return };
        if due.samples == 0 {
            return;
        }
        let wants_callers = event.attributes.sample_type & records::sample::CALLCHAIN != 0;
        let chain = if wants_callers { self.chain(event, last) } else { vec![last] };
        let at = Moment::of(self.thread, event, self.system);
        let record = records::sample(event, at, &chain, &self.thread.cpu, due.period);
        // More than the buffer can have, if the count has grown by very much at once.
        let most = event.ring().map_or(0, |ring| ring.capacity(record.len() as u64));
        let tried = due.samples.min(most);
        let taken = (0..tried).take_while(|_| self.record(event, at, &record, true)).count() as u64;
        if let Some(ring) = event.ring().filter(|_| taken < due.samples) {
            // One has been counted by the attempt to write it.
            let counted = taken + u64::from(taken < tried);
            ring.lost.set(ring.lost.get().saturating_add(due.samples - counted));
        }
        self.spend(event, due.samples);
    }

    /// Disables an event that was enabled for a number of samples (`PERF_EVENT_IOC_REFRESH`) when it has had them.
    fn spend(&mut self, event: &Rc<Event>, samples: u64) {
        let Some(left) = event.limit.get() else { return };
        event.limit.set(Some(left.saturating_sub(samples)));
        if left <= samples {
            event.limit.set(None);
            event.enable(&self.uses(), false);
            event.level.raise();
            self.system.cpus.invalidate();
            self.sampling_changed();
        }
    }
}

impl Event {
    /// Advances a thread to a count. `None`: it does not count for it.
    fn advance(&self, thread: u32, count: u64, cpu_ns: u64) -> Option<Due> {
        let mut state = self.state.borrow_mut();
        let member = state.members.get_mut(&thread)?;
        Some(member.progress.advance(count, cpu_ns, self.period.get(), self.attributes.frequency))
    }
}

impl Guest {
    /// Returns whether events may sample threads.
    #[inline(always)]
    #[must_use]
    pub fn has_samples(&self) -> bool {
        self.system.sampled.any
    }

    /// Returns whether an event samples the running thread. Then [`Guest::sample`] must be called after each of its blocks.
    #[inline(always)]
    pub fn is_sampled(&mut self) -> bool {
        self.system.sampled.any && self.find_sampling()
    }

    #[cold]
    fn find_sampling(&mut self) -> bool {
        let thread = &self.threads[self.running];
        let now = (self.system.sampled.version, thread.tid, thread.cpu_number());
        if self.system.sampled.valid != Some(now) {
            let mut events = self.system.objects.events();
            self.system.sampled.any = events.iter().any(|event| event.period.get() > 0);
            events.retain(|event| event.samples(thread));
            let mut pmu: Vec<usize> = events.iter().filter_map(|event| event.source.pmu()).collect();
            pmu.sort_unstable();
            pmu.dedup();
            let events = events.iter().map(Rc::downgrade).collect();
            let Sampled { any, version, .. } = self.system.sampled;
            self.system.sampled = Sampled { any, version, valid: Some(now), events, pmu };
        }
        !self.system.sampled.events.is_empty()
    }

    /// Returns the events that [`Guest::sample`] needs of the running thread, by their index among those of the platform.
    #[must_use]
    pub fn sampled_events(&self) -> &[usize] {
        &self.system.sampled.pmu
    }

    /// Returns a number that changes with [`Guest::sampled_events`] of a thread.
    #[must_use]
    pub fn sampling_version(&self) -> u64 {
        self.system.sampled.version
    }

    /// Takes the samples that are due after a block of the running thread, whose last instruction was at `last`. `counts` are what
    /// it has counted of [`Guest::sampled_events`] so far.
    pub fn sample(&mut self, counts: &[u64], last: u64) {
        let mut k = self.kernel();
        if let Some(known) = k.system.counts.get_mut(&k.thread.tid) {
            for (&index, &count) in k.system.sampled.pmu.iter().zip(counts) {
                known[index] = count;
            }
        }
        let uses = k.thread.used(k.system.running_ns());
        for place in 0..k.system.sampled.events.len() {
            let Some(event) = k.system.sampled.events[place].upgrade() else {
                k.sampling_changed();
                continue;
            };
            let count = match event.source {
                Source::Pmu(index) => {
                    let place = k.system.sampled.pmu.binary_search(&index);
                    place.ok().and_then(|place| counts.get(place)).copied().unwrap_or(0)
                }
                other => Uses::own(other, &uses),
            };
            k.take_samples(&event, count, last);
        }
        if self.system.next_event_ns <= self.system.now_ns {
            self.deadline = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Progress;

    #[test]
    fn samples_are_due_each_time_the_count_has_grown_by_the_period() {
        let mut progress = Progress::default();
        progress.restart(1_000);
        let counts = [1_099, 1_100, 1_100, 1_450, 1_499, 1_500];
        let due = counts.map(|count| progress.advance(count, 0, 100, 0).samples);
        assert_eq!(due, [0, 1, 0, 3, 0, 1]);
    }

    #[test]
    fn a_frequency_becomes_the_period_that_has_as_many_samples_in_a_second() {
        let mut progress = Progress::default();
        // Two events in each ns, and a sample in each µs.
        let mut samples = 0;
        for ns in 1..=1_000_000u64 {
            samples += progress.advance(2 * ns, ns, 100_000, 1_000_000).samples;
        }
        // Until it has adapted, there are fewer.
        assert!((900..=1000).contains(&samples), "{samples}");
    }
}
