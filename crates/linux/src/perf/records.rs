//! The records of performance events, as `perf_event_open(2)` describes them under "MMAP layout".

use fxscope_aarch64::Cpu;

use super::Event;
use crate::system::System;
use crate::thread::Thread;

/// Bits of `sample_type`: what a sample has.
pub(crate) mod sample {
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDRESS: u64 = 1 << 3;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const REGISTERS: u64 = 1 << 12;
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const ALL: u64 = IP | TID | TIME | ADDRESS | CALLCHAIN | ID | CPU | PERIOD | STREAM_ID | REGISTERS | IDENTIFIER;
}

/// Registers that a sample may have, as a mask: `x0` to `x30`, the stack pointer and the program counter
/// (`enum perf_event_arm_regs`).
pub(crate) const REGISTERS: u64 = (1 << 33) - 1;

/// Kinds of records.
mod kind {
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
}

/// Bits of a record's `misc` field.
mod misc {
    pub const USER: u16 = 2;
    pub const MMAP_DATA: u16 = 1 << 13;
    pub const COMM_EXEC: u16 = 1 << 13;
}

/// Marks the addresses of user code in a call chain (`PERF_CONTEXT_USER`).
const CONTEXT_USER: u64 = -512i64 as u64;

/// The clock of a record's time (`clockid`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    Monotonic,
    Realtime,
}

impl Clock {
    /// Returns the time in ns.
    pub(crate) fn ns(self, system: &System) -> u64 {
        match self {
            Clock::Monotonic => system.monotonic_ns(),
            Clock::Realtime => system.realtime_ns(),
        }
    }
}

/// Where and when something happens.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub pid: u32,
    pub tid: u32,
    pub cpu: u32,
    /// The time on the event's clock, ns.
    pub ns: u64,
}

impl Moment {
    /// Returns the present moment of a thread, for records of `event`.
    pub(crate) fn of(thread: &Thread, event: &Event, system: &System) -> Moment {
        let ns = event.attributes.clock.ns(system);
        Moment { pid: thread.pid, tid: thread.tid, cpu: thread.cpu_number(), ns }
    }
}

/// A mapping of a process.
pub(crate) struct Mapping<'a> {
    pub start: u64,
    pub bytes: u64,
    /// Offset in the file in bytes, and the file's inode.
    pub offset: u64,
    pub inode: u64,
    pub prot: u32,
    pub flags: u32,
    pub name: &'a [u8],
}

impl Mapping<'_> {
    const EXEC: u32 = 4;

    /// Returns whether it has code.
    pub(crate) fn is_code(&self) -> bool {
        self.prot & Self::EXEC != 0
    }
}

/// A record under construction: a header, then words in the order of the format.
struct Record(Vec<u8>);

impl Record {
    fn new(kind: u32, misc: u16) -> Record {
        Record([&kind.to_ne_bytes()[..], &misc.to_ne_bytes(), &[0; 2]].concat())
    }

    fn word(&mut self, value: u64) {
        self.0.extend(value.to_ne_bytes());
    }

    fn pair(&mut self, first: u32, second: u32) {
        self.0.extend(first.to_ne_bytes());
        self.0.extend(second.to_ne_bytes());
    }

    /// A text with its zero, in whole words.
    fn text(&mut self, text: &[u8]) {
        self.0.extend(text);
        let bytes = self.0.len() + 1;
        self.0.resize(bytes.next_multiple_of(8), 0);
    }

    /// Adds what identifies a record that is no sample, if the event asks for it.
    fn identified(mut self, event: &Event, at: Moment) -> Vec<u8> {
        if event.attributes.identifies_all {
            let has = |bit| event.attributes.sample_type & bit != 0;
            if has(sample::TID) {
                self.pair(at.pid, at.tid);
            }
            let words = [(sample::TIME, at.ns), (sample::ID, event.id), (sample::STREAM_ID, event.id)];
            words.into_iter().filter(|&(bit, _)| has(bit)).for_each(|(_, value)| self.word(value));
            if has(sample::CPU) {
                self.pair(at.cpu, 0);
            }
            if has(sample::IDENTIFIER) {
                self.word(event.id);
            }
        }
        self.finish()
    }

    /// Writes the size into the header. All parts are far shorter than the 64 KiB that fit there.
    fn finish(mut self) -> Vec<u8> {
        let bytes = u16::try_from(self.0.len()).unwrap_or(u16::MAX);
        self.0[6..8].copy_from_slice(&bytes.to_ne_bytes());
        self.0
    }
}

/// Returns a sample: the count of `event` has grown by `period` when the thread was at `chain[0]`; the others are its callers.
/// `cpu` has its other registers.
pub(crate) fn sample(event: &Event, at: Moment, chain: &[u64], cpu: &Cpu, period: u64) -> Vec<u8> {
    let has = |bit| event.attributes.sample_type & bit != 0;
    let mut record = Record::new(kind::SAMPLE, misc::USER);
    if has(sample::IDENTIFIER) {
        record.word(event.id);
    }
    if has(sample::IP) {
        record.word(chain.first().copied().unwrap_or(0));
    }
    if has(sample::TID) {
        record.pair(at.pid, at.tid);
    }
    // An address is known only of other kinds of events.
    let words = [(sample::TIME, at.ns), (sample::ADDRESS, 0), (sample::ID, event.id), (sample::STREAM_ID, event.id)];
    words.into_iter().filter(|&(bit, _)| has(bit)).for_each(|(_, value)| record.word(value));
    if has(sample::CPU) {
        record.pair(at.cpu, 0);
    }
    if has(sample::PERIOD) {
        record.word(period);
    }
    if has(sample::CALLCHAIN) {
        match event.attributes.most_callers {
            None => record.word(0),
            Some(most) => {
                let chain = &chain[..chain.len().min(usize::from(most))];
                record.word(chain.len() as u64 + 1);
                record.word(CONTEXT_USER);
                chain.iter().for_each(|&address| record.word(address));
            }
        }
    }
    if has(sample::REGISTERS) {
        /// Registers of 64 bits (`PERF_SAMPLE_REGS_ABI_64`).
        const ABI: u64 = 2;
        record.word(ABI);
        let all = (0..31).map(|n| cpu.x(n)).chain([cpu.x(Cpu::SP), chain.first().copied().unwrap_or(0)]);
        let wanted = all.enumerate().filter(|(n, _)| event.attributes.registers >> n & 1 == 1);
        wanted.for_each(|(_, value)| record.word(value));
    }
    record.finish()
}

/// Returns a record that says how many have been lost.
pub(crate) fn lost(event: &Event, at: Moment, records: u64) -> Vec<u8> {
    let mut record = Record::new(kind::LOST, 0);
    record.word(event.id);
    record.word(records);
    record.identified(event, at)
}

/// Returns a record of a thread's name, which it has got from `execve` or set itself.
pub(crate) fn name(event: &Event, at: Moment, name: &[u8], by_exec: bool) -> Vec<u8> {
    let executes = by_exec && event.attributes.notes.exec_names;
    let mut record = Record::new(kind::COMM, if executes { misc::COMM_EXEC } else { 0 });
    record.pair(at.pid, at.tid);
    record.text(name);
    record.identified(event, at)
}

/// Returns a record of a new mapping.
pub(crate) fn mapping(event: &Event, at: Moment, mapping: &Mapping<'_>) -> Vec<u8> {
    let is_long = event.attributes.notes.long_mappings;
    let data = if mapping.is_code() { 0 } else { misc::MMAP_DATA };
    let mut record = Record::new(if is_long { kind::MMAP2 } else { kind::MMAP }, misc::USER | data);
    record.pair(at.pid, at.tid);
    record.word(mapping.start);
    record.word(mapping.bytes);
    record.word(mapping.offset);
    if is_long {
        // No device and no generation of the inode.
        record.pair(0, 0);
        record.word(mapping.inode);
        record.word(0);
        record.pair(mapping.prot, mapping.flags);
    }
    record.text(mapping.name);
    record.identified(event, at)
}

/// Returns a record of a new thread, or of the end of one: `task` are the numbers of its process and its own, `other` those of the
/// one that starts it or, at the end, its own again.
pub(crate) fn task(event: &Event, at: Moment, task: [u32; 2], other: [u32; 2], ends: bool) -> Vec<u8> {
    let mut record = Record::new(if ends { kind::EXIT } else { kind::FORK }, 0);
    record.pair(task[0], other[0]);
    record.pair(task[1], other[1]);
    record.word(at.ns);
    record.identified(event, at)
}
